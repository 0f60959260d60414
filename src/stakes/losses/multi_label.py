"""Several labels of one row at once, each there or not: the loss is the sum of what each label loses.

    l(z, a) = sum_l w_l l_l(z_l, a_l)       z in {0, 1}^L

The target is the set of labels that a row has, one of C = 2^L classes, so that one belief is about all of them and the
label of a row tells all of its labels. Sets are counted as numbers in binary, the first label being the highest digit:
none, c, b, b+c, a, a+c, a+b, a+b+c. Losses with finitely many actions become one `CostMatrix` over sets; proper scores
become a `MultiLabelScore`, whose statistics are those of all labels side by side.

Sizes: L labels, C = 2^L label sets, A actions of all labels together, D statistics, d coordinates of an action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np

from stakes._utils.array import Array, asarrays, constant, namespace
from stakes.exceptions import StakesError
from stakes.losses.actions import CostMatrix, ZeroOne
from stakes.losses.base import Loss
from stakes.losses.bregman import WeightedBregman
from stakes.losses.domains import Classes, check_labels, labels_to_indicators

MOST_LABELS = 6
"""Of one row: every label doubles the number of sets."""
NO_LABEL = "none"
"""The name of the set without a label."""
JOIN = "+"
"""Between the labels of a set."""


def label_sets(count: int) -> Any:
    """All sets of some labels, in the order in which losses and beliefs count them.

    Args:
        count: L.

    Returns:
        [2^L, L] of 0 and 1.

    Raises:
        StakesError: If there is no label, or more than 6.

    Examples:
        >>> label_sets(2).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    if not 1 <= count <= MOST_LABELS:
        raise StakesError(
            f"a row may have 1 to {MOST_LABELS} labels at once, since all their sets are looked at; got {count}. "
            "Labels that are bought for the sake of others only can be left out"
        )
    return np.asarray(list(product((0, 1), repeat=count)), dtype=np.intp)


def label_set_names(labels: Sequence[str]) -> tuple[str, ...]:
    """The names of all sets of some labels, in their order.

    Args:
        labels: L names.

    Returns:
        2^L names.

    Raises:
        StakesError: If names are empty, come twice, or hold a +.

    Examples:
        >>> label_set_names(["rain", "wind"])
        ('none', 'wind', 'rain', 'rain+wind')
    """
    names = [str(name) for name in labels]
    if bad := [name for name in names if not name.strip() or JOIN in name or name == NO_LABEL]:
        raise StakesError(f"a label needs a name without {JOIN!r} that is not {NO_LABEL!r}; got {bad[0]!r}")
    if len(set(names)) != len(names):
        raise StakesError(f"labels must have different names; got {names}")
    return tuple(
        JOIN.join(name for name, there in zip(names, each, strict=True) if there) or NO_LABEL
        for each in label_sets(len(names)).tolist()
    )


def multi_label(
    losses: Any, *, labels: int | Sequence[str] | None = None, weights: Sequence[float] | None = None
) -> CostMatrix | MultiLabelScore:
    """The loss of several labels at once: the sum of what each label loses.

    Args:
        losses: A loss for two classes (0: absent, 1: present) for each label: a mapping from names to losses, a list of
            losses, or one loss for all of `labels`. All have finitely many actions (`CostMatrix`, `ZeroOne`), or all
            are proper scores (`LogLoss`, `BrierLoss`, `SphericalLoss`, `ScoringRule`).
        labels: Names of the labels, or how many they are; those of a mapping without.
        weights: [L]: what each label counts, at least 0; alike without.

    Returns:
        A `CostMatrix` over label sets whose actions are named; or a `MultiLabelScore`, whose predictions are the
        probability of each label.

    Raises:
        StakesError: If numbers disagree, a loss is not about two classes, or kinds of losses are mixed.

    Examples:
        Missing a defect costs 5, a false alarm 1, and cracks count twice as much as stains:

        >>> from stakes import CostMatrix, LogLoss
        >>> from stakes.losses import multi_label
        >>> defect = CostMatrix([[0.0, 1.0], [5.0, 0.0]])
        >>> loss = multi_label(defect, labels=["crack", "stain"], weights=[2.0, 1.0])
        >>> print(loss(3, 0), loss.actions)  # both are there, and none is reported
        15.0 ('none', 'stain', 'crack', 'crack+stain')
        >>> print(multi_label(LogLoss(), labels=2)(3, [0.5, 0.5]).round(4))  # 2 log 2
        1.3863
    """
    parts, names = _parts(losses, labels)
    count = len(parts)
    shares = np.ones(count) if weights is None else np.asarray(weights, dtype=float)
    if shares.shape != (count,) or not np.isfinite(shares).all() or (shares < 0).any() or not shares.any():
        raise StakesError(f"weights must be {count} numbers, at least 0 and not all 0; got {weights!r}")
    if all(isinstance(each, CostMatrix | ZeroOne) for each in parts):
        return _cost_matrix(parts, shares, names)
    if all(isinstance(each, WeightedBregman) and isinstance(each.domain, Classes) for each in parts):
        return MultiLabelScore(tuple(parts), tuple(shares.tolist()), names)
    kinds = sorted({type(each).__name__ for each in parts})
    raise StakesError(
        f"the losses of labels must all be CostMatrix or ZeroOne, or all be scores of probabilities such as LogLoss or "
        f"BrierLoss; got {', '.join(kinds)}"
    )


def label_names(loss: Any) -> tuple[str, ...] | None:
    """The labels that a loss of `multi_label` is about, by the names that it was given.

    Args:
        loss: Any loss.

    Returns:
        L names; None for a loss of another kind, without names, or whose actions have names of their own.

    Examples:
        >>> from stakes import ZeroOne
        >>> from stakes.losses.multi_label import label_names, multi_label
        >>> label_names(multi_label({"crack": ZeroOne(), "stain": ZeroOne()}))
        ('crack', 'stain')
    """
    if isinstance(loss, MultiLabelScore):
        names = loss.labels
    elif isinstance(loss, CostMatrix) and loss.actions is not None:
        texts = [str(name) for name in loss.actions]
        names = tuple(name for name in reversed(texts) if name != NO_LABEL and JOIN not in name)
        if not 1 <= len(names) <= MOST_LABELS or tuple(texts) != label_set_names(names):
            return None
    else:
        return None
    return None if list(names) == _numbered(len(names)) else names


def _parts(losses: Any, labels: int | Sequence[str] | None) -> tuple[list[Any], tuple[str, ...]]:
    """The loss of each label, and its name."""
    if isinstance(losses, Mapping):
        if labels is not None and list(labels) != list(losses):  # type: ignore[arg-type]
            raise StakesError(f"losses have names already, {list(losses)}; got the labels {labels!r}")
        parts, names = list(losses.values()), list(losses)
    else:
        count = labels if isinstance(labels, int) else None if labels is None else len(labels)
        parts = list(losses) if isinstance(losses, list | tuple) else [losses] * (count or 0)
        if not parts or (count is not None and count != len(parts)):
            raise StakesError(f"a loss is needed for each label: give labels=, as many as losses; got {labels!r}")
        names = list(labels) if labels is not None and not isinstance(labels, int) else _numbered(len(parts))
    label_set_names(names)
    for name, each in zip(names, parts, strict=True):
        domain = getattr(each, "domain", None)
        if not isinstance(domain, Classes) or domain.count not in (None, 2):
            raise StakesError(f"the loss of label {name!r} must be about two classes, absent and present; got {domain}")
    return parts, tuple(str(name) for name in names)


def _numbered(count: int) -> list[str]:
    return [f"label {place + 1}" for place in range(count)]


def _cost_matrix(parts: Sequence[Any], weights: Any, names: tuple[str, ...]) -> CostMatrix:
    """[C, A]: for every set of labels, and every action for each of them."""
    tables = [np.asarray(each.costs) if isinstance(each, CostMatrix) else 1.0 - np.eye(2) for each in parts]
    acts = list(product(*(range(table.shape[1]) for table in tables)))
    costs = [
        [sum(w * t[z, a] for w, t, z, a in zip(weights, tables, there, act, strict=True)) for act in acts]
        for there in label_sets(len(parts)).tolist()
    ]
    if all(
        table.shape[1] == 2 and getattr(each, "actions", None) is None
        for table, each in zip(tables, parts, strict=True)
    ):
        return CostMatrix(costs, actions=label_set_names(names))
    called = [
        getattr(each, "actions", None) or range(table.shape[1]) for each, table in zip(parts, tables, strict=True)
    ]
    return CostMatrix(
        costs,
        actions=[
            ", ".join(f"{name}: {own[a]}" for name, own, a in zip(names, called, act, strict=True)) for act in acts
        ],
    )


@dataclass(frozen=True, eq=False)
class MultiLabelScore:
    """l(z, q) = sum_l w_l l_l(z_l, q_l): a proper score of the probability q_l of each label, summed.

    The target is a label set, counted as in `label_sets`; predictions are [..., L], the probability that each label is
    there. Made by `multi_label`.

    Args:
        losses: L proper scores for two classes.
        weights: L numbers.
        labels: L names.

    Examples:
        >>> from stakes import BrierLoss
        >>> from stakes.losses import multi_label
        >>> loss = multi_label({"crack": BrierLoss(), "stain": BrierLoss()})
        >>> print(loss(2, [0.5, 0.0]))  # a crack, and no stain: 0.5^2 + 0.5^2
        0.5
    """

    losses: tuple[Loss, ...]
    weights: tuple[float, ...]
    labels: tuple[str, ...]
    finite_actions: ClassVar[bool] = False
    breakpoints: ClassVar[tuple[float, ...]] = ()
    weight: ClassVar[None] = None

    @property
    def domain(self) -> Classes:
        """The label sets."""
        return Classes(2 ** len(self.losses))

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 1]: 0, nothing is taken out."""
        return namespace(z).zeros_like(z[..., :1])

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., D]: those of each label, side by side."""
        own = self._own(reference)
        found = [
            weight * self._weight_at(loss, here)[..., None] * loss.statistics(there, here)
            for loss, weight, there, here in zip(self.losses, self.weights, self._split(z), own, strict=True)
        ]
        return namespace(z).concat(found, axis=-1)

    def action(self, moments: Array) -> Array:
        """[..., d]: the act of each label."""
        parts = self._statistics_of(moments)
        return namespace(moments).concat(
            [loss.action(part) for loss, part in zip(self.losses, parts, strict=True)], axis=-1
        )

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: what all labels lose by an act beyond the best one."""
        parts, acts = self._statistics_of(moments), self._acts_of(action)
        found = [
            loss.regret(part, act, here)
            for loss, part, act, here in zip(self.losses, parts, acts, self._own(reference), strict=True)
        ]
        return sum(found[1:], found[0])

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: l(z, a)."""
        split, acts, own = self._split(z), self._acts_of(action), self._own(reference)
        found = [
            weight * self._weight_at(loss, here) * loss.pointwise(there, act, here)
            for loss, weight, there, act, here in zip(self.losses, self.weights, split, acts, own, strict=True)
        ]
        return sum(found[1:], found[0])

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """[..., L]: the probability of each label."""
        acts, own = self._acts_of(action), self._own(reference)
        found = [loss.prediction(act, here)[..., 1] for loss, act, here in zip(self.losses, acts, own, strict=True)]
        return namespace(action).stack(found, axis=-1)

    def __call__(self, z: Any, prediction: Any) -> Array:
        """[...]: the loss of probabilities [..., L] where the label set is z, by its number."""
        z, prediction = asarrays(z=z, prediction=prediction)
        count = len(self.losses)
        check_labels("the target", z, 2**count)
        if prediction.ndim == 0 or prediction.shape[-1] != count:
            raise StakesError(
                f"a prediction must be [..., {count}], the probability of each of {', '.join(self.labels)}; got "
                f"{list(prediction.shape)}"
            )
        xp = namespace(prediction)
        there = xp.matmul(labels_to_indicators(z, 2**count), constant(label_sets(count).astype(float), prediction))
        found = [
            weight * loss(there[..., place], xp.stack([1.0 - prediction[..., place], prediction[..., place]], axis=-1))
            for place, (loss, weight) in enumerate(zip(self.losses, self.weights, strict=True))
        ]
        return sum(found[1:], found[0])

    def _split(self, z: Array) -> list[Array]:
        """L of [..., 2]: indicators (or probabilities) of each label, of those of sets [..., C]."""
        present = namespace(z).matmul(z, constant(label_sets(len(self.losses)).astype(float), z))  # [..., L]
        total = namespace(z).sum(z, axis=-1)
        return [
            namespace(z).stack([total - present[..., place], present[..., place]], axis=-1)
            for place in range(len(self.losses))
        ]

    def _own(self, reference: Array | None) -> list[Array | None]:
        return [None] * len(self.losses) if reference is None else list(self._split(reference))

    def _weight_at(self, loss: Loss, reference: Array | None) -> Array:
        """[...]: what statistics about a reference are divided by, so that those of all labels have one scale."""
        if reference is None:
            return np.ones(())
        xp = namespace(reference)
        log = loss.log_magnitudes(reference)[..., 0]
        return xp.exp(xp.where(xp.isfinite(log), log, xp.zeros_like(log)))

    def _statistics_of(self, moments: Array) -> list[Array]:
        """L of [..., 3]: w and w T of two classes."""
        return [moments[..., 3 * place : 3 * place + 3] for place in range(len(self.losses))]

    def _acts_of(self, action: Array) -> list[Array]:
        """L of [..., 2]."""
        return [action[..., 2 * place : 2 * place + 2] for place in range(len(self.losses))]
