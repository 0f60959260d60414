"""Forms for votes: all that a loss of classes needs to know is how many members vote y at x and z at c.

Only (C - 1)^2 counts are made for each pair, as the margins give the others. Where loops are compiled they come from
packed words, bit k of which says whether member k votes for the class; elsewhere from a matrix product in float32,
which is exact: counts are whole numbers below 2^24. Log loss needs k log k of them for k = 0 .. K, which is a table;
any other loss their moments.
Sizes: N candidates, n of a block, M contexts, K members, C classes, W words of 64 members, D statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stakes._utils.array import Array, constant, double, filled, namespace, on_host, slices
from stakes._utils.compute import has_jit, has_kernel, loop
from stakes.acquisition.forms import ANY, GENERAL, Form, Reduction, Total, register
from stakes.beliefs import VoteEnsemble
from stakes.beliefs.categorical import are_members_alike
from stakes.losses import LogLoss, Loss
from stakes.losses.weights import relative_weights

_ODD, _PAIRS, _NIBBLES, _BYTES = (
    np.uint64(mask) for mask in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)
_ONE, _TWO, _FOUR, _TOP = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@loop
def bits(word: Any) -> Any:
    """How many bits are set; compilers know this idiom and write the machine's own instruction."""
    word = word - ((word >> _ONE) & _ODD)
    word = (word & _PAIRS) + ((word >> _TWO) & _PAIRS)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return (word * _BYTES) >> _TOP


@loop
def pack(votes: Any, packed: Any, margins: Any) -> None:
    """Fill `packed` [n, C - 1, W], given as zeros, and `margins` [n, C], zeros too, from class numbers [n, K]."""
    for n in range(votes.shape[0]):
        for k in range(votes.shape[1]):
            vote = votes[n, k]
            margins[n, vote] += 1
            if vote < packed.shape[1]:
                packed[n, vote, k >> 6] |= _ONE << np.uint64(k & 63)


@loop
def count(packed: Any, others: Any, rows: Any, columns: Any, n: int, m: int, table: Any) -> None:
    """Fill `table` [C, C] with how many members vote y at candidate n and z at context m.

    `packed` [n, C - 1, W] and `rows` [n, C] are votes and margins of candidates, `others` and `columns` of contexts.
    """
    last = packed.shape[1]
    for z in range(last + 1):
        table[last, z] = columns[m, z]
    for y in range(last):
        rest = rows[n, y]
        for z in range(last):
            both = np.uint64(0)
            for w in range(packed.shape[2]):
                both += bits(packed[n, y, w] & others[m, z, w])
            votes = np.int64(both)
            table[y, z] = votes
            table[last, z] -= votes
            rest -= votes
        table[y, last] = rest
        table[last, last] -= rest


@loop
def moments(packed: Any, others: Any, rows: Any, columns: Any, statistics: Any, split: Any) -> None:
    """Fill `split` [n, M, C, D] with sum_z count[y, z] S(z), for `statistics` S [C, D]."""
    classes, size = statistics.shape
    table = np.empty((classes, classes), np.int64)
    for n in range(packed.shape[0]):
        for m in range(others.shape[0]):
            count(packed, others, rows, columns, n, m, table)
            for y in range(classes):
                for d in range(size):
                    total = 0.0
                    for z in range(classes):
                        total += table[y, z] * statistics[z, d]
                    split[n, m, y, d] = total


@loop
def entropies(packed: Any, others: Any, rows: Any, columns: Any, weights: Any, table: Any, out: Any, mass: Any) -> None:
    """Fill `out` [n, M] with sum_yz w_z c log c and `mass` [n, M, C] with sum_z w_z c, c the counts of y and z.

    `table` [K + 1] holds k log k. Counts are used as they come: to write them down first costs a third more time. The
    masses are left out where `mass` is [n, M, 0].
    """
    last, heavy = packed.shape[1], mass.shape[2] > 0
    left = np.empty(last + 1, np.int64)  # of the context's votes, for the candidate's last class
    for n in range(packed.shape[0]):
        for m in range(others.shape[0]):
            for z in range(last + 1):  # not as a slice: numba would compile the text of an error about shapes, for 2 s
                left[z] = columns[m, z]
            total = 0.0
            for y in range(last):
                rest, weight = rows[n, y], 0.0
                for z in range(last):
                    both = np.uint64(0)
                    for w in range(packed.shape[2]):
                        both += bits(packed[n, y, w] & others[m, z, w])
                    votes = np.int64(both)
                    rest -= votes
                    left[z] -= votes
                    total += weights[z] * table[votes]
                    weight += weights[z] * votes
                left[last] -= rest
                total += weights[last] * table[rest]
                if heavy:
                    mass[n, m, y] = weight + weights[last] * rest
            weight = 0.0
            for z in range(last + 1):
                total += weights[z] * table[left[z]]
                weight += weights[z] * left[z]
            if heavy:
                mass[n, m, last] = weight
            out[n, m] = total


MOST_MEMBERS = 2**24
"""Beyond, float32 does not tell whole numbers apart."""


def _packed(votes: Array, classes: int) -> tuple[Any, Any]:
    """[n, C - 1, W], [n, C]: votes as words, and their margins, from class numbers [n, K]."""
    packed = np.zeros((len(votes), classes - 1, -(-votes.shape[1] // 64)), dtype=np.uint64)
    counts = np.zeros((len(votes), classes), dtype=np.int64)
    pack(votes, packed, counts)
    return packed, counts


def _counter(contexts: Array, classes: int) -> Callable[[Array], Iterator[Array]]:
    """A function from votes [n, K] to counts [n, C, M], one for each class y in turn, by a matrix product.

    How many members vote y in the votes given, and z at the contexts, whose class numbers are [M, K].
    """
    xp, n_contexts = namespace(contexts), contexts.shape[0]
    each = xp.concat([_indicator(contexts, z) for z in range(classes)], axis=0)[: (classes - 1) * n_contexts, :]
    indicators = xp.permute_dims(each, (1, 0))  # [K, (C - 1) M]
    totals = xp.permute_dims(margins(contexts, classes), (1, 0))  # [C, M]

    def counts_by_label(votes: Array) -> Iterator[Array]:
        left = totals[None, ...] + xp.zeros((votes.shape[0], 1, 1), dtype=xp.float32)  # of labels to come
        for y in range(classes - 1):
            here = _indicator(votes, y)  # [n, K]
            both = xp.reshape(xp.matmul(here, indicators), (votes.shape[0], classes - 1, n_contexts))
            rest = xp.sum(here, axis=1)[:, None, None] - xp.sum(both, axis=1, keepdims=True)
            counts = xp.concat([both, rest], axis=1)
            left = left - counts
            yield counts
        yield left

    return counts_by_label


def margins(votes: Array, classes: int) -> Array:
    """[n, C]: how many members vote for each class."""
    xp = namespace(votes)
    return xp.stack([xp.sum(_indicator(votes, z), axis=1) for z in range(classes)], axis=1)


def _indicator(votes: Array, label: int) -> Array:
    """[n, K]: 1 where a member votes for the class."""
    return namespace(votes).astype(votes == label, namespace(votes).float32)


_CACHE = 2**17  # weights of labels that loops write at a time, so that they stay near the processor
_PRODUCT = 2**20  # counts of one label that a product makes at a time: fewer, and it reads the contexts more often
_WORTH_COMPILING = 10**7  # pairs of classes times members; below, a product is quicker than fetching compiled loops
_WEIGHTS_APART = 1e6  # beyond, c log c of the heavy classes rounds away what the light ones tell
_STATISTICS_APART = 1e150  # the same of sizes of statistics: beyond, those of a light class underflow
_LEAST = float(np.finfo(float).tiny)  # in place of 0, times whose logarithm anything 0 is 0
_ROUNDING = 64 * float(np.finfo(float).eps)  # of the heaviest class's weight times log K


def _packed_information(loss: LogLoss, belief: VoteEnsemble) -> Reduction:
    """EUR of log loss from packed votes."""
    (others, columns), (weights, table) = _packed(belief.contexts, belief.n_classes), _tables(loss, belief)
    unweighted = loss.class_weights is None

    def information(votes: Array) -> Array:
        packed, rows = _packed(votes, belief.n_classes)
        found = np.empty((len(votes), len(others)))
        mass = np.empty((len(votes), len(others), 0 if unweighted else belief.n_classes))
        entropies(packed, others, rows, columns, weights, table, found, mass)
        if unweighted:  # a label's mass is then its votes, whatever the context
            return found - table[rows].sum(axis=1)[:, None]
        return found - np.einsum("nmy,nmy->nm", mass, np.log(np.maximum(mass, _LEAST)))

    return _gain(loss, belief, information, _CACHE)


def _product_information(loss: LogLoss, belief: VoteEnsemble) -> Reduction:
    """EUR of log loss from counts by a matrix product."""
    (weights, _), counts_by_label = _tables(loss, belief), _counter(belief.contexts, belief.n_classes)

    def information(votes: Array) -> Array:
        total: Any = 0.0
        for counts in counts_by_label(votes):  # [n, C, M]
            total = total + _information(counts, weights[:, None])
        return total

    return _gain(loss, belief, information, _PRODUCT)


def _gain(loss: LogLoss, belief: VoteEnsemble, information: Callable[[Array], Array], held: int) -> Reduction:
    """EUR = (information of the counts - that of the context's margins) / K, `held` counts of a label at a time.

    Rounding is no gain.
    """
    (weights, _), members, log_scale = _tables(loss, belief), belief.contexts.shape[1], relative_weights(loss)[1]
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

    return of, filled(belief.n_contexts, log_scale, belief.like)


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
    """[C], [K + 1]: the weight of each class over the largest, and k log k."""
    count, like = np.arange(belief.contexts.shape[1] + 1, dtype=float), double(belief.like)
    weights = relative_weights(loss)[0] or (1.0,) * belief.n_classes
    return constant(weights, like), constant(count * np.log(np.maximum(count, 1.0)), like)


def _packed_regret(loss: Loss, belief: VoteEnsemble) -> Reduction:
    """The general route, its split moments from packed votes."""
    (others, columns), (table, _) = _packed(belief.contexts, belief.n_classes), _statistics(loss, belief)

    def split_moments(block: VoteEnsemble) -> Array:
        packed, rows = _packed(block.candidates, block.n_classes)
        split = np.empty((block.n_candidates, block.n_contexts, *table.shape))
        moments(packed, others, rows, columns, table, split)
        return split

    return _regret(loss, belief, split_moments)


def _product_regret(loss: Loss, belief: VoteEnsemble) -> Reduction:
    """The general route, its split moments from counts by a matrix product."""
    (table, _), counts_by_label = _statistics(loss, belief), _counter(belief.contexts, belief.n_classes)

    def split_moments(block: VoteEnsemble) -> Array:
        xp, labels = namespace(table), counts_by_label(block.candidates)
        by_label = [xp.tensordot(xp.astype(each, table.dtype), table, axes=([1], [0])) for each in labels]
        return xp.stack(by_label, axis=2)

    return _regret(loss, belief, split_moments)


def _statistics(loss: Loss, belief: VoteEnsemble) -> tuple[Array, float]:
    """[C, D]: what one member's vote for each class adds to the moments, over the largest; and the log of that."""
    table, log_scale = relative_statistics(loss, belief)
    return table / belief.contexts.shape[1], log_scale


def _regret(loss: Loss, belief: VoteEnsemble, split_moments: Callable[[VoteEnsemble], Array]) -> Reduction:
    """EUR = sum_y of the regret of keeping today's action, over the mean size of a context's statistics."""
    table, log_scale = _statistics(loss, belief)
    xp, votes = namespace(table), double(margins(belief.contexts, belief.n_classes))  # [M, C]
    size = xp.matmul(votes, xp.max(abs(table), axis=1))  # [M]
    size = xp.where(size > 0, size, xp.ones_like(size))

    def of(block: VoteEnsemble) -> Array:
        split = split_moments(block) / size[:, None, None]  # [n, M, C, D]
        action = loss.action(xp.sum(split, axis=2))  # [n, M, d]
        regret = xp.sum(loss.regret(split, action[:, :, None, :], None), axis=2)  # [n, M]
        return xp.astype(regret, belief.like.dtype)

    return of, xp.log(size) + log_scale


def alike(belief: VoteEnsemble) -> bool:
    """Whether members count alike, so that counts are whole numbers."""
    if belief.contexts.shape[1] >= MOST_MEMBERS:
        return False
    weights = belief.member_weights
    return are_members_alike(belief) or bool(namespace(weights).all(weights == weights[0]))


def _compiled(belief: VoteEnsemble) -> bool:
    """Whether loops are compiled, can read the votes, and have enough to do."""
    size = belief.n_candidates * belief.n_contexts * belief.n_classes**2 * belief.contexts.shape[1]
    host = isinstance(belief.candidates, np.ndarray) and isinstance(belief.contexts, np.ndarray)
    return alike(belief) and host and size >= _WORTH_COMPILING and has_jit()


def _form(packed: Any, product: Any, numbers: Callable[[VoteEnsemble], int], most: float) -> Form:
    """Packed words where loops are compiled, a product elsewhere; `numbers` are held for each pair of a block.

    Not for weights of classes, or other sizes of their statistics, further apart than `most`.
    """

    def size(_: Any, belief: VoteEnsemble) -> int:
        return numbers(belief)

    def within(loss: Any, belief: VoteEnsemble) -> bool:
        return alike(belief) and statistics_ratio(loss, belief) <= most

    other = Form(
        "counts of votes by a matrix product",
        product,
        size,
        serves=within,
    )
    return Form(
        "counts of packed votes",
        packed,
        size,
        serves=lambda loss, belief: _compiled(belief) and within(loss, belief),
        otherwise=other,
    )


register(LogLoss, ANY, VoteEnsemble, _form(_packed_information, _product_information, lambda belief: 4, _WEIGHTS_APART))
register(  # C D moments, and as many numbers for each of the few temporaries of the regret
    ANY,
    ANY,
    VoteEnsemble,
    _form(
        _packed_regret, _product_regret, lambda belief: 8 * belief.n_classes * (belief.n_classes + 1), _STATISTICS_APART
    ),
)


# On a GPU, by the kernel over centred members (`stakes.acquisition.centred` registers it).

_MOST_CLASSES = 128
_WEIGHTS_APART_ON_GPU = 1e3  # the mean of f(r) less f of the mean is then known to three digits at least


def fused_form_of_votes(prepare: Any, width: int) -> Form:
    """For votes, of which `width` bytes are held for each member and class."""
    return Form(
        "fused kernel over counts of votes",
        GENERAL.prepare,
        GENERAL.numbers,
        GENERAL.context_numbers,
        total=Total(prepare, lambda loss, belief: held_numbers(belief, width), in_logs=True),
        serves=lambda loss, belief: (
            has_fused_kernel(belief) and alike(belief) and weight_ratio(loss) <= _WEIGHTS_APART_ON_GPU
        ),
    )


def held_numbers(belief: Any, width: int) -> int:
    """Numbers of 8 bytes that a candidate takes: its members, padded, of `width` bytes each."""
    return int(belief.domain.count * (belief.member_weights.shape[0] + 64) * width / 8) + 8


def has_fused_kernel(belief: Any) -> bool:
    """Whether the kernel runs on the arrays of an ensemble of classes."""
    return belief.domain.count <= _MOST_CLASSES and has_kernel(belief.contexts)


def weight_ratio(loss: Any) -> float:
    """The ratio of the heaviest class weight to the lightest that is not 0; 1 for losses without class weights."""
    weights = [weight for weight in getattr(loss, "class_weights", None) or () if weight != 0]
    return max(weights) / min(weights) if weights else 1.0  # an array takes as long as a small product


def statistics_ratio(loss: Any, belief: Any) -> float:
    """The ratio of the largest statistics of a class to the smallest that are not 0."""
    table, _ = relative_statistics(loss, belief)
    return _spread(on_host(namespace(table).max(abs(table), axis=1)))


def _spread(sizes: Any) -> float:
    """The largest over the smallest that is not 0."""
    sizes = sizes[sizes != 0]
    with np.errstate(over="ignore"):
        return float(np.max(sizes) / np.min(sizes)) if sizes.size else 1.0


def relative_statistics(loss: Any, belief: Any) -> tuple[Array, float]:
    """[C, D]: the statistics of each class over the largest, in double precision, and the log of that."""
    table = loss.statistics(constant(np.eye(belief.domain.count), double(belief.like)), None)
    largest = float(namespace(table).max(abs(table)))
    return (table / largest, math.log(largest)) if largest > 0 else (table, 0.0)
