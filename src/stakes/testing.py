"""Laws that a loss or a belief of your own must pass; each raises an AssertionError that names the law.

`check_loss(loss, targets)` and `check_belief(belief)` are what the library's own losses and beliefs are tested with.
Sizes: Z targets, N candidates, M contexts, J cells of the label, D statistics, d coordinates of an action, A actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stakes._utils.array import Array, asarrays, column, constant, double, filled, namespace, replaced
from stakes.acquisition import expected_regret
from stakes.acquisition.scores import best_of_knowing
from stakes.beliefs import BatchBelief, Belief, Distribution, DistributionBelief, NormalEnsemble
from stakes.beliefs.base import log_weight
from stakes.losses import AnyLoss, DistributionLoss, LogLoss, Loss, Mahalanobis, SquaredError
from stakes.losses.base import missing_members
from stakes.losses.domains import Classes, Domain, Interval, Vectors, labels_to_indicators, target_axes

__all__ = ["check_belief", "check_loss"]

_BELIEFS = 8
_HALVINGS = 1100  # from one number to the next; most acts take ten
_A_LITTLE = 1e-9
_JUMP = 1e-3  # of the largest difference between acts, or between statistics
_PLACES = 512  # between which statistics are looked at for jumps
_NARROW = 48  # halvings of their distance, after which what is steep has become flat


def check_loss(loss: AnyLoss, targets: Any, n_classes: int | None = None, rtol: float = 1e-8) -> None:
    """Assert the laws of a loss.

    For belief moments E[S] averaged over random parts of the targets:
    - Shapes: S is [..., D], the act [..., d], regrets [...].
    - Optimal act: no other act has a smaller mean loss than `action(E[S])`, whose regret is 0.
    - Regret: it is the mean loss of an act less that of the best act, never negative, and homogeneous in the moments.
    - Reference: measured from any reference, predictions are the same, and losses up to the weight there.
    - Units: `loss(z, prediction(a))` is the loss of act `a`.
    - Finite actions: a loss whose act jumps as the belief moves says so, and its statistics are costs of its actions.
    - Breakpoints: where statistics (or the weight) jump between the least and the largest target, `breakpoints` say so.

    A loss of a whole distribution is asked the same of smooth beliefs around the targets. Jumps are looked for between
    513 places: two between the same two of these can be missed. Kinks are not looked for.

    Args:
        loss: The loss.
        targets: A handful of targets of its domain: [Z], or [Z, d] for vectors; labels for classes.
        n_classes: How many classes there are; None for what the loss or the largest label says.
        rtol: How far numbers that should agree may differ, relative to their scale.

    Raises:
        AssertionError: If a law is broken; the message names it.

    Examples:
        >>> from stakes import Linex
        >>> from stakes.testing import check_loss
        >>> check_loss(Linex(0.5), targets=[-1.0, 0.0, 2.5])
    """
    if isinstance(loss, DistributionLoss):
        _check_distribution_loss(loss, targets, rtol)
        _check_breakpoints(loss, lambda z: namespace(z).exp(loss.log_magnitudes(z)), asarrays(targets=targets)[0])
        return
    missing = ", ".join(missing_members(loss, Loss))
    assert isinstance(loss, Loss), f"{type(loss).__name__} lacks a method of stakes.losses.Loss: {missing}"
    z, labels = _targets(loss, targets, n_classes)
    xp = namespace(z)
    draws = np.random.default_rng(0).dirichlet(np.ones(z.shape[0]), size=_BELIEFS)
    parts = xp.asarray(draws, dtype=z.dtype)  # [8, Z]: beliefs over the targets
    middle = xp.mean(z, axis=0, keepdims=True)
    references = [None] if isinstance(loss.domain, Classes) else [None, z[:1, ...], middle]
    predictions = [_check_from(loss, z, labels, parts, reference, rtol) for reference in references]
    (_check_costs if loss.finite_actions else _check_continuity)(loss, loss.statistics(z, None), parts)
    if isinstance(loss.domain, Interval):
        _check_breakpoints(loss, lambda z: loss.statistics(z, None), z)
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
    values = loss(labels[None, ...], answers[:, None, ...])
    weight = 1.0 if reference is None else xp.exp(log_weight(reference, loss))
    _assert_close(values, losses * weight, rtol, float(xp.max(abs(values))), "units: loss of the prediction")
    return answers


def _check_costs(loss: Loss, statistics: Array, parts: Array) -> None:
    """Statistics [Z, A] are costs of actions, at least 0, and the act is the position of a cheapest one."""
    xp = namespace(statistics)
    scale = float(xp.max(abs(statistics)))
    assert bool(xp.all(statistics >= -1e-12 * scale)), (
        "finite actions: statistics are the costs of actions, at least 0: count them from the cheapest for each target"
    )
    moments = xp.concat([statistics, xp.matmul(parts, statistics)], axis=0)  # of single targets, and of the beliefs
    chosen = column(moments, loss.action(moments))
    _assert_close(chosen, xp.min(moments, axis=-1), 1e-12, scale, "finite actions: the act is the cheapest action")


def _check_continuity(loss: Loss, statistics: Array, parts: Array) -> None:
    """The act does not jump between any two beliefs: halve the way between them where acts differ most.

    An act jumps if it moves by a thousandth of all that acts differ by, however short the way is in the end.
    """
    xp = namespace(statistics)
    nearly = statistics + _A_LITTLE * xp.mean(statistics, axis=0)  # of single targets, of which some may have no weight
    moments = xp.concat([nearly, xp.matmul(parts, statistics)], axis=0)
    first, second = np.triu_indices(moments.shape[0], 1)
    low, high = (xp.take(moments, xp.asarray(each), axis=0) for each in (first, second))  # [P, D]: all pairs
    enough = max(_JUMP * float(xp.max(_gap(loss, low, high))), _A_LITTLE * float(xp.max(abs(loss.action(moments)))))
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2.0
        before = (_gap(loss, low, middle) >= _gap(loss, middle, high))[:, None]
        low, high = xp.where(before, low, middle), xp.where(before, middle, high)
        if not bool(xp.any(_gap(loss, low, high) > enough)):
            return
    raise AssertionError(
        "finite actions: the act jumps as the belief moves. Declare finite_actions = True, with the costs of actions "
        "as statistics: without it, reductions are wrong by several percent (docs/adding_a_loss.md)"
    )


def _check_breakpoints(loss: AnyLoss, statistics: Callable[[Array], Array], z: Array) -> None:
    """Statistics [..., D] of numbers have no jump between the targets [Z] that `breakpoints` do not name.

    Of every two neighbouring places the half with the larger difference is kept, until they are next to each other: a
    function without a jump hardly differs there, however steep it is.
    """
    xp, least, largest = namespace(z), float(namespace(z).min(z)), float(namespace(z).max(z))
    places = xp.asarray(np.linspace(least, largest, _PLACES + 1), dtype=double(z).dtype)
    low, high, middle = places[:-1], places[1:], places[1:]
    values = statistics(places)
    if largest <= least or not bool(xp.all(xp.isfinite(values))):
        return
    enough = _JUMP * (xp.max(values, axis=0) - xp.min(values, axis=0)) + _A_LITTLE * xp.max(abs(values), axis=0)  # [D]
    enough = xp.where(enough > 0.0, enough, xp.ones_like(enough))
    for _ in range(_NARROW):
        middle = low + (high - low) / 2.0
        at = statistics(middle)
        first, second = (xp.max(abs(at - statistics(end)) / enough, axis=-1) for end in (low, high))
        low, high = xp.where(first >= second, low, middle), xp.where(first >= second, middle, high)
    jumps = xp.max(abs(statistics(high) - statistics(low)) / enough, axis=-1) > 1.0
    near = (largest - least) / _PLACES * 1e-6
    found = [float(low[i]) for i in range(_PLACES) if bool(jumps[i])]
    unknown = [place for place in found if all(abs(place - each) > near for each in loss.breakpoints)]
    assert not unknown, (
        f"breakpoints: statistics jump at {', '.join(f'{each:.6g}' for each in unknown[:5])}, which breakpoints "
        f"{tuple(loss.breakpoints)} do not name. Declare every target at which the loss or its weight jumps or kinks: "
        "integration splits there, and has to search for those that it is not told"
    )


def _gap(loss: Loss, moments: Array, others: Array) -> Array:
    """[P]: how far the acts of two lots of moments [P, D] differ."""
    return namespace(moments).max(abs(loss.action(moments) - loss.action(others)), axis=-1)


def _check_distribution_loss(loss: DistributionLoss, targets: Any, rtol: float) -> None:
    """The laws of a loss of a whole distribution, on mixtures of normals around the targets."""
    beliefs, marks = _mixtures(loss, targets)
    xp, one = namespace(beliefs[0].mass), beliefs[0]
    z = xp.reshape(one.origin[:, None, None] + one.nodes, (1, -1))  # [1, Q]
    shares = [xp.reshape(each.mass, (1, -1)) / xp.exp(loss.log_magnitudes(z)[..., 0]) for each in beliefs]
    losses = [loss(z, loss.prediction(each)) for each in beliefs]  # of the answer to each belief, at each node
    for i, belief in enumerate(beliefs):
        means = [xp.sum(shares[i] * each, axis=1) for each in losses]
        scale = max(float(abs(each)[0]) for each in means)
        _assert_close(loss.uncertainty(belief, marks[i]), means[i], rtol, scale, "uncertainty: mean loss of the answer")
        for mean, prior, mark in zip(means, beliefs, marks, strict=True):
            regret = loss.regret(belief, prior, mark)
            _assert_close(regret, mean - means[i], rtol, scale, "regret: mean loss of an answer less that of the best")
            assert float(regret[0]) >= -1e-12 * scale, "regret: never negative"
            tripled = loss.regret(replaced(belief, mass=3.0 * belief.mass), prior, mark)
            _assert_close(tripled, 3.0 * regret, rtol, scale, "regret: homogeneous in the distribution")


def _mixtures(loss: DistributionLoss, targets: Any) -> tuple[list[Distribution], list[Array]]:
    """Eight distributions of one context, on panels that split at the marks of all of them, and those marks."""
    (z,) = asarrays(targets=targets)
    xp, spread = namespace(z), float(namespace(z).std(z)) or 1.0
    draws = constant(np.random.default_rng(0).dirichlet(np.ones(z.shape[0]), size=_BELIEFS), z)  # [8, Z]
    beliefs = [NormalEnsemble(z[None, :], spread, z[None, :], spread, draws[i, :]) for i in range(_BELIEFS)]
    reference = beliefs[0].reference(loss)
    marks = [loss.marks(each.distribution(loss, reference, double(z)[None, :0])) for each in beliefs]
    return [each.distribution(loss, reference, xp.concat(marks, axis=1)) for each in beliefs], marks


def check_belief(belief: Belief, loss: Loss | None = None, rtol: float = 1e-6) -> None:
    """Assert the laws of a belief.

    - Shapes: moments [M, D], split moments [N, M, J, D] with J at most `n_cells`.
    - Split: over cells, split moments sum to the moments.
    - Total mass: the moment of a constant is 1, and no cell has negative mass.
    - Blocks: `take` of candidates and contexts gives that block of everything.
    - Value: no label is worth less than nothing, or more than knowing the target.
    - Distributions, where the belief gives them: a total mass of 1, today and over cells.
    - Batches, where it has `start_batch`: the same belief about targets, and two labels are worth no less than one.

    Args:
        belief: The belief.
        loss: A loss that it should serve; None for log loss of classes and squared errors otherwise.
        rtol: How far numbers that should agree may differ, relative to their scale.

    Raises:
        AssertionError: If a law is broken; the message names it.

    Examples:
        >>> from stakes import GaussianBelief
        >>> from stakes.testing import check_belief
        >>> check_belief(GaussianBelief([0.0, 1.0], [1.0, 1.0], [1.0], [[0.6, 0.2]]))
    """
    assert isinstance(belief, Belief), f"{type(belief).__name__} lacks a method of stakes.beliefs.Belief"
    assert not isinstance(loss, DistributionLoss), "a loss with statistics is wanted: distributions are checked anyway"
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
    most = best_of_knowing(loss, belief)
    assert bool(xp.all(reductions <= most * (1.0 + rtol))), "value: no label is worth more than knowing the target"
    if isinstance(belief, DistributionBelief) and isinstance(belief.domain, Interval):
        _check_distributions(belief, rtol)
    if isinstance(belief, BatchBelief) and n_candidates:
        _check_batches(belief, loss, moments, reductions, rtol)


def _check_batches(belief: Any, loss: Loss, moments: Array, alone: Array, rtol: float) -> None:
    """Labels that come with those of a batch leave today's belief as it is, and tell no less than they do alone."""
    xp, scale = namespace(moments), float(namespace(moments).max(abs(alone)))
    none, one = belief.start_batch(()), belief.start_batch((belief.n_candidates - 1,))
    for each in (none, one):
        assert (each.n_candidates, each.n_contexts) == alone.shape, "batches: the same candidates and contexts"
        found = each.moments(loss, each.reference(loss))
        _assert_close(found, moments, rtol, float(xp.max(abs(moments))), "batches: the same belief about targets")
    _assert_close(expected_regret(loss, none), alone, rtol, scale, "batches: a batch of none tells nothing")
    both = expected_regret(loss, one)  # [N, M]: of each label and the last
    least = xp.maximum(alone, alone[-1:, :])
    assert bool(xp.all(both >= least - rtol * scale)), "batches: two labels are worth no less than either"


def _check_distributions(belief: Any, rtol: float) -> None:
    """Assert that distributions have a total mass of 1, today and over the cells of a label."""
    one = _One(belief.domain)
    reference, marks = belief.reference(one), filled((belief.n_contexts, 0), 0.0, belief.like)
    total = belief.distribution(one, reference, marks).total()
    cells = belief.regret_over_cells(lambda posterior, prior, marks: posterior.total(), one, reference, marks)
    ones = namespace(total).exp(-double(reference.log_scale))
    _assert_close(total, ones, rtol, 1.0, "distributions: a total mass of 1")
    _assert_close(cells, ones + namespace(cells).zeros_like(cells), rtol, 1.0, "distributions: cells sum to the total")


def _usual_loss(domain: Domain) -> Loss:
    if isinstance(domain, Vectors):
        return Mahalanobis(np.eye(domain.count))
    return LogLoss() if isinstance(domain, Classes) else SquaredError()


class _One:
    """The statistic that is 1 for every target."""

    breakpoints: tuple[float, ...] = ()
    finite_actions = False

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def log_magnitudes(self, z: Array) -> Array:
        return namespace(z).zeros_like(z[..., :1] if target_axes(self.domain) else z[..., None])

    def statistics(self, z: Array, reference: Array | None = None) -> Array:
        return namespace(z).ones_like(z[..., :1] if target_axes(self.domain) else z[..., None])


def _targets(loss: Loss, targets: Any, n_classes: int | None) -> tuple[Array, Array]:
    """Targets as statistics take them, and as people write them."""
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
