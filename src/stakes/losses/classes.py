"""Losses for class probabilities: proper scoring rules, the class z as its indicator T(z) = e_z.

A strictly proper scoring rule is, up to a term in z alone, S(q, z) = D_phi(e_z, q) with phi convex on the simplex (the
paper's appendix B). So each is a weighted Bregman loss whose act is the re-weighted probability vector
p_w(z) = w(z) p(z) / E[w]. Targets are labels 0 .. C-1, predictions probabilities [..., C].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stakes.losses.bregman import WeightedBregman
from stakes.losses.domains import NONNEGATIVE, REAL, Classes
from stakes.losses.potentials import ConvexFunction, NegativeEntropy, Norm, PotentialLike, Square, as_potential
from stakes.losses.transforms import Indicator, TransformLike
from stakes.losses.weights import ClassWeights, WeightLike


@dataclass(frozen=True)
class ScoringRule(WeightedBregman):
    """l(z, q) = w(z) D_phi(e_z, q) for a convex potential phi on the simplex.

    Args:
        potential: phi, an object such as `Norm()`, or a convex function of probabilities [..., C] to [...].
        class_weights: w(z), a number for each class, at least 0; None where all count alike.

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
    class_weights: Sequence[float] | None = None
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
        class_weights: w(z), a number for each class, at least 0; None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import LogLoss
        >>> print(LogLoss()(1, [0.5, 0.5]).round(4))  # log 2
        0.6931
        >>> print(LogLoss(class_weights=[1.0, 5.0])(1, [0.5, 0.5]).round(4))  # 5 log 2
        3.4657
    """

    class_weights: Sequence[float] | None = None
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=NegativeEntropy(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


@dataclass(frozen=True)
class BrierLoss(WeightedBregman):
    """l(z, q) = w(z) |e_z - q|^2, the quadratic score (between 0 and 2 for each unit of weight).

    Args:
        class_weights: w(z), a number for each class, at least 0; None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import BrierLoss
        >>> print(BrierLoss()(0, [0.5, 0.25, 0.25]).round(6))  # 0.5^2 + 0.25^2 + 0.25^2
        0.375
    """

    class_weights: Sequence[float] | None = None
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=Square(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


@dataclass(frozen=True)
class SphericalLoss(WeightedBregman):
    """l(z, q) = w(z) (1 - q_z / |q|), the spherical score turned into a loss.

    Args:
        class_weights: w(z), a number for each class, at least 0; None where all count alike.

    Raises:
        StakesError: If the class weights are negative, not finite or all 0.

    Examples:
        >>> from stakes import SphericalLoss
        >>> print(SphericalLoss()(0, [0.5, 0.5]).round(4))  # 1 - 1 / sqrt 2
        0.2929
    """

    class_weights: Sequence[float] | None = None
    weight: WeightLike = field(init=False, repr=False)
    potential: PotentialLike = field(default=Norm(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _weigh_classes(self, self.class_weights)


def _weigh_classes(loss: WeightedBregman, class_weights: Sequence[float] | None) -> None:
    """Fill in the weight and the classes that `class_weights` imply."""
    weight = None if class_weights is None else ClassWeights(class_weights)
    count = None if weight is None else len(weight.weights)
    object.__setattr__(loss, "class_weights", None if weight is None else weight.weights)
    object.__setattr__(loss, "weight", weight)
    object.__setattr__(loss, "transform", Indicator(Classes(count)))
