"""What the next labels of a table are worth that is larger than memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from stakes.ranking import Ranking
from stakes.ranking.question import Progress
from stakes.worksheets.appraisal import Appraisal, Asked, Named, appraise, concluded, look_ahead, renamed, why_cold
from stakes.worksheets.effort import effort
from stakes.worksheets.fitting import explained, fitted
from stakes.worksheets.streamed import StreamedSheet


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
