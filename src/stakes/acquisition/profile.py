"""The profile curve: under a Gaussian belief EUR depends on rho alone, one curve EUR_c(rho) for each context.

Whatever the loss, the curve is tabulated by the general route at a few rho and interpolated for all candidates. What is
interpolated is EUR / rho, which tends to a constant as rho -> 0 (so small reductions keep their relative accuracy), as
a polynomial in the posterior sd s = sqrt(1 - rho), in which it is smooth up to rho = 1.

A finite set of actions is integrated between switching points, and its table is of logarithms. Contexts whose curve a
table does not resolve get more nodes, and in the end no table: an action that is best only in a window of targets is
worth nothing at all up to some rho, and its curve is singular there.
Sizes: N candidates, n of a block, M contexts, m of a block, R values of rho, P pairs of a context and a rho, J cells of
a label, D statistics.
"""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import device

from stakes._utils.array import Array, constant, double, filled, log_of, namespace, replaced, slices
from stakes.acquisition.curves import (
    SLACK,
    Curves,
    Extend,
    LogTable,
    interpolated,
    octaves_of,
    smallest_sd,
    with_totals,
)
from stakes.acquisition.forms import ANY, GENERAL, Form, Reduction, general_form, in_domain, register, today
from stakes.acquisition.scores import check_finite
from stakes.beliefs import Belief, GaussianBelief, WarpedGaussianBelief
from stakes.beliefs.gaussian_integration import WIDE_SD_AT_KINKS, SharedSplit
from stakes.losses import DistributionLoss, Loss
from stakes.losses.bregman import LogDomainLoss

_RESOLVED = 75.0  # in logarithms: integration over 14 sds resolves nothing smaller than the costs by exp(75)
_PAIRS = 1024  # that are integrated at once
_EFFORTS = (1, 2)  # by how much tables are refined
_FEW = 64  # candidates that are not worth a table
_DOUBT = 1e-7  # of the worth of knowing the target, by which a table may be wrong

Under: TypeAlias = Callable[[GaussianBelief], Any]
"""From a Gaussian belief to the one that a loss is integrated under: itself, or one about a warped target."""


def finite_actions_curve(loss: Loss, belief: GaussianBelief, under: Under) -> Reduction:
    """Tables for contexts where they serve, the general route for each pair of the others."""
    xp, mean, variance = namespace(belief.mean), double(belief.mean), double(belief.variance)
    if belief.n_candidates == 0:
        return lambda block: xp.zeros_like(block.covariance), xp.zeros_like(mean)

    def log_values(rho: Any, mean: Array, variance: Array) -> Array:
        shares, shape = constant(rho, mean)[:, None], (len(rho), mean.shape[0])
        values = _reductions(loss, under, *(xp.broadcast_to(each, shape) for each in (mean, variance, shares)))
        resolved = values > math.exp(-_RESOLVED) * _worst_cost(loss, under, mean, variance)
        return xp.where(resolved, log_of(values), xp.full_like(values, -xp.inf))

    groups: list[tuple[Array, LogTable]] = []
    left = xp.arange(mean.shape[0], device=device(mean))
    for effort in _EFFORTS if belief.n_candidates > _FEW else ():
        if left.shape[0]:
            here = xp.take(mean, left), xp.take(variance, left)
            table = LogTable.of(*here, octaves_of(belief), log_values, effort)
            good, bad = xp.nonzero(table.doubt <= _DOUBT)[0], xp.nonzero(~(table.doubt <= _DOUBT))[0]
            groups.append((xp.take(left, good), table.take(good)))
            left = xp.take(left, bad)

    def of(block: GaussianBelief) -> Array:
        rho, parts = double(block.rho), [table.at(xp.take(double(block.rho), at, axis=1)) for at, table in groups]
        here = xp.take(mean, left), xp.take(variance, left), xp.take(rho, left, axis=1)
        parts.append(_reductions(loss, under, *(xp.broadcast_to(each, here[2].shape) for each in here)))
        order = xp.argsort(xp.concat([*(at for at, _ in groups), left]))
        return xp.astype(xp.take(xp.concat(parts, axis=1), order, axis=1), block.mean.dtype)

    return of, xp.zeros_like(mean)


def _reductions(loss: Loss, under: Under, mean: Array, variance: Array, rho: Array) -> Array:
    """[R, M]: EUR by the general route for each pair, those of similar rho at once."""
    xp, shape = namespace(mean), rho.shape
    if 0 in shape:
        return xp.zeros_like(rho)
    flat = [xp.reshape(each, (-1,)) for each in (mean, variance, rho)]  # [P] each
    depth = xp.floor(xp.log2(xp.clip(xp.sqrt(1.0 - flat[2]), WIDE_SD_AT_KINKS, 1.0)))
    places, values = [], []
    for each in range(math.floor(math.log2(WIDE_SD_AT_KINKS)), 1):
        at = xp.nonzero(depth == float(each))[0]
        for part in slices(at.shape[0], _PAIRS) if at.shape[0] else ():
            places.append(at[part])
            values.append(_at_once(loss, under, *(xp.take(one, at[part]) for one in flat)))
    return xp.reshape(xp.take(xp.concat(values), xp.argsort(xp.concat(places))), shape)


def _at_once(loss: Loss, under: Under, mean: Array, variance: Array, rho: Array) -> Array:
    """[P]: of one candidate, each pair as one of its contexts."""
    xp = namespace(mean)
    table = under(GaussianBelief(mean, variance, xp.ones_like(mean[:1]), xp.sqrt(rho * variance)[None, :]))
    of, _ = GENERAL.prepare(loss, table)
    return of(table)[0, :]


def _worst_cost(loss: Loss, under: Under, mean: Array, variance: Array) -> Array:
    """[M]: what the worst action is expected to cost beyond the best: the scale of all reductions."""
    alone = under(GaussianBelief(mean, variance, mean[:0], namespace(mean).zeros_like(mean)[None, :][:0, :]))
    return namespace(mean).max(alone.moments(loss, alone.reference(loss)), axis=-1)


Values: TypeAlias = Callable[[np.ndarray[Any, Any]], Array]
"""From rho [R], each above 0, to EUR_c / rho [R, M]."""


def tabulator(loss: Any, belief: GaussianBelief, under: Under) -> tuple[Values, Array, SharedSplit | None]:
    """Curves to be, of all contexts; the log of the scale [M] that was taken out of each; the nodes that they share.

    By one product for each rho where contexts share their nodes, by the general route otherwise.
    """
    mean, variance = double(belief.mean), double(belief.variance)
    empty = GaussianBelief(mean, variance, filled((0,), 1.0, mean), filled((0, mean.shape[0]), 0.0, mean))
    own = in_domain(loss, under(empty))
    alone = isinstance(loss, DistributionLoss) or isinstance(own, LogDomainLoss)
    split = None if alone else under(empty).shared_split(own)
    if split is not None:
        return _rows(lambda rho: shared_reductions(own, split, rho)), split.reference.log_scale, split
    (of, log_scale), xp = general_form(loss).prepare(loss, under(empty)), namespace(mean)

    def row(rho: float) -> Array:
        one = replaced(empty, candidate_variance=filled(1, 1.0, mean), covariance=xp.sqrt(rho * variance)[None, :])
        return of(under(one))[0, :]

    return _rows(row), log_scale, None


def _rows(of: Callable[[float], Array]) -> Values:
    """Values one rho at a time, so that only those of one are integrated at once."""

    def values(shares: np.ndarray[Any, Any]) -> Array:
        rows = [of(float(rho)) / float(rho) for rho in shares]
        return check_finite(namespace(rows[0]).stack(rows, axis=0))

    return values


def shared_reductions(loss: Any, split: SharedSplit, rho: float) -> Array:
    """[M]: EUR_c(rho), the expected regret of keeping today's answer, as the general route has it."""
    point, parts = split.reference.point, []
    assert point is not None
    for part, moments in split.moments(rho):  # [m, J, D]
        xp = namespace(moments)
        action = loss.action(xp.sum(moments, axis=1))  # [m, d]
        parts.append(xp.sum(loss.regret(moments, action[:, None, :], point[part, None]), axis=1))
    return xp.concat(parts)


_STARTS = (0.9, 0.75, 0.5, 0.2, 0.0)  # of curves, in posterior sds: a short curve needs few nodes, and easy ones
_SMOOTH, _KINKED, _TOLERABLE = 2e-7, 1e-5, 1e-4  # relative errors: aimed at, and warned of
_SAMPLE, _CHECKED = 16, 0.97  # contexts and rho whose integration is checked; the panels are narrow there
_LEVELS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)


class AccuracyWarning(UserWarning):
    """A result is less accurate than it should be; the message says by how much and what to do.

    Examples:
        A weight that jumps without saying where:

        >>> import warnings
        >>> import numpy as np
        >>> from stakes import AccuracyWarning, GaussianBelief, SquaredError, Weight, score
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.7]])
        >>> def jump(z):
        ...     return np.where(z > 0.3, 1.0, 0.1)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     wrong = score(SquaredError(jump), belief)
        >>> caught[0].category is AccuracyWarning
        True
        >>> right = score(SquaredError(Weight(jump, breakpoints=(0.3,))), belief)
        >>> bool(abs(wrong / right - 1.0) > 1e-4)
        True
    """


def profile_curve(loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> Reduction:
    """Tabulate the curve of each context, as suits the loss; interpolate for any block of candidates.

    `under` makes, of a Gaussian belief, the belief that the loss is integrated under: one about a warped target.
    """
    if not loss.finite_actions:
        return _smooth_curve(loss, belief, under)
    if not loss.breakpoints:
        _warn(loss, _integration_error(loss, belief, under, None))
    return finite_actions_curve(loss, belief, under)


def _smooth_curve(loss: Any, belief: GaussianBelief, under: Under) -> Reduction:
    """As far as the candidates reach, with as many nodes as that needs; further where a block asks for it."""
    extend, log_scale = smooth_curves(loss, belief, under)
    curves = extend(smallest_sd(belief))

    def of(block: GaussianBelief) -> Array:
        nonlocal curves
        reductions, smallest = curves.reductions(block)
        if smallest < curves.low - SLACK:
            curves = extend(0.0)
            reductions, _ = curves.reductions(block)
        return reductions

    return of, log_scale


def smooth_curves(loss: Any, belief: GaussianBelief, under: Under = lambda table: table) -> tuple[Extend, Array]:
    """The curves of a loss for the contexts of a belief, each tabulated when it is first asked for.

    A function from a posterior sd to curves that reach as far, and the log of the scale [M] that was taken out.
    """
    values, log_scale, split = tabulator(loss, belief, under)
    doubt = 0.0 if loss.breakpoints else _integration_error(loss, belief, under, split)
    known: dict[float, tuple[Curves, float]] = {}

    def extend(smallest: float) -> Curves:
        low = next(start for start in _STARTS if start <= smallest)
        if low not in known:
            enough = _KINKED if loss.breakpoints else _SMOOTH
            curves, error = interpolated(lambda sd: values(1.0 - sd**2), enough, low)
            known[low] = curves.astype(belief.mean.dtype), error
        curves, error = known[low]
        _warn(loss, max(error, doubt))
        return curves

    return extend, log_scale


def _integration_error(loss: Any, belief: GaussianBelief, under: Under, split: SharedSplit | None) -> float:
    """How far two rules of integration differ for some of the contexts: far only if the statistics are not smooth."""
    step = max(1, belief.n_contexts // _SAMPLE)
    if split is not None:
        few = split.every(step)
        own = in_domain(loss, under(belief.take(slice(0, 0), slice(None))))  # whose statistics the split has
        even, panels = (shared_reductions(own, each, _CHECKED) for each in (few, replaced(few, panels=True)))
    else:
        some, rho = belief.take(slice(0, 0), slice(0, None, step)), np.asarray([_CHECKED])
        cut = _with_breakpoints(loss, _cuts(loss, under(some)))
        even, panels = (tabulator(each, some, under)[0](rho)[0, :] for each in (loss, cut))
    xp = namespace(even)
    return float(xp.max(abs(even - panels) / xp.where(panels > 0, panels, xp.ones_like(panels))))


def _warn(loss: Any, error: float) -> None:
    if error > _TOLERABLE:
        warnings.warn(
            f"reductions of {getattr(loss, 'name', type(loss).__name__)} under a Gaussian belief are accurate to about "
            f"{error:.0e} only. If its weight or its costs jump or kink, declare where: breakpoints=(...). A loss of "
            "your own whose act is one of finitely many actions declares finite_actions = True.",
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


def _with_breakpoints(loss: Any, breakpoints: tuple[float, ...]) -> Any:
    """The same loss with breakpoints where it has none, so that it is integrated by other panels."""
    same, kind = copy.copy(loss), type(loss)
    if "breakpoints" in vars(same):
        object.__setattr__(same, "breakpoints", breakpoints)
    else:  # a property, or an attribute of the class
        object.__setattr__(same, "__class__", type(kind.__name__, (kind,), {"breakpoints": breakpoints}))
    return same


def _caller() -> int:
    """The stack level, for the function that asks, of the first frame outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__.split(".")[0] + "."):
        frame, level = frame.f_back, level + 1
    return level


def warped_profile_curve(loss: Any, belief: WarpedGaussianBelief) -> Reduction:
    """The curve of the latent belief: under a warp, too, EUR depends on rho alone."""
    of, log_scale = profile_curve(loss, belief.latent, lambda table: replaced(belief, latent=table))
    return lambda block: of(block.latent), log_scale


def curve_form(prepare: Callable[[Any, Any], Reduction]) -> Form:
    """A form that looks curves up."""
    return Form("profile curve EUR_c(rho)", prepare, _numbers, context_numbers=4096)


def _numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (any such belief)
    return 28 if loss.finite_actions else 10


register(ANY, ANY, WarpedGaussianBelief, curve_form(warped_profile_curve))
register(ANY, ANY, GaussianBelief, with_totals(curve_form(profile_curve), smooth_curves))
