"""Gaussian posteriors of a function by torch, on any of its devices: kernels, solves and products in blocks of rows.

Sizes: N candidates, M contexts, B rows of any block, n labels so far, p features.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import torch
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, Product, Sum, WhiteKernel

from stakes._utils.array import slices
from stakes._utils.jit import has_kernel
from stakes.beliefs import GaussianBelief
from stakes.models.base import Target

Tensor: TypeAlias = Any
"""One of torch."""

_ON_HOST, _ON_DEVICE = 2**18, 2**26  # numbers of a block: within the cache; enough to keep a large device busy


class Prior(Protocol):
    """What is known of a function f, and of the noise of its labels, before any label."""

    def mean(self, rows: Tensor) -> Tensor:
        """[B]: of f."""

    def variance(self, rows: Tensor) -> Tensor:
        """[B]: of f."""

    def noise(self, rows: Tensor) -> Tensor:
        """[B]: the variance that a label has beside f."""

    def covariance(self, rows: Tensor, others: Tensor) -> Tensor:
        """[B, B']: of f; a tensor that may be written over."""


class Places(NamedTuple):
    """Rows, and what covariances are products of."""

    rows: Tensor
    """[B, p]"""
    projected: Tensor
    """[B, n]: v(x) = L^-1 k(X, x), a row for each"""


class Targets(NamedTuple):
    """What a posterior says of f at the contexts, in units of the prior: the same for every block of candidates."""

    places: Places
    mean: Tensor
    """[M]"""
    variance: Tensor
    """[M]: of f"""
    noise: Tensor
    """[M]"""


@dataclass(frozen=True, eq=False)
class DevicePosterior:
    """cov(f(x), f(x')) = unit^2 (k(x, x') - v(x)' v(x')) with v(x) = L^-1 k(X, x), L L' the covariance of labels."""

    prior: Prior
    train: Tensor
    """[n, p]: X"""
    factor: Tensor
    """[n, n]: L"""
    solved: Tensor
    """[n]: L^-1 (y - prior mean)"""
    offset: float = 0.0
    unit: float = 1.0

    def targets(self, contexts: Tensor) -> Targets:
        """What is needed of contexts [M, p], once."""
        parts = [self.places(contexts[part]) for part in self._parts(contexts, 0)]
        places = Places(contexts, torch.cat([each.projected for each in parts]))
        return Targets(places, self._mean(places), self._variance(places), self.prior.noise(contexts))

    def belief(self, pool: Tensor, targets: Targets, *, target: Target, joint: bool) -> GaussianBelief:
        """About the labels of `pool` [N, p] and the targets at the contexts, all on the device."""
        square, noise = self.unit**2, self.prior.noise(pool)  # [N]
        variance, covariance, projected = self._candidates(pool, targets, joint)
        known = targets.variance + targets.noise if target == "label" else targets.variance
        label_variance = square * (variance + noise)
        rows = LabelCovariances(self, Places(pool, projected), label_variance) if joint else None
        if square != 1.0:
            covariance *= square
        mean = self.offset + self.unit * targets.mean
        return GaussianBelief(mean, square * known, label_variance, covariance, rows, square * noise)

    def _candidates(self, pool: Tensor, targets: Targets, keep: bool) -> tuple[Tensor, Tensor, Tensor]:
        """[N], [N, M], [N, n]: variances of f, covariances with f at contexts, and v(x), empty but for `keep`."""
        count, n_contexts = len(pool), len(targets.mean)
        variance, covariance = pool.new_empty(count), pool.new_empty((count, n_contexts))
        projected = pool.new_empty((count, len(self.factor) if keep else 0))
        for part in self._parts(pool, n_contexts):
            here = self.places(pool[part])
            variance[part] = self._variance(here)
            block = self.covariance(here, targets.places)
            bounded(block, variance[part], targets.variance, out=covariance[part])
            if keep:
                projected[part] = here.projected
        return variance, covariance, projected

    def _parts(self, rows: Tensor, width: int) -> Any:
        """Rows in blocks, whose covariances with n labels or `width` contexts are held at once."""
        numbers = _ON_HOST if rows.device.type == "cpu" else _ON_DEVICE
        return slices(len(rows), max(1, numbers // max(len(self.factor), width)))

    def places(self, rows: Tensor) -> Places:
        """With v(x): X L' = k(x, X) is solved from the right, so that the numbers of a row are together in memory."""
        prior = self.prior.covariance(rows, self.train)
        return Places(rows, torch.linalg.solve_triangular(self.factor.mT, prior, upper=True, left=False))

    def _mean(self, places: Places) -> Tensor:
        return self.prior.mean(places.rows) + places.projected @ self.solved

    def _variance(self, places: Places) -> Tensor:
        """[B]: 0 where rounding is all that is left."""
        prior = self.prior.variance(places.rows)
        left = prior - torch.linalg.vector_norm(places.projected, dim=1) ** 2
        rounding = torch.finfo(prior.dtype).eps * len(self.factor) * prior
        return torch.where(left > rounding, left, torch.zeros_like(left))

    def covariance(self, places: Places, others: Places) -> Tensor:
        """[B, B']: of f, in units of the prior."""
        prior = self.prior.covariance(places.rows, others.rows)
        return prior.addmm_(places.projected, others.projected.mT, alpha=-1.0)


@dataclass(frozen=True, eq=False)
class LabelCovariances:
    """i -> [N]: covariances of the label of candidate i with those of all, itself included."""

    posterior: DevicePosterior
    places: Places
    variance: Tensor
    """[N]: of labels, with their noise"""

    def __call__(self, i: int) -> Tensor:
        """The row of candidate i."""
        with torch.no_grad():
            one = Places(*(each[i : i + 1] for each in self.places))
            row = self.posterior.unit**2 * self.posterior.covariance(one, self.places)[0]
            row[i] = self.variance[i]
            return row


def bounded(covariance: Tensor, variance: Tensor, known: Tensor, out: Tensor) -> None:
    """Covariances [B, M] kept to what variances [B] and [M] allow, which rounding alone exceeds, into `out`."""
    most = torch.sqrt(variance)[:, None] * torch.sqrt(known)
    torch.minimum(covariance, most, out=covariance)
    torch.maximum(covariance, most.neg_(), out=out)


# ----------------------------------------------------------------------
# Beliefs of models that tell a joint Gaussian of any rows and no more: asked of a few candidates with all contexts.
#
# Sizes: N candidates, M contexts, B rows of any block, p features.

Joint: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
"""From rows [B, p] to the mean [B] and the covariance [B, B] of f there."""
Noise: TypeAlias = Callable[[Tensor], Tensor]
"""From rows [B, p] to the variance [B] that a label has beside f."""

_FEWEST = 64  # candidates of a block, however few the contexts are


def prepare_joint(
    moments: Joint, noise: Noise, contexts: Tensor, *, target: Target, joint: bool
) -> Callable[[Tensor], GaussianBelief]:
    """From a pool [N, p] to the belief about its labels and the targets at `contexts` [M, p].

    As many candidates as there are contexts are asked for at a time.

    All pairs of these are computed, four times as many as are needed: with fewer candidates at a time, pairs of
    contexts are computed more often; with more, pairs of candidates are more.
    """
    (mean, covariance), target_noise = moments(contexts), noise(contexts)
    known = covariance.diagonal().clone()
    target_variance = known + target_noise if target == "label" else known

    def belief(pool: Tensor) -> GaussianBelief:
        parts = slices(len(pool), max(_FEWEST, len(contexts)))
        own, blocks = zip(*(_block(moments, pool[part], contexts, known) for part in parts), strict=True)
        label_noise = noise(pool)
        variance = torch.cat(own) + label_noise
        rows = _Rows(moments, pool, variance) if joint else None
        return GaussianBelief(mean, target_variance, variance, torch.cat(blocks), rows, label_noise)

    return belief


def _block(joint: Joint, pool: Tensor, contexts: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """[B], [B, M]: variances of f, and covariances with f at the contexts, of variance `known` [M]."""
    count = len(pool)
    _, both = joint(torch.cat([pool, contexts]))
    variance, covariance = both.diagonal()[:count].clamp(min=0.0), both[:count, count:].clone()
    bounded(covariance, variance, known, out=covariance)
    return variance, covariance


@dataclass(frozen=True, eq=False)
class _Rows:
    """i -> [N]: covariances of the label of candidate i with those of all, itself included."""

    joint: Joint
    pool: Tensor
    variance: Tensor
    """[N]: of labels, with their noise"""

    def __call__(self, i: int) -> Tensor:
        """The row of candidate i."""
        one, parts = self.pool[i : i + 1], slices(len(self.pool), _FEWEST)
        row = torch.cat([self.joint(torch.cat([one, self.pool[part]]))[1][0, 1:] for part in parts])
        row[i] = self.variance[i]
        return row


# ----------------------------------------------------------------------
# Covariances by scikit-learn's kernels, computed by torch: the kernels that `kernels` knows, on any device.
#
# Sizes: B rows of any block, p features.

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
