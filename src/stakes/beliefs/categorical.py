"""Ensembles of classifiers: forests, deep ensembles, dropout, posterior draws.

Given the member, y and z are independent, so that the split moments are one matrix product over members:
J[n, m, y, :] = sum_k q_k p(y | x_n, k) E[S(z) | c_m, k].
Sizes: N candidates, M contexts, K members, C classes, D statistics.
"""

from __future__ import annotations

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
    filled,
    namespace,
    replaced,
    shares,
    single,
)
from stakes.beliefs.base import Integrand, Reference
from stakes.exceptions import StakesError
from stakes.losses.domains import Classes, check_labels, check_probabilities, labels_to_indicators


@dataclass(frozen=True, eq=False)
class CategoricalEnsemble:
    """Class probabilities of K members for N candidates and M contexts.

    Probabilities may be kept in half precision; all that is computed from them is in single precision at least.

    Args:
        candidates: [N, K, C], of the labels.
        contexts: [M, K, C], of the targets, members in the same order.
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
        _check_members("contexts", contexts, ("M", *candidates.shape[1:]))
        check_probabilities("candidates", candidates)
        check_probabilities("contexts", contexts)
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "contexts", contexts)
        object.__setattr__(self, "member_weights", normalised_member_weights(weights, like))

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
        """No point: classes are where they are."""
        return Reference(None, filled(self.n_contexts, 0.0, self.like))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_z p(z | c) S(z)."""
        weighted = self.member_weights[:, None] * self._wide(self.contexts)
        probabilities = namespace(self.contexts).sum(weighted, axis=1)  # [M, C]
        return _mean_of(_statistics(integrand, reference, self.n_classes, self.like), probabilities)

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[N, M, C, D]: one matrix product [N C, K] x [K, M D]."""
        xp = namespace(self.contexts)
        weighted = self.member_weights[:, None] * self._wide(self.candidates)  # [N, K, C]
        split = xp.tensordot(weighted, self.member_moments(integrand, reference), axes=([1], [1]))  # [N, C, M, D]
        return xp.permute_dims(split, (0, 2, 1, 3))

    def member_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c, k].

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, K, D].
        """
        table = _statistics(integrand, reference, self.n_classes, self.like)
        return namespace(self.contexts).matmul(self._wide(self.contexts), table)

    def member_outcomes(self) -> Array:
        """[N, C, K]: p(y | x, k)."""
        return namespace(self.candidates).permute_dims(self._wide(self.candidates), (0, 2, 1))

    def _wide(self, side: Array) -> Array:
        """Probabilities in the precision of the weights."""
        return namespace(side).astype(side, self.member_weights.dtype, copy=False)

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
        candidates: [N, K], whole numbers below `n_classes`.
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
        _check_members("contexts", contexts, ("M", candidates.shape[1]))
        for name, votes in (("candidates", candidates), ("contexts", contexts)):
            check_labels(f"every vote of {name}", votes, self.n_classes)
        xp = namespace(contexts)
        small = xp.uint8 if self.n_classes <= 256 else xp.int32
        object.__setattr__(self, "member_weights", normalised_member_weights(weights, contexts))
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
        """No point: classes are where they are."""
        return Reference(None, filled(self.n_contexts, 0.0, self.like))

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """[M, D]: sum_z p(z | c) S(z)."""
        xp, weights = namespace(self.contexts), self.member_weights
        shares = [xp.matmul(xp.astype(self.contexts == c, weights.dtype), weights) for c in range(self.n_classes)]
        table = _statistics(integrand, reference, self.n_classes, weights)
        return _mean_of(table, xp.stack(shares, axis=1))

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
        xp, weights = namespace(self.contexts), self.member_weights
        table = _statistics(integrand, reference, self.n_classes, weights)  # [1 or M, C, D]
        each = labels_to_indicators(xp.astype(self.contexts, weights.dtype), self.n_classes)  # [M, K, C]
        return xp.matmul(each, table)

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


def _statistics(integrand: Integrand, reference: Reference, classes: int, like: Array) -> Array:
    """[1 or M, C, D]: the statistics of each class (of each context where they differ)."""
    return integrand.statistics(constant(np.eye(classes), like)[None, ...], reference.point)


def _mean_of(table: Array, probabilities: Array) -> Array:
    """[M, D]: sum_z p(z | c) S(z) for probabilities [M, C]; S may be infinite for a class that cannot be."""
    xp = namespace(probabilities)
    possible = probabilities[..., None] > 0
    return xp.sum(probabilities[..., None] * xp.where(possible, table, xp.zeros_like(table)), axis=1)


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
