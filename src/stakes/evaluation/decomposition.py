"""Which part of a realised loss a better answer could save, and which part none can (the paper's appendix C.3).

Sizes: S targets drawn at a context, A answers, C classes, d coordinates of T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stakes._utils.array import Array, asarrays, log_of, namespace, ratio
from stakes.evaluation.realised import check_range, split_weight, weight_shares
from stakes.exceptions import StakesError
from stakes.losses import Loss, NegativeEntropy, NegativeLog, Quadratic, Square, WeightedBregman
from stakes.losses.domains import Classes, Vectors, target_axes


@dataclass(frozen=True, eq=False)
class Decomposition:
    """total = estimation_error + dispersion, each [...]: what a better answer could save, and what none can.

    Attributes:
        total: E_eval[l(z, a)].
        estimation_error: E[w] D(a_eval, a).
        dispersion: E_eval[l(z, a_eval)].

    Examples:
        >>> from stakes import SquaredError
        >>> from stakes.evaluation import decompose
        >>> found = decompose(SquaredError(), prediction=[3.0], targets=[[0.0, 2.0]])  # the best answer is 1
        >>> print(found.estimation_error)  # (3 - 1)^2
        [4.]
    """

    total: Array
    estimation_error: Array
    dispersion: Array


def decompose(loss: Loss, prediction: Any, targets: Any, normalise: bool = False) -> Decomposition:
    """Split a mean loss into what a better answer could save and what none can (the paper's appendix C.3).

    E_eval[l(z, a)] = E[w] D(a_eval, a) + E_eval[l(z, a_eval)], a_eval = E_w[T], for a weighted Bregman loss.

    Args:
        loss: A weighted Bregman loss, such as SquaredError or LogLoss.
        prediction: [...]: the answers at contexts; [..., C] for class probabilities, [..., d] for vectors.
        targets: [..., S]: draws of the target at each context; [..., S, d] for vectors.
        normalise: Whether to divide all by E[w].

    Returns:
        The total and its two parts, each [...].

    Raises:
        TypeError: If the loss is no weighted Bregman loss.
        StakesError: If shapes do not agree or are empty.

    Examples:
        >>> from stakes import SquaredError
        >>> found = decompose(SquaredError(), prediction=[3.0], targets=[[0.0, 2.0]])  # the best answer is 1
        >>> found.total, found.estimation_error, found.dispersion
        (array([5.]), array([4.]), array([1.]))
    """
    source = _source(loss, prediction, targets, normalise, several=False)
    return Decomposition(
        total=source.mean(source.statistics, source.acts),
        estimation_error=source.mean(source.moments, source.acts),
        dispersion=source.mean(source.statistics, source.plain.action(source.moments)),
    )


@dataclass(frozen=True, eq=False)
class BiasVariance:
    """total = bayes_error + bias + variance, each [...].

    Attributes:
        total: E[l(z, A)].
        bayes_error: E[l(z, a_eval)].
        bias: E[w] D(a_eval, u).
        variance: E[w] E_A[D(u, A)].

    Examples:
        >>> from stakes import SquaredError
        >>> from stakes.evaluation import bias_variance
        >>> found = bias_variance(SquaredError(), predictions=[[1.0, 3.0]], targets=[[0.0, 2.0]])
        >>> print(found.variance)  # of the answers 1 and 3 about their mean
        [1.]
    """

    total: Array
    bayes_error: Array
    bias: Array
    variance: Array


def bias_variance(loss: Loss, predictions: Any, targets: Any, normalise: bool = False) -> BiasVariance:
    """Split the mean loss of several models into Bayes error, bias and variance (the paper's appendix C.3).

    E[l(z, A)] = E[l(z, a_eval)] + E[w] D(a_eval, u) + E[w] E_A[D(u, A)], u = argmin E_A[D(u, A)] the central act. By
    grad phi(u) = E[grad phi(A)], u is the mean of T(A) for Square and Quadratic, the harmonic mean for NegativeLog, the
    geometric mean for NegativeEntropy (renormalised for classes).

    Args:
        loss: A weighted Bregman loss, such as SquaredError or LogLoss.
        predictions: [..., A]: answers of models that might have been, independent of the targets; [..., A, C] for class
            probabilities, [..., A, d] for vectors.
        targets: [..., S]: draws of the target at each context; [..., S, d] for vectors.
        normalise: Whether to divide all by E[w].

    Returns:
        The total and its three parts, each [...].

    Raises:
        TypeError: If the loss is no weighted Bregman loss, or the central act of its potential is not known.
        StakesError: If shapes do not agree or are empty.

    Examples:
        >>> from stakes import SquaredError
        >>> found = bias_variance(SquaredError(), predictions=[[1.0, 3.0]], targets=[[0.0, 2.0]])
        >>> found.bayes_error, found.bias, found.variance
        (array([1.]), array([1.]), array([1.]))
    """
    source = _source(loss, predictions, targets, normalise, several=True)
    central = _central(source)  # [..., 1, d]
    certain = namespace(central).concat([namespace(central).ones_like(central[..., :1]), central], axis=-1)
    return BiasVariance(
        total=source.mean(source.statistics, source.acts),
        bayes_error=source.mean(source.statistics, source.plain.action(source.moments)),
        bias=source.mean(source.moments, central),
        variance=source.mean(certain, source.acts),
    )


@dataclass(frozen=True, eq=False)
class _Source:
    """Draws and answers in the coordinates of the unweighted loss; the statistics carry the weight, of mean 1."""

    plain: WeightedBregman
    point: Array | None  # [..., 1] or [..., 1, d]: the reference
    acts: Array  # [..., A, d]
    statistics: Array  # [..., S, 1 + d]
    moments: Array  # [..., 1, 1 + d]
    unit: Array | float  # [...]: E[w], or 1 if normalised

    def mean(self, statistics: Array, acts: Array) -> Array:
        """[...]: the mean of w D(T, a) over all pairs of `statistics` [..., S, 1 + d] and `acts` [..., A, d]."""
        point, axes = self.point, target_axes(self.plain.domain)
        point = None if point is None else namespace(point).expand_dims(point, axis=-1 - axes)
        pairs = self.plain.regret(statistics[..., None, :, :], acts[..., None, :], point)  # [..., A, S]
        return namespace(pairs).mean(pairs, axis=(-2, -1)) * self.unit


def _source(loss: Loss, answers: Any, targets: Any, normalise: bool, several: bool) -> _Source:
    """Answers [...] (`several`: [..., A]) and draws [..., S], checked; the reference is the mean answer."""
    answers, targets = asarrays(predictions=answers, targets=targets)
    plain, z = split_weight(loss, answers, targets)
    xp, axes, vectors = namespace(z), target_axes(plain.domain), isinstance(plain.domain, Vectors)
    lead = targets.shape[: max(0, targets.ndim - 1 - vectors)]
    depth = targets.ndim - 1 - vectors
    agree = answers.shape[: len(lead)] == lead and answers.ndim - several - axes == depth == len(lead)
    if not agree or 0 in (*targets.shape, *answers.shape):
        last = ", d" * vectors or ", C" * axes
        raise StakesError(
            f"predictions [...{', A' * several}{last}] and targets [..., S{', d' * vectors}] must agree in their "
            f"leading axes, and not be empty; got {list(answers.shape)} and {list(targets.shape)}"
        )
    answers = answers if several else xp.expand_dims(answers, axis=len(lead))
    point = None if isinstance(plain.domain, Classes) else xp.mean(answers, axis=len(lead), keepdims=True)
    shares, log_mean = weight_shares(loss, z)
    unit = 1.0 if normalise else xp.exp(check_range(log_mean))
    statistics = shares[..., None] * plain.statistics(z, point)
    acts = plain.action(plain.statistics(answers, point))  # certain of z = b, the act is T(b)
    return _Source(plain, point, acts, statistics, xp.mean(statistics, axis=-2, keepdims=True), unit)


def _central(source: _Source) -> Array:
    """[..., 1, d]: argmin_u E_A[D(u, A)], counted like the acts from the origin o of the chart."""
    acts, potential, origin = source.acts, source.plain.potential, source.plain.chart(source.point).origin
    xp = namespace(acts)
    if isinstance(potential, Square | Quadratic):
        return xp.mean(acts, axis=-2, keepdims=True)
    if isinstance(potential, NegativeLog):  # 1 / (o + u) = E[1 / (o + A)]
        inverse = 1.0 / (origin + acts)
        return xp.mean(acts * inverse, axis=-2, keepdims=True) / xp.mean(inverse, axis=-2, keepdims=True)
    if isinstance(potential, NegativeEntropy):  # log (o + u) = E[log (o + A)]
        means = xp.exp(xp.mean(log_of(origin + acts), axis=-2, keepdims=True))
        on_simplex = isinstance(source.plain.domain, Classes)
        return ratio(means, xp.sum(means, axis=-1, keepdims=True)) if on_simplex else means - origin
    raise TypeError(
        "the central prediction is known for the potentials Quadratic, Square, NegativeLog and NegativeEntropy; "
        f"{type(source.plain).__name__} has {type(potential).__name__}"
    )
