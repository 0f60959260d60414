"""Draws of the hyperparameters of a Gaussian process, since ten to a hundred labels do not tell what they are.

    labels = f + noise      cov(f, f') = v m(r) + c + a x'x' / p      m: Matern 5/2
    r^2 = sum_d (x_d - x'_d)^2 / l_d^2      log l_d = level + spread e_d

on columns and labels in standard units. Columns have lengths of their own about a common one: with few labels they stay
together, with more they part. Everything is a function of standard normals u (level, log spread, log v, log noise,
log a, e_1 .. e_q), so that the prior is N(0, I). The posterior is drawn from by Hamiltonian Monte Carlo in the units of
its curvature at the most probable u. Of many columns, those that go with the labels most have lengths of their own.

Sizes: n labels, p columns, q of them with lengths of their own, S draws, t = 5 + q, c pairs of labels, N rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from stakes._utils.tables import Host

_GLOBALS = 5  # level, log spread, log variance, log noise, log slope
_MEDIANS = np.log([1.5, 0.8, 1.0, 0.1, 0.1])  # the length in median distances between rows, and the others as they are
_SPREADS = np.array([0.75, 0.5, 1.0, 1.5, 1.5])  # standard deviations of the logarithms
_LEAST_NOISE = 1e-4  # of the variance of labels
_JITTER = 1e-8
CONSTANT = 1.0
"""Prior variance of the mean of f."""
_OWN_LENGTHS = 60  # columns, at most
_CHAINS = 4
_LEAPS = (4, 8)  # of a trajectory, from .. to
_ACCEPTED = 0.8  # the share of trajectories that the step is set for
_STEP = 0.45  # to begin with
_EVERY, _SHORT = 5, 0.3  # one trajectory in so many is so much shorter, so that no chain stays in a narrow place
_DIFFERENCE = 1e-4  # of the gradient, for the curvature
_WIDEST = 0.8  # least curvature, that of the prior being 1
_FURTHEST = 12.0  # standard deviations of the prior
_NOWHERE = -1e25  # the log density beyond
_ENOUGH = 300  # rows whose distances are looked at


class ProcessDraws(NamedTuple):
    """Draws of hyperparameters, in standard units of columns and labels."""

    lengths: Host
    """[S, p]"""
    variance: Host
    """[S]: of the part of f that bends"""
    noise: Host
    """[S]: variance of a label about f"""
    slope: Host
    """[S]: prior variance of f along a straight line, at a typical row"""


class LogPosterior:
    """log p(u | labels) up to a constant, and its gradient."""

    def __init__(self, rows: Host, labels: Host, median: float) -> None:
        """Of rows [n, p] and labels [n] in standard units; `median` is the typical distance of rows."""
        count, columns = rows.shape
        above, below = np.triu_indices(count, 1)
        self._pairs = above, below
        self.own = _followed(rows, labels)  # [q]: which columns have lengths of their own
        squares = (rows[above] - rows[below]) ** 2  # [c, p]
        rest = np.setdiff1d(np.arange(columns), self.own)
        parts = [squares[:, self.own].T, squares[:, rest].sum(axis=1)[None]]
        self._squares = np.ascontiguousarray(np.concatenate(parts))  # [q + 1, c]
        self._products = rows @ rows.T / columns  # [n, n]
        self._labels, self._count, self._columns = labels, count, columns
        self._centres = _MEDIANS + np.array([math.log(median), 0.0, 0.0, 0.0, 0.0])
        self.size = _GLOBALS + len(self.own)

    def draws(self, u: Host) -> ProcessDraws:
        """The hyperparameters of standard normals u [S, t]."""
        logs = self._centres + _SPREADS * u[:, :_GLOBALS]
        lengths = np.repeat(np.exp(logs[:, :1]), self._columns, axis=1)
        lengths[:, self.own] = np.exp(np.clip(logs[:, :1] + np.exp(logs[:, 1:2]) * u[:, _GLOBALS:], -50.0, 50.0))
        return ProcessDraws(lengths, np.exp(logs[:, 2]), _LEAST_NOISE + np.exp(logs[:, 3]), np.exp(logs[:, 4]))

    def __call__(self, u: Host) -> tuple[float, Host]:
        """The value and its gradient [t] at u [t]; far out, where the covariance has no root, almost -inf."""
        if not np.all(np.abs(u) < _FURTHEST):
            return _NOWHERE, np.zeros_like(u)
        level, log_spread, log_variance, log_noise, log_slope = self._centres + _SPREADS * u[:_GLOBALS]
        spread, variance, slope = math.exp(log_spread), math.exp(log_variance), math.exp(log_slope)
        noise, (above, below) = math.exp(log_noise), self._pairs
        logs = np.append(level + np.clip(spread * u[_GLOBALS:], -50.0, 50.0), level)
        inverse = np.exp(-2.0 * logs)  # [q + 1]
        distance = np.sqrt(5.0 * (inverse @ self._squares))  # [c]
        decay = np.exp(-distance)
        shape = (1.0 + distance + distance**2 / 3.0) * decay
        matrix = np.empty((self._count, self._count), order="F")
        matrix[below, above] = variance * shape
        np.fill_diagonal(matrix, variance + noise + _LEAST_NOISE + _JITTER)
        matrix += CONSTANT + slope * self._products
        factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            return _NOWHERE, np.zeros_like(u)
        solved = dtrtrs(factor, self._labels, lower=1)[0]
        value = -0.5 * float(solved @ solved) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * float(u @ u)
        weights = dtrtrs(factor, solved, lower=1, trans=1)[0]
        inverse_matrix = dpotri(factor, lower=1)[0]
        diagonal = 0.5 * (weights**2 - np.diagonal(inverse_matrix))  # d value / d K
        pairs = weights[above] * weights[below] - inverse_matrix[below, above]
        by_length = (5.0 / 3.0) * variance * inverse * (self._squares @ (pairs * (1.0 + distance) * decay))
        by_slope = float(pairs @ self._products[below, above] + diagonal @ np.diagonal(self._products))
        by_globals = np.array(
            [
                by_length.sum(),
                spread * float(by_length[:-1] @ u[_GLOBALS:]),
                variance * (float(pairs @ shape) + diagonal.sum()),
                noise * diagonal.sum(),
                slope * by_slope,
            ]
        )
        return value, np.concatenate([_SPREADS * by_globals, spread * by_length[:-1]]) - u


def _followed(rows: Host, labels: Host) -> Host:
    """[q]: the columns that have lengths of their own: all, or those whose ranks go with the ranks of labels most."""
    if rows.shape[1] <= _OWN_LENGTHS:
        return np.arange(rows.shape[1])
    ranks = np.argsort(np.argsort(np.column_stack([rows, labels]), axis=0, kind="stable"), axis=0).astype(float)
    ranks -= ranks.mean(axis=0)
    together = np.abs(ranks[:, :-1].T @ ranks[:, -1])
    return np.sort(np.argsort(-together, kind="stable")[:_OWN_LENGTHS])


def covariance(draws: ProcessDraws, s: int, rows: Host, others: Host) -> Host:
    """[n, N]: the prior covariance of f under draw s, a fresh array."""
    scaled, also = rows / draws.lengths[s], others / draws.lengths[s]
    distance = scaled @ also.T
    distance *= -2.0
    distance += np.sum(scaled**2, axis=1)[:, None]
    distance += np.sum(also**2, axis=1)
    np.maximum(distance, 0.0, out=distance)
    distance *= 5.0
    np.sqrt(distance, out=distance)
    shape = np.negative(distance)
    np.exp(shape, out=shape)
    shape *= 1.0 + distance * (1.0 + distance / 3.0)
    shape *= draws.variance[s]
    shape += CONSTANT
    np.matmul(rows, others.T, out=distance)
    distance *= draws.slope[s] / rows.shape[1]
    shape += distance
    return np.asarray(shape)


def prior_variance(draws: ProcessDraws, s: int, rows: Host) -> Host:
    """[N]: of f under draw s."""
    return np.asarray(draws.variance[s] + CONSTANT + draws.slope[s] * np.mean(rows**2, axis=1))


def solved_for(draws: ProcessDraws, s: int, rows: Host, labels: Host) -> tuple[Host, Host]:
    """[n, n] and [n]: the root L of the covariance of labels under draw s, and L^-1 labels."""
    matrix = covariance(draws, s, rows, rows)
    matrix[np.diag_indices(len(rows))] = prior_variance(draws, s, rows) + draws.noise[s] + _JITTER
    factor = np.linalg.cholesky(matrix)
    return factor, dtrtrs(factor, labels, lower=1)[0]


def predicted(draws: ProcessDraws, s: int, solved: tuple[Host, Host], rows: Host, others: Host) -> tuple[Host, Host]:
    """[N], [N]: mean and variance of labels at `others` under draw s, given those at `rows`."""
    root = dtrtrs(solved[0], covariance(draws, s, rows, others), lower=1)[0]
    left = prior_variance(draws, s, others) - np.sum(root**2, axis=0)
    return solved[1] @ root, np.maximum(left, 0.0) + draws.noise[s] + _JITTER


def leave_one_out(draws: ProcessDraws, s: int, rows: Host, labels: Host) -> Host:
    """[n]: the log density of each label given all others, under draw s."""
    factor, solved = solved_for(draws, s, rows, labels)
    roots = dtrtrs(factor, np.eye(len(rows)), lower=1)[0]  # L^-1
    precision = np.sum(roots**2, axis=0)  # of each label given the others
    gap = (solved @ roots) / precision
    return np.asarray(0.5 * (np.log(precision / (2.0 * np.pi)) - precision * gap**2))


class Chains:
    """Hamiltonian Monte Carlo in the units of the curvature at the most probable u; chains may go on and on."""

    def __init__(
        self, posterior: LogPosterior, before: Host | None, warm_up: int, generator: np.random.Generator
    ) -> None:
        """Warm up, from `before` [chains, t] if given."""
        self._posterior, self._generator = posterior, generator
        self._centre = most_probable_point(posterior, before)
        self._rotation, self._scale = _curvature(posterior, self._centre)
        self._ends = generator.standard_normal((_CHAINS, posterior.size))
        if before is not None:
            self._ends = ((before - self._centre) @ self._rotation) * self._scale
        walks = [_walk(self._at, start, warm_up, generator) for start in self._ends]
        self._ends = np.stack([walked[-1] for walked, _ in walks])
        self._step = float(np.exp(np.mean([math.log(step) for _, step in walks])))

    def go_on(self, draws: int) -> Host:
        """[chains, draws, t]: the next so many of each."""
        walks = [_walk(self._at, end, draws, self._generator, self._step)[0] for end in self._ends]
        self._ends = np.stack([walked[-1] for walked in walks])
        return np.asarray(self._centre + (np.stack(walks) / self._scale) @ self._rotation.T)

    def _at(self, x: Host) -> tuple[float, Host]:
        value, gradient = self._posterior(self._centre + self._rotation @ (x / self._scale))
        return value, (self._rotation.T @ gradient) / self._scale


def _walk(
    at: Callable[[Host], tuple[float, Host]],
    x: Host,
    turns: int,
    generator: np.random.Generator,
    step: float | None = None,
) -> tuple[Host, float]:
    """[turns, t]: one chain with this step, or one whose step is set as it goes; and the step at the end."""
    kept, length = np.empty((turns, len(x))), step or _STEP
    value, gradient = at(x)
    for turn in range(turns):
        momentum = generator.standard_normal(len(x))
        energy = value - 0.5 * momentum @ momentum
        short = _SHORT if turn % _EVERY == _EVERY - 1 else 1.0
        stride, leaps = short * length * generator.uniform(0.8, 1.2), generator.integers(_LEAPS[0], _LEAPS[1] + 1)
        place, height, slope = x, value, gradient
        for _ in range(leaps):
            momentum = momentum + 0.5 * stride * slope
            place = place + stride * momentum
            height, slope = at(place)
            momentum = momentum + 0.5 * stride * slope
            if height <= _NOWHERE:
                break
        gain = height - 0.5 * momentum @ momentum - energy
        chance = math.exp(min(0.0, float(gain))) if math.isfinite(gain) else 0.0
        if generator.random() < chance:
            x, value, gradient = place, height, slope
        if step is None and short == 1.0:
            length *= math.exp(0.5 * (chance - _ACCEPTED) / math.sqrt(1.0 + turn / 4.0))
        kept[turn] = x
    return kept, length


def most_probable_point(posterior: LogPosterior, before: Host | None = None) -> Host:
    """[t]: the most probable u, from a few starts: much noise, little; or from the mean of `before` [chains, t]."""
    starts = np.zeros((3, posterior.size))
    starts[1, [0, 3]], starts[2, [0, 3]] = (-0.5, -1.0), (0.7, 1.0)
    if before is not None:
        starts = before.mean(axis=0, keepdims=True)

    def downhill(u: Host) -> tuple[float, Host]:
        value, gradient = posterior(u)
        return -value, -gradient

    found: list[Any] = [
        minimize(downhill, start, jac=True, method="L-BFGS-B", options={"maxiter": 40}) for start in starts
    ]
    return np.asarray(min(found, key=lambda each: float(each.fun)).x)


def _curvature(posterior: LogPosterior, centre: Host) -> tuple[Host, Host]:
    """[t, t] and [t]: principal directions of minus the log density, and the roots of its curvature along them."""
    rows = [
        (posterior(centre - step)[1] - posterior(centre + step)[1]) / (2.0 * _DIFFERENCE)
        for step in _DIFFERENCE * np.eye(len(centre))
    ]
    curvature = np.stack(rows)
    values, directions = np.linalg.eigh((curvature + curvature.T) / 2.0)
    return np.asarray(directions), np.sqrt(np.maximum(values, _WIDEST))


def r_hat(values: Host, weights: Host) -> Host:
    """[...]: how much wider all chains together are than each by itself, for values [chains, draws, ...].

    `weights` [chains, draws] sum to one; with equal weights it is Gelman and Rubin's.
    """
    share = weights.sum(axis=1)  # [chains]
    given = (weights / share[:, None]).reshape(*weights.shape, *[1] * (values.ndim - 2))
    means = np.sum(given * values, axis=1)  # [chains, ...]
    within = np.mean(np.sum(given * (values - means[:, None]) ** 2, axis=1), axis=0)
    between = np.var(means, axis=0, ddof=1)
    return np.asarray(np.sqrt(1.0 + between / np.where(within > 0, within, 1.0)))


def median_distance(rows: Host) -> float:
    """Between rows [n, p]; where rows are equal or alone, that of standard columns, sqrt(2 p)."""
    distances = pdist(rows[:: max(1, len(rows) // _ENOUGH)])
    found = float(np.median(distances)) if len(distances) else 0.0
    return found if found > 0 else math.sqrt(2.0 * rows.shape[1])
