"""Losses for class probabilities: proper scoring rules, the class z as its indicator T(z) = e_z.

A strictly proper scoring rule is, up to a term in z alone, S(q, z) = D_phi(e_z, q) with phi convex on the simplex (the
paper's appendix B). So each is a weighted Bregman loss whose act is the re-weighted probability vector
p_w(z) = w(z) p(z) / E[w]. Targets are labels 0 .. C-1, predictions probabilities [..., C].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, TypeAlias, cast

from stakes._utils.tables import plain_label
from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.losses.actions import CostMatrix, distinct_names
from stakes.losses.base import AnyLoss
from stakes.losses.bregman import WeightedBregman
from stakes.losses.domains import NONNEGATIVE, REAL, Classes
from stakes.losses.potentials import ConvexFunction, NegativeEntropy, Norm, PotentialLike, Square, as_potential
from stakes.losses.transforms import Indicator, TransformLike
from stakes.losses.weights import ClassWeights, WeightLike

ClassWeightsLike: TypeAlias = Sequence[float] | Mapping[Any, float] | None
"""A number for each class, in the order of the model's classes or by name; None where all count alike."""


@dataclass(frozen=True)
class ScoringRule(WeightedBregman):
    """l(z, q) = w(z) D_phi(e_z, q) for a convex potential phi on the simplex.

    Args:
        potential: phi, an object such as `Norm()`, or a convex function of probabilities [..., C] to [...].
        class_weights: w(z), a number for each class, at least 0, in the order of the model's classes; or by name, such
            as {"good": 1, "bad": 5} (see `align_classes`). None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import ScoringRule
        >>> from stakes.losses import Square
        >>> rule = ScoringRule(Square())  # the Brier score
        >>> print(rule(1, [0.25, 0.75]).round(6))  # 0.25^2 + 0.25^2
        0.125
    """

    potential: PotentialLike
    class_weights: ClassWeightsLike = None
    classes: Sequence[Any] | None = field(default=None, init=False, repr=False)
    weight: WeightLike = field(init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        potential = as_potential(self.potential)
        if isinstance(potential, ConvexFunction) and potential.domain == REAL:
            potential = replace(potential, domain=NONNEGATIVE)  # it is asked for probabilities only
        object.__setattr__(self, "potential", potential)
        _weigh_classes(self, self.class_weights)


@dataclass(frozen=True)
class LogLoss(WeightedBregman):
    """l(z, q) = -w(z) log q_z: the negative log likelihood. Its objective is EPIG, and weighted EPIG with weights.

    Args:
        class_weights: w(z), a number for each class, at least 0, in the order of the model's classes; or by name, such
            as {"good": 1, "bad": 5} (see `align_classes`). None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import LogLoss
        >>> print(LogLoss()(1, [0.5, 0.5]).round(4))  # log 2
        0.6931
        >>> print(LogLoss(class_weights=[1.0, 5.0])(1, [0.5, 0.5]).round(4))  # 5 log 2
        3.4657
    """

    class_weights: ClassWeightsLike = None
    classes: Sequence[Any] | None = field(default=None, init=False, repr=False)
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=NegativeEntropy(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


@dataclass(frozen=True)
class BrierLoss(WeightedBregman):
    """l(z, q) = w(z) |e_z - q|^2, the quadratic score (between 0 and 2 for each unit of weight).

    Args:
        class_weights: w(z), a number for each class, at least 0, in the order of the model's classes; or by name, such
            as {"good": 1, "bad": 5} (see `align_classes`). None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import BrierLoss
        >>> print(BrierLoss()(0, [0.5, 0.25, 0.25]).round(6))  # 0.5^2 + 0.25^2 + 0.25^2
        0.375
    """

    class_weights: ClassWeightsLike = None
    classes: Sequence[Any] | None = field(default=None, init=False, repr=False)
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=Square(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


@dataclass(frozen=True)
class SphericalLoss(WeightedBregman):
    """l(z, q) = w(z) (1 - q_z / |q|), the spherical score turned into a loss.

    Args:
        class_weights: w(z), a number for each class, at least 0, in the order of the model's classes; or by name, such
            as {"good": 1, "bad": 5} (see `align_classes`). None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import SphericalLoss
        >>> print(SphericalLoss()(0, [0.5, 0.5]).round(4))  # 1 - 1 / sqrt 2
        0.2929
    """

    class_weights: ClassWeightsLike = None
    classes: Sequence[Any] | None = field(default=None, init=False, repr=False)
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=Norm(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


def _weigh_classes(loss: WeightedBregman, class_weights: ClassWeightsLike) -> None:
    """Fill in the weight, the classes that `class_weights` imply, and their names where they have any."""
    names = None
    if isinstance(class_weights, Mapping) or hasattr(class_weights, "items"):
        names, class_weights = _by_name(cast("Mapping[Any, float]", class_weights))
    weight = None if class_weights is None else ClassWeights(class_weights)
    count = None if weight is None else len(weight.weights)
    object.__setattr__(loss, "class_weights", None if weight is None else weight.weights)
    object.__setattr__(loss, "classes", None if count is None else distinct_names("class weights", names, count))
    object.__setattr__(loss, "weight", weight)
    object.__setattr__(loss, "transform", Indicator(Classes(count)))


def _by_name(weights: Mapping[Any, float]) -> tuple[list[Any], list[float]]:
    names, values = [], []
    for name, value in weights.items():
        names.append(name)
        values.append(float(value))
    return names, values


def align_classes(loss: AnyLoss, classes: Sequence[Any] | None) -> AnyLoss:
    """The same loss with its classes in the order of a model's, matched by name.

    `rank`, `outlook`, `audit` and `simulate` do this. A loss without names is about classes by position and comes back
    as it is.

    Args:
        loss: A loss; one with names has them in `classes`.
        classes: All classes of the model, in the order of its columns; None where they have no names.

    Returns:
        The loss, its rows (and the columns of a cost matrix whose actions are the classes) in that order.

    Raises:
        StakesError: If the names are not the classes, each of them once, or the model has none.

    Examples:
        >>> from stakes import CostMatrix
        >>> from stakes.losses import align_classes
        >>> loss = CostMatrix({"good": {"good": 0, "bad": 1}, "bad": {"good": 5, "bad": 0}})
        >>> align_classes(loss, ["bad", "good"]).costs.tolist()
        [[0.0, 5.0], [1.0, 0.0]]
    """
    names = getattr(loss, "classes", None)
    if names is None or not isinstance(loss.domain, Classes):
        return loss
    if classes is None:
        raise StakesError(
            f"the loss goes by the names of classes, {_names(names)}, and the model knows none: give classes=[...], "
            "the names of the columns of its predictions in their order"
        )
    wanted = [plain_label(name) for name in classes]
    if set(wanted) != set(names) or len(wanted) != len(names):
        raise StakesError(_mismatch(names, wanted))
    if tuple(wanted) == tuple(names):
        return loss
    place = {name: position for position, name in enumerate(names)}
    return _reordered(loss, wanted, [place[name] for name in wanted])


def _reordered(loss: Any, wanted: list[Any], order: list[int]) -> AnyLoss:
    if isinstance(loss, CostMatrix):
        costs, actions = loss.costs[order], loss.actions
        if actions is not None and set(actions) == set(wanted):
            costs, actions = costs[:, [actions.index(name) for name in wanted]], wanted
        return replace(loss, costs=costs, classes=wanted, actions=actions)
    if is_dataclass(loss) and not isinstance(loss, type) and getattr(loss, "class_weights", None) is not None:
        return cast("AnyLoss", replace(loss, class_weights=dict(zip(wanted, _taken(loss, order), strict=True))))
    raise StakesError(
        f"{type(loss).__name__} has the classes {_names(loss.classes)}, and the model {_names(wanted)}: give "
        f"classes={list(loss.classes)!r:.200}, so that they come in the order of the loss"
    )


def _taken(loss: Any, order: list[int]) -> list[float]:
    return [loss.class_weights[position] for position in order]


def _mismatch(names: Sequence[Any], wanted: Sequence[Any]) -> str:
    """What the names of a loss should have been, and how to mend them."""
    lacking = [name for name in wanted if name not in set(names)]
    unknown = [name for name in names if name not in set(wanted)]
    parts = [f"it lacks {_names(lacking)}"] if lacking else []
    parts += [f"{_names(unknown)} {'is' if len(unknown) == 1 else 'are'} no class of the model"] if unknown else []
    near = did_you_mean(str(unknown[0]), map(str, lacking)) if unknown and lacking else ""
    advice = " Where no label has had a class yet, give classes=[...], all of them." if unknown and not lacking else ""
    if set(names) == set(range(len(names))):
        advice = " If these are positions, give an array without names (costs.to_numpy()), in the order of the classes."
    return f"the loss must name the classes {_names(wanted)}; {' and '.join(parts)}.{near}{advice}"


def _names(names: Sequence[Any]) -> str:
    return listed(map(repr, names))
