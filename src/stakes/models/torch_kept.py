"""What the labels and the contexts of a process of GPyTorch need, kept from one chunk of a pool to the next.

Sizes: M contexts, n labels so far, p features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from stakes.models.device_posterior import DevicePosterior, Targets, Tensor

_PROBED = 32  # rows of labels at which the prior is asked whether it is still the same


class Kept:
    """Of one process as it was last asked."""

    def __init__(self, signs: tuple[Tensor, ...], solved: Any) -> None:
        self.signs = tuple(each.clone() for each in signs)  # parameters are written over
        self.solved = solved
        self.targets: tuple[Tensor, Targets] | None = None

    def targets_at(self, contexts: Tensor, posterior: DevicePosterior) -> Targets:
        """Those of these contexts."""
        kept = self.targets
        if kept is None or not _same(kept[0], contexts):
            copy = contexts.clone()  # rows of the user's may be written over
            kept = self.targets = copy, posterior.targets(copy)
        return kept[1]


_processes: WeakKeyDictionary[Any, Kept] = WeakKeyDictionary()  # what is kept must not hold the process itself


def kept(model: Any, solve: Callable[[Any], Any]) -> Kept:
    """What was solved for a process, or is now: whatever tells of a change is compared by value."""
    signs, before = _signs(model), _processes.get(model)
    if before is None or len(before.signs) != len(signs) or not all(map(_same, before.signs, signs)):
        before = _processes[model] = Kept(signs, solve(model))
    return before


def _signs(model: Any) -> tuple[Tensor, ...]:
    """Parameters, labels and their noise, and the prior at some rows, which tells of all that is no parameter."""
    rows = model.train_inputs[0]
    prior = model.forward(rows[:_PROBED])
    told = prior.mean, prior.covariance_matrix, model.likelihood.noise
    return (*model.state_dict().values(), rows, model.train_targets, *told)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.device == other.device and one.dtype == other.dtype and bool(torch.equal(one, other))
