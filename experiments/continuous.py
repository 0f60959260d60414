"""`python -m experiments continuous`: candidates anywhere in a cube, by one's own loss or by the integrated variance.

Three functions of two or three numbers, each with a loss. A process of BoTorch is fitted to 10 d labels with noise,
and `optimize_acqf` chooses four more at a time with the same settings, by `LossDrivenReduction` or by BoTorch's
`qNegIntegratedPosteriorVariance` over the same contexts. What counts is the loss of the best answers at other places of
the cube, after the last round. Functions are standardised; runs that are in the results already are not run again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from botorch.acquisition import AcquisitionFunction, qNegIntegratedPosteriorVariance
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.test_functions import Branin, Hartmann, StyblinskiTang
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

from stakes import ExponentialWeight, SquaredError, ThresholdDecision, Weight
from stakes.evaluation import bayes_prediction
from stakes.integrations.botorch import LossDrivenReduction
from stakes.losses import Loss
from stakes.models import belief_of

RESULTS = Path(__file__).parent / "results" / "continuous" / "continuous.json"
SEEDS, ROUNDS, Q = 20, 4, 4
_NOISE, _CONTEXTS, _TEST = 0.1, 64, 256


def _near_half(z: Any) -> Any:
    """Errors count near z = 0.5, where a limit is."""
    return np.exp(-0.5 * ((z - 0.5) / 0.25) ** 2)


@dataclass(frozen=True)
class Problem:
    """A function on the unit cube and what a wrong answer about it costs."""

    function: Callable[[], Any]
    d: int
    sign: float
    loss: Loss

    @property
    def cube(self) -> torch.Tensor:
        """[2, d]."""
        return torch.tensor([[0.0] * self.d, [1.0] * self.d], dtype=torch.double)

    def scale(self) -> tuple[float, float]:
        """Mean and standard deviation over the cube."""
        values = self._raw(draw_sobol_samples(self.cube, 4096, 1, seed=1)[:, 0])
        return float(values.mean()), float(values.std())

    def _raw(self, rows: torch.Tensor) -> torch.Tensor:
        bounds = self.function().bounds.to(rows)
        return self.sign * self.function()(bounds[0] + (bounds[1] - bounds[0]) * rows)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """[n]: standardised values at rows [n, d]."""
        mean, sd = self.scale()
        return (self._raw(rows) - mean) / sd


PROBLEMS = {
    "Branin: act above 0.7, a miss costs 5": Problem(Branin, 2, -1.0, ThresholdDecision(0.7, miss=5.0)),
    "Hartmann-3: squared error, weight exp(1.5 z)": Problem(
        lambda: Hartmann(dim=3), 3, -1.0, SquaredError(ExponentialWeight(1.5))
    ),
    "Styblinski-Tang-2: squared error, near z = 0.5": Problem(
        StyblinskiTang, 2, -1.0, SquaredError(Weight(_near_half))
    ),
}


def _variance(model: Any, problem: Problem, contexts: torch.Tensor) -> AcquisitionFunction:  # noqa: ARG001 (any loss)
    return qNegIntegratedPosteriorVariance(model, contexts)


def _own(model: Any, problem: Problem, contexts: torch.Tensor) -> AcquisitionFunction:
    return LossDrivenReduction(model, problem.loss, contexts, target="latent", log=True)


METHODS = {"own loss": _own, "integrated variance": _variance}


def run(problem: Problem, method: str, seed: int) -> list[float]:
    """The mean loss of the best answers at test places, before the first round and after each."""
    torch.manual_seed(seed)
    rows = draw_sobol_samples(problem.cube, 10 * problem.d, 1, seed=seed)[:, 0]
    noise = torch.Generator().manual_seed(seed)
    labels = _observed(problem, rows, noise)
    contexts = draw_sobol_samples(problem.cube, _CONTEXTS, 1, seed=1000 + seed)[:, 0]
    test = draw_sobol_samples(problem.cube, _TEST, 1, seed=2000 + seed)[:, 0]
    losses = []
    for step in range(ROUNDS + 1):
        model = SingleTaskGP(rows, labels)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        answers = np.asarray(bayes_prediction(problem.loss, belief_of(model, test[:1], test, target="latent")))
        losses.append(float(np.mean(problem.loss(problem(test).numpy(), answers))))
        if step < ROUNDS:
            worth = METHODS[method](model, problem, contexts)
            chosen, _ = optimize_acqf(
                worth, problem.cube, q=Q, num_restarts=2, raw_samples=24, options={"maxiter": 25, "seed": seed}
            )
            rows, labels = torch.cat([rows, chosen]), torch.cat([labels, _observed(problem, chosen, noise)])
    return losses


def _observed(problem: Problem, rows: torch.Tensor, noise: torch.Generator) -> torch.Tensor:
    """Labels with noise [n, 1]."""
    errors = torch.randn(len(rows), generator=noise, dtype=torch.double)
    return (problem(rows) + _NOISE * errors)[:, None]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments continuous", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each problem")
    parser.add_argument("--problems", nargs="+", default=[*PROBLEMS], choices=[*PROBLEMS], metavar="PROBLEM")
    parser.add_argument("--results", type=Path, default=Path("build/continuous.json"), help="read, and written to")
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, dict[str, list[float]]]] = (
        json.loads(given.results.read_text()) if given.results.exists() else {}
    )
    torch.set_num_threads(1)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for name, problem in ((each, PROBLEMS[each]) for each in given.problems):
            for method in METHODS:
                runs = found.setdefault(name, {}).setdefault(method, {})
                if str(seed) not in runs:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        runs[str(seed)] = [float(f"{loss:.4g}") for loss in run(problem, method, seed)]
                    given.results.write_text(_written(found))
    print(summary(found))


def _written(found: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """A line for each run."""
    return json.dumps(found, separators=(",", ":")).replace('},"', '},\n"').replace('],"', '],\n"') + "\n"


def summary(found: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """A table: the median final loss by each method, the median of the ratio, and how many runs were better."""
    lines = [
        "| problem | runs | own loss | integrated variance | ratio | better |",
        "|---|---|---|---|---|---|",
    ]
    for name, methods in found.items():
        own, other = (methods[each] for each in METHODS)
        seeds = [seed for seed in own if seed in other]
        ends = [(own[seed][-1], other[seed][-1]) for seed in seeds]
        ratio = median(first / second if second else 1.0 for first, second in ends)
        better = sum(first < second for first, second in ends)
        first, second = (median(each) for each in zip(*ends, strict=True))
        lines.append(f"| {name} | {len(seeds)} | {first:.3g} | {second:.3g} | {ratio:.2f} | {better} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
