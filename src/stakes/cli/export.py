"""`stakes export`: a campaign as a CSV, or its rows for another labelling tool."""

from __future__ import annotations

import click

from stakes._utils.text import counted
from stakes.campaign import Campaign
from stakes.cli.options import force_option, json_option, table_moved, trust_option
from stakes.cli.output import as_json_or, shell_word, waiting

_CSV = "csv"
_TOOLS = ("label-studio", "argilla", "doccano")  # as stakes.exchange.FORMATS, which takes long to import
_NEXT = {
    "label-studio": "Next: in Label Studio, paste {setup} into the labelling interface, import {tasks}, and sample by "
    "prediction score; then stakes import {campaign} EXPORT.json, or stakes serve-label-studio {campaign}",
    "argilla": "Next: rg.Settings.from_json('{setup}'), records.from_json('{tasks}'), sort by rank; then stakes import "
    "{campaign} EXPORT.json",
    "doccano": "Next: import {tasks} and, under Labels, {setup}; then stakes import {campaign} EXPORT.jsonl",
}


@click.command("export")
@click.argument("campaign")
@click.option("-o", "--output", required=True, help="The file to write; for --format also a folder.")
@click.option(
    "--format",
    "tool",
    type=click.Choice([_CSV, *_TOOLS]),
    default=_CSV,
    show_default=True,
    help="A CSV of all rows, or what wants a label, in order, for a labelling tool.",
)
@click.option("-n", "n", type=click.IntRange(min=1), help="With a tool: how many rows at most.")
@click.option("--guess", is_flag=True, help="With a tool: show people what the model would answer.")
@click.option("--events", is_flag=True, help="All events instead of the rows.")
@force_option
@table_moved
@trust_option
@json_option
def export_command(
    campaign: str,
    output: str,
    tool: str,
    n: int | None,
    guess: bool,
    events: bool,
    force: bool,
    table: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Write the rows of CAMPAIGN with labels and status, for a spreadsheet. `stakes import` takes it back, filled in.

    A cell that a spreadsheet would run as a formula gets an apostrophe in front, which import takes off.

    With --format, write the rows that want a label for Label Studio, Argilla or doccano, in the order in which to label
    them, and what sets up a project there. `stakes import` takes its export back. Nobody is handed any row.
    """
    if tool == _CSV and (n is not None or guess):
        raise click.UsageError("-n and --guess are for --format label-studio, argilla or doccano.")
    if tool != _CSV and events:
        raise click.UsageError("--events are written as a CSV: leave --format out.")
    with Campaign.open(campaign, table, trust=trust) as opened:
        if tool != _CSV:
            _export_tasks(opened, output, tool, n, guess, force, campaign, as_json)
            return
        with waiting("writing rows"):
            count = opened.export(output, events=events, overwrite=force)
    text = f"Wrote {count} {'events' if events else 'rows'} to {output}."
    back = (
        []
        if events
        else [f"Next: fill in labels there, then stakes import {shell_word(campaign)} {shell_word(output)}"]
    )
    as_json_or(as_json, {"file": output, "lines": count}, [text, *back])


def _export_tasks(
    opened: Campaign, output: str, tool: str, n: int | None, guess: bool, force: bool, campaign: str, as_json: bool
) -> None:
    from stakes.exchange import export_tasks

    with waiting("reading the table") as progress:
        done = export_tasks(opened, output, tool, n=n, guess=guess, overwrite=force, progress=progress)
    tasks, setup = map(str, done.files)
    left_out = f" {counted(done.asked, 'row')} left out, as somebody was asked for them." if done.asked else ""
    lines = [
        f"Wrote {counted(done.tasks, 'row')}, best first, to {tasks}, and {setup}.{left_out}",
        _NEXT[tool].format(tasks=tasks, setup=setup, campaign=shell_word(campaign)),
    ]
    as_json_or(as_json, {"files": [tasks, setup], "rows": done.tasks, "asked": done.asked}, lines)
