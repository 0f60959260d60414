"""Sums over products of centred members, block by block in any array library: what a GPU does without Triton.

Sizes: n candidates of a block, M contexts, K members, C classes, T terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._array import Array, constant, double, log_excess, namespace, ratio
from stakes.acquisition.centred import EMPTY, Terms, centred, terms_of
from stakes.beliefs import CategoricalEnsemble


def block_sums(loss: Any, belief: CategoricalEnsemble, shares: Array) -> Callable[[Any], Array]:
    """A function from blocks of candidates to their scores [n], for contexts with `shares` [M]: in single precision."""
    xp, terms = namespace(belief.contexts), terms_of(loss, belief, shares)
    count, contexts, members = terms.members.shape
    right = xp.permute_dims(xp.reshape(terms.members, (count * contexts, members)), (1, 0))  # [K, T M]
    right, heights, offsets = (xp.astype(each, xp.float32) for each in (right, terms.heights, terms.offsets))
    of = _best_actions if terms.kind == "actions" else _excesses

    def sums(block: CategoricalEnsemble) -> Array:
        means, gaps = centred(block.candidates, block.member_weights)  # [n, C], [n, C, K]
        rows = xp.reshape(xp.astype(gaps, xp.float32), (-1, members))  # [n C, K]
        r = xp.reshape(xp.matmul(rows, right) / members, (rows.shape[0], count, contexts))
        found = xp.reshape(of(r, terms, heights, offsets), means.shape)  # [n, C]
        return terms.scale * xp.sum(double(means) * double(found), axis=1)

    return sums


def block_numbers(loss: Any, belief: CategoricalEnsemble) -> int:
    """The products of a candidate, and as many numbers for each of the few temporaries of what is made of them."""
    terms = loss.statistics(constant(np.eye(belief.n_classes), belief.like), None).shape[-1]  # C + 1, or A
    return int(8 * belief.n_classes * terms * belief.n_contexts + 2 * belief.n_classes * belief.member_weights.shape[0])


def _excesses(r: Array, terms: Terms, heights: Array, _: Array) -> Array:
    """[n C]: sum_c (1 + rbar) sum_z h f(q), for r [n C, T, M]."""
    xp = namespace(r)
    if not terms.weighted:
        return xp.sum(_made(r, terms) * heights, axis=(1, 2))
    mean = r[:, -1:, :]
    left_over = xp.where(1.0 + mean > EMPTY, 1.0 + mean, xp.zeros_like(mean))
    q = (r[:, :-1, :] - mean) * ratio(xp.ones_like(mean), left_over)
    return xp.sum(xp.sum(_made(q, terms) * heights, axis=1) * left_over[:, 0, :], axis=1)


def _made(q: Array, terms: Terms) -> Array:
    """f(q); rounding may put q below -1, where no probability is."""
    return log_excess(namespace(q).clip(q, -1.0, None)) if terms.kind == "log" else q * q


def _best_actions(r: Array, _: Terms, heights: Array, offsets: Array) -> Array:
    """[n C]: sum_c max_b (D_b + d_b)."""
    xp = namespace(r)
    return xp.sum(xp.max(offsets + heights * r, axis=1), axis=1)
