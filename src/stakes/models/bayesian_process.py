"""A Gaussian process that averages over its hyperparameters, which `stakes.models.process_draws` draws.

Sizes: n labels so far, p columns, q encoded ones, N rows of any table, S draws that are kept, A all draws.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.tables import Host
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts
from stakes.models.encoding import TableEncoder
from stakes.models.gp_posterior import KernelPosterior, prepare_averaged, prepare_mixture
from stakes.models.process_draws import (
    Chains,
    LogPosterior,
    ProcessDraws,
    covariance,
    median_distance,
    predicted,
    prior_variance,
    r_hat,
    solved_for,
)

_WARM_UP, _DRAWS = 20, 60  # of a chain
_AGREED, _MORE = 1.1, 2  # above this R-hat chains go on, so many times
_SHORTER = 100  # labels, beyond which chains are half as long
_ENOUGH = 0.3  # the share of draws that must be left, effectively, once new labels weigh them
_MIDDLE = 50  # places between labels, at which chains are compared
_FULL = 300  # labels, beyond which fewer draws are kept: each takes a factor of their covariance
_FEWEST = 4


class BayesianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression that averages over draws of its hyperparameters, for tables of any columns.

    The covariance is Matern 5/2 with a length for each column, drawn about a common one, beside a constant and a
    straight line; the labels have noise. Columns are encoded by `TableEncoder`.

    Args:
        n_draws: How many draws are kept. Beyond 300 labels it keeps fewer, in proportion, but 4 at least.
        limit: Where columns are cut off, in their standard deviations, so that an outlier does not stretch them.
        max_rows: The most labels that hyperparameters are drawn with; the others count in predictions alone.
        belief: What `belief_of` makes of the draws. "mixture": a Gaussian for each draw, so that a label is also worth
            what it tells about hyperparameters; quick for squared error, exponential weights, Linex and threshold
            decisions. "gaussian": one Gaussian with the means and covariances of that mixture, within draws and between
            them. It is quick for every loss and exact for batches, and buys labels as well: docs/theory.md says how
            that was measured.
        random_state: A whole number or a generator.

    Attributes:
        draws_: The hyperparameters, a `ProcessDraws`: lengths [S, q], variance, noise and slope [S], in standard units.
        r_hat_: A pair: R-hat over four chains of predicted means, and of logarithms of predicted standard deviations,
            between labels (medians over places). Near 1 the chains agree.
        report_: Sentences on what was done.

    Examples:
        >>> import numpy as np
        >>> from stakes import BayesianProcess
        >>> X = np.random.default_rng(0).normal(size=(30, 3))
        >>> model = BayesianProcess().fit(X, np.sin(2.0 * X[:, 0]))  # the other columns do not matter
        >>> lengths = np.median(model.draws_.lengths, axis=0)
        >>> bool(lengths[0] < lengths[1] and lengths[0] < lengths[2])
        True
    """

    def __init__(
        self,
        n_draws: int = 16,
        limit: float = 3.0,
        max_rows: int = 200,
        belief: Literal["gaussian", "mixture"] = "gaussian",
        random_state: RandomState = 0,
    ) -> None:
        self.n_draws = n_draws
        self.limit = limit
        self.max_rows = max_rows
        self.belief = belief
        self.random_state = random_state

    def fit(self, X: Any, y: Any, pool: Any = None) -> BayesianProcess:  # noqa: N803
        """Draw hyperparameters given the labels.

        Args:
            X: A table [n, p] of any columns, gaps allowed.
            y: Labels [n].
            pool: Other rows [N, p] by which columns are encoded, too; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If there is no label, shapes disagree, or a label is not a finite number.
        """
        self._check()
        self.encoder_ = TableEncoder().fit(X, pool=pool)
        labels = _finite_labels(y, self.encoder_.n_samples_seen_)
        features = self._encoded(X)
        every = features if pool is None else np.concatenate([features, self._encoded(pool)])
        self.centre_, spread = every.mean(axis=0), every.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        self.n_features_in_ = self.encoder_.n_features_in_
        self.median_ = median_distance(self._standard(every))
        self.train_, self.labels_ = self._standard(features), labels
        self._seed = as_seed(self.random_state)
        return self._draw(None)

    def partial_fit(self, X: Any, y: Any) -> BayesianProcess:  # noqa: N803
        """Go on with more labels, which takes a fraction of the time.

        Draws are weighed by what each said of the new labels. Where few of them are left, effectively, or the spread of
        labels is no longer what it was, they are drawn anew, from where they were.

        Args:
            X: More rows [n, p].
            y: Their labels [n].

        Returns:
            The model itself.

        Raises:
            StakesError: If shapes disagree, or a label is not a finite number.
        """
        if not hasattr(self, "draws_"):
            return self.fit(X, y)
        rows = self._standard(self._encoded(X))
        labels = _finite_labels(y, len(rows))
        before = len(self.labels_)
        self.train_, self.labels_ = np.concatenate([self.train_, rows]), np.concatenate([self.labels_, labels])
        unit = float(self.labels_.std())
        if before < 3 or len(self.labels_) > 2 * self._sampled or not 0.5 < unit / self.unit_ < 2.0:
            return self._draw(None)
        if len(self.labels_) <= self.max_rows:  # beyond, hyperparameters stay as they are
            self._log_weights += self._predictive(before)
        weights = self._weights()
        if 1.0 / np.sum(weights**2) < _ENOUGH * weights.size:
            generator = np.random.default_rng([self._seed, len(self.labels_), 1])
            places = generator.choice(weights.size, len(self._chains), p=weights.ravel())
            return self._draw(self._chains.reshape(weights.size, -1)[places])
        return self._keep()

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """The mean of a label at each row, averaged over draws.

        Args:
            X: A table [N, p].
            return_std: Whether to give the standard deviation of a label beside it, noise included.

        Returns:
            [N], or a pair of [N].
        """
        check_is_fitted(self, "draws_")
        rows = self._standard(self._encoded(X))
        found = [predicted(self.draws_, s, solved, self.train_, rows) for s, solved in enumerate(self._solved)]
        mean, variance = (np.stack(each) for each in zip(*found, strict=True))  # [S, N]
        average = mean.mean(axis=0)
        if not return_std:
            return self.offset_ + self.unit_ * average
        sd = np.sqrt((variance + (mean - average) ** 2).mean(axis=0))
        return self.offset_ + self.unit_ * average, self.unit_ * sd

    def posteriors(self) -> list[KernelPosterior]:
        """[S]: what each draw knows of f, on rows in standard units."""
        check_is_fitted(self, "draws_")
        return [
            KernelPosterior(
                partial(covariance, self.draws_, s),
                partial(_diagonal, self.draws_, s),
                self.train_,
                factor,
                solved,
                offset=self.offset_,
                unit=self.unit_,
            )
            for s, (factor, solved) in enumerate(self._solved)
        ]

    def standard(self, X: Any) -> Host:  # noqa: N803
        """[N, q]: the rows of a table [N, p] as the draws take them, in standard units."""
        check_is_fitted(self, "draws_")
        return self._standard(self._encoded(X))

    def _check(self) -> None:
        for name, least in (("n_draws", 1), ("max_rows", 3)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
                raise StakesError(f"{name} must be a whole number, {least} or more; got {given!r}")
        if self.belief not in ("gaussian", "mixture"):
            raise StakesError(f"belief must be 'gaussian' or 'mixture'; got {self.belief!r}")
        if not self.limit > 0:
            raise StakesError(f"limit must be a positive number of standard deviations; got {self.limit!r}")

    def _encoded(self, X: Any) -> Host:  # noqa: N803
        encoded = self.encoder_.transform(X)
        if not isinstance(encoded, np.ndarray):
            raise StakesError("X must be dense: a process needs the distances of all rows. Use X.toarray() if it fits")
        return encoded if encoded.shape[1] else np.zeros((len(encoded), 1))  # columns are all constant

    def _standard(self, features: Host) -> Host:
        return np.asarray(np.clip((features - self.centre_) / self.spread_, -self.limit, self.limit))

    def _draw(self, before: Host | None) -> BayesianProcess:
        """Draw hyperparameters, from `before` [chains, t] if given."""
        unit, count = float(self.labels_.std()), len(self.labels_)
        self.offset_, self.unit_ = float(self.labels_.mean()), unit if unit > 0 else 1.0
        generator = np.random.default_rng([self._seed, count])
        some = np.arange(count)
        if count > self.max_rows:
            some = np.sort(generator.choice(count, self.max_rows, replace=False))
        self._posterior = LogPosterior(self.train_[some], self._targets()[some], self.median_)
        long = _DRAWS if len(some) <= _SHORTER else _DRAWS // 2
        chains = Chains(self._posterior, before, _WARM_UP, generator)
        self._chains, self._sampled = chains.go_on(long), count  # [chains, draws, t]
        for _ in range(_MORE):
            self._log_weights = np.zeros(self._chains.shape[:2])
            if max(self._r_hat(self._weights())) < _AGREED:
                break
            self._chains = np.concatenate([self._chains, chains.go_on(long)], axis=1)
        self._log_weights = np.zeros(self._chains.shape[:2])
        return self._keep()

    def _keep(self) -> BayesianProcess:
        """Choose the draws to keep, by weight, and prepare predictions."""
        count, weights = len(self.labels_), self._weights()
        self.r_hat_ = self._r_hat(weights)
        kept = max(min(_FEWEST, self.n_draws), min(self.n_draws, self.n_draws * _FULL // count))
        middles = (np.arange(kept) + 0.5) / kept
        chosen = np.minimum(np.searchsorted(np.cumsum(weights), middles), weights.size - 1)
        self.draws_ = self._posterior.draws(self._chains.reshape(weights.size, -1)[chosen])
        self._solved = [solved_for(self.draws_, s, self.train_, self._targets()) for s in range(kept)]
        self.report_ = self._sentences(kept)
        return self

    def _targets(self) -> Host:
        return (self.labels_ - self.offset_) / self.unit_

    def _weights(self) -> Host:
        """[chains, draws]: of all draws, which sum to one."""
        found = np.exp(self._log_weights - self._log_weights.max())
        return np.asarray(found / found.sum())

    def _every(self, step: int = 1) -> tuple[ProcessDraws, tuple[int, int]]:
        """All draws, or every few of each chain, and how many chains and draws of a chain they are."""
        few = self._chains[:, ::step]
        return self._posterior.draws(few.reshape(-1, few.shape[-1])), few.shape[:2]

    def _predictive(self, before: int) -> Host:
        """[chains, draws]: the log density of labels from position `before` on, given those that came earlier."""
        draws, shape = self._every()
        rows, targets = self.train_, self._targets()
        found = np.empty(shape[0] * shape[1])
        for s in range(len(found)):
            factor, solved = solved_for(draws, s, rows, targets)
            found[s] = -0.5 * solved[before:] @ solved[before:] - np.sum(np.log(np.diagonal(factor)[before:]))
        return found.reshape(shape)

    def _r_hat(self, weights: Host) -> tuple[float, float]:
        """Of predicted means and log standard deviations, medians over places between labels."""
        step = max(1, weights.shape[1] // 20)
        draws, shape = self._every(step)
        rows, targets = self.train_[: self.max_rows], self._targets()[: self.max_rows]
        places = rows[:_MIDDLE]
        places = (places + np.roll(places, 1, axis=0)) / 2.0
        found = []
        for s in range(shape[0] * shape[1]):
            mean, variance = predicted(draws, s, solved_for(draws, s, rows, targets), rows, places)
            found.append(np.stack([mean, 0.5 * np.log(variance)]))
        values, few = np.stack(found).reshape(*shape, 2, -1), weights[:, ::step]
        means, sds = np.median(r_hat(values, few / few.sum()), axis=-1)
        return float(means), float(sds)

    def _sentences(self, kept: int) -> tuple[str, ...]:
        means, sds = self.r_hat_
        count, sentences = len(self.labels_), []
        agree = f"R-hat {means:.2f} of means and {sds:.2f} of standard deviations"
        sentences.append(f"{kept} draws of the hyperparameters by Hamiltonian Monte Carlo; {agree} over four chains.")
        if self._sampled < count:
            sentences.append(f"Drawn with {self._sampled} labels, and weighed by the {count - self._sampled} since.")
        if count > self.max_rows:
            sentences.append(f"Hyperparameters were drawn with {self.max_rows} of {count} labels.")
        if kept < self.n_draws:
            sentences.append(f"With {count} labels {kept} draws are kept, not {self.n_draws}, to save time.")
        if (own := len(self._posterior.own)) < self.train_.shape[1]:
            rest = self.train_.shape[1] - own
            sentences.append(f"{own} columns have lengths of their own; the other {rest} share one.")
        return tuple(sentences)

    def __sklearn_tags__(self) -> Any:
        """Gaps and text may come in."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags


def _diagonal(draws: ProcessDraws, s: int, rows: Host) -> tuple[Host, Host]:
    """[N], [N]: the variance of f under draw s, and that of the noise of a label."""
    return prior_variance(draws, s, rows), np.full(len(rows), draws.noise[s])


def _finite_labels(y: Any, count: int) -> Host:
    """[n]: labels as numbers."""
    labels = np.asarray(y, dtype=float)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (count,) or count == 0:
        raise StakesError(f"y must hold a label for each of {count} rows; got shape {list(labels.shape)}")
    if not np.isfinite(labels).all():
        raise StakesError("y must hold finite numbers")
    return labels


@adapts(BayesianProcess)
def _process(model: BayesianProcess, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """A mixture with one Gaussian belief for each draw, or one Gaussian belief in its place."""
    posteriors, there = model.posteriors(), model.standard(contexts)
    prepare: Any = prepare_mixture if model.belief == "mixture" else prepare_averaged
    prepared = prepare(posteriors, there, target=target, joint=joint)
    return lambda rows: prepared(model.standard(rows))
