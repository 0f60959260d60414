"""What a campaign was made with: a table, what it was then, and what is asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stakes.campaigns.errors import CampaignError
from stakes.files import Fingerprint, changes, fingerprint
from stakes.worksheets import Brief, Worksheet, read_worksheet


@dataclass(frozen=True)
class Setup:
    """The settings of a campaign file."""

    brief: Brief
    table: str
    """The path of the table: from the folder of the campaign, or absolute where the table is elsewhere."""
    fingerprint: Fingerprint
    initial: int
    """Events that came with the table: labels that were there from the start."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = {"brief": self.brief.to_dict(), "fingerprint": self.fingerprint.to_dict()}
        return {**parts, "table": self.table, "initial": self.initial}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Setup:
        """From JSON."""
        try:
            brief, seen = Brief.from_dict(kept["brief"]), Fingerprint.from_dict(kept["fingerprint"])
            return Setup(brief, str(kept["table"]), seen, int(kept["initial"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CampaignError(f"the settings of the campaign cannot be used: {error}") from error


def read_unchanged(setup: Setup, campaign: Path) -> Worksheet:
    """The table of a campaign, if it is what it was."""
    path = table_path(setup, campaign)
    if not path.exists():
        raise CampaignError(
            f"the table of the campaign, {path}, is not there. Put it back, or say where it is (--table)."
        )
    sheet = read_worksheet(path, setup.brief)
    refuse_changes(setup, sheet)
    return sheet


def refuse_changes(setup: Setup, sheet: Worksheet) -> None:
    """Refuse a table in which anything has changed, and say what."""
    differences = changes(setup.fingerprint, fingerprint(sheet.source))
    if not differences:
        return
    target = f"column {setup.brief.target!r} changed"
    advice = (
        "Labels that were written into the table are recorded by import; then put the old table back"
        if differences == [target]
        else "Put the old table back, or begin a new campaign with this one"
    )
    raise CampaignError(
        f"{sheet.source.path} is no longer the table that the campaign was made with: {'; '.join(differences)}. "
        f"{advice}. Nothing was recorded."
    )


def table_path(setup: Setup, campaign: Path) -> Path:
    """Where the table is."""
    return campaign.parent / setup.table


def kept_path(table: str | os.PathLike[str], campaign: Path) -> str:
    """How the path of a table is kept: so that both can be moved together, where they are in one folder or below it."""
    path, folder = Path(table).resolve(), campaign.resolve().parent
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
