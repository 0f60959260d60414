"""Joint batches under a Gaussian belief about vectors, exact for every loss.

After a batch z is Gaussian again, and what its labels explain of it is B B' for a factor B: the joint reduction is that
of one label, white and of d numbers, whose covariance with z is the root of B B'.
Sizes: N candidates, n of a block, M contexts, L numbers of a label, d numbers of a target, t picks so far.
"""

from __future__ import annotations

import math

import numpy as np

from stakes._array import Array, constant, double, filled, log_of, namespace, replaced, slices
from stakes.acquisition.forms import find_form
from stakes.acquisition.reduction import MEMORY_LIMIT
from stakes.acquisition.scores import log_worth
from stakes.beliefs import VectorGaussianBelief
from stakes.beliefs.psd import deviations, root, singular, whitener
from stakes.losses import AnyLoss


class VectorGaussianBatch:
    """Two thin factors: what the batch explains of label covariances is G G', of those with targets G F'."""

    method = "exact"
    repeats: tuple[int, ...] = ()

    def __init__(self, loss: AnyLoss, belief: VectorGaussianBelief, log_weights: Array) -> None:
        self.belief = belief
        form = find_form(loss, belief)
        self.reduction = form.prepare(loss, belief)
        self.log_weights = log_weights  # [M]
        self.log_share = double(self.reduction.log_scale) + log_weights  # [M]
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

    def log_reductions(self, count: int = 1) -> Array:
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
        return double(self.reduction.of(self._whole_label(explained)))

    def _whole_label(self, explained: Array) -> VectorGaussianBelief:
        """The belief with white labels that explain `explained` [n, M, d, d] of the targets."""
        spread = root(explained, deviations(double(self.belief.variance)))
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
        return whitener(rest, singular(self.belief.candidate_variance), deviations(variance))

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
