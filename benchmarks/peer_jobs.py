"""One job by one peer, in an environment of its own: `python -I peer_jobs.py PEER TASK.npz FOUND.npz`.

Nothing of stakes is imported. All are given the same rows, hyperparameters or probabilities, and give what stakes
gives: the mean over contexts of what one label takes from the variance, or of what it tells about the target. modAL has
neither: it is given rows, labels and a forest that is not fitted, and gives its expected error after each label.
Memory is read from /proc, as Linux has it. Sizes: n labels so far, N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

import ctypes
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

_BATCH = 25  # candidates that BoTorch is given at once: more take more memory, and fewer as long
_REPEATS = 2


def botorch(task: Any) -> Callable[[Any], Any]:
    """By qNegIntegratedPosteriorVariance, [N] for candidates, on top of the variance without a label."""
    import torch
    from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
    from botorch.models import SingleTaskGP

    torch.set_num_threads(1)
    rows, labels, contexts = (torch.tensor(task[name]) for name in ("rows", "labels", "contexts"))
    noise = torch.full_like(labels[:, None], float(task["noise"]) ** 2)
    model = SingleTaskGP(
        rows, labels[:, None], noise, covar_module=_gpytorch_kernel(task), outcome_transform=None, input_transform=None
    ).eval()
    utility = qNegIntegratedPosteriorVariance(model, contexts)

    def scores(candidates: Any) -> Any:
        with torch.no_grad():
            before = model.posterior(contexts).variance.mean()
            parts = torch.split(torch.tensor(candidates)[:, None, :], _BATCH)
            return (torch.cat([utility(part) for part in parts]) + before).numpy()

    return scores


def _gpytorch_kernel(task: Any) -> Any:
    from gpytorch.kernels import MaternKernel, ScaleKernel

    kernel = ScaleKernel(MaternKernel(nu=1.5)).double()
    kernel.outputscale, kernel.base_kernel.lengthscale = float(task["signal"]) ** 2, float(task["length"])
    return kernel


def emukit(task: Any) -> Callable[[Any], Any]:
    """By IntegratedVarianceReduction on GPy's regression."""
    import GPy
    from emukit.core import ContinuousParameter, ParameterSpace
    from emukit.experimental_design.acquisitions import IntegratedVarianceReduction
    from emukit.model_wrappers import GPyModelWrapper

    size = task["rows"].shape[1]
    kernel = GPy.kern.Matern32(size, variance=float(task["signal"]) ** 2, lengthscale=float(task["length"]))
    labels = task["labels"][:, None]
    model = GPy.models.GPRegression(task["rows"], labels, kernel, noise_var=float(task["noise"]) ** 2)
    space = ParameterSpace([ContinuousParameter(f"x{i}", -1e3, 1e3) for i in range(size)])
    utility = IntegratedVarianceReduction(GPyModelWrapper(model), space, x_monte_carlo=task["contexts"])
    return lambda candidates: utility.evaluate(candidates)[:, 0]


def skactiveml(task: Any) -> Callable[[Any], Any]:
    """By ExpectedModelVarianceReduction on scikit-learn's regression, fitted again for each candidate."""
    from skactiveml.pool import ExpectedModelVarianceReduction
    from skactiveml.regressor import SklearnNormalRegressor
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    kernel = ConstantKernel(float(task["signal"]) ** 2) * Matern(float(task["length"]), nu=1.5)
    process = GaussianProcessRegressor(kernel, alpha=float(task["noise"]) ** 2, optimizer=None)
    strategy = ExpectedModelVarianceReduction(random_state=0, integration_dict={"method": "assume_linear"})
    given = {"reg": SklearnNormalRegressor(process), "X_eval": task["contexts"], "return_utilities": True}
    return lambda candidates: strategy.query(task["rows"], task["labels"], candidates=candidates, **given)[1][0]


def baal(task: Any) -> Callable[[Any], Any]:
    """By its EPIG, which holds the joint distribution of all pairs at once."""
    import torch
    from baal.active.heuristics import EPIG

    torch.set_num_threads(1)
    there = np.swapaxes(task["contexts"], 1, 2)  # [M, C, K]
    return lambda candidates: EPIG().compute_score(np.swapaxes(candidates, 1, 2), there)


def modal_expected_error(task: Any) -> Callable[[Any], Any]:
    """By modAL's expected error reduction of a forest, fitted here and again for each candidate and class.

    It knows no costs, and judges on the other rows of the pool.
    """
    from modAL.expected_error import expected_error_reduction

    def scores(candidates: Any) -> Any:
        places, errors = expected_error_reduction(
            _learner(task), candidates, loss="binary", n_instances=len(candidates)
        )
        return -errors[np.argsort(places)]

    return scores


def modal_uncertainty(task: Any) -> Callable[[Any], Any]:
    """By modAL's uncertainty of a forest: one less the largest probability."""
    from modAL.uncertainty import classifier_uncertainty

    return lambda candidates: classifier_uncertainty(_learner(task), candidates)


def _learner(task: Any) -> Any:
    from modAL.models import ActiveLearner
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(int(task["trees"]), random_state=int(task["random_state"]))
    return ActiveLearner(forest, X_training=task["rows"], y_training=task["labels"])


JOBS = {
    "botorch": botorch,
    "emukit": emukit,
    "scikit-activeml": skactiveml,
    "baal": baal,
    "modAL expected error": modal_expected_error,
    "modAL uncertainty": modal_uncertainty,
}
PACKAGES = {"modAL expected error": "modAL-python", "modAL uncertainty": "modAL-python"}
"""Where a job is not named as what pip installs."""


def main(peer: str, given: str, out: str) -> None:
    with np.load(given) as arrays:
        task = dict(arrays)
    warnings.simplefilter("ignore")  # theirs are not ours to mend
    scores = JOBS[peer](task)
    scores(task["candidates"][:2])  # what is loaded when first used is loaded now
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins here
    before, seconds = _megabytes("VmRSS"), []
    for _ in range(_REPEATS):
        start = time.process_time()
        found = scores(task["candidates"])
        seconds.append(time.process_time() - start)
    version = metadata.version(PACKAGES.get(peer, peer))
    np.savez(out, scores=found, seconds=min(seconds), megabytes=_megabytes("VmHWM") - before, version=version)


def _megabytes(field: str) -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return float(line.split()[1]) / 1024.0


if __name__ == "__main__":
    main(*sys.argv[1:])
