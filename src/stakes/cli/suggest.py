"""`stakes suggest`: which rows of a table to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import click

from stakes.cli.options import brief_from, json_option, loss_options, model_options, money_options, table_options
from stakes.cli.output import as_json_or, assumed, how_far, ranked_lines, score_name, waiting, wrapped
from stakes.tabular import Brief, Worksheet, read_worksheet
from stakes.tabular.streamed import is_large, read_streamed
from stakes.tabular.worksheet import write_worksheet

if TYPE_CHECKING:
    from stakes._utils.progress import Progress
    from stakes.tabular import Appraisal

    Told: TypeAlias = tuple[Worksheet, Appraisal] | str
    """The rows suggested, as a table, and why; or why there are none."""


@click.command("suggest")
@click.argument("table")
@table_options
@loss_options
@model_options
@money_options
@click.option("-n", "n", type=click.IntRange(min=1), default=5, show_default=True, help="How many rows.")
@click.option("-o", "--output", help="Write the rows, to be filled in, to a CSV.")
@click.option("--jobs", type=int, help="Workers that score rows; -1 for all cores.")
@json_option
def suggest_command(table: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Which rows of TABLE (CSV, Parquet or Arrow) to label next, what they are worth, why, and what was assumed.

    Rows whose target is empty are the pool, the others are the labels. Nothing is kept: see `stakes init` for that.
    TABLE may be larger than memory where it is a Parquet or Arrow file, or a folder of them: every row is then scored.
    """
    n, jobs, brief = given.pop("n"), given.pop("jobs"), brief_from(given)
    with waiting("reading the table") as show, how_far("reading the table", show) as progress:
        told = (_of_stream if is_large(table) else _of_table)(table, brief, n, jobs, progress)
    if isinstance(told, str):
        as_json_or(as_json, {"rows": [], "done": told}, [f"{told}: there is nothing to suggest."])
        return
    sheet, found = told
    if output is not None:
        write_worksheet(output, sheet, found.ranking.row_ids, {})
    as_json_or(as_json, _plain(found), _lines(found))


def _of_table(table: str, brief: Brief, n: int, jobs: int | None, progress: Progress) -> Told:
    sheet = read_worksheet(table, brief)
    if len(sheet.labels) == len(sheet.ids):
        return "Every row has a label" if sheet.ids else f"{table} has no rows"
    from stakes.tabular.suggest import appraise

    return sheet, appraise(sheet, sheet.labels, n, budget=brief.budget, n_jobs=jobs, progress=progress)


def _of_stream(table: str, brief: Brief, n: int, jobs: int | None, progress: Progress) -> Told:
    sheet = read_streamed(table, brief)
    if sheet.pool.n_rows == 0:
        return "Every row has a label" if len(sheet.labelled) else f"{table} has no rows"
    from stakes.tabular.suggest import appraise_stream

    found = appraise_stream(sheet, n, budget=brief.budget, n_jobs=jobs, progress=progress)
    return sheet.some(found.ranking.indices), found


def _lines(found: Appraisal) -> list[str]:
    from stakes.tabular.suggest import whys

    ranking, told = found.ranking, found.outlook
    have = "1 has" if found.n_labels == 1 else f"{found.n_labels} have"
    head = f"Label these rows next, of {found.n_pool} without a label ({have} one):"
    name = score_name(ranking.ranked_by, ranking.per_cost)
    rows = ranked_lines(ranking.row_ids, ranking.to_dict()["scores"], name, whys(ranking))
    outlook = [] if told is None else [part for line in str(told).splitlines() for part in wrapped(line, "  ", "")]
    return [head, "", *rows, *([""] if outlook else []), *outlook, *assumed(found.said)]


def _plain(found: Appraisal) -> dict[str, Any]:
    from stakes.tabular.suggest import whys

    ranking = found.ranking.to_dict()
    parts = zip(ranking["row_ids"], ranking["scores"], ranking["reasons"], whys(found.ranking), strict=True)
    rows = [{"row": row, "score": score, "worth": reason["worth"], "why": why} for row, score, reason, why in parts]
    told = None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None}
    return {"rows": rows, "ranked_by": ranking["ranked_by"], "outlook": told, "assumed": list(found.said)}
