"""Losses for vector targets: several numbers that are answered together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stakes.losses.bregman import WeightedBregman
from stakes.losses.potentials import PotentialLike, Quadratic
from stakes.losses.transforms import TransformLike, VectorIdentity
from stakes.losses.vector_weights import as_vector_weight
from stakes.losses.weights import WeightLike, as_weight


@dataclass(frozen=True, eq=False)
class Mahalanobis(WeightedBregman):
    """l(z, b) = w(z) (z - b)' A (z - b) on vectors of d numbers; answer E_w[z].

    `matrix` A [d, d] is symmetric and positive semi-definite: its diagonal prices the error of each output, the rest
    what errors cost together; a direction of price 0 does not matter. The identity is the sum of squared errors. Its
    objective is the expected reduction of tr(A Cov_w[z]), weighed by E[w]. Targets and answers have shape [..., d]; a
    weight is ExponentialLinearWeight(rates), or a function of targets [..., d] that gives [...].
    """

    matrix: Any
    """[d, d]"""
    weight: WeightLike = None
    potential: PotentialLike = field(init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        potential = Quadratic(self.matrix)
        count = int(potential.matrix.shape[0])
        object.__setattr__(self, "matrix", potential.matrix)
        object.__setattr__(self, "potential", potential)
        object.__setattr__(self, "transform", VectorIdentity(count))
        object.__setattr__(self, "weight", as_vector_weight(as_weight(self.weight), count))
