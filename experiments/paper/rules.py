"""A strategy that scores for a loss of its own, whatever the simulation is about. Sizes: N candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes import score
from stakes.beliefs import Belief
from stakes.losses import AnyLoss


@dataclass(frozen=True)
class ScoreOf:
    """The expected reduction of one loss."""

    own: AnyLoss

    def __call__(self, belief: Belief, loss: AnyLoss, rng: np.random.Generator) -> Any:
        """[N]: relative to a scale that all share, as absolute ones may be beyond the range of numbers."""
        return score(self.own, belief, return_log_scale=True)[0]
