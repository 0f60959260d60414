"""`stakes audit`: rows to test the model on, and what it loses by their labels."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

import click

from stakes._utils.text import counted, number
from stakes.campaign import Campaign
from stakes.cli.options import force_option, json_option, table_moved, trust_option, who_option
from stakes.cli.output import as_json_or, shell_word, waiting, wrapped


@click.command("audit")
@click.argument("campaign")
@click.option("-n", "n", type=click.IntRange(min=1), default=20, show_default=True, help="How many rows to draw.")
@click.option("-o", "--output", help="Write the rows, to be filled in and imported, to a CSV.")
@click.option("--read", is_flag=True, help="End the audit, and say what its labels tell.")
@click.option(
    "--use-for-training", is_flag=True, help="With --read: from now on fit the model to the labels of tests, too."
)
@force_option
@who_option
@table_moved
@trust_option
@json_option
def audit_command(
    campaign: str,
    n: int,
    output: str | None,
    read: bool,
    use_for_training: bool,
    force: bool,
    who: str | None,
    table: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Draw rows of CAMPAIGN to test the model on: what does it lose today, on all rows that are open?

    Tell their labels as any others, in any order; the model is not fitted to them. Once all have come, `stakes status`
    says what the loss is; --read ends the audit earlier, or lets the labels be used for training.
    """
    if use_for_training and not read:
        raise click.UsageError("--use-for-training goes with --read: labels test the model before it learns from them.")
    if read and output is not None:
        raise click.UsageError("-o is for the rows of a new audit, and --read ends one: give one of them.")
    with Campaign.open(campaign, table, trust=trust) as opened, waiting("reading the table") as progress:
        if read:
            found = opened.read_audit(use_for_training=use_for_training, who=who)
            answer = {name: value if isfinite(value) else None for name, value in asdict(found).items()}
            lines = _read_lines(found, use_for_training, shell_word(campaign))
            as_json_or(as_json, {**answer, "text": f"Your loss is {found}."}, lines)
            return
        if output is not None:
            opened.check_output(output, overwrite=force)
        rows = opened.audit(n, who=who, progress=progress)
        if output is not None:
            _write(opened, rows, output, force, who)
    as_json_or(as_json, {"rows": list(rows)}, _lines(rows, campaign, output))


def _write(campaign: Campaign, rows: tuple[str, ...], output: str, force: bool, who: str | None) -> None:
    """Rows that nobody was given, as they could not be written, go back."""
    try:
        campaign.export(output, rows=rows, overwrite=force)
    except BaseException:
        campaign.release(rows, who=who)
        raise


def _lines(rows: tuple[str, ...], campaign: str, output: str | None) -> list[str]:
    file = shell_word(campaign)
    filled = f"Fill in {output}, then: stakes import {file} {shell_word(output or '')}"
    how = filled if output else f"Tell a label: stakes tell {file} {shell_word(rows[0])} LABEL"
    return [
        f"Label {counted(len(rows), 'row')} to test the model; it does not learn from them.",
        "",
        *(f"{place:3d} {row}" for place, row in enumerate(rows, 1)),
        "",
        how,
        f"Then: stakes audit {file} --read",
    ]


def _read_lines(found: Any, used: bool, file: str) -> list[str]:
    learnt = "learns from these labels from now on" if used else "has not learnt from these labels"
    return [
        *wrapped(f"Your loss is {found}."),
        *wrapped(f"The model expected {number(found.expected, 2)} a decision on the {found.rows:,} rows; it {learnt}."),
        *([] if used else [f"Let it learn from them: stakes audit {file} --read --use-for-training"]),
    ]
