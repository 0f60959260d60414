"""The interface between loss and belief: the belief's side.

A belief answers with moments of the statistics S(z) that a loss gives (`stakes.losses.base`), split by what a label may
be. Sizes: N candidates, M contexts, K members, C classes, J cells of the label y, D statistics, B marks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from stakes._utils.array import Array, finite_or_zero
from stakes.losses.distributions import Distribution
from stakes.losses.domains import Domain


class Integrand(Protocol):
    """What a belief may ask of a loss: where it is defined, where it is rough or large, and its statistics.

    Examples:
        >>> import numpy as np
        >>> from stakes import SquaredError
        >>> print(SquaredError().statistics(np.array([2.0, 3.0])))  # every loss is one: S(z) = (1, z)
        [[1. 2.]
         [1. 3.]]
    """

    @property
    def domain(self) -> Domain:
        """Where the target must lie."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Targets at which the statistics jump or kink."""

    @property
    def finite_actions(self) -> bool:
        """Whether the statistics are costs of actions, at least 0, of which the cheapest is taken.

        Integration over labels then splits where the cheapest action changes.
        """

    def log_magnitudes(self, z: Array) -> Array:
        """How large the statistics are.

        Args:
            z: Targets [...].

        Returns:
            [..., t]: logarithms, log w(z) first.
        """

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        """S(z) measured from a reference.

        Args:
            z: Targets [...].
            reference: A target with the leading axes of z, or that broadcasts to them.

        Returns:
            [..., D].
        """


class Reference(NamedTuple):
    """From where the statistics of each context are measured, and the scale that was taken out of their moments.

    Attributes:
        point: [M], or [M, d] for vectors: a target near the mass of w(z) p(z | c); for classes
            the probabilities p_w(z | c) [M, C], or None to take statistics as they are.
        log_scale: [M]: moments are E[S] over exp(log_scale).

    Examples:
        >>> from stakes import GaussianBelief, SquaredError
        >>> belief = GaussianBelief(mean=[100.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.5]])
        >>> reference = belief.reference(SquaredError())
        >>> print(reference.point, reference.log_scale)  # the mean, where a weight of 1 has the logarithm 0
        [100.] [0.]
    """

    point: Array | None
    log_scale: Array


def reference_at(point: Array, integrand: Integrand) -> Reference:
    """The reference whose scale is the weight at a point, which is what statistics about it leave out.

    Args:
        point: [M]: a target near the mass of each context.
        integrand: The loss.

    Returns:
        The reference.

    Examples:
        >>> import numpy as np
        >>> from stakes import ExponentialWeight, SquaredError
        >>> from stakes.beliefs import reference_at
        >>> reference = reference_at(np.array([100.0]), SquaredError(ExponentialWeight(2.0)))
        >>> print(reference.log_scale)  # log w(100)
        [200.]
    """
    return Reference(point, log_weight(point, integrand))


def log_weight(point: Array, integrand: Integrand) -> Array:
    """[M]: log w at `point`, or 0 where there is no weight to scale by."""
    return finite_or_zero(integrand.log_magnitudes(point)[..., 0])


@runtime_checkable
class Belief(Protocol):
    """What is believed of the label y of each of N candidates and the target z of each of M contexts.

    A belief answers with expectations of statistics S(z), split by what y turns out to be. Cells are an exhaustive list
    of outcomes of y (classes, or nodes of an integration rule with their mass); nothing is divided by the probability
    of a cell, so impossible outcomes do no harm.

    There is nothing to inherit from: an object with these members is a belief. `stakes.testing.check_belief` tests one.
    Two protocols add to it: `BatchBelief` for labels that are chosen together, and `DistributionBelief` for losses of a
    whole distribution.

    Examples:
        >>> from stakes import GaussianBelief
        >>> from stakes.beliefs import Belief
        >>> belief = GaussianBelief(mean=[0.0], variance=[1.0], candidate_variance=[1.0], covariance=[[0.5]])
        >>> isinstance(belief, Belief)
        True
    """

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""

    def n_cells(self, integrand: Integrand) -> int:
        """How many cells `split_moments` has, or a bound on it.

        Args:
            integrand: The loss.

        Returns:
            J.
        """

    @property
    def domain(self) -> Domain:
        """Where the target can fall."""

    @property
    def like(self) -> Array:
        """Any array of the belief: results have its library, dtype and device."""

    def reference(self, integrand: Integrand) -> Reference:
        """From where to measure the statistics of each context; `reference_at(point, integrand)` makes one.

        Args:
            integrand: The loss.

        Returns:
            The reference.
        """

    def moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) | c] over exp(log_scale), with `integrand.statistics(z, point)` for z of shape [M, ...].

        The first axis of z is that of contexts (or has length 1), and the point is shaped to broadcast with it.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [M, D].
        """

    def split_moments(self, integrand: Integrand, reference: Reference) -> Array:
        """E[S(z) 1{y in cell j} | c], whose sum over cells is `moments`.

        Args:
            integrand: The loss.
            reference: From where statistics are measured.

        Returns:
            [N, M, J, D].
        """

    def take(self, candidates: slice, contexts: slice) -> Belief:
        """The belief over a block of candidates and contexts.

        Args:
            candidates: Which candidates.
            contexts: Which contexts.

        Returns:
            The block.
        """


@runtime_checkable
class LogMomentBelief(Protocol):
    """A belief that also knows the logarithms of moments of positive statistics, however far apart those lie.

    Linex and other losses with phi = -log ask for them where plain numbers do not hold E[w T] and E[w] together; a
    belief without these methods serves them as far as plain numbers go.

    Examples:
        >>> from stakes import CategoricalEnsemble, GaussianBelief
        >>> from stakes.beliefs import LogMomentBelief
        >>> issubclass(GaussianBelief, LogMomentBelief), issubclass(CategoricalEnsemble, LogMomentBelief)
        (True, False)
    """

    def log_span(self, integrand: Any) -> float:
        """Over how many units log T ranges where the loss may look: beyond 300, logarithms are asked for.

        Args:
            integrand: The loss by logarithms.

        Returns:
            The range.
        """

    def log_moments(self, integrand: Any, reference: Reference) -> Array:
        """Log E[S(z) | c] for both S of `integrand.log_statistics(z, point)`, over the scale of the reference.

        Args:
            integrand: The loss by logarithms.
            reference: From where statistics are measured.

        Returns:
            [M, 2].
        """

    def log_split_moments(self, integrand: Any, reference: Reference) -> Array:
        """Log E[S(z) 1{y in cell j} | c], of which the log of the sum over cells is `log_moments`.

        Args:
            integrand: The loss by logarithms.
            reference: From where statistics are measured.

        Returns:
            [N, M, J, 2].
        """


@runtime_checkable
class BatchBelief(Protocol):
    """A belief whose labels can be chosen together: `select` and `rank(batch=True)` serve it, as they do our own.

    The joint reduction of a batch is the reduction of its labels seen as one, so one method is enough.

    Examples:
        >>> from stakes.beliefs import BatchBelief
        >>> class Mine:  # docs/examples/own_batch.py has a whole one
        ...     def start_batch(self, candidates):
        ...         return self
        >>> isinstance(Mine(), BatchBelief)
        True
    """

    def start_batch(self, candidates: tuple[int, ...]) -> Belief:
        """The belief in which the label of each candidate comes together with the labels of a batch.

        Candidates, contexts and the belief about targets stay as they are; a cell of candidate n is now an outcome of
        (the labels of the batch, the label of n), so there are more cells.

        Args:
            candidates: Positions of the candidates in the batch; none twice.

        Returns:
            A belief over the same candidates and contexts.
        """


@runtime_checkable
class ResolvingBelief(Protocol):
    """A belief under which statistics are integrated by rules that adapt to where they are steep, jump or kink."""

    def resolved(self, integrand: Integrand) -> Any:
        """The same integrand with what it takes to integrate it; all methods of the belief take it for the loss."""


@runtime_checkable
class RefinableBelief(Protocol):
    """A belief whose labels are integrated by a rule that can be made finer."""

    def refined(self) -> Any:
        """The same belief with a rule of twice the effort."""


@runtime_checkable
class SimplifiedBelief(Protocol):
    """A belief that may turn out to be one of a simpler kind, as a mixture of one hypothesis is."""

    def simplest(self) -> Any:
        """The same belief as the simplest kind that holds it, which may be itself."""


Regret: TypeAlias = Callable[[Distribution, Distribution, Array], Array]
"""The distribution in each cell, today's on the same nodes and marks [..., B], to regrets [...]."""


@runtime_checkable
class DistributionBelief(Protocol):
    """A belief that knows the whole weighted distribution w(z) p(z | c), today's and in each cell of a label.

    Marks [M, B] are targets, counted from the reference of each context, that must be edges between panels.

    Examples:
        >>> from stakes import CategoricalEnsemble, GaussianBelief
        >>> from stakes.beliefs import DistributionBelief
        >>> issubclass(GaussianBelief, DistributionBelief), issubclass(CategoricalEnsemble, DistributionBelief)
        (True, False)
    """

    def distribution(self, integrand: Integrand, reference: Reference, marks: Array) -> Distribution:
        """Today's distribution w(z) p(z | c) over exp(log_scale), [M].

        Args:
            integrand: The loss.
            reference: From where targets are counted.
            marks: [M, B]: edges between panels.

        Returns:
            The distribution of each context.
        """

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Array) -> Array:
        """The regret in each cell, whose distribution is w(z) p(z, y in cell | c), summed over cells.

        Args:
            regret: The distribution in a cell, today's and the marks to a regret.
            integrand: The loss.
            reference: From where targets are counted.
            marks: [M, B]: edges between panels.

        Returns:
            [N, M].
        """

    def n_nodes(self, integrand: Integrand) -> int:
        """A bound on cells times nodes of a distribution, for one candidate and context.

        Args:
            integrand: The loss.

        Returns:
            The bound.
        """
