"""Curves EUR_c(rho) / rho as Chebyshev series, looked up for every candidate and context.

Where loops are compiled, one pass goes from covariances to reductions; elsewhere the same steps in blocks that stay
within the cache, and on a GPU one kernel. Sizes: N candidates, n of a block, M contexts, R coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stakes._array import Array, at_once, double, namespace, ratio, slices
from stakes._jit import has_jit, has_kernel, loop
from stakes.acquisition import chebyshev
from stakes.beliefs import GaussianBelief

_FEWEST, _TRIPLINGS = 9, 2  # nodes, of which each tripling keeps those before
_SPARE = 0.01  # of the error aimed at, for coefficients that are left out
_PAIRS = 2**15  # of a block: 256 KiB, of which a few are in the cache at a time


@dataclass(frozen=True, eq=False)
class Curves:
    """EUR_c / rho as a polynomial in the posterior sd s = sqrt(1 - rho) from `low` to 1, one for each context."""

    coefficients: Array
    """[R, M]: of Chebyshev polynomials, R at least 2"""
    low: float = 0.0
    """The smallest s that they serve"""

    def reductions(self, block: GaussianBelief) -> tuple[Array, float]:
        """[n, M]: rho times the series, and the smallest s that was asked for."""
        if 0 in block.covariance.shape:
            return namespace(block.covariance).zeros_like(block.covariance), 1.0
        if has_jit() and isinstance(block.covariance, np.ndarray):
            return _compiled(block, self.coefficients, self.low)
        if has_kernel(block.covariance):
            return _kernel().each(block, self.coefficients, self.low)  # type: ignore[no-any-return]
        xp, parts = namespace(block.covariance), _parts(block)
        found = [self._part(block.take(part, slice(None)).rho) for part in parts]
        return xp.concat([each for each, _ in found], axis=0), min(smallest for _, smallest in found)

    def totals(self, block: GaussianBelief) -> Array:
        """[n]: the sums of reductions over contexts, in double precision."""
        if 0 in block.covariance.shape or not has_kernel(block.covariance):
            return namespace(block.covariance).sum(double(self.reductions(block)[0]), axis=1)
        return _kernel().sums(block, self.coefficients, self.low)[0]

    def _part(self, rho: Array) -> tuple[Array, float]:
        xp = namespace(rho)
        sd = xp.sqrt(1.0 - rho)
        x = (sd - (1.0 + self.low) / 2.0) * (2.0 / (1.0 - self.low))
        return rho * clenshaw(self.coefficients, x), float(xp.min(sd))

    def astype(self, dtype: Any) -> Curves:
        """In the precision of a belief."""
        return replace(self, coefficients=namespace(self.coefficients).astype(self.coefficients, dtype))

    def truncated(self, error: float) -> Curves:
        """Without the last coefficients, as long as together they are no more than `error` of the smallest end."""
        xp = namespace(self.coefficients)
        rest = xp.cumulative_sum(xp.flip(xp.abs(self.coefficients), axis=0), axis=0)  # [R, M]: of the last 1, 2, ...
        ends = self._ends()
        allowed = xp.where(ends > 0, error * ends, xp.full_like(ends, xp.inf))
        spare = int(xp.count_nonzero(xp.all(rest <= allowed, axis=1)))
        return replace(self, coefficients=self.coefficients[: max(2, self.coefficients.shape[0] - spare), :])

    def tail(self) -> float:
        """The last coefficients against the smaller end of the curve, over contexts: what interpolation loses."""
        xp = namespace(self.coefficients)
        return float(xp.max(ratio(xp.max(xp.abs(self.coefficients[-4:, :]), axis=0), self._ends())))

    def _ends(self) -> Array:
        """[M]: the smaller of the values at both ends."""
        xp, like = namespace(self.coefficients), self.coefficients[:1, :]
        ends = [clenshaw(self.coefficients, xp.full_like(like, end)) for end in (-1.0, 1.0)]
        return xp.min(xp.abs(xp.concat(ends, axis=0)), axis=0)


def interpolated(values: Callable[[np.ndarray[Any, Any]], Array], enough: float, low: float) -> tuple[Curves, float]:
    """Curves from s = `low` on through values [R, M] at s [R], with nodes added until an error of `enough`; that error.

    Of three times as many Chebyshev nodes, every third is one of those before.
    """
    found = values(_nodes(_FEWEST, low))
    for _ in range(_TRIPLINGS):
        if Curves(chebyshev.series(found, found.shape[0])).tail() < enough:
            break
        between = np.delete(_nodes(3 * found.shape[0], low), slice(1, None, 3))
        found = _interleaved(found, values(between))
    curves = Curves(chebyshev.series(found, found.shape[0]), low)
    return curves.truncated(_SPARE * enough), curves.tail()


def _nodes(count: int, low: float) -> np.ndarray[Any, Any]:
    """[R]: posterior sds from 1 down to `low`."""
    return np.asarray(low + (1.0 - low) * (1.0 + chebyshev.points(count)) / 2.0)


def _interleaved(found: Array, between: Array) -> Array:
    """[3 R, M]: each of the values found, [R, M], with one before and one after it of those [2 R, M] between."""
    xp, (count, width) = namespace(found), found.shape
    sides = xp.reshape(between, (count, 2, width))
    return xp.reshape(xp.concat([sides[:, :1, :], found[:, None, :], sides[:, 1:, :]], axis=1), (3 * count, width))


def smallest_sd(belief: GaussianBelief) -> float:
    """The smallest posterior sd, over the prior sd, that a label leaves at a context; 1 where there is no label."""
    xp, largest = namespace(belief.covariance), 0.0
    share, target_share = (ratio(xp.ones_like(each), xp.sqrt(each)) for each in _variances(belief))
    for part in _parts(belief) if belief.n_candidates else ():
        correlation = share[part] * xp.max(xp.abs(belief.covariance[part, :]) * target_share, axis=1)  # [n]
        largest = max(largest, float(xp.max(correlation)))
    return math.sqrt(max(0.0, 1.0 - largest**2))


def _kernel() -> Any:
    from stakes.acquisition import curve_kernel

    return curve_kernel


def _parts(belief: GaussianBelief) -> Iterator[slice]:
    """Candidates in blocks, whose pairs are held at once."""
    return slices(belief.n_candidates, max(1, at_once(belief.covariance, _PAIRS) // belief.n_contexts))


def _variances(belief: GaussianBelief) -> tuple[Array, Array]:
    return belief.candidate_variance, belief.variance


def clenshaw(coefficients: Array, x: Array) -> Array:
    """[n, M]: the Chebyshev series [R, M] at x [n, M]."""
    xp = namespace(coefficients)
    twice, ahead, further = 2.0 * x, xp.zeros_like(x), xp.zeros_like(x)
    for r in range(coefficients.shape[0] - 1, 0, -1):
        now = twice * ahead
        now -= further
        now += coefficients[r, :]
        ahead, further = now, ahead
    return coefficients[0, :] + x * ahead - further


def _compiled(block: GaussianBelief, coefficients: Any, low: float) -> tuple[Any, float]:
    """As above, for NumPy arrays."""
    shares = [ratio(np.ones_like(each), np.sqrt(each)) for each in _variances(block)]
    padding = np.zeros((1 - coefficients.shape[0] % 2, block.n_contexts), coefficients.dtype)
    result = np.empty(block.covariance.shape, block.covariance.dtype)
    series = np.concatenate([coefficients, padding])
    largest = _look_up(block.covariance, shares[0], shares[1], series, low, result)
    return result, float(np.sqrt(1.0 - largest))


@loop
def _look_up(covariance: Any, share: Any, target_share: Any, coefficients: Any, low: float, result: Any) -> Any:
    """Clenshaw's rule, by two of an odd number of coefficients at a time: what is carried is stored half as often."""
    count, n_contexts = coefficients.shape
    twice, ahead, further = np.empty(n_contexts), np.empty(n_contexts), np.empty(n_contexts)
    first, middle, scale, largest = coefficients[0], (1.0 + low) / 2.0, 4.0 / (1.0 - low), 0.0
    for n in range(covariance.shape[0]):
        row, rho, own = covariance[n], result[n], share[n]
        for m in range(n_contexts):
            correlation = row[m] * own * target_share[m]
            rho[m] = min(correlation * correlation, 1.0)
            largest = max(largest, rho[m])
            twice[m] = scale * (np.sqrt(1.0 - rho[m]) - middle)
            ahead[m] = 0.0
            further[m] = 0.0
        for r in range(count - 1, 0, -2):
            upper, lower = coefficients[r], coefficients[r - 1]
            for m in range(n_contexts):
                now = twice[m] * ahead[m] - further[m] + upper[m]
                ahead[m] = twice[m] * now - ahead[m] + lower[m]
                further[m] = now
        for m in range(n_contexts):
            rho[m] *= first[m] + 0.5 * twice[m] * ahead[m] - further[m]
    return largest
