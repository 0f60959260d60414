"""Curves EUR_c(rho) of decisions, one for each context, that range over many orders of magnitude.

At indifference EUR grows like sqrt(rho); k standard deviations from a switch it is exp(-k^2 / (2 rho)) small. So it is
the logarithm that is interpolated, in panels: in s = sqrt(1 - rho) where rho is large, below in log2(sqrt(rho)), one
panel an octave. Sizes: M contexts, O panels, R nodes of a panel (fewer in an octave), n candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import Array, constant, double, namespace, ratio, replaced, slices
from stakes.acquisition import chebyshev
from stakes.beliefs import GaussianBelief
from stakes.beliefs.quadrature import CHUNK

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
    return min(_OCTAVES, max(0, math.ceil(0.5 * math.log2(_SPLIT / smallest))))


@dataclass(frozen=True, eq=False)
class LogTable:
    """Chebyshev series of log EUR in each panel and context."""

    coefficients: Array
    """[O, R, M]: those of octaves end in zeros."""
    doubt: Array
    """[M]: what interpolation may be wrong by, as a fraction of EUR at rho = 1."""

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
        series = [chebyshev.series(each, len(rho[0])) for each in panels]
        doubts = [_doubt(s, each, xp.max(panels[0], axis=0)) for s, each in zip(series, panels, strict=True)]
        return cls(xp.stack(series), xp.max(xp.stack(doubts), axis=0))

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
        flat = xp.reshape(self.coefficients, (-1,))
        ahead, further = xp.zeros_like(x), xp.zeros_like(x)
        for r in range(size - 1, 0, -1):
            ahead, further = _taken(flat, start + r * count) + 2.0 * x * ahead - further, ahead
        logs = _taken(flat, start) + x * ahead - further
        return xp.exp(logs) * xp.sqrt(xp.clip(rho / smallest, 0.0, 1.0))  # below the table, in proportion to sqrt(rho)


def _top_nodes(effort: int) -> Any:
    return 1.0 - (1.0 - _SPLIT) * ((1.0 + chebyshev.points(effort * _TOP)) / 2.0) ** 2


def _octave_nodes(octave: int, effort: int) -> Any:
    return _SPLIT * 4.0 ** -(octave + (1.0 + chebyshev.points(effort * _NODES)) / 2.0)


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
    """[M]: the last two coefficients, as an error of the largest value of the panel, over exp(top)."""
    xp, count = namespace(values), values.shape[0]
    last = xp.sum(abs(series[count - 2 : count, :]), axis=0)
    return xp.expm1(xp.clip(last, 0.0, 60.0)) * xp.exp(xp.max(values, axis=0) - top)


def _taken(flat: Array, positions: Array) -> Array:
    xp = namespace(flat)
    return xp.reshape(xp.take(flat, xp.reshape(positions, (-1,))), positions.shape)
