"""The loss's side of the waist.

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
    """

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the statistics jump or kink; integration splits there."""

    def log_magnitudes(self, z: Array) -> Array:
        """[..., t]: the log of how large the statistics are at z; the first is log w(z), the scale taken out."""

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., D]: S(z), whose moments are all that the loss needs to know of a belief."""

    def action(self, moments: Array) -> Array:
        """[..., d]: the Bayes act that moments E[S] (of any total mass) imply, measured from the reference."""

    def regret(self, moments: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: what `action` loses, under a belief with `moments`, beyond the best action; homogeneous in moments."""

    def pointwise(self, z: Array, action: Array, reference: Array | None = None) -> Array:
        """[...]: l(z, a) in the coordinates of `action`, over w(reference)."""

    def prediction(self, action: Array, reference: Array | None = None) -> Array:
        """The action in target units: what to answer, and what `loss(z, prediction)` takes."""

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

    def log_magnitudes(self, z: Array) -> Array:
        """[..., t]: the log of how large the costs at z are; the first is log w(z), the scale taken out."""

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """[..., 1]: w(z)."""

    def marks(self, distribution: Distribution) -> Array:
        """[..., B]: targets at which the regret of keeping today's answer kinks; integration splits there."""

    def regret(self, posterior: Distribution, prior: Distribution, marks: Array) -> Array:
        """[...]: what the answer to `prior`, whose marks are given, loses under `posterior`; homogeneous in that.

        Both are on the same nodes, with the marks among the edges of panels.
        """

    def uncertainty(self, distribution: Distribution, marks: Array) -> Array:
        """[...]: the expected loss of the best answer to a distribution, whose marks are among the edges of panels."""

    def prediction(self, distribution: Distribution) -> Any:
        """The best answer, in target units: what `loss(z, prediction)` takes."""

    def __call__(self, z: Array, prediction: Any) -> Array:
        """[...]: the loss of answering `prediction` when the target is `z`, both checked."""


AnyLoss: TypeAlias = Loss | DistributionLoss
"""What acquisition and evaluation take."""
