"""Covariances by scikit-learn's kernels, computed by torch: the kernels that `kernels` knows, on any device.

Sizes: B rows of any block, p features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel

from stakes.models.device_posterior import Tensor

_Value: TypeAlias = Tensor | float
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
        value = _value(self.kernel, rows, others, self.centre)
        return value if isinstance(value, torch.Tensor) else rows.new_full((len(rows), len(others)), value)


def check_kernel(kernel: Any) -> None:
    """Refuse a kernel with a part that is not computed here."""
    if isinstance(kernel, Sum | Product):
        check_kernel(kernel.k1)
        check_kernel(kernel.k2)
    elif type(kernel) not in _KNOWN or (type(kernel) is Matern and kernel.nu not in (*_ROOTS, math.inf)):
        raise TypeError(
            "on a device a kernel must be sums and products of ConstantKernel, WhiteKernel, DotProduct, RBF and Matern "
            f"with nu 0.5, 1.5, 2.5 or inf; got {kernel}. Leave this model on the host, or fit it with those."
        )


def _value(kernel: Any, rows: Tensor, others: Tensor, centre: Tensor) -> _Value:
    """A fresh tensor, or a number where that is all there is."""
    return _KNOWN[type(kernel)](kernel, rows, others, centre)


def _sum(kernel: Sum, *where: Tensor) -> _Value:
    first, second = _value(kernel.k1, *where), _value(kernel.k2, *where)
    return first.add_(second) if isinstance(first, torch.Tensor) else second + first


def _product(kernel: Product, *where: Tensor) -> _Value:
    first, second = _value(kernel.k1, *where), _value(kernel.k2, *where)
    return first.mul_(second) if isinstance(first, torch.Tensor) else second * first


def _linear(kernel: DotProduct, rows: Tensor, others: Tensor, centre: Tensor) -> Tensor:  # noqa: ARG001 (from 0)
    return (rows @ others.mT).add_(kernel.sigma_0**2)


def _bell(kernel: RBF, *where: Tensor) -> Tensor:
    return _squares(kernel, *where).mul_(-0.5).exp_()


def _matern(kernel: Matern, *where: Tensor) -> Tensor:
    """(1 + d + ..) exp(-d) with d = sqrt(2 nu) |x - x'| / l."""
    if kernel.nu == math.inf:
        return _bell(kernel, *where)
    if kernel.nu == 0.5:  # not smooth at 0: a distance by way of squares would lose half of all digits there
        rows, others, _ = (each / _length(kernel, each) for each in where)
        return torch.cdist(rows, others, compute_mode="donot_use_mm_for_euclid_dist").neg_().exp_()
    distance = _squares(kernel, *where).sqrt_().mul_(_ROOTS[kernel.nu])
    decay = torch.neg(distance).exp_()
    if kernel.nu == 2.5:
        return decay.mul_(torch.addcmul(1.0 + distance, distance, distance, value=1.0 / 3.0))
    return decay.addcmul_(distance, decay)


def _squares(kernel: RBF | Matern, rows: Tensor, others: Tensor, centre: Tensor) -> Tensor:
    """[B, B']: squared distances over squared lengths, by one product; never below 0."""
    length = _length(kernel, rows)
    rows, others = (rows - centre) / length, (others - centre) / length
    sizes = torch.linalg.vecdot(rows, rows)[:, None] + torch.linalg.vecdot(others, others)
    return sizes.addmm_(rows, others.mT, alpha=-2.0).clamp_(min=0.0)


def _length(kernel: RBF | Matern, like: Tensor) -> Tensor:
    return torch.as_tensor(kernel.length_scale, dtype=like.dtype, device=like.device)


_KNOWN: dict[type, Callable[..., _Value]] = {
    ConstantKernel: lambda kernel, rows, others, centre: float(kernel.constant_value),
    WhiteKernel: lambda kernel, rows, others, centre: 0.0,
    Sum: _sum,
    Product: _product,
    DotProduct: _linear,
    RBF: _bell,
    Matern: _matern,
}


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
