"""`stakes ask`: rows to label."""

from __future__ import annotations

from shlex import quote

import click

from stakes.campaign import Asked, Campaign
from stakes.cli.options import json_option, table_moved, who_option
from stakes.cli.output import as_json_or, assumed, local_time, ranked_lines, score_name, waiting, wrapped

_DAY = 24 * 3600.0


@click.command("ask")
@click.argument("campaign")
@click.option("-n", "n", type=click.IntRange(min=1), default=1, show_default=True, help="How many rows.")
@click.option("--days", type=click.FloatRange(0, min_open=True), default=7.0, show_default=True, help="Of the lease.")
@click.option("-o", "--output", help="Write the rows, to be filled in and imported, to a CSV.")
@who_option
@table_moved
@json_option
def ask_command(
    campaign: str, n: int, days: float, output: str | None, who: str | None, table: str | None, as_json: bool
) -> None:
    """Hand out the rows of CAMPAIGN to label next. Nobody else gets them until they come back."""
    with Campaign.open(campaign, table) as opened, waiting("reading the table") as progress:
        asked = opened.ask(n, lease=days * _DAY, who=who, progress=progress)
        if output is not None and asked.rows:
            opened.export(output, rows=[row.id for row in asked.rows])
    as_json_or(as_json, asked.to_dict(), _lines(asked, campaign, n, output))


def _lines(asked: Asked, campaign: str, n: int, output: str | None) -> list[str]:
    if not asked.rows:
        return [f"Nothing to hand out: {asked.done}."]
    until = "" if asked.until is None else f" They come back on {local_time(asked.until)}."
    filled = f"Fill in {output}, then: stakes import {campaign} {output}"
    how = filled if output else f"Tell a label: stakes tell {campaign} {quote(asked.rows[0].id)} LABEL"
    ids, scores = [row.id for row in asked.rows], [row.score for row in asked.rows]
    return [
        f"Label these rows.{until}",
        "",
        *ranked_lines(ids, scores, score_name(asked.ranked_by, asked.per_cost), [row.why for row in asked.rows]),
        *(["", *wrapped(f"Stale: {asked.stale}.")] if asked.stale else []),
        *(["", f"Only {len(ids)} of {n} rows: {asked.done}."] if asked.done else []),
        *assumed(asked.said),
        "",
        how,
    ]
