"""Hyperparameters of a process given labels: their density, predictions under draws of them, and the chains that draw.

    labels = f + noise      cov(f, f') = v m(r) + c + a x'x' / p      m: Matern 5/2
    r^2 = sum_d (x_d - x'_d)^2 / l_d^2      log l_d = level + spread e_d

on columns and labels in standard units. Everything is a function of standard normals u (level, log spread, log v,
log noise, log a, e_1 .. e_q), so that the prior is N(0, I). First comes the density of u, then predictions given it,
labels seen through a warp, and the chains.

Sizes: n labels, p columns, q of them with lengths of their own, N rows of any table, S draws, c pairs of labels,
t = 5 + q hyperparameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from stakes._utils.compute import has_jit, loop
from stakes._utils.tables import Host

GLOBALS = 5  # level, log spread, log variance, log noise, log slope
MEDIANS = np.log([2.5, 0.8, 1.0, 0.1, 0.1])  # the length in median distances between rows, and the others as they are
SPREADS = np.array([0.75, 0.5, 1.0, 1.5, 1.5])  # standard deviations of the logarithms
LEAST_NOISE = 1e-4  # of the variance of labels
JITTER = 1e-8
CONSTANT = 1.0
"""Prior variance of the mean of f."""
_OWN_LENGTHS = 60  # columns, at most
_CHAINS = 4
LEAPS = (4, 8)  # of a trajectory, from .. to
ACCEPTED = 0.8  # the share of trajectories that the step is set for
STEP = 0.45  # to begin with
EVERY, SHORT = 5, 0.3  # one trajectory in so many is so much shorter, so that no chain stays in a narrow place
DIFFERENCE = 1e-4  # of the gradient, for the curvature
WIDEST = 0.8  # least curvature, that of the prior being 1
FURTHEST = 12.0  # standard deviations of the prior
NOWHERE = -1e25  # the log density beyond
_LOOKED_AT = 300  # rows whose distances are looked at
EVIDENT = 5.0  # what a warp must gain in leave-one-out log density
_APART = 2.0  # labels within this factor are as straight through a warp as without

WarpChoice: TypeAlias = Literal["auto", "softplus"] | None
"""Whether labels are seen through a warp: if evidence says so, always, never."""


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


class LogPosterior(NamedTuple):
    """log p(u | labels) up to a constant, and its gradient."""

    labels: Host
    """[n]"""
    pairs: tuple[Host, Host]
    """[c], [c]: positions of labels"""
    squares: Host
    """[q + 1, c]: squared differences of each column with a length of its own, and of all others together"""
    products: Host
    """[n, n]: x'x' / p"""
    own: Host
    """[q]: which columns have lengths of their own"""
    columns: int
    """p"""
    centres: Host
    """[5]: medians of level, log spread, log variance, log noise and log slope"""
    known_noise: Host | float = 0.0
    """[n]: the variance that each label is known to have beside the noise"""

    @classmethod
    def of(cls, rows: Host, labels: Host, median: float, known_noise: Host | float = 0.0) -> LogPosterior:
        """Of rows [n, p] and labels [n] in standard units; `median` is the typical distance of rows."""
        count, columns = rows.shape
        above, below = np.triu_indices(count, 1)
        own = columns_followed(rows, labels)
        squares = (rows[above] - rows[below]) ** 2  # [c, p]
        rest = np.setdiff1d(np.arange(columns), own)
        parts = [squares[:, own].T, squares[:, rest].sum(axis=1)[None]]
        centres = MEDIANS + np.array([math.log(median), 0.0, 0.0, 0.0, 0.0])
        together = np.ascontiguousarray(np.concatenate(parts))
        return cls(labels, (above, below), together, rows @ rows.T / columns, own, columns, centres, known_noise)

    @property
    def size(self) -> int:
        """How many hyperparameters there are, t."""
        return GLOBALS + len(self.own)

    def draws(self, u: Host) -> ProcessDraws:
        """The hyperparameters of standard normals u [S, t]."""
        logs = self.centres + SPREADS * u[:, :GLOBALS]
        lengths = np.repeat(np.exp(logs[:, :1]), self.columns, axis=1)
        lengths[:, self.own] = np.exp(np.clip(logs[:, :1] + np.exp(logs[:, 1:2]) * u[:, GLOBALS:], -50.0, 50.0))
        return ProcessDraws(lengths, np.exp(logs[:, 2]), LEAST_NOISE + np.exp(logs[:, 3]), np.exp(logs[:, 4]))

    def __call__(self, u: Host) -> tuple[float, Host]:
        """The value and its gradient [t] at u [t]; far out, where the covariance has no root, almost -inf."""
        if not np.all(np.abs(u) < FURTHEST):
            return NOWHERE, np.zeros_like(u)
        level, log_spread, log_variance, log_noise, log_slope = self.centres + SPREADS * u[:GLOBALS]
        spread, variance, slope = math.exp(log_spread), math.exp(log_variance), math.exp(log_slope)
        noise, (above, below) = math.exp(log_noise), self.pairs
        logs = np.append(level + np.clip(spread * u[GLOBALS:], -50.0, 50.0), level)
        inverse = np.exp(-2.0 * logs)  # [q + 1]
        distance = np.sqrt(5.0 * (inverse @ self.squares))  # [c]
        decay = np.exp(-distance)
        shape = (1.0 + distance + distance**2 / 3.0) * decay
        matrix = np.empty((len(self.labels), len(self.labels)), order="F")
        matrix[below, above] = variance * shape
        np.fill_diagonal(matrix, variance + noise + LEAST_NOISE + JITTER + self.known_noise)
        matrix += CONSTANT + slope * self.products
        factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            return NOWHERE, np.zeros_like(u)
        solved = dtrtrs(factor, self.labels, lower=1)[0]
        value = -0.5 * float(solved @ solved) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * float(u @ u)
        weights = dtrtrs(factor, solved, lower=1, trans=1)[0]
        inverse_matrix = dpotri(factor, lower=1)[0]
        diagonal = 0.5 * (weights**2 - np.diagonal(inverse_matrix))  # d value / d K
        pairs = weights[above] * weights[below] - inverse_matrix[below, above]
        by_length = (5.0 / 3.0) * variance * inverse * (self.squares @ (pairs * (1.0 + distance) * decay))
        by_slope = float(pairs @ self.products[below, above] + diagonal @ np.diagonal(self.products))
        by_globals = np.array(
            [
                by_length.sum(),
                spread * float(by_length[:-1] @ u[GLOBALS:]),
                variance * (float(pairs @ shape) + diagonal.sum()),
                noise * diagonal.sum(),
                slope * by_slope,
            ]
        )
        return value, np.concatenate([SPREADS * by_globals, spread * by_length[:-1]]) - u


def columns_followed(rows: Host, labels: Host) -> Host:
    """[q]: the columns that have lengths of their own: all, or those whose ranks go with the ranks of labels most."""
    if rows.shape[1] <= _OWN_LENGTHS:
        return np.arange(rows.shape[1])
    ranks = np.argsort(np.argsort(np.column_stack([rows, labels]), axis=0, kind="stable"), axis=0).astype(float)
    ranks -= ranks.mean(axis=0)
    together = np.abs(ranks[:, :-1].T @ ranks[:, -1])
    return np.sort(np.argsort(-together, kind="stable")[:_OWN_LENGTHS])


def covariance_of(draws: ProcessDraws, s: int, rows: Host, others: Host) -> Host:
    """[n, N]: the prior covariance of f under draw s, a fresh array."""
    scaled, also = rows / draws.lengths[s], others / draws.lengths[s]
    squares = scaled @ also.T
    squares *= -2.0
    squares += np.sum(scaled**2, axis=1)[:, None]
    squares += np.sum(also**2, axis=1)
    line = rows @ others.T
    line *= draws.slope[s] / rows.shape[1]
    if has_jit():
        _add_matern(squares, float(draws.variance[s]), line)
        return np.asarray(line)
    distance = np.sqrt(5.0 * np.maximum(squares, 0.0, out=squares))
    return np.asarray(
        line + CONSTANT + draws.variance[s] * (1.0 + distance * (1.0 + distance / 3.0)) * np.exp(-distance)
    )


@loop
def _add_matern(squares: Any, variance: float, total: Any) -> None:
    """Add the constant and Matern 5/2 of squared distances [n, N] to `total`."""
    for i in range(squares.shape[0]):
        for j in range(squares.shape[1]):
            distance = math.sqrt(5.0 * max(squares[i, j], 0.0))
            total[i, j] += CONSTANT + variance * (1.0 + distance * (1.0 + distance / 3.0)) * math.exp(-distance)


def prior_variance(draws: ProcessDraws, s: int, rows: Host) -> Host:
    """[N]: of f under draw s."""
    return np.asarray(draws.variance[s] + CONSTANT + draws.slope[s] * np.mean(rows**2, axis=1))


def label_covariance(draws: ProcessDraws, s: int, rows: Host) -> Host:
    """[n, n]: of labels at rows [n, p] under draw s."""
    matrix = covariance_of(draws, s, rows, rows)
    matrix[np.diag_indices(len(rows))] = prior_variance(draws, s, rows) + draws.noise[s] + JITTER
    return matrix


def solved_for(draws: ProcessDraws, s: int, rows: Host, labels: Host) -> tuple[Host, Host]:
    """[n, n] and [n]: the root L of the covariance of labels under draw s, and L^-1 labels."""
    factor = np.linalg.cholesky(label_covariance(draws, s, rows))
    return factor, dtrtrs(factor, labels, lower=1)[0]


def seen_through(labels: Host, scale: float | None) -> tuple[Host, Host]:
    """[n], [n]: f with labels = scale log(1 + exp(f)), and the logarithm of its slope; None: labels as they are."""
    if scale is None:
        return labels, np.zeros_like(labels)
    below = -np.expm1(-labels / scale)
    return labels / scale + np.log(below), -np.log(scale * below)


def scales_of(labels: Host, warp: WarpChoice) -> list[float | None]:
    """Those of the warps to choose from, for labels [n]; None for none."""
    least, most, mean = (float(each) for each in (labels.min(), labels.max(), labels.mean()))
    if warp == "softplus":
        return [mean]
    return [None, mean] if warp == "auto" and least > 0.0 and most > _APART * least else [None]


def leave_one_out(draws: ProcessDraws, rows: Host, labels: Host) -> float:
    """The log density of each label [n] given all others under the first draw, summed.

    With K the covariance of labels and a = K^-1 labels, label i given the others is normal about itself less
    a_i / (K^-1)_ii, with variance 1 / (K^-1)_ii.
    """
    factor, solved = solved_for(draws, 0, rows, labels)
    inverse_root = dtrtrs(factor, np.eye(len(rows)), lower=1)[0]
    precision, weights = np.sum(inverse_root**2, axis=0), inverse_root.T @ solved
    return float(0.5 * np.sum(np.log(precision / (2.0 * np.pi)) - weights**2 / precision))


def of_labels_left_out(solved: Sequence[tuple[Host, Host]]) -> tuple[Host, Host]:
    """[n], [n]: how far each label is from its mean given all others, and its variance given them, over draws [S].

    Draws are weighed by what they said of the other labels: by 1 / p(label | others), cut off at sqrt(S) times the
    mean weight.

    Args:
        solved: By draw, the root of the covariance of labels and what it makes of them, as `solved_for` gives them.
    """
    gaps, variances = [], []
    for factor, labels in solved:
        inverse_root = dtrtrs(factor, np.eye(len(labels)), lower=1)[0]
        variances.append(1.0 / np.sum(inverse_root**2, axis=0))
        gaps.append(variances[-1] * (inverse_root.T @ labels))
    gap, variance = np.stack(gaps), np.stack(variances)  # [S, n]
    logs = 0.5 * (np.log(variance) + gap**2 / variance)
    weights = np.exp(logs - logs.max(axis=0))
    weights = np.minimum(weights / weights.sum(axis=0), len(weights) ** -0.5)
    weights /= weights.sum(axis=0)
    mean = np.sum(weights * gap, axis=0)
    return mean, np.sum(weights * (variance + (gap - mean) ** 2), axis=0)


def predicted(draws: ProcessDraws, s: int, solved: tuple[Host, Host], rows: Host, others: Host) -> tuple[Host, Host]:
    """[N], [N]: mean and variance of labels at `others` under draw s, given those at `rows`."""
    root = dtrtrs(solved[0], covariance_of(draws, s, rows, others), lower=1)[0]
    left = prior_variance(draws, s, others) - np.sum(root**2, axis=0)
    return solved[1] @ root, np.maximum(left, 0.0) + draws.noise[s] + JITTER


def chains_of(
    posterior: LogPosterior,
    before: Host | None,
    warm_up: int,
    generator: np.random.Generator,
    centre: Host | None = None,
) -> Callable[[int], Host]:
    """A function to the next so many draws [chains, .., t] of warm chains, from `before` [chains, t] if given.

    `centre` [t] is the most probable point, which is searched for unless it is given.
    """
    centre = most_probable_point(posterior, before) if centre is None else centre
    rotation, scale = _curvature(posterior, centre)

    def at(x: Host) -> tuple[float, Host]:
        value, gradient = posterior(centre + rotation @ (x / scale))
        return value, (rotation.T @ gradient) / scale

    starts = generator.standard_normal((_CHAINS, posterior.size))
    if before is not None:
        starts = ((before - centre) @ rotation) * scale
    walks = [_walk(at, start, warm_up, generator) for start in starts]
    ends = [walked[-1] for walked, _ in walks]
    step = float(np.exp(np.mean([math.log(last) for _, last in walks])))

    def go_on(draws: int) -> Host:
        found = np.stack([_walk(at, end, draws, generator, step)[0] for end in ends])
        ends[:] = found[:, -1]
        return np.asarray(centre + (found / scale) @ rotation.T)

    return go_on


def _walk(
    at: Callable[[Host], tuple[float, Host]],
    x: Host,
    turns: int,
    generator: np.random.Generator,
    step: float | None = None,
) -> tuple[Host, float]:
    """[turns, t]: one chain with this step, or one whose step is set as it goes; and the step at the end."""
    kept, length = np.empty((turns, len(x))), step or STEP
    value, gradient = at(x)
    for turn in range(turns):
        momentum = generator.standard_normal(len(x))
        energy = value - 0.5 * momentum @ momentum
        short = SHORT if turn % EVERY == EVERY - 1 else 1.0
        stride, leaps = short * length * generator.uniform(0.8, 1.2), generator.integers(LEAPS[0], LEAPS[1] + 1)
        place, height, slope = x, value, gradient
        for _ in range(leaps):
            momentum = momentum + 0.5 * stride * slope
            place = place + stride * momentum
            height, slope = at(place)
            momentum = momentum + 0.5 * stride * slope
            if height <= NOWHERE:
                break
        gain = height - 0.5 * momentum @ momentum - energy
        acceptance = math.exp(min(0.0, float(gain))) if math.isfinite(gain) else 0.0
        if generator.random() < acceptance:
            x, value, gradient = place, height, slope
        if step is None and short == 1.0:
            length *= math.exp(0.5 * (acceptance - ACCEPTED) / math.sqrt(1.0 + turn / 4.0))
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
        (posterior(centre - step)[1] - posterior(centre + step)[1]) / (2.0 * DIFFERENCE)
        for step in DIFFERENCE * np.eye(len(centre))
    ]
    curvature = np.stack(rows)
    values, directions = np.linalg.eigh((curvature + curvature.T) / 2.0)
    return np.asarray(directions), np.sqrt(np.maximum(values, WIDEST))


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
    distances = pdist(rows[:: max(1, len(rows) // _LOOKED_AT)])
    found = float(np.median(distances)) if len(distances) else 0.0
    return found if found > 0 else math.sqrt(2.0 * rows.shape[1])
