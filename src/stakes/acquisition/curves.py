"""Curves EUR_c(rho) / rho as Chebyshev series, looked up for every candidate and context.

Where loops are compiled, one pass goes from covariances to reductions; elsewhere the same steps in blocks that stay
within the cache. Sizes: N candidates, n of a block, M contexts, R coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import Array, namespace, ratio, slices
from stakes._jit import has_jit, loop
from stakes.acquisition import chebyshev
from stakes.beliefs import GaussianBelief

_FEWEST, _TRIPLINGS = 12, 2  # nodes, of which each tripling keeps those before
_SPARE = 0.01  # of the error aimed at, for coefficients that are left out
_PAIRS = 2**15  # of a block: 256 KiB, of which a few are in the cache at a time


@dataclass(frozen=True, eq=False)
class Curves:
    """EUR_c / rho as a polynomial in 2 s - 1, s = sqrt(1 - rho) the posterior sd, one for each context."""

    coefficients: Array
    """[R, M]: of Chebyshev polynomials, R at least 2"""

    def reductions(self, block: GaussianBelief) -> Array:
        """[n, M]: rho times the series."""
        if has_jit() and isinstance(block.covariance, np.ndarray):
            return _compiled(block, self.coefficients)
        xp, parts = namespace(block.covariance), slices(block.n_candidates, max(1, _PAIRS // block.n_contexts))
        return xp.concat([self._part(block.take(part, slice(None)).rho) for part in parts], axis=0)

    def _part(self, rho: Array) -> Array:
        return rho * clenshaw(self.coefficients, 2.0 * namespace(rho).sqrt(1.0 - rho) - 1.0)

    def astype(self, dtype: Any) -> Curves:
        """In the precision of a belief."""
        return Curves(namespace(self.coefficients).astype(self.coefficients, dtype))

    def truncated(self, error: float) -> Curves:
        """Without the last coefficients, as long as together they are no more than `error` of the smallest end."""
        xp = namespace(self.coefficients)
        rest = xp.cumulative_sum(xp.flip(xp.abs(self.coefficients), axis=0), axis=0)  # [R, M]: of the last 1, 2, ...
        ends = self._ends()
        allowed = xp.where(ends > 0, error * ends, xp.full_like(ends, xp.inf))
        spare = int(xp.count_nonzero(xp.all(rest <= allowed, axis=1)))
        return Curves(self.coefficients[: max(2, self.coefficients.shape[0] - spare), :])

    def tail(self) -> float:
        """The last coefficients against the smallest end of the curve, over contexts: what interpolation loses."""
        xp = namespace(self.coefficients)
        return float(xp.max(ratio(xp.max(xp.abs(self.coefficients[-4:, :]), axis=0), self._ends())))

    def _ends(self) -> Array:
        """[M]: the smaller of the values at rho = 0 and 1."""
        xp, like = namespace(self.coefficients), self.coefficients[:1, :]
        ends = [clenshaw(self.coefficients, xp.full_like(like, end)) for end in (-1.0, 1.0)]
        return xp.min(xp.abs(xp.concat(ends, axis=0)), axis=0)


def interpolated(values: Callable[[np.ndarray[Any, Any]], Array], enough: float) -> tuple[Curves, float]:
    """Curves through values [R, M] at posterior sds [R], with nodes added until an error of `enough`; and the error."""
    found = values(_spread(_FEWEST))
    for _ in range(_TRIPLINGS):
        if Curves(chebyshev.series(found, found.shape[0])).tail() < enough:
            break
        between = np.delete(_spread(3 * found.shape[0]), slice(1, None, 3))
        found = _interleaved(found, values(between))
    curves = Curves(chebyshev.series(found, found.shape[0]))
    return curves.truncated(_SPARE * enough), curves.tail()


def _spread(count: int) -> np.ndarray[Any, Any]:
    """[R]: posterior sds s at the Chebyshev nodes of 2 s - 1; of three times as many, every third is one of them."""
    return np.asarray((1.0 + chebyshev.points(count)) / 2.0)


def _interleaved(found: Array, between: Array) -> Array:
    """[3 R, M]: each of the values found, [R, M], with one before and one after it of those [2 R, M] between."""
    xp, (count, width) = namespace(found), found.shape
    sides = xp.reshape(between, (count, 2, width))
    return xp.reshape(xp.concat([sides[:, :1, :], found[:, None, :], sides[:, 1:, :]], axis=1), (3 * count, width))


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


def _compiled(block: GaussianBelief, coefficients: Any) -> Any:
    """[n, M]: as above, for NumPy arrays."""
    shares = [ratio(np.ones_like(each), np.sqrt(each)) for each in (block.candidate_variance, block.variance)]
    padding = np.zeros((1 - coefficients.shape[0] % 2, block.n_contexts), coefficients.dtype)
    result = np.empty(block.covariance.shape, block.covariance.dtype)
    _look_up(block.covariance, shares[0], shares[1], np.concatenate([coefficients, padding]), result)
    return result


@loop
def _look_up(covariance: Any, share: Any, target_share: Any, coefficients: Any, result: Any) -> None:
    """Clenshaw's rule, by two of an odd number of coefficients at a time: what is carried is stored half as often."""
    count, n_contexts = coefficients.shape
    twice, ahead, further = np.empty(n_contexts), np.empty(n_contexts), np.empty(n_contexts)
    first = coefficients[0]
    for n in range(covariance.shape[0]):
        row, rho, own = covariance[n], result[n], share[n]
        for m in range(n_contexts):
            correlation = row[m] * own * target_share[m]
            rho[m] = min(correlation * correlation, 1.0)
            twice[m] = 4.0 * np.sqrt(1.0 - rho[m]) - 2.0
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
