"""Beliefs of models that tell a joint Gaussian of any rows and no more: asked of a few candidates with all contexts.

Sizes: N candidates, M contexts, B rows of any block, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch

from stakes._array import slices
from stakes.beliefs import GaussianBelief
from stakes.models.base import Request
from stakes.models.device_posterior import Tensor, bounded

Joint: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From rows [B, p] to the mean [B] and the covariance [B, B] of f there."""
Noise: TypeAlias = Callable[[Tensor], Tensor]
"""From rows [B, p] to the variance [B] that a label has beside f."""

_FEWEST = 64  # candidates of a block, however few the contexts are


def joint_belief(joint: Joint, noise: Noise, pool: Tensor, contexts: Tensor, request: Request) -> GaussianBelief:
    """About the labels of `pool` [N, p] and the targets at `contexts` [M, p], as many candidates as contexts at a time.

    All pairs of these are computed, four times as many as are needed: with fewer candidates at a time, pairs of
    contexts are computed more often; with more, pairs of candidates are more.
    """
    (mean, covariance), target_noise = joint(contexts), noise(contexts)
    known, own, blocks = covariance.diagonal().clone(), [], []
    for part in slices(len(pool), max(_FEWEST, len(contexts))):
        variance, block = _block(joint, pool[part], contexts, known)
        own.append(variance)
        blocks.append(block)
    label_noise = noise(pool)
    variance = torch.cat(own) + label_noise
    rows = _Rows(joint, pool, variance) if request.joint else None
    target = known + target_noise if request.target == "label" else known
    return GaussianBelief(mean, target, variance, torch.cat(blocks), rows, label_noise)


def _block(joint: Joint, pool: Tensor, contexts: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """[B], [B, M]: variances of f, and covariances with f at the contexts, of variance `known` [M]."""
    count = len(pool)
    _, both = joint(torch.cat([pool, contexts]))
    variance, covariance = both.diagonal()[:count].clamp(min=0.0), both[:count, count:].clone()
    bounded(covariance, variance, known, out=covariance)
    return variance, covariance


@dataclass(frozen=True, eq=False)
class _Rows:
    """i -> [N]: covariances of the label of candidate i with those of all, itself included."""

    joint: Joint
    pool: Tensor
    variance: Tensor
    """[N]: of labels, with their noise"""

    def __call__(self, i: int) -> Tensor:
        """The row of candidate i."""
        one, parts = self.pool[i : i + 1], slices(len(self.pool), _FEWEST)
        row = torch.cat([self.joint(torch.cat([one, self.pool[part]]))[1][0, 1:] for part in parts])
        row[i] = self.variance[i]
        return row
