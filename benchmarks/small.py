"""Small problems: all of `score`, where checks and tables are most of it, beside the same in a few lines of NumPy.

Ten candidates, five contexts. Sizes: K members, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.curved_losses import EIGHT, SIGMOID
from benchmarks.measure import Row, Settings, race
from benchmarks.members import probabilities
from stakes import (
    CRPS,
    CategoricalEnsemble,
    GaussianBelief,
    Linex,
    LogLoss,
    Pinball,
    SquaredError,
    ThresholdDecision,
    score,
)

N, M, K, C = 10, 5, 20, 3
_CALLS, _PLAIN_CALLS = 20, 1000  # of one turn: what takes microseconds needs more of them


def rows(given: Settings) -> Iterator[Row]:
    """The table: seconds of one call."""
    candidates, contexts = probabilities(N, K, C, 1), probabilities(M, K, C, 2)
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((N + M, 6)) / 2.0
    latent = mixing @ mixing.T
    mean, variance, labels = np.zeros(M), np.diag(latent)[N:], np.diag(latent)[:N] + 0.2
    process = GaussianBelief(mean, variance, labels, latent[:N, N:])
    soft = CategoricalEnsemble(candidates, contexts)
    jobs: dict[str, Callable[[], Any]] = {
        "plain log loss of members": lambda: _information(candidates, contexts),
        "log loss of members": lambda: score(LogLoss(), soft),
        "plain variance reduction": lambda: (latent[:N, N:] ** 2 / labels[:, None]).mean(axis=1),
        "squared error of a process": lambda: score(SquaredError(), process),
        "threshold decision of a process": lambda: score(ThresholdDecision(0.5), process),
        "weight of eight points of a process": lambda: score(SquaredError(EIGHT), process),
        "Linex, weight of eight points of a process": lambda: score(Linex(1.0, EIGHT), process),
        "pinball, sigmoid weight of a process": lambda: score(Pinball(0.8, SIGMOID), process),
        "CRPS, sigmoid weight of a process": lambda: score(CRPS(SIGMOID), process),
    }
    calls = {name: _PLAIN_CALLS if name.startswith("plain") else _CALLS for name in jobs}
    found = race({name: _often(job, calls[name]) for name, job in jobs.items()}, given.repeats)
    each = {name: seconds / calls[name] for name, (_, seconds) in found.items()}
    for name, seconds in each.items():
        plain = "plain log loss of members" if "members" in name else "plain variance reduction"
        yield Row(name, f"N={N} M={M}", seconds, seconds / each[plain])


def _often(job: Callable[[], Any], calls: int) -> Callable[[], Any]:
    return lambda: [job() for _ in range(calls)]


def _information(candidates: Any, contexts: Any) -> Any:
    """[N]: EPIG, as it is written down first."""
    joint = np.einsum("nky,mkz->nmyz", candidates, contexts) / candidates.shape[1]
    alone = joint.sum(axis=3, keepdims=True) * joint.sum(axis=2, keepdims=True)
    return (joint * np.log(joint / alone)).sum(axis=(2, 3)).mean(axis=1)
