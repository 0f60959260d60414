"""How much of a large table is looked at, so that an answer comes within seconds; the answer says how much.

Sizes: N rows, M contexts, C classes. A label of a class has C outcomes, after each of which C probabilities change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from stakes.files import Host

_NUMBERS = 50_000_000  # row-context pairs that are scored, a closed form each
_CLASSES = 40_000_000  # numbers that are computed to score rows, N M C^2
_JOINT = 300_000_000  # numbers that are computed to choose rows together
_CONFIGURATIONS = 2000  # of labels that are gone through to choose 8 rows, 256 for each
_CONTEXTS = 1000
_FEWEST_CONTEXTS = 250
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


def effort(size: int, classes: int | None) -> Effort:
    """For a pool of `size` rows: fewer contexts first, then fewer rows."""
    most, width = (_NUMBERS, 1) if classes is None else (_CLASSES, classes**2)
    contexts = min(_CONTEXTS, size, max(_FEWEST_CONTEXTS, most // (size * width)))
    rows = min(size, max(contexts, most // (contexts * width)))
    if classes is None:
        return Effort(rows, contexts, None)
    listed = _JOINT // (_CONFIGURATIONS * width * contexts)
    return Effort(rows, contexts, min(_LISTED, max(_FEWEST_LISTED, listed)))


def looked_at(pool: list[int], keep: Collection[int], rows: int, seed: int) -> tuple[list[int], tuple[str, ...]]:
    """As many rows of a pool, drawn with the seed, and those to keep, in their order; and a sentence that says so."""
    if rows >= len(pool):
        return pool, ()
    drawn: Host = np.random.default_rng([seed, len(pool)]).choice(len(pool), rows, replace=False)
    chosen = {pool[place] for place in drawn.tolist()}.union(keep)
    said = f"The pool is large: the best of {rows} of its {len(pool)} rows, drawn with seed {seed}, are chosen."
    return [row for row in pool if row in chosen], (said,)
