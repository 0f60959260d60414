"""Ensembles of classifiers: forests, deep ensembles, dropout, posterior draws.

Given the member, y and z are independent, so that the split moments are one matrix product over members:
J[n, m, y, :] = sum_k q_k p(y | x_n, k) E[S(z) | c_m, k]. Statistics are taken about the re-weighted mean p_w(z | c) of
the members, and labels of which they say nearly the same about their mean p_y, as

    J[y, :] = p_y E[S] + sum_k q_k (p(y | k) - p_y) E[S | k],

so that what members agree on cancels before it is rounded, and the rest has all its digits however little they differ.
All of it is in double precision, with the scale of each context taken out: weights and costs may have any scale.
Rows come first, then members, then classes: [N, K, C]. Sizes: N candidates, M contexts, m of a block, K members, C
classes, D statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from stakes._utils.array import (
    Array,
    asarrays,
    check_all,
    check_shape,
    constant,
    detached,
    double,
    filled,
    finite_or_zero,
    log_of,
    namespace,
    replaced,
    shares,
    single,
    slices,
)
from stakes.beliefs.base import Integrand, Reference
from stakes.exceptions import StakesError
from stakes.losses.domains import Classes, check_labels, check_probabilities, labels_to_indicators

_NUMBERS = 2**20  # of statistics of classes that are held at a time
_ROUNDING = 64 * float(np.finfo(float).eps)  # of the sizes of a sum's terms
_APART = 0.5  # of its mean, by which members differ on a label: what is left of a cell without it may be nothing


@dataclass(frozen=True, eq=False)
class CategoricalEnsemble:
    """Class probabilities of K members for N candidates and M contexts.

    Probabilities may be kept in half precision; all that is computed from them is in single precision at least.

    Args:
        candidates: [N, K, C], of the labels: rows first, then members, then classes.
        contexts: [M, K, C], of the targets, members in the same order. Members first, [K, N, C] and [K, M, C], are
            refused where the sizes tell.
        member_weights: [K], normalised; without them members count alike.

    Raises:
        StakesError: If shapes disagree or rows are no probabilities.

    Examples:
        Two members that disagree; the label of the candidate tells which is right, and so the class of the context:

        >>> from stakes import CategoricalEnsemble, ZeroOne, score, uncertainty
        >>> members = [[[1.0, 0.0], [0.0, 1.0]]]
        >>> belief = CategoricalEnsemble(candidates=members, contexts=members)
        >>> print(uncertainty(ZeroOne(), belief), score(ZeroOne(), belief))  # half of the answers are wrong; then none
        [0.5] [0.5]
    """

    candidates: Array
    contexts: Array
    member_weights: Array = None

    def __post_init__(self) -> None:
        candidates, contexts, weights, like = _probabilities(self.candidates, self.contexts, self.member_weights)
        check_shape("candidates", candidates, ("N", "K", "C"))
        check_rows_first({"candidates": candidates, "contexts": contexts}, weights)
        _check_members("contexts", contexts, ("M", *candidates.shape[1:]))
        check_probabilities("candidates", candidates)
        check_probabilities("contexts", contexts)
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "member_weights", normalised_member_weights(weights, like))
        object.__setattr__(self, "_members_alike", weights is None)

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.candidates.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.contexts.shape[0])

    @property
    def n_classes(self) -> int:
        """How many classes there are, C."""
        return int(self.contexts.shape[2])

    @property
    def domain(self) -> Classes:
        """The classes."""
        return Classes(self.n_classes)

    @property
    def like(self) -> Array:
        """The member weights, which are in single precision at least."""
        return self.member_weights

    def n_cells(self, integrand: Integrand) -> int:
        """C, the classes of the label."""
        return int(self.candidates.shape[2])

    def reference(self, integrand: Integrand) -> Reference:
        """The re-weighted mean p_w(z | c) of the members, and the scale of its statistics."""
        return class_reference(integrand, self._means())

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: the mean over members of `member_moments`."""
        return _mean_of_members(self.member_moments(integrand, reference), self.member_weights)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, C, D]: one matrix product [N C, K] x [K, M D]."""
        xp, weights = namespace(self.contexts), member_shares(self.member_weights)
        expected = self.member_moments(integrand, reference)  # [M, K, D]
        candidates = probability_rows(self.candidates)  # [N, K, C]
        mass = xp.matmul(weights, candidates)[:, None, :]  # [N, 1, C]
        gaps = _beyond_rounding(candidates - mass, mass)
        apart = xp.max(abs(gaps), axis=1, keepdims=True) > _APART * mass
        gaps = weights[:, None] * xp.where(apart, candidates, gaps)
        split = xp.tensordot(gaps, expected, axes=([1], [1]))  # [N, C, M, D]
        common = xp.where(apart, xp.zeros_like(mass), mass)[:, 0, :]  # [N, C]: what all members say of a label
        split += common[..., None, None] * _mean_of_members(expected, self.member_weights)
        return xp.permute_dims(split, (0, 2, 1, 3))

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, k].

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D].
        """
        return class_moments(
            integrand, reference, self._means(), lambda part: probability_rows(self.contexts[part, ...])
        )

    def _means(self) -> Array:
        """[M, C]: the mean of the members at each context."""
        return _mean_of_members(probability_rows(self.contexts), self.member_weights)

    def member_outcomes(self) -> Array:
        """[N, C, K]: p(y | x, k)."""
        return namespace(self.candidates).permute_dims(probability_rows(self.candidates), (0, 2, 1))

    def take(self, candidates: slice, contexts: slice) -> CategoricalEnsemble:
        """A block of candidates and contexts."""
        return replaced(self, candidates=self.candidates[candidates, ...], contexts=self.contexts[contexts, ...])

    def as_votes(self) -> VoteEnsemble:
        """The same belief as votes, where every member puts all its mass on one class.

        Returns:
            The votes.

        Raises:
            StakesError: If a member holds other probabilities than 0 and 1.
        """
        xp = namespace(self.contexts)
        for name, array in (("candidates", self.candidates), ("contexts", self.contexts)):
            check_all(
                (array == 0) | (array == 1),
                f"votes need members that put all their mass on one class; {name} hold other probabilities",
            )
        return VoteEnsemble(
            xp.argmax(self.candidates, axis=2), xp.argmax(self.contexts, axis=2), self.n_classes, self.member_weights
        )


@dataclass(frozen=True, eq=False)
class VoteEnsemble:
    """Members that put all their mass on one class, such as fully grown trees: class numbers, not probabilities.

    Args:
        candidates: [N, K], whole numbers below `n_classes`: rows first, then members.
        contexts: [M, K], members in the same order.
        n_classes: How many classes there are.
        member_weights: [K], normalised; without them members count alike.

    Raises:
        TypeError: If `n_classes` is not a whole number, 1 or more.
        StakesError: If shapes disagree or a vote is no class.

    Examples:
        Three trees; two vote for class 1 at the context:

        >>> from stakes import VoteEnsemble, ZeroOne, score, uncertainty
        >>> belief = VoteEnsemble(candidates=[[0, 1, 1], [1, 1, 1]], contexts=[[0, 1, 1]], n_classes=2)
        >>> print(uncertainty(ZeroOne(), belief).round(4))
        [0.3333]
        >>> print(score(ZeroOne(), belief).round(4))  # the first label tells which tree is right, the second nothing
        [0.3333 0.    ]
    """

    candidates: Array
    contexts: Array
    n_classes: int
    member_weights: Array = None

    def __post_init__(self) -> None:
        if not isinstance(self.n_classes, int) or self.n_classes < 1:
            raise TypeError(f"n_classes must be a whole number, 1 or more; got {self.n_classes!r}")
        candidates, contexts, weights = _whole_numbers(self.candidates, self.contexts, self.member_weights)
        check_shape("candidates", candidates, ("N", "K"))
        check_rows_first({"candidates": candidates, "contexts": contexts}, weights)
        _check_members("contexts", contexts, ("M", candidates.shape[1]))
        for name, votes in (("candidates", candidates), ("contexts", contexts)):
            check_labels(f"every vote of {name}", votes, self.n_classes)
        xp = namespace(contexts)
        small = xp.uint8 if self.n_classes <= 256 else xp.int32
        object.__setattr__(self, "member_weights", normalised_member_weights(weights, contexts))
        object.__setattr__(self, "_members_alike", weights is None)
        object.__setattr__(self, "candidates", xp.astype(candidates, small, copy=False))
        object.__setattr__(self, "contexts", xp.astype(contexts, small, copy=False))

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.candidates.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.contexts.shape[0])

    @property
    def domain(self) -> Classes:
        """The classes that are voted on."""
        return Classes(self.n_classes)

    @property
    def like(self) -> Array:
        """The member weights: votes themselves are whole numbers."""
        return self.member_weights

    def n_cells(self, integrand: Integrand) -> int:
        """C, the classes of the label."""
        return self.n_classes

    def reference(self, integrand: Integrand) -> Reference:
        """The re-weighted shares p_w(z | c) of votes, and the scale of their statistics."""
        return class_reference(integrand, self._means())

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: the mean over members of `member_moments`, from the shares of votes alone."""
        means = self._means()
        return class_moments(integrand, reference, means, lambda part: means[part, None, :])[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, C, D]: the split moments of the probabilities 0 and 1."""
        return self.as_probabilities().split_moments(integrand, reference)

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """What each member expects of the statistics of each context.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D]: the statistics of the class that the member votes for.
        """
        return class_moments(integrand, reference, self._means(), lambda part: self._votes(self.contexts[part, :]))

    def _means(self) -> Array:
        """[M, C]: the share of votes for each class."""
        xp, weights = namespace(self.contexts), double(self.member_weights)
        each = [xp.matmul(xp.astype(self.contexts == c, weights.dtype), weights) for c in range(self.n_classes)]
        return xp.stack(each, axis=1)

    def _votes(self, side: Array) -> Array:
        """[.., K, C]: 1 for the class that the member votes for."""
        return labels_to_indicators(double(side), self.n_classes)

    def member_outcomes(self) -> Array:
        """[N, C, K]: 1 for the class that the member votes for."""
        xp = namespace(self.candidates)
        each = labels_to_indicators(xp.astype(self.candidates, self.member_weights.dtype), self.n_classes)
        return xp.permute_dims(each, (0, 2, 1))

    def take(self, candidates: slice, contexts: slice) -> VoteEnsemble:
        """A block of candidates and contexts."""
        return replaced(self, candidates=self.candidates[candidates, :], contexts=self.contexts[contexts, :])

    def as_probabilities(self) -> CategoricalEnsemble:
        """The same belief with probabilities 0 and 1 written out."""
        dtype = self.member_weights.dtype
        xp = namespace(self.contexts)
        candidates, contexts = (
            labels_to_indicators(xp.astype(votes, dtype), self.n_classes) for votes in (self.candidates, self.contexts)
        )
        return CategoricalEnsemble(candidates, contexts, self.member_weights)


def check_rows_first(sides: dict[str, Array], weights: Array | None) -> None:
    """Refuse what members say of candidates and contexts with the members first, where the sizes tell.

    Rows come first, [N, K, ...] and [M, K, ...]: K is the second size of both, not the first, and that of the weights.
    """
    (one, first), (other, second) = sides.items()
    if first.ndim != second.ndim or first.ndim < 2:
        return
    if 1 < first.shape[0] == second.shape[1] and first.shape[1] not in second.shape[:2]:
        line = f"{one}.T" if first.ndim == 2 else f"np.swapaxes({one}, 0, 1)"
        raise StakesError(
            f"{one} must have shape [N, {second.shape[1]}, ..] for {other} of shape {list(second.shape)}; got "
            f"{list(first.shape)}. Its axes are swapped, by their sizes: give {line}."
        )
    if first.shape[0] != second.shape[0]:
        return
    count, members = first.shape[0], {first.shape[1], second.shape[1]}
    by_weights = weights is not None and weights.ndim == 1 and weights.shape[0] == count and members != {count}
    if len(members) > 1 or by_weights:
        wanted = ", ".join(map(str, ("M", first.shape[1], *second.shape[2:])))
        wrong = f"{other} must have shape [{wanted}]; got {list(second.shape)}"
        if by_weights and len(members) == 1:
            wrong = f"member_weights must have shape [{first.shape[1]}]; got [{count}]"
        lines = [f"{name}.T" if first.ndim == 2 else f"np.swapaxes({name}, 0, 1)" for name in (one, other)]
        raise StakesError(
            f"{wrong}. Rows come first and members second; if the {count} on the first axis of both are the members, "
            f"give {lines[0]} and {lines[1]}."
        )


def probability_rows(side: Array) -> Array:
    """[n, K, C]: in double precision, where rows sum to one again: in what they were rounded to they do not."""
    rows = double(side)
    return rows / namespace(rows).sum(rows, axis=-1, keepdims=True)


def are_members_alike(belief: Any) -> bool:
    """Whether no weights were given: what is known without a look at an array, which may be on a device."""
    return bool(getattr(belief, "_members_alike", False))


def member_shares(weights: Array) -> Array:
    """[K]: in double precision, where they sum to one again."""
    weights = double(weights)
    return weights / namespace(weights).sum(weights)


def _mean_of_members(values: Array, weights: Array) -> Array:
    """[M, D]: sum_k q_k values[:, k, :], and 0 where that is all that rounding leaves."""
    xp, weights = namespace(values), member_shares(weights)
    return _beyond_rounding(xp.matmul(weights, values), xp.matmul(weights, abs(values)))


def _beyond_rounding(values: Array, sizes: Array) -> Array:
    """Sums of terms of these sizes, and 0 where that is all that rounding leaves: there members agree."""
    xp = namespace(values)
    return xp.where(abs(values) > _ROUNDING * sizes, values, xp.zeros_like(values))


def class_reference(integrand: Integrand, means: Array) -> Reference:
    """The point p_w(z | c) [M, C] for means [M, C], and the log of the mean size of S(z) about it.

    From logarithms of weights, which may have any scale; their differences are exact.
    """
    xp = namespace(means)
    log_weights = integrand.log_magnitudes(constant(np.eye(means.shape[1]), means))[..., 0]  # [C]
    logs = xp.where(means > 0, log_weights, xp.full_like(means, -xp.inf))
    top = xp.max(logs, axis=1, keepdims=True)
    known = top > -xp.inf  # a class that counts is possible
    heavy = xp.where(known, means * xp.exp(logs - xp.where(known, top, xp.zeros_like(top))), means)
    point = heavy / xp.sum(heavy, axis=1, keepdims=True)
    sizes = [
        xp.sum(means[part, :] * xp.max(abs(table), axis=2), axis=1)
        for part, table in _tables(integrand, point, means, filled(means.shape[0], 0.0, means))
    ]
    size = xp.concat(sizes)
    return Reference(point, finite_or_zero(log_of(size)) + _log_weight(point, integrand))


def _log_weight(point: Array, integrand: Integrand) -> Array:
    """[M]: by how much statistics about the point are scaled, as a logarithm."""
    return finite_or_zero(integrand.log_magnitudes(point)[..., 0])


def class_moments(integrand: Integrand, reference: Reference, means: Array, members: Callable[[slice], Array]) -> Array:
    """[M, K, D]: E[S(z) | c, k] over the scale of the reference, from the members [m, K, C] of a part of contexts."""
    xp, log_scale = namespace(means), double(reference.log_scale)
    if reference.point is not None:
        log_scale = log_scale - _log_weight(reference.point, integrand)  # by which statistics are divided already
    found = []
    for part, table in _tables(integrand, reference.point, means, log_scale):
        sizes = xp.matmul(means[part, None, :], abs(table))  # [m, 1, D]
        found.append(_beyond_rounding(xp.matmul(members(part), table), sizes))
    return xp.concat(found, axis=0)


def _tables(integrand: Integrand, point: Array | None, means: Array, log_scale: Array) -> Iterator[tuple[slice, Array]]:
    """Contexts in parts: which, and the statistics [m, C, D] of each class about the point, over exp(log_scale).

    0 for a class that cannot be: its statistics may be infinite.
    """
    xp, classes = namespace(means), means.shape[1]
    each = constant(np.eye(classes), means)[None, ...]  # [1, C, C]
    for part in slices(means.shape[0], max(1, _NUMBERS // (classes * (classes + 1)))):
        table = integrand.statistics(each, None if point is None else point[part, None, :])  # [1 or m, C, D]
        half = xp.exp(-log_scale[part] / 2.0)[:, None, None]  # applied twice: the scale alone may be out of range
        possible = means[part, :, None] > 0
        yield part, xp.where(possible, table, xp.zeros_like(table)) * half * half


def normalised_member_weights(weights: Array | None, like: Array) -> Array:
    """[K]: member weights that sum to one, checked; 1/K each where none are given."""
    xp = namespace(like)
    count = like.shape[1]
    if count == 0:
        raise StakesError("an ensemble needs at least one member; got none")
    if weights is None:
        alike = filled(count, 1.0 / count, like)
        return xp.astype(alike, single(like[:0, ...]).dtype) if xp.isdtype(like.dtype, "real floating") else alike
    check_shape("member_weights", weights, (count,))
    return shares("member_weights", single(weights))


def _probabilities(candidates: Any, contexts: Any, weights: Any) -> tuple[Array, Array, Array | None, Array]:
    """Both sides, in one precision but for those in half precision, which stay; and an empty array in that."""
    sides = {"candidates": candidates, "contexts": contexts}
    half = {name: detached(side) for name, side in sides.items() if _is_half(side)}
    empty = {name: single(side[:0, ...]) for name, side in half.items()}  # in their place
    found = asarrays(**{**sides, **empty}, member_weights=weights)
    kept = [half.get(name, side) for name, side in zip(sides, found, strict=False)]
    return kept[0], kept[1], found[2], found[0][:0, ...]


def _is_half(side: Any) -> bool:
    xp = namespace(side) if is_array_api_obj(side) and side.ndim else None
    return xp is not None and xp.isdtype(side.dtype, "real floating") and xp.finfo(side.dtype).bits < 32


def _whole_numbers(candidates: Any, contexts: Any, weights: Any) -> tuple[Array, Array, Array | None]:
    """Votes as they are where both are arrays of whole numbers, however large; else as checked floating numbers."""
    votes = (candidates, contexts)
    if not all(is_array_api_obj(each) and namespace(each).isdtype(each.dtype, "integral") for each in votes):
        return asarrays(candidates=candidates, contexts=contexts, member_weights=weights)
    _, weights = asarrays(like=contexts[:0, ...], member_weights=weights)
    return candidates, contexts, weights


def _check_members(name: str, array: Any, shape: tuple[int | str, ...]) -> None:
    check_shape(name, array, shape)
    if array.shape[0] == 0:
        raise StakesError(f"{name} must hold at least one context: the loss is averaged over them; got none")
