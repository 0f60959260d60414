"""How the time of scoring votes grows: in rows, and where contexts, members or classes are doubled.

Sizes: N candidates, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks import members
from benchmarks.measure import Row, Settings, race, timed
from benchmarks.members import Shape, weighted_epig
from stakes import VoteEnsemble, score

COUNTS, QUICK_COUNTS = (10_000, 100_000, 1_000_000), (500, 1000)
SHAPE, QUICK_SHAPE = Shape(0, 500, 300, 5), Shape(0, 50, 64, 5)
BASE, QUICK_BASE = Shape(4000, 256, 512, 4), Shape(100, 20, 64, 3)
CHUNK = 10_000  # rows that are made and scored at a time


def rows(given: Settings) -> Iterator[Row]:
    """In rows, then in all else."""
    yield from _in_rows(*((QUICK_SHAPE, QUICK_COUNTS) if given.quick else (SHAPE, COUNTS)), given.repeats)
    yield from _in_sizes(QUICK_BASE if given.quick else BASE, given.repeats)


def _in_rows(shape: Shape, counts: tuple[int, ...], repeats: int) -> Iterator[Row]:
    """The ratio is of seconds for a row to those of the smallest pool."""
    contexts = members.votes(shape.contexts, *shape[2:], seed=2)
    first = None
    for count in counts:
        turns = max(1, 2 * repeats * counts[0] // count)
        seconds = min(_chunks(contexts, shape._replace(candidates=count)) for _ in range(turns))
        first = first or seconds / count
        job = "growth in rows: seconds for a row, to those of the smallest pool"
        yield Row(job, str(shape._replace(candidates=count)), seconds, seconds / count / first)


def _chunks(contexts: Any, shape: Shape) -> float:
    """Seconds to score all rows; to make them is not counted."""
    total = 0.0
    for start in range(0, shape.candidates, CHUNK):
        votes = members.votes(min(CHUNK, shape.candidates - start), *shape[2:], seed=start)
        total += timed(lambda votes=votes: _scores(votes, contexts, shape.classes))[1]
    return total


def _scores(votes: Any, contexts: Any, classes: int) -> Any:
    return score(weighted_epig(classes), VoteEnsemble(votes, contexts, classes))


def _in_sizes(base: Shape, repeats: int) -> Iterator[Row]:
    """Each size doubled by itself; the ratio is to the seconds before."""
    shapes = {"": base}
    for name in ("contexts", "members", "classes"):
        shapes[f": {name} doubled"] = base._replace(**{name: 2 * getattr(base, name)})
    found = race({name: _job(shape) for name, shape in shapes.items()}, repeats)
    for name, (_, seconds) in found.items():
        yield Row(f"growth of votes{name}", str(shapes[name]), seconds, seconds / found[""][1])


def _job(shape: Shape) -> Any:
    here, there = (
        members.votes(n, *shape[2:], seed=seed) for seed, n in enumerate((shape.candidates, shape.contexts), start=1)
    )
    return lambda: _scores(here, there, shape.classes)
