"""A Gaussian process whose hyperparameters are averaged over, since ten to a hundred labels do not tell what they are.

    labels = unit (offset + f + noise)      cov(f, f') = v m(r) + 1 + a x'x' / p      m: Matern 5/2
    r^2 = sum_d (x_d - x'_d)^2 / l_d^2      log l_d = level + spread e_d

on columns in standard units, cut off at `limit`. The columns have lengths of their own about a common one: with few
labels they stay together, with more they part. Everything is a function of standard normals u (level, log spread, log v,
log noise, log a, e_1..e_p), so that the prior is N(0, I), and the posterior of u is drawn from by Hamiltonian Monte
Carlo in the units of its curvature at the most probable u.

Sizes: n labels, p columns, S draws, t = 5 + p hyperparameters, c pairs of labels, N rows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.tables import Host
from stakes.exceptions import StakesError

_GLOBALS = 5  # level, log spread, log variance, log noise, log slope
_MEDIANS = np.log([1.5, 0.8, 1.0, 0.1, 0.1])  # the length in median distances between rows, and the others as they are
_SPREADS = np.array([0.75, 0.5, 1.0, 1.5, 1.5])  # standard deviations of the logarithms
_LEAST_NOISE = 1e-4  # of the variance of labels
_CONSTANT = 1.0  # prior variance of the mean of f
_JITTER = 1e-8
_CHAINS = 4
_WARM_UP, _DRAWS = 20, 60  # of a chain
_FEWER_WARM_UP, _FEWER_DRAWS = 5, 20  # where chains go on from earlier labels
_LEAPS = (4, 8)  # of a trajectory
_ACCEPTED = 0.8  # the share of trajectories that the step is set for
_STEP = 0.45  # to begin with
_DIFFERENCE = 1e-4  # of the gradient, for the curvature
_WIDEST = 0.8  # least curvature, that of the prior being 1
_FURTHEST = 12.0  # standard deviations of the prior
_NOWHERE = -1e25  # the log density beyond
_ENOUGH = 300  # rows whose distances are looked at


class Hyperparameters(NamedTuple):
    """Draws of them, in standard units of columns and labels."""

    lengths: Host
    """[S, p]"""
    variance: Host
    """[S]: of the part of f that bends"""
    noise: Host
    """[S]: variance of a label about f"""
    slope: Host
    """[S]: prior variance of f along a straight line, at a typical row"""


class BayesianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression that averages over draws of its hyperparameters.

    Args:
        n_draws: How many draws of the hyperparameters are kept.
        limit: Where columns are cut off, in their standard deviations, so that an outlier does not stretch them.
        max_rows: The most labels that hyperparameters are drawn with; the others count in predictions alone.
        random_state: A whole number or a generator.

    Examples:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(30, 3))
        >>> model = BayesianProcess().fit(X, np.sin(2.0 * X[:, 0]))  # two columns do not matter
        >>> lengths = np.median(model.hyperparameters_.lengths, axis=0)
        >>> bool(lengths[0] < lengths[1] and lengths[0] < lengths[2])
        True
    """

    def __init__(
        self, n_draws: int = 16, limit: float = 3.0, max_rows: int = 200, random_state: RandomState = 0
    ) -> None:
        self.n_draws = n_draws
        self.limit = limit
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, pool: Any = None) -> BayesianProcess:  # noqa: N803
        """Draw hyperparameters given the labels.

        Args:
            X: Rows [n, p] of numbers.
            y: Labels [n].
            pool: Other rows [N, p] by which columns are put in standard units, too; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If there is no label, shapes disagree, or a number is not finite.
        """
        rows, labels = _checked(X, y)
        every = rows if pool is None else np.concatenate([rows, _checked(pool)[0]])
        if every.shape[1] != rows.shape[1]:
            raise StakesError(f"pool must have the {rows.shape[1]} columns of X; got {every.shape[1]}")
        self.centre_, spread = every.mean(axis=0), every.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        self.n_features_in_ = rows.shape[1]
        self.median_ = _median_distance(self._standard(every))
        self._rows, self._labels, self._chains, self._step = rows, labels, None, _STEP
        return self._draw(_WARM_UP, _DRAWS)

    def partial_fit(self, X: Any, y: Any) -> BayesianProcess:  # noqa: N803
        """Go on with more labels: chains start where they were, which takes a fraction of the time.

        Args:
            X: More rows [n, p].
            y: Their labels [n].

        Returns:
            The model itself.

        Raises:
            StakesError: If shapes disagree, or a number is not finite.
        """
        if not hasattr(self, "_labels"):
            return self.fit(X, y)
        rows, labels = _checked(X, y)
        if rows.shape[1] != self.n_features_in_:
            raise StakesError(f"X must have the {self.n_features_in_} columns of fit; got {rows.shape[1]}")
        self._rows, self._labels = np.concatenate([self._rows, rows]), np.concatenate([self._labels, labels])
        return self._draw(_FEWER_WARM_UP, _FEWER_DRAWS)

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """The mean of a label at each row, averaged over draws.

        Args:
            X: Rows [N, p].
            return_std: Whether to give the standard deviation of a label beside it, noise included.

        Returns:
            [N], or a pair of [N].
        """
        check_is_fitted(self, "hyperparameters_")
        mean, variance = self.predictions(X)
        average = mean.mean(axis=0)
        if not return_std:
            return average
        return average, np.sqrt((variance + (mean - average) ** 2).mean(axis=0))

    def predictions(self, X: Any) -> tuple[Host, Host]:  # noqa: N803
        """What each draw predicts.

        Args:
            X: Rows [N, p].

        Returns:
            [S, N] each: mean and variance of a label, noise included.
        """
        check_is_fitted(self, "hyperparameters_")
        rows = self._standard(_checked(X)[0])
        found = [self._under(s, rows) for s in range(len(self.factors_))]
        mean, variance = (np.stack(each) for each in zip(*found, strict=True))
        return self.offset_ + self.unit_ * mean, self.unit_**2 * variance

    def _under(self, s: int, rows: Host) -> tuple[Host, Host]:
        """[N], [N]: mean and variance of labels under draw s, in standard units."""
        here = Hyperparameters(*(each[s : s + 1] for each in self.hyperparameters_))
        cross = covariance(here, self.train_, rows)[0]  # [n, N]
        solved = solve_triangular(self.factors_[s], cross, lower=True, check_finite=False)
        prior = here.variance + _CONSTANT + here.slope * np.mean(rows**2, axis=1)
        return self.solved_[s] @ solved, np.maximum(prior - np.sum(solved**2, axis=0), 0.0) + here.noise

    def _standard(self, rows: Host) -> Host:
        return np.clip((rows - self.centre_) / self.spread_, -self.limit, self.limit)

    def _draw(self, warm_up: int, draws: int) -> BayesianProcess:
        """Draw hyperparameters, and prepare predictions."""
        labels = self._labels
        unit = float(labels.std())
        self.offset_, self.unit_ = float(labels.mean()), unit if unit > 0 else 1.0
        self.train_, targets = self._standard(self._rows), (labels - self.offset_) / self.unit_
        generator = np.random.default_rng([as_seed(self.random_state), len(labels)])
        some = np.arange(len(labels))
        if len(labels) > self.max_rows:
            some = np.sort(generator.choice(len(labels), self.max_rows, replace=False))
        posterior = LogPosterior(self.train_[some], targets[some], self.median_)
        chains, self._step = sample(posterior, self._chains, self._step, warm_up, draws, generator)  # [chains, draws, t]
        self._chains = chains[:, -1]
        every = chains.shape[0] * chains.shape[1]
        kept = np.round(np.linspace(0, every - 1, self.n_draws)).astype(int)
        self.hyperparameters_ = posterior.hyperparameters(chains.reshape(every, -1)[kept])
        self.factors_, self.solved_ = _solved(self.hyperparameters_, self.train_, targets)
        self.r_hat_ = self._r_hat(posterior, chains, targets)
        self.report_ = _report(self, len(some))
        return self

    def _r_hat(self, posterior: LogPosterior, chains: Host, targets: Host) -> tuple[float, float]:
        """Of predictive means and log standard deviations, the median over labelled rows moved a little."""
        few = chains[:, :: max(1, chains.shape[1] // 20)]
        hyper = posterior.hyperparameters(few.reshape(-1, few.shape[-1]))
        rows = self.train_[:_ENOUGH:1][:50]
        rows = (rows + np.roll(rows, 1, axis=0)) / 2.0  # between labels, where draws differ
        factors, solved = _solved(hyper, self.train_[: self.max_rows], targets[: self.max_rows])
        found = []
        for s in range(len(factors)):
            here = Hyperparameters(*(each[s : s + 1] for each in hyper))
            root = solve_triangular(factors[s], covariance(here, self.train_[: self.max_rows], rows)[0], lower=True)
            prior = here.variance + _CONSTANT + here.slope * np.mean(rows**2, axis=1)
            variance = np.maximum(prior - np.sum(root**2, axis=0), 0.0) + here.noise
            found.append(np.stack([solved[s] @ root, 0.5 * np.log(variance)]))
        values = np.stack(found).reshape(*few.shape[:2], 2, -1)
        return tuple(float(np.median(r_hat(values[:, :, i]))) for i in (0, 1))  # type: ignore[return-value]


class LogPosterior:
    """log p(u | labels) up to a constant, and its gradient."""

    def __init__(self, rows: Host, labels: Host, median: float) -> None:
        count, columns = rows.shape
        self._above, self._below = np.triu_indices(count, 1)
        self._squares = np.ascontiguousarray(((rows[self._above] - rows[self._below]) ** 2).T)  # [p, c]
        self._products = rows @ rows.T / columns  # [n, n]
        self._labels, self._count = labels, count
        self._centres = _MEDIANS + np.array([math.log(median), 0.0, 0.0, 0.0, 0.0])
        self.size = _GLOBALS + columns

    def hyperparameters(self, u: Host) -> Hyperparameters:
        """Of standard normals [S, t]."""
        logs = self._centres + _SPREADS * u[:, :_GLOBALS]
        lengths = np.exp(np.clip(logs[:, :1] + np.exp(logs[:, 1:2]) * u[:, _GLOBALS:], -50.0, 50.0))
        return Hyperparameters(lengths, np.exp(logs[:, 2]), _LEAST_NOISE + np.exp(logs[:, 3]), np.exp(logs[:, 4]))

    def __call__(self, u: Host) -> tuple[float, Host]:
        """The value and its gradient [t] at u [t]; far out, where the covariance has no root, almost -inf."""
        if not np.all(np.abs(u) < _FURTHEST):
            return _NOWHERE, np.zeros_like(u)
        (lengths,), (variance,), (noise,), (slope,) = self.hyperparameters(u[None])
        inverse = lengths**-2.0
        distance = np.sqrt(5.0 * (inverse @ self._squares))  # [c]
        decay = np.exp(-distance)
        shape = (1.0 + distance + distance**2 / 3.0) * decay
        matrix = np.empty((self._count, self._count), order="F")
        matrix[self._below, self._above] = variance * shape
        np.fill_diagonal(matrix, variance + noise + _JITTER)
        matrix += _CONSTANT + slope * self._products
        factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        if failed:
            return _NOWHERE, np.zeros_like(u)
        solved = dtrtrs(factor, self._labels, lower=1)[0]
        value = -0.5 * float(solved @ solved) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * float(u @ u)
        weights = dtrtrs(factor, solved, lower=1, trans=1)[0]
        inverse_matrix = dpotri(factor, lower=1)[0]
        diagonal = 0.5 * (weights**2 - np.diagonal(inverse_matrix))  # d value / d K
        pairs = weights[self._above] * weights[self._below] - inverse_matrix[self._below, self._above]
        by_length = (5.0 / 3.0) * variance * inverse * (self._squares @ (pairs * (1.0 + distance) * decay))
        spread = math.exp(self._centres[1] + _SPREADS[1] * u[1])
        by_slope = float(pairs @ self._products[self._below, self._above] + diagonal @ np.diagonal(self._products))
        by_globals = np.array(
            [
                by_length.sum(),
                spread * float(by_length @ u[_GLOBALS:]),
                variance * (float(pairs @ shape) + diagonal.sum()),
                (noise - _LEAST_NOISE) * diagonal.sum(),
                slope * by_slope,
            ]
        )
        return value, np.concatenate([_SPREADS * by_globals, spread * by_length]) - u


def covariance(hyper: Hyperparameters, rows: Host, others: Host) -> Host:
    """[S, n, N]: prior covariance of f."""
    scaled, also = rows / hyper.lengths[:, None, :], others / hyper.lengths[:, None, :]
    squares = np.sum(scaled**2, axis=2)[:, :, None] + np.sum(also**2, axis=2)[:, None, :]
    distance = np.sqrt(5.0 * np.maximum(squares - 2.0 * scaled @ np.swapaxes(also, 1, 2), 0.0))
    shape = (1.0 + distance + distance**2 / 3.0) * np.exp(-distance)
    line = rows @ others.T / rows.shape[1]
    return hyper.variance[:, None, None] * shape + _CONSTANT + hyper.slope[:, None, None] * line


def sample(
    posterior: LogPosterior, before: Host | None, step: float, warm_up: int, draws: int, generator: Any
) -> tuple[Host, float]:
    """[chains, draws, t] by Hamiltonian Monte Carlo about the most probable u, and the step that served.

    From `before` [chains, t], if given.
    """
    centre = most_probable_point(posterior, before)
    rotation, scale = _curvature(posterior, centre)

    def at(x: Host) -> tuple[float, Host]:
        value, gradient = posterior(centre + rotation @ (x / scale))
        return value, (rotation.T @ gradient) / scale

    chains, steps = np.empty((_CHAINS, draws, posterior.size)), []
    for chain in range(_CHAINS):
        start = generator.standard_normal(posterior.size)
        if before is not None:
            start = (rotation.T @ (before[chain] - centre)) * scale
        walk, found = _walk(at, start, step, warm_up, draws, generator)
        chains[chain] = centre + (walk / scale) @ rotation.T
        steps.append(found)
    return chains, float(np.exp(np.mean(np.log(steps))))


def _walk(at: Any, x: Host, step: float, warm_up: int, draws: int, generator: Any) -> tuple[Host, float]:
    """[draws, t]: one chain; and its step, which is set while it warms up."""
    kept = np.empty((draws, len(x)))
    value, gradient = at(x)
    for turn in range(warm_up + draws):
        momentum = generator.standard_normal(len(x))
        energy = value - 0.5 * momentum @ momentum
        length, leaps = step * generator.uniform(0.8, 1.2), generator.integers(_LEAPS[0], _LEAPS[1] + 1)
        place, height, slope = x, value, gradient
        for _ in range(leaps):
            momentum = momentum + 0.5 * length * slope
            place = place + length * momentum
            height, slope = at(place)
            momentum = momentum + 0.5 * length * slope
            if height <= _NOWHERE:
                break
        gain = height - 0.5 * momentum @ momentum - energy
        chance = math.exp(min(0.0, gain)) if math.isfinite(gain) else 0.0
        if generator.random() < chance:
            x, value, gradient = place, height, slope
        if turn < warm_up:
            step *= math.exp(0.5 * (chance - _ACCEPTED) / math.sqrt(1.0 + turn / 4.0))
        else:
            kept[turn - warm_up] = x
    return kept, step


def most_probable_point(posterior: LogPosterior, before: Host | None) -> Host:
    """[t]: the most probable u, from a few starts: much noise, little, or where chains were."""
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
    return np.asarray(min(found, key=lambda each: each.fun).x)


def _curvature(posterior: LogPosterior, centre: Host) -> tuple[Host, Host]:
    """[t, t] and [t]: principal directions of minus the log density, and the roots of its curvature along them."""
    rows = [
        (posterior(centre - step)[1] - posterior(centre + step)[1]) / (2.0 * _DIFFERENCE)
        for step in _DIFFERENCE * np.eye(len(centre))
    ]
    curvature = np.stack(rows)
    values, directions = np.linalg.eigh((curvature + curvature.T) / 2.0)
    return directions, np.sqrt(np.maximum(values, _WIDEST))


def r_hat(values: Host) -> Host:
    """[...]: how much wider all chains together are than each by itself, for values [chains, draws, ...]."""
    draws = values.shape[1]
    within = np.mean(np.var(values, axis=1, ddof=1), axis=0)
    between = np.var(np.mean(values, axis=1), axis=0, ddof=1)
    return np.sqrt((draws - 1) / draws + between / np.where(within > 0, within, 1.0))


def _solved(hyper: Hyperparameters, rows: Host, labels: Host) -> tuple[Host, Host]:
    """[S, n, n] and [S, n]: the root L of the covariance of labels, and L^-1 labels."""
    matrices = covariance(hyper, rows, rows)
    matrices += (hyper.noise + _JITTER)[:, None, None] * np.eye(len(rows))
    factors = np.linalg.cholesky(matrices)
    solved = [solve_triangular(factor, labels, lower=True, check_finite=False) for factor in factors]
    return factors, np.stack(solved)


def _median_distance(rows: Host) -> float:
    """Between rows [n, p]; where rows are equal or alone, that of standard columns, sqrt(2 p)."""
    distances = pdist(rows[:: max(1, len(rows) // _ENOUGH)])
    found = float(np.median(distances)) if len(distances) else 0.0
    return found if found > 0 else math.sqrt(2.0 * rows.shape[1])


def _checked(X: Any, y: Any = None) -> tuple[Host, Host]:  # noqa: N803
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape:
        raise StakesError(f"X must hold rows [n, p] of numbers, one at least; got shape {list(rows.shape)}")
    labels = np.zeros(len(rows)) if y is None else np.asarray(y, dtype=float)
    if labels.shape != rows.shape[:1]:
        raise StakesError(f"y must hold a label for each of {len(rows)} rows; got shape {list(labels.shape)}")
    if not (np.isfinite(rows).all() and np.isfinite(labels).all()):
        raise StakesError("X and y must be finite numbers; fill gaps first (stakes.default does)")
    return rows, labels


def _report(model: BayesianProcess, n_rows: int) -> tuple[str, ...]:
    means, sds = model.r_hat_
    notes = [f"{model.n_draws} draws of the hyperparameters; R-hat {means:.2f} of means, {sds:.2f} of sds."]
    if n_rows < len(model._labels):
        notes.append(f"Hyperparameters were drawn with {n_rows} of {len(model._labels)} labels.")
    return tuple(notes)
