"""Batches that grow by one label at a time: what the labels chosen so far would be worth with one more.

How the joint reduction of a batch is computed depends on the belief:

* Gaussian and warped beliefs, also about vectors: a batch, too, leaves the target Gaussian, so its worth is
  EUR_c(rho_B), with rho_B from covariances alone: exact for every loss, and no labels are fantasised. Covariances with
  targets are kept as the batch leaves them: a pick costs one row of label covariances and O(N M), however many came
  before, and a batch holds as many numbers as the covariances of the belief. For vectors, what the labels explain of z
  is B B' for a factor B: the joint reduction is that of one label, white and of d numbers, whose covariance with z is
  the root of B B'.
* Ensembles: given the member, labels are independent, so a configuration of the batch's labels and a member have the
  product of their probabilities. Configurations are enumerated, or sampled when they are many: those of classes by
  `stakes.acquisition.class_batches`, all others by `stakes.acquisition.ensemble_batches`.
* Mixtures of Gaussian beliefs: labels of the batch are enumerated for one candidate and drawn for more; given them,
  what is left is a mixture again (`stakes.acquisition.mixtures.MixtureBatch`).
* Any other belief that has `start_batch` (`stakes.beliefs.BatchBelief`): its labels together, seen as one.

Sizes: N candidates, n of a block, M contexts, t picks so far, L numbers of a label, d numbers of
a target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np

from stakes._utils.array import Array, constant, double, filled, log_of, namespace, ratio, replaced, slices
from stakes.acquisition.class_batches import ClassBatch, serves
from stakes.acquisition.ensemble_batches import EnsembleBatch, variance_of
from stakes.acquisition.forms import find_form, simplest
from stakes.acquisition.mixtures import MixtureBatch
from stakes.acquisition.scores import (
    MEMORY_LIMIT,
    best_of_knowing,
    blocks,
    checked_context_weights,
    log_scorer,
    log_worth,
)
from stakes.beliefs import (
    BatchBelief,
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    GaussianMixtureBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.beliefs.vector import matrix_root, singular_threshold, standard_deviations, whitener
from stakes.losses import AnyLoss

_SINGULAR = 1e-12  # of its variance: a candidate whose label is known from the batch tells no more
_PAIRS = 2**18  # of candidates and contexts that are held at once: 2 MiB, near the cache, and few enough blocks
_ALL = 1.0 - 2.0**-53  # the largest share below one, whose logarithm is finite


class GaussianBatch:
    """Under a Gaussian or warped belief: a batch explains G G' of label covariances, and G F' of those with targets."""

    method = "exact"
    repeats = tuple(2**power for power in range(1, 11))

    def __init__(self, loss: AnyLoss, belief: GaussianBelief | WarpedGaussianBelief, log_weights: Array) -> None:
        latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
        assert isinstance(latent, GaussianBelief)
        self.latent = _in_double(latent)
        self.belief = replaced(belief, latent=self.latent) if isinstance(belief, WarpedGaussianBelief) else self.latent
        form = find_form(loss, self.belief)
        self.of, log_scale = form.prepare(loss, self.belief)
        self.pair_numbers = 8 + form.numbers(loss, self.belief)  # held for each candidate and context of a block
        self._reductions(0.99 * self.latent.variance[None, :])  # so that curves reach as far as any batch may
        self.log_weights = log_weights  # [M]
        self.log_share = double(log_scale) + log_weights  # [M]
        self.parts = list(self._parts())
        self.given = [self.latent.covariance[part, :] for part in self.parts]  # [n, M]: covariances given the picks
        self.given_count = [0] * len(self.parts)  # of picks, when these were last asked for
        self.left = filled((belief.n_candidates, 0), 0.0, belief.like)  # G: [N, t]
        self.right = filled((belief.n_contexts, 0), 0.0, belief.like)  # F: [M, t]
        self.share = self._variance_share()  # [N]

    def log_joint(self) -> float:
        """The log of E_c[EUR_c(rho_B)]."""
        if self.left.shape[1] == 0:
            return -math.inf
        return float(log_worth(self._reductions(self._known()[None, :]), self.log_share)[0])

    def log_contexts(self) -> Array:
        """[M]: the log of p(c) EUR_c(rho_B)."""
        return log_of(self._reductions(self._known()[None, :])[0, :]) + self.log_share

    def log_most(self) -> Array:
        """[M]: the log of p(c) EUR_c(1): the target is known."""
        return log_of(self._reductions(self.latent.variance[None, :])[0, :]) + self.log_share

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        here = slice(candidate, candidate + 1)
        left, right = self.left[here, :], namespace(self.right).permute_dims(self.right, (1, 0))
        covariance = self.latent.covariance[here, :] - namespace(self.left).matmul(left, right)
        explained = self._known() + self._removed(here, covariance)
        return float(log_worth(self._reductions(explained), self.log_share)[0])

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of rho_B with x added, 1 - (1 - rho_B) (1 - rho_x)^count, rho_x the share of what is left."""
        known, found = self._known(), []
        for removed in self._removed_by_parts():
            explained = self._repeated(removed, count)
            explained += known
            found.append(log_worth(self._reductions(explained), self.log_share))
        return namespace(self.left).concat(found)

    def variance_gains(self) -> Array:
        """[N]: E_c of the (latent) variance that each label removes of what is left."""
        xp = namespace(self.left)
        weights = xp.exp(self.log_weights)
        return xp.concat([xp.matmul(removed, weights) for removed in self._removed_by_parts()])

    def add(self, candidate: int) -> float:
        """One more column of both factors."""
        xp, latent, rows = namespace(self.left), self.latent, self.latent.candidate_covariance
        assert rows is not None
        row = rows(candidate) if callable(rows) else rows[candidate, :]
        scale = xp.sqrt(self.share[candidate])
        left = double(row) - xp.matmul(self.left, self.left[candidate, :])
        right = latent.covariance[candidate, :] - xp.matmul(self.right, self.left[candidate, :])
        self.left = xp.concat([self.left, (left * scale)[:, None]], axis=1)
        self.right = xp.concat([self.right, (right * scale)[:, None]], axis=1)
        self.share = self._variance_share()
        return 0.0

    def _parts(self) -> Iterator[slice]:
        """Candidates in blocks."""
        pairs = min(_PAIRS, MEMORY_LIMIT // (8 * self.pair_numbers))
        return slices(self.belief.n_candidates, max(1, pairs // self.belief.n_contexts))

    def _known(self) -> Array:
        """[M]: the variance that the batch removes."""
        return namespace(self.right).sum(self.right**2, axis=1)

    def _removed(self, part: slice, covariance: Array) -> Array:
        """[n, M]: the variance that labels remove of what the batch leaves, from covariances given the batch."""
        removed = covariance * covariance
        removed *= self.share[part, None]
        return removed

    def _removed_by_parts(self) -> Iterator[Array]:
        """[n, M]: the variance that each label removes of what the batch leaves, in blocks of candidates."""
        for place, part in enumerate(self.parts):
            if (count := self.given_count[place]) < self.left.shape[1]:
                explained = namespace(self.left).matmul(self.left[part, count:], self.right[:, count:].T)
                if count:
                    self.given[place] -= explained
                else:
                    self.given[place] = self.given[place] - explained
                self.given_count[place] = self.left.shape[1]
            yield self._removed(part, self.given[place])

    def _repeated(self, removed: Array, count: int) -> Array:
        """[n, M]: the variance that `count` labels remove, each the same share of what the one before leaves."""
        if count == 1:
            return removed
        xp = namespace(removed)
        rest = self.latent.variance - self._known()  # [M]
        rest = xp.where(rest > 0, rest, xp.zeros_like(rest))
        share = xp.clip(ratio(removed, rest + xp.zeros_like(removed)), 0.0, _ALL)
        return -rest * xp.expm1(count * xp.log1p(-share))

    def _reductions(self, explained: Array) -> Array:
        """[n, M]: EUR_c where `explained` [n, M] of the variance is removed."""
        latent = self.latent
        pair = replaced(
            latent,
            candidate_variance=filled(explained.shape[0], 1.0, explained),
            covariance=namespace(explained).sqrt(explained),
            candidate_covariance=None,
            noise_variance=None,
        )
        whole = pair if self.latent is self.belief else replaced(self.belief, latent=pair)
        return double(self.of(whole))

    def _variance_share(self) -> Array:
        """[N]: one over the variance of each label given the batch; 0 where the batch tells it."""
        xp, variance = namespace(self.left), self.latent.candidate_variance
        rest = variance - xp.sum(self.left**2, axis=1)
        return ratio(xp.ones_like(rest), xp.where(rest > _SINGULAR * variance, rest, xp.zeros_like(rest)))


def _in_double(latent: GaussianBelief) -> GaussianBelief:
    """The belief in double precision: gains are differences of what may differ little."""
    fields = ("mean", "variance", "candidate_variance", "covariance")
    return replaced(latent, **{field: double(getattr(latent, field)) for field in fields})


class VectorGaussianBatch:
    """The same two factors under a Gaussian belief about vectors."""

    method = "exact"
    repeats: tuple[int, ...] = ()

    def __init__(self, loss: AnyLoss, belief: VectorGaussianBelief, log_weights: Array) -> None:
        self.belief = belief
        form = find_form(loss, belief)
        self.of, log_scale = form.prepare(loss, belief)
        self.log_weights = log_weights  # [M]
        self.log_share = double(log_scale) + log_weights  # [M]
        size, d = belief.covariance.shape[2:]
        self.left = filled((belief.n_candidates, size, 0), 0.0, belief.like)  # G: [N, L, t L]
        self.right = filled((belief.n_contexts, d, 0), 0.0, belief.like)  # F: [M, d, t L]
        whole = self._whole_label(filled((1, belief.n_contexts, d, d), 0.0, belief.like))
        self.block = max(1, MEMORY_LIMIT // (8 * belief.n_contexts * max(form.numbers(loss, whole), 8 * d * d)))

    def log_joint(self) -> float:
        """The log of the reduction of the batch."""
        return -math.inf if self.left.shape[2] == 0 else self._log_worth(self._known()[None, ...])

    def log_contexts(self) -> Array:
        """[M]: the log of what each context adds to the reduction of the batch."""
        return log_of(self._reductions(self._known()[None, ...])[0, :]) + self.log_share

    def log_most(self) -> Array:
        """[M]: the log of what each context adds to the reduction once the target is known."""
        return log_of(self._reductions(double(self.belief.variance)[None, ...])[0, :]) + self.log_share

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        return self._log_worth(self._known() + self._removed(slice(candidate, candidate + 1)))

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of the batch with each candidate added, in blocks of candidates."""
        assert count == 1
        known, parts = self._known(), slices(self.belief.n_candidates, self.block)
        worth = [log_worth(self._reductions(known + self._removed(part)), self.log_share) for part in parts]
        return namespace(self.left).concat(worth)

    def variance_gains(self) -> Array:
        """[N]: E_c of the variance, summed over the numbers of z, that each label removes of what is left."""
        xp, weights = namespace(self.left), namespace(self.left).exp(self.log_weights)
        parts = slices(self.belief.n_candidates, self.block)
        removed = (xp.sum(xp.linalg.diagonal(self._removed(part)), axis=-1) for part in parts)  # [n, M]
        return xp.concat([xp.matmul(each, weights) for each in removed])

    def _log_worth(self, explained: Array) -> float:
        return float(log_worth(self._reductions(explained), self.log_share)[0])

    def _known(self) -> Array:
        """[M, d, d]: the covariance that the batch explains."""
        return namespace(self.right).matmul(self.right, namespace(self.right).matrix_transpose(self.right))

    def _removed(self, part: slice) -> Array:
        """[n, M, d, d]: the covariance that each label of a block explains of what the batch leaves."""
        xp = namespace(self.left)
        covariance = double(self.belief.covariance[part, ...])  # [n, M, L, d]
        left, right = self.left[part, None, :, :], xp.matrix_transpose(self.right)  # [n, 1, L, t L], [M, t L, d]
        covariance = covariance - xp.matmul(left, right)  # given the batch
        gain = xp.matmul(xp.matrix_transpose(covariance), self._white(part)[:, None, :, :])  # [n, M, d, L]
        return xp.matmul(gain, xp.matrix_transpose(gain))

    def _reductions(self, explained: Array) -> Array:
        """[n, M]: the reduction where `explained` [n, M, d, d] of the covariance of z is known."""
        return double(self.of(self._whole_label(explained)))

    def _whole_label(self, explained: Array) -> VectorGaussianBelief:
        """The belief with white labels that explain `explained` [n, M, d, d] of the targets."""
        spread = matrix_root(explained, standard_deviations(double(self.belief.variance)))
        xp, count, d = namespace(explained), explained.shape[0], explained.shape[-1]
        white = constant(np.eye(d), explained)
        return replaced(
            self.belief,
            mean=double(self.belief.mean),
            variance=double(self.belief.variance),
            candidate_variance=xp.broadcast_to(white, (count, d, d)),
            covariance=xp.matrix_transpose(spread),
            candidate_covariance=None,
            noise_variance=None,
        )

    def _white(self, part: slice) -> Array:
        """[n, L, L]: directions in which labels still vary given the batch, in units of the variance they had."""
        xp, variance = namespace(self.left), double(self.belief.candidate_variance[part, ...])
        left = self.left[part, ...]
        rest = variance - xp.matmul(left, xp.matrix_transpose(left))
        return whitener(rest, singular_threshold(self.belief.candidate_variance), standard_deviations(variance))

    def add(self, candidate: int) -> float:
        """L more columns of both factors."""
        xp, rows = namespace(self.left), self.belief.candidate_covariance
        assert rows is not None
        row = rows(candidate) if callable(rows) else rows[candidate, ...]  # [L, N, L]
        known, white = xp.matrix_transpose(self.left[candidate, ...]), self._white(slice(candidate, candidate + 1))
        left = xp.permute_dims(double(row), (1, 2, 0)) - xp.matmul(self.left, known)  # [N, L, L]
        covariance = double(self.belief.covariance[candidate, ...])  # [M, L, d]
        right = xp.matrix_transpose(covariance) - xp.matmul(self.right, known)  # [M, d, L]
        self.left = xp.concat([self.left, xp.matmul(left, white)], axis=2)
        self.right = xp.concat([self.right, xp.matmul(right, white)], axis=2)
        return 0.0


class BeliefBatch:
    """Under a belief that has `start_batch`: the belief in which every label comes together with those of the batch."""

    method = "exact"
    repeats: tuple[int, ...] = ()

    def __init__(self, loss: AnyLoss, belief: Any, weights: Array) -> None:
        self.loss, self.belief, self.weights = loss, belief, weights
        self.log_weights = log_of(weights)  # [M]
        self.chosen: tuple[int, ...] = ()
        self.joint: Belief = belief
        self._log_contexts = filled(belief.n_contexts, -math.inf, belief.like)

    def log_joint(self) -> float:
        """The log of the sum of what contexts add."""
        return float(_log_total(self._log_contexts))

    def log_contexts(self) -> Array:
        """[M]: those of the candidate that was added last, and whose label came with the others."""
        return self._log_contexts

    def log_most(self) -> Array:
        """[M]: the log of p(c) times what is saved there once the target is known."""
        return log_of(double(best_of_knowing(self.loss, self.belief))) + self.log_weights

    def log_reduction(self, candidate: int) -> float:
        """That of `log_reductions` for one candidate."""
        return float(_log_total(self._of(self.loss, candidate)))

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: of the labels of the batch and that of each candidate."""
        assert count == 1
        return self._logs(self.loss, self.joint)

    def variance_gains(self) -> Array:
        """[N]: by how much each candidate lowers the variance that the batch leaves."""
        xp, loss = namespace(self.belief.like), variance_of(self.belief)
        before = 0.0
        if self.chosen:
            last = self.belief.start_batch(self.chosen[:-1])
            before = math.exp(float(self._logs(loss, last)[self.chosen[-1]]))
        gains = xp.exp(self._logs(loss, self.joint)) - before
        return xp.where(gains > 0, gains, xp.zeros_like(gains))  # below by rounding only

    def add(self, candidate: int) -> float:
        """Let every label come with that of the candidate, too."""
        self._log_contexts = self._of(self.loss, candidate)
        self.chosen = (*self.chosen, candidate)
        self.joint = self.belief.start_batch(self.chosen)
        return 0.0

    def _logs(self, loss: AnyLoss, belief: Belief) -> Array:
        """[N]: the log of the expected reduction, averaged over contexts."""
        return log_scorer(find_form(loss, belief), loss, belief, self.weights)(belief)

    def _of(self, loss: AnyLoss, candidate: int) -> Array:
        """[M]: what each context adds to the reduction with one candidate added."""
        one = self.joint.take(slice(candidate, candidate + 1), slice(None))
        parts = blocks(find_form(loss, one), loss, one, None)
        logs = [log_of(double(next(each)()[0, :])) + double(log_scale) for _, log_scale, each in parts]
        return namespace(self.weights).concat(logs) + self.log_weights


def _log_total(logs: Array) -> Array:
    """The log of the sum of exp(logs) [M]."""
    ones = namespace(logs).ones_like(logs)[None, :]
    return log_worth(ones, logs)[0]


class Batch(Protocol):
    """Labels chosen so far, and what they would be worth with more."""

    @property
    def method(self) -> str:
        """How the joint reduction is computed."""

    @property
    def repeats(self) -> tuple[int, ...]:
        """The numbers of labels, each as informative as one candidate's, whose joint worth is known."""

    @property
    def log_weights(self) -> Array:
        """[M]: the log of how often each context comes up."""

    def log_joint(self) -> float:
        """The log of the joint reduction of the labels so far."""

    def log_contexts(self) -> Array:
        """[M]: the log of what each context adds to the joint reduction of the labels so far."""

    def log_most(self) -> Array:
        """[M]: the log of what each context adds to the most that labels can be worth, however many."""

    def log_reduction(self, candidate: int) -> float:
        """The log of the joint reduction with one candidate added."""

    def log_reductions(self, count: int = 1, prices: Array | None = None) -> Array:
        """[N]: the log of the joint reduction with each candidate added, `count` labels like it.

        With `prices` [N], infinite for a candidate that is out of the question, only the best for its price need be
        right.
        """

    def variance_gains(self) -> Array:
        """[N]: by how much each candidate would lower the variance that is left, averaged over contexts."""

    def add(self, candidate: int) -> float:
        """Add a candidate; returns the relative standard error of the joint reduction that it was chosen by."""


Starter: TypeAlias = Callable[[AnyLoss, Any, Array, np.random.Generator, int], Batch]
"""A loss, a belief, log weights of contexts [M], random numbers and a number of configurations to an empty batch."""


def _gaussian_batch(loss: AnyLoss, belief: Any, log_weights: Array, *settings: Any) -> Batch:
    if isinstance(getattr(belief, "latent", None), GaussianMixtureBelief):
        return MixtureBatch(loss, belief, log_weights, *settings)
    return GaussianBatch(loss, belief, log_weights)


def _class_batch(loss: AnyLoss, belief: Any, log_weights: Array, *settings: Any) -> Batch:
    quick = serves(loss, belief, log_weights)
    return (ClassBatch if quick else EnsembleBatch)(loss, belief, log_weights, *settings)


def _vector_batch(loss: AnyLoss, belief: Any, log_weights: Array, *_: Any) -> Batch:
    return VectorGaussianBatch(loss, belief, log_weights)


def _normal_batch(loss: AnyLoss, belief: Any, *settings: Any) -> Batch:
    """With a finer rule for finite actions: the cells of a batch do not split where the action changes."""
    return EnsembleBatch(loss, belief.refined().refined() if loss.finite_actions else belief, *settings)


def _vector_normal_batch(
    loss: AnyLoss, belief: Any, log_weights: Array, rng: np.random.Generator, max_configurations: int
) -> Batch:
    """By the nodes of members for several labels: those of a grid are too many to be enumerated."""
    nested = replaced(belief, rule=replaced(belief.rule, grid=0))
    return EnsembleBatch(loss, belief, log_weights, rng, max_configurations, several=nested)


_STARTERS: Mapping[type, Starter] = MappingProxyType(
    {
        GaussianBelief: _gaussian_batch,
        WarpedGaussianBelief: _gaussian_batch,
        GaussianMixtureBelief: MixtureBatch,
        VectorGaussianBelief: _vector_batch,
        VoteEnsemble: _class_batch,
        CategoricalEnsemble: _class_batch,
        VectorNormalEnsemble: _vector_normal_batch,
        NormalEnsemble: _normal_batch,
    }
)
"""Batches that are quicker than by `start_batch` of the belief, by its type."""


def start_batch(
    loss: AnyLoss, belief: Belief, context_weights: Any, rng: np.random.Generator, max_configurations: int
) -> Batch:
    """A batch of no labels yet: the belief's own, or that for its type."""
    belief = simplest(belief)
    weights = checked_context_weights(context_weights, belief)  # [M]
    if isinstance(belief, BatchBelief):
        return BeliefBatch(loss, belief, weights)
    starter = _starter(belief)
    assert starter is not None
    return starter(loss, belief, log_of(weights), rng, max_configurations)


def _starter(belief: Belief) -> Starter | None:
    return next((_STARTERS[each] for each in type(belief).__mro__ if each in _STARTERS), None)


def has_batches(belief: Belief) -> bool:
    """Whether labels of the belief can be chosen together."""
    return isinstance(belief, BatchBelief) or _starter(simplest(belief)) is not None


def obstacle(belief: Belief) -> Exception | None:
    """Why batches of this belief cannot grow, as the error to raise; None where they can."""
    if not has_batches(belief):
        return TypeError(
            f"joint batches are known for Gaussian and warped beliefs and for ensembles; got {type(belief).__name__}. "
            "Give it the method start_batch of stakes.beliefs.BatchBelief; or score ranks single labels under any "
            'belief, and select(..., stochastic="power") draws from them.'
        )
    latent = belief.latent if isinstance(belief, WarpedGaussianBelief) else simplest(belief)
    kinds = {GaussianBelief: "[N, N]", GaussianMixtureBelief: "[S, N, N]", VectorGaussianBelief: "[N, L, N, L]"}
    shape = next((kinds[each] for each in type(latent).__mro__ if each in kinds), None)
    if shape is not None and latent.candidate_covariance is None:
        return ValueError(
            f"a joint batch needs the covariances between candidates: give candidate_covariance, {shape} with the "
            'noise on its diagonal, or a function from a position to its row; select(..., stochastic="power") needs '
            "none"
        )
    return None
