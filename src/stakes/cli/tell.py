"""`stakes tell` and `stakes import`: labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from stakes.campaign import Campaign, Recorded
from stakes.cli.options import applied, json_option, reading_options, trust_option, who_option
from stakes.cli.output import as_json_or, shell_word, waiting
from stakes.files.frame import cell_kind

_labels = applied(
    click.option("--replace", is_flag=True, help="Replace the labels that rows have."),
    click.option("--new-class", is_flag=True, help="A class that no row has had is no mistake."),
    click.option("--annotator", metavar="NAME", help="Whose label it is: beside that of another it is an opinion."),
    who_option,
    trust_option,
    json_option,
)


@click.command("tell", context_settings={"ignore_unknown_options": True})  # a label may be -3.5
@click.argument("campaign")
@click.argument("row")
@click.argument("label")
@_labels
def tell_command(
    campaign: str,
    row: str,
    label: str,
    replace: bool,
    new_class: bool,
    annotator: str | None,
    who: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Record LABEL of ROW. It is on the disk when the command returns; once more, it changes nothing."""
    with Campaign.open(campaign, trust=trust) as opened:
        recorded = opened.tell(row, label, replace=replace, new_class=new_class, who=who, annotator=annotator)
        kept = label.strip() if recorded.opinions else opened.journal.state(row).label
    odd = kept not in (None, label.strip()) and cell_kind(label) != "number"
    _show(recorded, campaign, as_json, [f"Read {label.strip()} as {kept}."] if odd else [])


@click.command("import")
@click.argument("campaign")
@click.argument("file")
@reading_options
@_labels
def import_command(
    campaign: str,
    file: str,
    replace: bool,
    new_class: bool,
    annotator: str | None,
    who: str | None,
    trust: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Record the labels in FILE, all or none: a filled-in export, a file of `ask -o`, or the filled-in table itself.

    FILE is a CSV or a spreadsheet. It is read as the table of the campaign is, unless options say otherwise. Or it is
    an export of Label Studio, Argilla or doccano (JSON, JSON lines or CSV), which is known by what it holds.
    """
    from stakes.exchange.formats import import_answers  # here, as `tell` needs none of it

    reading = {name: value for name, value in given.items() if value not in (None, ())}
    with Campaign.open(campaign, trust=trust) as opened, waiting("recording labels"):
        recorded = import_answers(opened, file, replace=replace, new_class=new_class, who=who, annotator=annotator)
        if recorded is None:
            recorded = opened.import_labels(
                file, replace=replace, new_class=new_class, who=who, annotator=annotator, **reading
            )
    _show(recorded, campaign, as_json)


def _show(recorded: Recorded, campaign: str, as_json: bool, more: Sequence[str] = ()) -> None:
    names = ("recorded", "known already", "replaced", "recorded as opinions beside the labels of others")
    parts = [f"{len(rows)} {name}" for name, rows in zip(names, recorded, strict=True) if rows]
    done = ", ".join(parts) or "No labels there."
    file = shell_word(campaign)
    then = [f"Next: stakes status {file}, or stakes ask {file} for more rows"] if parts else []
    as_json_or(as_json, recorded._asdict(), [done, *more, *then])
