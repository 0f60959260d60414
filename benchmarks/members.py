"""Members of ensembles to score, made up, and how far scores are from the general route in float64.

Sizes: N candidates, M contexts, n rows, K members, C classes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stakes.acquisition import expected_regret
from stakes.losses import LogLoss, Loss


class Shape(NamedTuple):
    """Of a belief of classes."""

    candidates: int
    contexts: int
    members: int
    classes: int

    def __str__(self) -> str:
        return f"N={self.candidates} M={self.contexts} K={self.members} C={self.classes}"


def weights(classes: int) -> Any:
    """[C]: two classes weigh 50."""
    return np.where(np.arange(classes) < 2, 50.0, 1.0)


def weighted_epig(classes: int) -> LogLoss:
    """Log loss whose expected reduction is the paper's weighted EPIG."""
    return LogLoss(tuple(weights(classes)))


def votes(n: int, members: int, classes: int, seed: int) -> Any:
    """[n, K]: class numbers. A member is an opinion, the same for every seed, that each row reads with some noise."""
    rng = np.random.default_rng([seed, 1])
    opinions = np.random.default_rng(0).random(members, dtype=np.float32)
    read = 0.6 * opinions + 0.4 * rng.random((n, members), dtype=np.float32)
    cuts = np.sort(rng.random((n, classes - 1), dtype=np.float32), axis=1)
    found = np.zeros((n, members), dtype=np.uint8)
    for cut in cuts.T:
        found += read > cut[:, None]
    return found


def probabilities(n: int, members: int, classes: int, seed: int) -> Any:
    """[n, K, C]: a softmax whose logits hang together over rows through three traits of each member."""
    rng = np.random.default_rng([seed, 2])
    traits = np.random.default_rng(0).standard_normal((members, 3))
    logits = np.einsum("ncr,kr->nkc", rng.standard_normal((n, classes, 3)), traits)
    logits += 2.0 * rng.standard_normal((n, 1, classes))
    np.exp(logits, out=logits)
    logits /= np.sum(logits, axis=2, keepdims=True)
    return logits


def error(loss: Loss, belief: Any, scores: Any) -> float:
    """The largest error of scores [N] of some candidates, the best among them, relative to the best score."""
    chosen = {int(np.argmax(scores)), *range(0, len(scores), max(1, len(scores) // 4))}
    wanted = {n: np.mean(expected_regret(loss, belief.take(slice(n, n + 1), slice(None)))) for n in chosen}
    return float(max(abs(scores[n] - wanted[n]) for n in chosen) / max(wanted.values()))
