"""`stakes suggest`: which rows of a table to label next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
    verbose_option,
)
from stakes.cli.output import (
    APART,
    apart_cells,
    as_json_or,
    how_far,
    note_lines,
    ranking_json,
    ranking_lines,
    rows_compared,
    waiting,
    wrapped,
)
from stakes.cli.questions import command_line, complete
from stakes.files.write import checked_output
from stakes.tabular import Worksheet, read_worksheet
from stakes.tabular.filled import write_worksheet

if TYPE_CHECKING:
    from stakes.ranking import Note, Outlook

_NOT_OF_INIT = ("n", "jobs", "output", "force", "verbose", "as_json")  # options that `stakes init` does not have


@click.command("suggest")
@click.argument("table")
@table_options
@loss_options
@model_options
@money_options
@click.option("-n", "n", type=click.IntRange(min=1), default=5, show_default=True, help="How many rows.")
@click.option("-o", "--output", help="Write the rows, to be filled in, to a CSV or an .xlsx.")
@force_option
@click.option("--jobs", type=int, help="Workers that score rows; -1 for all cores.")
@verbose_option
@json_option
def suggest_command(table: str, output: str | None, force: bool, verbose: bool, as_json: bool, **given: Any) -> None:
    """Which rows of TABLE (CSV, a spreadsheet, Parquet, Arrow) to label next, what they are worth, and why.

    Rows whose target is empty are the pool, the others are the labels. Nothing is kept: see `stakes init` for that.
    TABLE may be larger than memory where it is a Parquet or Arrow file, or a folder of them: every row is then scored.
    """
    complete(table, given, as_json=as_json)
    options = dict(given)
    inputs = files_read(table, given)
    if output is not None:
        checked_output(output, inputs=inputs, overwrite=force)
    n, jobs, (brief, read_notes) = given.pop("n"), given.pop("jobs"), brief_from(given, table)
    with waiting("reading the table") as show, how_far("reading the table", show) as progress:
        sheet = read_worksheet(table, brief, stream=True)
        if sheet.n_open == 0:
            done = "Every row has a label" if sheet.labels else f"{table} has no rows"
            as_json_or(as_json, {"rows": [], "done": done}, [f"{done}: there is nothing to suggest."])
            return
        from stakes.tabular import suggest
        from stakes.tabular.contrasts import contrasts

        ranking, outlook = suggest(sheet, n, budget=brief.budget, n_jobs=jobs, progress=progress)
        apart = contrasts(sheet, ranking.indices, sheet.labels)
    notes = [*(_note_on_costs(sentence) for sentence in read_notes), *ranking.notes]
    if output is not None:
        rows = sheet if sheet.stream is None else sheet.stream.worksheet(ranking.indices)
        more = {APART: apart_cells(apart)}
        write_worksheet(output, rows, ranking.row_ids, {}, more, overwrite=force, inputs=inputs)
    if sheet.stream is None:
        options["id_column"] = options["id_column"] or sheet.likely_id
    keep = command_line(options, "init", [f"{Path(table).stem}.stakes", table], _NOT_OF_INIT)
    kept = None if outlook is None else {**outlook.to_dict(), "ranking": None}
    together = None if outlook is None else [offer.worth for offer in outlook.offers]
    lines = [
        *_head(sheet),
        *ranking_lines(ranking, apart, rows_compared(len(sheet.labels)), verbose=verbose, together=together),
        *_worths(outlook, n, verbose),
        *note_lines(notes, verbose=verbose),
        *_next(brief.target, output, keep),
    ]
    as_json_or(as_json, {**ranking_json(ranking, apart, notes), "outlook": kept}, lines)


def _note_on_costs(sentence: str) -> Note:
    from stakes.ranking import Note

    return Note("costs", {"text": sentence})


def _head(sheet: Worksheet) -> list[str]:
    have = "1 has" if len(sheet.labels) == 1 else f"{len(sheet.labels)} have"
    return [f"Label these rows next, of {sheet.n_open} without a label ({have} one):", ""]


def _worths(outlook: Outlook | None, n: int, verbose: bool) -> list[str]:
    """What labels save: of the rows shown, or where all is wanted of 1, 2, 4, .. rows."""
    if outlook is None:
        return []
    lines = str(outlook).splitlines()
    if not verbose and outlook.offers:
        some = replace(outlook, offers=outlook.offers[:n])  # the last of its lines on offers is on all of them
        lines = [lines[0], str(some).splitlines()[-1 - len(some.sentences)], *outlook.sentences]
    return ["", *(part for line in lines for part in wrapped(line, "  ", ""))]


def _next(target: str, output: str | None, keep: str) -> list[str]:
    """What to do now."""
    where = repr(target) if output is None else f"{output}, copy that into the table"
    filled = f"fill in {where} and run this again"
    return ["", *wrapped(f"Next: {filled}, or begin a campaign:"), f"  {keep}"]
