"""Mixtures of Gaussian beliefs: labels and targets are jointly Gaussian once a hypothesis is known, and it is not.

Hypotheses s = 1..S have weights pi_s (hyperparameters that were drawn, models that compete). A label moves the mean
within each hypothesis and the weights across them:

    split moments at y:   sum_s pi_s p_s(y) E_s[S(z) | y]       p_s(y) = N(y; mu_s, var_s),  z | y, s Gaussian

First comes the belief `GaussianMixtureBelief`, then `MixtureSplit`: split moments on nodes of y that serve all
hypotheses, then `MixtureCells`: whole distributions w(z) p(z), today's and those once a label is known. Integration
within a hypothesis is that of a Gaussian belief (`stakes.beliefs.gaussian_integration`), whose eta is here the label in
standard units, t = (y - mu_s) / sd_s, with the sign of its covariance with the target.
Sizes: S hypotheses, N candidates, M contexts, p contexts of a block, J nodes of y, P panels and G nodes a panel of a
distribution, B marks and cuts, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    density,
    double,
    filled,
    log_normal,
    log_of,
    log_sum,
    namespace,
    replaced,
    shares,
    slices,
)
from stakes.beliefs.base import Integrand, Reference, Regret, log_weight
from stakes.beliefs.gaussian import GaussianBelief
from stakes.beliefs.gaussian_integration import GaussianSplit
from stakes.beliefs.log_moments import LogIntegrand, LogSplit
from stakes.beliefs.normal import NormalCells, NormalEnsemble
from stakes.beliefs.quadrature import CHUNK, Resolved, panels
from stakes.beliefs.switching import switching_points
from stakes.exceptions import StakesError
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, panel_nodes
from stakes.losses.domains import REAL, Interval

# An even grid of y, with the spacing in units of the smallest standard deviation. Where two hypotheses d sds apart
# meet, the probability of each is a logistic curve with poles pi / d away: exp(-d^2 / 8 - 2 pi^2 / (d spacing)) is
# left, 3e-8 for the worst d.
_SPACING = 0.25
_DISTRIBUTION_SPACING = 0.14  # the same for whole distributions
_MOST = 4096  # nodes of an even grid, beyond which there are panels around each hypothesis
_PANEL = 1.5  # widest panel of y around a hypothesis, in its standard deviations
_ONE_PANEL = 1e300
_PER_PANEL = 10  # nodes of a panel of y
_FAR = 1e3  # standard deviations, beyond which no mass is left
_LEAST_SD = 1e-7  # of a posterior, over the standard deviation of the target: less does not matter to a distribution
_POSTERIOR_PANEL = 3.0  # posterior sds: width of a panel of a distribution
_POSTERIOR_TAIL = 7.5  # posterior sds that such panels cover to each side
_SHARED_PANELS = 160  # of z, up to which all cells of a label share them


@dataclass(frozen=True, eq=False)
class GaussianMixtureBelief:
    """Labels of N candidates and targets of M contexts, jointly Gaussian under each of S hypotheses.

    Args:
        mean: [S, M], of the target z under each hypothesis.
        variance: [S, M], of the target: with noise if z is the label that will be realised, without if it is the latent
            function.
        candidate_mean: [S, N], of the candidate's label y.
        candidate_variance: [S, N], of the label, noise included; positive where there are several hypotheses.
        covariance: [S, N, M], between label and target.
        weights: [S], of the hypotheses (normalised); without them they count alike.
        candidate_covariance: [S, N, N], between labels, with `candidate_variance` on its diagonal, or a function from
            the position of a candidate to its rows [S, N]; needed for joint batches only.
        noise_variance: A number, [S] or [S, N], of the noise of the label; needed for BALD only.

    Raises:
        StakesError: If shapes disagree, a variance or a weight is negative, or a correlation is beyond 1.

    Examples:
        Two hypotheses that disagree about the mean. The label tells which is right, and more within each:

        >>> from stakes import GaussianMixtureBelief, SquaredError, score, uncertainty
        >>> belief = GaussianMixtureBelief(
        ...     mean=[[-1.0], [1.0]],
        ...     variance=[[1.0], [1.0]],
        ...     candidate_mean=[[-20.0], [20.0]],
        ...     candidate_variance=[[1.0], [1.0]],
        ...     covariance=[[[0.6]], [[0.0]]],
        ... )
        >>> print(uncertainty(SquaredError(), belief).round(6))  # 1 between hypotheses, 1 within each
        [2.]
        >>> print(score(SquaredError(), belief).round(6))  # the 1 between them, and 0.36 of the first
        [1.18]
    """

    mean: Array
    variance: Array
    candidate_mean: Array
    candidate_variance: Array
    covariance: Array
    weights: Array = None
    candidate_covariance: Array | Callable[[int], Array] | None = None
    noise_variance: Array = None
    _width: float = field(default=1.0, init=False, repr=False)  # of the spacing of y, over the usual
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)  # made of the arrays when asked for

    def __post_init__(self) -> None:
        rows = self.candidate_covariance if not callable(self.candidate_covariance) else None
        mean, variance, candidate_mean, candidate_variance, covariance, weights, rows, noise = asarrays(
            mean=self.mean,
            variance=self.variance,
            candidate_mean=self.candidate_mean,
            candidate_variance=self.candidate_variance,
            covariance=self.covariance,
            weights=self.weights,
            candidate_covariance=rows,
            noise_variance=self.noise_variance,
        )
        check_shape("mean", mean, ("S", "M"))
        check_shape("candidate_mean", candidate_mean, (mean.shape[0], "N"))
        count, n_candidates, n_contexts = mean.shape[0], candidate_mean.shape[1], mean.shape[1]
        if count == 0:
            raise StakesError("mean must hold at least one hypothesis; got none")
        check_shape("variance", variance, (count, n_contexts))
        check_shape("candidate_variance", candidate_variance, (count, n_candidates))
        check_shape("covariance", covariance, (count, n_candidates, n_contexts))
        if rows is not None:
            check_shape("candidate_covariance", rows, (count, n_candidates, n_candidates))
        if noise is not None and noise.ndim:
            noise = noise[:, None] if noise.ndim == 1 else noise
            check_shape("noise_variance", noise, (count, "N"))
            noise = namespace(noise).broadcast_to(noise, (count, n_candidates))
        if count > 1:
            check_all(
                candidate_variance > 0,
                "candidate_variance must be positive under several hypotheses: it includes the noise of the label",
            )
        if weights is not None:
            check_shape("weights", weights, (count,))
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "variance", variance)
        object.__setattr__(self, "candidate_mean", candidate_mean)
        object.__setattr__(self, "candidate_variance", candidate_variance)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "candidate_covariance", self.candidate_covariance if rows is None else rows)
        object.__setattr__(self, "noise_variance", noise)
        alike = filled(count, 1.0 / count, mean) if weights is None else shares("weights", double(weights))
        object.__setattr__(self, "weights", alike)
        for s in range(count):
            try:
                self.hypothesis(s)
            except StakesError as error:
                raise StakesError(f"hypothesis {s}: {error}") from error
        self._known["checked"] = self.hypothesis(0)

    @classmethod
    def from_beliefs(
        cls, beliefs: Sequence[GaussianBelief], candidate_means: Any, weights: Any = None
    ) -> GaussianMixtureBelief:
        """The mixture of Gaussian beliefs about the same candidates and contexts.

        Args:
            beliefs: One for each hypothesis.
            candidate_means: [S, N], of the label under each, which a Gaussian belief alone does not need.
            weights: [S], of the hypotheses; without them they count alike.

        Returns:
            The mixture; joint batches and BALD are served where all beliefs have what these need.

        Raises:
            StakesError: If there are none, or their shapes disagree.

        Examples:
            >>> from stakes import GaussianBelief, GaussianMixtureBelief
            >>> one = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.5]])
            >>> two = GaussianBelief(mean=[1.0], variance=[1.0], candidate_variance=[2.0], covariance=[[0.1]])
            >>> GaussianMixtureBelief.from_beliefs([one, two], candidate_means=[[0.0], [1.0]]).n_hypotheses
            2
        """
        beliefs = tuple(beliefs)
        if not beliefs or not all(isinstance(each, GaussianBelief) for each in beliefs):
            kinds = [type(each).__name__ for each in beliefs]
            raise StakesError(f"beliefs must be GaussianBeliefs, one for each hypothesis; got {kinds}")
        if len({each.covariance.shape for each in beliefs}) > 1:
            sizes = [tuple(each.covariance.shape) for each in beliefs]
            raise StakesError(f"beliefs must be about the same candidates and contexts, [N, M]; got {sizes}")
        xp, n_candidates = namespace(beliefs[0].mean), beliefs[0].n_candidates

        def stacked(name: str) -> Array:
            return xp.stack([getattr(each, name) for each in beliefs], axis=0)

        noises = [each.noise_variance for each in beliefs]
        noise = None
        if all(each is not None for each in noises):
            noise = xp.stack([xp.broadcast_to(each, (n_candidates,)) for each in noises], axis=0)
        return cls(
            stacked("mean"),
            stacked("variance"),
            candidate_means,
            stacked("candidate_variance"),
            stacked("covariance"),
            weights,
            _stacked_rows([each.candidate_covariance for each in beliefs]),
            noise,
        )

    @property
    def n_hypotheses(self) -> int:
        """How many hypotheses there are, S."""
        return int(self.covariance.shape[0])

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.covariance.shape[1])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.covariance.shape[2])

    @property
    def domain(self) -> Interval:
        """The reals."""
        return REAL

    @property
    def like(self) -> Array:
        """The mean, of whose library, dtype and device results are."""
        return self.mean

    @property
    def rho(self) -> Array:
        """[S, N, M]: the fraction of the variance of z that observing y removes under each hypothesis."""
        return _stack([self.hypothesis(s).rho for s in range(self.n_hypotheses)])

    def hypothesis(self, s: int) -> GaussianBelief:
        """What is believed under one hypothesis.

        Args:
            s: Its position.

        Returns:
            The Gaussian belief, which knows nothing of `candidate_mean`.
        """
        if ("hypothesis", s) not in self._known:
            rows, noise = self.candidate_covariance, self.noise_variance
            fields = {
                "mean": self.mean[s, :],
                "variance": self.variance[s, :],
                "candidate_variance": self.candidate_variance[s, :],
                "covariance": self.covariance[s, ...],
                "candidate_covariance": _rows_of_hypothesis(rows, s)
                if callable(rows) or rows is None
                else rows[s, ...],
                "noise_variance": noise if noise is None or not noise.ndim else noise[s, :],
            }
            checked = self._known.get("checked")
            self._known["hypothesis", s] = GaussianBelief(**fields) if checked is None else replaced(checked, **fields)
        belief: GaussianBelief = self._known["hypothesis", s]
        return belief

    def simplest(self) -> GaussianMixtureBelief | GaussianBelief:
        """The Gaussian belief that a mixture of one hypothesis is, or else the mixture itself."""
        return self.hypothesis(0) if self.n_hypotheses == 1 else self

    def n_cells(self, integrand: Integrand) -> int:
        """J at most: of the candidate that needs most nodes."""
        if self.n_hypotheses == 1:
            return self.hypothesis(0).n_cells(integrand)
        integrand, reference, count = self.resolved(integrand), self.reference(integrand), 1
        for part in slices(self.n_candidates, max(1, CHUNK // (self.n_contexts * self.n_hypotheses))):
            count = max(count, MixtureSplit(self.take(part, slice(None)), integrand, reference).most_nodes())
        return count

    def reference(self, integrand: Integrand) -> Reference:
        """Where w(z) p(z | c, s) is largest of all hypotheses, and how large it is there."""
        return self.targets.reference(integrand)

    def resolved(self, integrand: Integrand) -> Resolved:
        """The same integrand, with what it takes to integrate it; all methods take it in place of the loss.

        Args:
            integrand: The loss.

        Returns:
            The integrand, and where it is steep, jumps or kinks.
        """
        return self.targets.resolved(integrand)

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_s pi_s E_s[S(z) | c]."""
        return self.targets.moments(integrand, reference)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, J, D]: sum_s pi_s p_s(y_j) E_s[S(z) | y_j], times the length that node j stands for."""
        if self.n_hypotheses == 1:
            return self.hypothesis(0).split_moments(integrand, reference)
        return MixtureSplit(self, self.resolved(integrand), reference).moments()

    def log_span(self, integrand: LogIntegrand) -> float:
        """Over how many units log T ranges where the loss may look."""
        return self.targets.log_span(integrand)

    def log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[M, 2]: log E[S(z) | c]."""
        return self.targets.log_moments(integrand, reference)

    def log_split_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """[N, M, J, 2]: log E[S(z) 1{y in cell j} | c]."""
        if self.n_hypotheses == 1:
            return self.hypothesis(0).log_split_moments(integrand, reference)
        return _log_split(self, integrand, reference)

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, s] under each hypothesis.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, S, D].
        """
        return self.targets.member_moments(integrand, reference)

    def member_log_moments(self, integrand: LogIntegrand, reference: Reference) -> Array:
        """Log E[S(z) | c, s] of positive statistics, under each hypothesis.

        Args:
            integrand: The loss by logarithms.
            reference: From where statistics are measured.

        Returns:
            [M, S, 2].
        """
        return self.targets.member_log_moments(integrand, reference)

    def member_distributions(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """w(z) p(z | c, s) under each hypothesis, on nodes that they share.

        Args:
            integrand: The loss.
            reference: From where targets are counted.
            marks: [M, B], targets that must be edges of panels.

        Returns:
            [M, S].
        """
        return self.targets.member_distributions(integrand, reference, marks)

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """[M]: w(z) sum_s pi_s p(z | c, s)."""
        if self.n_hypotheses == 1:
            return self.hypothesis(0).distribution(integrand, reference, marks)
        return self.targets.distribution(integrand, reference, marks)

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """[N, M]: regrets in the cells of the label, summed."""
        if self.n_hypotheses == 1:
            return self.hypothesis(0).regret_over_cells(regret, integrand, reference, marks)
        return MixtureCells(self, self.resolved(integrand), reference, marks).over_cells(regret)

    def n_nodes(self, integrand: Integrand) -> int:
        """A bound on what is held of cells times nodes: a few chunks."""
        return self.hypothesis(0).n_nodes(integrand) if self.n_hypotheses == 1 else 4 * CHUNK

    def take(self, candidates: slice, contexts: slice) -> GaussianMixtureBelief:
        """A block of candidates and contexts."""
        rows, noise = self.candidate_covariance, self.noise_variance
        if callable(rows):
            rows = _rows_of_block(rows, range(self.n_candidates)[candidates], candidates)
        elif rows is not None:
            rows = rows[:, candidates, :][:, :, candidates]
        kept = ("checked", "targets") if contexts == slice(None) else ("checked",)
        return replaced(
            self,
            mean=self.mean[:, contexts],
            variance=self.variance[:, contexts],
            candidate_mean=self.candidate_mean[:, candidates],
            candidate_variance=self.candidate_variance[:, candidates],
            covariance=self.covariance[:, candidates, contexts],
            candidate_covariance=rows,
            noise_variance=noise if noise is None or not noise.ndim else noise[:, candidates],
            _known={each: self._known[each] for each in kept if each in self._known},
        )

    def refined(self) -> GaussianMixtureBelief:
        """The same belief with half the spacing of labels."""
        return replaced(self, _width=self._width / 2.0)

    def marginals(self) -> NormalEnsemble:
        """What is believed of each label and each target alone.

        Returns:
            Normals, one for each hypothesis: what labels tell of targets within a hypothesis is left out.
        """
        xp = namespace(self.mean)
        sd = xp.sqrt(self.candidate_variance)
        mean, sd = (xp.permute_dims(each, (1, 0)) for each in (self.candidate_mean, sd))
        return replaced(self.targets, candidate_mean=mean, candidate_sd=sd, _known={})

    @property
    def targets(self) -> NormalEnsemble:
        """What is believed of targets alone: normals, one for each hypothesis."""
        if "targets" not in self._known:
            xp, like = namespace(self.mean), double(self.mean)
            nobody = filled((0, self.n_hypotheses), 1.0, like)
            mean, sd = (xp.permute_dims(each, (1, 0)) for each in (like, xp.sqrt(double(self.variance))))
            self._known["targets"] = NormalEnsemble(nobody, nobody, mean, sd, self.weights)
        targets: NormalEnsemble = self._known["targets"]
        return targets


def _stacked_rows(rows: list[Any]) -> Any:
    """Covariances between labels under all hypotheses, [S, N, N] or a function to [S, N]; None where one is missing."""
    if any(each is None for each in rows):
        return None
    if any(callable(each) for each in rows):
        return lambda i: _stack([each(i) if callable(each) else each[i, :] for each in rows])
    return _stack(rows)


def _stack(arrays: list[Array]) -> Array:
    return namespace(arrays[0]).stack(arrays, axis=0)


def _rows_of_hypothesis(rows: Any, s: int) -> Any:
    """Covariances between labels under one hypothesis, or the function from a position to its row of them."""
    if callable(rows):
        return lambda i: rows(i)[s, :]
    return None if rows is None else rows[s, ...]


def _rows_of_block(rows: Callable[[int], Array], positions: range, candidates: slice) -> Callable[[int], Array]:
    """The function from a position within the block to its rows of covariances within the block."""
    return lambda i: rows(positions[i])[:, candidates]


@dataclass(frozen=True, eq=False)
class _Labels:
    """The labels of all candidates under each hypothesis, and what of a target each tells."""

    mean: Array
    """[S, N]"""
    sd: Array
    """[S, N]"""
    weights: Array
    """[S]"""
    rho: Array
    """[S, N, M]"""
    sign: Array
    """[S, N, M]: of the covariance between label and target"""

    @classmethod
    def of(cls, belief: GaussianMixtureBelief) -> _Labels:
        xp = namespace(belief.mean)
        rho = double(belief.rho)
        sd = xp.sqrt(double(belief.candidate_variance))
        sign = xp.where(belief.covariance < 0, -xp.ones_like(rho), xp.ones_like(rho))
        return cls(double(belief.candidate_mean), sd, double(belief.weights), rho, sign)

    def eta(self, s: int, y: Array) -> Array:
        """[N, M, J]: labels y [N, M or 1, J] in standard units, with the sign of the covariance."""
        t = (y - self.mean[s, :, None, None]) / self.sd[s, :, None, None]
        return self.sign[s, ..., None] * t

    def label(self, s: int, eta: Array) -> Array:
        """[N, M, J]: the labels of eta [N, M, J]."""
        return self.mean[s, :, None, None] + self.sd[s, :, None, None] * self.sign[s, ..., None] * eta

    def density(self, s: int, eta: Array, boost: Array) -> Array:
        """[N, M, J]: pi_s p_s(y) exp(rho boost), for boosts [M]."""
        heights = density(eta, (self.rho[s, ...] * boost)[..., None])
        return (self.weights[s] / self.sd[s, :])[:, None, None] * heights

    def windows(self, low: list[Array], high: list[Array]) -> tuple[Array, Array]:
        """[N, M] each: labels between which all hypotheses have eta between low and high, [N, M] for each of them."""
        xp = namespace(self.mean)
        ends = [self.label(s, xp.stack([low[s], high[s]], axis=-1)) for s in range(len(low))]
        lowest, highest = (xp.stack([take(each, axis=-1) for each in ends]) for take in (xp.min, xp.max))
        return xp.min(lowest, axis=0), xp.max(highest, axis=0)

    def even_count(self, low: Array, high: Array, spacing: Sequence[float]) -> int:
        """J: of nodes from low to high [N], no further apart than `spacing` of each hypothesis, in its sds."""
        xp, steps = namespace(self.mean), constant(spacing, self.mean)[:, None] * self.sd
        if 0 in low.shape:
            return 1
        count = float(xp.max((high - low) / xp.min(steps, axis=0)))
        return 1 + math.ceil(min(count, 1e9))

    def even(self, low: Array, high: Array, count: int) -> tuple[Array, Array]:
        """[N, 1, J] and [N, 1, 1]: even nodes from low to high [N], and the length that each stands for."""
        share = constant(np.linspace(0.0, 1.0, count), low)
        y, step = low[:, None] + (high - low)[:, None] * share, (high - low) / max(count - 1, 1)
        return y[:, None, :], step[:, None, None]


class MixtureSplit:
    """The integration of split moments over all pairs of one mixture.

    Labels are integrated on an even grid of y that serves all contexts of a candidate, or, where E_s[S | y] is not
    smooth in y or hypotheses are of very different widths, in panels of each pair. Between labels at which the best of
    finitely many actions changes, cells are as wide as they come.
    """

    def __init__(self, belief: GaussianMixtureBelief, integrand: Resolved, reference: Reference) -> None:
        xp, self.integrand, self.labels = namespace(belief.mean), integrand, _Labels.of(belief)
        mean, sd = double(belief.mean), xp.sqrt(double(belief.variance))
        self.parts = [
            GaussianSplit(integrand, mean[s, :], sd[s, :], self.labels.rho[s, ...], reference)
            for s in range(belief.n_hypotheses)
        ]
        assert reference.point is not None
        self.boost = log_weight(reference.point, integrand) - reference.log_scale  # [M]
        self.low, self.high = self.labels.windows([part.low for part in self.parts], [part.high for part in self.parts])
        self.ends = xp.min(self.low, axis=1), xp.max(self.high, axis=1)  # [N] each
        spacing = [belief._width * min(_SPACING * integrand.width, part.spacing()) for part in self.parts]
        self.count = self.labels.even_count(*self.ends, spacing)
        self.smooth = all(part.smooth_in_eta() for part in self.parts) and self.count <= _MOST / belief._width
        self.wide = all(part.wide_throughout() for part in self.parts)
        self.panel = belief._width * integrand.width * _PANEL

    def most_nodes(self) -> int:
        """A bound on J, also for fewer candidates or contexts."""
        if self.smooth and self.wide:
            return self.count
        widths = [float(namespace(self.low).max(part.high - part.low)) / self.panel for part in self.parts]
        layers = 24 * len(self.parts) * len(self.integrand.breakpoints)
        switches = 7 * self.count if self.integrand.finite_actions else 0
        return max(self.count, _PER_PANEL * (2 + sum(map(math.ceil, widths)) + len(widths) + layers + switches))

    def moments(self) -> Array:
        """[N, M, J, D]: E[S 1{y in cell j}]."""
        y, lengths = self.labels.even(*self.ends, self.count) if self.smooth else self._panels()
        if self.integrand.finite_actions:
            switches = switching_points(self._at, y)  # [N, M, B]
            if self.wide:
                return self._between(switches)
            y, lengths = self._panels(switches)
        return lengths[..., None] * self._at(y)

    def _at(self, y: Array) -> Array:
        """[N, M, J, D]: sum_s pi_s p_s(y) E_s[S | y] at labels y [N, M or 1, J]."""
        total: Any = 0.0
        for s, part in enumerate(self.parts):
            eta = self.labels.eta(s, y)
            total = total + self.labels.density(s, eta, self.boost)[..., None] * part.conditional(eta)
        return total

    def _between(self, switches: Array) -> Array:
        """[N, M, B + 1, D]: E[S 1{y between switches}], for switches [N, M, B]."""
        xp, total = namespace(switches), filled((), 0.0, switches)
        for s, part in enumerate(self.parts):
            end = filled((*switches.shape[:2], 1), _FAR, switches)
            eta = self.labels.eta(s, switches)
            sign = self.labels.sign[s, ..., None]
            cuts = xp.concat([-sign * end, eta, sign * end], axis=2)
            first, second = cuts[..., :-1], cuts[..., 1:]
            total = total + self.labels.weights[s] * part.between(xp.minimum(first, second), xp.maximum(first, second))
        return total

    def _panels(self, switches: Array | None = None) -> tuple[Array, Array]:
        """[N, M, J] each: labels in panels between which all is smooth, and lengths."""
        cuts = [] if switches is None else [switches]
        for s, part in enumerate(self.parts):
            widest = float(namespace(self.low).max(part.high - part.low)) if math.prod(self.low.shape) else 1.0
            share = constant(np.linspace(0.0, 1.0, 1 + math.ceil(widest / self.panel)), self.low)
            even = part.low[..., None] + (part.high - part.low)[..., None] * share
            cuts.append(self.labels.label(s, even))
            if self.integrand.breakpoints:
                cuts.append(self.labels.label(s, part.layers()))
            if switches is not None:
                around = part.around_switches(self.labels.eta(s, switches))[1:]
                cuts.extend(self.labels.label(s, each) for each in around)
        return panels(self.low, self.high, namespace(self.low).concat(cuts, axis=-1), _ONE_PANEL)


def _log_split(belief: GaussianMixtureBelief, integrand: LogIntegrand, reference: Reference) -> Array:
    """[N, M, J, 2]: log of sum_s pi_s p_s(y_j) E_s[S | y_j], times the length that node j stands for."""
    xp, labels = namespace(belief.mean), _Labels.of(belief)
    mean, sd = double(belief.mean), xp.sqrt(double(belief.variance))
    every = range(belief.n_hypotheses)
    parts = [LogSplit(integrand, mean[s, :], sd[s, :], labels.rho[s, ...], reference) for s in every]
    ends = [part.ends() for part in parts]
    low, high = labels.windows([each[0] for each in ends], [each[3] for each in ends])
    steepest = [float(xp.max(part.root)) if math.prod(part.root.shape) else 1.0 for part in parts]
    spacing = [
        belief._width * min(_SPACING * integrand.width, part.today.spacing / s)
        for part, s in zip(parts, steepest, strict=True)
    ]
    count = labels.even_count(xp.min(low, axis=1), xp.max(high, axis=1), spacing)
    if count <= _MOST and not integrand.breakpoints:
        y, lengths = labels.even(xp.min(low, axis=1), xp.max(high, axis=1), count)
    else:
        cuts = xp.concat([labels.label(s, parts[s].cuts()) for s in every], axis=-1)
        y, lengths = panels(low, high, cuts, _ONE_PANEL)
    terms = []
    for s in every:
        log_density = log_normal(y, labels.mean[s, :, None, None], labels.sd[s, :, None, None])
        log_mass = log_of(labels.weights[s]) + log_density + log_of(lengths)  # [N, M or 1, J]
        terms.append(log_mass[..., None] + parts[s].conditional(labels.eta(s, y)))
    return log_sum(xp.stack(terms, axis=-1))


class MixtureCells:
    """The distributions of all contexts of one mixture in the cells of a label, beside those of today.

    Both are taken at the same nodes of z, which resolve all hypotheses, before and after the label.
    """

    def __init__(self, belief: GaussianMixtureBelief, integrand: Resolved, reference: Reference, marks: Array) -> None:
        assert reference.point is not None
        xp = self.xp = namespace(belief.mean)
        self.belief, self.integrand, self.reference, self.marks = belief, integrand, reference, marks
        self.labels, self.point = _Labels.of(belief), reference.point
        self.mean, self.sd = double(belief.mean), xp.sqrt(double(belief.variance))  # [S, M]
        self.boost = log_weight(self.point, integrand) - reference.log_scale  # [M]
        self.split = MixtureSplit(belief, integrand, reference)
        self.least = xp.clip(_LEAST_SD * xp.max(self.sd, axis=0), 1e-150, None)  # [M]

    def over_cells(self, regret: Regret) -> Array:
        """[N, M]: regrets summed over the cells of each label."""
        if self.belief.n_candidates == 0:
            return filled((0, self.belief.n_contexts), 0.0, self.mean)
        width = self.belief._width * self.integrand.width
        spacing = width * _DISTRIBUTION_SPACING / (2.5 if self.marks.shape[1] else 1.0)
        spacings = [min(spacing, part.spacing()) for part in self.split.parts]
        count = self.labels.even_count(*self.split.ends, spacings)
        if self.split.smooth and count <= _MOST / self.belief._width:
            y, lengths = self.labels.even(*self.split.ends, count)
        else:
            y, lengths = self.split._panels()
        shape = (self.belief.n_candidates, self.belief.n_contexts, y.shape[-1])
        y, lengths = self.xp.broadcast_to(y, shape), self.xp.broadcast_to(lengths, shape)
        rows = [self._row(n, y[n, ...], lengths[n, ...], regret) for n in range(shape[0])]
        return self.xp.stack(rows, axis=0)

    def _row(self, n: int, y: Array, lengths: Array, regret: Regret) -> Array:
        """[M]: regrets of one candidate whose labels are y [M, J]."""
        xp, every = self.xp, range(self.belief.n_hypotheses)
        root, rest = xp.sqrt(self.labels.rho[:, n, :]), xp.sqrt(1.0 - self.labels.rho[:, n, :])  # [S, M]
        spread = xp.maximum(self.sd * rest, self.least)  # [S, M]: after the label
        eta = [self.labels.sign[s, n, :, None] * (y - self.labels.mean[s, n]) / self.labels.sd[s, n] for s in every]
        centres = [self.mean[s, :, None] + (self.sd * root)[s, :, None] * eta[s] for s in every]  # [M, J]
        boosts = self.labels.rho[:, n, :] * self.boost  # [S, M]
        shares = self.labels.weights / self.labels.sd[:, n]
        masses = [lengths * shares[s] * density(eta[s], boosts[s, :, None]) for s in every]
        edges = self._shared_edges(spread)  # [M, P + 1]
        own = edges.shape[1] > _SHARED_PANELS
        parts = []
        for m in range(y.shape[0]):
            here = self._own_edges(m, [each[m, :] for each in centres], spread[:, m]) if own else edges[m, None, :]
            block = max(1, CHUNK // (here.shape[-1] * NODES_PER_PANEL))
            total: Any = 0.0
            for part in slices(y.shape[1], block):
                cells = [(each[m, part], mass[m, part]) for each, mass in zip(centres, masses, strict=True)]
                total = total + self._block(
                    m, here[part, :] if own else here, cells, spread[:, m], boosts[:, m], regret
                )
            parts.append(total)
        return xp.stack(parts)

    def _block(
        self, m: int, edges: Array, cells: list[tuple[Array, Array]], spread: Array, boosts: Array, regret: Regret
    ) -> Array:
        """The regrets of some cells of one context, summed; `edges` [1 or J, P + 1] are counted from the reference."""
        xp, point = self.xp, self.point[m]
        nodes, step = panel_nodes(edges)  # [1 or J, P, G]
        weight = step * self.integrand.statistics(point + nodes, point + xp.zeros_like(nodes))[..., 0]
        before: Any = 0.0
        after: Any = 0.0
        for s, (centre, mass) in enumerate(cells):
            sd = xp.maximum(self.sd[s, m], self.least[m])
            away = (nodes - (self.mean[s, m] - point)) / sd
            before = before + self.labels.weights[s] / sd * density(away, self.boost[m])
            away = (nodes - (centre - point)[:, None, None]) / spread[s]
            after = after + (mass / spread[s])[:, None, None] * density(away, self.boost[m] - boosts[s])
        origin = point + xp.zeros_like(edges[:, 0])
        prior = Distribution(
            origin[None, :], edges[None, ...], nodes[None, ...], step[None, ...], (before * weight)[None, ...]
        )
        posterior = replaced(prior, mass=(after * weight)[None, ...])
        return xp.sum(regret(posterior, prior, self.marks[m : m + 1, None, :]))

    def _shared_edges(self, spread: Array) -> Array:
        """[M, P + 1], from the reference: panels that resolve all hypotheses, before and after any label."""
        xp = self.xp
        sd = xp.maximum(self.sd, self.least)
        finest = xp.minimum(sd, _POSTERIOR_PANEL * spread)
        mean, sd = (xp.permute_dims(xp.concat(each, axis=0), (1, 0)) for each in ([self.mean] * 2, [sd, finest]))
        return NormalCells(self.integrand, mean, sd, self.reference, self.marks).edges()

    def _own_edges(self, m: int, centres: list[Array], spread: Array) -> Array:
        """[J, P + 1], from the reference: those of today, and some around the posterior of each hypothesis."""
        xp = self.xp
        sd = xp.maximum(self.sd[:, m], self.least[m])[None, :]
        today = NormalCells(
            self.integrand,
            self.mean[None, :, m],
            sd,
            Reference(self.point[m : m + 1], self.reference.log_scale[m : m + 1]),
            self.marks[m : m + 1, :],
        ).edges()  # [1, P + 1]
        count = 1 + math.ceil(2.0 * _POSTERIOR_TAIL / (self.integrand.width * _POSTERIOR_PANEL))
        marks = constant(np.linspace(-_POSTERIOR_TAIL, _POSTERIOR_TAIL, count), self.mean)
        around = [(each - self.point[m])[:, None] + spread[s] * marks for s, each in enumerate(centres)]
        cuts = xp.concat(around, axis=1)  # [J, B]
        low, high = today[:, :1], today[:, -1:]
        cuts = xp.where(cuts < low, low, xp.where(cuts > high, high, cuts))
        whole = xp.broadcast_to(today, (cuts.shape[0], today.shape[1]))
        return xp.sort(xp.concat([whole, cuts], axis=1), axis=1)
