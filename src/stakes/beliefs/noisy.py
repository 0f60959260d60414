"""Opinions of annotators in place of labels: what is learned of the targets from a label that may be wrong.

An annotator who says j where the label is y with probability Pi[y, j] splits the moments of the targets by
E[S(z) 1{says j}] = sum_y Pi[y, j] E[S(z) 1{label y}]. Under an ensemble that is what each member says of the label
times Pi; under a normal belief the noise of the annotator is added to that of the label. Targets stay what they are.

Sizes: N candidates, P opinions, K members, C classes, S hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._utils.array import Array, asarrays, check_all, check_shape, constant, namespace, replaced
from stakes.beliefs.base import Belief
from stakes.beliefs.categorical import CategoricalEnsemble, VoteEnsemble
from stakes.beliefs.gaussian import GaussianBelief
from stakes.beliefs.mixture import GaussianMixtureBelief
from stakes.beliefs.normal import NormalEnsemble
from stakes.exceptions import StakesError
from stakes.losses.domains import check_probabilities


def noisy_labels(belief: Belief, noise: Any, rows: Any = None) -> Any:
    """The belief whose candidates are opinions of annotators on the labels of `belief`.

    Two opinions on one row share its label under normal beliefs; under ensembles they are independent given the member,
    as they are where members are sure of the label.

    Args:
        belief: What is believed of labels and targets: an ensemble of classes, a Gaussian belief, a mixture of them, or
            an ensemble of normals.
        noise: Of classes, the confusion matrix [C, C] with the label in rows and what is said in columns; of numbers,
            the variance that the annotator adds. Of several annotators one for each opinion, [P, C, C] or [P].
        rows: [P]: the candidate that each opinion is about, some perhaps twice; None: each candidate once.

    Returns:
        A belief about P opinions and the same targets. Votes become probabilities.

    Raises:
        TypeError: If the belief is of another kind.
        StakesError: If the noise has a wrong shape, is no probability or is negative.

    Examples:
        Two members that disagree; a label that is right in four of five cases removes three fifths of the loss that a
        right one does:

        >>> from stakes import CategoricalEnsemble, ZeroOne, score
        >>> from stakes.beliefs import noisy_labels
        >>> members = [[[1.0, 0.0], [0.0, 1.0]]]
        >>> belief = CategoricalEnsemble(candidates=members, contexts=members)
        >>> print(score(ZeroOne(), belief), score(ZeroOne(), noisy_labels(belief, [[0.8, 0.2], [0.2, 0.8]])))
        [0.5] [0.3]
    """
    kinds: dict[type, Callable[[Any, Any, Any], Any]] = {
        CategoricalEnsemble: _noisy_classes,
        VoteEnsemble: _noisy_classes,
        GaussianBelief: _measured,
        GaussianMixtureBelief: _measured_by_hypothesis,
        NormalEnsemble: _measured_by_member,
    }
    if type(belief) not in kinds:
        raise TypeError(
            "noise of annotators is known for ensembles of classes and of normals, Gaussian beliefs and mixtures of "
            f"them; got {type(belief).__name__}"
        )
    return kinds[type(belief)](belief, noise, _positions(belief, rows))


def _positions(belief: Belief, rows: Any) -> Any:
    """[P]: the candidates that opinions are about."""
    if rows is None:
        return np.arange(belief.n_candidates)
    found = np.asarray(rows)
    if found.ndim != 1 or found.dtype.kind not in "iu" or (found < 0).any() or (found >= belief.n_candidates).any():
        raise StakesError(f"rows must be positions of the {belief.n_candidates} candidates; got {rows!r}")
    return found


def _noisy_classes(belief: CategoricalEnsemble | VoteEnsemble, noise: Any, rows: Any) -> CategoricalEnsemble:
    """Each member's probabilities of the label, times the confusion matrix."""
    _, confusion = asarrays(like=belief.like, confusion=noise)
    count, xp = int(belief.n_classes), namespace(belief.like)
    shape = (count, count) if confusion.ndim == 2 else (len(rows), count, count)
    check_shape("the confusion matrix", confusion, shape)
    check_probabilities("each row of the confusion matrix", confusion)
    if isinstance(belief, VoteEnsemble):
        belief = belief.as_probabilities()
    candidates = belief.candidates[xp.asarray(rows), ...]  # [P, K, C]
    opinions = xp.matmul(xp.astype(candidates, confusion.dtype), confusion)
    return replaced(belief, candidates=opinions)


def _variances(belief: Any, noise: Any, rows: Any) -> Array:
    """[P]: what annotators add."""
    _, added = asarrays(like=belief.like, noise=noise)
    check_shape("the variance of an annotator", added, () if added.ndim == 0 else (len(rows),))
    check_all(added >= 0, "the variance of an annotator must be at least 0")
    return added + namespace(belief.like).zeros_like(constant(rows, belief.like))


def _measured(belief: GaussianBelief, noise: Any, rows: Any) -> GaussianBelief:
    added = _variances(belief, noise, rows)
    xp, at = namespace(belief.mean), namespace(belief.mean).asarray(rows)
    own = belief.noise_variance
    return replaced(
        belief,
        candidate_variance=belief.candidate_variance[at] + added,
        covariance=belief.covariance[at, :],
        candidate_covariance=_covariances(belief.candidate_covariance, at, added, xp),
        noise_variance=None if own is None else (own[at] if getattr(own, "ndim", 0) else own) + added,
    )


def _measured_by_hypothesis(belief: GaussianMixtureBelief, noise: Any, rows: Any) -> GaussianMixtureBelief:
    added = _variances(belief, noise, rows)
    xp, at = namespace(belief.mean), namespace(belief.mean).asarray(rows)
    own = belief.noise_variance
    return GaussianMixtureBelief(
        belief.mean,
        belief.variance,
        belief.candidate_mean[:, at],
        belief.candidate_variance[:, at] + added,
        belief.covariance[:, at, :],
        belief.weights,
        _covariances(belief.candidate_covariance, at, added, xp),
        None if own is None else (own[:, at] if getattr(own, "ndim", 0) else own) + added,
    )


def _measured_by_member(belief: NormalEnsemble, noise: Any, rows: Any) -> NormalEnsemble:
    added = _variances(belief, noise, rows)
    xp, at = namespace(belief.like), namespace(belief.like).asarray(rows)
    return NormalEnsemble(
        belief.candidate_mean[at, :],
        xp.sqrt(belief.candidate_sd[at, :] ** 2 + added[:, None]),
        belief.context_mean,
        belief.context_sd,
        belief.member_weights,
        belief.rule,
    )


def _covariances(between: Any, at: Array, added: Array, xp: Any) -> Array | Callable[[int], Array] | None:
    """Between opinions, [P, P] or [S, P, P], or the function to a row of them: noise is each opinion's own."""
    if between is None:
        return None
    own = xp.astype(xp.asarray(np.eye(len(at))), added.dtype)
    if callable(between):
        return lambda i: between(int(at[i]))[..., at] + own[i, :] * added[i]
    return between[..., at, :][..., :, at] + own * added
