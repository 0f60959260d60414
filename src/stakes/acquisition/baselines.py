"""The usual acquisition rules, which know no loss: what to compare with.

A rule takes a belief and gives one number for each candidate, larger is better. It looks at candidates only: contexts
and what will be decided there do not enter. All is computed in double precision and returned in that of the belief.
Sizes: N candidates, n of a block, J cells of the label (classes or nodes), K members, C classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._array import Array, check_all, constant, double, namespace, ratio, slices
from stakes.acquisition.vector import label_entropy, label_information, label_spread
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VoteEnsemble,
)
from stakes.domains import labels_to_indicators
from stakes.losses import NegativeEntropy

__all__ = [
    "BASELINES",
    "bald",
    "least_confident",
    "margin",
    "predictive_entropy",
    "predictive_variance",
    "query_by_committee",
    "random_scores",
]

_BLOCK = 2**18  # numbers that a temporary may hold, or those of one candidate
_ROUNDING = 1e-6  # relative, by which the variance of a label may fall below that of its noise


def random_scores(belief: Belief, rng: np.random.Generator) -> Array:
    """[N]: uniform draws, so that the best is a random candidate."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a NumPy generator such as numpy.random.default_rng(0); got {rng!r}")
    return constant(rng.random(belief.n_candidates), belief.like)


def bald(belief: Belief) -> Array:
    """[N]: the mutual information of the label and the member (the function, under a Gaussian belief), in nats.

    Ensembles: sum_y P(y) KL(p(k | y) || q), y by classes or by the rule of the belief: entropies are not subtracted, so
    that little information keeps its digits. Gaussian: log(candidate_variance / noise_variance) / 2, the determinants
    of both for vectors.
    """
    return _like(belief, _information(belief))


def predictive_entropy(belief: Belief) -> Array:
    """[N]: the entropy of the label in nats; of its density where it is real, which may be negative."""
    if isinstance(belief, VectorGaussianBelief):
        return _like(belief, label_entropy(belief))
    if isinstance(belief, GaussianBelief):
        return _like(belief, _normal_entropy(double(belief.candidate_variance)))
    if isinstance(belief, NormalEnsemble):
        members = _normal_entropy(double(belief.candidate_sd) ** 2)  # [N, K]
        return _like(belief, _information(belief) + namespace(members).matmul(members, _member_shares(belief)))
    return _like(belief, _entropy(_mean_probabilities("predictive_entropy", belief)))


def margin(belief: Belief) -> Array:
    """[N]: minus the difference between the two largest mean probabilities; 0 for one class."""
    mean = _mean_probabilities("margin", belief)
    return _like(belief, mean[:, max(mean.shape[1] - 2, 0)] - mean[:, -1])


def least_confident(belief: Belief) -> Array:
    """[N]: 1 - max_c p(c), how probable it is that the most probable class is wrong."""
    return _like(belief, _rest(_mean_probabilities("least_confident", belief)))


def predictive_variance(belief: Belief) -> Array:
    """[N]: the variance of the label (vectors: its trace); for classes that of its indicator, 1 - sum_c p(c)^2."""
    if isinstance(belief, VectorGaussianBelief):
        return _like(belief, label_spread(belief))
    if isinstance(belief, GaussianBelief):
        return _like(belief, belief.candidate_variance)
    if isinstance(belief, NormalEnsemble):
        variances = double(belief.candidate_sd) ** 2  # [N, K]
        within = namespace(variances).matmul(variances, _member_shares(belief))
        return _like(belief, within + _variance_of_means(belief))
    return _like(belief, _gini(_mean_probabilities("predictive_variance", belief)))


def query_by_committee(belief: Belief) -> Array:
    """[N]: how far members disagree: the entropy of their votes for a class, or the variance of their means.

    A member votes for its most probable class, the first of those that tie.
    """
    if isinstance(belief, NormalEnsemble):
        return _like(belief, _variance_of_means(belief))
    if isinstance(belief, GaussianBelief):
        raise TypeError(
            "query_by_committee asks members, and a GaussianBelief has none. Use predictive_variance or bald, or draw "
            "functions from the model and give their values as a NormalEnsemble."
        )
    return _like(belief, _entropy(_mean_probabilities("query_by_committee", belief, _votes)))


BASELINES: dict[str, Callable[[Belief, np.random.Generator], Array]] = {
    "random": random_scores,
    "bald": lambda belief, rng: bald(belief),
    "predictive entropy": lambda belief, rng: predictive_entropy(belief),
    "margin": lambda belief, rng: margin(belief),
    "least confident": lambda belief, rng: least_confident(belief),
    "predictive variance": lambda belief, rng: predictive_variance(belief),
    "query by committee": lambda belief, rng: query_by_committee(belief),
}
"""All of them by name and with one signature, (belief, rng) -> [N], to loop over."""


def _information(belief: Belief) -> Array:
    """[N]: the mutual information that `bald` returns."""
    if isinstance(belief, VectorGaussianBelief):
        return label_information(belief)
    if isinstance(belief, GaussianBelief):
        excess = _excess_over_noise(belief)
        return namespace(excess).log1p(excess) / 2.0
    if isinstance(belief, NormalEnsemble):
        cells = belief.rule.size(belief.candidate_mean, belief.candidate_sd)
        return _by_blocks(belief, cells, _mutual_information)
    if isinstance(belief, CategoricalEnsemble):
        return _by_blocks(belief, belief.n_classes, _mutual_information)
    return _entropy(_mean_probabilities("bald", belief))  # votes: a member has no entropy of its own


def _excess_over_noise(belief: GaussianBelief) -> Array:
    """[N]: candidate_variance / noise_variance - 1."""
    if belief.noise_variance is None:
        raise ValueError("bald needs the noise_variance of the GaussianBelief; got None. Give it when you make one.")
    noise = double(belief.noise_variance)
    check_all(
        noise > 0,
        "bald needs a positive noise_variance; got 0, and a label without noise tells infinitely much. Use "
        "predictive_variance, which ranks alike where the noise is the same everywhere.",
    )
    excess = (double(belief.candidate_variance) - noise) / noise
    check_all(
        excess >= -_ROUNDING,
        "candidate_variance must include noise_variance, but is smaller for some candidates: add the noise to it",
    )
    return namespace(excess).clip(excess, 0.0, None)


def _mutual_information(block: CategoricalEnsemble | NormalEnsemble) -> Array:
    """[n]: sum_j P(j) KL(p(k | j) || q); given j nothing is out of range, however improbable j is."""
    xp, shares = namespace(block.like), _member_shares(block)
    if isinstance(block, NormalEnsemble):
        joint = block.rule.masses(double(block.candidate_mean), double(block.candidate_sd), shares)  # [n, J, K]
    else:
        joint = shares * xp.permute_dims(double(block.candidates), (0, 2, 1))
    mass = xp.sum(joint, axis=2)  # [n, J]
    return xp.sum(mass * NegativeEntropy().divergence(ratio(joint, mass[..., None]), shares), axis=1)


def _probabilities(block: CategoricalEnsemble | VoteEnsemble) -> Array:
    """[n, K, C]: the probabilities that members give."""
    return double(block.candidates) if isinstance(block, CategoricalEnsemble) else _votes(block)


def _votes(block: CategoricalEnsemble | VoteEnsemble) -> Array:
    """[n, K, C]: 1 for the class that a member votes for, 0 for others."""
    xp = namespace(block.like)
    votes = xp.argmax(block.candidates, axis=2) if isinstance(block, CategoricalEnsemble) else block.candidates
    return labels_to_indicators(double(votes), block.n_classes)


def _mean_probabilities(rule: str, belief: Belief, members: Callable[[Any], Array] = _probabilities) -> Array:
    """[N, C]: the mean of `members`, smallest first, as no rule here asks which class is which."""
    if not isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        raise TypeError(
            f"{rule} does not take a {type(belief).__name__}. It takes a CategoricalEnsemble or VoteEnsemble; bald, "
            "predictive_entropy and predictive_variance also take a GaussianBelief, NormalEnsemble or "
            "VectorGaussianBelief."
        )
    xp, shares = namespace(belief.like), _member_shares(belief)
    mean = _by_blocks(belief, belief.n_classes, lambda block: xp.matmul(shares, members(block)))
    return xp.sort(mean / xp.sum(mean, axis=1, keepdims=True), axis=1)  # exactly 1 where all agree


def _rest(ascending: Array) -> Array:
    """[N]: the mass of all classes but the largest, which 1 - max would round away near certainty."""
    return namespace(ascending).sum(ascending[:, :-1], axis=1)


def _entropy(ascending: Array) -> Array:
    """[N]: - sum p log p, with log(1 - rest) for the largest, which may be all but 1."""
    xp, others = namespace(ascending), ascending[:, :-1]
    logs = xp.log(xp.where(others > 0, others, xp.ones_like(others)))
    return -xp.sum(others * logs, axis=1) - ascending[:, -1] * xp.log1p(-_rest(ascending))


def _gini(ascending: Array) -> Array:
    """[N]: sum p (1 - p), with the rest for 1 - p of the largest."""
    xp, others = namespace(ascending), ascending[:, :-1]
    return xp.sum(others * (1.0 - others), axis=1) + ascending[:, -1] * _rest(ascending)


def _normal_entropy(variance: Array) -> Array:
    """[...]: log(2 pi e variance) / 2; -inf for a label that is known."""
    xp = namespace(variance)
    logs = xp.log(xp.where(variance > 0, variance, xp.ones_like(variance)))
    return xp.where(variance > 0, (math.log(2.0 * math.pi * math.e) + logs) / 2.0, xp.full_like(logs, -xp.inf))


def _variance_of_means(belief: NormalEnsemble) -> Array:
    """[N]: sum_k q_k (mean_k - mean)^2, counted from the first member so that equal ones give exactly 0."""
    xp, shares = namespace(belief.like), _member_shares(belief)
    gaps = double(belief.candidate_mean) - double(belief.candidate_mean[:, :1])  # [N, K]
    return xp.matmul((gaps - xp.matmul(gaps, shares)[:, None]) ** 2, shares)


def _member_shares(belief: CategoricalEnsemble | VoteEnsemble | NormalEnsemble) -> Array:
    """[K]: q, which sums to one in double precision too."""
    weights = double(belief.member_weights)
    return weights / namespace(weights).sum(weights)


def _by_blocks(belief: Any, cells: int, of: Callable[[Any], Array]) -> Array:
    """[N, ...]: `of` blocks of candidates, each of which needs `cells` numbers a member."""
    parts = slices(belief.n_candidates, max(1, _BLOCK // (cells * belief.member_weights.shape[0])))
    return namespace(belief.like).concat([of(belief.take(part, slice(None))) for part in parts], axis=0)


def _like(belief: Belief, scores: Array) -> Array:
    return namespace(scores).astype(scores, belief.like.dtype)
