"""`stakes export`: a campaign as a CSV."""

from __future__ import annotations

import click

from stakes.campaign import Campaign
from stakes.cli.options import force_option, json_option, table_moved, trust_option
from stakes.cli.output import as_json_or, shell_word, waiting


@click.command("export")
@click.argument("campaign")
@click.option("-o", "--output", required=True, help="The CSV to write.")
@click.option("--events", is_flag=True, help="All events instead of the rows.")
@force_option
@table_moved
@trust_option
@json_option
def export_command(
    campaign: str, output: str, events: bool, force: bool, table: str | None, trust: bool, as_json: bool
) -> None:
    """Write the rows of CAMPAIGN with labels and status, for a spreadsheet. `stakes import` takes it back, filled in.

    A cell that a spreadsheet would run as a formula gets an apostrophe in front, which import takes off.
    """
    with Campaign.open(campaign, table, trust=trust) as opened, waiting("writing rows"):
        count = opened.export(output, events=events, overwrite=force)
    text = f"Wrote {count} {'events' if events else 'rows'} to {output}."
    back = (
        []
        if events
        else [f"Next: fill in labels there, then stakes import {shell_word(campaign)} {shell_word(output)}"]
    )
    as_json_or(as_json, {"file": output, "lines": count}, [text, *back])
