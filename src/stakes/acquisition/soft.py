"""Log loss on an ensemble of classifiers, from products of centred members in float32.

With J[y, z] = p_y p_z (1 + r), where p_y p_z r is the covariance of members at x and c,

    EUR = sum_y p_y (1 + rbar_y) sum_z w_z p_z ((1 + q) log(1 + q) - q),    q = (r - rbar_y) / (1 + rbar_y),

rbar_y the mean of r over z with weights w_z p_z. Only r is rounded, so that float32 ranks like float64 even where
members hardly differ. Used for large problems, where memory and time are saved; small ones take the general route.
Sizes: N candidates, n of a block, M contexts, K members, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from stakes._array import Array, namespace, on_accelerator, slices
from stakes._jit import has_jit
from stakes.acquisition import soft_loops
from stakes.acquisition.centred import within_reach
from stakes.acquisition.forms import ANY, Form, Reduction, register
from stakes.beliefs import CategoricalEnsemble
from stakes.losses import LogLoss

LARGE = 2**22
"""Cells, pairs of classes of pairs of rows: below, the general route takes no time either."""
_LIGHTEST = 1e-6  # of member weights: p / mean may be as large as its inverse
_TYPES = (np.dtype(np.float32), np.dtype(np.float64))
_PRODUCT, _CACHE = 2**20, 2**17  # cells of one product, and of what is done with it at a time


@dataclass(frozen=True, eq=False)
class _Sides:
    """What a block of rows brings to the product: its means [n, C] and centred members [n C, K]."""

    means: Any
    centred: Any

    @staticmethod
    def of(probabilities: Any, weights: Any, compiled: bool) -> _Sides:
        n, members, classes = probabilities.shape
        if compiled:
            means, centred = np.empty((n, classes)), np.empty((n, classes, members), dtype=np.float32)
            soft_loops.centre(probabilities, weights, means, centred)
        else:
            means = np.einsum("nkc,k->nc", probabilities, weights)
            scale = np.divide(1.0, means, out=np.zeros_like(means), where=means > soft_loops.NOTHING)
            gaps = (probabilities - means[:, None, :]) * scale[:, None, :]
            centred = np.ascontiguousarray(np.swapaxes(gaps, 1, 2), dtype=np.float32)
        return _Sides(means, centred)


def _information(loss: LogLoss, belief: CategoricalEnsemble, compiled: bool) -> Reduction:
    """EUR of log loss, a few candidates at a time."""
    xp, weights = namespace(belief.contexts), np.asarray(belief.member_weights, dtype=float)
    contexts = _Sides.of(np.asarray(belief.contexts), weights, compiled)
    heavy = contexts.means * np.asarray(loss.class_weights or 1.0)  # [M, C]
    total = np.sum(heavy, axis=1)  # [M]
    shares = np.ascontiguousarray((heavy / np.where(total > 0, total, 1.0)[:, None]).T, dtype=np.float32)  # [C, M]
    members = np.swapaxes(contexts.centred, 0, 1).reshape(-1, len(weights)) * weights.astype(np.float32)  # [C M, K]
    step = max(1, _PRODUCT // (shares.size * belief.n_classes))

    def of(block: CategoricalEnsemble) -> Array:
        found = np.zeros((block.n_candidates, block.n_contexts), dtype=np.float32)
        product = np.empty((step * block.n_classes, shares.size), dtype=np.float32)
        for part in slices(block.n_candidates, step):
            sides = _Sides.of(np.asarray(block.candidates[part, ...]), weights, compiled)
            rows = sides.centred.reshape(-1, len(weights))  # [n C, K]
            r = np.matmul(rows, members.T, out=product[: len(rows)]).reshape(len(rows), *shares.shape)  # [n C, C, M]
            _add_excesses(r, shares, sides.means, found[part], compiled)
        return xp.astype(xp.asarray(found * total), belief.like.dtype, copy=False)

    return Reduction(of, belief.reference(loss).log_scale)


def _add_excesses(r: Array, shares: Array, means: Array, found: Array, compiled: bool) -> None:
    """Add sum_y p_y (1 + rbar) sum_z share ((1 + q) log(1 + q) - q) to `found` [n, M], for r [n C, C, M]."""
    classes = len(shares)
    add = _compiled_excesses if compiled else _plain_excesses
    for part in slices(len(found), max(1, _CACHE // (shares.size * classes))):
        add(r[part.start * classes : part.stop * classes], shares, means[part].astype(np.float32), found[part])


def _compiled_excesses(r: Array, shares: Array, means: Array, found: Array) -> None:
    q, x, mean = np.empty_like(r), np.empty_like(r), np.empty_like(r[:, 0])
    soft_loops.ratios(r, shares, q, x, mean)
    soft_loops.excesses(q, np.log(x, out=x), shares, mean, means, found)


def _plain_excesses(r: Array, shares: Array, means: Array, found: Array) -> None:
    """In double precision, where x log x - (x - 1) keeps its digits near 1 without a series."""
    mean = np.einsum("izm,zm->im", r, shares)[:, None, :]  # [n C, 1, M]
    near = np.divide(1.0, 1.0 + mean, out=np.zeros_like(mean), where=mean > soft_loops.EMPTY - 1.0)
    x = np.subtract(r, mean, dtype=np.float64)
    x *= near
    x += 1.0
    np.maximum(x, 1e-30, out=x)
    excess = np.log(x)
    excess *= x
    x -= 1.0
    excess -= x
    weighted = np.einsum("izm,zm->im", excess, shares) * np.maximum(1.0 + mean[:, 0, :], 0.0)  # [n C, M]
    found += np.einsum("nym,ny->nm", weighted.reshape(*means.shape, shares.shape[1]), means)


def _large(belief: CategoricalEnsemble) -> bool:
    """Whether the belief is where loops read it, and large enough for float32 to be worth its rounding."""
    size = belief.n_candidates * belief.n_contexts * belief.n_classes**2
    return size >= LARGE and all(_readable(each) for each in (belief.candidates, belief.contexts))


def _readable(side: Array) -> bool:
    """An array of NumPy's, or a tensor on the host that shares its memory with one."""
    if is_torch_array(side):
        side = None if on_accelerator(side) or side.requires_grad or side.dtype.itemsize < 4 else np.asarray(side[:0])
    return isinstance(side, np.ndarray) and side.dtype in _TYPES


def _form(name: str, compiled: bool, otherwise: Form | None = None) -> Form:
    return Form(
        name,
        lambda loss, belief: _information(loss, belief, compiled),
        lambda loss, belief: 4,
        serves=lambda loss, belief: (
            _large(belief) and within_reach(loss, belief, _LIGHTEST) and (has_jit() or not compiled)
        ),
        otherwise=otherwise,
    )


_PLAIN = _form("products of centred members in float32", compiled=False)
register(LogLoss, ANY, CategoricalEnsemble, _form("products of centred members in float32, compiled", True, _PLAIN))
