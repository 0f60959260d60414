"""`stakes suggest`: which rows of a table to label next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stakes.cli.options import brief_from, json_option, loss_options, model_options, money_options, table_options
from stakes.cli.show import as_json_or, assumed, ranked_lines, wrapped
from stakes.cli.waiting import waiting
from stakes.worksheets import read_worksheet
from stakes.worksheets.writing import write_rows

if TYPE_CHECKING:
    from stakes.ranking import Ranking
    from stakes.worksheets import Appraisal


@click.command("suggest")
@click.argument("table")
@table_options
@loss_options
@model_options
@money_options
@click.option("-n", "n", type=click.IntRange(min=1), default=5, show_default=True, help="How many rows.")
@click.option("-o", "--output", help="Write the rows, to be filled in, to a CSV.")
@json_option
def suggest_command(table: str, n: int, output: str | None, as_json: bool, **given: Any) -> None:
    """Which rows of TABLE (CSV, Parquet or Arrow) to label next, what they are worth, why, and what was assumed.

    Rows whose target is empty are the pool, the others are the labels. Nothing is kept: see `stakes init` for that.
    """
    brief = brief_from(given)
    with waiting("reading the table") as progress:
        sheet = read_worksheet(table, brief)
        if len(sheet.labels) == len(sheet.ids):
            why = "Every row has a label: there is nothing to suggest."
            as_json_or(as_json, {"rows": [], "done": why}, [why])
            return
        from stakes.worksheets.appraise import appraise

        found = appraise(sheet, sheet.labels, n, budget=brief.budget, progress=progress)
    if output is not None:
        write_rows(output, sheet, found.ranking.labels, {})
    as_json_or(as_json, _plain(found), _lines(found))


def _lines(found: Appraisal) -> list[str]:
    ranking, told = found.ranking, found.outlook
    head = f"Label these rows next, of {found.n_pool} without a label ({found.n_labels} have one):"
    whys = [str(reason) for reason in ranking.reasons]
    rows = ranked_lines(ranking.labels, ranking.to_dict()["scores"], _name(ranking), whys)
    outlook = [] if told is None else [part for line in str(told).splitlines() for part in wrapped(line, "  ", "")]
    return [head, "", *rows, "", *outlook, *assumed(found.said)]


def _plain(found: Appraisal) -> dict[str, Any]:
    ranking = found.ranking.to_dict()
    rows = [
        {"row": row, "score": score, "worth": reason["worth"], "why": str(why)}
        for row, score, reason, why in zip(
            ranking["labels"], ranking["scores"], ranking["reasons"], found.ranking.reasons, strict=True
        )
    ]
    told = None if found.outlook is None else {**found.outlook.to_dict(), "ranking": None}
    return {"rows": rows, "ranked_by": ranking["ranked_by"], "outlook": told, "assumed": list(found.said)}


def _name(ranking: Ranking) -> str:
    what = {"gain": "worth on top of the rows above, a decision", "worth": "worth alone, a decision"}
    name = what.get(ranking.ranked_by, ranking.ranked_by)
    return f"{name} and unit of cost" if ranking.per_cost else name
