"""Calibration: whether targets fell where a belief put them. Acquisition is only as good as the belief.

Sizes: M contexts, C classes, L levels, B bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stakes._utils.array import Array, asarrays, check_shape, constant, double, namespace, normal_tail, ratio
from stakes.acquisition.scores import bayes_prediction
from stakes.beliefs import Belief, GaussianBelief, GaussianMixtureBelief, NormalEnsemble, WarpedGaussianBelief
from stakes.exceptions import StakesError
from stakes.losses import LogLoss
from stakes.losses.domains import Classes, labels_to_indicators

_FAR = 40.0  # standard deviations, beyond which no mass is left


@dataclass(frozen=True, eq=False)
class Calibration:
    """How often targets fell where a belief about reals put them.

    Attributes:
        pit: [M]: P(z <= target) under the belief, uniform if it is right.
        levels: L probabilities of central intervals.
        coverage: [L]: the fraction of targets in the central interval of each level.

    Examples:
        >>> from stakes import GaussianBelief
        >>> from stakes.evaluation import calibration
        >>> belief = GaussianBelief([0.0, 0.0], [1.0, 1.0], candidate_variance=[1.0], covariance=[[0.5, 0.5]])
        >>> found = calibration(belief, targets=[0.0, 3.0], levels=(0.9,))
        >>> print(found.pit.round(4), found.coverage)  # one of two targets lies in its central interval of 90%
        [0.5    0.9987] [0.5]
    """

    pit: Array
    levels: tuple[float, ...]
    coverage: Array


@dataclass(frozen=True, eq=False)
class ClassCalibration:
    """Whether classes were as frequent as a belief predicted.

    Attributes:
        expected_error: The expected calibration error, sum_b P(b) |accuracy_b - confidence_b| over equal bins b of the
            top probability, its class being right or not.
        predicted: [C]: the mean probability of each class.
        observed: [C]: the fraction of targets in each class.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> from stakes.evaluation import calibration
        >>> sure = [[[0.9, 0.1]], [[0.9, 0.1]]]  # one member, two contexts
        >>> found = calibration(CategoricalEnsemble(candidates=sure, contexts=sure), targets=[0, 1])
        >>> print(round(found.expected_error, 6), found.predicted, found.observed)  # half are right, at 90%
        0.4 [0.9 0.1] [0.5 0.5]
    """

    expected_error: float
    predicted: Array
    observed: Array


def calibration(
    belief: Belief, targets: Any, levels: Sequence[float] = (0.5, 0.8, 0.9, 0.95), bins: int = 10
) -> Calibration | ClassCalibration:
    """Compare realised targets with what was believed of them.

    The belief must be about what was observed: about labels with their noise, where targets are labels.

    Args:
        belief: A GaussianBelief, GaussianMixtureBelief, WarpedGaussianBelief or NormalEnsemble, or a belief about
            classes.
        targets: [M]: the target at each context; positions of classes.
        levels: Probabilities of central intervals, for reals.
        bins: The number of bins of the top probability, for classes.

    Returns:
        The coverage of central intervals for reals; the expected calibration error for classes.

    Raises:
        TypeError: If the belief is of another kind.
        StakesError: If there is not one target for each context, or levels or bins are out of range.

    Examples:
        >>> from stakes import GaussianBelief
        >>> belief = GaussianBelief([0.0] * 4, [1.0] * 4, candidate_variance=[1.0], covariance=[[0.5] * 4])
        >>> found = calibration(belief, targets=[-0.3, 0.1, 0.9, 3.0], levels=(0.5, 0.9))
        >>> found.coverage
        array([0.5 , 0.75])
    """
    about_classes = isinstance(belief, Belief) and isinstance(belief.domain, Classes)
    kinds = GaussianBelief | GaussianMixtureBelief | NormalEnsemble | WarpedGaussianBelief
    if not about_classes and not isinstance(belief, kinds):
        raise TypeError(
            "calibration knows GaussianBelief, GaussianMixtureBelief, WarpedGaussianBelief, NormalEnsemble and beliefs "
            f"about classes; got {type(belief).__name__}"
        )
    _, targets = asarrays(like=belief.like, targets=targets)
    check_shape("targets", targets, (belief.n_contexts,))
    if about_classes:
        return _class_calibration(bayes_prediction(LogLoss(), belief), targets, bins)
    if not levels or not all(0.0 < level < 1.0 for level in levels):
        raise StakesError(f"levels must lie between 0 and 1, one or more of them; got {levels}")
    if isinstance(belief, WarpedGaussianBelief):  # an increasing map keeps quantiles
        belief.domain.check("the target", targets)
        targets = belief.warp.inverse(targets)
        belief = belief.latent
    pit = _pit(belief.targets if isinstance(belief, GaussianMixtureBelief) else belief, targets)
    inside = 2.0 * abs(pit[:, None] - 0.5) <= constant(levels, pit)  # [M, L]
    return Calibration(pit, tuple(levels), namespace(pit).mean(namespace(pit).astype(inside, pit.dtype), axis=0))


def _pit(belief: Any, targets: Array) -> Array:
    """[M]: sum_k q_k Phi((z - mean_k) / sd_k), a step where sd is 0."""
    xp = namespace(targets)
    if isinstance(belief, GaussianBelief):
        mean, sd, weights = belief.mean[:, None], xp.sqrt(belief.variance)[:, None], 1.0
    else:
        mean, sd, weights = belief.context_mean, belief.context_sd, belief.member_weights
    step = double(targets[:, None] - mean)
    u = xp.where(sd > 0, ratio(step, double(sd)), _FAR * xp.sign(step))
    return xp.astype(xp.sum(weights * normal_tail(-u), axis=1), targets.dtype)


def _class_calibration(probabilities: Array, labels: Array, bins: int) -> ClassCalibration:
    if not isinstance(bins, int) or bins < 1:
        raise StakesError(f"bins must be a whole number, 1 or more; got {bins!r}")
    xp = namespace(probabilities)
    observed = labels_to_indicators(labels, probabilities.shape[1])  # [M, C]
    top, choice = xp.max(probabilities, axis=1), xp.astype(xp.argmax(probabilities, axis=1), labels.dtype)
    members = labels_to_indicators(xp.clip(xp.floor(top * bins), 0.0, float(bins - 1)), bins)  # [M, B]
    gaps = xp.mean(members * (top - xp.astype(choice == labels, labels.dtype))[:, None], axis=0)  # [B]
    return ClassCalibration(float(xp.sum(abs(gaps))), xp.mean(probabilities, axis=0), xp.mean(observed, axis=0))
