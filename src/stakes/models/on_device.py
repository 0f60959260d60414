"""A fitted Gaussian process whose beliefs are computed by torch, on a GPU or any other of its devices.

Sizes: N candidates, M contexts, n labels so far, p features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts, best_of
from stakes.models.gaussian_process import GaussianProcess
from stakes.models.gp_posterior import KernelPosterior, prepare_gaussian
from stakes.models.sklearn_gaussian import process_state, rows_of


@dataclass(frozen=True)
class OnDevice:
    """A fitted process that is asked on a device: covariances, solves and products are torch's, and so is the belief.

    Only blocks of the pool are on the device at a time, in the order of `rank`'s chunks. What the labels so far and
    the contexts need is computed once for all of them.

    Args:
        model: A fitted `GaussianProcess`, or a `GaussianProcessRegressor` of one output whose kernel is made of sums
            and products of ConstantKernel, WhiteKernel, DotProduct, RBF and Matern; a pipeline or search that ends in
            one. Steps before it transform rows on the host.
        device: As torch names it: "cuda", "cuda:1", "cpu".
        dtype: "float64", or "float32", in which a variance below 1.2e-7 n of the prior's counts as 0.

    Raises:
        ImportError: If torch is not installed.
        StakesError: If the device or the dtype is none, or the process has several outputs.
        TypeError: If the model is no Gaussian process, or its kernel is not one of those.

    Examples:
        >>> from stakes import GaussianProcess, SquaredError, rank
        >>> model = OnDevice(GaussianProcess().fit(X, y), device="cuda")  # doctest: +SKIP
        >>> rank(model, SquaredError(), pool, n=10)  # doctest: +SKIP
    """

    model: Any
    device: str = "cuda"
    dtype: Literal["float64", "float32"] = "float64"

    def __post_init__(self) -> None:
        if find_spec("torch") is None:
            raise ImportError("OnDevice needs torch: pip install stakes[torch]")
        if self.dtype not in ("float64", "float32"):
            raise StakesError(f"dtype must be 'float64' or 'float32'; got {self.dtype!r}")
        state = _state(_process_of(self.model))
        _check_device(self.device)
        _check_kernel(state["kernel"])

    @property
    def n_features_in_(self) -> int:
        """The number p of features of the model."""
        return int(self.model.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """The names of the features of the model, where it has any."""
        return self.model.feature_names_in_


@adapts(OnDevice)
def _on_device(model: OnDevice, contexts: Any, *, target: Any, joint: bool, **_: Any) -> RowsToBelief:
    """The exact joint posterior, as tensors on the device."""
    import torch

    with torch.no_grad():
        there = _tensor(model, _rows(model.model, contexts))
        prepared = prepare_gaussian(posterior_on_device(model), there, target=target, joint=joint)

    def belief(rows: Any) -> Any:
        with torch.no_grad():
            return prepared(_tensor(model, _rows(model.model, rows)))

    return belief


def _check_kernel(kernel: Any) -> None:
    from stakes.models.gp_torch_kernels import check_kernel

    check_kernel(kernel)


def posterior_on_device(model: OnDevice) -> KernelPosterior:
    """What the process knows of f, on the device."""
    from stakes.models.gp_torch_kernels import covariance, variances

    state = _state(_process_of(model.model))
    kernel, train = state["kernel"], _tensor(model, state["train"])
    _check_kernel(kernel)
    return KernelPosterior(
        partial(covariance, kernel, train.mean(dim=0)),
        partial(variances, kernel, state["noise"], state["white"]),
        train,
        _tensor(model, state["factor"]),
        _tensor(model, state["solved"]),
        float(np.squeeze(state["offset"])),
        float(np.squeeze(state["unit"])),
    )


def _state(process: Any) -> dict[str, Any]:
    """What a process of one output knows of f; anything else is refused."""
    if not isinstance(process, GaussianProcess | GaussianProcessRegressor):
        raise TypeError(
            "OnDevice needs a fitted GaussianProcess or GaussianProcessRegressor, or a pipeline that ends in one; got "
            f"{type(process).__name__}. Models of torch are on their device already: give them to belief_of or rank."
        )
    check_is_fitted(process, None if isinstance(process, GaussianProcess) else "X_train_")
    state = process._state() if isinstance(process, GaussianProcess) else process_state(process)
    if state["solved"].ndim > 1:
        outputs = state["solved"].shape[1]
        raise StakesError(f"OnDevice is for one output; this model has {outputs}. Leave it on the host.")
    return state


def _process_of(model: Any) -> Any:
    """Whoever comes last."""
    if isinstance(model, BaseSearchCV):
        return _process_of(best_of(model))
    return _process_of(model.steps[-1][1]) if isinstance(model, Pipeline) else model


def _rows(model: Any, rows: Any) -> Any:
    """[B, p]: as the process takes them, a NumPy array or a tensor."""
    if isinstance(model, BaseSearchCV):
        return _rows(best_of(model), rows)
    if isinstance(model, Pipeline):
        return _rows(model.steps[-1][1], model[:-1].transform(rows) if len(model.steps) > 1 else rows)
    return _checked(model, rows)


def _checked(process: Any, rows: Any) -> Any:
    """Checked where they are: a tensor on a device is not brought to the host."""
    if hasattr(rows, "is_cuda"):
        if rows.ndim != 2 or rows.shape[1] != process.n_features_in_:
            raise StakesError(f"rows must be [B, {process.n_features_in_}]; got a tensor of shape {list(rows.shape)}")
        if not bool(rows.isfinite().all()):
            raise StakesError("rows must be finite; some are NaN or infinite")
        return rows
    if isinstance(process, GaussianProcess):
        return validate_data(process, rows, reset=False, dtype=np.float64)
    return rows_of(process, rows)


def _tensor(model: OnDevice, values: Any) -> Any:
    import torch

    return torch.as_tensor(values, dtype=getattr(torch, model.dtype), device=model.device).detach()


def _check_device(device: str) -> None:
    import torch

    try:
        torch.zeros(1, device=device)
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        why = str(error).splitlines()[0]
        raise StakesError(f"device must be one that torch has here, such as 'cpu'; got {device!r}: {why}") from error
