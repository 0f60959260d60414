"""Squared losses on an ensemble: all contexts together are one K x K matrix, however many they are.

With u_jk = q_k P_k(y_j), whose sum over members is P(y_j), and b_k = E[T(z) | c, k] - E[T(z) | c], by coordinates of T,

    sum_c s_c EUR(x; c) = sum_c s_c sum_j |sum_k u_jk b_k|^2 / P(y_j) = sum_j u_j' G u_j / P(y_j),  G = sum_c s_c b b'.

Sizes: N candidates, n of a block, M contexts, J cells of y, K members, d coordinates of T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stakes._array import Array, double, namespace, ratio
from stakes.acquisition.forms import GENERAL, Form, Total, register
from stakes.acquisition.reduction import context_blocks
from stakes.beliefs import CategoricalEnsemble, NormalEnsemble
from stakes.losses import BrierLoss, SquaredError


def quadratic_form(block: CategoricalEnsemble | NormalEnsemble, matrix: Array) -> Array:
    """[n]: sum_j u_j' G u_j / P(y_j), less the same of all cells together: 0, but for the rounding of a rule."""
    xp, weights = namespace(matrix), double(block.member_weights)
    masses = double(block.member_outcomes()) * weights  # [n, J, K]
    all_cells = xp.sum(masses, axis=1, keepdims=True)  # [n, 1, K]
    split, whole = (_over_mass(each, matrix, weights) for each in (masses, all_cells))
    return xp.clip(split - whole, 0.0, None)


def _over_mass(masses: Array, matrix: Array, weights: Array) -> Array:
    """[n]: sum_j u_j' G u_j / P(y_j), of masses u [n, J, K].

    From u - P q, which makes no difference, as G q = 0, and is nothing where all members agree.
    """
    xp = namespace(matrix)
    mass = xp.sum(masses, axis=2, keepdims=True)  # [n, J, 1]
    gaps = masses - mass * weights
    values = xp.sum(xp.matmul(gaps, matrix) * gaps, axis=2)  # [n, J]
    return xp.sum(ratio(values, mass[..., 0]), axis=1)


def covariance_matrix(belief: Any, shares: Array, values: Callable[[Any], Array]) -> Array:
    """[K, K]: G, from what each member expects of T at each context, `values` [m, K, d] of a block."""
    xp, start, total = namespace(shares), 0, 0.0
    for block in context_blocks(belief):
        expected, part = double(values(block)), slice(start, start + block.n_contexts)
        gaps = expected - xp.sum(double(belief.member_weights)[:, None] * expected, axis=1, keepdims=True)  # [m, K, d]
        total = total + xp.tensordot(shares[part, None, None] * gaps, gaps, axes=([0, 2], [0, 2]))
        start = part.stop
    return total


def _over_classes(loss: BrierLoss, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:  # noqa: ARG001 (nothing to set)
    matrix = covariance_matrix(belief, shares, lambda block: block.contexts)
    return lambda block: quadratic_form(block, matrix)


def _over_normals(loss: SquaredError, belief: NormalEnsemble, shares: Array) -> Callable[[Any], Array]:  # noqa: ARG001 (nothing to set)
    matrix = covariance_matrix(belief, shares, lambda block: block.context_mean[..., None])
    return lambda block: quadratic_form(block, matrix)


def _numbers(loss: Any, belief: Any) -> int:
    """The masses of cells under members, their product with the matrix, and what made them."""
    return int(4 * belief.n_cells(loss) * belief.member_weights.shape[0])


def _form(total: Callable[[Any, Any, Array], Callable[[Any], Array]], coordinates: Callable[[Any], int]) -> Form:
    """The general route for single contexts, the matrix for all of them where there are more than members."""
    return Form(
        "one matrix over members for all contexts",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(total, _numbers),
        serves=lambda loss, belief: belief.member_weights.shape[0] < belief.n_contexts * coordinates(belief),
    )


register(BrierLoss, None, CategoricalEnsemble, _form(_over_classes, lambda belief: belief.n_classes - 1))
register(SquaredError, None, NormalEnsemble, _form(_over_normals, lambda belief: 1))
