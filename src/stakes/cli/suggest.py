"""`stakes suggest`: which rows of a table to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stakes.cli.options import (
    brief_from,
    files_read,
    force_option,
    json_option,
    loss_options,
    model_options,
    money_options,
    table_options,
)
from stakes.cli.output import as_json_or, how_far, note_lines, ranking_json, ranking_lines, waiting, wrapped
from stakes.files.write import checked_output
from stakes.tabular import Worksheet, read_worksheet
from stakes.tabular.filled import write_worksheet

if TYPE_CHECKING:
    from stakes.ranking import Outlook, Ranking


@click.command("suggest")
@click.argument("table")
@table_options
@loss_options
@model_options
@money_options
@click.option("-n", "n", type=click.IntRange(min=1), default=5, show_default=True, help="How many rows.")
@click.option("-o", "--output", help="Write the rows, to be filled in, to a CSV.")
@force_option
@click.option("--jobs", type=int, help="Workers that score rows; -1 for all cores.")
@json_option
def suggest_command(table: str, output: str | None, force: bool, as_json: bool, **given: Any) -> None:
    """Which rows of TABLE (CSV, Parquet or Arrow) to label next, what they are worth, why, and what was assumed.

    Rows whose target is empty are the pool, the others are the labels. Nothing is kept: see `stakes init` for that.
    TABLE may be larger than memory where it is a Parquet or Arrow file, or a folder of them: every row is then scored.
    """
    inputs = files_read(table, given)
    if output is not None:
        checked_output(output, inputs=inputs, overwrite=force)
    n, jobs, brief = given.pop("n"), given.pop("jobs"), brief_from(given)
    with waiting("reading the table") as show, how_far("reading the table", show) as progress:
        sheet = read_worksheet(table, brief, stream=True)
        if sheet.n_open == 0:
            done = "Every row has a label" if sheet.labels else f"{table} has no rows"
            as_json_or(as_json, {"rows": [], "done": done}, [f"{done}: there is nothing to suggest."])
            return
        from stakes.tabular import suggest

        ranking, outlook = suggest(sheet, n, budget=brief.budget, n_jobs=jobs, progress=progress)
    if output is not None:
        rows = sheet if sheet.stream is None else sheet.stream.worksheet(ranking.indices)
        write_worksheet(output, rows, ranking.row_ids, {}, overwrite=force, inputs=inputs)
    kept = None if outlook is None else {**outlook.to_dict(), "ranking": None}
    as_json_or(as_json, {**ranking_json(ranking, ranking.notes), "outlook": kept}, _lines(sheet, ranking, outlook))


def _lines(sheet: Worksheet, ranking: Ranking, outlook: Outlook | None) -> list[str]:
    have = "1 has" if len(sheet.labels) == 1 else f"{len(sheet.labels)} have"
    head = f"Label these rows next, of {sheet.n_open} without a label ({have} one):"
    worth = [] if outlook is None else [part for line in str(outlook).splitlines() for part in wrapped(line, "  ", "")]
    return [head, "", *ranking_lines(ranking), *([""] if worth else []), *worth, *note_lines(ranking.notes)]
