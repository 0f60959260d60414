"""`stakes init`: a new campaign."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from stakes.campaign import Campaign
from stakes.cli.options import brief_from, json_option, loss_options, model_options, money_options, table_options
from stakes.cli.output import as_json_or, shell_word, waiting, wrapped
from stakes.cli.questions import complete
from stakes.tabular import Brief


@click.command("init")
@click.argument("campaign")
@click.argument("table")
@table_options
@loss_options
@model_options
@money_options
@json_option
def init_command(campaign: str, table: str, as_json: bool, **given: Any) -> None:
    """Begin a campaign in the new file CAMPAIGN (such as prices.stakes) for the rows of TABLE.

    Labels that the table has are taken over. The table is not copied: keep it as it is, beside the campaign.
    """
    complete(table, given, as_json=as_json)
    brief, notes = brief_from(given, table)
    rest = {each.name: getattr(brief, each.name) for each in fields(Brief) if each.name not in ("target", "loss")}
    with waiting("reading the table"), Campaign.create(campaign, table, brief.target, brief.loss, **rest) as made:
        status = made.status(refresh=False)
    lines = [f"{campaign}: {status.rows} rows, {status.labelled} of them with a label."]
    lines += [line for sentence in notes for line in wrapped(sentence)]
    lines += [f"Next: stakes ask {shell_word(campaign)} -n 5"]
    answer = {"campaign": campaign, "rows": status.rows, "labelled": status.labelled, "notes": list(notes)}
    as_json_or(as_json, answer, lines)
