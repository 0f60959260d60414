"""A process for counts and positive targets with zeros: Poisson labels about a rate that bends as a Gaussian process.

    y ~ Poisson(rate)      rate = scale log(1 + exp(h))      h = offset + unit (f + e),  e ~ N(0, noise)

f is the process of `BayesianProcess`. Small rates are exponentials of h, so that effects multiply; from the largest
count on they go on as straight lines, so that no mean runs away. e is what counts vary by beyond Poisson's law. Given
hyperparameters the posterior of h is Laplace's: normal about the most probable values, with the curvature that the log
likelihood has there, as if each label were a normal *working label* with a variance of its own. Hyperparameters are
drawn as `BayesianProcess` draws them, for the working labels at the most probable ones, and weighed by the evidence of
each.

Sizes: n labels so far, p columns, N rows of any table, M contexts, S draws that are kept, t hyperparameters, G nodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.special import expit, xlogy
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.array import Array, replaced
from stakes._utils.tables import Host
from stakes.beliefs import SoftplusWarp, WarpedGaussianBelief
from stakes.beliefs.warped import warped_moments
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts
from stakes.models.bayesian_process import BayesianProcess, finite_labels
from stakes.models.gp_posterior import KernelPosterior, Place, prepare_averaged
from stakes.models.process_hyperparameters import (
    LogPosterior,
    ProcessDraws,
    chains_of,
    covariance_of,
    label_covariance,
    most_probable_point,
    prior_variance,
    seen_through,
)

_ROUNDS = 3  # of working labels, at the most probable hyperparameters
_WARM_UP, _DRAWS = 20, 20  # of each chain
_FULL, _FEWEST = 300, 2  # labels, beyond which fewer draws are kept: each takes several factors; draws at least
_HALF = 0.5  # of a count: what 0 is taken for where logarithms begin
_LEAST_UNIT = 0.5  # of h: labels may all be 0
_LEAST_PRECISION = 1e-8
_LEAST_RATE = 1e-12
_STEPS, _HALVINGS, _SETTLED = 40, 12, 1e-12  # of the search for the most probable h
_GRAINS, _FINEST = 7, 1e-9  # units that labels which are no whole numbers may be counted in; the finest, of their mean
_MATCHES, _MATCHED, _DIFFERENCE = 30, 1e-10, 1e-4  # of moments: steps, the error of logarithms, the step of slopes
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)


class CountProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression for counts, and for positive targets with zeros, by a process behind Poisson's law.

    Counts may vary more than Poisson's law has it: by how much is drawn with the other hyperparameters. Labels that are
    not whole numbers are taken for counts of a unit that the evidence chooses. Its belief is about positive numbers, so
    it serves `PoissonDeviance`; the target "label" is the count, the target "latent" the rate.

    Args:
        n_draws: How many draws of hyperparameters are kept. Beyond 300 labels it keeps fewer, but 2 at least.
        limit: Where columns are cut off, in their standard deviations, so that an outlier does not stretch them.
        max_rows: The most labels that hyperparameters are drawn with; the others count in predictions alone.
        random_state: A whole number or a generator.

    Attributes:
        draws_: The hyperparameters, a `ProcessDraws`, in units of the process.
        grain_: The unit that labels are counted in, 1 for whole numbers.
        report_: Sentences on what was done.

    Examples:
        >>> import numpy as np
        >>> from stakes import CountProcess, PoissonDeviance, rank
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 2))
        >>> y = rng.poisson(np.exp(X[:, 0]))
        >>> model = CountProcess().fit(X[:30], y[:30], pool=X[30:])
        >>> bool((model.predict(X) > 0.0).all())
        True
        >>> len(rank(model, PoissonDeviance(), pool=X[30:], n=2).indices)
        2
    """

    def __init__(
        self, n_draws: int = 16, limit: float = 3.0, max_rows: int = 200, random_state: RandomState = 0
    ) -> None:
        self.n_draws = n_draws
        self.limit = limit
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, pool: Any = None) -> CountProcess:  # noqa: N803
        """Draw hyperparameters given the labels, and find the most probable rates under each.

        Args:
            X: A table [n, p] of any columns, gaps allowed.
            y: Counts [n], or other numbers that are 0 or more.
            pool: Other rows [N, p] by which columns are encoded, too; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If there is no label, shapes disagree, or a label is negative or not finite.
        """
        self.columns_ = BayesianProcess(self.n_draws, self.limit, self.max_rows)
        self.columns_.check_parameters()
        self.train_ = self.columns_.fit_columns(X, pool)
        self.n_features_in_ = self.columns_.n_features_in_
        labels = _counts(y, len(self.train_))
        generator = np.random.default_rng([as_seed(self.random_state), len(labels)])
        some = np.arange(len(labels))
        if len(labels) > self.max_rows:
            some = np.sort(generator.choice(len(labels), self.max_rows, replace=False))
        found = self._evident(labels, some)
        self.grain_, self.link_ = found.grain, found.link
        chains = chains_of(found.posterior, None, _WARM_UP, generator)(_DRAWS)
        chains = chains.reshape(-1, chains.shape[-1])
        weights = _weights(found, self.train_[some], labels[some] / found.grain, chains)
        kept = max(min(_FEWEST, self.n_draws), min(self.n_draws, self.n_draws * _FULL**2 // len(labels) ** 2))
        middles = (np.arange(kept) + 0.5) / kept
        chosen = np.minimum(np.searchsorted(np.cumsum(weights), middles), len(weights) - 1)
        self.draws_ = found.posterior.draws(chains[chosen])
        self._modes = self._most_probable(labels / found.grain)
        self.report_ = self._sentences(kept, len(labels), len(some), 1.0 / np.sum(weights**2) / len(weights))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """The mean of a label at each row.

        Args:
            X: A table [N, p].
            return_std: Whether to give the standard deviation of a label beside it.

        Returns:
            [N], or a pair of [N].
        """
        check_is_fitted(self, "draws_")
        rows = self.columns_.standard_rows(X)
        known = prepare_averaged(self.posteriors(), rows, target="latent", joint=False)(rows[:1])
        mean, variance = self.count_moments(known.mean, known.variance)
        return (mean, np.sqrt(variance)) if return_std else mean

    def posteriors(self) -> list[CountPosterior]:
        """[S]: what each draw knows of f in units of h, on rows in standard units."""
        check_is_fitted(self, "draws_")
        kernels = [
            KernelPosterior(
                partial(covariance_of, self.draws_, s),
                partial(_diagonal, self.draws_, s),
                self.train_,
                mode.factor,
                mode.solved,
                offset=self.link_.offset,
                unit=self.link_.unit,
            )
            for s, mode in enumerate(self._modes)
        ]
        return [CountPosterior(kernel, replaced(self.link_, offset=0.0, unit=1.0)) for kernel in kernels]

    def count_moments(self, mean: Host, variance: Host) -> tuple[Host, Host]:
        """Mean and variance of labels, given those of f at their rows.

        Args:
            mean: [M], of f in units of h.
            variance: [M].

        Returns:
            A pair of [M].
        """
        spread = variance + self.link_.unit**2 * float(self.draws_.noise.mean())
        rate, about = warped_moments(self.warp, mean, spread)
        return rate, about + self.grain_ * rate

    @property
    def warp(self) -> SoftplusWarp:
        """From h to the mean of a label."""
        return SoftplusWarp(self.grain_ * self.link_.scale)

    def _evident(self, labels: Host, some: Host) -> _Fitted:
        """Working labels at the most probable hyperparameters; in the unit of labels that the evidence prefers."""
        rows, labels = self.train_[some], labels[some]
        if np.all(labels == np.round(labels)):
            return _fitted(rows, labels, 1.0, self.columns_.median_)
        positive = labels[labels > 0.0]
        finest = max(float(positive.min()) / 10.0, _FINEST * float(positive.mean()))
        grains = np.geomspace(finest, float(positive.mean()), _GRAINS)
        return max(
            (_fitted(rows, labels, grain, self.columns_.median_) for grain in grains), key=lambda each: each.evidence
        )

    def _most_probable(self, counts: Host) -> list[Mode]:
        """[S]: of all labels, under each draw that is kept."""
        start = self.link_.start(counts)
        found = []
        for s in range(len(self.draws_.noise)):
            found.append(most_probable_rates(label_covariance(self.draws_, s, self.train_), counts, self.link_, start))
            start = found[-1].place
        return found

    def _sentences(self, kept: int, count: int, drawn: int, share: float) -> tuple[str, ...]:
        sentences = [
            f"{kept} draws of the hyperparameters, weighed by the evidence of Poisson labels; {share:.0%} of draws are "
            "left, effectively."
        ]
        if self.grain_ != 1.0:
            sentences.append(f"Labels are no whole numbers; the evidence counts them in units of {self.grain_:.3g}.")
        extra = float(np.median(self.link_.unit * np.sqrt(self.draws_.noise)))
        sentences.append(f"Beyond Poisson's law, rates vary by a factor of {math.exp(extra):.2g} from row to row.")
        if drawn < count:
            sentences.append(f"Hyperparameters were drawn with {drawn} of {count} labels.")
        if kept < self.n_draws:
            sentences.append(f"With {count} labels {kept} draws are kept, not {self.n_draws}, to save time.")
        return tuple(sentences)

    def __sklearn_tags__(self) -> Any:
        """Gaps and text may come in; labels are 0 or more."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.target_tags.positive_only = True
        return tags


def _counts(y: Any, count: int) -> Host:
    """[n]: labels, none negative."""
    labels = finite_labels(y, count)
    if (bad := np.flatnonzero(labels < 0.0)).size:
        raise StakesError(
            f"y must hold counts, or other numbers that are 0 or more; {bad.size} of {count} labels are negative, the "
            f"first is {labels[bad[0]]:g}. For negative numbers take BayesianProcess, or leave it to the default"
        )
    return labels


@dataclass(frozen=True)
class Link:
    """rate = scale log(1 + exp(offset + unit h)), in units of the process."""

    scale: float
    offset: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, counts: Host) -> Link:
        """So that labels are near standard units; the scale is the largest count."""
        scale = max(float(counts.max()), 1.0)
        mean = max(float(counts.mean()), _HALF / len(counts))
        logs = seen_through(np.maximum(counts, _HALF), scale)[0]
        return cls(scale, float(seen_through(np.asarray(mean), scale)[0]), max(_LEAST_UNIT, float(logs.std())))

    def start(self, counts: Host) -> Host:
        """[n]: where to look for h first."""
        return np.asarray((seen_through(np.maximum(counts, _HALF), self.scale)[0] - self.offset) / self.unit)

    def rate(self, h: Host) -> tuple[Host, Host]:
        """[...], [...]: the rate, and its slope in h; both positive."""
        latent = self.offset + self.unit * h
        rate, slope = self.scale * np.logaddexp(0.0, latent), self.scale * self.unit * expit(latent)
        return np.maximum(rate, _LEAST_RATE), np.maximum(slope, _LEAST_RATE * self.unit)


class Mode(NamedTuple):
    """The most probable h of all labels under some hyperparameters, and Laplace's posterior about it."""

    place: Host
    """[n]: h"""
    working: Host
    """[n]: the working labels"""
    variance: Host
    """[n]: that each working label has about h"""
    factor: Host
    """[n, n]: the root L of the covariance of working labels"""
    solved: Host
    """[n]: L^-1 working labels"""
    evidence: float
    """log of the probability of all labels"""


def most_probable_rates(covariance: Host, counts: Host, link: Link, start: Host) -> Mode:
    """Laplace's posterior of h ~ N(0, covariance [n, n]) given Poisson labels [n], searched for from `start` [n].

    Newton's steps, halved while they do not gain. With h = covariance a the log density is
    log p(labels | h) - a'h / 2, and the evidence is that at the mode, less half of log |1 + covariance curvature|.
    """
    a = np.linalg.solve(covariance, start)
    h = start
    best = _log_likelihood(counts, link.rate(h)[0]) - 0.5 * float(a @ h)
    for _ in range(_STEPS):
        working, variance = _working(counts, link, h)
        factor, solved = _factor(covariance, variance, working)
        step, gained = dpotrs(factor, working, lower=1)[0] - a, -math.inf
        for _ in range(_HALVINGS):
            further = covariance @ (a + step)
            gained = _log_likelihood(counts, link.rate(further)[0]) - 0.5 * float((a + step) @ further)
            if gained >= best:
                break
            step = 0.5 * step
        if not gained > best:
            break
        settled = gained - best < _SETTLED * (1.0 + abs(best))
        a, h, best = a + step, further, gained
        if settled:
            break
    working, variance = _working(counts, link, h)
    factor, solved = _factor(covariance, variance, working)
    half_log = float(np.sum(np.log(np.diagonal(factor))) - 0.5 * np.sum(np.log(variance)))
    return Mode(h, working, variance, factor, solved, best - half_log)


def _working(counts: Host, link: Link, h: Host) -> tuple[Host, Host]:
    """[n], [n]: normal labels that tell of h what counts tell of it near h, and their variances.

    The log likelihood y log(rate) - rate is concave: the rate is convex and its logarithm concave.
    """
    rate, slope = link.rate(h)
    bend = slope * link.unit * expit(-(link.offset + link.unit * h))  # the rate's second derivative
    precision = np.maximum(bend + counts * ((slope / rate) ** 2 - bend / rate), _LEAST_PRECISION)
    return h + (counts / rate - 1.0) * slope / precision, 1.0 / precision


def _factor(covariance: Host, variance: Host, working: Host) -> tuple[Host, Host]:
    """[n, n], [n]: the root L of the covariance of working labels, and L^-1 times them."""
    matrix = covariance + np.diag(variance)
    factor, failed = dpotrf(matrix, lower=1, clean=1)
    if failed:
        raise FloatingPointError("the covariance of counts has no root: hyperparameters are out of range")
    return factor, np.asarray(np.linalg.solve(factor, working))


def _log_likelihood(counts: Host, rate: Host) -> float:
    """Poisson's, in the form of deviances, which goes for numbers that are not whole: Stirling's factorial about y."""
    deviance = xlogy(counts, counts / rate) - counts + rate
    return float(-np.sum(deviance) - 0.5 * np.sum(np.log(2.0 * np.pi * (counts + 1.0 / 6.0))))


class _Fitted(NamedTuple):
    """Working labels at the most probable hyperparameters, with labels counted in units of `grain`."""

    grain: float
    link: Link
    posterior: LogPosterior
    mode: Mode
    evidence: float


def _fitted(rows: Host, labels: Host, grain: float, median: float) -> _Fitted:
    counts = labels / grain
    link = Link.of(counts)
    h = link.start(counts)
    working, variance = _working(np.maximum(counts, _HALF), link, h)
    before: Host | None = None
    for _ in range(_ROUNDS):
        posterior = LogPosterior.of(rows, working, median, variance)
        point = most_probable_point(posterior, before)
        before = point[None]
        mode = most_probable_rates(label_covariance(posterior.draws(point[None]), 0, rows), counts, link, h)
        h, working, variance = mode.place, mode.working, mode.variance
    evidence = mode.evidence - 0.5 * float(point @ point) - len(labels) * math.log(grain)
    return _Fitted(grain, link, LogPosterior.of(rows, working, median, variance), mode, evidence)


def _weights(found: _Fitted, rows: Host, counts: Host, chains: Host) -> Host:
    """[draws]: what draws [draws, t] for working labels count for Poisson labels; they sum to one."""
    draws, logs, start = found.posterior.draws(chains), np.empty(len(chains)), found.mode.place
    for s, u in enumerate(chains):
        mode = most_probable_rates(label_covariance(draws, s, rows), counts, found.link, start)
        logs[s] = mode.evidence - found.posterior(u)[0] - 0.5 * float(u @ u)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class CountPosterior:
    """What one draw knows of f, where a label is a count: how much it tells depends on the rate."""

    kernel: KernelPosterior
    link: Link
    """from h, in its own units, to the rate"""
    scale: None = None

    def place(self, rows: Any) -> Place:
        """That of the process."""
        return self.kernel.place(rows)

    def mean(self, place: Place) -> Array:
        """[B]: of f, in units of h."""
        return self.kernel.mean(place)

    def covariance(self, place: Place, other: Place) -> Array:
        """[B, B']: of f."""
        return self.kernel.covariance(place, other)

    def variances(self, place: Place) -> tuple[Array, Array]:
        """[B], [B]: of f, and of a normal label that removes as much of the variance of h as the count does on average.

        With V the variance of h and I the information that a count has of it, V / (1 + V I) is left, averaged over h.
        """
        variance, extra = self.kernel.variances(place)
        spread = variance + extra  # of h
        h = self.kernel.mean(place)[:, None] + np.sqrt(spread)[:, None] * _NODES  # [B, G]
        rate, slope = self.link.rate(h)
        information = np.maximum(slope**2 / rate, _LEAST_PRECISION)
        left = 1.0 / (1.0 + spread[:, None] * information)
        return variance, extra + (left @ _WEIGHTS) / ((information * left) @ _WEIGHTS)


def _diagonal(draws: ProcessDraws, s: int, rows: Host) -> tuple[Host, Host]:
    """[N], [N]: the variance of f under draw s, and that of e."""
    return prior_variance(draws, s, rows), np.full(len(rows), draws.noise[s])


def latent_of_moments(warp: SoftplusWarp, mean: Host, variance: Host) -> tuple[Host, Host]:
    """[M], [M]: mean and variance of the normal f for which z = g(f) has these, by Newton's steps in logarithms."""
    wanted = np.stack([np.log(mean), np.log(variance)])
    slope = warp.scale * expit(warp.inverse(mean))
    spread = (mean / slope) ** 2 * np.log1p(variance / mean**2)  # exact for exponentials, and for straight lines
    place = np.stack([warp.inverse(mean) - 0.5 * spread * (1.0 - slope / warp.scale), np.log(spread)])
    for _ in range(_MATCHES):
        gap = _log_moments(warp, place) - wanted
        across, along = (
            (_log_moments(warp, place + step) - _log_moments(warp, place - step)) / (2.0 * _DIFFERENCE)
            for step in _DIFFERENCE * np.eye(2)[:, :, None]
        )
        determinant = across[0] * along[1] - along[0] * across[1]
        step = np.stack([gap[0] * along[1] - along[0] * gap[1], across[0] * gap[1] - gap[0] * across[1]]) / determinant
        place = place - np.clip(step, -1.0, 1.0)
        if np.max(np.abs(gap)) < _MATCHED:
            break
    return place[0], np.exp(place[1])


def _log_moments(warp: SoftplusWarp, place: Host) -> Host:
    """[2, M]: logarithms of mean and variance of z, for f of mean place[0] and log variance place[1]."""
    return np.asarray(np.log(np.stack(warped_moments(warp, place[0], np.exp(place[1])))))


@adapts(CountProcess)
def _count_process(model: CountProcess, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """Warped: f behind the rate is normal. As a label, z has the mean and the variance of a count.

    A count is not a function of f, but the moments of losses see little else of it. Labels of candidates tell of f what
    normal labels would that remove as much of its variance.
    """
    there = model.columns_.standard_rows(contexts)
    prepared = prepare_averaged(model.posteriors(), there, target="latent", joint=joint)
    warp = model.warp

    def belief(rows: Any) -> WarpedGaussianBelief:
        latent = prepared(model.columns_.standard_rows(rows))
        if target == "label":
            mean, variance = latent_of_moments(warp, *model.count_moments(latent.mean, latent.variance))
            latent = replaced(latent, mean=mean, variance=np.maximum(variance, latent.variance))
        return WarpedGaussianBelief(latent, warp)

    return belief
