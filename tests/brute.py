"""Slow, independent computations from the definitions, for tests to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stakes.beliefs import reference_at
from stakes.domains import REAL, Interval


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
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, 2 * int(reach) + 1), _inside(cuts, mean, sd, reach)]))
    nodes, weights = np.polynomial.legendre.leggauss(per_sd)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    u = (middle[:, None] + half[:, None] * nodes).ravel()
    mass = (half[:, None] * weights).ravel() * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
    return function(mean + sd * u) @ mass


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
