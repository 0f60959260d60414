"""Worths with the truth left out: one given batch of eight labels, all of the call, beside the bare product.

Of each member 32 labels of the batch are drawn, and the others act at every context: the bare product of their shares
and their probabilities is what any way has to make. The call is to take 2 s at most on one core.
Sizes: M contexts, K members, C classes, n labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import Row, Settings, race
from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, SphericalLoss, VoteEnsemble, honest_reduction
from stakes.losses import Loss

_DRAWS = 32


class Shape(NamedTuple):
    """Sizes of an ensemble and a batch."""

    contexts: int
    members: int
    classes: int
    labels: int

    def __str__(self) -> str:
        return f"M={self.contexts} K={self.members} C={self.classes} n={self.labels}"


SHAPES, QUICK = (Shape(200, 100, 2, 8), Shape(200, 100, 10, 8)), (Shape(10, 8, 2, 3), Shape(10, 8, 3, 3))


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    for shape in QUICK if given.quick else SHAPES:
        rng = np.random.default_rng(0)
        sides = [rng.dirichlet(np.ones(shape.classes), (n, shape.members)) for n in (shape.labels, shape.contexts)]
        soft, votes = CategoricalEnsemble(*sides), VoteEnsemble(*(each.argmax(2) for each in sides), shape.classes)
        shares = rng.dirichlet(np.ones(shape.members), _DRAWS * shape.members)  # [Q, K]
        table = np.moveaxis(sides[1], 1, 0).reshape(shape.members, -1)  # [K, M C]
        jobs: dict[str, Callable[[], Any]] = {"bare product": lambda shares=shares, table=table: shares @ table}
        for name, loss in losses(shape.classes).items():
            for kind, belief in (("members", soft), ("votes", votes)):
                jobs[f"{name} of {kind}"] = lambda loss=loss, belief=belief, n=shape.labels: honest_reduction(
                    loss, belief, range(n), draws=_DRAWS
                )
        found = race(jobs, given.repeats)
        for job, (worth, seconds) in found.items():
            error = None if job == "bare product" else worth.sampling_error / max(worth.error, 1e-12)
            yield Row(job, str(shape), seconds, seconds / found["bare product"][1], error)


def losses(n_classes: int) -> dict[str, Loss]:
    """Those of classes, by name."""
    costs = np.where(np.eye(n_classes), 0.0, np.linspace(1.0, 10.0, n_classes)[:, None])
    rules: dict[str, Loss] = {"log loss": LogLoss(), "Brier": BrierLoss(), "spherical": SphericalLoss()}
    return {**rules, "cost matrix": CostMatrix(costs)}
