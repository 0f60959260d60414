"""`stakes doctor`: is everything there, and is a campaign file sound?"""

from __future__ import annotations

import importlib.metadata
import platform
import sqlite3
from typing import Any

import click

from stakes import __version__
from stakes.campaign import Campaign
from stakes.campaign.new_files import recover
from stakes.campaign.trust import is_trusted
from stakes.cli.options import json_option, table_moved, trust_option
from stakes.cli.output import as_json_or, waiting

_NEEDED = (
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "threadpoolctl",
    "array-api-compat",
    "click",
    "openpyxl",
    "python-calamine",
)
_EXTRAS = {"numba": "fast", "starlette": "label", "matplotlib": "plot", "pyarrow": "parquet", "torch": "torch"}


@click.command("doctor")
@click.argument("campaign", required=False)
@click.option("--recover", "new", help="Take what is sound in CAMPAIGN, up to the first damage, into this new file.")
@table_moved
@trust_option
@json_option
def doctor_command(campaign: str | None, new: str | None, table: str | None, trust: bool, as_json: bool) -> None:
    """Check what is installed, and solve a small problem.

    With CAMPAIGN, also look at every page, event, hash and label and at the table of a campaign.
    """
    if new is not None:
        _recover(campaign, new, as_json)
        return
    found = {name: _version(name) for name in (*_NEEDED, *_EXTRAS)}
    system = {"stakes": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    lines = [f"{name} {version}" for name, version in system.items()]
    lines += [_line(name, version) for name, version in found.items()]
    checked: dict[str, Any] = {}
    if campaign is not None:
        with Campaign.open(campaign, table, trust=trust) as opened, waiting("looking through the campaign"):
            text, checked = _examined(opened, campaign)
        lines += text
    missing = [name for name in _NEEDED if found[name] is None]
    solved = not missing and _solved()
    lines += [] if missing else [f"a small problem was solved {'as it should be' if solved else 'wrongly'}"]
    as_json_or(as_json, {**system, **found, **checked, "small_problem": solved}, lines)
    if missing:
        raise click.ClickException(f"not installed: {', '.join(missing)}")
    if not solved:
        raise click.ClickException("this installation chooses wrong rows: please install it anew, or report it")


def _solved() -> bool:
    """Whether the far end of a line is asked for, and a label is worth what it should be."""
    from sklearn.linear_model import BayesianRidge

    from stakes import GaussianBelief, SquaredError, rank, score

    line = BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.1, 1.9])
    chosen = rank(line, SquaredError(), [[1.0], [2.0], [9.0]], n=1).indices
    worth = float(score(SquaredError(), GaussianBelief([0.0], [4.0], [2.0], [[1.0]]))[0])  # 1^2 / 2
    return chosen == (2,) and abs(worth - 0.5) < 1e-6


def _examined(campaign: Campaign, name: str) -> tuple[list[str], dict[str, Any]]:
    """Whether a campaign is sound, and what it would import."""
    campaign.check()
    imports = list(campaign.brief.imports())
    trusted = not imports or campaign.trusted or is_trusted(campaign.path, campaign.brief)
    checked = {"campaign": "sound", "imports": imports, "trusted": trusted}
    if not trusted and campaign.brief.imports(model=False):
        what = f"{name}: sound; its labels and its table were not looked at, which takes its loss (--trust)"
    else:
        what = f"{name}: sound; its table has the {len(campaign.sheet.ids)} rows that it had"
    allowed = "is trusted" if trusted else "is not trusted, and was not imported (--trust)"
    return [what, *(f"{name}: it names {each}, which {allowed}" for each in imports)], checked


def _recover(campaign: str | None, new: str, as_json: bool) -> None:
    if campaign is None:
        raise click.UsageError("--recover needs the damaged CAMPAIGN: stakes doctor CAMPAIGN --recover NEW")
    events, why = recover(campaign, new)
    text = f"{new}: {events} events were taken over from {campaign}, which is as it was. After them: {why}."
    as_json_or(as_json, {"campaign": new, "events": events, "then": why}, [text])


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
