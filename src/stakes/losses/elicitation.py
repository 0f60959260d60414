"""Which loss is mine? A few questions in plain words give a ratio of costs, a threshold, an asymmetry or a weight.

Every question compares two bad things, so that an answer says on which side of a number the ratio k of their costs
lies. Of k a posterior is kept on a grid of log k, even over 1/128 .. 128 at first; one answer in fifteen may be a slip,
and nobody tells costs apart that differ by less than some percent. The next question is asked at the median, which
tells most (Horstein, 1963, probabilistic bisection), in plain numbers, and none twice. The estimate is the median, in a
90% interval. Sizes: G points of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from stakes._utils.array import Array
from stakes._utils.text import number
from stakes.exceptions import StakesError
from stakes.losses.actions import CostMatrix, ThresholdDecision
from stakes.losses.bregman import SquaredError
from stakes.losses.distributional import Pinball
from stakes.losses.weights import InterpolatedWeight

ElicitedKind: TypeAlias = Literal["costs", "threshold", "asymmetry", "weight"]
"""What is asked for: what an error of one kind costs beside another; that, and where acting begins to be right; what
too low costs beside too high; how much errors count at some targets beside others."""
KINDS: tuple[ElicitedKind, ...] = ("costs", "threshold", "asymmetry", "weight")
FIRST, SECOND, SAME = 1, 2, 0

_MOST = 128.0  # the largest ratio that is thought of
_POINTS = 1401  # of the grid: 0.7% apart
_SLIP = 1.0 / 15.0  # of answers
_TELL = 0.05  # of log k: what is closer differs by chance
_NEAR = 0.1  # of the interquartile range, by which a question may be off the median for plainer numbers
_ALIKE = 0.25  # of log k, within which two costs are called about the same
_PLAIN = sorted({m / n for n in (1, 2, 3, 4) for m in range(1, 41) if 1 <= m / n <= 10} | set(range(10, 129)))


class Question(NamedTuple):
    """Which of two things is worse.

    Attributes:
        text: The question.
        first: The first thing.
        second: The second thing.
        at: The number that the answer says more or less than of what is asked for: 1 says more, 2 says less.

    Examples:
        >>> from stakes.losses import Question
        >>> text = "Which is worse: (1) a miss, once, or (2) a false alarm, 3 times?"
        >>> Question(text, "a miss", "a false alarm", 3.0).at
        3.0
    """

    text: str
    first: str
    second: str
    at: float


class Elicited(NamedTuple):
    """A number that answers point to.

    Attributes:
        value: The median.
        low: The lower end of a 90% interval.
        high: The upper end.

    Examples:
        >>> from stakes.losses import Elicited
        >>> print(Elicited(8.02, 6.5, 10.0))
        8 (6.5 to 10)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        value, low, high = (number(each, 2) for each in self)
        return f"{value} ({low} to {high})"


@dataclass(frozen=True)
class ElicitedLoss:
    """A loss as answers describe it.

    Attributes:
        kind: "costs", "threshold", "asymmetry" or "weight".
        ratio: What the first thing costs beside the second: a miss beside a false alarm, too low beside too high, an
            error at the last target beside one at the first.
        threshold: Above which acting is right; None for other kinds.
        weights: How much errors count at each of `values`, over the first; none for other kinds.
        values: The targets of the weights.
        answers: 1, 2 or 0 (about the same) to each question.

    Examples:
        >>> from stakes.losses import Elicited, ElicitedLoss
        >>> ElicitedLoss("asymmetry", Elicited(3.0, 2.5, 3.5), answers=(1, 2)).loss()
        Pinball(tau=0.75, weight=None)
    """

    kind: ElicitedKind
    ratio: Elicited
    threshold: Elicited | None = None
    weights: tuple[Elicited, ...] = ()
    values: tuple[float, ...] = ()
    answers: tuple[int, ...] = ()

    def loss(self, which: Literal["value", "low", "high"] = "value") -> Any:
        """The loss that the answers describe.

        Args:
            which: "value", or an end of the intervals.

        Returns:
            A `CostMatrix` in which class 1 must not be missed, a `ThresholdDecision`, a `Pinball` or a `SquaredError`.
        """
        ratio = getattr(self.ratio, which)
        if self.kind == "costs":
            return CostMatrix([[0.0, 1.0], [ratio, 0.0]])
        if self.kind == "threshold":
            assert self.threshold is not None
            return ThresholdDecision(self.threshold.value, miss=ratio)
        if self.kind == "asymmetry":
            return Pinball(round(ratio / (1.0 + ratio), 6))
        return SquaredError(InterpolatedWeight(self.values, [getattr(each, which) for each in self.weights]))


def elicit(
    ask: Callable[[Question], int],
    kind: ElicitedKind = "costs",
    *,
    questions: int = 8,
    names: tuple[str, str] = ("a miss", "a false alarm"),
    threshold: float | None = None,
    between: tuple[float, float] | None = None,
    unit: float = 10.0,
    values: Sequence[float] = (),
) -> ElicitedLoss:
    """Ask which of two things is worse until it is known what errors cost; slips are forgiven.

    Args:
        ask: A function that answers a `Question`: 1 if the first is worse, 2 if the second is, 0 if they are about the
            same.
        kind: "costs": of one error beside another (`CostMatrix`); "threshold": the same for acting or waiting, and
            above which target acting is right (`ThresholdDecision`); "asymmetry": of estimates that are too low beside
            too high (`Pinball`); "weight": of errors at some targets beside others (`SquaredError` with a weight).
        questions: How many for each number.
        names: What the two errors are called, the one that must not happen first.
        threshold: Of "threshold": where it is known, so that it is not asked for.
        between: Of "threshold": two targets between which it lies, where it is not known.
        unit: Of "asymmetry" and "weight": how large an error is in the questions.
        values: Of "weight": two or more targets, increasing, at which errors are compared.

    Returns:
        The ratio, and all else that the kind has; its `loss()` is the loss.

    Raises:
        StakesError: If an argument, or an answer, cannot be used.

    Examples:
        >>> from stakes import elicit
        >>> def me(question):  # a miss costs me 8 false alarms
        ...     return 1 if 8.0 > question.at else 2
        >>> found = elicit(me, "costs")
        >>> 7.0 < found.ratio.value < 9.0, found.loss()(1, 0) == found.ratio.value
        (True, True)
    """
    _check(kind, questions, unit)
    given: list[int] = []
    first, second = names
    if kind == "costs":
        return ElicitedLoss(kind, _ratio(ask, questions, given, _of_counts(first, second)), answers=tuple(given))
    if kind == "asymmetry":
        return ElicitedLoss(kind, _ratio(ask, questions, given, _of_sizes(unit)), answers=tuple(given))
    if kind == "threshold":
        known = None if threshold is None else Elicited(*(float(threshold),) * 3)
        above = known or _threshold(ask, questions, given, between)
        return ElicitedLoss(kind, _ratio(ask, questions, given, _of_counts(first, second)), above, answers=tuple(given))
    targets = _targets(values)
    steps = [_ratio(ask, questions, given, _of_places(low, high, unit)) for low, high in pairwise(targets)]
    weights = [Elicited(1.0, 1.0, 1.0)]
    for step in steps:
        weights.append(Elicited(*(before * each for before, each in zip(weights[-1], step, strict=True))))
    return ElicitedLoss(kind, weights[-1], None, tuple(weights), targets, tuple(given))


def _check(kind: str, questions: Any, unit: Any) -> None:
    if kind not in KINDS:
        raise StakesError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    if isinstance(questions, bool) or not isinstance(questions, int) or questions < 1:
        raise StakesError(f"questions must be a whole number, 1 or more; got {questions!r}")
    if not (isinstance(unit, int | float) and not isinstance(unit, bool) and 0 < unit < math.inf):
        raise StakesError(f"unit must be a positive number, the size of an error; got {unit!r}")


def _targets(values: Sequence[float]) -> tuple[float, ...]:
    targets = tuple(float(each) for each in values)
    if (
        len(targets) < 2
        or not all(low < high for low, high in pairwise(targets))
        or not all(map(math.isfinite, targets))
    ):
        raise StakesError(
            f"values must be two or more targets, increasing, at which errors are compared; got {values!r}"
        )
    return targets


def _of_counts(first: str, second: str) -> Callable[[float], Question]:
    """How often each happens."""
    return lambda ratio: _which(first, second, ratio, *(f", {_times(each)}" for each in _whole(ratio)))


def _of_sizes(unit: float) -> Callable[[float], Question]:
    """How large each is."""

    def question(ratio: float) -> Question:
        low, high = (number(each * unit, 6) for each in _whole(ratio))
        return _which(f"an estimate {low} too low", f"an estimate {high} too high", ratio)

    return question


def _of_places(low: float, high: float, unit: float) -> Callable[[float], Question]:
    """How often an error of one size happens at each of two targets."""
    size, here, there = (number(each, 6) for each in (unit, high, low))
    first, second = f"an error of {size} where the truth is {here}", f"an error of {size} where it is {there}"
    return _of_counts(first, second)


def _which(first: str, second: str, ratio: float, one: str = "", other: str = "") -> Question:
    return Question(f"Which is worse: (1) {first}{one}, or (2) {second}{other}?", first, second, ratio)


def _whole(ratio: float) -> tuple[int, int]:
    """Whole numbers n and m with ratio = m / n."""
    turned = ratio < 1.0
    above = 1.0 / ratio if turned else ratio
    n = next(n for n in (1, 2, 3, 4) if abs(n * above - round(n * above)) < 1e-9)
    return (round(n * above), n) if turned else (n, round(n * above))


def _effort(ratio: float) -> int:
    """How hard the numbers of a question are to think of: digits that are not 0, those of fractions twice."""
    n, m = sorted(_whole(ratio))
    return len(str(m).rstrip("0")) + 2 * (n > 1) + (m % 5 > 0 and m > 10)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _ratio(
    ask: Callable[[Question], int], questions: int, given: list[int], put: Callable[[float], Question]
) -> Elicited:
    """The ratio of two costs, by questions at plain numbers."""
    grid = np.linspace(-math.log(_MOST), math.log(_MOST), _POINTS)
    plain = np.asarray([*(1.0 / each for each in reversed(_PLAIN[1:])), *_PLAIN])
    effort = np.asarray([_effort(each) for each in plain])
    return _bisected(ask, questions, given, put, grid, np.log(plain), effort, math.exp, (_TELL, _ALIKE))


def _threshold(
    ask: Callable[[Question], int], questions: int, given: list[int], between: tuple[float, float] | None
) -> Elicited:
    """The target above which acting is right, by questions about targets that are known."""
    low, high = between or (math.nan, math.nan)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise StakesError(f"give the threshold, or two targets between which it lies, the lower first; got {between!r}")
    grid = np.linspace(low, high, _POINTS)
    step = 10.0 ** math.floor(math.log10((high - low) / 100.0))
    plain = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step

    def put(at: float) -> Question:
        first, second = "to act", "to wait"
        text = f"You know that the value is {number(at, 6)}. Which is wrong: (1) {first}, or (2) {second}?"
        return Question(text, first, second, at)

    widths = (high - low) / 200.0, (high - low) / 50.0
    return _bisected(ask, questions, given, put, grid, plain, np.zeros(len(plain)), float, widths)


def _bisected(
    ask: Callable[[Question], int],
    questions: int,
    given: list[int],
    put: Callable[[float], Question],
    grid: Array,
    plain: Array,
    effort: Array,
    shown: Callable[[float], float],
    widths: tuple[float, float],
) -> Elicited:
    """A number by questions at the median of what is known of it; the answers are added to `given`."""
    tell, alike = widths
    log_posterior, asked = np.zeros(len(grid)), list[int]()
    for _ in range(questions):
        low, median, high = (_quantile(grid, log_posterior, level) for level in (0.25, 0.5, 0.75))
        distance = np.abs(plain - median)
        distance[asked] += grid[-1] - grid[0]  # none twice, while there are others
        near = np.flatnonzero(distance <= distance.min() + _NEAR * (high - low))
        place = int(near[np.lexsort((distance[near], effort[near]))[0]])  # the plainest of them, then the nearest
        asked.append(place)
        at = float(plain[place])
        answer = ask(put(shown(at)))
        if isinstance(answer, bool) or answer not in (FIRST, SECOND, SAME):
            raise StakesError(
                f"an answer must be 1 (the first is worse), 2 (the second) or 0 (the same); got {answer!r}"
            )
        given.append(int(answer))
        log_posterior += _log_likelihood(int(answer), grid - at, tell, alike)
    value, low, high = (shown(_quantile(grid, log_posterior, level)) for level in (0.5, 0.05, 0.95))
    return Elicited(value, low, high)


def _log_likelihood(answer: int, beyond: Array, tell: float, alike: float) -> Array:
    """[G]: of an answer, where the number lies so far beyond what was asked."""
    if answer == SAME:
        probability = np.exp(-0.5 * (beyond / alike) ** 2)
    else:
        probability = 1.0 / (1.0 + np.exp(-np.clip((beyond if answer == FIRST else -beyond) / tell, -50.0, 50.0)))
    found: Array = np.log(_SLIP + (1.0 - 2.0 * _SLIP) * probability)
    return found


def _quantile(grid: Array, log_posterior: Array, level: float) -> float:
    mass = np.exp(log_posterior - log_posterior.max())
    return float(np.interp(level, np.cumsum(mass) / mass.sum() - 0.5 * mass / mass.sum(), grid))
