"""Laws that a loss or a belief of your own must pass; each raises an AssertionError that names the law.

`check_loss(loss, targets)` and `check_belief(belief)` are what the library's own losses and beliefs are tested with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes._array import Array, asarrays, namespace
from stakes.acquisition import expected_regret
from stakes.acquisition.reduction import OfAction
from stakes.beliefs import Belief
from stakes.beliefs.base import log_weight
from stakes.domains import Classes, Domain, Vectors, labels_to_indicators, target_axes
from stakes.losses import LogLoss, Loss, Mahalanobis, SquaredError

__all__ = ["check_belief", "check_loss"]

_BELIEFS = 8


def check_loss(loss: Loss, targets: Any, n_classes: int | None = None, rtol: float = 1e-8) -> None:
    """Assert the laws of a loss on a handful of `targets` of its domain (labels for classes, `n_classes` of them).

    Targets are [Z], or [Z, d] for vectors.

    For belief moments E[S] averaged over random parts of the targets:
    - Shapes: S is [..., D], the act [..., d], regrets [...].
    - Optimal act: no other act has a smaller mean loss than `action(E[S])`, whose regret is 0.
    - Regret: it is the mean loss of an act less that of the best act, never negative, and homogeneous in the moments.
    - Reference: measured from any reference, predictions are the same, and losses up to the weight there.
    - Units: `loss(z, prediction(a))` is the loss of act `a`.
    """
    assert isinstance(loss, Loss), f"{type(loss).__name__} lacks a method of stakes.losses.Loss"
    z, labels = _targets(loss, targets, n_classes)
    xp = namespace(z)
    draws = np.random.default_rng(0).dirichlet(np.ones(z.shape[0]), size=_BELIEFS)
    parts = xp.asarray(draws, dtype=z.dtype)  # [8, Z]: beliefs over the targets
    middle = xp.mean(z, axis=0, keepdims=True)
    references = [None] if isinstance(loss.domain, Classes) else [None, z[:1, ...], middle]
    predictions = [_check_from(loss, z, labels, parts, reference, rtol) for reference in references]
    for answers in predictions[1:]:
        scale = float(xp.max(abs(predictions[0])))
        _assert_close(answers, predictions[0], rtol, scale, "reference: the same prediction from any reference")


def _check_from(loss: Loss, z: Array, labels: Array, parts: Array, reference: Array | None, rtol: float) -> Array:
    """The laws of a loss measured from one reference; returns the predictions of the beliefs `parts`."""
    xp = namespace(z)
    statistics = loss.statistics(z, reference)  # [Z, D]
    assert statistics.shape[:-1] == labels.shape[:1], f"statistics: [..., D] wanted, got {statistics.shape}"
    moments = xp.matmul(parts, statistics)  # [8, D]
    acts = loss.action(moments)  # [8, d]
    shape = (*moments.shape[:-1], acts.shape[-1])
    assert acts.shape == shape, f"action: [..., d] wanted for moments [..., D], got {acts.shape}"
    losses = loss.pointwise(z[None, ...], acts[:, None, :], reference)  # [8, Z]: of each act for each target
    mean_loss = xp.matmul(parts, losses.T)  # [8, 8]: of belief i acting as belief j would
    regrets = loss.regret(moments[:, None, :], acts[None, :, :], reference)  # [8, 8]
    best = xp.linalg.diagonal(mean_loss)[:, None]
    scale = float(xp.max(abs(mean_loss)))
    _assert_close(regrets, mean_loss - best, rtol, scale, "regret: mean loss of an act less that of the best act")
    assert bool(xp.all(regrets >= -1e-12 * scale)), "regret: never negative"
    tripled = loss.regret(3.0 * moments[:, None, :], acts[None, :, :], reference)
    _assert_close(tripled, 3.0 * regrets, rtol, scale, "regret: homogeneous in the moments")
    answers = loss.prediction(acts, reference)
    said = loss(labels[None, ...], answers[:, None, ...])
    weight = 1.0 if reference is None else xp.exp(log_weight(reference, loss))
    _assert_close(said, losses * weight, rtol, float(xp.max(abs(said))), "units: loss of the prediction")
    return answers


def check_belief(belief: Belief, loss: Loss | None = None, rtol: float = 1e-6) -> None:
    """Assert the laws of a belief, with a `loss` it should serve (log loss for classes, squared errors otherwise).

    - Shapes: moments [M, D], split moments [N, M, J, D] with J at most `n_cells`.
    - Split: over cells, split moments sum to the moments.
    - Total mass: the moment of a constant is 1, and no cell has negative mass.
    - Blocks: `take` of candidates and contexts gives that block of everything.
    - Value: no label is worth less than nothing, or more than knowing the target.
    """
    assert isinstance(belief, Belief), f"{type(belief).__name__} lacks a method of stakes.beliefs.Belief"
    if loss is None:
        loss = _usual_loss(belief.domain)
    xp = namespace(belief.like)
    n_candidates, n_contexts = belief.n_candidates, belief.n_contexts
    reference = belief.reference(loss)
    moments = belief.moments(loss, reference)
    split = belief.split_moments(loss, reference)
    assert moments.ndim == 2, f"moments: [M, D] wanted, got {moments.shape}"
    assert moments.shape[0] == n_contexts, f"moments: {n_contexts} contexts wanted, got {moments.shape}"
    shape = (n_candidates, n_contexts, split.shape[2], moments.shape[1])
    assert split.shape == shape, f"split moments: [N, M, J, D] = {shape} wanted, got {split.shape}"
    assert split.shape[2] <= belief.n_cells(loss), "split moments: no more than n_cells cells"
    scale = float(xp.max(abs(moments)))
    _assert_close(
        xp.sum(split, axis=2),
        moments[None, ...] + xp.zeros_like(split[:, :, 0, :]),
        rtol,
        scale,
        "split: sums to moments",
    )
    one = _One(belief.domain)
    mass = belief.split_moments(one, belief.reference(one))[..., 0]  # [N, M, J]
    total = belief.moments(one, belief.reference(one))[:, 0]
    _assert_close(total, xp.ones_like(total), rtol, 1.0, "total mass: the moment of 1 is 1")
    assert bool(xp.all(mass >= -1e-12)), "total mass: no cell has negative mass"
    candidates, contexts = slice(n_candidates // 2, n_candidates), slice(0, (n_contexts + 1) // 2)
    reductions = expected_regret(loss, belief)
    block = expected_regret(loss, belief.take(candidates, contexts))
    tolerance = float(xp.max(abs(reductions))) if n_candidates else 0.0
    _assert_close(block, reductions[candidates, contexts], rtol, tolerance, "blocks: take gives that block")
    assert bool(xp.all(reductions >= -1e-12 * tolerance)), "value: no label is worth less than nothing"
    knowing = OfAction(loss, loss.action(moments), lambda z, a, point: loss.regret(loss.statistics(z, point), a, point))
    most = belief.moments(knowing, reference)[:, 0] * xp.exp(reference.log_scale)
    assert bool(xp.all(reductions <= most * (1.0 + rtol))), "value: no label is worth more than knowing the target"


def _usual_loss(domain: Domain) -> Loss:
    if isinstance(domain, Vectors):
        return Mahalanobis(np.eye(domain.count))
    return LogLoss() if isinstance(domain, Classes) else SquaredError()


class _One:
    """The statistic that is 1 for every target."""

    breakpoints: tuple[float, ...] = ()

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def log_magnitudes(self, z: Array) -> Array:
        return namespace(z).zeros_like(z[..., :1] if target_axes(self.domain) else z[..., None])

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        return namespace(z).ones_like(z[..., :1] if target_axes(self.domain) else z[..., None])


def _targets(loss: Loss, targets: Any, n_classes: int | None) -> tuple[Array, Array]:
    """Targets as the waist takes them, and as people write them."""
    (labels,) = asarrays(targets=targets)
    axes = 2 if isinstance(loss.domain, Vectors) else 1
    assert labels.ndim == axes, f"targets: a handful, shape [Z] (vectors: [Z, d]) wanted, got {labels.shape}"
    if not isinstance(loss.domain, Classes):
        return labels, labels
    count = loss.domain.count or n_classes or 1 + int(namespace(labels).max(labels))
    return labels_to_indicators(labels, count), labels


def _assert_close(actual: Array, wanted: Array, rtol: float, scale: float, law: str) -> None:
    xp = namespace(actual)
    gap = float(xp.max(abs(actual - wanted))) if actual.shape and 0 not in actual.shape else 0.0
    assert gap <= rtol * scale, f"{law}: differs by {gap:.3g}, {rtol * scale:.3g} allowed"
