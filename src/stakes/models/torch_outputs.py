"""Several models of torch, one for each output: their beliefs as one, about vectors whose numbers are independent.

Sizes: N candidates, M contexts, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from stakes.beliefs import Belief, GaussianBelief, VectorGaussianBelief


def together(beliefs: Sequence[Any]) -> Belief:
    """The belief about labels and targets that hold a number of each of `beliefs`; of one, that one."""
    if len(beliefs) == 1:
        return cast(Belief, beliefs[0])
    if odd := [type(each).__name__ for each in beliefs if not isinstance(each, GaussianBelief)]:
        raise TypeError(
            "outputs are served together where each is one number with a Gaussian belief; one of these is a "
            f"{odd[0]}. Ask that model by itself."
        )
    return VectorGaussianBelief(
        torch.stack([each.mean for each in beliefs], dim=-1),
        _diagonal(beliefs, "variance"),
        _diagonal(beliefs, "candidate_variance"),
        _diagonal(beliefs, "covariance"),
        _rows(beliefs),
        _diagonal(beliefs, "noise_variance"),
    )


def _diagonal(beliefs: Sequence[Any], name: str) -> Any:
    """[..., d, d]: nothing between outputs."""
    return torch.diag_embed(torch.stack([getattr(each, name) for each in beliefs], dim=-1))


def _rows(beliefs: Sequence[Any]) -> Any:
    """I -> [d, N, d], where covariances between candidates were asked for."""
    rows = [each.candidate_covariance for each in beliefs]
    if rows[0] is None:
        return None
    return lambda i: torch.diag_embed(torch.stack([row(i) for row in rows], dim=-1)).permute(1, 0, 2)
