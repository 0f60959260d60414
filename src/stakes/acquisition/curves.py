"""Curves EUR_c(rho), one for each context, tabulated once and looked up for every candidate: Chebyshev series.

Smooth losses have `Curves`, EUR_c / rho in the posterior sd s = sqrt(1 - rho); weights with features much narrower than
a standard deviation, which the curve sees once s is as narrow, `PanelCurves` in pieces. Decisions have a `LogTable`:
at indifference EUR grows like sqrt(rho), and k standard deviations from a switch it is exp(-k^2 / (2 rho)) small, so it
is the logarithm that is interpolated, in panels: in s where rho is large, below in log2(sqrt(rho)), a panel an octave.

Curves are looked up in one pass from covariances to reductions where loops are compiled; elsewhere by the same steps in
blocks that stay within the cache, and on a GPU in one kernel, which also sums over contexts: nothing of all pairs is
written. Sizes: N candidates, n of a block, M contexts, R nodes or coefficients, O panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_torch_array

from stakes._utils.array import Array, at_once, constant, double, log_of, namespace, ratio, replaced, slices
from stakes._utils.compute import has_jit, has_kernel, loop
from stakes.acquisition.forms import Form, Total
from stakes.acquisition.scores import SHARE_RANGE, check_finite, check_sign, log_worth
from stakes.beliefs import GaussianBelief
from stakes.beliefs.quadrature import CHUNK


def points(count: int) -> np.ndarray[Any, Any]:
    """The nodes, from 1 down to -1."""
    return np.asarray(np.cos(np.pi * (np.arange(count) + 0.5) / count))


def series(values: Array, size: int) -> Array:
    """[size, M]: the coefficients of values [R, M] at the nodes, then zeros."""
    count = values.shape[0]
    angles = np.pi * (np.arange(count) + 0.5) / count
    transform = 2.0 / count * np.cos(np.outer(np.arange(size), angles)) * (np.arange(size) < count)[:, None]
    transform[0] /= 2.0
    return namespace(values).matmul(constant(transform, values), values)


_TOP, _NODES = 24, 12  # nodes of the panel of large rho, and of each octave below
_OCTAVES = 20  # to rho = 1e-12; below, EUR is either 0 or grows like sqrt(rho)
_SPLIT = 0.35  # rho between the top panel and the octaves, away from what is singular: s at rho = 0, log2 at rho = 1

LogValues = Callable[[Any, Array, Array], Array]
"""rho [R], mean [m] and variance [m] of some contexts to log EUR [R, m]; -inf where it is too small to know."""


def octaves_of(belief: GaussianBelief) -> int:
    """How many octaves of sqrt(rho) the candidates reach into."""
    xp, smallest = namespace(belief.mean), 1.0
    for part in slices(belief.n_candidates, max(1, CHUNK // belief.n_contexts)) if belief.n_candidates else ():
        rho = double(belief.take(part, slice(None)).rho)
        smallest = min(smallest, float(xp.min(xp.where(rho > 0, rho, xp.ones_like(rho)))))
    return min(_OCTAVES, max(0, math.ceil(0.5 * (math.log2(_SPLIT) - math.log2(smallest)))))


@dataclass(frozen=True, eq=False)
class LogTable:
    """Chebyshev series of log EUR in each panel and context."""

    coefficients: Array
    """[O, R, M]: those of octaves end in zeros."""
    doubt: Array
    """[M]: what interpolation may be wrong by, relative to EUR, or to 1e-6 of EUR at rho = 1 where that is more."""

    @classmethod
    def of(cls, mean: Array, variance: Array, octaves: int, log_values: LogValues, effort: int = 1) -> LogTable:
        """From values at `effort` times the usual number of nodes."""
        rho, values = [_top_nodes(effort)], [log_values(_top_nodes(effort), mean, variance)]
        for octave in range(octaves):
            rho.append(_octave_nodes(octave, effort))
            values.append(_values_where_known(log_values, rho[-1], mean, variance, values[-1]))
        xp, ends = namespace(mean), np.cumsum([len(each) for each in rho])
        logs = _continued(xp.concat(values, axis=0), np.concatenate(rho))
        panels = [logs[int(end) - len(each) : int(end), :] for each, end in zip(rho, ends, strict=True)]
        coefficients = [series(each, len(rho[0])) for each in panels]
        doubts = [_doubt(s, each, xp.max(panels[0], axis=0)) for s, each in zip(coefficients, panels, strict=True)]
        return cls(xp.stack(coefficients), xp.max(xp.stack(doubts), axis=0))

    def take(self, contexts: Array) -> LogTable:
        """The table of some contexts, by their positions."""
        xp = namespace(self.doubt)
        return replaced(
            self, coefficients=xp.take(self.coefficients, contexts, axis=2), doubt=xp.take(self.doubt, contexts)
        )

    def at(self, rho: Array) -> Array:
        """[n, M]: EUR at rho [n, M]."""
        xp = namespace(rho)
        panels, size, count = self.coefficients.shape
        smallest = _SPLIT * 4.0 ** (1 - panels)
        depth = 0.5 * xp.log2(_SPLIT / xp.clip(rho, smallest, 1.0))  # which octave, and how far into it
        panel = xp.clip(xp.floor(depth) + 1.0, 0.0, panels - 1.0)
        x = xp.where(panel == 0, 2.0 * xp.sqrt((1.0 - rho) / (1.0 - _SPLIT)), 2.0 * (depth - panel + 1.0)) - 1.0
        start = xp.astype(panel, xp.int64) * (size * count) + xp.arange(count, device=getattr(rho, "device", None))
        logs = _gathered_series(xp.reshape(self.coefficients, (-1,)), start, size, count, x)
        return xp.exp(logs) * xp.sqrt(xp.clip(rho / smallest, 0.0, 1.0))  # below the table, in proportion to sqrt(rho)


def _top_nodes(effort: int) -> Any:
    return 1.0 - (1.0 - _SPLIT) * ((1.0 + points(effort * _TOP)) / 2.0) ** 2


def _octave_nodes(octave: int, effort: int) -> Any:
    return _SPLIT * 4.0 ** -(octave + (1.0 + points(effort * _NODES)) / 2.0)


def _values_where_known(log_values: LogValues, rho: Any, mean: Array, variance: Array, before: Array) -> Array:
    """[R, M]: the values of an octave, for those contexts whose values in the one before were all large enough."""
    xp = namespace(mean)
    known = xp.all(xp.isfinite(before), axis=0)  # [M]
    some = xp.nonzero(known)[0]
    unknown = xp.full_like(constant(rho, mean)[:, None], -xp.inf)
    if some.shape[0] == 0:
        return unknown + xp.zeros_like(mean)
    values = log_values(rho, xp.take(mean, some), xp.take(variance, some))  # [R, m]
    place = xp.cumulative_sum(xp.astype(known, xp.int64)) - 1
    place = xp.where(known, place, xp.full_like(place, some.shape[0]))
    return xp.take(xp.concat([values, unknown], axis=1), place, axis=1)


def _continued(logs: Array, rho: Any) -> Array:
    """[R, M]: log EUR where it is -inf goes on as -k^2 / (2 rho) does, from the smallest rho where it is known."""
    xp = namespace(logs)
    shares = constant(rho, logs)[:, None]
    known = xp.isfinite(logs)
    last = xp.min(xp.where(known, shares, xp.ones_like(logs)), axis=0)  # [M]
    top = xp.max(logs, axis=0)
    top = xp.where(xp.isfinite(top), top, xp.full_like(top, -1e4))  # nothing anywhere: exp(-1e4) is 0
    lowest = xp.min(xp.where(known, logs, xp.zeros_like(logs) + top), axis=0)
    return xp.where(known, logs, top + (lowest - top) * ratio(1.0 / shares - 1.0, 1.0 / last - 1.0 + 0.0 * shares))


def _doubt(series: Array, values: Array, top: Array) -> Array:
    """[M]: the last two coefficients, as a relative error; of values below 1e-12 of exp(top) it does not matter."""
    xp, count = namespace(values), values.shape[0]
    last = xp.sum(abs(series[count - 2 : count, :]), axis=0)
    size = xp.exp(xp.clip(xp.max(values, axis=0) - top, None, 0.0))
    return xp.expm1(xp.clip(last, 0.0, 60.0)) * xp.clip(1e6 * size, None, 1.0)


def _gathered_series(flat: Array, start: Array, size: int, step: int, x: Array) -> Array:
    """[n, M]: Chebyshev series at x, whose coefficients are `size` entries of `flat` from `start` on, a step apart."""
    xp = namespace(x)
    ahead, further = xp.zeros_like(x), xp.zeros_like(x)
    for r in range(size - 1, 0, -1):
        ahead, further = _taken(flat, start + r * step) + 2.0 * x * ahead - further, ahead
    return _taken(flat, start) + x * ahead - further


def _taken(flat: Array, positions: Array) -> Array:
    xp = namespace(flat)
    return xp.reshape(xp.take(flat, xp.reshape(positions, (-1,))), positions.shape)


_FEWEST = 9  # nodes, of which each tripling keeps those before
_LAST = 3  # coefficients whose sum stands for those that are left out
_PIECES, _SHORTEST = 24, 1e-5  # of a curve in pieces: how many, and a place below which none is split
_GAIN, _NOISE = 0.5, 1e-3  # of the error, that two splits must leave at most: else the rest is that of integration
_NEAREST = 1e-6  # sqrt(rho), below which EUR / rho is as good as constant
_MIDDLE, _END = math.sqrt(0.5), math.sqrt(2.0)  # places: of rho = 1/2, and of rho = 1
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

    def totals(self, block: GaussianBelief) -> tuple[Array, float]:
        """[n]: the sums of reductions over contexts, in double precision, and the smallest s that was asked for."""
        if 0 in block.covariance.shape or not has_kernel(block.covariance):
            reductions, smallest = self.reductions(block)
            return namespace(block.covariance).sum(double(reductions), axis=1), smallest
        return _kernel().sums(block, self.coefficients, self.low)  # type: ignore[no-any-return]

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

    def tail(self, count: int = _LAST) -> float:
        """The last coefficients against the smaller end of the curve, over contexts: what interpolation loses."""
        xp = namespace(self.coefficients)
        last = xp.sum(xp.abs(self.coefficients[-count:, :]), axis=0)
        return float(xp.max(ratio(last, self._ends())))

    def _ends(self) -> Array:
        """[M]: the smaller of the values at both ends."""
        xp, like = namespace(self.coefficients), self.coefficients[:1, :]
        ends = [clenshaw(self.coefficients, xp.full_like(like, end)) for end in (-1.0, 1.0)]
        return xp.min(xp.abs(xp.concat(ends, axis=0)), axis=0)


def _share_at(place: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rho at a place along a curve in pieces: the place is sqrt(rho) up to rho = 1/2, sqrt(2) - s from there on."""
    return np.asarray(np.where(place < _MIDDLE, place**2, 1.0 - (_END - place) ** 2))


@dataclass(frozen=True, eq=False)
class PanelCurves:
    """The same in pieces, which get shorter towards rho = 0 and towards `low`.

    Where an answer passes something narrow in the weight, the curve sees it once sqrt(rho), how far the answer moves,
    is as large, and where the posterior averages over it, once s is as small.
    """

    coefficients: Array
    """[O, R, M]: of Chebyshev polynomials on each piece, that of the smallest rho first"""
    edges: tuple[float, ...]
    """[O + 1]: places between pieces, upwards"""

    @property
    def low(self) -> float:
        """The smallest s that they serve."""
        last = self.edges[-1]
        return math.sqrt(1.0 - last**2) if last < _MIDDLE else _END - last

    def reductions(self, block: GaussianBelief) -> tuple[Array, float]:
        """[n, M]: rho times the series, and the smallest s that was asked for."""
        if 0 in block.covariance.shape:
            return namespace(block.covariance).zeros_like(block.covariance), 1.0
        if has_jit() and isinstance(block.covariance, np.ndarray):
            return self._compiled(block)
        found = [self._part(block.take(part, slice(None)).rho) for part in _parts(block)]
        xp = namespace(block.covariance)
        return xp.concat([each for each, _ in found], axis=0), min(smallest for _, smallest in found)

    def totals(self, block: GaussianBelief) -> tuple[Array, float]:
        """[n]: the sums of reductions over contexts, in double precision, and the smallest s that was asked for."""
        reductions, smallest = self.reductions(block)
        return namespace(block.covariance).sum(double(reductions), axis=1), smallest

    def _part(self, rho: Array) -> tuple[Array, float]:
        xp, sd = namespace(rho), namespace(rho).sqrt(1.0 - double(rho))
        place = xp.where(rho < 0.5, xp.sqrt(double(rho)), _END - sd)
        return xp.astype(rho * self.at(place), rho.dtype), float(xp.min(sd))

    def _compiled(self, block: GaussianBelief) -> tuple[Any, float]:
        """As above, for NumPy arrays."""
        shares = [ratio(np.ones_like(each), np.sqrt(each)) for each in _variances(block)]
        result = np.empty(block.covariance.shape, block.covariance.dtype)
        near = np.ascontiguousarray(np.moveaxis(double(self.coefficients), 2, 0))  # [M, O, R]
        largest = _look_up_pieces(block.covariance, shares[0], shares[1], near, np.asarray(self.edges), result)
        return result, float(np.sqrt(1.0 - largest))

    def at(self, place: Array) -> Array:
        """[n, M]: EUR_c / rho at places [n, M]."""
        xp, (_, size, count) = namespace(place), self.coefficients.shape
        edges = constant(self.edges, place)
        piece = xp.sum(xp.astype(place[..., None] > edges[1:-1], xp.int64), axis=-1)  # [n, M]
        top, bottom = _taken(edges[1:], piece), _taken(edges[:-1], piece)
        x = xp.clip((2.0 * place - top - bottom) / (top - bottom), -1.0, 1.0)
        start = piece * (size * count) + xp.arange(count, device=getattr(place, "device", None))
        return _gathered_series(xp.reshape(double(self.coefficients), (-1,)), start, size, count, x)

    def astype(self, dtype: Any) -> PanelCurves:
        """In the precision of a belief."""
        return replace(self, coefficients=namespace(self.coefficients).astype(self.coefficients, dtype))


SmoothCurves: TypeAlias = Curves | PanelCurves
"""Curves of losses whose act varies continuously."""
_Shares: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
_AtShares: TypeAlias = Callable[[_Shares], Array]
_NO_SHARES = np.zeros(0)


def interpolated(
    values: _AtShares, enough: float, low: float, most: int = 81, probes: _Shares = _NO_SHARES
) -> tuple[SmoothCurves, float]:
    """Curves from s = `low` on through values [R, M] at rho [R], with nodes added until `enough`; the error left.

    Where `most` nodes do not do, or not at rho of `probes` between them, in pieces.
    """
    found, error = _polynomial(lambda sd: values(1.0 - sd**2), enough, low, 1.0, most)
    if error < enough:
        curves = Curves(series(found, found.shape[0]), low)
        probes = probes[probes <= 1.0 - low**2]
        error = max(error, _error_between(curves, values, probes) if len(probes) else 0.0)
    if error < enough:
        return curves.truncated(_SPARE * enough), error
    return _in_pieces(values, enough, low, most)


def _error_between(curves: Curves, values: _AtShares, rho: _Shares) -> float:
    """The largest relative error at rho [R] between the nodes."""
    wanted = values(rho)
    xp = namespace(wanted)
    x = (np.sqrt(1.0 - rho) - (1.0 + curves.low) / 2.0) * (2.0 / (1.0 - curves.low))
    found = clenshaw(curves.coefficients, constant(x, wanted)[:, None] + xp.zeros_like(wanted))
    return float(xp.max(ratio(abs(found - wanted), abs(wanted))))


def _in_pieces(values: _AtShares, enough: float, low: float, most: int) -> tuple[PanelCurves, float]:
    """Curves in pieces, each split until `most` nodes do, or until splits no longer help; the error that is left."""
    edges, errors = [_NEAREST], []
    parts: list[Array] = []
    waiting = [(_MIDDLE, _END - low, math.inf, math.inf)] if _END - low > _MIDDLE else []
    waiting.append((_NEAREST, min(_MIDDLE, math.sqrt(1.0 - low**2)), math.inf, math.inf))  # the lowest last
    while waiting:
        bottom, top, *before = waiting.pop()
        found, error = _polynomial(lambda place: values(_share_at(place)), enough, bottom, top, most)
        helps = error < _GAIN * max(before) or error > _NOISE
        if error >= enough and helps and len(parts) + len(waiting) < _PIECES and not _is_shortest(bottom, top):
            waiting += [(*each, error, before[0]) for each in reversed(_split(bottom, top))]
            continue
        edges.append(top)
        parts.append(series(found, most))
        errors.append(error if error < enough else _slow_tail(parts[-1]))
    return PanelCurves(namespace(parts[0]).stack(parts), tuple(edges)), max(errors)


def _slow_tail(coefficients: Array) -> float:
    """What interpolation may lose where coefficients [R, M] fall slowly: a third of them, against the smaller end."""
    third = max(_LAST, coefficients.shape[0] // 3)
    return 2.0 * Curves(coefficients).tail(third)


def _is_shortest(low: float, high: float) -> bool:
    return high < _SHORTEST or _END - low < _SHORTEST


def _split(low: float, high: float) -> list[tuple[float, float]]:
    """Two pieces, the lower first: what is narrow shows at a small sqrt(rho), or at a small s."""
    if low < _MIDDLE:
        middle = high / 4.0 if low < high / 16.0 else math.sqrt(low * high)
        return [(low, middle), (middle, high)]
    widest, narrowest = _END - low, _END - high
    middle = _END - (widest / 4.0 if narrowest < widest / 16.0 else math.sqrt(widest * narrowest))
    return [(low, middle), (middle, high)]


def _polynomial(values: _AtShares, enough: float, low: float, high: float, most: int) -> tuple[Array, float]:
    """[R, M]: values at as many Chebyshev nodes as it takes, `most` at most; the error that is left.

    Of three times as many nodes, every third is one of those before.
    """
    found = values(_nodes(_FEWEST, low, high))
    while (error := Curves(series(found, found.shape[0])).tail()) >= enough and found.shape[0] < most:
        between = np.delete(_nodes(3 * found.shape[0], low, high), slice(1, None, 3))
        found = _interleaved(found, values(between))
    return found, error


def _nodes(count: int, low: float, high: float = 1.0) -> np.ndarray[Any, Any]:
    """[R]: Chebyshev nodes from `high` down to `low`."""
    return np.asarray(low + (high - low) * (1.0 + points(count)) / 2.0)


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
    from stakes.gpu import curve_kernel

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


@loop
def _look_up_pieces(covariance: Any, share: Any, target_share: Any, coefficients: Any, edges: Any, result: Any) -> Any:
    """The same of curves in pieces, whose coefficients of one context lie side by side."""
    pieces, count, largest = coefficients.shape[1], coefficients.shape[2], 0.0
    for n in range(covariance.shape[0]):
        for m in range(covariance.shape[1]):
            correlation = covariance[n, m] * share[n] * target_share[m]
            rho = min(correlation * correlation, 1.0)
            largest = max(largest, rho)
            place = np.sqrt(rho) if rho < 0.5 else _END - np.sqrt(1.0 - rho)
            piece = 0
            for k in range(1, pieces):
                piece += place > edges[k]
            low, high = edges[piece], edges[piece + 1]
            twice = 2.0 * min(max((2.0 * place - high - low) / (high - low), -1.0), 1.0)
            own = coefficients[m, piece]
            ahead, further = 0.0, 0.0
            for r in range(count - 1, 0, -1):
                ahead, further = twice * ahead - further + own[r], ahead
            result[n, m] = rho * (own[0] + 0.5 * twice * ahead - further)
    return largest


Extend: TypeAlias = Callable[[float], SmoothCurves]
"""From a posterior sd to curves that serve down to it at least."""
CurvesOf: TypeAlias = Callable[[Any, Any], tuple[Extend, Array]]
"""A loss and a belief to the curves of its contexts, and the log of the scale [M] that was taken out of each."""

SLACK = 1e-6
"""By which rounding may take a posterior sd below the start of a curve, without harm."""
_WRITTEN = 2**20  # pairs of candidates and contexts that are written at a time, where they must be


def with_totals(form: Form, curves_of: CurvesOf) -> Form:
    """The form, and for tensors of torch one that sums over contexts by curves, on a GPU in one kernel."""

    def prepare(loss: Any, belief: Any, shares: Array) -> Callable[[Any], Array]:
        extend, log_scale = curves_of(loss, belief)
        log_share = double(log_scale) + log_of(shares)
        curves = extend(smallest_sd(belief))

        def log_worths(block: Any) -> Array:
            nonlocal curves
            found, smallest = _log_worths(curves, log_share, block)
            if smallest < curves.low - SLACK:  # another block of candidates, which reaches further
                curves = extend(smallest)
                found, _ = _log_worths(curves, log_share, block)
            return found

        return log_worths

    return replace(form, total=Total(prepare, _numbers, in_logs=True), serves=_serves, otherwise=form)


def _serves(loss: Any, belief: Any) -> bool:
    return is_torch_array(belief.like) and not loss.finite_actions


def _numbers(loss: Any, belief: Any) -> int:  # noqa: ARG001 (whatever the loss)
    """Sums alone in the kernel, else a few numbers for each context."""
    return 4 if has_kernel(belief.covariance) else 10 * int(belief.n_contexts)


def _log_worths(curves: SmoothCurves, log_share: Array, block: Any) -> tuple[Array, float]:
    """[n]: the log of the sum over contexts, as `log_worth` has it, and the smallest s that was asked for."""
    xp, like = namespace(log_share), curves.coefficients
    top, counts = float(xp.max(log_share)), log_share > -math.inf
    if float(xp.min(xp.where(counts, log_share, top + xp.zeros_like(log_share)))) < top - SHARE_RANGE:
        return _by_logarithms(curves, log_share, block)
    weighted = replace(curves, coefficients=like * xp.astype(xp.exp(log_share - top), like.dtype))
    totals, smallest = weighted.totals(block)
    check_sign(check_finite(totals))
    return log_of(totals) + top, smallest


def _by_logarithms(curves: SmoothCurves, log_share: Array, block: Any) -> tuple[Array, float]:
    """Where shares are too far apart for one sum: some candidates at a time, as all pairs are written."""
    step = max(1, _WRITTEN // block.n_contexts)
    found = [curves.reductions(block.take(part, slice(None))) for part in slices(block.n_candidates, step)]
    logs = [log_worth(double(reductions), log_share) for reductions, _ in found]
    return namespace(log_share).concat(logs), min(smallest for _, smallest in found)
