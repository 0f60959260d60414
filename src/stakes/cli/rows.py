"""`stakes skip`, `release` and `withdraw`: what becomes of rows other than a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from stakes._utils.text import listed
from stakes.campaign import Campaign
from stakes.cli.options import applied, json_option, who_option
from stakes.cli.output import as_json_or

_IDS = {"ignore_unknown_options": True}  # an id may be -5
_rows = applied(click.argument("campaign"), click.argument("rows", nargs=-1, required=True), who_option, json_option)


@click.command("skip", context_settings=_IDS)
@_rows
def skip_command(**given: Any) -> None:
    """Never ask for ROWS again, until they are released: those that cannot be labelled."""
    _change(Campaign.skip, "skipped", **given)


@click.command("release", context_settings=_IDS)
@_rows
def release_command(**given: Any) -> None:
    """Give ROWS that are asked for, or skipped, back to the pool."""
    _change(Campaign.release, "released", **given)


@click.command("withdraw", context_settings=_IDS)
@_rows
def withdraw_command(**given: Any) -> None:
    """Take the labels of ROWS back. They are open again; the labels stay in the history."""
    _change(Campaign.withdraw, "withdrawn", **given)


def _change(
    change: Callable[[Campaign, Sequence[str], str | None], None],
    done: str,
    campaign: str,
    rows: tuple[str, ...],
    who: str | None,
    as_json: bool,
) -> None:
    with Campaign.open(campaign) as opened:
        change(opened, rows, who)
    as_json_or(as_json, {done: list(rows)}, [f"{len(rows)} {done}: {listed(rows)}"])
