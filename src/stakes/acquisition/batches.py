"""Stochastic batches: candidates drawn by their single scores (Kirsch et al., "Stochastic Batch Acquisition").

Scores change as labels come in, and a batch of the top n holds n of much the same. Drawing spreads it out at the price
of one scoring, without joint worth. Sizes: N candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from stakes._utils.array import Array, constant, double, filled, log_of, namespace
from stakes.acquisition.batch_states import Batch, obstacle, start_batch
from stakes.acquisition.fallback import MAX_CONFIGURATIONS, checked_prices, gains_of, log_floor, log_smallest
from stakes.acquisition.forms import check_pair
from stakes.acquisition.reduction import unscaled
from stakes.acquisition.scores import score
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss

Stochastic = Literal["power", "softmax"]


def check_stochastic(stochastic: str, coldness: float, rng: np.random.Generator | None) -> np.random.Generator:
    """The generator, or an error that says which setting is wrong."""
    if stochastic not in ("power", "softmax"):
        raise StakesError(f'stochastic must be "power", "softmax" or None; got {stochastic!r}')
    if not (isinstance(coldness, Real) and math.isfinite(coldness) and coldness > 0):
        raise StakesError(f"coldness must be a positive number: the larger, the nearer to the top n; got {coldness!r}")
    if rng is None:
        raise StakesError(f"stochastic={stochastic!r} draws the batch: give rng, such as numpy.random.default_rng(1)")
    return rng


def drawn_order(scores: Array, stochastic: Stochastic, coldness: float, rng: np.random.Generator) -> Array:
    """[N]: all candidates in the order they are drawn, without replacement, each in proportion to a weight.

    The weight is score^coldness ("power") or exp(coldness score / largest score) ("softmax": relative to the largest,
    so that units do not matter). By Gumbel noise on its log, sorted once. Under "power" scores of 0 come last, in any
    order.
    """
    xp, scores = namespace(scores), double(scores)
    noise = constant(rng.gumbel(size=scores.shape[0]), scores)
    largest = float(xp.max(scores))
    if stochastic == "softmax":
        return _descending(noise + coldness * scores / (largest if largest > 0 else 1.0))
    positive = scores > 0
    keys = noise + coldness * log_of(scores / (largest if largest > 0 else 1.0))
    lowest = float(xp.min(xp.where(positive, keys, xp.zeros_like(keys))))
    return _descending(xp.where(positive, keys, noise + (lowest - float(xp.max(noise)) - 1.0)))


def _descending(keys: Array) -> Array:
    return namespace(keys).argsort(keys, descending=True, stable=True)


# ----------------------------------------------------------------------
# Several labels at once: the batch whose labels together lower the expected loss most, chosen one by one.
#
# Greedy on the marginal gain of the *joint* reduction, E_c[EUR(batch; c)], or drawn by single scores. Sizes: N
# candidates, n picks.

_ROUNDING = 1e-12  # of the budget: three labels at 0.1 are within one of 0.3


@dataclass(frozen=True, eq=False)
class Selection:
    """A batch, in the order it was chosen."""

    indices: tuple[int, ...]
    """Positions of the candidates."""
    joint_reduction: Array | None
    """[n]: what the labels of the first 1, 2, ... n are worth together, for one decision; None where that is not known
    (a batch drawn under a belief of your own, or a Gaussian one without `candidate_covariance`)."""
    sampling_error: Array | None
    """[n]: the standard error of each joint reduction; 0 where nothing was sampled."""
    context_error: Array | None
    """[n]: its standard error over contexts, where those are draws of the contexts to come."""
    method: str
    """"exact", "enumerated", "sampled" or "stochastic"."""
    ranked_by: tuple[str, ...]
    """[n]: what each pick was the best in: "gain" in joint reduction; where no candidate had any, "worth of 8 such
    labels" (2, 4, ... 1024) or "variance reduction"; "power of score" or "softmax of score" for one that was drawn."""


def select(
    loss: AnyLoss,
    belief: Belief,
    n: int,
    *,
    costs: Any = None,
    budget: float | None = None,
    context_weights: Any = None,
    rng: np.random.Generator | None = None,
    max_configurations: int = MAX_CONFIGURATIONS,
    pending: Sequence[int] = (),
    stochastic: Stochastic | None = None,
    coldness: float = 1.0,
) -> Selection:
    """Choose up to `n` candidates to label together, none twice; fewer if the `budget` does not reach.

    With `costs` [N], by the gain for each unit of cost. Under Gaussian beliefs the joint reduction is exact; of an
    ensemble's labels configurations beyond `max_configurations` are sampled with `rng` (default_rng(0) without one).
    `pending` candidates have labels on their way: they are not chosen, and what is told comes on top of them.
    Where no candidate gains anything (for a finite set of actions: above 1e-12 of the most that labels can be worth)
    the pick is by the worth of 2, 4, 8, ... labels like it, then by variance reduction (see `fallback_scores`).

    With `stochastic`, candidates are drawn with `rng` instead, each in proportion to its score^coldness ("power") or
    exp(coldness score / largest score) ("softmax"), under any belief; scores are those of single labels, for each unit
    of cost. Under "power" a score of 0 is drawn only when no other is left.
    """
    check_pair(loss, belief)
    _check_sizes(belief, n, budget, max_configurations)
    waiting = _checked_pending(belief, n, pending)
    purse = _Purse(checked_prices(costs, belief), math.inf if budget is None else float(budget), waiting)
    if stochastic is not None:
        rng = check_stochastic(stochastic, coldness, rng)
        scores, _ = score(loss, belief, context_weights, costs, return_log_scale=True)
        batch = None if obstacle(belief) else start_batch(loss, belief, context_weights, rng, max_configurations)
        before = _started(batch, waiting)
        picks = _drawn(batch, purse, drawn_order(scores, stochastic, coldness, rng), f"{stochastic} of score")
        return _selection(loss, belief, picks, n, batch, before, "stochastic")
    if error := obstacle(belief):
        raise error
    batch = start_batch(loss, belief, context_weights, rng or np.random.default_rng(0), max_configurations)
    before = _started(batch, waiting)
    picks = _greedy(batch, purse, log_floor(loss, belief, batch))
    return _selection(loss, belief, picks, n, batch, before, None)


def _check_sizes(belief: Belief, n: int, budget: float | None, max_configurations: int) -> None:
    if not isinstance(n, Integral) or not 0 < n <= belief.n_candidates:
        raise StakesError(f"n must be a whole number from 1 to {belief.n_candidates}, the candidates; got {n!r}")
    if budget is not None and not budget > 0:
        raise StakesError(f"budget must be positive, in the unit of the costs; got {budget!r}")
    if not isinstance(max_configurations, int) or max_configurations < 1:
        raise StakesError(f"max_configurations must be a whole number, 1 or more; got {max_configurations!r}")


def _checked_pending(belief: Belief, n: int, pending: Sequence[int]) -> tuple[int, ...]:
    """The candidates on their way, each once; there are n others."""
    waiting = tuple(dict.fromkeys(pending))
    if bad := [each for each in waiting if not isinstance(each, Integral) or not 0 <= each < belief.n_candidates]:
        raise StakesError(f"pending must hold positions from 0 to {belief.n_candidates - 1}; got {bad[0]!r}")
    if n > (free := belief.n_candidates - len(waiting)):
        raise StakesError(f"n must be at most {free}, the candidates that are not pending; got {n}")
    return tuple(int(each) for each in waiting)


def _started(batch: Batch | None, pending: tuple[int, ...]) -> Array | None:
    """[M]: `log_contexts` of a batch once it holds the pending candidates; None without any."""
    if batch is None or not pending:
        return None
    for candidate in pending:
        batch.add(candidate)
    return batch.log_contexts()


@dataclass(frozen=True)
class _Pick:
    candidate: int
    log_reduction: float
    """Of the joint reduction up to this pick."""
    error: float
    """Its relative standard error."""
    log_contexts: Array | None
    """[M]: what each context adds to it."""
    ranked_by: str


class _Purse:
    """What may still be bought: no candidate twice, nothing that the budget does not reach."""

    def __init__(self, prices: Array, budget: float, taken: Sequence[int]) -> None:
        self.prices, self.budget, self.spent = prices, budget, 0.0
        self._positions = constant(range(prices.shape[0]), prices)
        self._free = prices > 0
        for candidate in taken:
            self._free = self._free & (self._positions != candidate)

    def allowed(self) -> Array:
        """[N]: what can be bought."""
        return self._free & (self.prices <= self._left())

    def affords(self, candidate: int) -> bool:
        """Whether one candidate is free, and within the budget."""
        return bool(self._free[candidate]) and float(self.prices[candidate]) <= self._left()

    def buy(self, candidate: int) -> None:
        """Pay for a candidate."""
        self.spent += float(self.prices[candidate])
        self._free = self._free & (self._positions != candidate)

    def _left(self) -> float:
        return self.budget * (1.0 + _ROUNDING) - self.spent


def _greedy(batch: Batch, purse: _Purse, floor: float) -> Iterator[_Pick]:
    """Candidates one by one, each with the largest gain for its price on top of those before."""
    xp = namespace(purse.prices)
    while bool(xp.any(allowed := purse.allowed())):
        logs = batch.log_reductions()  # [N]: of the batch with each candidate added
        gains, ranked_by = gains_of(batch, logs, allowed, floor)
        best = int(xp.argmax(xp.where(allowed, gains / purse.prices, xp.full_like(gains, -xp.inf))))
        purse.buy(best)
        yield _Pick(best, float(logs[best]), batch.add(best), batch.log_contexts(), ranked_by)


def _drawn(batch: Batch | None, purse: _Purse, order: Array, ranked_by: str) -> Iterator[_Pick]:
    """Candidates in the order of the draw, passing over what is not affordable."""
    for place in range(order.shape[0]):
        candidate = int(order[place])
        if purse.affords(candidate):
            purse.buy(candidate)
            if batch is None:
                yield _Pick(candidate, -math.inf, 0.0, None, ranked_by)
            else:
                log_reduction, error = batch.log_reduction(candidate), batch.add(candidate)
                yield _Pick(candidate, log_reduction, error, batch.log_contexts(), ranked_by)


def _selection(
    loss: AnyLoss,
    belief: Belief,
    picks: Iterator[_Pick],
    n: int,
    batch: Batch | None,
    before: Array | None,
    method: str | None,
) -> Selection:
    """The first n of the picks, on top of what the pending ones tell of each context, `before` [M]."""
    start = -math.inf if batch is None else batch.log_joint()  # the picks are made below
    chosen = list(islice(picks, n))
    indices, ranked_by = tuple(pick.candidate for pick in chosen), tuple(pick.ranked_by for pick in chosen)
    if batch is None:
        return Selection(indices, None, None, None, method or "", ranked_by)
    joint = _plain(loss, belief, [pick.log_reduction for pick in chosen], start)
    total = _plain(loss, belief, [pick.log_reduction for pick in chosen], -math.inf)
    error = total * constant([pick.error for pick in chosen], joint)  # no less than that of what comes on top
    spread = joint * constant([_context_error(batch, pick.log_contexts, before) for pick in chosen], joint)
    sampled = any(pick.error > 0 for pick in chosen)  # not what the batch would go on with, but what is told here
    kind = "enumerated" if batch.method == "sampled" and not sampled else batch.method
    return Selection(indices, joint, error, spread, method or kind, ranked_by)


def _plain(loss: AnyLoss, belief: Belief, logs: list[float], start: float) -> Array:
    """[n]: exp(logs) - exp(start); for an act that switches 0 where that is smaller than results can hold."""
    lowest = log_smallest(belief) if loss.finite_actions else -math.inf
    top = max((each for each in logs if each >= lowest and math.isfinite(each)), default=0.0)
    before = math.exp(start - top) if start >= lowest else 0.0
    relative = [max(0.0, math.exp(each - top) - before) if each >= lowest else 0.0 for each in logs]
    return unscaled(constant(relative, filled(1, 0.0, belief.like)), top, belief)


def _context_error(batch: Batch, logs: Array, before: Array | None) -> float:
    """The standard error of sum_c p(c) EUR_c over its size: sqrt(sum_c p(c)^2 (EUR_c - mean)^2) / mean."""
    xp, top = namespace(logs), float(namespace(logs).max(logs))
    if not math.isfinite(top):
        return 0.0
    each = xp.exp(logs - top) - (0.0 if before is None else xp.exp(before - top))  # [M]: p(c) EUR_c
    mean = float(xp.sum(each))
    return float(xp.sqrt(xp.sum((each - mean * xp.exp(batch.log_weights)) ** 2))) / mean if mean > 0 else 0.0
