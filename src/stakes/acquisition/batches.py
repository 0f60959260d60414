"""Several labels at once: the batch whose labels together lower the expected loss most, chosen one by one.

Greedy on the marginal gain of the *joint* reduction, E_c[EUR(batch; c)]. Under a Gaussian belief a batch, too, leaves
z Gaussian, so the joint reduction of any loss is EUR_c(rho_B), with rho_B from covariances alone: exact, and no labels
are fantasised. For an ensemble the labels of a batch have configurations, which are enumerated, or sampled when many.
Sizes: N candidates, n of a block, M contexts, K members, J cells of one label, Q configurations, t picks so far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from stakes._array import Array, constant, double, filled, log_of, namespace, ratio, replaced, slices
from stakes.acquisition.forms import check_pair, find_form
from stakes.acquisition.reduction import MEMORY_LIMIT, unscaled
from stakes.acquisition.scores import checked_context_weights, checked_costs, log_worth
from stakes.acquisition.tabulated import Tabulated
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    NormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.losses import AnyLoss, DistributionLoss

_SINGULAR = 1e-12  # of its variance: a candidate whose label is known from the batch tells no more


@dataclass(frozen=True, eq=False)
class Selection:
    """A batch, in the order it was chosen."""

    indices: tuple[int, ...]
    """Positions of the candidates."""
    joint_reduction: Array
    """[n]: what the labels of the first 1, 2, ... n are worth together, for one decision."""
    sampling_error: Array
    """[n]: the standard error of each joint reduction; 0 where nothing was sampled."""
    method: str
    """"exact", "enumerated" or "sampled"."""


def select(
    loss: AnyLoss,
    belief: Belief,
    n: int,
    *,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    rng: np.random.Generator | None = None,
    max_configurations: int = 4096,
) -> Selection:
    """Choose up to `n` candidates to label together, none twice; fewer if the `budget` does not reach.

    With `costs` [N], by the gain for each unit of cost. Configurations of an ensemble's labels beyond
    `max_configurations` are sampled with `rng` (default_rng(0) without one).
    """
    check_pair(loss, belief)
    if not isinstance(n, int) or not 0 < n <= belief.n_candidates:
        raise ValueError(f"n must be a whole number from 1 to {belief.n_candidates}, the candidates; got {n!r}")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be positive, in the unit of the costs; got {budget!r}")
    xp = namespace(belief.like)
    prices = filled(belief.n_candidates, 1.0, belief.like) if costs is None else checked_costs(costs, belief)  # [N]
    positions = constant(range(belief.n_candidates), prices)
    batch = _batch(loss, belief, context_weights, rng or np.random.default_rng(0), max_configurations)
    indices: list[int] = []
    logs_of_picks, errors = [-math.inf], []
    left, free = math.inf if budget is None else budget, prices > 0
    while len(indices) < n and bool(xp.any(free & (prices <= left))):
        logs = batch.log_reductions()  # [N]: of the batch with each candidate added
        rate = _gain(logs, logs_of_picks[-1]) / prices
        best = int(xp.argmax(xp.where(free & (prices <= left), rate, xp.full_like(rate, -xp.inf))))
        indices.append(best)
        logs_of_picks.append(float(logs[best]))
        free, left = free & (positions != best), left - float(prices[best])
        errors.append(batch.add(best))
    return _selection(belief, indices, logs_of_picks[1:], errors, batch.method)


def _gain(logs: Array, before: float) -> Array:
    """[N]: exp(logs) - exp(before), over the largest of exp(logs)."""
    xp = namespace(logs)
    top = float(xp.max(logs))
    top = top if math.isfinite(top) else 0.0
    return xp.exp(logs - top) - math.exp(before - top)


def _selection(belief: Belief, indices: list[int], logs: list[float], errors: list[float], method: str) -> Selection:
    top = max((each for each in logs if math.isfinite(each)), default=0.0)
    relative = constant([math.exp(each - top) for each in logs], filled(1, 0.0, belief.like))
    joint = unscaled(relative, top, belief)
    return Selection(tuple(indices), joint, joint * constant(errors, joint), method)


class _Batch(Protocol):
    """Labels chosen so far, and what they would be worth with one more."""

    @property
    def method(self) -> str:
        """How the joint reduction is computed."""

    def log_reductions(self) -> Array:
        """[N]: the log of the joint reduction with each candidate added."""

    def add(self, candidate: int) -> float:
        """Add a candidate; returns the relative standard error of the joint reduction that it was chosen by."""


def _batch(
    loss: AnyLoss, belief: Belief, context_weights: Any, rng: np.random.Generator, max_configurations: int
) -> _Batch:
    log_weights = log_of(checked_context_weights(context_weights, belief))  # [M]
    if isinstance(belief, GaussianBelief | WarpedGaussianBelief):
        return _GaussianBatch(loss, belief, log_weights)
    if isinstance(belief, VoteEnsemble):
        belief = belief.as_probabilities()
    if isinstance(belief, CategoricalEnsemble | NormalEnsemble):
        return _EnsembleBatch(loss, belief, log_weights, rng, max_configurations)
    raise TypeError(
        f"joint batches are known for Gaussian and warped beliefs and for ensembles; got {type(belief).__name__}. "
        "score ranks single labels under any belief."
    )


class _GaussianBatch:
    """Two thin factors: what the batch explains of label covariances is G G', of those with targets G F'."""

    method = "exact"

    def __init__(self, loss: AnyLoss, belief: GaussianBelief | WarpedGaussianBelief, log_weights: Array) -> None:
        self.belief = belief
        self.latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
        if self.latent.candidate_covariance is None:
            raise ValueError(
                "a joint batch needs the covariances between candidates: give candidate_covariance, [N, N] with the "
                "noise on its diagonal, or a function from a position to its row"
            )
        self.reduction = find_form(loss, belief).prepare(loss, belief)
        self.log_share = double(self.reduction.log_scale) + log_weights  # [M]
        self.left = filled((belief.n_candidates, 0), 0.0, belief.like)  # G: [N, t]
        self.right = filled((belief.n_contexts, 0), 0.0, belief.like)  # F: [M, t]

    def log_reductions(self) -> Array:
        """[N]: of EUR_c(rho_B), in blocks of candidates."""
        block = max(1, MEMORY_LIMIT // (8 * 16 * self.belief.n_contexts))
        parts = slices(self.belief.n_candidates, block)
        return namespace(self.left).concat([log_worth(self._reductions(part), self.log_share) for part in parts])

    def _reductions(self, part: slice) -> Array:
        """[n, M]: the reduction of the batch with each candidate of a block."""
        xp, latent = namespace(self.left), self.latent
        covariance = double(latent.covariance[part, :]) - xp.matmul(self.left[part, :], self.right.T)  # given the batch
        known = xp.sum(self.right**2, axis=1)  # [M]: variance that the batch removes
        explained = known + self._variance_share(part)[:, None] * covariance**2
        pair = replaced(
            latent,
            variance=double(latent.variance),
            mean=double(latent.mean),
            candidate_variance=filled(explained.shape[0], 1.0, explained),
            covariance=xp.sqrt(explained),
            candidate_covariance=None,
            noise_variance=None,
        )
        whole = pair if self.latent is self.belief else replaced(self.belief, latent=pair)
        return double(self.reduction.of(whole))

    def _variance_share(self, part: slice) -> Array:
        """[n]: one over the variance of each label given the batch; 0 where the batch tells it."""
        xp = namespace(self.left)
        variance = double(self.latent.candidate_variance[part])
        rest = variance - xp.sum(self.left[part, :] ** 2, axis=1)
        return ratio(xp.ones_like(rest), xp.where(rest > _SINGULAR * variance, rest, xp.zeros_like(rest)))

    def add(self, candidate: int) -> float:
        """One more column of both factors."""
        xp, latent, rows = namespace(self.left), self.latent, self.latent.candidate_covariance
        here = slice(candidate, candidate + 1)
        assert rows is not None
        row = rows(candidate) if callable(rows) else rows[candidate, :]
        scale = xp.sqrt(self._variance_share(here))  # [1]
        left = double(row) - xp.matmul(self.left, self.left[candidate, :])
        right = double(latent.covariance[candidate, :]) - xp.matmul(self.right, self.left[candidate, :])
        self.left = xp.concat([self.left, (left * scale)[:, None]], axis=1)
        self.right = xp.concat([self.right, (right * scale)[:, None]], axis=1)
        return 0.0


class _EnsembleBatch:
    """The probability of each configuration of the batch's labels and each member, [Q, K]."""

    def __init__(
        self,
        loss: AnyLoss,
        belief: CategoricalEnsemble | NormalEnsemble,
        log_weights: Array,
        rng: np.random.Generator,
        max_configurations: int,
    ) -> None:
        self.belief, self.rng, self.most = belief, rng, max_configurations
        reference = belief.reference(loss)
        self.point = None if reference.point is None else reference.point[:, None]  # [M, 1]
        self.log_share = double(reference.log_scale) + log_weights  # [M]
        self.configurations = belief.member_weights[None, :]  # [Q, K]
        self.loss: Any = loss
        if isinstance(loss, DistributionLoss):
            assert isinstance(belief, NormalEnsemble)
            self.loss = Tabulated.under(loss, belief)
            self.expected = self.loss.member_moments()  # [M, K, D]
            self.action = namespace(self.expected).matmul(double(self.configurations), self.expected)[:, 0, :]  # [M, D]
        else:
            self.expected = belief.member_moments(loss, reference)  # [M, K, D]
            self.action = loss.action(belief.moments(loss, reference))  # [M, d]
        self.sampled = False

    @property
    def method(self) -> str:
        """Which of the two it came to."""
        return "sampled" if self.sampled else "enumerated"

    def log_reductions(self) -> Array:
        """[N]: of sum over configurations of the regret of today's action, in blocks of candidates."""
        cells = self.configurations.shape[0] * self.belief.n_cells(self.loss)
        block = max(1, MEMORY_LIMIT // (8 * 8 * cells * math.prod(self.expected.shape[::2])))
        parts = slices(self.belief.n_candidates, block)
        xp = namespace(self.expected)
        return xp.concat([log_worth(xp.sum(self._regrets(part), axis=2), self.log_share) for part in parts])

    def _regrets(self, part: slice) -> Array:
        """[n, M, Q J]: the regret of today's action in each configuration with one more label."""
        xp = namespace(self.expected)
        cells = self._extended(part)  # [n, Q J, K]
        split = xp.permute_dims(xp.tensordot(cells, self.expected, axes=([2], [1])), (0, 2, 1, 3))  # [n, M, Q J, D]
        return double(self.loss.regret(split, self.action[:, None, :], self.point))

    def _extended(self, part: slice) -> Array:
        """[n, Q J, K]: configurations with the label of each candidate of a block."""
        xp = namespace(self.expected)
        outcomes = self.belief.take(part, slice(None)).member_outcomes()  # [n, J, K]
        joint = self.configurations[None, :, None, :] * outcomes[:, None, :, :]  # [n, Q, J, K]
        return xp.reshape(joint, (joint.shape[0], joint.shape[1] * joint.shape[2], joint.shape[3]))

    def add(self, candidate: int) -> float:
        """Extend the configurations by the candidate's label; sample them when they are too many."""
        xp, here = namespace(self.expected), slice(candidate, candidate + 1)
        error = self._sampling_error(here) if self.sampled else 0.0
        extended = self._extended(here)[0, ...]  # [Q J, K]
        mass = xp.sum(extended, axis=1)
        possible = xp.nonzero(mass > 0)[0]
        extended, mass = xp.take(extended, possible, axis=0), xp.take(mass, possible)
        if extended.shape[0] > self.most:
            share = np.asarray([float(each) for each in mass])
            drawn = self.rng.choice(share.shape[0], size=self.most, p=share / share.sum())
            drawn = xp.asarray(drawn, device=getattr(mass, "device", None))
            extended = xp.take(extended, drawn, axis=0) / xp.take(mass, drawn)[:, None] / float(self.most)
            self.sampled = True
        self.configurations = extended
        return error

    def _sampling_error(self, here: slice) -> float:
        """The standard error of the reduction over its size: configurations were drawn independently."""
        xp = namespace(self.expected)
        regrets = self._regrets(here)[0, ...]  # [M, Q J]
        weights = xp.exp(self.log_share - xp.max(self.log_share))
        cells = xp.reshape(xp.matmul(weights, regrets), (self.configurations.shape[0], -1))  # [Q, J]
        each = xp.sum(cells, axis=1)
        total = float(xp.sum(each))
        return float(xp.std(each, correction=1)) * math.sqrt(each.shape[0]) / total if total > 0 else 0.0
