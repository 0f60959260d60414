"""`stakes doctor`: is everything there, and is a campaign file sound?"""

from __future__ import annotations

import importlib.metadata
import platform
import sqlite3

import click

from stakes import __version__
from stakes.campaign import Campaign
from stakes.cli.options import json_option, table_moved
from stakes.cli.output import as_json_or, waiting

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "array-api-compat", "click")
_EXTRAS = {"matplotlib": "plot", "pyarrow": "parquet", "torch": "torch"}


@click.command("doctor")
@click.argument("campaign", required=False)
@table_moved
@json_option
def doctor_command(campaign: str | None, table: str | None, as_json: bool) -> None:
    """Check what is installed; with CAMPAIGN, also every page, every event and the table of a campaign."""
    found = {name: _version(name) for name in (*_NEEDED, *_EXTRAS)}
    system = {"stakes": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    lines = [f"{name} {version}" for name, version in system.items()]
    lines += [_line(name, version) for name, version in found.items()]
    if campaign is not None:
        with Campaign.open(campaign, table) as opened, waiting("looking through the campaign"):
            opened.journal.check()
            rows = len(opened.sheet.ids)
        lines.append(f"{campaign}: sound; its table has the {rows} rows that it had")
    checked = {} if campaign is None else {"campaign": "sound"}
    as_json_or(as_json, {**system, **found, **checked}, lines)
    if missing := [name for name in _NEEDED if found[name] is None]:
        raise click.ClickException(f"not installed: {', '.join(missing)}")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _line(name: str, version: str | None) -> str:
    if version is not None:
        return f"{name} {version}"
    extra = f" (pip install 'stakes[{_EXTRAS[name]}]')" if name in _EXTRAS else ""
    return f"{name} is not installed{extra}"
