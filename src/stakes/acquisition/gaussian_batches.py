"""Batches under Gaussian and warped beliefs: a batch, too, leaves the target Gaussian, so its worth is EUR_c(rho_B).

rho_B comes from covariances alone: exact for every loss, and no labels are fantasised. Covariances with targets are
kept as the batch leaves them: a pick costs one row of label covariances and O(N M), however many came before, and a
batch holds as many numbers as the covariances of the belief.
Sizes: N candidates, n of a block, M contexts, t picks so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from stakes._array import Array, double, filled, log_of, namespace, ratio, replaced, slices
from stakes.acquisition.forms import find_form
from stakes.acquisition.reduction import MEMORY_LIMIT
from stakes.acquisition.scores import log_worth
from stakes.beliefs import GaussianBelief, WarpedGaussianBelief
from stakes.losses import AnyLoss

_SINGULAR = 1e-12  # of its variance: a candidate whose label is known from the batch tells no more
_PAIRS = 2**18  # of candidates and contexts that are held at once: 2 MiB, near the cache, and few enough blocks
_ALL = 1.0 - 2.0**-53  # the largest share below one, whose logarithm is finite


class Block:
    """Covariances of some labels with all targets, given the picks so far when they were last asked for."""

    def __init__(self, part: slice, covariance: Array) -> None:
        self.part, self.covariance, self.count = part, covariance, 0  # [n, M]: at first that of the belief itself

    def given(self, left: Array, right: Array) -> Array:
        """[n, M]: given all picks, whose factors are [N, t] and [M, t]."""
        if self.count < left.shape[1]:
            new = slice(self.count, None)
            explained = namespace(left).matmul(left[self.part, new], right[:, new].T)
            if self.count:
                self.covariance -= explained
            else:
                self.covariance = self.covariance - explained
            self.count = left.shape[1]
        return self.covariance


class GaussianBatch:
    """Two thin factors: what the batch explains of label covariances is G G', of those with targets G F'."""

    method = "exact"
    repeats = tuple(2**power for power in range(1, 11))

    def __init__(self, loss: AnyLoss, belief: GaussianBelief | WarpedGaussianBelief, log_weights: Array) -> None:
        self.latent = _in_double(belief.latent if isinstance(belief, WarpedGaussianBelief) else belief)
        self.belief = replaced(belief, latent=self.latent) if isinstance(belief, WarpedGaussianBelief) else self.latent
        form = find_form(loss, self.belief)
        self.reduction = form.prepare(loss, self.belief)
        self.pair_numbers = 8 + form.numbers(loss, self.belief)  # held for each candidate and context of a block
        self._reductions(0.99 * self.latent.variance[None, :])  # so that curves reach as far as any batch may
        self.log_weights = log_weights  # [M]
        self.log_share = double(self.reduction.log_scale) + log_weights  # [M]
        self.blocks = [Block(part, self.latent.covariance[part, :]) for part in self._parts()]
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
        alone = Block(slice(candidate, candidate + 1), self.latent.covariance[candidate : candidate + 1, :])
        explained = self._known() + self._removed(alone)
        return float(log_worth(self._reductions(explained), self.log_share)[0])

    def log_reductions(self, count: int = 1) -> Array:
        """[N]: of rho_B with x added, 1 - (1 - rho_B) (1 - rho_x)^count, rho_x the share of what is left."""
        known, parts = self._known(), []
        for block in self.blocks:
            explained = self._repeated(self._removed(block), count)
            explained += known
            parts.append(log_worth(self._reductions(explained), self.log_share))
        return namespace(self.left).concat(parts)

    def variance_gains(self) -> Array:
        """[N]: E_c of the (latent) variance that each label removes of what is left."""
        xp = namespace(self.left)
        weights = xp.exp(self.log_weights)
        return xp.concat([xp.matmul(self._removed(block), weights) for block in self.blocks])

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

    def _removed(self, block: Block) -> Array:
        """[n, M]: the variance that each label of a block removes of what the batch leaves."""
        covariance = block.given(self.left, self.right)
        removed = covariance * covariance
        removed *= self.share[block.part, None]
        return removed

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
        return double(self.reduction.of(whole))

    def _variance_share(self) -> Array:
        """[N]: one over the variance of each label given the batch; 0 where the batch tells it."""
        xp, variance = namespace(self.left), self.latent.candidate_variance
        rest = variance - xp.sum(self.left**2, axis=1)
        return ratio(xp.ones_like(rest), xp.where(rest > _SINGULAR * variance, rest, xp.zeros_like(rest)))


def _in_double(latent: GaussianBelief) -> GaussianBelief:
    """The belief in double precision: gains are differences of what may differ little."""
    fields = ("mean", "variance", "candidate_variance", "covariance")
    return replaced(latent, **{field: double(getattr(latent, field)) for field in fields})
