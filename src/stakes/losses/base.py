"""The loss's side of the interface between a loss and a belief: statistics, their Bayes act, the regret of another act.

Sizes: D statistics, d coordinates of an action, C classes.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

from stakes._utils.array import Array
from stakes.losses.distributions import Distribution
from stakes.losses.domains import Domain


@runtime_checkable
class Loss(Protocol):
    """What being wrong costs: a target `z`, an action `a`, a loss `l(z, a)`.

    The three methods that drive acquisition are `statistics`, `action` and `regret`. Where they take a `reference`
    (a point near the mass of the belief), statistics are measured from it: the weight relative to its value there,
    `T` from its value there. That keeps all digits when targets sit far from the origin, and exponents in range when
    weights are extreme. Without a reference they are the formulas of the paper, literally.

    There is nothing to inherit from: an object with these members is a loss. `stakes.testing.check_loss` tests one.
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
        """How large the statistics are.

        Args:
            z: Targets [...]; indicators [..., C] for classes, [..., d] for vectors.

        Returns:
            [..., t]: logarithms; the first is log w(z), the scale that is taken out.
        """

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """S(z), whose moments are all that the loss needs to know of a belief.

        Args:
            z: Targets [...]; indicators [..., C] for classes, [..., d] for vectors.
            reference: The target from which they are measured, broadcast with z; None for the plain formula.

        Returns:
            [..., D].
        """

    def action(self, moments: Array) -> Array:
        """The Bayes act that moments imply, measured from the reference.

        Args:
            moments: E[S] [..., D], of any total mass, 0 included.

        Returns:
            [..., d].
        """

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """What an action loses, under a belief with these moments, beyond the best action; homogeneous in the moments.

        Args:
            moments: E[S] [..., D].
            action: [..., d], measured from the reference.
            reference: The target from which both are measured.

        Returns:
            [...].
        """

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """l(z, a) in the coordinates of `action`, over w(reference).

        Args:
            z: Targets [...].
            action: [..., d], measured from the reference.
            reference: The target from which the action is measured.

        Returns:
            [...].
        """

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """The action in target units: what to answer, and what `loss(z, prediction)` takes.

        Args:
            action: [..., d], measured from the reference.
            reference: The target from which it is measured.

        Returns:
            The answers.
        """

    def __call__(self, z: Array, prediction: Array) -> Array:
        """[...]: the loss of answering `prediction` when the target is `z`, both checked."""


@runtime_checkable
class DistributionLoss(Protocol):
    """A loss whose answer is read off the whole weighted distribution w(z) p(z), such as its density or a quantile.

    Statistics are w(z) alone. Distributions and marks are counted from the reference of each context, and weights
    relative to that there, as for any loss.
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
        """How large the costs at a target are.

        Args:
            z: Targets [...].

        Returns:
            [..., t]: logarithms; the first is log w(z), the scale that is taken out.
        """

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """The weight.

        Args:
            z: Targets [...].
            reference: The target at which the weight is 1; None for the plain weight.

        Returns:
            [..., 1]: w(z).
        """

    def marks(self, distribution: Distribution) -> Array:
        """Targets at which the regret of keeping today's answer kinks; integration splits there.

        Args:
            distribution: Today's.

        Returns:
            [..., B].
        """

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """What the answer to `prior` loses under `posterior`; homogeneous in that.

        Both are on the same nodes, with the marks among the edges of panels.

        Args:
            posterior: The distribution once a label is known.
            prior: Today's.
            marks: Those of today's.

        Returns:
            [...].
        """

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """The expected loss of the best answer to a distribution.

        Args:
            distribution: With the marks among the edges of its panels.
            marks: Its own.

        Returns:
            [...].
        """

    def prediction(self, distribution: Distribution) -> Any:
        """The best answer, in target units: what `loss(z, prediction)` takes.

        Args:
            distribution: w(z) p(z).

        Returns:
            The answer.
        """

    def __call__(self, z: Array, prediction: Any) -> Array:
        """[...]: the loss of answering `prediction` when the target is `z`, both checked."""


AnyLoss: TypeAlias = Loss | DistributionLoss
"""What acquisition and evaluation take."""


def missing_members(value: Any, protocol: type) -> list[str]:
    """The members of a protocol that an object lacks, in the order of their definition."""
    wanted = [name for name in vars(protocol) if name == "__call__" or not name.startswith("_")]
    return [name for name in wanted if not hasattr(value, name)]
