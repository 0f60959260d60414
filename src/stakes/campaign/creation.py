"""A new campaign for a table in a file, or for a data frame, on the disk or in a temporary folder that goes with it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from stakes.campaign.journal import Journal
from stakes.campaign.kept import kept_path
from stakes.campaign.trust import remember_trust
from stakes.exceptions import StakesError
from stakes.files import fingerprint
from stakes.tabular import Brief, read_worksheet
from stakes.tabular.objects import is_frame, write_frame
from stakes.tabular.suggestions import build_problem
from stakes.tabular.worksheet import loss_task


def begin_campaign(path: Path | None, table: Any, brief: Brief) -> Journal:
    """The journal of a new campaign, open; in a temporary folder without a path."""
    if path is not None:
        return _begin(path, table, brief, remember=True)
    folder = mkdtemp(prefix="stakes-")
    try:
        journal = _begin(Path(folder, "campaign.stakes"), table, brief, remember=False)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    finalize(journal, rmtree, folder, ignore_errors=True)
    return journal


def _begin(path: Path, table: Any, brief: Brief, *, remember: bool) -> Journal:
    """The same on the disk; a data frame is written beside it. Nothing is left behind where it is refused."""
    if isinstance(table, str | os.PathLike):
        return _created(path, table, brief, remember)
    if not is_frame(table):
        raise StakesError(
            "the table of a campaign is a file or a data frame (of pandas, polars or Arrow), whose columns have names; "
            f"got {type(table).__name__}. Give pandas.DataFrame(table, columns=[...])."
        )
    if path.exists():
        raise StakesError(f"{path} is there already; open it (Campaign.open), or give a new path")
    beside = path.with_suffix(".csv")
    if beside.exists() or beside == path:
        raise StakesError(f"the table is written to {beside}, which is there; name the campaign otherwise, or move it")
    try:
        found = write_frame(beside, table, brief.target, brief.id_column, loss_task(brief.loss) == "classes")
        text = tuple(dict.fromkeys([*brief.text, *found.pop("text")]))
        return _created(path, beside, replace(brief, text=text, **found), remember)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _created(path: Path, table: str | os.PathLike[str], brief: Brief, remember: bool) -> Journal:
    """The same for a table that is in a file."""
    sheet = read_worksheet(table, brief)
    if len(sheet.ids) == 0:
        raise StakesError(f"{table} has no rows: there is nothing to label")
    build_problem(sheet)  # refuse what cannot be fitted before anything is kept
    costs = [None] * len(sheet.ids) if sheet.costs is None else sheet.costs.tolist()
    kept = {
        "brief": sheet.brief.to_dict(),
        "table": kept_path(table, path),
        "fingerprint": fingerprint(sheet.source).to_dict(),
        "initial": len(sheet.labels),
    }
    known = {sheet.ids[row]: label for row, label in sheet.labels.items()}
    journal = Journal.create(path, zip(sheet.ids, costs, strict=True), kept, known)
    if remember and sheet.brief.imports():
        remember_trust(path, sheet.brief)
    return journal
