"""`stakes status`: where a campaign stands, and whether to go on."""

from __future__ import annotations

import click

from stakes.campaign import Campaign, Status
from stakes.campaign.shown import status_lines
from stakes.cli.options import json_option, table_moved, trust_option
from stakes.cli.output import as_json_or, shell_word, waiting, wrapped

_ENOUGH = ("Stop", "Done")  # how advice begins after which no more rows are asked for


@click.command("status")
@click.argument("campaign")
@click.option("--refresh/--no-refresh", default=True, show_default=True, help="Fit the model to the latest labels.")
@table_moved
@trust_option
@json_option
def status_command(campaign: str, refresh: bool, table: str | None, trust: bool, as_json: bool) -> None:
    """Where CAMPAIGN stands, what the next labels are worth, and whether to go on."""
    with Campaign.open(campaign, table, trust=trust) as opened, waiting("reading the table") as progress:
        status = opened.status(refresh=refresh, progress=progress)
    lines = status_lines(status, lambda text: wrapped(text, "  ", ""))
    as_json_or(as_json, status.to_dict(), [*lines, *_next(status, shell_word(campaign))])


def _next(status: Status, file: str) -> list[str]:
    """The command that comes next."""
    if status.open and not status.advice.startswith(_ENOUGH):
        return [f"Next: stakes ask {file} -n 5"]
    return [f"Next: stakes import {file} FILE"] if status.asked or status.testing else [f"Next: stakes report {file}"]
