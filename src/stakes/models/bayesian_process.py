"""A Gaussian process that averages over draws of its hyperparameters, since ten to a hundred labels do not tell them.

Columns have lengths of their own about a common one: with few labels they stay together, with more they part.
Hyperparameters are drawn by Hamiltonian Monte Carlo in the units of their curvature at the most probable ones. Of many
columns, those that go with the labels most have lengths of their own. `process_hyperparameters` has the density and the
chains.

Sizes: n labels so far, p columns, q of them with lengths of their own, N rows of any table, S draws that are kept,
t = 5 + q hyperparameters.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.tables import Host
from stakes.beliefs import SoftplusWarp, WarpedGaussianBelief
from stakes.beliefs.warped import warped_moments
from stakes.exceptions import StakesError
from stakes.models.base import LabelsLeftOut, RowsToBelief, adapts
from stakes.models.encoding import TableEncoder
from stakes.models.gp_posterior import KernelPosterior, prepare_averaged, prepare_mixture
from stakes.models.process_hyperparameters import (
    EVIDENT,
    LogPosterior,
    ProcessDraws,
    WarpChoice,
    chains_of,
    covariance_of,
    leave_one_out,
    median_distance,
    most_probable_point,
    of_labels_left_out,
    predicted,
    prior_variance,
    r_hat,
    scales_of,
    seen_through,
    solved_for,
)

_WARM_UP, _DRAWS = 20, 60  # of a chain
_AGREED, _MORE = 1.1, 2  # above this R-hat chains go on, so many times
_SHORTER = 100  # labels, beyond which chains are half as long
_ENOUGH = 0.3  # the share of draws that must be left, effectively, once new labels weigh them
_MIDDLE = 50  # places between labels, at which chains are compared
_FULL = 300  # labels, beyond which fewer draws are kept: each takes a factor of their covariance
_FEWEST = 2
_PAIRS, _CONTEXTS = 300_000_000, 1000  # covariances of rows that all draws take together, for as many contexts


class BayesianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression that averages over draws of its hyperparameters, for tables of any columns.

    The covariance is Matern 5/2 with a length for each column, drawn about a common one, beside a constant and a
    straight line; the labels have noise. Columns are encoded by `TableEncoder`.

    Args:
        n_draws: How many draws are kept. Beyond 300 labels, or 17,000 rows of a pool, it keeps fewer, but 2 at least.
        limit: Where columns are cut off, in their standard deviations, so that an outlier does not stretch them.
        max_rows: The most labels that hyperparameters are drawn with; the others count in predictions alone.
        belief: What `belief_of` makes of the draws. "mixture": a Gaussian for each draw, so that a label is also worth
            what it tells about hyperparameters; quick for squared error, exponential weights, Linex and threshold
            decisions. "gaussian": one Gaussian with the means and covariances of that mixture, within draws and between
            them. It is quick for every loss and exact for batches; docs/theory.md says what is lost.
        random_state: A whole number or a generator.
        warp: Whether labels are seen through a warp, z = scale log(1 + exp(f)) with their mean for scale: f is the
            process, so that effects multiply where labels are small. "auto": where all labels are positive and their
            leave-one-out log density gains 5 or more by it. "softplus": always. None: never. With belief="gaussian"
            the belief has the means and variances of labels, and the correlations of f.

    Attributes:
        warp_: The warp, a `SoftplusWarp`; None where labels are modelled as they are.
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
        warp: WarpChoice = "auto",
    ) -> None:
        self.n_draws = n_draws
        self.limit = limit
        self.max_rows = max_rows
        self.belief = belief
        self.random_state = random_state
        self.warp = warp

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
        self.check_parameters()
        self.train_ = self.fit_columns(X, pool)
        self.labels_, self._seed = self._checked(y, self.encoder_.n_samples_seen_), as_seed(self.random_state)
        return self._draw(None)

    def fit_columns(self, X: Any, pool: Any = None) -> Host:  # noqa: N803
        """Learn how columns are encoded, as `fit` does first.

        Args:
            X: A table [n, p] of any columns, gaps allowed.
            pool: Other rows [N, p] that count, too; None: none.

        Returns:
            [n, q]: the rows of X in standard units.
        """
        self.encoder_ = TableEncoder().fit(X, pool=pool)
        features = self._encoded(X)
        every = features if pool is None else np.concatenate([features, self._encoded(pool)])
        self.centre_, spread = every.mean(axis=0), every.std(axis=0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        self.n_features_in_, self._pool_size = self.encoder_.n_features_in_, len(every) - len(features)
        self.median_ = median_distance(self._standard(every))
        return self._standard(features)

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
        rows = self.standard_rows(X)
        labels = self._checked(y, len(rows))
        before = len(self.labels_)
        self.train_, self.labels_ = np.concatenate([self.train_, rows]), np.concatenate([self.labels_, labels])
        if before < 3 or len(self.labels_) > 2 * self._sampled or not (labels > self._least).all():
            return self._draw(None)
        if not 0.5 < float(self._latent().std()) / self.unit_ < 2.0:
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
        rows = self.standard_rows(X)
        found = [predicted(self.draws_, s, solved, self.train_, rows) for s, solved in enumerate(self._solved)]
        mean, variance = (np.stack(each) for each in zip(*found, strict=True))  # [S, N]
        average = mean.mean(axis=0)
        spread = self.unit_**2 * (variance + (mean - average) ** 2).mean(axis=0)
        average = self.offset_ + self.unit_ * average
        if self.warp_ is not None:
            average, spread = warped_moments(self.warp_, average, spread)
        return (average, np.sqrt(spread)) if return_std else average

    def left_out(self) -> LabelsLeftOut:
        """What the model says of each of its labels, left out: in closed form for each draw of the hyperparameters.

        Returns:
            Means and variances of labels given all others, averaged over draws, beside the labels.
        """
        check_is_fitted(self, "draws_")
        gap, variance = of_labels_left_out(self._solved)
        mean = self.offset_ + self.unit_ * (self._targets() - gap)
        variance = self.unit_**2 * variance
        if self.warp_ is not None:
            mean, variance = warped_moments(self.warp_, mean, variance)
        return LabelsLeftOut(np.asarray(mean), np.asarray(variance), self.labels_)

    def posteriors(self) -> list[KernelPosterior]:
        """[S]: what each draw knows of f, behind the warp where there is one, on rows in standard units."""
        check_is_fitted(self, "draws_")
        return [
            KernelPosterior(
                partial(covariance_of, self.draws_, s),
                partial(_diagonal, self.draws_, s),
                self.train_,
                factor,
                solved,
                offset=self.offset_,
                unit=self.unit_,
            )
            for s, (factor, solved) in enumerate(self._solved)
        ]

    def check_parameters(self) -> None:
        """Refuse parameters that cannot be."""
        for name, least in (("n_draws", 1), ("max_rows", 3)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
                raise StakesError(f"{name} must be a whole number, {least} or more; got {given!r}")
        if self.belief not in ("gaussian", "mixture"):
            raise StakesError(f"belief must be 'gaussian' or 'mixture'; got {self.belief!r}")
        if self.warp not in ("auto", "softplus", None):
            raise StakesError(f"warp must be 'auto', 'softplus' or None; got {self.warp!r}")
        if not self.limit > 0:
            raise StakesError(f"limit must be a positive number of standard deviations; got {self.limit!r}")

    def _encoded(self, X: Any) -> Host:  # noqa: N803
        encoded = self.encoder_.transform(X)
        if not isinstance(encoded, np.ndarray):
            raise StakesError("X must be dense: a process needs the distances of all rows. Use X.toarray() if it fits")
        return encoded if encoded.shape[1] else np.zeros((len(encoded), 1))  # columns are all constant

    def standard_rows(self, X: Any) -> Host:  # noqa: N803
        """The rows of a table as the draws take them.

        Args:
            X: A table [N, p].

        Returns:
            [N, q], in standard units.
        """
        return self._standard(self._encoded(X))

    def _standard(self, features: Host) -> Host:
        return np.asarray(np.clip((features - self.centre_) / self.spread_, -self.limit, self.limit))

    def _draw(self, before: Host | None) -> BayesianProcess:
        """Draw hyperparameters, from `before` [chains, t] if given."""
        count = len(self.labels_)
        generator = np.random.default_rng([self._seed, count])
        some = np.arange(count)
        if count > self.max_rows:
            some = np.sort(generator.choice(count, self.max_rows, replace=False))
        centre = self._see_through(some, before)
        long = _DRAWS if len(some) <= _SHORTER else _DRAWS // 2
        go_on = chains_of(self._posterior, before, _WARM_UP, generator, centre)
        self._chains, self._sampled = go_on(long), count  # [chains, draws, t]
        for _ in range(_MORE):
            self._log_weights = np.zeros(self._chains.shape[:2])
            if max(self._r_hat(self._weights())) < _AGREED:
                break
            self._chains = np.concatenate([self._chains, go_on(long)], axis=1)
        self._log_weights = np.zeros(self._chains.shape[:2])
        return self._keep()

    def _see_through(self, some: Host, before: Host | None) -> Host:
        """Choose the warp for the labels at `some`; the most probable point [t] under it."""
        found = []
        for scale in scales_of(self.labels_, self.warp):
            latent, log_slope = seen_through(self.labels_, scale)
            offset, unit = float(latent.mean()), float(latent.std()) or 1.0
            rows, targets = self.train_[some], (latent[some] - offset) / unit
            posterior = LogPosterior.of(rows, targets, self.median_)
            point = most_probable_point(posterior, before)
            density = leave_one_out(posterior.draws(point[None]), rows, targets)
            density += float(np.sum(log_slope[some] - math.log(unit)))
            found.append((density, scale, offset, unit, posterior, point))
        self._gain = found[-1][0] - found[0][0]
        chosen = found[-1] if len(found) == 1 or self._gain >= EVIDENT else found[0]
        _, scale, self.offset_, self.unit_, self._posterior, point = chosen
        self.warp_ = None if scale is None else SoftplusWarp(scale)
        self._least = -math.inf if scale is None else 0.0
        return point

    def _latent(self) -> Host:
        """[n]: labels, seen through the warp."""
        return seen_through(self.labels_, None if self.warp_ is None else self.warp_.scale)[0]

    def _checked(self, y: Any, count: int) -> Host:
        """[n]: labels as numbers that the warp allows."""
        labels = finite_labels(y, count)
        if self.warp == "softplus" and not labels.min() > 0.0:
            raise StakesError(
                f"warp='softplus' needs positive labels; the least is {labels.min():g}. Take warp='auto', which "
                "has none then, or CountProcess for counts"
            )
        return labels

    def _keep(self) -> BayesianProcess:
        """Choose the draws to keep, by weight, and prepare predictions."""
        count, weights = len(self.labels_), self._weights()
        self.r_hat_ = self._r_hat(weights)
        enough = min(self.n_draws * _FULL**2 // count**2, _PAIRS // max(1, self._pool_size * (count + _CONTEXTS)))
        kept = max(min(_FEWEST, self.n_draws), min(self.n_draws, enough))
        middles = (np.arange(kept) + 0.5) / kept
        chosen = np.minimum(np.searchsorted(np.cumsum(weights), middles), weights.size - 1)
        self.draws_ = self._posterior.draws(self._chains.reshape(weights.size, -1)[chosen])
        self._solved = [solved_for(self.draws_, s, self.train_, self._targets()) for s in range(kept)]
        self.report_ = self._sentences(kept)
        return self

    def _targets(self) -> Host:
        return (self._latent() - self.offset_) / self.unit_

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
        if self.warp_ is not None:
            gain = f"; leave-one-out log density gains {self._gain:.1f}" if self.warp == "auto" else ""
            sentences.append(
                f"Labels are seen through a warp, exponential below {self.warp_.scale:.4g} and straight above{gain}."
            )
        if self._sampled < count:
            sentences.append(f"Drawn with {self._sampled} labels, and weighed by the {count - self._sampled} since.")
        if count > self.max_rows:
            sentences.append(f"Hyperparameters were drawn with {self.max_rows} of {count} labels.")
        if kept < self.n_draws:
            size = f"{count} labels" + (f" and {self._pool_size} other rows" if self._pool_size else "")
            sentences.append(f"With {size} {kept} draws are kept, not {self.n_draws}, to save time.")
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


def finite_labels(y: Any, count: int) -> Host:
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
    """A mixture with a Gaussian belief for each draw, warped where labels are; or one Gaussian belief in its place."""
    posteriors, there = model.posteriors(), model.standard_rows(contexts)
    if model.belief == "gaussian":
        averaged = prepare_averaged(posteriors, there, target=target, joint=joint, warp=model.warp_)
        return lambda rows: averaged(model.standard_rows(rows))
    prepared, warp = prepare_mixture(posteriors, there, target=target, joint=joint), model.warp_
    if warp is None:
        return lambda rows: prepared(model.standard_rows(rows))
    return lambda rows: WarpedGaussianBelief(prepared(model.standard_rows(rows)), warp)
