"""What a loss makes of a Gaussian, as functions of tensors that gradients go through.

Values are computed by `stakes` as ever, in NumPy, on even nodes, and become cubic splines: the derivative is that of
the spline, exact and continuous. `Curves` is EUR_c(rho), all that worths depend on under a Gaussian belief;
`Moments` is E[S(z)] for z ~ N(mean, sd^2), of which worths under a mixture are made.
Sizes: M contexts, K nodes, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from scipy.linalg import solve_banded
from scipy.special import expit

from stakes.acquisition import expected_reduction
from stakes.beliefs import Belief, GaussianBelief, Reference
from stakes.beliefs.base import reference_at
from stakes.losses import ThresholdDecision

Tensor: TypeAlias = Any
"""One of torch."""

_FURTHEST, _STEP = 23.0, 0.125  # of log(rho / (1 - rho)): from 1e-10 to 1 - 1e-10; splines are then right to 1e-6 ..
_NEARER, _COARSE = 14.0, 0.5  # .. or 1e-4, where each value is an integral between the switches of several actions
_NOTHING = 80.0  # logarithms below the largest reduction: as good as none


def _spline(values: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    """Coefficients, two more along the axis, of the cubic B-spline through values at even nodes.

    (c[i-1] + 4 c[i] + c[i+1]) / 6 = f[i], and no fourth difference at either end.
    """
    rows = np.moveaxis(values, axis, 0)
    count = len(rows) + 2
    bands = np.zeros((9, count))  # bands[4 + i - j, j] is what equation i has for c[j]
    bands[5, : count - 2], bands[4, 1 : count - 1], bands[3, 2:] = 1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0
    for k, weight in enumerate((1.0, -4.0, 6.0, -4.0, 1.0)):
        bands[4 - k, k] = bands[4 + k, count - 1 - k] = weight
    sides = np.concatenate([np.zeros_like(rows[:1]), rows, np.zeros_like(rows[:1])]).reshape(count, -1)
    found = solve_banded((4, 4), bands, sides).reshape(count, *rows.shape[1:])
    return np.moveaxis(found, 0, axis)


def _places(x: Tensor, first: float, step: float, count: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The first of the four coefficients that a cubic B-spline has at x, and the weights of the four."""
    t = (x - first) / step
    at = t.detach().floor().clamp(1, count - 3)
    s = t - at
    rest = 1.0 - s
    weights = (rest**3 / 6.0, 2.0 / 3.0 - s**2 + s**3 / 2.0, 2.0 / 3.0 - rest**2 + rest**3 / 2.0, s**3 / 6.0)
    return at.long() - 1, weights


@dataclass(frozen=True)
class Curves:
    """log EUR_c as a spline in log(rho / (1 - rho)), which is even in both tails, for each of M contexts."""

    coefficients: Tensor
    """[K, M]"""
    slope: Tensor
    """[M]: below the first node, where EUR_c is a power of rho"""
    step: float
    """Between nodes"""
    furthest: float
    """The first and the last node but those beside them, from 0"""

    @classmethod
    def of(cls, loss: Any, mean: Tensor, variance: Tensor, under: Callable[[GaussianBelief], Belief]) -> Curves:
        """Of targets with `mean` and `variance` [M]; `under` makes a belief about a warped target of a Gaussian one."""
        slow = loss.finite_actions and not isinstance(loss, ThresholdDecision)
        furthest, step = (_NEARER, _COARSE) if slow else (_FURTHEST, _STEP)
        nodes = np.linspace(-furthest, furthest, round(2.0 * furthest / step) + 1)
        centre, spread = (each.detach().cpu().double().numpy() for each in (mean, variance))
        share = np.sqrt(expit(nodes))[:, None] * np.sqrt(spread)
        values = np.asarray(expected_reduction(loss, under(GaussianBelief(centre, spread, np.ones(len(nodes)), share))))
        with np.errstate(divide="ignore"):
            logs = np.log(values)
        floor = (logs.max() if values.max() > 0.0 else 0.0) - _NOTHING
        logs = np.maximum(logs, floor)
        slope = (logs[1] - logs[0]) / step
        slope = np.where(logs[0] > floor, slope, 1.0)
        found = _spline(logs, 0)
        like = {"dtype": torch.double, "device": mean.device}
        return cls(torch.as_tensor(found, **like), torch.as_tensor(slope, **like), step, furthest)

    def log_reduction(self, rho: Tensor) -> Tensor:
        """[..., M]: log EUR_c(rho), for rho [..., M]."""
        rho = rho.clamp(1e-300, 1.0 - 1e-16)
        u = torch.log(rho) - torch.log1p(-rho)
        inside = u.clamp(-self.furthest, self.furthest)
        start = -self.furthest - self.step
        first, weights = _places(inside, start, self.step, len(self.coefficients))
        rows = first.reshape(-1, first.shape[-1])
        parts = [self.coefficients.gather(0, rows + k).reshape(first.shape) * each for k, each in enumerate(weights)]
        return sum(parts) + self.slope * (u - inside).clamp(max=0.0)


_SDS, _FINEST, _NARROWEST = 24, 0.25, 1e-3  # nodes of log sd; of steps, in the smallest sd; of that, in the largest
_MEANS, _MOST_MEANS = 512, 4096  # nodes of the mean, and where a loss jumps or kinks
_TAIL = 8.0  # standard deviations beyond the means


@dataclass(frozen=True)
class Moments:
    """E[S(z)] for z ~ N(mean, sd^2), as a spline in the mean and log sd, of statistics about one reference."""

    coefficients: Tensor
    """[K, K', D]"""
    first: tuple[float, float]
    steps: tuple[float, float]
    reference: Reference
    log_sds: tuple[float, float]

    @classmethod
    def of(cls, loss: Any, mean: Tensor, largest_sd: float, smallest_sd: float) -> Moments:
        """For means that labels may lead to from `mean` [S, M], and sds between two."""
        smallest = max(smallest_sd, _NARROWEST * largest_sd)
        low, high = (float(mean.min()) - _TAIL * largest_sd, float(mean.max()) + _TAIL * largest_sd)
        rough = bool(loss.finite_actions or loss.breakpoints)
        count = min(_MOST_MEANS, math.ceil((high - low) / (_FINEST * smallest))) if rough else _MEANS
        means = np.linspace(low, high, max(count, _MEANS))
        log_sds = math.log(smallest), math.log(1.2 * largest_sd)
        spreads = np.linspace(*log_sds, _SDS)
        centre, sd = (each.ravel() for each in np.meshgrid(means, np.exp(spreads), indexing="ij"))
        belief = GaussianBelief(centre, sd**2, np.ones(0), np.ones((0, len(centre))))
        reference = reference_at(np.full(1, float(mean.mean())), loss)
        everywhere = Reference(*(np.broadcast_to(np.asarray(each), centre.shape) for each in reference))
        found = belief.moments(loss, everywhere).reshape(len(means), len(spreads), -1)
        tensor = torch.as_tensor(_spline(_spline(found, 0), 1), dtype=torch.double, device=mean.device)
        point = torch.as_tensor(reference.point, dtype=torch.double, device=mean.device)
        kept = Reference(point, reference.log_scale)
        steps = means[1] - means[0], spreads[1] - spreads[0]
        return cls(tensor, (means[0] - steps[0], spreads[0] - steps[1]), steps, kept, log_sds)

    def __call__(self, mean: Tensor, variance: Tensor) -> Tensor:
        """[..., D], for means [...] and variances that broadcast to them."""
        log_sd = 0.5 * torch.log(variance.clamp(min=1e-300)).clamp(*(2.0 * each for each in self.log_sds))
        return _Surface.apply(mean, log_sd, self.coefficients, self.first, self.steps)


class _Surface(torch.autograd.Function):  # type: ignore[misc]
    """A spline in two numbers, that keeps neither the nodes nor the weights of all places for its gradient."""

    @staticmethod
    def forward(context: Any, x: Tensor, y: Tensor, coefficients: Tensor, first: Any, steps: Any) -> Tensor:
        """[..., D]."""
        context.save_for_backward(x, y, coefficients)
        context.nodes = first, steps
        count, other_count, size = coefficients.shape
        row, weights = _places(x, first[0], steps[0], count)
        column, others = _places(y, first[1], steps[1], other_count)
        flat, at, total = coefficients.reshape(-1, size), row * other_count + column, 0.0
        for i, weight in enumerate(weights):
            for j, other in enumerate(others):
                total = total + (weight * other)[..., None] * flat[at + (i * other_count + j)]
        return total

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Any, ...]:
        """Of both numbers."""
        (x, y, coefficients), (first, steps) = context.saved_tensors, context.nodes
        count, other_count, size = coefficients.shape
        row, weights = _places(x, first[0], steps[0], count)
        column, others = _places(y, first[1], steps[1], other_count)
        slopes, other_slopes = _slopes(x, first[0], steps[0], count), _slopes(y, first[1], steps[1], other_count)
        flat, at = coefficients.reshape(-1, size), row * other_count + column
        by_x, by_y = torch.zeros_like(x), torch.zeros_like(x)
        for i, (weight, slope) in enumerate(zip(weights, slopes, strict=True)):
            for j, (other, other_slope) in enumerate(zip(others, other_slopes, strict=True)):
                part = (flat[at + (i * other_count + j)] * gradient).sum(dim=-1)
                by_x += slope * other * part
                by_y += weight * other_slope * part
        return by_x, by_y.sum_to_size(y.shape), None, None, None


def _slopes(x: Tensor, first: float, step: float, count: int) -> tuple[Tensor, ...]:
    """Derivatives of the weights of `_places`."""
    t = (x - first) / step
    s = t - t.floor().clamp(1, count - 3)
    rest = 1.0 - s
    slopes = (-(rest**2) / 2.0, 1.5 * s**2 - 2.0 * s, 2.0 * rest - 1.5 * rest**2, s**2 / 2.0)
    return tuple(each / step for each in slopes)
