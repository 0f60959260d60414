"""How much of a large table is looked at, so that an answer comes within seconds; the answer says how much.

Sizes: N rows, M contexts, C classes. A label of a class has C outcomes, after each of which C probabilities change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from stakes._utils.progress import Progress
from stakes.exceptions import StakesError
from stakes.files.frame import Host
from stakes.losses import CostMatrix
from stakes.ranking import HelpedContext, Outlook, Ranking, Reason, cold_start, outlook
from stakes.ranking.cold_start import DISTANCE
from stakes.ranking.top_k import WORTH
from stakes.tabular.fitting import Fitted, explained, fitted
from stakes.tabular.loss_specs import decisions_of
from stakes.tabular.streamed import StreamedSheet
from stakes.tabular.worksheet import Brief, Worksheet

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


# ----------------------------------------------------------------------
# Why rows were chosen, in a few words.


def whys(ranking: Ranking) -> tuple[str, ...]:
    """For each row of a ranking what its label tells most about; what it is worth is said by its score."""
    return tuple(_why(reason, score) for reason, score in zip(ranking.reasons, ranking.scores, strict=True))


def _why(reason: Reason, score: float) -> str:
    if reason.ranked_by == DISTANCE:
        return "far from the rows above" if math.isfinite(score) else "drawn with the seed"
    parts = [] if reason.ranked_by == WORTH else [f"ranked by {reason.ranked_by}"]
    if reason.contexts:
        parts.append(f"tells most about {', '.join(map(_told, reason.contexts))}")
    parts += [f"{reason.as_good} other rows are as good"] if reason.as_good else []
    return "; ".join(parts)


def _told(context: HelpedContext) -> str:
    """S015 (16% of its worth; today 2.4)."""
    share = f"{context.share:.0%}" if context.share >= 0.01 else "<1%"
    return f"{context.row_id} ({share} of its worth; today {context.answer})"


# ----------------------------------------------------------------------
# What the next labels of a table are worth, which they are, and why.
#
# Sizes: N rows, n rows chosen.

Named: TypeAlias = Callable[[int], tuple[int, str]]
_OFFERS = 8  # labels that an outlook looks ahead, where fewer are asked for
_ROUNDING = 1e-12  # of a budget: three labels at 0.1 are within one of 0.3


@dataclass(frozen=True)
class Appraisal:
    """Rows to label, by id, and whether to."""

    ranking: Ranking
    """Positions are those in the table, labels are ids."""
    outlook: Outlook | None
    """None in a cold start."""
    said: tuple[str, ...]
    """What was assumed, in all."""
    n_labels: int
    n_pool: int


def appraise(
    sheet: Worksheet,
    labels: Mapping[int, str],
    n: int,
    *,
    pending: Collection[int] = (),
    excluded: Collection[int] = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Appraisal:
    """The `n` rows to label next, when `labels` are known by row, `pending` ones on their way, others `excluded`.

    `budget` is what is left of it; `n_jobs` workers score rows, as in `rank`.
    """
    out, waiting = {*labels, *excluded}, set(pending)
    pool = [row for row in range(len(sheet.ids)) if row not in out]
    if waiting.issuperset(pool):
        raise StakesError("every row has a label, is on its way to one, or is left out: there is none to choose")
    if why := why_cold(sheet, labels):
        return _cold_start(sheet, pool, {*waiting, *labels}, n, budget, why, len(labels))
    if progress is not None:
        progress(f"fitting a model to {len(labels)} labels", None)
    found = fitted(sheet, labels, pool)
    limits = effort(len(pool), n, None if found.classes is None else len(found.classes))
    seen, drawn = looked_at(pool, waiting, limits.rows, sheet.brief.seed)
    asked = Asked(
        features=sheet.features.take(seen),
        costs=None if sheet.costs is None else sheet.costs[seen],
        pending=tuple(place for place, row in enumerate(seen) if row in waiting),
        n=n,
        budget=budget,
        n_jobs=n_jobs,
    )
    with explained(sheet, len(labels)):
        told = look_ahead(sheet.brief, found, asked, limits, progress)
    told = replace(told, ranking=renamed(told.ranking, named_in(sheet, seen), sheet.brief, found))
    return concluded(told, n, (*sheet.said, *found.said, *drawn), len(labels), len(pool))


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a fitted model."""

    features: Any
    """Of the pool: a table, or rows that are read in chunks."""
    costs: Any
    n: int
    budget: float | None
    pending: tuple[int, ...] = ()
    n_jobs: int | None = None


def look_ahead(brief: Brief, found: Fitted, asked: Asked, limits: Effort, progress: Progress | None) -> Outlook:
    """What labels of the pool are worth, with positions there."""
    return outlook(
        found.model,
        found.loss,
        asked.features,
        n=max(asked.n, _OFFERS),
        decisions=brief.decisions,
        costs=asked.costs,
        budget=asked.budget,
        pending=asked.pending,
        classes=found.classes,
        shortlist=limits.shortlist,
        max_contexts=limits.contexts,
        random_state=brief.seed,
        n_jobs=asked.n_jobs,
        progress=progress or False,
    )


def concluded(told: Outlook, n: int, said: tuple[str, ...], n_labels: int, n_pool: int) -> Appraisal:
    """The first n rows, and all that was said."""
    ranking = _first(told.ranking, n)
    short = () if len(ranking) == n else (f"{n} rows were asked for; {len(ranking)} could be chosen.",)
    return Appraisal(ranking, told, (*said, *map(str, told.ranking.notes), *short), n_labels, n_pool)


def why_cold(sheet: Worksheet, labels: Mapping[int, str]) -> str | None:
    """Why no model can tell what a label is worth; None where one can."""
    if not labels:
        return "There is no label yet"
    if sheet.task == "classes" and len(set(labels.values())) == 1:
        return f"All {len(labels)} labels are of one class, {next(iter(labels.values()))!r}"
    return None


def _cold_start(
    sheet: Worksheet, pool: list[int], known: set[int], n: int, budget: float | None, why: str, n_labels: int
) -> Appraisal:
    """Rows spread over those of the pool that the budget reaches for, away from rows that are known or asked for."""
    said = (*sheet.said, f"{why}: no model can tell what a label is worth.")
    free = [row for row in pool if row not in known and reached(sheet, [row], budget)]
    if not free:
        nothing = Ranking((), (), (), False, DISTANCE, (), ())
        return Appraisal(nothing, None, (*said, "The budget reaches for no label."), n_labels, len(pool))
    before = sheet.features.take(sorted(known)) if known else None
    spread = cold_start(sheet.features.take(free), n=n, known=before, random_state=sheet.brief.seed)
    found = renamed(spread, named_in(sheet, free), sheet.brief, None)
    ranking = _first(found, len(reached(sheet, found.indices, budget)))
    return Appraisal(ranking, None, (*said, *map(str, ranking.notes)), n_labels, len(pool))


def reached(sheet: Worksheet, rows: Sequence[int], budget: float | None) -> list[int]:
    """The first of some rows that a budget pays for together."""
    prices = [1.0 if sheet.costs is None else float(sheet.costs[row]) for row in rows]
    left = math.inf if budget is None else budget * (1.0 + _ROUNDING)
    return [row for row, total in zip(rows, accumulate(prices), strict=True) if total <= left]


def named_in(sheet: Worksheet, pool: Sequence[int]) -> Named:
    """For a position in the pool, that in the table, and the id."""
    return lambda place: (pool[place], sheet.ids[pool[place]])


def renamed(ranking: Ranking, named: Named, brief: Brief, found: Fitted | None) -> Ranking:
    """The ranking with positions in the table, and ids."""
    rows, ids = zip(*map(named, ranking.indices), strict=True) if ranking.indices else ((), ())
    reasons = tuple(
        replace(reason, contexts=tuple(_context(each, named, brief, found) for each in reason.contexts))
        for reason in ranking.reasons
    )
    return replace(ranking, indices=tuple(rows), row_ids=tuple(ids), reasons=reasons)


def _context(context: Any, named: Named, brief: Brief, found: Fitted | None) -> Any:
    """A context by its id, with the decision there by its name."""
    row, name = named(context.index)
    known = replace(context, index=row, row_id=name)
    if found is None or not isinstance(found.loss, CostMatrix) or brief.loss.cost_matrix is None:
        return known
    decision = decisions_of(brief.loss, found.classes or ())[int(context.prediction)]
    return replace(known, prediction=decision, answer=f"decision {decision!r}")


def _first(ranking: Ranking, n: int) -> Ranking:
    parts = {name: getattr(ranking, name)[:n] for name in ("indices", "row_ids", "scores", "reasons")}
    return replace(ranking, **parts)


# ----------------------------------------------------------------------
# What the next labels of a table are worth that is larger than memory.


def appraise_stream(
    sheet: StreamedSheet,
    n: int,
    *,
    budget: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Appraisal:
    """The `n` rows to label next, of all rows without a label: each is scored, and those that lead are kept."""
    known, labels, pool = sheet.known, sheet.known.labels, sheet.pool
    if why_cold(known, labels):
        return _of_sample(sheet, appraise(known, labels, n, budget=budget))
    if progress is not None:
        progress(f"fitting a model to {len(labels)} labels", None)
    others = [row for row in range(len(known.ids)) if row not in labels]
    found = fitted(known, labels, others)
    limits = effort(pool.n_rows, n, None if found.classes is None else len(found.classes))
    asked = Asked(pool, sheet.costs, n, budget, n_jobs=n_jobs)
    with explained(known, len(labels)):
        told = look_ahead(sheet.brief, found, asked, limits, progress)
    told = replace(told, ranking=renamed(told.ranking, _named(sheet, told.ranking), sheet.brief, found))
    return concluded(told, n, (*known.said, *found.said, *_sampled(sheet, len(others))), len(labels), pool.n_rows)


def _of_sample(sheet: StreamedSheet, found: Appraisal) -> Appraisal:
    """What was found among the rows that are in memory, with positions in the table."""
    rows = sheet.known.source.rows or ()
    ranking = replace(found.ranking, indices=tuple(rows[place] for place in found.ranking.indices))
    said = _sampled(sheet, found.n_pool)
    return replace(found, ranking=ranking, said=(*found.said, *said), n_pool=sheet.pool.n_rows)


def _named(sheet: StreamedSheet, ranking: Ranking) -> Named:
    """For a position in the pool, that in the table, and the id: those of rows that the ranking tells of."""
    contexts: Iterable[int] = (each.index for reason in ranking.reasons for each in reason.contexts)
    places = np.unique(np.asarray([*ranking.indices, *contexts], dtype=np.intp))
    rows = sheet.pool.rows(places)
    names = sheet.some(rows).ids if len(rows) else ()
    known = dict(zip(places.tolist(), zip(rows.tolist(), names, strict=True), strict=True))
    return lambda place: known[place]


def _sampled(sheet: StreamedSheet, count: int) -> tuple[str, ...]:
    """A sentence where some rows stand for all."""
    if count == sheet.pool.n_rows:
        return ()
    return (
        f"The table stays in its file: {count} of its {sheet.pool.n_rows} rows without a label, drawn with seed "
        f"{sheet.brief.seed}, tell what its columns hold, and ids are looked up for the rows told of only.",
    )
