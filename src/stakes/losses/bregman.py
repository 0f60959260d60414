"""Weighted Bregman losses l(z, a) = w(z) D_phi(T(z), a): your own, and those for numbers and vectors by name.

The paper's Theorem 1: the Bayes act is `a* = E[w T] / E[w]`, so the statistics are `S(z) = w(z) (1, T(z))`, and the
regret of keeping `a` under a belief with moments E[S] is `E[w] D_phi(a*, a)`. Sizes: d coordinates of T, D = 1 + d.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stakes._utils.array import Array, asarrays, linex, namespace, ratio, replaced
from stakes.exceptions import StakesError
from stakes.losses.domains import NONNEGATIVE, POSITIVE, REAL, Classes, Domain, Vectors, indicators, target_axes
from stakes.losses.potentials import NegativeEntropy, NegativeLog, PotentialLike, Quadratic, Square, as_potential
from stakes.losses.transforms import (
    Chart,
    Exponential,
    Identity,
    Indicator,
    NearExponential,
    Power,
    TransformLike,
    VectorIdentity,
    as_transform,
    checked_rate,
)
from stakes.losses.weights import WeightFunction, WeightLike, as_vector_weight, as_weight

_NEGLIGIBLE = 1e-12  # of a total mass of order one


class WeightedBregman:
    """The methods that all weighted Bregman losses share; a loss sets its potential, transform and weight.

    Attributes:
        potential: The convex function phi.
        transform: The map T from targets to points [..., d].
        weight: The weight w(z), or None for 1.

    Examples:
        >>> from stakes import SquaredError
        >>> from stakes.losses import WeightedBregman
        >>> isinstance(SquaredError(), WeightedBregman)
        True
    """

    potential: PotentialLike
    transform: TransformLike
    weight: WeightLike
    finite_actions = False
    """Acts vary continuously with the belief."""

    @property
    def domain(self) -> Domain:
        """Where T is defined."""
        return as_transform(self.transform).domain

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """The breakpoints of the weight."""
        return () if self._weight is None else self._weight.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        """[..., t]: log w(z), and log w(z) |T(z)| where T spans many orders of magnitude."""
        xp = namespace(z)
        each = z[..., 0] if target_axes(self.domain) else z
        log_weight = xp.zeros_like(each) if self._weight is None else self._weight.logarithm(z)
        log_size = as_transform(self.transform).log_size(z)
        return xp.stack([log_weight] if log_size is None else [log_weight, log_weight + log_size], axis=-1)

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., 1 + d]: w(z) (1, T(z)), with w over w(reference) and T from its value there."""
        xp = namespace(z)
        t = self.chart(reference).coordinate(z)  # [..., d]
        one = xp.ones_like(t[..., :1])
        points = xp.concat([one, t], axis=-1)  # [..., 1 + d]
        return points if self._weight is None else self.relative_weight(z, reference)[..., None] * points

    def action(self, moments: Array) -> Array:
        """[..., d]: E[w T] / E[w]."""
        return ratio(moments[..., 1:], moments[..., :1])

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: E[w] D_phi(E[w T] / E[w], action); nothing where E[w] is so small that E[w T] may have underflowed."""
        xp = namespace(moments, action)
        mass, tiny = moments[..., :1], xp.finfo(moments.dtype).smallest_normal
        best = xp.where(mass > tiny**0.5, self.action(moments), action)
        potential, origin = as_potential(self.potential), self.chart(reference).origin
        if potential.scale_free and isinstance(
            origin, float
        ):  # a T that underflowed is tiny: infinite where it matters
            best = xp.where((best <= 0) & (mass < _NEGLIGIBLE), tiny * xp.ones_like(best), best)
        return mass[..., 0] * potential.divergence(best, action, origin)

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: w(z) D_phi(T(z), action): the regret under certainty, since D_phi(T, T) = 0."""
        return self.regret(self.statistics(z, reference), action, reference)

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """T^-1(action), the paper's pull-back act b*; for classes the probabilities themselves."""
        return self.chart(reference).target(action)

    def __call__(self, z: Array, prediction: Array) -> Array:
        """[...]: w(z) D_phi(T(z), T(prediction)) in target units; labels and probabilities [..., C] for classes.

        Vectors and predictions of them have shape [..., d].
        """
        if isinstance(self.domain, Classes):
            z, prediction = indicators(self.domain, z, prediction)
        else:
            z, prediction = asarrays(z=z, prediction=prediction)
            self.domain.check("the target", z)
            self.domain.check("the prediction", prediction)
        z, prediction = namespace(z).broadcast_arrays(z, prediction)
        loss = self._between(z, prediction)
        if self._weight is None:
            return loss
        weight, zero = self._weight(z), namespace(z).zeros_like(loss)
        return namespace(z).where(loss == 0, zero, weight) * namespace(z).where(weight == 0, zero, loss)

    def _between(self, z: Array, prediction: Array) -> Array:
        """[...]: D_phi(T(z), T(prediction)), from the origin where T is the target: far misses lose no digits."""
        chart = self.chart(None if isinstance(self.transform, Identity | Indicator) else prediction)
        points = chart.coordinate(z), chart.coordinate(prediction)
        return as_potential(self.potential).divergence(*points, chart.origin)

    def chart(self, reference: Array | None) -> Chart:
        """The coordinates of T in which actions are written.

        Args:
            reference: A target from which T is measured, or None for the origin.

        Returns:
            The chart of the transform about `reference`.
        """
        return as_transform(self.transform).chart(reference, as_potential(self.potential).scale_free)

    @property
    def _weight(self) -> WeightFunction | None:
        return as_weight(self.weight)

    def relative_weight(self, z: Array, reference: Array | None) -> Array:
        """[...]: the weight over that at the reference, or as it is.

        Args:
            z: Targets.
            reference: A target that broadcasts with them, or None.

        Returns:
            [...], or 1 without a weight.
        """
        weight = self._weight
        if weight is None:
            return 1.0
        if reference is None:
            return weight(z)
        xp = namespace(z)
        scale = weight.logarithm(reference)
        return xp.exp(weight.logarithm(z) - xp.where(xp.isfinite(scale), scale, xp.zeros_like(scale)))


@dataclass(frozen=True, eq=False)
class LogDomainLoss:
    """A loss with phi = -log and a positive T by the logarithms of its moments, log E[w] and log E[w T].

    The mass of w and that of w T may lie dozens of standard deviations apart, where the other is out of the range of
    numbers; the regret E[w] (r - log r - 1), with r = E[w T] / (E[w] a), asks for both everywhere. Actions are
    log(a / T(reference)) [..., 1], and moments are logarithms [..., 2].
    """

    loss: WeightedBregman
    finite_actions: bool = False
    width: float = 1.0
    """Of panels and spacings, over the usual: below 1 for a second rule"""

    @property
    def domain(self) -> Domain:
        """That of the loss."""
        return self.loss.domain

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Those of the loss."""
        return self.loss.breakpoints

    def log_magnitudes(self, z: Array) -> Array:
        """[..., 2]: those of the loss."""
        return self.loss.log_magnitudes(z)

    @property
    def weighted(self) -> bool:
        """Whether there is a weight."""
        return self.loss.weight is not None

    def log_statistics(self, z: Array, reference: Array) -> tuple[Array, Array]:
        """[...] each: log w(z), and log w(z) T(z) / T(reference)."""
        xp, weight, log_t = namespace(z), as_weight(self.loss.weight), self.log_ratio(z, reference)
        if weight is None:
            return xp.zeros_like(log_t), log_t
        log_w = weight.logarithm(z)
        return log_w, log_w + log_t

    def action(self, log_moments: Array) -> Array:
        """[..., 1]: log E[w T] - log E[w]; 0 where there is no mass."""
        xp, mass = namespace(log_moments), log_moments[..., :1]
        some = mass > -xp.inf
        top, base = (xp.where(some, each, xp.zeros_like(mass)) for each in (log_moments[..., 1:], mass))
        return top - base

    def regret(self, log_moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: E[w] (r - log r - 1), where both E[w] and E[w] r are in range though r may not be."""
        xp, log_mass = namespace(log_moments), log_moments[..., 0]
        some = log_mass > -xp.inf
        log_r = xp.where(some, (self.action(log_moments) - action)[..., 0], xp.zeros_like(log_mass))
        near, mass = abs(log_r) < 1.0, xp.exp(log_mass)
        zero = xp.zeros_like(log_r)
        raised = xp.exp(xp.where(some & ~near, log_mass + log_r, zero - xp.inf))  # E[w] r
        far = raised - xp.where(mass > 0, mass * (xp.where(mass > 0, log_r, zero) + 1.0), zero)
        return xp.where(near, mass * linex(xp.where(near, log_r, zero)), far)

    def pointwise(self, z: Array, action: Array, reference: Array) -> Array:
        """[...]: -w(z) log r over w(reference), with r = T(z) / a: what is expected of it is the loss of the best a.

        The expectation of w (r - 1) is 0 for the action that is best today, and its mass is where that of w is not.
        """
        cost = action[..., 0] - self.log_ratio(z, reference)
        return cost if self.loss.weight is None else self.loss.relative_weight(z, reference) * cost

    def prediction(self, action: Array, reference: Array) -> Array:
        """[...]: T^-1(a)."""
        log_target = self.loss.chart(reference).log_target
        assert log_target is not None
        return log_target(action[..., 0])

    def log_ratio(self, z: Array, reference: Array) -> Array:
        """[...]: log T(z) / T(reference)."""
        log_coordinate = self.loss.chart(reference).log_coordinate
        assert log_coordinate is not None
        return log_coordinate(z)


def log_domain(loss: WeightedBregman) -> LogDomainLoss | None:
    """The loss by logarithms, where phi = -log and its transform is positive; None otherwise."""
    one = np.ones(())
    has_logs = isinstance(loss.potential, NegativeLog) and loss.chart(one).log_coordinate is not None
    return LogDomainLoss(loss) if has_logs else None


def near_domain(loss: WeightedBregman) -> WeightedBregman:
    """The same loss in coordinates that keep their digits where T = exp(rate z) varies little."""
    if not isinstance(loss.transform, Exponential) or not as_potential(loss.potential).scale_free:
        return loss
    return replaced(loss, transform=NearExponential(loss.transform.rate, loss.transform.domain))


@dataclass(frozen=True)
class BregmanLoss(WeightedBregman):
    """l(z, a) = w(z) D_phi(T(z), a) for a convex potential phi, a transform T and a weight w of your own.

    The act is E_w[T] = E[w T] / E[w]; `prediction` takes it back to target units where T has an inverse.

    Args:
        potential: phi, an object such as `Square()`, or a convex function of points [..., d] to [...].
        transform: T, an object such as `Power(0.5)`, or a function of targets [...] to [...] or [..., d].
        weight: w, an object such as `ExponentialWeight(1.0)`, or a function of targets [...] that is at least 0; None
            for 1.

    Raises:
        StakesError: For vector targets with a potential that is not defined on all reals.
        TypeError: If one of them is neither an object of its kind nor a function.

    Examples:
        With phi(x) = -log x on positive targets, D_phi(z, b) = z/b - log(z/b) - 1:

        >>> from stakes import BregmanLoss
        >>> from stakes.losses import NegativeLog
        >>> loss = BregmanLoss(NegativeLog())
        >>> print(loss(2.0, 1.0).round(4))  # 2 - log 2 - 1
        0.3069
    """

    potential: PotentialLike
    transform: TransformLike = Identity()  # noqa: RUF009 (frozen)
    weight: WeightLike = None

    def __post_init__(self) -> None:
        potential, transform = as_potential(self.potential), as_transform(self.transform)
        if isinstance(transform, Identity) and transform.domain not in potential.domain:
            transform = Identity(potential.domain)  # the target itself must lie where phi is defined
        object.__setattr__(self, "potential", potential)
        object.__setattr__(self, "transform", transform)
        weight = as_weight(self.weight)
        if isinstance(transform.domain, Vectors):
            if REAL not in potential.domain:
                raise StakesError(
                    f"vectors are any real numbers, but the potential needs points in {potential.domain}; use "
                    "Square(), Quadratic(matrix) or a convex function of all reals"
                )
            weight = as_vector_weight(weight, transform.domain.count)
        object.__setattr__(self, "weight", weight)


@dataclass(frozen=True)
class SquaredError(WeightedBregman):
    """l(z, b) = w(z) (z - b)^2 on the reals; answer E_w[z]. Its objective is (weighted) expected variance reduction.

    The paper's EVR and EVR_w: h = E[w] Var_w[z].

    Args:
        weight: w, an object such as `ExponentialWeight(1.0)` or a function of the target; None for 1.

    Examples:
        >>> from stakes import GaussianBelief, SquaredError, uncertainty
        >>> print(SquaredError()(3.0, 1.0))
        4.0
        >>> print(SquaredError(weight=lambda z: z**2)(3.0, 1.0))
        36.0
        >>> belief = GaussianBelief(mean=[0.0], variance=[2.0], candidate_variance=[1.0], covariance=[[1.0]])
        >>> print(uncertainty(SquaredError(), belief))  # the variance
        [2.]
    """

    weight: WeightLike = None
    potential: PotentialLike = field(default=Square(), init=False, repr=False)
    transform: TransformLike = field(default=Identity(), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))


@dataclass(frozen=True)
class BoxCox(WeightedBregman):
    """l(z, b) = w(z) (T(z) - T(b))^2 for z, b > 0 with T(z) = (z^lam - 1) / lam; `lam = 0` is the logarithm.

    `lam = 1` is squared error on positive targets; `lam = 0` counts relative errors.

    Args:
        lam: The exponent, any finite number.
        weight: w, an object or a function of the target; None for 1.

    Raises:
        StakesError: If `lam` is not a finite number.

    Examples:
        >>> from stakes import BoxCox
        >>> print(BoxCox(0.5)(9.0, 4.0))  # (2 (3 - 1) - 2 (2 - 1))^2
        4.0
    """

    lam: float
    weight: WeightLike = None
    potential: PotentialLike = field(default=Square(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "transform", Power(self.lam))
        object.__setattr__(self, "weight", as_weight(self.weight))


@dataclass(frozen=True)
class Linex(WeightedBregman):
    """l(z, b) = w(z) (exp(alpha (b - z)) - alpha (b - z) - 1) on the reals: overestimates hurt more for alpha > 0.

    Zellner's linear-exponential loss: D_phi(T(z), T(b)) with T(z) = exp(-alpha z) and phi = -log. The answer is
    -log E_w[exp(-alpha z)] / alpha. A negative alpha punishes underestimates. Under an exact Gaussian belief its
    objective ranks candidates as squared error does (h = alpha^2 v / 2): only the answer differs.

    Args:
        alpha: How fast the cost of an overestimate grows, any finite number but 0.
        weight: w, an object or a function of the target; None for 1.

    Raises:
        StakesError: If `alpha` is 0 or not a finite number.

    Examples:
        >>> from stakes import Linex
        >>> loss = Linex(alpha=1.0)
        >>> print(loss(0.0, 1.0).round(4), loss(1.0, 0.0).round(4))  # e - 2 for one too many, 1/e for one too few
        0.7183 0.3679
    """

    alpha: float = 1.0
    weight: WeightLike = None
    potential: PotentialLike = field(default=NegativeLog(), init=False, repr=False)
    transform: TransformLike = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_rate("alpha", self.alpha)
        if self.alpha == 0:
            raise StakesError("alpha must not be 0: Linex then tends to alpha^2/2 times SquaredError(); use that")
        object.__setattr__(self, "transform", Exponential(-float(self.alpha)))
        object.__setattr__(self, "weight", as_weight(self.weight))

    def _between(self, z: Array, prediction: Array) -> Array:
        """[...]: exp(d) - d - 1 with d = alpha (prediction - z), in a form that loses no digits near 0."""
        return linex(float(self.alpha) * (prediction - z))


@dataclass(frozen=True)
class ItakuraSaito(WeightedBregman):
    """l(z, b) = w(z) (z/b - log(z/b) - 1) for z, b > 0: relative errors, underestimates hurt more. Answer E_w[z].

    Args:
        weight: w, an object or a function of the target; None for 1.

    Examples:
        >>> from stakes import ItakuraSaito
        >>> print(ItakuraSaito()(20.0, 10.0).round(4))  # 2 - log 2 - 1, whatever the unit
        0.3069
    """

    weight: WeightLike = None
    potential: PotentialLike = field(default=NegativeLog(), init=False, repr=False)
    transform: TransformLike = field(default=Identity(POSITIVE), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))


@dataclass(frozen=True)
class PoissonDeviance(WeightedBregman):
    """l(z, b) = w(z) (z log(z/b) - z + b) for z, b >= 0: counts and rates (generalised KL). Answer E_w[z].

    Half of what some libraries call the Poisson deviance. A target of 0 costs b; answering 0 to a positive target is
    infinitely wrong.

    Args:
        weight: w, an object or a function of the target; None for 1.

    Examples:
        >>> from stakes import PoissonDeviance
        >>> loss = PoissonDeviance()
        >>> print(loss(0.0, 3.0), loss(2.0, 1.0).round(4))  # 3, and 2 log 2 - 1
        3.0 0.3863
    """

    weight: WeightLike = None
    potential: PotentialLike = field(default=NegativeEntropy(), init=False, repr=False)
    transform: TransformLike = field(default=Identity(NONNEGATIVE), init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", as_weight(self.weight))


@dataclass(frozen=True, eq=False)
class Mahalanobis(WeightedBregman):
    """l(z, b) = w(z) (z - b)' A (z - b) on vectors of d numbers; answer E_w[z].

    The diagonal of A prices the error of each output, the rest what errors cost together; a direction of price 0 does
    not matter. The identity is the sum of squared errors. Its objective is the expected reduction of tr(A Cov_w[z]),
    weighed by E[w]. Targets and answers have shape [..., d].

    Args:
        matrix: A [d, d], symmetric and positive semi-definite.
        weight: w, an `ExponentialLinearWeight(rates)`, or a function of targets [..., d] that gives [...]; None for 1.

    Raises:
        StakesError: If `matrix` is not symmetric and positive semi-definite, or all 0.
        TypeError: If `weight` is one of single numbers or classes.

    Examples:
        >>> from stakes import Mahalanobis
        >>> loss = Mahalanobis([[1.0, 0.0], [0.0, 4.0]])  # errors of the second output cost four times as much
        >>> print(loss([3.0, 1.0], [1.0, 0.0]).round(6))  # 2^2 + 4 1^2
        8.0
    """

    matrix: Any
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
