"""`stakes status`: where a campaign stands, and whether to go on."""

from __future__ import annotations

from typing import Any

import click

from stakes._utils.text import counted, if_a_member_is_right, number, plus_minus, short
from stakes.campaign import Campaign, Status
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
    as_json_or(as_json, status.to_dict(), [*_status_lines(status), *_next(status, shell_word(campaign))])


def _next(status: Status, file: str) -> list[str]:
    """The command that comes next."""
    if status.open and not status.advice.startswith(_ENOUGH):
        return [f"Next: stakes ask {file} -n 5"]
    return [f"Next: stakes import {file} FILE"] if status.asked or status.testing else [f"Next: stakes report {file}"]


def _status_lines(status: Status) -> list[str]:
    """A status as lines of text."""
    counts = f"{status.rows} rows: {status.labelled} labelled, {status.asked} asked for, {status.skipped} skipped, "
    tests = f", {status.testing} drawn to test the model" if status.testing else ""
    tests += f", {status.tested} tested" if status.tested else ""
    tests += f", {status.unsure} that somebody was not sure of" if status.unsure else ""
    money = f"Spent {short(status.spent)}"
    if status.budget is not None:
        left, promised = short(status.budget_left or 0.0), short(status.pending)
        money += f" of {short(status.budget)}; {left} left, {promised} promised"
    return [
        f"{counts}{status.open} open{tests}",
        money,
        *([_to_settle(status.disagreements)] if status.disagreements else []),
        *status.annotators,
        *(wrapped(status.audit["text"], "  ", "") if status.audit else []),
        *(_outlook_lines(status.outlook, status.outlook_labels or 0) if status.outlook else []),
        *(wrapped(f"Stale: {status.stale}", "  ", "") if status.stale else []),
        *wrapped(status.advice, "  ", ""),
    ]


def _to_settle(count: int) -> str:
    return f"On {counted(count, 'row')} annotators differ: stakes label has them to be settled."


def _outlook_lines(outlook: dict[str, Any], labels: int) -> list[str]:
    today, most = outlook["today"], outlook["most"]
    condition = if_a_member_is_right(offer.get("joint") for offer in outlook["offers"])
    lines = [
        f"After {labels} label{'s' * (labels != 1)} the expected loss of a decision is {plus_minus(**today)}.",
        f"The most that labels can save of it{condition}: {plus_minus(**most)}.",
    ]
    for offer in outlook["offers"]:
        if offer["size"] & (offer["size"] - 1) == 0:
            saves = "label saves" if offer["size"] == 1 else f"{offer['size']} labels save"
            amount = plus_minus(offer["worth"], offer["error"])
            lines.append(f"The next {saves} {amount} a decision{_price(offer)}.")
    return lines


def _price(offer: dict[str, Any]) -> str:
    """From how many decisions on labels are worth their cost, where that is known and ever so."""
    if offer["break_even"] is None:
        return ""
    return f"; worth the cost of {short(offer['cost'])} from {number(offer['break_even'], 3)} decisions on"
