"""The interface between loss and belief: the loss's side.

A loss and a belief know of each other only through statistics. The loss gives S(z), a short list of functions of the
target, and says which action the expectations E[S] imply and what any other action loses; the belief
(`stakes.beliefs.base`) gives those expectations, split by what a label turns out to be. So every loss works with every
belief. Losses whose answer is a whole density or a quantile have no such list: they read the weighted distribution
itself (`DistributionLoss`). Sizes: D statistics, d coordinates of an action, C classes, B marks.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from stakes._utils.array import Array
from stakes.losses.distributions import Distribution
from stakes.losses.domains import Domain


@runtime_checkable
class Loss(Protocol):
    """What being wrong costs: a loss `l(z, a)` of a target `z` and an action `a`.

    The three methods that drive acquisition are `statistics`, `action` and `regret`. Where they take a `reference`
    (a point near the mass of the belief), statistics are measured from it: the weight relative to its value there,
    `T` from its value there. That keeps all digits when targets sit far from the origin, and exponents in range when
    weights are extreme. Without a reference they are the formulas of the paper, literally.

    Classes enter these methods as indicators e_z [..., C] and vectors as [..., d]; `__call__` takes labels.

    Examples:
        >>> from stakes import SquaredError
        >>> from stakes.losses import Loss
        >>> isinstance(SquaredError(), Loss)
        True
    """

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the statistics jump or kink; integration splits there."""

    @property
    def finite_actions(self) -> bool:
        """Whether the act is one of finitely many actions, so that it jumps as the belief moves.

        The statistics are then the cost of each action, at least 0 for every target, and the act is the position of the
        action with the smallest expected cost. Integration over labels splits where that action changes; a loss that
        does not say so is integrated as if its act were continuous, and comes out wrong by several percent.
        """

    def log_magnitudes(self, z: Array) -> Array:
        """The log of how large the statistics are, so that integration looks where they matter.

        Args:
            z: Targets [...].

        Returns:
            [..., t], of which the first is log w(z), the scale that is taken out.
        """

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """S(z), whose expectations are all that the loss needs to know of a belief.

        Args:
            z: Targets [...].
            reference: A target that broadcasts with `z`, from which the statistics are measured; None for the origin.

        Returns:
            [..., D].
        """

    def action(self, moments: Array) -> Array:
        """The Bayes act.

        Args:
            moments: E[S] [..., D], of any total mass.

        Returns:
            [..., d], measured from the reference that the moments were taken from.
        """

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """What an action loses beyond the best one, under a belief with these moments.

        Args:
            moments: E[S] [..., D], of any total mass; the regret is homogeneous in them.
            action: The action [..., d] to judge.
            reference: From where both are measured.

        Returns:
            [...], at least 0.
        """

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """l(z, a) in the coordinates of the action.

        Args:
            z: Targets [...].
            action: Actions [..., d].
            reference: From where the action is measured.

        Returns:
            [...], over w(reference).
        """

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """The action in target units: what to answer, and what `loss(z, prediction)` takes.

        Args:
            action: Actions [..., d].
            reference: From where they are measured.

        Returns:
            [...] for numbers, [..., C] probabilities for classes, [..., d] for vectors, a position for finite actions.
        """

    def __call__(self, z: Array, prediction: Array) -> Array:
        """The loss of answering `prediction` when the target is `z`, both checked.

        Args:
            z: Targets [...]; labels for classes, [..., d] for vectors.
            prediction: Answers in target units, which broadcast with the targets.

        Returns:
            [...].
        """


@runtime_checkable
class DistributionLoss(Protocol):
    """A loss whose answer is read off the whole weighted distribution w(z) p(z), such as its density or a quantile.

    Statistics are w(z) alone. Distributions and marks are counted from the reference of each context, and weights
    relative to that there, as for any loss.

    Examples:
        >>> from stakes import CRPS
        >>> from stakes.losses import DistributionLoss
        >>> isinstance(CRPS(), DistributionLoss)
        True
    """

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the weight jumps or kinks; integration splits there."""

    @property
    def finite_actions(self) -> bool:
        """False: statistics are not the costs of actions."""

    def log_magnitudes(self, z: Array) -> Array:
        """The log of how large the costs are, so that integration looks where they matter.

        Args:
            z: Targets [...].

        Returns:
            [..., t], of which the first is log w(z), the scale that is taken out.
        """

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """w(z).

        Args:
            z: Targets [...].
            reference: A target that broadcasts with `z`; the weight is over that there.

        Returns:
            [..., 1].
        """

    def marks(self, distribution: Distribution) -> Array:
        """Targets at which the regret of keeping today's answer kinks; integration splits there.

        Args:
            distribution: Today's distribution.

        Returns:
            [..., B], from the origin of the distribution.
        """

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """What the answer to `prior` loses under `posterior`.

        Args:
            posterior: The distribution once a label is known, of any total mass; the regret is homogeneous in it.
            prior: Today's distribution, on the same nodes.
            marks: The marks [..., B] of today's distribution, which are among the edges of panels.

        Returns:
            [...], at least 0.
        """

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """The expected loss of the best answer to a distribution.

        Args:
            distribution: The distribution.
            marks: Its marks [..., B], which are among the edges of panels.

        Returns:
            [...], over the scale of the distribution.
        """

    def prediction(self, distribution: Distribution) -> Any:
        """The best answer, in target units: what `loss(z, prediction)` takes.

        Args:
            distribution: What is believed of the target.

        Returns:
            A number for each context, or the distribution itself.
        """

    def __call__(self, z: Array, prediction: Any) -> Array:
        """The loss of answering `prediction` when the target is `z`, both checked.

        Args:
            z: Targets, one for each context [M], or several [M, ...].
            prediction: The answer, such as `prediction(distribution)` gives it.

        Returns:
            The shape of `z`.
        """


AnyLoss: TypeAlias = Loss | DistributionLoss
"""A loss of either kind: what acquisition and evaluation take."""


def missing_members(value: Any, protocol: type) -> list[str]:
    """The members of a protocol that an object lacks, in the order of their definition."""
    wanted = [name for name in vars(protocol) if name == "__call__" or not name.startswith("_")]
    return [name for name in wanted if not hasattr(value, name)]
