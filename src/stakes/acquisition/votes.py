"""Forms for votes: all that a loss of classes needs to know are the counts of members that vote y at x and z at c.

Counts come from packed words where loops are compiled, from a matrix product elsewhere. Log loss needs k log k of
them for k = 0 .. K, which is a table; any other loss their moments.
Sizes: N candidates, n of a block, M contexts, K members, C classes, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._array import Array, constant, double, filled, namespace, slices
from stakes._jit import has_jit
from stakes.acquisition import vote_loops
from stakes.acquisition.forms import ANY, Form, Reduction, register
from stakes.acquisition.vote_counts import MOST_MEMBERS, Indicated, Packed, margins
from stakes.beliefs import VoteEnsemble
from stakes.losses import LogLoss, Loss
from stakes.losses.classes import weight_ratio

_CACHE = 2**17  # weights of labels that loops write at a time, so that they stay near the processor
_PRODUCT = 2**20  # counts of one label that a product makes at a time: fewer, and it reads the contexts more often
_WORTH_COMPILING = 10**7  # pairs of classes times members; below, a product is quicker than fetching compiled loops
_WEIGHTS_APART = 1e6  # beyond, c log c of the heavy classes rounds away what the light ones tell
_LEAST = float(np.finfo(float).tiny)  # in place of 0, times whose logarithm anything 0 is 0
_ROUNDING = 64 * float(np.finfo(float).eps)  # of the heaviest class's weight times log K


def _packed_information(loss: LogLoss, belief: VoteEnsemble) -> Reduction:
    """EUR of log loss from packed votes."""
    contexts, weights, table = Packed.of(belief.contexts, belief.n_classes), *_tables(loss, belief)

    def information(votes: Array) -> Array:
        packed = Packed.of(votes, belief.n_classes)
        found, mass = np.empty((len(votes), len(contexts.words))), np.empty((len(votes), *contexts.margins.shape))
        sides = (packed.words, contexts.words, packed.margins, contexts.margins)
        vote_loops.entropies(*sides, weights, table, found, mass)
        return found - np.einsum("nmy,nmy->nm", mass, np.log(np.maximum(mass, _LEAST)))

    return _gain(loss, belief, information, _CACHE)


def _product_information(loss: LogLoss, belief: VoteEnsemble) -> Reduction:
    """EUR of log loss from counts by a matrix product."""
    (weights, _), contexts = _tables(loss, belief), Indicated.of(belief.contexts, belief.n_classes)

    def information(votes: Array) -> Array:
        total: Any = 0.0
        for counts in contexts.counts_by_label(votes):  # [n, C, M]
            total = total + _information(counts, weights[:, None])
        return total

    return _gain(loss, belief, information, _PRODUCT)


def _gain(loss: LogLoss, belief: VoteEnsemble, information: Callable[[Array], Array], held: int) -> Reduction:
    """EUR = (information of the counts - that of the context's margins) / K, `held` counts of a label at a time.

    Rounding is no gain.
    """
    (weights, _), members = _tables(loss, belief), belief.contexts.shape[1]
    xp, step = namespace(weights), max(1, held // (belief.n_contexts * belief.n_classes))
    votes = margins(belief.contexts, belief.n_classes)  # [M, C]
    before = _information(votes, weights)  # [M]
    heaviest = xp.max(xp.where(votes > 0, weights, xp.zeros_like(weights)), axis=1)  # [M]: of the classes voted for
    rounding = _ROUNDING * float(np.log1p(members)) * heaviest

    def gains(candidates: Array) -> Array:
        gain = (information(candidates) - before) / members  # [n, M]
        return xp.astype(xp.where(gain > rounding, gain, xp.zeros_like(gain)), belief.like.dtype)

    def of(block: VoteEnsemble) -> Array:
        parts = [gains(block.candidates[part, :]) for part in slices(block.n_candidates, step)]
        return xp.concat(parts, axis=0) if parts else filled((0, block.n_contexts), 0.0, belief.like)

    return Reduction(of, belief.reference(loss).log_scale)


def _information(counts: Array, weights: Array) -> Array:
    """[n] or [n, M]: sum_z w_z c log c - W log W, W = sum_z w_z c, for counts c [n, C] or [n, C, M]."""
    xp = namespace(weights)
    counts = xp.astype(counts, weights.dtype)
    mass = xp.sum(weights * counts, axis=1)
    return xp.sum(weights * _times_log(counts), axis=1) - _times_log(mass)


def _times_log(values: Array) -> Array:
    """The product x log x, 0 for 0."""
    xp = namespace(values)
    return values * xp.log(xp.clip(values, _LEAST, None))


def _tables(loss: LogLoss, belief: VoteEnsemble) -> tuple[Array, Array]:
    """[C], [K + 1]: the weight of each class, and k log k."""
    count = np.arange(belief.contexts.shape[1] + 1, dtype=float)
    weights = constant(loss.class_weights or (1.0,) * belief.n_classes, belief.like)
    return double(weights), double(constant(count * np.log(np.maximum(count, 1.0)), belief.like))


def _packed_regret(loss: Loss, belief: VoteEnsemble) -> Reduction:
    """The general route, its split moments from packed votes."""
    contexts, table = Packed.of(belief.contexts, belief.n_classes), _statistics(loss, belief)

    def split_moments(block: VoteEnsemble) -> Array:
        votes = Packed.of(block.candidates, block.n_classes)
        split = np.empty((block.n_candidates, block.n_contexts, *table.shape))
        vote_loops.moments(votes.words, contexts.words, votes.margins, contexts.margins, table, split)
        return split

    return _regret(loss, belief, split_moments)


def _product_regret(loss: Loss, belief: VoteEnsemble) -> Reduction:
    """The general route, its split moments from counts by a matrix product."""
    table, contexts = _statistics(loss, belief), Indicated.of(belief.contexts, belief.n_classes)

    def split_moments(block: VoteEnsemble) -> Array:
        xp, labels = namespace(table), contexts.counts_by_label(block.candidates)
        by_label = [xp.tensordot(xp.astype(each, table.dtype), table, axes=([1], [0])) for each in labels]
        return xp.stack(by_label, axis=2)

    return _regret(loss, belief, split_moments)


def _statistics(loss: Loss, belief: VoteEnsemble) -> Array:
    """[C, D]: what one member's vote for each class adds to the moments."""
    table = loss.statistics(constant(np.eye(belief.n_classes), double(belief.like)), None)
    return table / belief.contexts.shape[1]


def _regret(loss: Loss, belief: VoteEnsemble, split_moments: Callable[[VoteEnsemble], Array]) -> Reduction:
    """EUR = sum_y of the regret of keeping today's action."""

    def of(block: VoteEnsemble) -> Array:
        split = split_moments(block)  # [n, M, C, D]
        xp = namespace(split)
        action = loss.action(xp.sum(split, axis=2))  # [n, M, d]
        regret = xp.sum(loss.regret(split, action[:, :, None, :], None), axis=2)  # [n, M]
        return xp.astype(regret, belief.like.dtype)

    return Reduction(of, belief.reference(loss).log_scale)


def alike(belief: VoteEnsemble) -> bool:
    """Whether members count alike, so that counts are whole numbers."""
    weights = belief.member_weights
    return bool(namespace(weights).all(weights == weights[0])) and belief.contexts.shape[1] < MOST_MEMBERS


def _compiled(belief: VoteEnsemble) -> bool:
    """Whether loops are compiled, can read the votes, and have enough to do."""
    size = belief.n_candidates * belief.n_contexts * belief.n_classes**2 * belief.contexts.shape[1]
    host = isinstance(belief.candidates, np.ndarray) and isinstance(belief.contexts, np.ndarray)
    return alike(belief) and host and size >= _WORTH_COMPILING and has_jit()


def _form(packed: Any, product: Any, numbers: Callable[[VoteEnsemble], int], most: float = math.inf) -> Form:
    """Packed words where loops are compiled, a product elsewhere; `numbers` are held for each pair of a block.

    Not for class weights further apart than `most`.
    """

    def size(_: Any, belief: VoteEnsemble) -> int:
        return numbers(belief)

    other = Form(
        "counts of votes by a matrix product",
        product,
        size,
        serves=lambda loss, belief: weight_ratio(loss) <= most and alike(belief),
    )
    return Form(
        "counts of packed votes",
        packed,
        size,
        serves=lambda loss, belief: weight_ratio(loss) <= most and _compiled(belief),
        otherwise=other,
    )


register(LogLoss, ANY, VoteEnsemble, _form(_packed_information, _product_information, lambda belief: 4, _WEIGHTS_APART))
register(  # C D moments, and as many numbers for each of the few temporaries of the regret
    ANY,
    ANY,
    VoteEnsemble,
    _form(_packed_regret, _product_regret, lambda belief: 8 * belief.n_classes * (belief.n_classes + 1)),
)
