"""Arguments that many public functions take: `random_state`, `budget` and `progress`, each with one meaning.

`random_state` is an int or a NumPy generator; `budget` is money; `progress` is a bool or a function. A text in place of
a list is a list of one; True and False are no numbers. Sizes: n rows.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes._utils.tables import Host  # which takes SciPy

RandomState: TypeAlias = int | np.random.Generator | None
"""A whole number, a generator, or None (which is 0: the same call gives the same answer)."""


def implements(value: Any, protocol: type) -> bool:
    """Whether a value has the members of a protocol, as `isinstance` says, which takes longer than a small score.

    What a class has once and for all is looked up once.
    """
    kind: Any = type(value)
    lacking = _lacking(kind, protocol)
    if lacking is None:
        return isinstance(value, protocol)
    own: dict[str, Any] = getattr(value, "__dict__", {})
    return not lacking or (any(name in own for name in lacking) and isinstance(value, protocol))


@cache
def _lacking(kind: Any, protocol: Any) -> frozenset[str] | None:
    """The members that instances of a class do not have from it; None where that is for each of them to say."""
    if protocol in kind.__mro__:
        return frozenset()
    if hasattr(kind, "__getattr__") or kind.__getattribute__ is not object.__getattribute__:
        return None
    defined = [name for each in protocol.__mro__[:-1] for name in (*vars(each), *getattr(each, "__annotations__", {}))]
    wanted = {name for name in defined if name == "__call__" or not name.startswith("_")}
    fields = getattr(kind, "__dataclass_fields__", {})
    found = [name for name in wanted if getattr(kind, name, None) is not None]
    found += [name for name in wanted if name in fields and not callable(getattr(protocol, name, None))]
    return frozenset(wanted) - frozenset(found)


def as_texts_of(name: str, given: Any) -> tuple[str, ...]:
    """Several texts, such as names of columns; one text is a list of one, and not its letters."""
    if isinstance(given, str):
        return (given,)
    texts = tuple(given) if isinstance(given, Iterable) else (given,)
    if bad := [each for each in texts if not isinstance(each, str)]:
        raise StakesError(f"{name} must be a text or a list of texts; got {bad[0]!r:.100}")
    return texts


def is_true_or_false(value: Any) -> bool:
    """Whether a value is a bool, which Python takes for a number and nobody means as one."""
    return isinstance(value, bool | np.bool_)


def is_positive(value: Any) -> bool:
    """Whether a value is a number above 0, and finite."""
    if not isinstance(value, Real) or is_true_or_false(value):
        return False
    try:
        return 0.0 < float(value) < math.inf
    except OverflowError:  # a whole number beyond the range of floating ones
        return False


SUBSAMPLE, TIES, DRAWS, ROWS = range(4)  # what a stream of random numbers is for: one seed, several independent streams


def as_seed(random_state: Any) -> int:
    """A seed for several independent streams.

    Args:
        random_state: A whole number, 0 or more, or a `numpy.random.Generator`, of which one number is drawn. None is 0:
            the same call gives the same answer.

    Returns:
        The seed.

    Raises:
        TypeError: If it is neither.
        StakesError: If it is negative.
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if is_true_or_false(random_state) or not isinstance(random_state, int | np.integer):
        raise TypeError(f"random_state must be a whole number or a numpy.random.Generator; got {random_state!r}")
    if random_state < 0:
        raise StakesError(f"random_state must be 0 or more; got {random_state!r}")
    return int(random_state)


def as_generator(random_state: Any) -> np.random.Generator:
    """The generator of an argument `random_state`: itself, or one that is seeded with it (None: with 0)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(as_seed(random_state))


def generator(seed: int, purpose: int) -> np.random.Generator:
    """Random numbers for one purpose (`SUBSAMPLE`, `TIES`, `DRAWS`, `ROWS`)."""
    return np.random.default_rng([seed, purpose])


def tie_breakers(seed: int, rows: Host) -> Host:
    """[n]: a number for each position, its own whichever others it comes with: by it the seed decides between equals.

    SplitMix64 of the position: a mixing of 64 bits, one to one, so that no two rows have the same.
    """
    key = generator(seed, TIES).integers(2**64, dtype=np.uint64)
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + key
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


# The one budget rule: what `select`, `rank`, `suggest` and `ask` can afford. Rows are looked at in their order. A row
# that the rest of the budget does not pay for is passed over, and the next ones are still looked at: an expensive row
# in second place does not end the list. Sums of costs are rounded (three labels at 0.1 cost 0.30000000000000004), so a
# budget may be exceeded by 1e-9 of itself.

ROUNDING = 1e-9
"""Of the budget, by which sums of costs may exceed it."""

T = TypeVar("T")


def check_budget(budget: Any) -> None:
    """Refuse a budget that is neither None nor a positive number."""
    if budget is not None and not (isinstance(budget, Real) and not isinstance(budget, bool) and float(budget) > 0):
        raise StakesError(f"budget must be positive, in the unit of the costs; got {budget!r}")


def left_to_spend(budget: float | None, spent: float) -> float:
    """The largest cost that is still affordable; infinite without a budget."""
    return math.inf if budget is None else float(budget) * (1.0 + ROUNDING) - spent


def affords(budget: float | None, spent: float, cost: float) -> bool:
    """Whether one more label at this cost is within the budget."""
    return cost <= left_to_spend(budget, spent)


def affordable(rows: Iterable[tuple[T, float]], budget: float | None, n: int | None = None) -> list[T]:
    """The first `n` rows, of pairs (row, cost), that a budget pays for together; None: no limit."""
    spent, chosen = 0.0, list[T]()
    for row, cost in rows:
        if n is not None and len(chosen) == n:
            break
        if affords(budget, spent, cost):
            spent += cost
            chosen.append(row)
    return chosen


Progress: TypeAlias = Callable[[str, float | None], None]
"""Called with what is being done, and the share that is done (None where that is not known)."""

_QUIET = 1.0  # seconds before anything is shown
_APART = 0.2  # seconds between two lines on a terminal
_APART_ELSEWHERE = 30.0  # seconds between two lines in a log


def no_progress(what: str, share: float | None) -> None:
    """No-op callback."""


def as_progress(progress: Any) -> Progress:
    """The callback of an argument `progress`.

    Args:
        progress: True shows the share done and the time left on the error stream, from the first second on; a callable
            is called with what is being done and the share that is done; False and None show nothing.

    Returns:
        A callable (what, share).

    Raises:
        TypeError: If `progress` is neither a bool nor a callable.
    """
    if progress is None or progress is False:
        return no_progress
    if progress is True:
        return _line_on_stderr()
    if callable(progress):
        return progress  # type: ignore[no-any-return]
    raise TypeError(f"progress must be True, False or a function (what, share); got {progress!r}")


def _line_on_stderr() -> Progress:
    """A callback that rewrites one line of a terminal, or now and then writes a line elsewhere.

    Each stage, by what is being done, has its own clock; a line of the terminal ends where a stage is finished.
    """
    begun = shown = stage_begun = time.monotonic()
    stage, length, terminal = "", 0, sys.stderr.isatty()

    def show(what: str, share: float | None) -> None:
        nonlocal shown, stage, stage_begun, length
        now = time.monotonic()
        if what != stage:
            stage_begun = now if stage else begun
            stage = what
        finished = share is not None and share >= 1.0
        wait = _APART if terminal else _APART_ELSEWHERE
        if now - begun < _QUIET or (now - shown < wait and not finished):
            return
        shown, line = now, f"{what}{_state(share, now - stage_begun)}"
        if terminal:  # what is left of a longer line is blotted out
            line, length = f"\r{line.ljust(length)}", 0 if finished else len(line)
        sys.stderr.write(line + ("\n" if finished or not terminal else ""))
        sys.stderr.flush()

    return show


def _state(share: float | None, passed: float) -> str:
    """The share done and the time left, where the share is known; else the seconds that have passed."""
    if not share:
        return f", {passed:.0f} s"
    if share >= 1.0:
        return f": done in {_minutes(passed)}"
    return f": {share:4.0%} done, {_minutes(passed / share * (1.0 - share))} left"


def _minutes(seconds: float) -> str:
    whole = math.ceil(seconds)
    return f"{whole // 60} min {whole % 60:2d} s"
