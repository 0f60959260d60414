"""`stakes set`: money settings of a campaign that runs."""

from __future__ import annotations

import click

from stakes._utils.text import short
from stakes.campaign import Campaign
from stakes.cli.options import json_option
from stakes.cli.output import as_json_or, local_time

_NAMES = {"decisions": "decisions", "label-cost": "label_cost", "budget": "budget"}


@click.command("set")
@click.argument("campaign")
@click.option("--decisions", type=float, help="How many decisions will be taken with the model, in all.")
@click.option("--label-cost", type=float, help="What a label of any row costs from now on, in units of the loss.")
@click.option("--budget", type=float, help="For all labels since the campaign began, in units of the costs.")
@click.option("--unset", multiple=True, type=click.Choice(list(_NAMES)), help="A setting to unset; can be repeated.")
@json_option
def set_command(
    campaign: str,
    decisions: float | None,
    label_cost: float | None,
    budget: float | None,
    unset: tuple[str, ...],
    as_json: bool,
) -> None:
    """Change settings of CAMPAIGN while it runs; what they were is kept. Without options, show them."""
    given = {"decisions": decisions, "label_cost": label_cost, "budget": budget}
    changes: dict[str, float | None] = {name: value for name, value in given.items() if value is not None}
    if twice := [name for name in unset if _NAMES[name] in changes]:
        raise click.UsageError(f"--{twice[0]} is given, and unset: give one of them.")
    changes |= dict.fromkeys(_NAMES[name] for name in unset)
    with Campaign.open(campaign) as opened:
        if changes:
            opened.change_settings(**changes)
        now = {name: getattr(opened.brief, name) for name in given}
        history = [{"at": at, **new} for at, new in opened.settings_changes()]
    lines = [f"{name}: {_text(now[key])}" for name, key in _NAMES.items()]
    if history:
        lines += ["", "Changes:"]
        for each in history:
            what = ", ".join(f"{name} {_text(each[key])}" for name, key in _NAMES.items() if key in each)
            lines.append(f"  {local_time(float(each['at'] or 0.0))}  {what}")
    as_json_or(as_json, {**now, "changes": history}, lines)


def _text(value: float | None) -> str:
    return "not set" if value is None else short(value)
