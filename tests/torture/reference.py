"""What labels are worth, from the definition and to many digits: mpmath, and nothing of the package.

EUR = E_y[E[l(z, a) | y] - min_b E[l(z, b) | y]], with a the answer of today. Under a normal latent f, z = g(f), the
inner expectations are exact for functions of f that are made of pieces c f^k exp(p f - q f^2 / 2), and by the trapezoid
rule for other smooth ones; what is left is an integral over the label, by panels that are halved until two rules agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from mpmath import mp, mpf
from scipy.special import ndtr

DIGITS = 50
Term = tuple[Any, int, Any, Any]
"""A coefficient c, a power k, a rate p and a curvature q: c f^k exp(p f - q f^2 / 2)."""


@dataclass(frozen=True)
class Pieces:
    """A function of f: on each interval (low, high) a sum of terms, 0 outside all of them."""

    pieces: tuple[tuple[Any, Any, tuple[Term, ...]], ...]

    @classmethod
    def of(cls, *terms: tuple[Any, ...], low: Any = -mp.inf, high: Any = mp.inf) -> Pieces:
        """Terms (c, k, p, q), of which the last ones may be left out."""
        whole = tuple(
            (mpf(t[0]), int((*t, 0, 0, 0)[1]), mpf((*t, 0, 0)[2]), mpf((*t, 0)[3])) for t in map(_padded, terms)
        )
        return cls(((mpf(low), mpf(high), whole),))

    def __add__(self, other: Pieces) -> Pieces:
        merged: dict[tuple[Any, Any], tuple[Term, ...]] = {}
        for low, high, terms in self.pieces + other.pieces:
            merged[low, high] = merged.get((low, high), ()) + terms
        return Pieces(tuple((*interval, terms) for interval, terms in merged.items()))

    def __mul__(self, other: Pieces | float) -> Pieces:
        if not isinstance(other, Pieces):
            other = Pieces.of((other,))
        found = []
        for low, high, terms in self.pieces:
            for start, stop, others in other.pieces:
                a, b = max(low, start), min(high, stop)
                if a < b:
                    product = tuple((c * d, k + j, p + r, q + s) for c, k, p, q in terms for d, j, r, s in others)
                    found.append((a, b, product))
        return Pieces(tuple(found))

    def mean(self, centre: Any, sd: Any, below: Any = mp.inf) -> Any:
        """E[function(f) 1{f < below}] for f ~ N(centre, sd^2)."""
        return mp.fsum(
            _terms_mean(terms, centre, sd, low, min(high, below)) for low, high, terms in self.pieces if low < below
        )

    def __call__(self, f: Any) -> Any:
        return mp.fsum(
            c * f**k * mp.exp(p * f - q * f * f / 2)
            for low, high, terms in self.pieces
            if low < f <= high
            for c, k, p, q in terms
        )

    @property
    def cuts(self) -> list[Any]:
        """Where one piece ends and another begins."""
        return sorted({edge for low, high, _ in self.pieces for edge in (low, high) if mp.isfinite(edge)})


def _padded(term: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*term, *(0,) * (4 - len(term)))


def _terms_mean(terms: Sequence[Term], centre: Any, sd: Any, low: Any, high: Any) -> Any:
    """E[sum of c f^k exp(p f - q f^2 / 2) 1{low < f < high}]: exp(...) turns one normal density into another."""
    total, square = mpf(0), sd * sd
    for p, q, alike in _by_exponent(tuple(terms)):
        share = 1 + q * square
        narrow = sd if q == 0 else sd / mp.sqrt(share)
        moved = (centre + p * square) / share
        exponent = ((2 * centre + p * square) * p - q * centre * centre) / (2 * share)
        moments = truncated_moments(len(alike) - 1, (low - moved) / narrow, (high - moved) / narrow)
        powers = [moved**j for j in range(len(alike))]
        for k, c in enumerate(alike):
            if c:
                whole = sum(math.comb(k, j) * powers[k - j] * narrow**j * moments[j] for j in range(k + 1))
                total += c * whole * mp.exp(exponent) * narrow / sd
    return total


@lru_cache(maxsize=256)
def _by_exponent(terms: tuple[Term, ...]) -> list[tuple[Any, Any, list[Any]]]:
    """The coefficients of f^0, f^1, ... for each rate and curvature."""
    found: dict[tuple[Any, Any], list[Any]] = {}
    for c, k, p, q in terms:
        row = found.setdefault((p, q), [])
        row.extend([mpf(0)] * (k + 1 - len(row)))
        row[k] += c
    return [(p, q, row) for (p, q), row in found.items()]


def truncated_moments(k: int, low: Any, high: Any) -> list[Any]:
    """E[u^j 1{low < u < high}] for j = 0 .. k and u standard normal."""

    def edge(u: Any, power: int) -> Any:
        return u**power * normal_density(u) if mp.isfinite(u) else mpf(0)

    found = [normal_between(low, high)]
    if k > 0:
        found.append(edge(low, 0) - edge(high, 0))
    for j in range(2, k + 1):
        found.append(edge(low, j - 1) - edge(high, j - 1) + (j - 1) * found[j - 2])
    return found


@lru_cache(maxsize=256)
def normal_density(u: Any) -> Any:
    """That of N(0, 1)."""
    return mp.exp(-u * u / 2) / mp.sqrt(2 * mp.pi)


@lru_cache(maxsize=256)
def _twice_tail(u: Any) -> Any:
    return mp.erfc(u / mp.sqrt(2)) if mp.isfinite(u) else mpf(0)


def normal_between(low: Any, high: Any) -> Any:
    """P(low < u < high), relative to whichever tail both are in."""
    if high <= low:
        return mpf(0)
    if low == -mp.inf and high == mp.inf:
        return mpf(1)
    if low + high < 0:
        low, high = -high, -low
    return (_twice_tail(low) - _twice_tail(high)) / 2


@dataclass(frozen=True)
class Smooth:
    """A function of f with no kink, whose expectations are by the trapezoid rule: `spacing` and `reach` in sds."""

    function: Callable[[Any], Any]
    spacing: float = 0.125
    reach: float = 12.0
    cuts: tuple[Any, ...] = ()

    def mean(self, centre: Any, sd: Any) -> Any:
        """E[function(f)] for f ~ N(centre, sd^2)."""
        count = math.ceil(self.reach / self.spacing)
        h = mpf(self.reach) / count
        return h * mp.fsum(normal_density(i * h) * self.function(centre + sd * i * h) for i in range(-count, count + 1))

    def __call__(self, f: Any) -> Any:
        return self.function(f)


# Integration over labels


@lru_cache(maxsize=8)
def _clenshaw_curtis(count: int, digits: int) -> tuple[list[Any], list[Any]]:
    """Nodes cos(pi j / count) and weights on [-1, 1]; those of half the count are among the nodes."""
    assert digits == mp.dps
    nodes = [mp.cos(mp.pi * j / count) for j in range(count + 1)]
    weights = []
    for j in range(count + 1):
        sums = [
            (1 if 2 * k == count else 2) * mp.cos(2 * mp.pi * j * k / count) / (4 * k * k - 1)
            for k in range(1, count // 2 + 1)
        ]
        weights.append((1 if j in (0, count) else 2) * (1 - mp.fsum(sums)) / count)
    return nodes, weights


def integral(function: Callable[[Any], Any], edges: Sequence[Any], tolerance: float = 1e-7) -> Any:
    """The integral of a function that is at least 0, over panels that are halved where 17 and 33 nodes disagree.

    Where 17 nodes are right to `tolerance` of the whole, 33 are right to far less.
    """
    nodes, weights = _clenshaw_curtis(32, mp.dps)
    _, coarse = _clenshaw_curtis(16, mp.dps)
    done, todo, whole = mpf(0), [(a, b) for a, b in pairwise(edges) if b > a], mpf(0)
    for _ in range(60):
        again = []
        found = []
        for a, b in todo:
            values = [function((a + b) / 2 + (b - a) / 2 * node) for node in nodes]
            fine = (b - a) / 2 * mp.fdot(weights, values)
            found.append((a, b, fine, abs(fine - (b - a) / 2 * mp.fdot(coarse, values[::2]))))
        whole = done + mp.fsum(abs(fine) for _, _, fine, _ in found)
        for a, b, fine, gap in found:
            if gap <= tolerance * whole / 8 or b - a < mpf(10) ** (-mp.dps // 2) * (abs(a) + abs(b)):
                done += fine
            else:
                again += [(a, (a + b) / 2), ((a + b) / 2, b)]
        if not again:
            return done
        todo = again
    raise ArithmeticError("an integral of the reference does not converge")


def _window(function: Callable[[Any], Any], low: int, high: int) -> tuple[int, int]:
    """Even numbers between which a function is not smaller than its largest by 1e-26."""
    values = {u: abs(function(mpf(u))) for u in range(low, high + 1, 2)}
    top = max(values.values())
    if top == 0:
        return -1, 1
    here = [u for u, value in values.items() if value > top * mpf(10) ** -26]
    if here[0] == low or here[-1] == high:
        return _window(function, 2 * low, 2 * high)
    return here[0] - 2, here[-1] + 2


Regret = Callable[[Any, Any], Any]
"""Mean and sd of f once a label is known, to E[l(z, a)] - min_b E[l(z, b)]."""


def gaussian_reduction(
    regret: Regret,
    mean: Any,
    variance: Any,
    rho: Any,
    cuts: Sequence[Any] = (),
    switch: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """EUR for f ~ N(mean, variance) of which a label explains the share rho.

    `cuts` are values of f at which statistics jump or kink, which a label blurs by its posterior sd; `switch` tells
    which of finitely many actions is best, and panels split where it changes.
    """
    sd, root, rest = mp.sqrt(variance), mp.sqrt(rho), mp.sqrt(1 - rho)

    def at(eta: Any) -> tuple[Any, Any]:
        return mean + sd * root * eta, sd * rest

    def height(eta: Any) -> Any:
        return normal_density(eta) * regret(*at(eta))

    low, high = _window(height, -14, 14)
    edges = {mpf(low), mpf(high), *(mpf(u) for u in range(low, high, 4))}
    for cut in cuts:
        centre, width = (cut - mean) / (sd * root), rest / root
        edges |= {centre + width * u for u in (-10, -3, 0, 3, 10)}  # beyond, it is smooth again
    edges = sorted(edge for edge in edges if low <= edge <= high)
    if switch is not None:
        edges = _with_switches(lambda eta: switch(*at(eta)), edges)
    return integral(height, edges)


def _with_switches(best: Callable[[Any], Any], edges: list[Any]) -> list[Any]:
    """Edges, and the places where the best action changes, found by halving steps of an eighth of a panel."""
    fine = [a + (b - a) * i / 8 for a, b in pairwise(edges) for i in range(8)] + edges[-1:]
    known = [best(each) for each in fine]
    found = list(edges)
    for (a, b), (left, right) in zip(pairwise(fine), pairwise(known), strict=True):
        if left != right:
            for _ in range(120):
                middle = (a + b) / 2
                a, b = (middle, b) if best(middle) == left else (a, middle)
            found.append((a + b) / 2)
    return sorted(found)


def mixture_reduction(
    regret: Callable[[list[Any]], Any],
    shares: Sequence[Any],
    means: Sequence[Any],
    sds: Sequence[Any],
    best: Callable[[list[Any]], Any] | None = None,
) -> Any:
    """EUR under an ensemble: `regret` takes the probabilities (not normalised) of members once y is known."""

    def joint(y: Any) -> list[Any]:
        return [q * normal_density((y - m) / s) / s for q, m, s in zip(shares, means, sds, strict=True)]

    low, high = (
        min(m - 13 * s for m, s in zip(means, sds, strict=True)),
        max(m + 13 * s for m, s in zip(means, sds, strict=True)),
    )
    marks = {m + s * u for m, s in zip(means, sds, strict=True) for u in (-13, -9, -6, -3, -1, 1, 3, 6, 9, 13)}
    edges = sorted({low, high, *marks})
    if best is not None:
        edges = _with_switches(lambda y: best(joint(y)), edges)
    return integral(lambda y: regret(joint(y)), edges)


# Losses, each as a regret


def divergence(potential: str, x: Any, y: Any) -> Any:
    """D_phi(x, y) of numbers, by its formula."""
    if potential == "square":
        return (x - y) ** 2
    if potential == "negative log":
        return x / y - mp.log(x / y) - 1
    if potential == "negative entropy":
        return x * mp.log(x / y) - x + y
    assert potential == "fourth power"
    return x**4 - y**4 - 4 * y**3 * (x - y)


@dataclass(frozen=True)
class Bregman:
    """l = w D_phi(T, a): w and w T as functions of f."""

    potential: str
    weight: Any
    weighted: Any

    def moments(self, mean: Any, sd: Any) -> tuple[Any, ...]:
        """E[w], E[w T]."""
        return self.weight.mean(mean, sd), self.weighted.mean(mean, sd)

    def regret(self, moments: tuple[Any, ...], today: tuple[Any, ...]) -> Any:
        """E[w] D(a_y, a)."""
        if moments[0] == 0:
            return mpf(0)
        return moments[0] * divergence(self.potential, moments[1] / moments[0], today[1] / today[0])

    @property
    def cuts(self) -> list[Any]:
        """Those of the weight."""
        return list(self.weight.cuts)


@dataclass(frozen=True)
class Concentration:
    """What re-weighting costs the log score: W_y log(W_y / W)."""

    weight: Any

    def moments(self, mean: Any, sd: Any) -> tuple[Any, ...]:
        """E[w]."""
        return (self.weight.mean(mean, sd),)


@dataclass(frozen=True)
class Finite:
    """Costs of actions, as functions of f."""

    costs: tuple[Pieces, ...]

    def moments(self, mean: Any, sd: Any) -> tuple[Any, ...]:
        """The expected cost of each action."""
        return tuple(cost.mean(mean, sd) for cost in self.costs)

    def regret(self, moments: tuple[Any, ...], today: tuple[Any, ...]) -> Any:
        """What today's action costs beyond the best."""
        return moments[best_of(today)] - min(moments)

    @property
    def cuts(self) -> list[Any]:
        """Those of all costs."""
        return sorted({cut for cost in self.costs for cut in cost.cuts})


def best_of(costs: Sequence[Any]) -> int:
    """The position of the smallest, the first of equals."""
    return min(range(len(costs)), key=lambda i: costs[i])


def gaussian_expected(loss: Any, mean: Any, variance: Any, rho: Any) -> Any:
    """EUR of a loss with moments under a (latent) normal belief."""
    today = loss.moments(mean, mp.sqrt(variance))
    switch = (lambda m, s: best_of(loss.moments(m, s))) if isinstance(loss, Finite) else None
    return gaussian_reduction(
        lambda m, s: loss.regret(loss.moments(m, s), today), mean, variance, rho, loss.cuts, switch
    )


def mixture_expected(loss: Any, shares: Any, means: Any, sds: Any, centres: Any, spreads: Any) -> Any:
    """EUR of a loss with moments under an ensemble of normals: labels (means, sds), targets (centres, spreads)."""
    each = [loss.moments(m, s) for m, s in zip(centres, spreads, strict=True)]

    def moments(joint: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(mp.fdot(joint, column) for column in zip(*each, strict=True))

    today = moments(shares)
    best = (lambda joint: best_of(moments(joint))) if isinstance(loss, Finite) else None
    return mixture_reduction(lambda joint: loss.regret(moments(joint), today), shares, means, sds, best)


def log_score_expected(weight: Any, bend: Any, mean: Any, variance: Any, rho: Any) -> Any:
    """EUR of the weighted log score of a normal f: E[w log p(f | y) / p(f)] - E_y[W_y log(W_y / W)].

    The first is E[w] (-log(1 - rho) / 2) + rho E[w (u^2 - 1)] / 2, u the standardised f, with `bend` the function
    w (u^2 - 1); the second is integrated as W_y log(W_y / W) - W_y + W, which is at least 0.
    """
    sd = mp.sqrt(variance)
    total = weight.mean(mean, sd)

    def concentration(m: Any, s: Any) -> Any:
        here = weight.mean(m, s)
        return here * mp.log(here / total) - here + total if here > 0 else total

    spread = gaussian_reduction(concentration, mean, variance, rho, weight.cuts)
    return -total * mp.log(1 - rho) / 2 + rho * bend.mean(mean, sd) / 2 - spread


@dataclass(frozen=True)
class Quantile:
    """unit w max(tau (z - b), (tau - 1)(z - b)): w and w z as functions of f, and z itself."""

    tau: Any
    unit: Any
    weight: Pieces
    weighted: Pieces
    target: Callable[[Any], Any]

    def cost(self, quantile: Any, normals: Sequence[tuple[Any, Any, Any]]) -> Any:
        """E[l(z, g(quantile))] under a mixture of normals (share, mean, sd) of f."""
        b = self.target(quantile)
        mass, first, below, first_below = (
            mp.fsum(q * function.mean(m, s, limit) for q, m, s in normals)
            for function, limit in (
                (self.weight, mp.inf),
                (self.weighted, mp.inf),
                (self.weight, quantile),
                (self.weighted, quantile),
            )
        )
        return self.unit * (self.tau * (first - b * mass) - (first_below - b * below))

    def quantile(self, normals: Sequence[tuple[Any, Any, Any]], guess: Any = None) -> Any:
        """The f below which a share tau of the weighted mass lies, by Newton's method within a bracket."""
        level = self.tau * mp.fsum(q * self.weight.mean(m, s) for q, m, s in normals)
        low, high, finest = -mp.inf, mp.inf, min(s for _, _, s in normals)
        f, reach = normals[0][1] if guess is None else guess, max(s for _, _, s in normals)
        for _ in range(400):
            gap = mp.fsum(q * self.weight.mean(m, s, f) for q, m, s in normals) - level
            low, high = (f, high) if gap < 0 else (low, f)
            slope = self.weight(f) * mp.fsum(q * normal_density((f - m) / s) / s for q, m, s in normals)
            step = gap / slope if slope > 0 else (-mp.inf if gap < 0 else mp.inf)
            if abs(step) < finest * mpf(10) ** -9:  # the next step is the square of that
                return f - step
            if mp.inf in (high, -low):  # no bracket yet
                reach *= 2
                step = max(-reach, min(reach, step))
                step = step if step else (-reach if gap < 0 else reach)
            elif not low < f - step < high:
                step = f - (low + high) / 2
                if high - low < finest * mpf(10) ** -30:  # a jump, or no mass at all
                    return f
            f -= step
        raise ArithmeticError("a quantile of the reference does not converge")

    def gaussian(self, mean: Any, variance: Any, rho: Any) -> Any:
        """EUR under a normal belief."""
        today = self.quantile([(mpf(1), mean, mp.sqrt(variance))])
        nothing = self.weight.mean(mean, mp.sqrt(variance)) * mpf(10) ** -30

        def regret(m: Any, s: Any) -> Any:
            here = [(mpf(1), m, s)]
            if self.weight.mean(m, s) < nothing:
                return mpf(0)
            return self.cost(today, here) - self.cost(self.quantile(here, today + m - mean), here)

        return gaussian_reduction(regret, mean, variance, rho, [*self.weight.cuts, today])

    def mixture(self, shares: Any, means: Any, sds: Any, centres: Any, spreads: Any) -> Any:
        """EUR under an ensemble of normals."""
        today = self.quantile(list(zip(shares, centres, spreads, strict=True)))

        def regret(joint: list[Any]) -> Any:
            here = list(zip(joint, centres, spreads, strict=True))
            return self.cost(today, here) - self.cost(self.quantile(here, today), here)

        return mixture_reduction(regret, shares, means, sds)


def crps_gaussian(weight: Pieces, slope: Callable[[Any], Any], mean: Any, variance: Any, rho: Any) -> Any:
    """EUR of the weighted CRPS: E_y[W_y integral of (F_y - F)^2 dz], with dz = slope(f) df."""
    sd = mp.sqrt(variance)
    total = weight.mean(mean, sd)
    known: dict[Any, Any] = {}

    def today(f: Any) -> Any:
        if f not in known:
            known[f] = weight.mean(mean, sd, f) / total
        return known[f]

    def regret(m: Any, s: Any) -> Any:
        mass = weight.mean(m, s)
        inner = [m + s * u for u in (-12, -4, -1, 1, 4, 12)]
        outer = [mean + sd * u for u in range(-12, 13, 3)]
        edges = sorted({*inner, *outer, *weight.cuts})
        return mass * integral(lambda f: (weight.mean(m, s, f) / mass - today(f)) ** 2 * slope(f), edges, 1e-8)

    return gaussian_reduction(regret, mean, variance, rho, weight.cuts)


def scoring_expected(rule: str, weighted: list[list[Any]]) -> Any:
    """EUR of a scoring rule for a table of w(z) P(y, z), rows y: sum over y of E[w 1_y] D_phi(a_y, a)."""

    def entropy_like(q: Sequence[Any]) -> Any:
        if rule == "log":
            return mp.fsum(p * mp.log(p) for p in q if p > 0)
        squares = mp.fsum(p * p for p in q)
        return squares if rule == "square" else mp.sqrt(squares)

    today = [mp.fsum(column) for column in zip(*weighted, strict=True)]
    total = mp.fsum(today)
    after = mp.fsum(
        mp.fsum(row) * entropy_like([p / mp.fsum(row) for p in row]) for row in weighted if mp.fsum(row) > 0
    )
    return after - total * entropy_like([p / total for p in today])


def vector_expected(price: Any, weight: Pieces, rates: Any, mean: Any, joint: Any, size: int) -> Any:
    """EUR of w(rates . z) (z - b)' A (z - b) for (y, z) jointly normal, the first `size` numbers those of y.

    Only the part of the label along which t = rates . z moves has to be integrated; what is left of it moves the answer
    linearly and the weight not at all.
    """
    price, rates, mean, joint = (mp.matrix(each.tolist()) for each in (price, rates, mean, joint))
    d = len(mean)
    own, across, spread = joint[:size, :size], joint[:size, size:], joint[size:, size:]
    factor = (mp.inverse(mp.cholesky(own)) * across).T  # [d, L]
    left = spread - factor * factor.T
    drift, total = factor.T * rates, (rates.T * mean)[0]
    length = mp.sqrt((drift.T * drift)[0])

    def answer(moved: Any, variance: Any) -> tuple[Any, Any]:
        """E[w] and E[w (z - mean)] / E[w] once z has this mean beyond today's and this variance."""
        level, scale = total + (rates.T * moved)[0], (rates.T * variance * rates)[0]
        if scale == 0:
            return mpf(1), moved
        sd = mp.sqrt(scale)
        mass = weight.mean(level, sd)
        first = (weight * Pieces.of((1, 1))).mean(level, sd) - level * mass
        return mass, moved + variance * rates * (first / mass / scale)

    whole, today = answer(mp.zeros(d, 1), spread)
    explained = mp.fsum((price * factor * factor.T)[i, i] for i in range(d))
    if length == 0:
        return whole * explained
    along = factor * drift / length  # [d]: how the answer moves with the one part
    rest = explained - (along.T * price * along)[0]

    def regret(eta: Any) -> Any:
        mass, here = answer(along * eta, left)
        gap = here - today
        return normal_density(eta) * mass * ((gap.T * price * gap)[0] + rest)

    low, high = _window(regret, -14, 14)
    return integral(regret, [mpf(u) for u in range(low, high, 4)] + [mpf(high)])


# Whole distributions: dense grids in double precision, every difference taken before it is summed


def _even_grid(means: Any, sds: Any, per_sd: float) -> tuple[Any, float]:
    """Points over all members, and their spacing: the trapezoid rule, which on normal densities has no error left."""
    low, high = np.min(means - 11.0 * sds), np.max(means + 11.0 * sds)
    count = 1 + int(np.ceil((high - low) / np.min(sds) * per_sd))
    return np.linspace(low, high, count), (high - low) / (count - 1)


def distribution_expected(
    rule: str, weight: Any, shares: Any, means: Any, sds: Any, centres: Any, spreads: Any
) -> float:
    """EUR of the weighted log score or CRPS under an ensemble of normals, for a smooth weight w(z)."""
    shares, means, sds, centres, spreads = (
        np.array([float(x) for x in each]) for each in (shares, means, sds, centres, spreads)
    )
    y, dy = _even_grid(means, sds, 6.0)
    z, dz = _even_grid(centres, spreads, 12.0)
    label = np.exp(-0.5 * ((y - means[:, None]) / sds[:, None]) ** 2) / (np.sqrt(2 * np.pi) * sds[:, None])  # [K, J]
    target = np.exp(-0.5 * ((z - centres[:, None]) / spreads[:, None]) ** 2) / (np.sqrt(2 * np.pi) * spreads[:, None])
    target = target * weight(z)  # [K, Q]
    each = target.sum(axis=1) * dz  # [K]: E_k[w]
    total = shares @ each
    mass = (shares * each) @ label  # [J]: W_y
    some = mass > 1e-250
    label, mass = label[:, some], mass[some]
    # by how much y changes the share of member k, over what it was: exact however little that is
    others = ((shares * each)[:, None, None] * (label[None, :, :] - label[:, None, :])).sum(axis=0)  # [K, J]
    change = shares[:, None] * others / mass  # [K, J], sum_k change each_k = 0
    if rule == "log":
        before = shares @ target  # [Q]: over W it is the density of today
        known = before > 1e-280
        r = (change.T @ target[:, known]) / before[known]  # [J, Q]
        small = np.abs(r) < 1e-3
        series = r**2 / 2 - r**3 / 6 + r**4 / 12 - r**5 / 20
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.where(r > -1, (1 + r) * np.log1p(r) - r, 1.0)
        gain = np.where(small, series, plain) @ before[known] * dz / total
        return float(gain @ mass * dy)
    centred = target - np.outer(each / total, shares @ target)  # [K, Q], whose integrals are 0
    squares = _products_of_integrals(centred, z - z.mean(), dz)  # [K, K]
    return float(np.einsum("kj,kl,lj,j->", change, squares, change, mass) * dy / total**2)


def _products_of_integrals(functions: Any, z: Any, dz: float) -> Any:
    """[K, K]: the integral of F_k F_l, with F the integral of f from below, for f [K, Q] on an even grid."""
    size = 4 * functions.shape[1]
    omega = 2.0 * np.pi * np.fft.rfftfreq(size, dz)
    spectrum = np.fft.rfft(functions, size, axis=1) * dz
    spectrum[:, 1:] /= omega[1:]
    spectrum[:, 0] = (functions @ z) * dz  # the limit at 0, up to a phase
    share = np.full(len(omega), 2.0)
    share[0] = 1.0
    return np.real((spectrum * share) @ spectrum.conj().T) * omega[1] / (2.0 * np.pi)


def crps_interpolated(values: Any, heights: Any, rho: float) -> float:
    """EUR of CRPS for N(0, 1) and a weight that is linear between `values`: dense panels in double precision."""
    root, rest = np.sqrt(rho), np.sqrt(1.0 - rho)
    layers = np.array([-30.0, -10.0, -6.0, -3.0, -1.0, 0.0, 1.0, 3.0, 6.0, 10.0, 30.0])
    eta, eta_mass = _dense_panels(
        np.concatenate([np.linspace(-9.5, 9.5, 39), (np.ravel(values) + layers[:, None] * rest).ravel() / root])
    )
    eta_mass = eta_mass * np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi)
    _, whole = _linear_below(np.array([np.inf]), values, heights, 0.0, 1.0)
    total = 0.0
    for one, mass in zip(eta, eta_mass, strict=True):
        near = root * one + rest * layers
        t, length = _dense_panels(np.concatenate([np.linspace(-10.0, 10.0, 41), values, near]))
        below, all_of_it = _linear_below(t, values, heights, root * one, rest)
        if all_of_it > 1e-200:
            today, _ = _linear_below(t, values, heights, 0.0, 1.0)
            total += mass * all_of_it * (length @ (below / all_of_it - today / whole) ** 2)
    return float(total)


def _dense_panels(edges: Any) -> tuple[Any, Any]:
    """Twelve Gauss-Legendre nodes and their lengths between each two edges, within +-10."""
    edges = np.unique(np.clip(edges, -10.0, 10.0))
    x, w = np.polynomial.legendre.leggauss(12)
    half, middle = np.diff(edges)[:, None] / 2.0, (edges[1:] + edges[:-1])[:, None] / 2.0
    return (middle + half * x).ravel(), (half * w).ravel()


def _linear_below(t: Any, values: Any, heights: Any, mean: float, sd: float) -> tuple[Any, float]:
    """E[w 1{z < t}] and E[w] for z ~ N(mean, sd^2) and w linear between `values`, constant beyond them."""
    slopes = np.concatenate([[0.0], np.diff(heights) / np.diff(values), [0.0]])
    constants = np.concatenate([heights, heights[-1:]]) - slopes * np.concatenate([values, values[-1:]])
    edges = np.concatenate([[-np.inf], values, [np.inf]])
    found = 0.0
    for i, (low, high) in enumerate(pairwise(edges)):
        a, b = ((np.minimum(np.maximum(each, low), high) - mean) / sd for each in (low, t))
        inside = ndtr(b) - ndtr(a)
        slant = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
        found = found + (constants[i] + slopes[i] * mean) * inside + slopes[i] * sd * slant
    whole = found if np.ndim(t) and np.isinf(t[0]) else _linear_below(np.array([np.inf]), values, heights, mean, sd)[1]
    return found, float(np.ravel(whole)[0])


def vector_mixture_expected(price: Any, shares: Any, means: Any, sds: Any, centres: Any) -> float:
    """EUR of (z - b)' A (z - b) under an ensemble whose labels are two independent normals [K, 2]: a dense grid."""
    shares = shares / shares.sum()
    axes = [_even_grid(means[:, i], sds[:, i], 6.0) for i in range(2)]
    along = [
        np.exp(-0.5 * ((y - means[:, i, None]) / sds[:, i, None]) ** 2) / (np.sqrt(2 * np.pi) * sds[:, i, None]) * dy
        for i, (y, dy) in enumerate(axes)
    ]
    joint = shares[:, None, None] * along[0][:, :, None] * along[1][:, None, :]  # [K, Y, Y]
    step = np.tensordot((centres - shares @ centres).T, joint, axes=1)  # [d, Y, Y]
    mass = joint.sum(axis=0)
    some = mass > 1e-280
    moved = step[:, some]
    return float(np.sum((moved * (price @ moved)).sum(axis=0) / mass[some]))
