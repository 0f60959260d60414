"""How much of a large table is looked at, so that an answer comes within seconds; the answer says how much.

Sizes: N rows, M contexts, C classes. A label of a class has C outcomes, after each of which C probabilities change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from stakes.files.frame import Host

_NUMBERS = 50_000_000  # row-context pairs that are scored, a closed form each
_CLASSES = 40_000_000  # numbers that are computed to score rows, N M C^2
_JOINT = 300_000_000  # numbers that are computed to choose rows together
_CONTEXTS, _FEWEST_CONTEXTS = 1000, 250
_LISTED, _FEWEST_LISTED = 100, 20


@dataclass(frozen=True)
class Effort:
    """What is looked at."""

    rows: int
    """Of the pool, each for what it is worth alone."""
    contexts: int
    """That stand for the future."""
    shortlist: int | None
    """Rows that are looked at together; None for as many as `rank` looks at."""


def effort(size: int, n: int, classes: int | None) -> Effort:
    """To choose n rows of a pool of `size`: all that `rank` looks at, else fewer contexts, else fewer rows."""
    if classes is None:
        return Effort(*_screened(size, _NUMBERS, _CONTEXTS), None)
    together = _configurations(n) * classes**2  # numbers for each row and context
    enough = max(_FEWEST_CONTEXTS, _JOINT // (together * max(_LISTED, n)))
    rows, contexts = _screened(size, _CLASSES // classes**2, min(_CONTEXTS, enough))
    listed = max(_FEWEST_LISTED, n, _JOINT // (together * contexts))
    return Effort(rows, contexts, None if listed >= _LISTED else listed)


def _screened(size: int, pairs: int, most: int) -> tuple[int, int]:
    """How many rows, and with how many contexts, when `pairs` of them can be scored."""
    contexts = min(most, size, max(_FEWEST_CONTEXTS, pairs // size))
    return min(size, max(contexts, pairs // contexts)), contexts


def _configurations(n: int) -> int:
    """Of labels that are gone through to choose n rows of classes: 256 for each, fewer for the first few."""
    return 256 * max(n, 8) - 1150


def looked_at(pool: list[int], keep: Collection[int], rows: int, seed: int) -> tuple[list[int], tuple[str, ...]]:
    """As many rows of a pool, drawn with the seed, and those to keep, in their order; and a sentence that says so."""
    if rows >= len(pool):
        return pool, ()
    drawn: Host = np.random.default_rng([seed, len(pool)]).choice(len(pool), rows, replace=False)
    chosen = {pool[place] for place in drawn.tolist()}.union(keep)
    said = f"The pool is large: the best of {rows} of its {len(pool)} rows, drawn with seed {seed}, are chosen."
    return [row for row in pool if row in chosen], (said,)
