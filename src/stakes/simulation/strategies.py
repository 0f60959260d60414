"""Strategies: how the next row to label is chosen.

"random" chooses at random, "loss" by the expected reduction of the loss, "plain" by that of the unweighted loss; others
are the rules of `stakes.baselines` by name, or a function of the user's.

Sizes: N candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from stakes._utils.array import log_of, on_host
from stakes._utils.tables import Host
from stakes.acquisition import fallback_scores, score
from stakes.acquisition.batches import worth_floor
from stakes.baselines import BASELINES
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.simulation.problem import plain_loss

Rule: TypeAlias = Callable[[Belief, AnyLoss, np.random.Generator], Any]
"""A function (belief, loss, random_state) -> scores [N], larger is better; `random_state` is a NumPy generator."""
StrategyLike: TypeAlias = str | tuple[str, Rule]
"""A strategy as users give it: the name of one that is known, or a name and a rule of their own."""

_TIE = 1e-9  # of the best score, by which another may be below it and yet as good


def checked_strategies(given: Sequence[StrategyLike]) -> dict[str, Rule | None]:
    """Rules by name; None for the random strategy, which needs no belief about the pool."""
    if isinstance(given, str) or len(given) == 0:
        raise StakesError(f"strategies must be a list of names, one or more; got {given!r}")
    pairs = [_named_rule(each) for each in given]
    names = [name for name, _ in pairs]
    if len(set(names)) != len(names):
        raise StakesError(f"strategies must have names of their own; got {names}")
    return dict(pairs)


def best_candidate(
    name: str,
    rule: Rule | None,
    belief: Callable[[], Belief],
    loss: AnyLoss,
    random_state: np.random.Generator,
    tie_breakers: Host,
) -> int:
    """The candidate with the best score; of those within 1e-9 of it, the one with the largest tie breaker [N].

    The belief is made only for a rule that uses it: that of a forest about a large pool takes as long as the fit.
    """
    given = random_state.random(len(tie_breakers)) if rule is None else rule(belief(), loss, random_state)
    scores = on_host(given).astype(float)
    if scores.shape != tie_breakers.shape or np.isnan(scores).any():
        raise StakesError(
            f"strategy {name!r} must give one score for each of {len(tie_breakers)} candidates, none NaN; "
            f"got shape {list(scores.shape)} with {int(np.isnan(scores).sum())} NaN"
        )
    best = scores.max()
    equal = scores >= best - _TIE * abs(best) if math.isfinite(best) else scores == best
    return int(np.argmax(np.where(equal, tie_breakers, -np.inf)))


def _named_rule(given: StrategyLike) -> tuple[str, Rule | None]:
    if isinstance(given, str):
        return given, _known_rule(given)
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str) or not callable(given[1]):
        raise TypeError(
            f"a strategy must be a name, or (name, function of (belief, loss, random_state)); got {given!r}"
        )
    return given


def _known_rule(name: str) -> Rule | None:
    if name == "random":
        return None
    if name in _BY_LOSS:
        return _BY_LOSS[name]
    if name not in BASELINES:
        raise StakesError(f"no strategy is called {name!r}; there are {sorted({*_BY_LOSS, *BASELINES})}")
    return lambda belief, loss, random_state: BASELINES[name](belief, random_state)


def reductions(loss: AnyLoss, belief: Belief) -> tuple[Host, float]:
    """[N], and the log of a factor: the expected reduction by each label is exp(factor) times the number.

    Where none reduces the loss the numbers are `fallback_scores`, which are no reductions: the factor is -inf.
    """
    relative, log_scale = score(loss, belief, return_log_scale=True)
    scores = on_host(relative)
    if float(log_of(scores.max())) + log_scale > worth_floor(loss, belief):
        return scores, float(log_scale)
    return on_host(fallback_scores(loss, belief)[0]), -math.inf


@dataclass(frozen=True)
class ExpectedReduction:
    """The rule that goes by what a label is expected to save of a loss.

    Args:
        loss: Of which loss; None: that of the simulation, or the unweighted one where `plain`.
        plain: Whether to take the unweighted loss.
    """

    loss: AnyLoss | None = None
    plain: bool = False

    def of(self, loss: AnyLoss) -> AnyLoss:
        """The loss that it goes by in a simulation of `loss`."""
        if self.loss is not None:
            return self.loss
        return plain_loss(loss) if self.plain else loss

    def __call__(self, belief: Belief, loss: AnyLoss, random_state: np.random.Generator) -> Host:
        """[N]: expected reductions, up to a factor."""
        return reductions(self.of(loss), belief)[0]


_BY_LOSS: Mapping[str, Rule] = {"loss": ExpectedReduction(), "plain": ExpectedReduction(plain=True)}
