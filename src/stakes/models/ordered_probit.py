"""An ordered probit process: classes that have an order, as steps of a smooth function.

    y = the number of cut points below f + noise      f: a Gaussian process, noise: standard normal

so that P(y = c | f) = Phi(b_(c+1) - f) - Phi(b_c - f), b_0 = -inf, b_C = inf (McCullagh, 1980; Chu and Ghahramani,
2005). Lengths, variance and slope of the process have the priors of `BayesianProcess`; cut points stand about those at
which classes would be as frequent as they are, the gaps between them log-normal. Everything is a function of standard
normals, which elliptical slice sampling (Murray, Adams and MacKay, 2010) draws given the labels: nothing to tune.

A member is a function: f at the labels as drawn, and elsewhere a draw given these, by Matheron's rule with random
features for the prior (Wilson et al., 2020). So members are the same functions at whatever rows, and what a label at
one row tells about another is in them.

Sizes: n labels, p columns, N rows, C classes, S draws, R functions for each, K = S R members, F features,
t hyperparameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.special import log_ndtr, ndtr, ndtri
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.array import slices
from stakes._utils.tables import Host, n_rows
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts
from stakes.models.bayesian_process import BayesianProcess
from stakes.models.encoding import as_labels, check_classes, positions_of
from stakes.models.ensembles import prepare_table
from stakes.models.process_hyperparameters import CONSTANT, LogPosterior, ProcessDraws, covariance_of

_BURN_IN, _BETWEEN = 120, 8  # turns of the chain before the first draw that is kept, and from one to the next
_LATENT_STEPS = 3  # of f in each turn, beside one of hyperparameters and cut points
_FUNCTIONS = 8  # R
_FEATURES = 256  # F
_DEGREES = 5  # of freedom of the frequencies of a Matern 5/2 process
_JITTER = 1e-6
_SCALE = 2.0  # the usual sd of f + noise, by which cut points are set from frequencies
_GAP, _SHIFT = 0.5, 0.7  # sd of the logarithm of a gap, and of the first cut point
_ROWS = 1024  # at a time


class ProbitDraw(NamedTuple):
    """One draw: a process, its values at the labels, cut points, and functions through these values."""

    s: int
    """Of the hyperparameters"""
    cuts: Host
    """[C + 1], the outer ones infinite"""
    frequencies: Host
    """[p, F]"""
    phases: Host
    """[F]"""
    feature_weights: Host
    """[F, R]"""
    line: Host
    """[1 + p, R]: the constant and slopes"""
    label_weights: Host
    """[n, R]"""


class OrderedProbit(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classes that have an order, by an ordered probit process that averages over its hyperparameters.

    Columns are encoded by `TableEncoder`. A high class rules out low ones more than medium ones, which models of
    classes without an order have to learn.

    Args:
        classes: All classes from the lowest to the highest; None: those of the labels, which are then numbers.
        n_draws: How many draws of the process; 8 functions of each are members.
        random_state: A whole number or a generator.

    Attributes:
        classes_: [C]: from the lowest to the highest.
        draws_: The hyperparameters, a `ProcessDraws`.
        cuts_: [S, C - 1]: cut points of each draw.

    Examples:
        >>> import numpy as np
        >>> from stakes.models import OrderedProbit
        >>> X = np.linspace(-2.0, 2.0, 30)[:, None]
        >>> grades = np.digitize(X[:, 0], [-1.0, 1.0])
        >>> model = OrderedProbit().fit(X, grades)
        >>> model.predict([[-1.9], [0.0], [1.9]]).tolist()
        [0, 1, 2]
    """

    def __init__(self, classes: Sequence[Any] | None = None, n_draws: int = 25, random_state: RandomState = 0) -> None:
        self.classes = classes
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any, pool: Any = None) -> OrderedProbit:  # noqa: N803
        """Draw functions and cut points given the labels.

        Args:
            X: A table [n, p] of any columns, gaps allowed.
            y: Labels [n].
            pool: Other rows [N, p] by which columns are encoded, too; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If there is no label, one is none of the classes, or classes without numbers have no order.
        """
        if self.n_draws < 1:
            raise StakesError(f"n_draws must be 1 or more; got {self.n_draws!r}")
        labels = as_labels(y, n_rows(X))
        if self.classes is None and labels.dtype.kind not in "iuf":
            raise StakesError(
                "classes must be given from the lowest to the highest, since labels are no numbers; those of the "
                f"labels are {sorted(set(map(str, labels.tolist())))}"
            )
        self.classes_ = check_classes(labels, self.classes)
        self.columns_ = BayesianProcess()
        rows = self.columns_.fit_columns(X, pool)
        self.n_features_in_ = self.columns_.n_features_in_
        self._fit_standard(rows, positions_of(labels, self.classes_), np.random.default_rng(as_seed(self.random_state)))
        return self

    def _fit_standard(self, rows: Host, labels: Host, generator: np.random.Generator) -> None:
        """Of rows [n, p] in standard units and positions of classes [n]."""
        self.labels_, self.train_ = labels, rows
        posterior = LogPosterior.of(rows, labels.astype(float), self.columns_.median_)
        chain = _Chain(posterior, rows, labels, _cut_points(labels, len(self.classes_)), generator)
        for _ in range(_BURN_IN):
            chain.turn()
        kept = []
        for _ in range(self.n_draws):
            for _ in range(_BETWEEN):
                chain.turn()
            kept.append((chain.hyperparameters.copy(), chain.cuts.copy(), chain.values.copy()))
        self.draws_ = posterior.draws(np.stack([each for each, _, _ in kept]))
        self.cuts_ = np.stack([cuts[1:-1] for _, cuts, _ in kept])
        self._functions = [
            _through(self.draws_, s, rows, values, cuts, generator) for s, (_, cuts, values) in enumerate(kept)
        ]

    def member_probabilities(self, X: Any) -> Host:  # noqa: N803
        """What each member says of the class of each row.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N, K, C].
        """
        check_is_fitted(self, "draws_")
        rows = self.columns_.standard_rows(X)
        found = np.empty((len(rows), len(self._functions) * _FUNCTIONS, len(self.classes_)))
        for part in slices(len(rows), _ROWS) if len(rows) else ():
            for draw in self._functions:
                values = _values(self.draws_, draw, self.train_, rows[part])  # [N, R]
                below = ndtr(draw.cuts[None, None, :] - values[..., None])  # [N, R, C + 1]
                here = slice(draw.s * _FUNCTIONS, (draw.s + 1) * _FUNCTIONS)
                found[part, here] = np.maximum(np.diff(below, axis=2), 0.0)
        return np.asarray(found / found.sum(axis=2, keepdims=True))

    def predict_proba(self, X: Any) -> Host:  # noqa: N803
        """Class probabilities: the mean of the members.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N, C].
        """
        return np.asarray(self.member_probabilities(X).mean(axis=1))

    def predict(self, X: Any) -> Host:  # noqa: N803
        """The most probable class.

        Args:
            X: A table [N, p] with the columns of `fit`.

        Returns:
            [N].
        """
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def __sklearn_tags__(self) -> Any:
        """Gaps and text may come in."""
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.estimator_type = "classifier"
        return tags


@adapts(OrderedProbit)
def _prepare(model: OrderedProbit, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    """The members as an ensemble of classes."""
    check_is_fitted(model, "draws_")
    there = prepare_table(
        model.member_probabilities(contexts), target=target, classes=classes, known=model.classes_.tolist()
    )
    return lambda rows: there(model.member_probabilities(rows))


def _cut_points(labels: Host, count: int) -> Host:
    """[C - 1]: where cut points stand if f + noise has the usual sd and classes are as frequent as they are."""
    share = np.cumsum(np.bincount(labels, minlength=count) + 1.0)[:-1] / (len(labels) + count)
    return np.asarray(_SCALE * ndtri(share))


def log_probabilities(values: Host, lower: Host, upper: Host) -> Host:
    """[n]: log(Phi(upper - f) - Phi(lower - f)), in the tail in which nothing cancels."""
    low, high = lower - values, upper - values
    flipped = low > 0
    low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
    top = log_ndtr(high)
    with np.errstate(divide="ignore"):  # an interval too narrow for numbers
        return np.asarray(top + np.log(-np.expm1(np.minimum(log_ndtr(low) - top, 0.0))))


class _Chain:
    """The state of a chain: f at the labels, whitened, and hyperparameters and cut points, all standard normals."""

    def __init__(
        self, posterior: LogPosterior, rows: Host, labels: Host, centres: Host, generator: np.random.Generator
    ) -> None:
        self.posterior, self.rows, self.labels = posterior, rows, labels
        self.centres, self.generator = centres, generator
        self.white = np.zeros(len(rows))
        self.hyperparameters = np.zeros(posterior.size)
        self.steps = np.zeros(len(centres))
        """of cut points"""
        self.factor = self._factor(self.hyperparameters)
        self.cuts = self._cuts(self.steps)

    @property
    def values(self) -> Host:
        """[n]: f at the labels."""
        return np.asarray(self.factor @ self.white)

    def turn(self) -> None:
        """One turn of the chain: the function a few times, and once all that it depends on."""
        for _ in range(_LATENT_STEPS):
            self.white = _slice(self.white, lambda u: self._likelihood(self.factor @ u, self.cuts), self.generator)
        found = _slice(np.concatenate([self.hyperparameters, self.steps]), self.likelihood_at, self.generator)
        self.hyperparameters, self.steps = np.split(found, [len(self.hyperparameters)])
        self.factor, self.cuts = self._factor(self.hyperparameters), self._cuts(self.steps)

    def likelihood_at(self, u: Host) -> float:
        """The log likelihood at hyperparameters and steps of cut points; -inf so far out that there is no root."""
        hyperparameters, steps = np.split(u, [len(self.hyperparameters)])
        try:
            factor = self._factor(hyperparameters)
        except np.linalg.LinAlgError:
            return -math.inf
        return self._likelihood(factor @ self.white, self._cuts(steps))

    def _likelihood(self, values: Host, cuts: Host) -> float:
        return float(np.sum(log_probabilities(values, cuts[self.labels], cuts[self.labels + 1])))

    def _factor(self, u: Host) -> Host:
        draws = self.posterior.draws(u[None, :])
        return _root(covariance_of(draws, 0, self.rows, self.rows))

    def _cuts(self, steps: Host) -> Host:
        """[C + 1]: the first about its centre, the others by gaps."""
        first = self.centres[0] + _SHIFT * steps[0]
        gaps = np.diff(self.centres) * np.exp(_GAP * steps[1:])
        return np.concatenate([[-np.inf], first + np.concatenate([[0.0], np.cumsum(gaps)]), [np.inf]])


def _root(covariance: Host) -> Host:
    size = float(np.mean(np.diagonal(covariance)))
    return np.asarray(cholesky(covariance + _JITTER * size * np.eye(len(covariance)), lower=True, check_finite=False))


def _slice(u: Host, likelihood: Callable[[Host], float], generator: np.random.Generator) -> Host:
    """The next state of a chain whose prior is N(0, I), by elliptical slice sampling."""
    other = generator.standard_normal(len(u))
    level = likelihood(u) + math.log(generator.random())
    angle = generator.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    while True:
        found = u * math.cos(angle) + other * math.sin(angle)
        if likelihood(found) >= level or high - low < 1e-12:
            return np.asarray(found if high - low >= 1e-12 else u)
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = generator.uniform(low, high)


def _through(
    draws: ProcessDraws, s: int, rows: Host, values: Host, cuts: Host, generator: np.random.Generator
) -> ProbitDraw:
    """R functions that have these values [n] at the labels, drawn elsewhere."""
    columns = rows.shape[1]
    chi = np.sqrt(generator.chisquare(_DEGREES, size=_FEATURES) / _DEGREES)
    frequencies = generator.standard_normal((columns, _FEATURES)) / chi / draws.lengths[s][:, None]
    scale = math.sqrt(2.0 * draws.variance[s] / _FEATURES)
    line = generator.standard_normal((1 + columns, _FUNCTIONS))
    line *= np.sqrt(np.append(CONSTANT, np.full(columns, draws.slope[s] / columns)))[:, None]
    prior = ProbitDraw(
        s,
        cuts,
        frequencies,
        generator.uniform(0.0, 2.0 * math.pi, size=_FEATURES),
        scale * generator.standard_normal((_FEATURES, _FUNCTIONS)),
        line,
        np.zeros((len(rows), _FUNCTIONS)),
    )
    root = _root(covariance_of(draws, s, rows, rows))
    missing = values[:, None] - _values(draws, prior, rows, rows)
    return prior._replace(label_weights=cho_solve((root, True), missing, check_finite=False))


def _values(draws: ProcessDraws, draw: ProbitDraw, train: Host, rows: Host) -> Host:
    """[N, R]: the functions at rows [N, p]."""
    prior = np.cos(rows @ draw.frequencies + draw.phases) @ draw.feature_weights + draw.line[0] + rows @ draw.line[1:]
    if not draw.label_weights.any():
        return np.asarray(prior)
    return np.asarray(prior + covariance_of(draws, draw.s, rows, train) @ draw.label_weights)
