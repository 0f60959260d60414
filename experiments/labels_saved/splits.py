"""Which rows a run starts with, can buy and is tested on: the same for every belief and strategy, whoever runs it.

Of n rows a third are test rows, at most 500; so there are 200 and more from 600 rows on. A table that is too small for
that (slump) has fewer, so that the pool is a quarter larger than what is bought. The pool is at most 400 of the rest.
The run starts with 10 labels, or one of each class if there are more than 10. Classes are stratified.

Sizes: n rows, d columns, B labels bought.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.labels_saved.tables import Host, Table, Task
from stakes.exceptions import StakesError
from stakes.simulation import Trial
from stakes.simulation.problem import evenly_by_class

LABELS: dict[Task, int] = {"numbers": 60, "classes": 40}
RUNS: dict[Task, int] = {"numbers": 50, "classes": 20}
START = 10
MOST_POOL, MOST_TEST, MOST_CONTEXTS = 400, 500, 200
_SPARE = 1.25  # rows in the pool for each label that is bought, at least, where the table allows
_SEED = 17


@dataclass(frozen=True)
class Sizes:
    """How many rows of a table are for what."""

    start: int
    bought: int
    pool: int
    test: int
    contexts: int
    """rows of start and pool for which labels are chosen: they stand for the future, their labels are not looked at"""


def sizes(table: Table, bought: int | None = None) -> Sizes:
    """The sizes of a run; `bought` labels, by default 60 for numbers and 40 for classes."""
    rows, bought = len(table.y), LABELS[table.task] if bought is None else bought
    start = max(START, len(table.classes))
    ample = max(rows // 5, rows - start - int(np.ceil(_SPARE * bought)))
    test = min(MOST_TEST, rows // 3, ample)
    pool = min(MOST_POOL, rows - start - test)
    if pool < bought:
        raise StakesError(f"{table.name} has {rows} rows, which is too few to buy {bought} labels of: give fewer")
    return Sizes(start, bought, pool, test, min(MOST_CONTEXTS, start + pool))


def split(table: Table, run: int, bought: int | None = None) -> Trial:
    """The rows of run number `run`, with standardised columns; a function of the table, the run and `bought`."""
    size, generator = sizes(table, bought), np.random.default_rng(np.random.SeedSequence(_SEED, spawn_key=(run,)))
    order = generator.permutation(len(table.y))
    if table.task == "classes":
        order = _one_of_each_first(order[evenly_by_class(table.y[order], generator)], table.y)
    start, test, rest = np.split(order, np.cumsum([size.start, size.test]))
    pool = rest[: size.pool]
    contexts = generator.permutation(np.concatenate([start, pool]))[: size.contexts]
    return Trial(table.standardised, table.y, start, np.sort(pool), contexts, test)


def _one_of_each_first(order: Host, targets: Host) -> Host:
    """[n]: the same with the first row of each class at the head."""
    firsts = np.sort(np.unique(targets[order], return_index=True)[1])
    return np.concatenate([order[firsts], np.delete(order, firsts)])
