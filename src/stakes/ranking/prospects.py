"""What the loss is expected to be today, and the most that labels could save of it, for one decision.

Sizes: M contexts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes.acquisition import expected_reduction, uncertainty
from stakes.acquisition.fallback import MAX_CONFIGURATIONS
from stakes.acquisition.joint import has_batches, start_batch
from stakes.beliefs import Belief, GaussianBelief, WarpedGaussianBelief
from stakes.models.tables import Host, on_host
from stakes.ranking.outlook_result import Amount
from stakes.ranking.question import Question


def expected_loss(question: Question) -> Amount:
    """E_c[h]: the expected loss of the best answers today."""
    each = on_host(uncertainty(question.loss, question.first())).astype(float)
    return _mean(each, question.weights)


def most_saved(question: Question) -> Amount:
    """The most that labels can save, however many there are and wherever they are bought.

    Under a Gaussian belief (also a warped one) they tell the function, and leave the noise of the outcome; under an
    ensemble they tell the member. Of any other belief no more is known than that they save all of the expected loss.
    """
    belief = question.first()
    if isinstance(belief, GaussianBelief | WarpedGaussianBelief):
        return _mean(on_host(expected_reduction(question.loss, _oracle(question, belief)))[0], question.weights)
    if has_batches(belief):
        shares = np.exp(on_host(_start(question, belief).log_most()).astype(float))  # [M]: p(c) times what is saved
        return Amount(float(shares.sum()), context_error(shares, question.weights))
    return expected_loss(question)


def context_error(shares: Host, weights: tuple[float, ...]) -> float:
    """The standard error of a mean over contexts, sum_c p(c) v_c, of `shares` [M] = p(c) v_c."""
    return float(np.sqrt(np.sum((shares - np.asarray(weights) * shares.sum()) ** 2)))


def _mean(values: Host, weights: tuple[float, ...]) -> Amount:
    shares = np.asarray(weights) * values
    return Amount(float(shares.sum()), context_error(shares, weights))


def _start(question: Question, belief: Belief) -> Any:
    return start_batch(question.loss, belief, question.weights, np.random.default_rng(0), MAX_CONFIGURATIONS)


def _oracle(question: Question, belief: GaussianBelief | WarpedGaussianBelief) -> Belief:
    """One candidate that tells the function at every context: rho_c = (variance without noise) / (variance)."""
    function = _gaussian(question.with_target("latent").first())
    label = _gaussian(belief)
    known = np.clip(on_host(function.variance), 0.0, on_host(label.variance))  # [M]
    told = GaussianBelief(on_host(label.mean), on_host(label.variance), np.ones(1), np.sqrt(known)[None, :])
    return told if isinstance(belief, GaussianBelief) else WarpedGaussianBelief(told, belief.warp)


def _gaussian(belief: Any) -> GaussianBelief:
    latent: GaussianBelief = belief.latent if isinstance(belief, WarpedGaussianBelief) else belief
    return latent
