"""How a label is chosen: by chance, by the loss, by a usual rule, or by a rule of the user's.

Sizes: N candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stakes._utils.array import log_of
from stakes._utils.tables import Host, on_host
from stakes.acquisition import fallback_scores, score
from stakes.acquisition.fallback import worth_floor
from stakes.baselines import BASELINES
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.simulation.problem import plain_loss

Rule: TypeAlias = Callable[[Belief, AnyLoss, np.random.Generator], Any]
"""(belief, loss, rng) -> [N]: larger is better."""
StrategyLike: TypeAlias = str | tuple[str, Rule]

_TIE = 1e-9  # of the best score, by which another may be below it and yet as good


@dataclass(frozen=True)
class Strategy:
    """A rule by name."""

    name: str
    rule: Rule | None
    """None: by chance, for which nothing need be believed of the pool."""


def checked_strategies(given: Sequence[StrategyLike]) -> tuple[Strategy, ...]:
    """The strategies, checked: names of rules, or pairs of a name and a rule of the user's own."""
    if isinstance(given, str) or len(given) == 0:
        raise StakesError(f"strategies must be a list of names, one or more; got {given!r}")
    chosen = tuple(_strategy(each) for each in given)
    names = [each.name for each in chosen]
    if len(set(names)) != len(names):
        raise StakesError(f"strategies must have names of their own; got {names}")
    return chosen


def choose(
    strategy: Strategy, belief: Callable[[], Belief], loss: AnyLoss, rng: np.random.Generator, luck: Host
) -> int:
    """The candidate with the best score; of those within 1e-9 of it, the one with the most luck [N].

    The belief is made only for a rule that looks at it: that of a forest about a large pool takes as long as the fit.
    """
    scores = rng.random(len(luck)) if strategy.rule is None else on_host(strategy.rule(belief(), loss, rng))
    scores = scores.astype(float)
    if scores.shape != luck.shape or np.isnan(scores).any():
        raise StakesError(
            f"strategy {strategy.name!r} must give one score for each of {len(luck)} candidates, none NaN; "
            f"got shape {list(scores.shape)} with {int(np.isnan(scores).sum())} NaN"
        )
    best = scores.max()
    equal = scores >= best - _TIE * abs(best) if math.isfinite(best) else scores == best
    return int(np.argmax(np.where(equal, luck, -np.inf)))


def _strategy(given: StrategyLike) -> Strategy:
    if isinstance(given, str):
        return Strategy(given, _named(given))
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str) or not callable(given[1]):
        raise TypeError(f"a strategy must be a name, or (name, function of (belief, loss, rng)); got {given!r}")
    return Strategy(*given)


def _named(name: str) -> Rule | None:
    if name == "random":
        return None
    if name in _BY_LOSS:
        return _BY_LOSS[name]
    if name not in BASELINES:
        raise StakesError(f"no strategy is called {name!r}; there are {sorted({*_BY_LOSS, *BASELINES})}")
    return lambda belief, loss, rng: BASELINES[name](belief, rng)


def worths(loss: AnyLoss, belief: Belief) -> Host:
    """[N]: what each label is worth, up to a factor; where none is worth anything, by `fallback_scores`."""
    relative, log_scale = score(loss, belief, return_log_scale=True)
    shares = on_host(relative)
    if float(log_of(shares.max())) + log_scale > worth_floor(loss, belief):
        return shares
    return on_host(fallback_scores(loss, belief)[0])


_BY_LOSS: dict[str, Rule] = {
    "loss": lambda belief, loss, rng: worths(loss, belief),
    "plain": lambda belief, loss, rng: worths(plain_loss(loss), belief),
}
