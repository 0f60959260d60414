"""The profile curve: under a Gaussian belief EUR depends on rho alone, one curve EUR_c(rho) for each context.

Whatever the loss, tabulate the curve by the general route at a few rho and interpolate for all candidates. What is
interpolated is EUR / rho, which tends to a constant as rho -> 0 (so small reductions keep their relative accuracy), as
a polynomial in the posterior sd s = sqrt(1 - rho), in which it is smooth up to rho = 1. Sizes: M contexts, R nodes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._array import Array, namespace, replaced
from stakes.acquisition.curves import Curves, interpolated, smallest_sd
from stakes.acquisition.finite_actions import Under, finite_actions_curve
from stakes.acquisition.forms import ANY, Form, Reduction, register, today
from stakes.acquisition.profile_values import shared_reductions, tabulator
from stakes.beliefs import Belief, GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.gaussian_shared import SharedSplit
from stakes.beliefs.switching import has_switches
from stakes.losses import DistributionLoss

_STARTS = (0.9, 0.75, 0.5, 0.2, 0.0)  # of curves, in posterior sds: a short curve needs few nodes, and easy ones
_SLACK = 1e-6  # by which rounding may take a posterior sd below the start of a curve, without harm
_SMOOTH, _KINKED, _TOLERABLE = 2e-7, 1e-5, 1e-4  # relative errors: aimed at, and told of
_SAMPLE, _CHECKED = 16, 0.97  # contexts and rho whose integration is checked; the panels are narrow there
_LEVELS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)


class AccuracyWarning(UserWarning):
    """A result is less accurate than it should be; the message says by how much and what to do."""


def profile_curve(loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> Reduction:
    """Tabulate the curve of each context, as suits the loss; interpolate for any block of candidates.

    `under` makes, of a Gaussian belief, the belief that the loss is integrated under: one about a warped target.
    """
    if not has_switches(loss):
        return _smooth_curve(loss, belief, under)
    if not loss.breakpoints:
        _warn(loss, _integration_error(loss, belief, under, None))
    return finite_actions_curve(loss, belief, under)


def _smooth_curve(loss: Any, belief: GaussianBelief, under: Under) -> Reduction:
    """As far as the candidates reach, with as many nodes as that needs; further where a block asks for it."""
    profile = Profile(loss, belief, under)
    return Reduction(_LookUp(profile, profile.reaching(belief)).of, profile.log_scale)


class _LookUp:
    """Curves that start where the smallest posterior sd of a belief is, or at 0 once a block goes beyond."""

    def __init__(self, profile: Profile, curves: Curves) -> None:
        self.profile, self.curves = profile, curves

    def of(self, block: GaussianBelief) -> Array:
        """[n, M]: rho times the curve."""
        reductions, smallest = self.curves.reductions(block)
        if smallest < self.curves.low - _SLACK:
            self.curves = self.profile.curves(0.0)
            reductions, _ = self.curves.reductions(block)
        return reductions


class Profile:
    """The curves of a loss for the contexts of a belief, each tabulated when it is first asked for."""

    def __init__(self, loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> None:
        table = tabulator(loss, belief, under)
        self.loss, self.values_at, self.log_scale, self.dtype = loss, table.values, table.log_scale, belief.mean.dtype
        self.doubt = 0.0 if loss.breakpoints else _integration_error(loss, belief, under, table.split)
        self.known: dict[float, tuple[Curves, float]] = {}

    def reaching(self, belief: GaussianBelief) -> Curves:
        """From the smallest posterior sd that a label of this belief leaves."""
        smallest = smallest_sd(belief)
        return self.curves(next(low for low in _STARTS if low <= smallest))

    def curves(self, low: float) -> Curves:
        """From a posterior sd on; told of where they are not accurate."""
        if low not in self.known:
            enough = _KINKED if self.loss.breakpoints else _SMOOTH
            curves, error = interpolated(lambda sd: self.values_at(1.0 - sd**2), enough, low)
            self.known[low] = curves.astype(self.dtype), error
        curves, error = self.known[low]
        _warn(self.loss, max(error, self.doubt))
        return curves


def _integration_error(loss: Any, belief: GaussianBelief, under: Under, split: SharedSplit | None) -> float:
    """How far two rules of integration differ for some of the contexts: far only if the statistics are not smooth."""
    step = max(1, belief.n_contexts // _SAMPLE)
    if split is not None:
        few = split.some(step)
        even, panels = (shared_reductions(loss, each, _CHECKED) for each in (few, replaced(few, panels=True)))
    else:
        some, rho = belief.take(slice(0, 0), slice(0, None, step)), np.asarray([_CHECKED])
        cut = _Cut(loss, _cuts(loss, under(some)))
        even, panels = (tabulator(each, some, under).values(rho)[0, :] for each in (loss, cut))
    xp = namespace(even)
    return float(xp.max(abs(even - panels) / xp.where(panels > 0, panels, xp.ones_like(panels))))


def _warn(loss: Any, error: float) -> None:
    if error > _TOLERABLE:
        warnings.warn(
            f"reductions of {getattr(loss, 'name', type(loss).__name__)} under a Gaussian belief are accurate to about "
            f"{error:.0e} only. If its weight or its costs jump or kink, declare where: breakpoints=(...).",
            AccuracyWarning,
            stacklevel=_caller(),
        )


def _cuts(loss: Any, belief: Belief) -> tuple[float, ...]:
    """Targets near the mass of the first context, at which nothing happens."""
    first = belief.take(slice(0, 0), slice(0, 1))
    if not isinstance(loss, DistributionLoss):
        point = first.reference(loss).point
        assert point is not None
        return (float(point[0]),)
    _, distribution, _ = today(loss, first)
    return tuple(float(distribution.quantile(level)[0]) for level in _LEVELS)


class _Cut:
    """The same loss with breakpoints where it has none, so that it is integrated by other panels."""

    def __init__(self, loss: Any, breakpoints: tuple[float, ...]) -> None:
        self._loss = loss
        self.breakpoints = breakpoints

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loss, name)


def _caller() -> int:
    """The stack level, for the function that asks, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__.split(".")[0] + "."):
        frame, level = frame.f_back, level + 1
    return level


def warped_profile_curve(loss: Any, belief: WarpedGaussianBelief) -> Reduction:
    """The curve of the latent belief: under a warp, too, EUR depends on rho alone."""
    curve = profile_curve(loss, belief.latent, lambda table: replaced(belief, latent=table))
    return Reduction(lambda block: curve.of(block.latent), curve.log_scale)


def curve_form(prepare: Callable[[Any, Any], Reduction]) -> Form:
    """A form that looks curves up."""
    return Form("profile curve EUR_c(rho)", prepare, _numbers, context_numbers=4096)


def _numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (any such belief)
    return 28 if has_switches(loss) else 10


register(ANY, ANY, WarpedGaussianBelief, curve_form(warped_profile_curve))
