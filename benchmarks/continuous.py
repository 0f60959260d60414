"""`optimize_acqf` over continuous candidates: by one's own loss, beside BoTorch's integrated posterior variance.

A process with 200 labels, four candidates together, 256 restarts, the same contexts and as many steps of the optimiser:
what a search costs, making the acquisition function included. `python -m benchmarks continuous`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from botorch.acquisition import qNegIntegratedPosteriorVariance
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf

from benchmarks.measure import Row, Settings, race
from stakes import CRPS, ExponentialWeight, SquaredError, ThresholdDecision
from stakes.integrations.botorch import LossDrivenReduction

LOSSES = {
    "squared error, exponential weight": SquaredError(ExponentialWeight(1.0)),
    "threshold decision": ThresholdDecision(1.0, miss=5.0),
    "CRPS": CRPS(),
}
_D, _Q, _CONTEXTS, _STEPS = 4, 4, 128, 5
_REFERENCE = "qNegIntegratedPosteriorVariance"


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    labels, restarts = (20, 4) if given.quick else (200, 256)
    torch.manual_seed(0)
    seen = torch.rand(labels, _D, dtype=torch.double)
    model = SingleTaskGP(seen, torch.sin(5.0 * seen[:, :1]) + seen[:, 1:2] ** 2 + 0.1 * torch.randn(labels, 1))
    contexts = torch.rand(_CONTEXTS, _D, dtype=torch.double)
    made: dict[str, Callable[[], Any]] = {_REFERENCE: lambda: qNegIntegratedPosteriorVariance(model, contexts)}
    for name, loss in LOSSES.items():
        made[name] = lambda loss=loss: LossDrivenReduction(model, loss, contexts, target="latent", log=True)
    found = race({name: lambda make=make: _searched(make(), restarts) for name, make in made.items()}, 2)
    reference = found[_REFERENCE][1]
    sizes = f"labels={labels} restarts={restarts} q={_Q} M={_CONTEXTS} steps={_STEPS}"
    for name, (_, seconds) in found.items():
        yield Row(name, sizes, seconds, seconds / reference)


def _searched(worth: Any, restarts: int) -> Any:
    """The best batch found, from the same places, all restarts at once, with as many steps for each."""
    cube = torch.tensor([[0.0] * _D, [1.0] * _D], dtype=torch.double)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"maxiter": _STEPS, "batch_limit": restarts, "seed": 0}
        return optimize_acqf(worth, cube, q=_Q, num_restarts=restarts, raw_samples=restarts, options=options)
