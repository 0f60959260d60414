"""Rough weights and costs that declare nothing, against an integration that knows where they are rough.

The family: a floor, and one to four of: a sigmoid of slope 1 to 1000 to the standard deviation; a step; a bump, RBF or
box, 1/1000 to 1 standard deviation wide; a kink. Nothing is declared. The floor is 0 in some, where a sigmoid, step or
kink leaves weight elsewhere. Costs of `FiniteActions` are of the same family. Labels tell 1e-6 to 1 - 1e-6 of the
variance; beliefs are Gaussian, log-normal or ensembles of normals. The error must not exceed 1e-6, or what the
warning states; for decisions 1e-12 of the most that a label can be worth is as good.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss, legint, legvander
from scipy.optimize import brentq

from stakes import (
    CRPS,
    AccuracyWarning,
    FiniteActions,
    GaussianBelief,
    Linex,
    LogScore,
    LogWarp,
    NormalEnsemble,
    Pinball,
    SquaredError,
    WarpedGaussianBelief,
    expected_reduction,
)
from tests.torture.harness import Area

X, LENGTHS = leggauss(12)
_SERIES = (legvander(X, 11) * (np.arange(12) + 0.5)).T  # masses at the nodes of a panel to a Legendre series
_BELOW = legvander(X, 12) @ legint(_SERIES, lbnd=-1)  # masses at the nodes to the mass below each of them
GRADES = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, *(32.0 * 2.0 ** np.arange(12))])
PASSED = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, -1.0, -2.0, -4.0, -8.0, -16.0, -32.0])
REACH, WINDOW = 9.5, 12.0
FAR_REACH, FAR_WINDOW = 38.0, 45.0  # for decisions that turn where densities are as small as numbers get


@dataclass(frozen=True)
class Rough:
    """A function of u, and where it is rough: pairs of a place and a width, 0 for a jump or a kink."""

    function: Callable[[Any], Any]
    places: tuple[tuple[float, float], ...]

    def __call__(self, u: Any) -> Any:
        return self.function(u)


def random_rough(rng: Any) -> Rough:
    """One of the family."""
    parts: list[Callable[[Any], Any]] = []
    places: list[tuple[float, float]] = []
    kinds = rng.choice(["sigmoid", "step", "rbf", "box", "kink"], size=rng.integers(1, 5))
    for kind in kinds:
        centre, height = float(rng.uniform(-3, 3)), float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
        sign, width = float(rng.choice([-1.0, 1.0])), float(np.exp(rng.uniform(np.log(1e-3), 0.0)))
        if kind == "sigmoid":
            parts.append(
                lambda u, c=centre, h=height, k=sign / width: h / (1.0 + np.exp(-np.clip(k * (u - c), -700, 700)))
            )
            places.append((centre, width))
        elif kind == "step":
            parts.append(lambda u, c=centre, h=height, s=sign: np.where(s * (u - c) > 0, h, 0.0))
            places.append((centre, 0.0))
        elif kind == "rbf":
            parts.append(lambda u, c=centre, h=height, w=width: h * np.exp(-0.5 * ((u - c) / w) ** 2))
            places.append((centre, width))
        elif kind == "box":
            parts.append(lambda u, c=centre, h=height, w=width: np.where(abs(u - c) < w / 2, h, 0.0))
            places += [(centre - width / 2, 0.0), (centre + width / 2, 0.0)]
        else:
            parts.append(lambda u, c=centre, h=height, s=sign: h * np.maximum(s * (u - c), 0.0))
            places.append((centre, 0.0))
    alone = set(kinds) <= {"rbf", "box"}
    floor = 0.0 if rng.random() < 0.2 and not alone else float(np.exp(rng.uniform(np.log(1e-3), 0.0)))
    return Rough(lambda u: floor + sum(part(u) for part in parts), tuple(places))


def edges_of(places: Any, low: float, high: float, narrowest: float = 0.0, widest: float = 0.75) -> Any:
    """Edges of panels from low to high that get narrow towards rough places, as if these were `narrowest` at least."""
    found = [np.arange(low, high, widest), [high]]
    for centre, width in places:
        scale = max(width, narrowest)
        steps = scale * GRADES[scale * GRADES < high - low] if scale else np.zeros(0)
        found.append(np.concatenate([[centre], centre - steps, centre + steps]))
    edges = np.unique(np.concatenate(found))
    edges = edges[(edges >= low) & (edges <= high)]
    return edges[np.concatenate([[True], np.diff(edges) > 1e-14])]


def nodes_between(edges: Any) -> tuple[Any, Any]:
    """[..., P, 12] each: nodes and weights of panels between edges [..., P + 1]."""
    half = (edges[..., 1:] - edges[..., :-1])[..., None] / 2.0
    return edges[..., :-1, None] + half * (1.0 + X), half * LENGTHS


def rbf(x: Any) -> Any:
    """The standard normal density."""
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)


@dataclass(frozen=True)
class Posterior:
    """J posteriors: panels with edges [J, P + 1], masses [J, P, 12] at nodes u, and both on other edges."""

    edges: Any
    again: Callable[[Any], tuple[Any, Any]]

    def at_nodes(self) -> tuple[Any, Any]:
        """Nodes and masses."""
        return self.again(self.edges)


# What keeping today's answer costs under posteriors: made of today's edges [P + 1] and the density of weighted targets.


def moment_regret(transform: Callable[[Any], Any], divergence: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """W_y D(a_y, a) of a weighted Bregman loss."""

    def made(edges: Any, today: Callable[[Any], Any]) -> Callable[..., Any]:
        u, lengths = nodes_between(edges)
        before = lengths * today(u)
        answer = (before * transform(u)).sum() / before.sum()

        def regret(posterior: Posterior) -> Any:
            u, after = posterior.at_nodes()
            mass, first = after.sum((-2, -1)), (after * transform(u)).sum((-2, -1))
            some = mass > 1e-290
            return mass * divergence(np.where(some, first / np.where(some, mass, 1.0), answer), answer)

        return regret

    return made


def square(x: Any, y: Any) -> Any:
    """(x - y)^2."""
    return (x - y) ** 2


def linex_divergence(x: Any, y: Any) -> Any:
    """x / y - log(x / y) - 1, near 0 by its series."""
    r = x / y - 1.0
    small = abs(r) < 1e-3
    near = r * r * (0.5 - r / 3.0 + r * r / 4.0 - r**3 / 5.0 + r**4 / 6.0)
    return np.where(small, near, r - np.log(np.where(small, 1.0, x / y)))  # however small x / y is


def log_regret(edges: Any, today: Callable[[Any], Any]) -> Callable[..., Any]:
    """W_y KL(p_w(. | y) || p_w), as a sum of terms that are at least 0."""
    u, lengths = nodes_between(edges)
    total = (lengths * today(u)).sum()

    def regret(posterior: Posterior) -> Any:
        u, after = posterior.at_nodes()
        mass = after.sum((-2, -1))
        some = (mass > 1e-290)[..., None, None]
        share = np.where(some, after / np.where(some, mass[..., None, None], 1.0), 0.0)
        prior = nodes_between(posterior.edges)[1] * today(u) / total
        fine = prior > 0
        r = np.where(fine, share / np.where(fine, prior, 1.0) - 1.0, 0.0)
        e = np.where(abs(r) < 1e-3, r, 0.0)
        near = e * e * (0.5 - e / 6.0 + e * e / 12.0 - e**3 / 20.0 + e**4 / 30.0 - e**5 / 42.0)
        positive = 1.0 + r > 0
        far = np.where(positive, (1.0 + r) * np.log1p(np.where(positive, r, 0.0)) - r, 1.0)
        each = prior * np.where(abs(r) < 1e-3, near, far)
        return mass * (each.sum((-2, -1)) + np.maximum(0.0, 1.0 - prior.sum((-2, -1))))

    return regret


def crps_regret(slope: Callable[[Any], Any]) -> Callable[..., Any]:
    """W_y times the integral of (F_y - F)^2 over targets, which grow by `slope` of u; edges must cover all."""

    def made(_: Any, today: Callable[[Any], Any]) -> Callable[..., Any]:
        def regret(posterior: Posterior) -> Any:
            u, after = posterior.at_nodes()
            lengths = nodes_between(posterior.edges)[1]
            before = lengths * today(u)
            mass, total = after.sum((-2, -1)), before.sum((-2, -1))
            some = (mass > 1e-290)[..., None, None]
            share = np.where(some, after / np.where(some, mass[..., None, None], 1.0), 0.0)
            gap = share - before / total[..., None, None]
            sums = gap.sum(-1)
            below = (np.cumsum(sums, -1) - sums)[..., None] + gap @ _BELOW.T
            return mass * (below**2 * slope(u) * lengths).sum((-2, -1))

        return regret

    return made


def quantile_of(tau: float, weights: Any, edges: Any) -> Any:
    """[J]: where weights [J, P, 12] of panels reach tau of their sum."""
    sums = weights.sum(-1)
    starts, level = np.cumsum(sums, -1) - sums, tau * sums.sum(-1)
    panel = np.clip((starts + sums < level[:, None]).sum(-1), 0, sums.shape[1] - 1)
    rows = np.arange(len(panel))
    integral = weights[rows, panel] @ legint(_SERIES, lbnd=-1).T  # [J, 13]
    low, high = -np.ones(len(panel)), np.ones(len(panel))
    for _ in range(55):
        x = (low + high) / 2.0
        short = starts[rows, panel] + (integral * legvander(x, 12)).sum(-1) < level
        low, high = np.where(short, x, low), np.where(short, high, x)
    left, right = edges[rows, panel], edges[rows, panel + 1]
    return left + (right - left) * (1.0 + low) / 2.0


def pinball_regret(tau: float, target: Callable[[Any], Any]) -> Callable[..., Any]:
    """E[w (l(z, a) - l(z, a_y)) | y] on panels that split at both answers; `target` takes u to z."""

    def made(edges: Any, today: Callable[[Any], Any]) -> Callable[..., Any]:
        u, lengths = nodes_between(edges)
        answer = quantile_of(tau, (lengths * today(u))[None], edges[None])[0]

        def regret(posterior: Posterior) -> Any:
            edges, (_, after) = posterior.edges, posterior.at_nodes()
            best = quantile_of(tau, after, edges)
            ends = np.clip(np.stack([np.full_like(best, answer), best], axis=1), edges[:, :1], edges[:, -1:])
            nodes, weights = posterior.again(np.sort(np.concatenate([edges, ends], axis=1), axis=1))
            first, second = (
                np.maximum(tau * (target(nodes) - end), (tau - 1.0) * (target(nodes) - end))
                for end in (target(answer), target(best)[:, None, None])
            )
            return (weights * (first - second)).sum((-2, -1))

        return regret

    return made


def posterior_panels(still: Any, centre: Any, rest: float, window: float = WINDOW) -> Any:
    """[J, P + 1]: edges around posteriors N(centre, rest^2), among those that the weight asks for."""
    near = still[(still > centre.min() - 10 * rest) & (still < centre.max() + 10 * rest)]
    own = centre[:, None] + rest * np.arange(-10.0, 10.5, 1.25)
    edges = np.sort(np.concatenate([own, np.broadcast_to(near, (len(centre), len(near)))], axis=1), axis=1)
    return np.clip(edges, -window, window)


def passing(weight: Rough, still: Any, place: float, tau: float, rest: float) -> float:
    """The posterior mean at which the tau-quantile is at `place`: if the weight is steep there, regrets bend."""
    low, high = place - 12.0 * rest, place + 12.0 * rest
    for _ in range(45):
        centre = np.array([(low + high) / 2.0])
        u, lengths = nodes_between(np.sort(np.append(posterior_panels(still, centre, rest)[0], place))[None])
        mass = lengths * weight(u) * rbf((u - centre[:, None, None]) / rest)
        above = mass[u < place].sum() > tau * mass.sum()
        low, high = (centre[0], high) if above else (low, centre[0])
    return low


def gaussian_worth(
    weight: Rough, make: Callable[..., Any], rho: float, whole: bool = False, tau: float | None = None
) -> float:
    """EUR of a standard normal target: the expected regret over eta, panel by panel."""
    root, rest = np.sqrt(rho), np.sqrt(1.0 - rho)
    still = edges_of(weight.places, -WINDOW, WINDOW)
    regret = make(still, lambda u: weight(u) * rbf(u))
    outer = edges_of(weight.places, -REACH * root, REACH * root, rest, 0.75 * root)
    if tau is not None:
        u, lengths = nodes_between(still)
        answer = quantile_of(tau, (lengths * weight(u) * rbf(u))[None], still[None])[0]
        steep = [place + width * step for place, width in weight.places for step in (PASSED if width else [0.0])]
        kinks = [passing(weight, still, place, tau, rest) for place in [*steep, answer]]
        more = [*edges_of([(answer, 0.0)], -REACH * root, REACH * root, rest, 99.0), *kinks]
        outer = np.unique(np.clip(np.concatenate([outer, more]), outer[0], outer[-1]))
    total = 0.0
    for low, high in pairwise(outer):
        centre = low + (high - low) * (1.0 + X) / 2.0  # root eta
        mass = (high - low) / 2.0 * LENGTHS / root * rbf(centre / root)
        edges = posterior_panels(still, centre, rest)
        if whole:
            edges = np.sort(np.concatenate([edges, np.broadcast_to(still, (12, len(still)))], axis=1), axis=1)

        def again(edges: Any, centre: Any = centre) -> tuple[Any, Any]:
            u, lengths = nodes_between(edges)
            return u, lengths * weight(u) * rbf((u - centre[:, None, None]) / rest) / rest

        total += float((mass * regret(Posterior(edges, again))).sum())
    return total


def finite_worth(costs: list[Rough], rho: float) -> tuple[float, float]:
    """EUR of costs of actions for a standard normal target, and the most that a label can be worth."""
    root, rest = np.sqrt(rho), np.sqrt(1.0 - rho)
    places = [place for cost in costs for place in cost.places]
    still = edges_of(places, -FAR_WINDOW, FAR_WINDOW)

    def expected(centre: Any) -> Any:
        u, lengths = nodes_between(posterior_panels(still, centre, rest, FAR_WINDOW))
        mass = lengths * rbf((u - centre[:, None, None]) / rest) / rest
        return np.stack([(mass * cost(u)).sum((-2, -1)) for cost in costs], axis=-1)  # [J, A]

    u, lengths = nodes_between(still)
    rows = np.stack([cost(u) for cost in costs], axis=-1)
    mass = (lengths * rbf(u))[..., None]
    first = int(np.argmin((mass * rows).sum((0, 1))))
    most = float((mass[..., 0] * (rows[..., first] - rows.min(-1))).sum())
    reach = REACH if most > 1e-6 * rows.max() else FAR_REACH
    outer = edges_of(places, -reach * root, reach * root, rest, 0.25 * root)
    values = np.concatenate([expected(part) for part in np.array_split(nodes_between(outer)[0].ravel(), 40)])
    nodes, best = nodes_between(outer)[0].ravel(), np.argmin(values, axis=1)
    switches = [switch(expected, *nodes[at : at + 2], *best[at : at + 2]) for at in np.flatnonzero(np.diff(best))]
    outer = np.unique(np.concatenate([outer, switches]))
    centre, steps = (each.ravel() for each in nodes_between(outer))
    values = np.concatenate([expected(part) for part in np.array_split(centre, 40)])
    gains = values[:, first] - values.min(1)
    return float((steps / root * rbf(centre / root) * gains).sum()), most


def switch(expected: Callable[[Any], Any], low: float, high: float, before: int, after: int) -> float:
    """Where two actions cost the same between low and high."""
    for _ in range(40):
        middle = (low + high) / 2.0
        row = expected(np.array([middle]))[0]
        low, high = (middle, high) if row[before] < row[after] else (low, middle)
    return (low + high) / 2.0


def passing_labels(weight: Rough, members: Callable[[Any], Any], still: Any, tau: float, belief: NormalEnsemble) -> Any:
    """Labels at which the tau-quantile is at a steep place of the weight: there regrets bend."""
    centre, spread = belief.candidate_mean[0], belief.candidate_sd[0]
    found = []
    for place in (place + width * step for place, width in weight.places for step in (PASSED if width else [0.0])):
        u, lengths = nodes_between(np.unique(np.append(still, place)))
        each = (lengths[..., None] * members(u) * belief.member_weights).reshape(-1, len(centre))
        excess = ((u.ravel() < place) - tau) @ each  # [K]

        def gap(y: Any, excess: Any = excess) -> Any:
            logs = -0.5 * ((np.asarray(y)[..., None] - centre) / spread) ** 2 - np.log(spread)
            return np.exp(logs - logs.max(-1, keepdims=True)) @ excess

        grid = np.linspace((centre - 9.5 * spread).min(), (centre + 9.5 * spread).max(), 4001)
        signs = np.sign(gap(grid))
        found += [brentq(gap, grid[i], grid[i + 1], xtol=1e-14) for i in np.flatnonzero(signs[1:] * signs[:-1] < 0)]
    return np.asarray(found)


def ensemble_worth(weight: Rough, make: Callable[..., Any], belief: NormalEnsemble, tau: float | None = None) -> float:
    """EUR of one candidate and context of an ensemble of normals, on fine panels of the label."""
    mean, sd, shares = belief.context_mean[0], belief.context_sd[0], belief.member_weights
    own = (mean[:, None] + sd[:, None] * np.arange(-11.0, 11.5, 0.75)).ravel()
    still = np.unique(np.concatenate([own, edges_of(weight.places, own.min(), own.max(), widest=99.0)]))

    def members(u: Any) -> Any:
        away = (u[..., None] - mean) / sd
        return weight(u)[..., None] * rbf(away) / sd  # [..., K]

    regret = make(still, lambda u: members(u) @ shares)
    centre, spread = belief.candidate_mean[0], belief.candidate_sd[0]
    outer = np.unique((centre[:, None] + spread[:, None] * np.arange(-9.5, 9.6, 0.125)).ravel())
    if tau is not None:
        outer = np.unique(np.concatenate([outer, passing_labels(weight, members, still, tau, belief)]))
    y, steps = (each.ravel() for each in nodes_between(outer))
    joint = steps[:, None] * shares * rbf((y[:, None] - centre) / spread) / spread  # [J, K]
    total = 0.0
    for part in np.array_split(joint, max(1, len(y) // 64)):

        def again(edges: Any, part: Any = part) -> tuple[Any, Any]:
            u, lengths = nodes_between(edges)
            return u, lengths * np.einsum("jpgk,jk->jpg", np.broadcast_to(members(u), (*u.shape, len(mean))), part)

        edges = np.broadcast_to(still, (len(part), len(still)))
        total += float(regret(Posterior(edges, again)).sum())
    return total


def stated_and_found(loss: Any, belief: Any) -> tuple[float, Any]:
    """The relative error that is stated, 1e-6 without a warning, and the reductions [N]."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = expected_reduction(loss, belief)[:, 0]
    stated = [each.message.relative_error for each in caught if isinstance(each.message, AccuracyWarning)]
    return max([1e-6, *stated]), found


def gaussian_case(rng: Any, kind: str, warped: bool) -> None:
    """A loss of a kind under a Gaussian or a log-normal belief."""
    mean, sd = float(rng.uniform(-2, 2)), float(rng.uniform(0.1, 0.8) if warped else 10 ** rng.uniform(-2, 2))
    rho = 1.0 / (1.0 + np.exp(-rng.uniform(np.log(1e-6), -np.log(1e-6), size=70 if rng.random() < 0.2 else 1)))
    latent = GaussianBelief([mean], [sd**2], np.ones(len(rho)), sd * np.sqrt(rho)[:, None])
    belief = WarpedGaussianBelief(latent, LogWarp()) if warped else latent

    def standard(z: Any) -> Any:
        return ((np.log(z) if warped else z) - mean) / sd

    def target(u: Any) -> Any:
        return np.exp(mean + sd * u) if warped else mean + sd * u

    if kind == "decision":
        costs = [random_rough(rng) for _ in range(rng.integers(2, 4))]
        loss: Any = FiniteActions(lambda z: np.stack([cost(standard(z)) for cost in costs], axis=-1))
        stated, found = stated_and_found(loss, belief)
        for got, share in list(zip(found, rho, strict=True))[:2]:
            wanted, most = finite_worth(costs, share)
            assert np.isfinite(wanted), (kind, warped, share, wanted)
            assert abs(got - wanted) <= max(stated * wanted, 1e-12 * most), (kind, warped, share, got, wanted, most)
        return
    weight = random_rough(rng)
    loss, make, tau = loss_of(kind, rng, lambda z: weight(standard(z)), target, sd, warped)
    stated, found = stated_and_found(loss, belief)
    for got, share in list(zip(found, rho, strict=True))[:2]:
        wanted = gaussian_worth(weight, make, share, kind == "crps", tau)
        assert np.isfinite(wanted), (kind, warped, share, wanted)
        assert abs(got - wanted) <= stated * wanted, (kind, warped, share, got, wanted, got / wanted - 1.0, stated)


def loss_of(
    kind: str, rng: Any, weight: Callable[[Any], Any], target: Callable[[Any], Any], sd: float, warped: bool
) -> tuple[Any, Any, float | None]:
    """A loss with a weight, what makes its regret, and the level of its quantile."""
    tau, sign = float(rng.uniform(0.1, 0.9)), 1.0 if warped else float(rng.choice([-1.0, 1.0]))
    if kind == "squared":
        return SquaredError(weight), moment_regret(target, square), None
    if kind == "linex":
        rate = sign * float(rng.uniform(0.2, 3.0)) / (float(target(6.0)) if warped else sd)
        made = moment_regret(lambda u: np.exp(-rate * (target(u) - target(0.0))), linex_divergence)
        return Linex(rate, weight), made, None
    if kind == "log":
        return LogScore(weight), log_regret, None
    if kind == "crps":
        return CRPS(weight), crps_regret(lambda u: sd * (target(u) if warped else 1.0)), None
    return Pinball(tau, weight), pinball_regret(tau, target), tau


def ensemble_case(rng: Any, kind: str) -> None:
    """A loss of a kind under an ensemble of a few normals."""
    count = int(rng.integers(2, 4))
    belief = NormalEnsemble(
        rng.normal(0.0, 1.5, (1, count)), rng.uniform(0.3, 1.0, (1, count)), rng.normal(0.0, 1.0, (1, count)),
        rng.uniform(1.0, 2.0, (1, count)), rng.dirichlet(np.full(count, 4.0)),
    )  # fmt: skip
    weight = random_rough(rng)
    loss, make, tau = loss_of(kind, rng, weight.function, lambda u: u, 1.0, False)
    stated, found = stated_and_found(loss, belief)
    wanted = ensemble_worth(weight, make, belief, tau)
    assert np.isfinite(wanted), (kind, wanted)
    assert abs(found[0] - wanted) <= stated * wanted, (kind, found[0], wanted, found[0] / wanted - 1.0, stated)


def case(number: int, folder: Path) -> None:  # noqa: ARG001 (nothing is written)
    """One weight, loss and belief."""
    rng = np.random.default_rng(number)
    kind = ("squared", "linex", "log", "crps", "pinball", "decision")[number % 6]
    if kind != "decision" and rng.random() < 0.25:
        ensemble_case(rng, kind)
    else:
        gaussian_case(rng, kind, bool(rng.random() < 0.3))


AREA = Area("weights", case, quick=12, seconds=120.0)
