"""Covariances by scikit-learn's kernels, computed by torch: the kernels that `kernels` knows, on any device.

Sizes: B rows of any block, p features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from stakes._utils.jit import has_kernel
from stakes.beliefs import GaussianBelief
from stakes.exceptions import StakesError
from stakes.models.base import Request, adapts, best_of
from stakes.models.gaussian_process import GaussianProcess
from stakes.models.gp_device import Tensor
from stakes.models.gp_posterior import KernelPosterior
from stakes.models.sklearn_gaussian import posterior_of, rows_of

_Value: TypeAlias = Tensor | float
_SINGLE = (ConstantKernel, WhiteKernel, DotProduct, RBF, Matern)
_FEW = 64  # features, of which differences are taken one by one; more are quicker by products
_ROOTS = {0.5: 1.0, 1.5: math.sqrt(3.0), 2.5: math.sqrt(5.0)}  # sqrt(2 nu)


@dataclass(frozen=True, eq=False)
class KernelPrior:
    """A function of mean 0 with one of scikit-learn's kernels, whose white parts are noise."""

    kernel: Any
    centre: Tensor
    """[p]: near the rows, from where distances lose fewest digits"""
    added_noise: float
    """The noise variance that is not in the kernel"""
    white: bool = True
    """Whether white parts of the kernel count: not where the kernel is that of f alone"""

    def mean(self, rows: Tensor) -> Tensor:
        """[B]: 0."""
        return rows.new_zeros(len(rows))

    def variance(self, rows: Tensor) -> Tensor:
        """[B]: k(x, x) of two evaluations at the same x."""
        return _diagonal(self.kernel, rows, 0.0) + rows.new_zeros(len(rows))

    def noise(self, rows: Tensor) -> Tensor:
        """[B]: what two labels at the same x do not share."""
        own = _diagonal(self.kernel, rows, 1.0) - _diagonal(self.kernel, rows, 0.0) if self.white else 0.0
        return own + self.added_noise + rows.new_zeros(len(rows))

    def covariance(self, rows: Tensor, others: Tensor) -> Tensor:
        """[B, B']: kernel(rows, others), which leaves out white parts."""
        whole = _added(self.kernel, rows, others, self.centre, 1.0, None)
        return rows.new_zeros((len(rows), len(others))) if whole is None else whole


def check_kernel(kernel: Any) -> None:
    """Refuse a kernel with a part that is not computed here."""
    if isinstance(kernel, Sum | Product):
        for part in (kernel.k1, kernel.k2):
            check_kernel(part)
    elif type(kernel) not in _SINGLE or (type(kernel) is Matern and kernel.nu not in (*_ROOTS, math.inf)):
        raise TypeError(
            "on a device a kernel must be sums and products of ConstantKernel, WhiteKernel, DotProduct, RBF and Matern "
            f"with nu 0.5, 1.5, 2.5 or inf; got {kernel}. Leave this model on the host, or fit it with those."
        )


def _added(
    kernel: Any, rows: Tensor, others: Tensor, centre: Tensor, factor: float, whole: Tensor | None
) -> Tensor | None:
    """[B, B']: `whole`, written over, with `factor` times the kernel added; None stands for zeros.

    Constants that multiply become factors, and parts are added where they are computed: each pass over the memory of
    all pairs takes as long as some fifty multiplications of each.
    """
    if isinstance(kernel, WhiteKernel):
        return whole
    if isinstance(kernel, Sum):
        return _added(kernel.k2, rows, others, centre, factor, _added(kernel.k1, rows, others, centre, factor, whole))
    if isinstance(kernel, Product):
        return _product(kernel, rows, others, centre, factor, whole)
    if isinstance(kernel, ConstantKernel):
        value = factor * float(kernel.constant_value)
        return rows.new_full((len(rows), len(others)), value) if whole is None else whole.add_(value)
    add = _linear if isinstance(kernel, DotProduct) else _stationary
    return add(kernel, rows, others, centre, factor, whole)


def _product(
    kernel: Product, rows: Tensor, others: Tensor, centre: Tensor, factor: float, whole: Tensor | None
) -> Tensor | None:
    first, second = (kernel.k2, kernel.k1) if isinstance(kernel.k2, ConstantKernel) else (kernel.k1, kernel.k2)
    if isinstance(first, ConstantKernel):
        return _added(second, rows, others, centre, factor * float(first.constant_value), whole)
    parts = [_added(each, rows, others, centre, 1.0, None) for each in (first, second)]
    if parts[0] is None or parts[1] is None:
        return whole
    return parts[0].mul_(parts[1]).mul_(factor) if whole is None else whole.addcmul_(*parts, value=factor)


def _linear(
    kernel: DotProduct,
    rows: Tensor,
    others: Tensor,
    centre: Tensor,  # noqa: ARG001 (products are about 0)
    factor: float,
    whole: Tensor | None,
) -> Tensor:
    scaled = factor * others.mT
    total = rows @ scaled if whole is None else whole.addmm_(rows, scaled)
    return total if kernel.sigma_0 == 0.0 else total.add_(factor * kernel.sigma_0**2)


def _stationary(
    kernel: RBF | Matern, rows: Tensor, others: Tensor, centre: Tensor, factor: float, whole: Tensor | None
) -> Tensor:
    """On a GPU in one kernel of Triton, where it is installed and distances do not cost more than the rest."""
    length = torch.as_tensor(kernel.length_scale, dtype=rows.dtype, device=rows.device)
    rows, others = (rows - centre) / length, (others - centre) / length
    nu = kernel.nu if isinstance(kernel, Matern) else math.inf
    if rows.shape[1] <= _FEW and has_kernel(rows):
        from stakes.gpu import stationary_kernel

        return stationary_kernel.added(nu, rows, others, factor, whole)
    value = _matern(nu, rows, others)
    return value.mul_(factor) if whole is None else whole.add_(value, alpha=factor)


def _matern(nu: float, rows: Tensor, others: Tensor) -> Tensor:
    """[B, B']: (1 + d + ..) exp(-d) with d = sqrt(2 nu) |x - x'|; exp(-|x - x'|^2 / 2) for nu = inf."""
    if nu == 0.5:  # not smooth at 0: a distance by way of squares would lose half of all digits there
        return torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist").neg_().exp_()
    if nu == math.inf:
        return _squares(rows, others).mul_(-0.5).exp_()
    distance = _squares(rows, others).sqrt_().mul_(_ROOTS[nu])
    decay = torch.neg(distance).exp_()
    if nu == 2.5:
        return decay.mul_(torch.addcmul(1.0 + distance, distance, distance, value=1.0 / 3.0))
    return decay.addcmul_(distance, decay)


def _squares(rows: Tensor, others: Tensor) -> Tensor:
    """[B, B']: squared distances by one product; never below 0."""
    sizes = torch.linalg.vecdot(rows, rows)[:, None] + torch.linalg.vecdot(others, others)
    return sizes.addmm_(rows, others.mT, alpha=-2.0).clamp_(min=0.0)


def _diagonal(kernel: Any, rows: Tensor, white: float) -> _Value:
    """[B], or a number: k(x, x), with white parts times `white`."""
    if type(kernel) is Sum:
        return _diagonal(kernel.k1, rows, white) + _diagonal(kernel.k2, rows, white)
    if type(kernel) is Product:
        return _diagonal(kernel.k1, rows, white) * _diagonal(kernel.k2, rows, white)
    if type(kernel) is WhiteKernel:
        return white * float(kernel.noise_level)
    if type(kernel) is DotProduct:
        return torch.linalg.vecdot(rows, rows) + kernel.sigma_0**2
    return float(kernel.constant_value) if type(kernel) is ConstantKernel else 1.0


# ----------------------------------------------------------------------
# A fitted Gaussian process whose beliefs are computed by torch, on a GPU or any other of its devices.
#
# Sizes: N candidates, M contexts, n labels so far, p features.

if TYPE_CHECKING:
    from stakes.models.gp_device import DevicePosterior, Targets


class Kept:
    """What was last computed for a model and for contexts, which need not be done anew for every chunk of a pool.

    It is not sent to other processes: what is on one machine's device is of no use to them.
    """

    posterior: tuple[Any, DevicePosterior] | None = None
    """Of which factor on the host"""
    targets: tuple[DevicePosterior, Any, Targets] | None = None
    """Of which posterior, and of which contexts"""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Kept, ()


@dataclass(frozen=True)
class OnDevice:
    """A fitted process that is asked on a device: covariances, solves and products are torch's, and so is the belief.

    Only blocks of the pool are on the device at a time, in the order of `rank`'s chunks. What the labels so far and
    the contexts need is computed once and kept with this object.

    Args:
        model: a fitted `GaussianProcess`, or a `GaussianProcessRegressor` of one output whose kernel is made of sums
            and products of ConstantKernel, WhiteKernel, DotProduct, RBF and Matern; a pipeline or search that ends in
            one. Steps before it transform rows on the host.
        device: as torch names it: "cuda", "cuda:1", "cpu".
        dtype: "float64", or "float32", in which a variance below 1.2e-7 n of the prior's counts as 0.
    """

    model: Any
    device: str = "cuda"
    dtype: Literal["float64", "float32"] = "float64"
    kept: Kept = field(default_factory=Kept, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if find_spec("torch") is None:
            raise ImportError("OnDevice needs torch: pip install stakes[torch]")
        if self.dtype not in ("float64", "float32"):
            raise StakesError(f"dtype must be 'float64' or 'float32'; got {self.dtype!r}")
        _host_posterior(_process_of(self.model))
        _check_device(self.device)
        _posterior(self)

    @property
    def n_features_in_(self) -> int:
        """P: that of the model."""
        return int(self.model.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Those of the model, where it has any."""
        return self.model.feature_names_in_


@adapts(OnDevice)
def _on_device(model: OnDevice, pool: Any, contexts: Any, request: Request) -> GaussianBelief:
    """The exact joint posterior, as tensors on the device."""
    import torch

    with torch.no_grad():
        posterior, here, there = _posterior(model), _rows(model.model, pool), _rows(model.model, contexts)
        return posterior.belief(_tensor(model, here), _targets(model, posterior, there), request)


def _posterior(model: OnDevice) -> DevicePosterior:
    """The one that is kept, unless the model has been fitted anew."""
    host, kept = _host_posterior(_process_of(model.model)), model.kept.posterior
    if kept is None or kept[0] is not host.factor:
        kept = model.kept.posterior = host.factor, _sent(model, host)
    return kept[1]


def _sent(model: OnDevice, host: KernelPosterior) -> DevicePosterior:
    """The same posterior on the device."""
    from stakes.models.gp_device import DevicePosterior

    check_kernel(host.kernel)
    train, factor = _tensor(model, host.train), _tensor(model, host.factor)
    prior = KernelPrior(host.kernel, train.mean(dim=0), host.added_noise, host.white)
    solved = _tensor(model, host.factor.T @ host.weights)
    return DevicePosterior(prior, train, factor, solved, float(np.squeeze(host.offset)), float(np.squeeze(host.unit)))


def _targets(model: OnDevice, posterior: DevicePosterior, contexts: Any) -> Targets:
    """Those kept, unless posterior or contexts are others: compared by value, as arrays may be written over."""
    kept = model.kept.targets
    if kept is None or kept[0] is not posterior or not _same(kept[1], contexts):
        copy = contexts.clone() if hasattr(contexts, "clone") else contexts.copy()
        kept = model.kept.targets = posterior, copy, posterior.targets(_tensor(model, copy))
    return kept[2]


def _same(kept: Any, contexts: Any) -> bool:
    alike = all(getattr(kept, name, None) == getattr(contexts, name, None) for name in ("shape", "dtype", "device"))
    return type(kept) is type(contexts) and alike and bool((kept == contexts).all())


def _host_posterior(process: Any) -> KernelPosterior:
    """That of a process of one output; anything else is refused."""
    if not isinstance(process, GaussianProcess | GaussianProcessRegressor):
        raise TypeError(
            "OnDevice needs a fitted GaussianProcess or GaussianProcessRegressor, or a pipeline that ends in one; got "
            f"{type(process).__name__}. Models of torch are on their device already: give them to belief_of or rank."
        )
    check_is_fitted(process, None if isinstance(process, GaussianProcess) else "X_train_")
    posterior = process.posterior() if isinstance(process, GaussianProcess) else posterior_of(process)
    if posterior.scale is not None:
        raise StakesError(f"OnDevice is for one output; this model has {len(posterior.scale)}. Leave it on the host.")
    return posterior


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

    return torch.as_tensor(values, dtype=getattr(torch, model.dtype), device=model.device)


def _check_device(device: str) -> None:
    import torch

    try:
        torch.zeros(1, device=device)
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        said = str(error).splitlines()[0]
        raise StakesError(f"device must be one that torch has here, such as 'cpu'; got {device!r}: {said}") from error
