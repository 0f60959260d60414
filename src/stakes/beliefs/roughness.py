"""Where the statistics of a loss are steep, jump or kink: looked for once, before they are integrated.

A weight is a function of the target alone, so where it is steep is a place on the axis of targets, in all contexts. The
stretch that the contexts cover is sampled evenly, 1536 times to the smallest standard deviation, and cut into
panels that are halved until a polynomial resolves statistics times density on each. Statistics that are as steep in
all places as even nodes can follow have a `spacing`; the others, and losses of whole distributions, `edges`: panels
between them resolve the statistics, however steep, and jumps and kinks are among them.
Sizes: C contexts, P panels, n samples of a panel, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from array_api_compat import device
from numpy.polynomial.legendre import legvander

from stakes._utils.array import Array, column, constant, density, log_of, namespace, on_host, slices
from stakes.beliefs.base import Integrand, log_weight
from stakes.beliefs.quadrature import CHUNK, SPACING, Edges, Resolved, modes_and_window, tail_width
from stakes.losses.bregman import WeightedBregman
from stakes.losses.distributional import WeightedScore
from stakes.losses.transforms import Exponential, Identity, Power
from stakes.losses.weights import ExponentialWeight, InterpolatedWeight

_Vector = np.ndarray[Any, np.dtype[np.float64]]

_SAMPLES = 1536  # to the smallest standard deviation: what is 1/1000 wide is seen
_LEVELS = 7  # of halving, down to 24 samples and 1/64 of a standard deviation
_EVEN_LEVEL = 2  # panels of 1/4: what they resolve, the usual spacing does, such as a sigmoid of slope 9/sd
_WIDE_LEVEL = 1  # panels of 1/2: what they resolve, panels as wide as the rule has them do
_DEGREE = 11  # of the polynomial that must resolve a panel
_RESOLVED = 1e-9  # of the largest value of a statistic times the density
_TAIL, _NEGLIGIBLE = 6.7, 22.0  # standard deviations, and logarithms: exp(-22) is below what must be resolved
_ASIDE = (0.0314159265, 0.0271828183)  # standard deviations by which ends are moved: a jump at an edge is not seen
FURTHEST_TURN = 37.0  # standard deviations out, where a normal density leaves the range of numbers
_TURN_SPACING, _AROUND_TURN = 0.5, 2.0  # standard deviations: of places at which costs are compared, and around a turn
_SOONER = 3.0  # posterior standard deviations before a turn at which costs that meet there may still be far apart
_GROUP = 2.0  # ratio of standard deviations within which contexts are looked at together
_SMALLEST = 1e-13  # standard deviations: a panel as narrow as that holds a jump
_MOST_CELLS = 1024  # panels that are halved at once: more of them are noise, not places
_MOST_SAMPLES = 2**21
_MOST_CONTEXTS = 4096  # whose densities are compared
_SHARP = 1e-4  # standard deviations: what is as steep as that is a jump or a kink
_MOST_STATISTICS = 4  # that are looked at each for itself
_FEW = 24  # samples of a panel that is looked at alone


def resolved(integrand: Integrand, mean: Array, sd: Array) -> Resolved:
    """What it takes to integrate statistics under normals N(mean, sd^2), of any shape.

    An integrand whose statistics depend on the context (one that is no loss) is taken at its word.
    """
    if isinstance(integrand, Resolved):
        return integrand
    declared = tuple(sorted(float(point) for point in integrand.breakpoints))
    if not hasattr(integrand, "regret") or _is_known(integrand):
        sharp = (0.0,) * len(declared)
        steepness = 1.0 if declared else 0.0
        return Resolved(integrand, 0.0 if declared else SPACING, 0.0, lambda: (declared, sharp), steepness=steepness)
    return scanned(integrand, mean, sd)


def _is_known(integrand: Any) -> bool:
    """Whether all that is not smooth is declared, as for weights and transforms of the library."""
    if not isinstance(integrand, WeightedBregman | WeightedScore):
        return False
    known = integrand.weight is None or isinstance(integrand.weight, ExponentialWeight | InterpolatedWeight)
    return known and isinstance(getattr(integrand, "transform", Identity()), Identity | Exponential | Power)


def scanned(integrand: Integrand, mean: Array, sd: Array) -> Resolved:
    """As `resolved`, by looking at the statistics, which must not depend on the context."""
    declared = tuple(sorted(float(point) for point in integrand.breakpoints))
    scans = [_Scan(integrand, *group) for group in _groups(mean, sd)]
    level = max((scan.level for scan in scans), default=0)
    steepness = max((scan.steepness for scan in scans), default=0.0)
    spacing = 0.0 if declared or level >= _LEVELS else SPACING / max(1.0, steepness)

    def find_edges() -> Edges:
        if spacing == SPACING:
            return (), ()
        found = dict.fromkeys(declared, 0.0)
        for scan in scans if level > _WIDE_LEVEL else ():
            for edge, scale in scan.edges():
                found[edge] = min(scale, found.get(edge, math.inf))
        places = tuple(sorted(found))
        return places, tuple(found[place] for place in places)

    error = max((scan.error for scan in scans), default=0.0)
    return Resolved(integrand, spacing, error, find_edges, steepness=steepness)


def _groups(mean: Array, sd: Array) -> Iterator[tuple[Array, Array]]:
    """Contexts [C] in groups of similar standard deviations; those without any are left out."""
    xp = namespace(mean)
    mean, sd = xp.reshape(mean, (-1,)), xp.reshape(xp.broadcast_to(sd, mean.shape), (-1,))
    host = on_host(sd)
    if not np.any(host > 0):
        return
    octave = np.full(host.shape, -1)
    octave[host > 0] = np.floor(np.log(host[host > 0] / host[host > 0].min()) / math.log(_GROUP)).astype(int)
    for each in np.unique(octave[octave >= 0]):
        at = np.flatnonzero(octave == each)
        at = at[:: math.ceil(len(at) / _MOST_CONTEXTS)]
        some = xp.asarray(at, device=getattr(mean, "device", None)) if not isinstance(mean, np.ndarray) else at
        yield xp.take(mean, some, axis=0), xp.take(sd, some, axis=0)


@dataclass(frozen=True, eq=False)
class Turns:
    """Where actions turn from right to wrong, under each of C normals."""

    place: Array
    """[C]: standard deviations from the mean where what today's action costs beyond the best matters most, or 0"""
    sooner: Array
    """[C]: posterior standard deviations before, by which it may be dropped: what costs R times as much counts from a
    probability of 1 / R on"""
    furthest: Array
    """[C]: standard deviations from the mean where what any action costs matters most"""
    most: Array
    """[C]: what a label can be worth, roughly"""


def turns(integrand: Integrand, mean: Array, sd: Array) -> Turns:
    """The turns of costs under N(mean, sd^2), each [C], from a coarse look at all that is in the range of numbers."""
    xp = namespace(mean)
    u = constant(np.arange(-FURTHEST_TURN, FURTHEST_TURN + 0.1, _TURN_SPACING), mean)  # [U]
    found = [_turns(integrand, mean[:0], sd[:0], u)]
    for part in slices(mean.shape[0], max(1, CHUNK // (4 * u.shape[0]))):
        found.append(_turns(integrand, mean[part], sd[part], u))
    return Turns(*(xp.concat([getattr(each, one.name) for each in found]) for one in fields(Turns)))


def _turns(integrand: Integrand, mean: Array, sd: Array, u: Array) -> Turns:
    xp = namespace(mean)
    with np.errstate(all="ignore"):  # so far out a warp may leave the range of numbers
        costs = integrand.statistics(mean[:, None] + sd[:, None] * u)  # [c, U, A]
    costs = xp.where(xp.isfinite(costs), costs, xp.zeros_like(costs))
    expected = _TURN_SPACING * xp.sum(costs * density(u)[:, None], axis=1)  # [c, A]
    places = abs(xp.take(u, xp.reshape(xp.argmax(log_of(costs) - 0.5 * (u * u)[:, None], axis=1), (-1,))))
    places = xp.where(xp.any(costs > 0, axis=1), xp.reshape(places, expected.shape), xp.zeros_like(expected))  # [c, A]
    today = xp.argmin(expected, axis=-1, keepdims=True)
    own, place = column(costs, today[..., None]), column(places, today)  # [c, U], [c]
    near = xp.max(xp.where(abs(u) < place[:, None] + _AROUND_TURN, own, xp.zeros_like(own)), axis=-1)
    others = (expected > 0) & (today != xp.arange(expected.shape[-1], device=device(mean)))
    least = xp.min(xp.where(others, expected, xp.full_like(expected, xp.inf)), axis=-1)
    spread = xp.clip(log_of(near) - log_of(least), 0.0, None)
    return Turns(place, _SOONER + xp.sqrt(2.0 * spread), xp.max(places, axis=-1), xp.min(expected, axis=-1))


def _tail_of_costs(integrand: Integrand, mean: Array, sd: Array) -> Array:
    """[C]: as far as costs are integrated, or a little beyond where they turn: what is far out may decide all."""
    xp, usual = namespace(mean), tail_width(integrand)
    furthest = turns(integrand, mean, sd).furthest
    return xp.where(furthest > usual - _AROUND_TURN, furthest + _AROUND_TURN, xp.full_like(furthest, usual))


class _Scan:
    """The statistics of one loss on the stretch that some contexts cover."""

    def __init__(self, integrand: Integrand, mean: Array, sd: Array) -> None:
        self.integrand, self.like = integrand, mean
        tail = _tail_of_costs(integrand, mean, sd) if integrand.finite_actions else _TAIL
        u, low, high = modes_and_window(integrand, mean, sd, tail=tail, negligible=_NEGLIGIBLE)
        point = mean + sd * u[:, 0]
        scale = log_weight(point, integrand) - 0.5 * u[:, 0] ** 2
        self.mean, self.sd, self.point, self.log_scale, self.mode = (
            on_host(each) for each in (mean, sd, point, scale, u[:, 0])
        )  # [C] each
        self.smallest = float(np.min(self.sd))
        low, high = self.mean + self.sd * on_host(low), self.mean + self.sd * on_host(high)
        base = self._base(low, high)
        count = _SAMPLES if len(base[0]) * _SAMPLES <= _MOST_SAMPLES else _FEW * 2 ** (_LEVELS - 1) // 4
        self.samples = self._sampled(*base, _even_places(count))  # [P, D, n]
        self.scale = np.maximum(np.max(abs(self.samples), axis=(0, 2)), 1e-300)  # [D]
        self.leaves, self.level, self.error = self._halved(*base)

    @property
    def steepness(self) -> float:
        """Over what the usual spacing resolves, counted in the standard deviation of each context.

        What is resolved on a stretch of the smallest of them is steeper to the largest.
        """
        return 2.0 ** (self.level - _EVEN_LEVEL) * float(np.max(self.sd)) / self.smallest

    def _base(self, low: _Vector, high: _Vector) -> tuple[_Vector, _Vector]:
        """[P], [P]: panels of at most the smallest sd that cover all windows, and split at breakpoints."""
        low, high = low - _ASIDE[0] * self.smallest, high + _ASIDE[1] * self.smallest
        order = np.argsort(low)
        starts, stops = [low[order[0]]], [high[order[0]]]
        for i in order[1:]:
            if low[i] > stops[-1]:
                starts.append(low[i])
                stops.append(high[i])
            stops[-1] = max(stops[-1], high[i])
        edges = []
        for start, stop in zip(starts, stops, strict=True):
            count = max(1, math.ceil((stop - start) / self.smallest))
            inside = [point for point in self.integrand.breakpoints if start < point < stop]
            marks = np.unique(np.concatenate([np.linspace(start, stop, 1 + count), inside]))
            edges.append(np.stack([marks[:-1], marks[1:]]))
        all_edges = np.concatenate(edges, axis=1)
        return all_edges[0], all_edges[1]

    def _sampled(self, low: _Vector, high: _Vector, x: _Vector) -> _Vector:
        """[P, D, n]: at places x of each panel, statistics times the density of the context that it matters most to."""
        middle, costs = (low + high) / 2.0, self.integrand.finite_actions
        away = -0.5 * ((middle[:, None] - self.mean) / self.sd) ** 2  # [P, C]
        own = np.argmax(away if costs else away - self.log_scale, axis=1)  # [P]
        mean, sd, point, mode = (each[own, None] for each in (self.mean, self.sd, self.point, self.mode))
        z = low[:, None] + (high - low)[:, None] * x  # [P, n]
        found = on_host(self.integrand.statistics(constant(z, self.like), constant(point, self.like)))
        if found.shape[-1] > _MOST_STATISTICS:  # what is rough in one of many is rough in sums of all
            found = found @ _mixing(found.shape[-1])
        values = np.array(np.moveaxis(found, -1, 1), dtype=float, order="C")  # [P, D, n]
        if not costs:  # which may be of any size, and each of which may matter somewhere
            values *= np.exp(np.minimum(0.5 * mode**2 - 0.5 * ((z - mean) / sd) ** 2, 700.0))[:, None, :]
        values[~np.isfinite(values)] = 0.0
        return values

    def _allowed(self, values: _Vector, low: _Vector, high: _Vector, scale: _Vector | None = None) -> _Vector:
        """[P, D]: what a polynomial may leave of values [P, D, n]; rounding of targets may leave as much.

        That is a share of `scale` [P, D], or else of what matters, and their variation, but for one jump, times what
        rounding is of the width of the panel.
        """
        steps = abs(values[..., 1:] - values[..., :-1])
        variation = np.sum(steps, axis=2) - np.max(steps, axis=2)
        largest = np.max(abs(values), axis=2)
        if scale is None:
            scale = self._scale_of(largest)
        reach = (np.maximum(abs(low), abs(high)) / (high - low))[:, None]
        return np.asarray(_RESOLVED * scale + 1e-14 * largest + 2e-15 * reach * variation)

    def _scale_of(self, largest: _Vector) -> _Vector:
        """[P, D]: costs may matter where they are small, and are measured by their own `largest` in a panel."""
        own = np.maximum(largest, 1e-300)
        return own if self.integrand.finite_actions else np.broadcast_to(self.scale, own.shape)

    def _resolves(
        self, values: _Vector, low: _Vector, high: _Vector, basis: _Vector, scale: _Vector | None = None
    ) -> Any:
        """[P]: whether polynomials resolve values [P, D, n] at places where `basis` [n, degree + 1] is orthonormal."""
        return np.all(np.max(abs(_left(values, basis)), axis=2) <= self._allowed(values, low, high, scale), axis=1)

    def _halved(self, low: _Vector, high: _Vector) -> tuple[_Vector, int, float]:
        """Leaves [2, L] on which statistics are resolved, the level of the deepest, and what is left unresolved."""
        values, found, level = self.samples, [], 0
        for level in range(_LEVELS):
            good = self._resolves(values, low, high, _even_basis(values.shape[2]))
            found.append(np.stack([low[good], high[good]]))
            if np.all(good):
                low, high = low[:0], high[:0]
                break
            if level < _LEVELS - 1:
                low, high = _halves(low[~good], high[~good])
                bad = values[~good]
                parts = np.reshape(bad, (*bad.shape[:2], 2, -1))
                values = np.reshape(np.moveaxis(parts, 2, 1), (-1, bad.shape[1], bad.shape[2] // 2))
            else:
                low, high = low[~good], high[~good]
        leaves = np.concatenate(found, axis=1)
        good = self._alone(*leaves)  # what happens between the samples of two panels
        low, high = np.concatenate([low, leaves[0, ~good]]), np.concatenate([high, leaves[1, ~good]])
        if not len(low):
            return self._in_order([leaves]), level, 0.0
        finer, lost = self._bisected(low, high)
        if lost:  # noise: panels would not help
            return self._in_order([leaves, np.stack([low, high])]), 0, lost
        return self._in_order([leaves[:, good], *finer]), _LEVELS, 0.0

    def _alone(self, low: _Vector, high: _Vector) -> Any:
        """[P]: whether a polynomial resolves panels, at a few places up to their ends."""
        return self._resolves(self._sampled(low, high, _PLACES), low, high, _BASIS)

    def _bisected(self, low: _Vector, high: _Vector) -> tuple[list[_Vector], float]:
        """Leaves [2, L] of panels that the samples do not resolve, down to those that hold a jump; what is lost.

        What is left of a panel is measured by its size on the panel that was begun with: where two costs cross, their
        difference is as small as one likes, and what rounding leaves of it is not.
        """
        found: list[_Vector] = []
        scale = self._scale_of(np.max(abs(self._sampled(low, high, _PLACES)), axis=2))  # [P, D]
        while len(low):
            if len(low) > _MOST_CELLS // 2:
                lost = np.max(abs(_left(self._sampled(low, high, _PLACES), _BASIS)), axis=2) / scale
                return found, min(1.0, float(np.max(lost)))
            low, high, scale = *_halves(low, high), np.repeat(scale, 2, axis=0)
            near = np.maximum(abs(low), abs(high)) * 1e-15
            done = (high - low) <= np.maximum(_SMALLEST * self.smallest, near)
            done |= self._resolves(self._sampled(low, high, _PLACES), low, high, _BASIS, scale)
            found.append(np.stack([low[done], high[done]]))
            low, high, scale = low[~done], high[~done], scale[~done]
        return found, 0.0

    @staticmethod
    def _in_order(parts: list[_Vector]) -> _Vector:
        leaves = np.concatenate(parts, axis=1)
        return np.asarray(leaves[:, np.argsort(leaves[0])])

    def edges(self) -> list[tuple[float, float]]:
        """Edges and their scales: leaves joined as long as a polynomial resolves what is joined."""
        low, high = self.leaves
        jumps = (high - low) <= np.maximum(2.0 * _SMALLEST * self.smallest, 2e-15 * abs(low))
        widths = np.where(jumps, np.inf, high - low)
        found: list[tuple[float, float]] = []
        first, count = 0, len(low)
        while first < count:
            if jumps[first]:
                place = float((low[first] + high[first]) / 2.0)
                if not found or found[-1][1] > 0 or place - found[-1][0] > 1e-11 * self.smallest:
                    found.append((place, 0.0))
                first += 1
                continue
            last = self._joined(first, jumps)
            if last + 1 < count and not jumps[last + 1] and low[last + 1] <= high[last]:
                scale = min(widths[last], widths[last + 1])
                found.append((float(high[last]), 0.0 if scale < _SHARP * self.smallest else float(scale)))
            first = last + 1
        return found

    def _joined(self, first: int, jumps: Any) -> int:
        """The last leaf that can be joined to `first`, found by doubling steps and then halving them."""
        low, high = self.leaves
        stops = np.flatnonzero(jumps[first:] | np.concatenate([[False], low[first + 1 :] > high[first:-1]]))
        end = first + (int(stops[0]) if len(stops) else len(low) - first) - 1
        good, step = first, 1
        while good < end:
            there = min(good + step, end)
            if self._joins(first, there):
                good, step = there, 2 * step
            elif step == 1:
                break
            else:
                step = max(1, step // 4)
        return good

    def _joins(self, first: int, last: int) -> bool:
        """Whether a polynomial resolves the leaves together: at even places, and at those of the narrowest of them."""
        low, high = self.leaves[0, first : first + 1], self.leaves[1, last : last + 1]
        some = np.linspace(first, last, min(12, last - first + 1)).astype(int)
        own = self.leaves[0, some, None] + (self.leaves[1] - self.leaves[0])[some, None] * np.array(
            [1e-6, 0.5, 1.0 - 1e-6]
        )
        x = np.unique(np.concatenate([_PLACES, np.clip(((own - low) / (high - low)).ravel(), _PLACES[0], _PLACES[-1])]))
        values = self._sampled(low, high, x)  # [1, D, n]
        basis = legvander(2.0 * x - 1.0, _DEGREE)
        rest = values[0].T - basis @ np.linalg.lstsq(basis, values[0].T, rcond=None)[0]
        return bool(np.all(np.max(abs(rest), axis=0) <= self._allowed(values, low, high)[0]))


def _left(values: _Vector, basis: _Vector) -> _Vector:
    """[P, D, n]: what polynomials leave of values at places where `basis` [n, degree + 1] is orthonormal."""
    return np.asarray(values - np.matmul(np.matmul(values, basis), basis.T))


def _halves(low: _Vector, high: _Vector) -> tuple[_Vector, _Vector]:
    """[2 P] each: both halves of each panel."""
    middle = (low + high) / 2.0
    return np.stack([low, middle], axis=1).ravel(), np.stack([middle, high], axis=1).ravel()


@lru_cache(maxsize=8)
def _mixing(count: int) -> _Vector:
    """[D, 4]: weights of four sums of statistics."""
    return np.asarray(np.random.default_rng(0).uniform(0.5, 1.5, (count, _MOST_STATISTICS)))


@lru_cache(maxsize=32)
def _even_places(count: int) -> _Vector:
    """[n]: even places of a panel from 0 to 1, none at its ends."""
    return np.asarray((np.arange(count) + 0.5) / count)


@lru_cache(maxsize=32)
def _even_basis(count: int) -> _Vector:
    """[n, degree + 1]: polynomials that are orthonormal at the even places."""
    return np.asarray(np.linalg.qr(legvander(2.0 * _even_places(count) - 1.0, _DEGREE))[0])


_PLACES = np.clip(
    (1.0 - np.cos(np.linspace(0.0, np.pi, _FEW))) / 2.0, 1e-9, 1.0 - 1e-9
)  # all but the ends, which may jump
_BASIS = np.asarray(np.linalg.qr(legvander(2.0 * _PLACES - 1.0, _DEGREE))[0])
