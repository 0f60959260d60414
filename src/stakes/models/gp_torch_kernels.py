"""Covariances by scikit-learn's kernels, computed by torch on any of its devices.

It is imported when a process is put on a device. Sizes: B rows of any block, p features.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel

from stakes._utils.compute import has_kernel

Tensor: TypeAlias = Any
"""One of torch."""
_Value: TypeAlias = Tensor | float
_SINGLE = (ConstantKernel, WhiteKernel, DotProduct, RBF, Matern)
_FEW = 64  # features, of which differences are taken one by one; more are quicker by products
_ROOTS = {0.5: 1.0, 1.5: math.sqrt(3.0), 2.5: math.sqrt(5.0)}  # sqrt(2 nu)


def covariance(kernel: Any, centre: Tensor, rows: Tensor, others: Tensor) -> Tensor:
    """[B, B']: kernel(rows, others), which leaves out white parts.

    `centre` [p] is near the rows: from there distances lose fewest digits.
    """
    whole = _added(kernel, rows, others, centre, 1.0, None)
    return rows.new_zeros((len(rows), len(others))) if whole is None else whole


def variances(kernel: Any, added: float, white: bool, rows: Tensor) -> tuple[Tensor, Tensor]:
    """[B], [B]: k(x, x) of two evaluations at the same x, and the noise that they do not share, with `added`.

    White parts of the kernel are noise where `white`; else it has none.
    """
    zeros = rows.new_zeros(len(rows))
    shared = _diagonal(kernel, rows, 0.0)
    own = _diagonal(kernel, rows, 1.0) - shared if white else 0.0
    return shared + zeros, own + added + zeros


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
        from stakes.gpu.stationary_kernel import added

        return added(nu, rows, others, factor, whole)
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
