"""Slow, independent computations from the definitions, for tests to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.stats import norm

from stakes.beliefs import reference_at
from stakes.losses.domains import REAL, Interval


@dataclass(frozen=True, eq=False)
class TableBelief:
    """A user's own belief: targets on a few values [Z], a joint table of outcomes y and targets [N, M, J, Z]."""

    values: np.ndarray
    joint: np.ndarray
    domain: Interval = REAL

    @property
    def n_candidates(self):
        return self.joint.shape[0]

    @property
    def n_contexts(self):
        return self.joint.shape[1]

    @property
    def like(self):
        return self.joint

    def n_cells(self, integrand):
        return self.joint.shape[2]

    def reference(self, integrand):
        mass = self.joint[:1].sum((0, 2)) if self.n_candidates else np.ones((self.n_contexts, len(self.values)))
        log_mass = integrand.log_magnitudes(self.values)[:, 0] + np.log(mass + 1e-300)
        return reference_at(self.values[np.argmax(log_mass, axis=1)], integrand)

    def moments(self, integrand, reference):
        return self._expectation(self.joint[0].sum(1), integrand, reference.point)

    def split_moments(self, integrand, reference):
        return self._expectation(self.joint, integrand, reference.point[:, None])

    def take(self, candidates, contexts):
        return TableBelief(self.values, self.joint[candidates, contexts], self.domain)

    def _expectation(self, probabilities, integrand, point):
        return (probabilities[..., None] * integrand.statistics(self.values, point[..., None])).sum(-2)


def random_table(rng, values, n_candidates=3, n_contexts=4, n_cells=3, domain=REAL):
    """A table whose marginal over targets does not depend on the candidate."""
    prior = rng.dirichlet(np.ones(len(values)), size=(1, n_contexts, 1))  # [1, M, 1, Z]
    likelihood = rng.dirichlet(np.ones(n_cells), size=(n_candidates, n_contexts, len(values)))  # [N, M, Z, J]
    return TableBelief(np.asarray(values, float), prior * np.swapaxes(likelihood, 2, 3), domain)


def reduction_from_definition(joint, loss_rows, act):
    """EUR [...] = h[p(z)] - sum_y P(y) h[p(z | y)] for joint [..., J, Z], with h[q] = E_q[l(z, act(q))].

    `loss_rows(a)` gives l(z, a) for all z; `act(q)` the best action under probabilities q [Z].
    """
    flat = joint.reshape(-1, *joint.shape[-2:])
    result = []
    for table in flat:
        prior = table.sum(0)
        before = prior @ loss_rows(act(prior))
        after = sum(row.sum() * (row / row.sum()) @ loss_rows(act(row / row.sum())) for row in table if row.sum() > 0)
        result.append(before - after)
    return np.array(result).reshape(joint.shape[:-2])


def normal_expectation(function, mean, sd, cuts=(), reach=11.0, per_sd=24):
    """E[function(z)] for z ~ N(mean, sd^2), one number for each of the leading components, by dense panels."""
    u, mass = _panels(reach, per_sd, tuple(_inside(cuts, mean, sd, reach)))
    return function(mean + sd * u) @ mass


@lru_cache(64)
def _panels(reach, per_sd, cuts):
    """Nodes between even edges and cuts, and their masses under a standard normal."""
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, 2 * int(reach) + 1), cuts]))
    nodes, weights = _legendre(per_sd)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    u = (middle[:, None] + half[:, None] * nodes).ravel()
    return u, (half[:, None] * weights).ravel() * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)


_legendre = lru_cache(np.polynomial.legendre.leggauss)


def gaussian_reduction(loss, statistic, weight, mean, variance, rho, cuts=(), reach=10.0):
    """EUR of one Gaussian pair from the definition: E[l(z, a)] - E_y E[l(z, a_y) | y], with `a = E_w[statistic]`.

    `loss(z, a)` is the loss without weight of action `a` in the coordinates of `statistic`.
    """
    sd, shift, rest = np.sqrt(variance), np.sqrt(rho * variance), np.sqrt((1 - rho) * variance)

    def act(centre, spread):
        weighted = normal_expectation(lambda z: np.stack([weight(z), weight(z) * statistic(z)]), centre, spread, cuts)
        return weighted[1] / weighted[0]

    def expected(a, centre, spread):
        return normal_expectation(lambda z: weight(z) * loss(z, a), centre, spread, cuts)

    def after(eta):
        return np.array([expected(act(mean + shift * e, rest), mean + shift * e, rest) for e in eta])

    layer = [(cut - mean) / shift + k * rest / shift for cut in cuts for k in range(-8, 9, 2)]
    return expected(act(mean, sd), mean, sd) - normal_expectation(after, 0.0, 1.0, layer, reach, per_sd=12)


def squared_regret(weight, mean, sd, rho, cuts=()):
    """EUR / rho of weighted squared error for one Gaussian pair as a sum of regrets, dense; right for tiny rho too."""
    root, rest = np.sqrt(rho), np.sqrt(1 - rho)

    @cache_by_nodes
    def split(eta):
        return np.array(
            [
                normal_expectation(
                    lambda u, e=e: (
                        np.stack([weight(mean + sd * (root * e + u)), (root * e + u)])
                        * np.stack([np.ones_like(u), weight(mean + sd * (root * e + u))])
                    ),
                    0.0,
                    rest,
                    [(cut - mean) / sd - root * e for cut in cuts],
                )
                for e in eta
            ]
        ).T

    layer = [(cut - mean) / sd / root + k * rest / root for cut in cuts for k in range(-8, 9, 2)]
    mass, first = normal_expectation(split, 0.0, 1.0, layer, 10.0, 12)
    act = first / mass

    def regret(eta):
        mass, first = split(eta)
        return np.where(mass > 0, (first - act * mass) ** 2 / np.where(mass > 0, mass, 1), 0)

    return sd**2 * normal_expectation(regret, 0.0, 1.0, layer, 10.0, 12) / rho


def cache_by_nodes(function):
    """The function, computed once for the same nodes."""
    known = {}

    def cached(nodes):
        key = nodes.tobytes()
        if key not in known:
            known[key] = function(nodes)
        return known[key]

    return cached


def gaussian_pair(mean, variance, rho):
    """A belief with one context for each mean and one candidate for each rho, which removes that share everywhere."""
    from stakes import GaussianBelief

    mean, variance, rho = (np.atleast_1d(np.asarray(each, float)) for each in (mean, variance, rho))
    return GaussianBelief(mean, variance, np.ones(len(rho)), np.sqrt(rho[:, None] * variance))


def normal_grid(dimension, points=41, reach=8.0):
    """Nodes [P, dimension] and masses [P] of a dense even grid for a standard normal vector."""
    axis = np.linspace(-reach, reach, points)
    nodes = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    mass = np.exp(-0.5 * (nodes**2).sum(1))
    return nodes, mass / mass.sum()


def vector_reduction(matrix, weight, mean, variance, label_variance, covariance, points=41):
    """EUR of one Gaussian pair of vectors from the definition, h[p(z)] - E_y h[p(z | y)], on dense grids of y and z.

    `covariance` is [L, d]; `weight` takes [..., d] to [...].
    """
    u, mass = normal_grid(len(mean), points)

    def least_expected_loss(centre, cholesky):
        z = centre + u @ cholesky.T
        weights = mass * weight(z)
        step = z - weights @ z / weights.sum()
        return weights @ ((step @ matrix) * step).sum(1)

    gain = np.linalg.solve(label_variance, covariance)  # [L, d]
    rest = np.linalg.cholesky(variance - covariance.T @ gain)
    eta, eta_mass = normal_grid(len(label_variance), points)
    shifts = eta @ np.linalg.cholesky(label_variance).T @ gain  # [P, d]
    counts = eta_mass > 1e-18
    nodes = zip(eta_mass[counts], shifts[counts], strict=True)
    after = sum(p * least_expected_loss(mean + shift, rest) for p, shift in nodes)
    return least_expected_loss(mean, np.linalg.cholesky(variance)) - after


def stacked_vectors(rng, n_candidates, n_contexts, size, d, noise=0.1, rank=None):
    """Arguments of a VectorGaussianBelief by name, from one joint covariance of all labels and targets."""
    total = n_candidates * size + n_contexts * d
    mixing = rng.standard_normal((total, rank or size + d + 2)) / 2
    joint = mixing @ mixing.T
    labels = n_candidates * size
    rows = (joint[:labels, :labels] + noise * np.eye(labels)).reshape(n_candidates, size, n_candidates, size)
    contexts = joint[labels:, labels:].reshape(n_contexts, d, n_contexts, d)
    return {
        "mean": rng.standard_normal((n_contexts, d)),
        "variance": np.stack([contexts[m, :, m, :] for m in range(n_contexts)]) + 0.05 * np.eye(d),
        "candidate_variance": np.stack([rows[n, :, n, :] for n in range(n_candidates)]),
        "covariance": joint[:labels, labels:].reshape(n_candidates, size, n_contexts, d).transpose(0, 2, 1, 3),
        "candidate_covariance": rows,
    }


def _inside(cuts, mean, sd, reach):
    scaled = (np.asarray(list(cuts), float) - mean) / sd
    return scaled[np.abs(scaled) < reach]


class Grid:
    """Even points in segments between `cuts`: integrals and cumulative integrals by Simpson's rule."""

    def __init__(self, low, high, cuts=(), count=4001):
        edges = np.array([low, *sorted(cut for cut in cuts if low < cut < high), high])
        sizes = [2 * max(2, int(count * width / (high - low) / 2)) + 1 for width in np.diff(edges)]
        parts = [np.linspace(*ends, size) for ends, size in zip(pairwise(edges), sizes, strict=True)]
        stops = np.cumsum(sizes)
        self.parts = [slice(stop - size, stop) for stop, size in zip(stops, sizes, strict=True)]
        self.x = np.concatenate(parts)
        nudge = 1e-13 * (high - low)
        self.inside = np.concatenate([np.clip(part, part[0] + nudge, part[-1] - nudge) for part in parts])

    def cumulative(self, y):
        parts = []
        for part in self.parts:
            inner = cumulative_simpson(y[..., part], x=self.x[part], axis=-1, initial=0)
            parts.append(inner + (parts[-1][..., -1:] if parts else 0.0))
        return np.concatenate(parts, axis=-1)


def score_uncertainty(kind, grid, mass, tau=None, forward=lambda x: x, slope=np.ones_like):
    """h [J] of distributions w p given at the points of a grid [J, Z], of targets forward(x), from the definition."""
    below = grid.cumulative(mass)
    total = below[:, -1]
    steps = slope(grid.inside)
    if kind == "log":
        density = mass / total[:, None] / steps
        density = np.where(density > 0, density, 1.0)
        return -grid.cumulative(mass * np.log(density))[:, -1]
    if kind == "crps":
        return grid.cumulative(below * (total[:, None] - below) * steps)[:, -1] / total
    level = tau * total
    i = np.clip((below < level[:, None]).sum(1) - 1, 0, len(grid.x) - 2)[:, None]
    at = lambda values, more=0: np.take_along_axis(np.broadcast_to(values, mass.shape), i + more, axis=1)[:, 0]  # noqa: E731
    width = at(grid.x, 1) - at(grid.x)
    delta = width * (level - at(below)) / (at(below, 1) - at(below))
    # the integral of y = (mass below) (slope) up to the quantile, from its values and slopes at the grid point before
    bend = np.gradient(steps, grid.x + 1e-300 * np.arange(len(grid.x))) if np.ptp(steps) else 0.0 * steps
    slopes = [at(mass, k) * at(steps, k) + at(below, k) * at(bend, k) for k in (0, 1)]
    part = at(below * steps) * delta + slopes[0] * delta**2 / 2 + (slopes[1] - slopes[0]) / width * delta**3 / 6
    answer = forward(at(grid.x) + delta)
    mean = grid.cumulative(mass * forward(grid.x))[:, -1]
    return tau * (mean - answer * total) + at(grid.cumulative(below * steps)) + part


def score_reduction(
    kind, weight, mean, sd, rho, cuts=(), tau=None, forward=lambda x: x, slope=np.ones_like, count=4001, nodes=10
):
    """EUR of one Gaussian pair, target forward(f) for f ~ N(mean, sd^2), as h before less the expected h after.

    With cuts all posteriors share one grid, which is right for a wide posterior only; without, each has its own.
    """
    root, rest = np.sqrt(rho), np.sqrt(1 - rho)
    options = {"tau": tau, "forward": forward, "slope": slope}
    whole = Grid(mean - 10.5 * sd, mean + 10.5 * sd, cuts, count)
    prior = weight(forward(whole.inside)) * norm.pdf(whole.inside, mean, sd)
    before = score_uncertainty(kind, whole, prior[None, :], **options)[0]

    def after(eta):
        centres = mean + sd * root * eta
        if cuts:
            masses = weight(forward(whole.inside)) * norm.pdf(whole.inside, centres[:, None], sd * rest)
            return score_uncertainty(kind, whole, masses, **options)
        grid = [Grid(centre - 10 * sd * rest, centre + 10 * sd * rest, (), count) for centre in centres]
        masses = [weight(forward(g.x)) * norm.pdf(g.x, c, sd * rest) for g, c in zip(grid, centres, strict=True)]
        return np.array(
            [score_uncertainty(kind, g, m[None, :], **options)[0] for g, m in zip(grid, masses, strict=True)]
        )

    return before - normal_expectation(after, 0.0, 1.0, reach=9.0, per_sd=nodes)


def ensemble_score_reduction(kind, weight, candidate, context, shares, cuts=(), tau=None, count=6001):
    """EUR of one candidate and context of an ensemble of normals, (mean, sd) of members each, from the definition."""
    low, high = ((candidate[0] - 10 * candidate[1]).min(), (candidate[0] + 10 * candidate[1]).max())
    y = np.linspace(low, high, 401)
    joint = shares * norm.pdf(y[:, None], *candidate) * (y[1] - y[0])  # [J, K]
    grid = Grid((context[0] - 10 * context[1]).min(), (context[0] + 10 * context[1]).max(), cuts, count)
    members = weight(grid.inside) * norm.pdf(grid.inside, context[0][:, None], context[1][:, None])  # [K, Z]
    before = score_uncertainty(kind, grid, (shares @ members)[None, :], tau)[0]
    possible = joint.sum(1) > 1e-200
    return before - score_uncertainty(kind, grid, joint[possible] @ members, tau).sum()
