"""What a campaign was made with: a table, what it was then, and what is asked of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stakes.campaign.journal import Journal
from stakes.campaign.states import unknown_row
from stakes.exceptions import StakesError
from stakes.files import Fingerprint, Source, changes, fingerprint, read_table, write_csv
from stakes.tabular import Brief, Worksheet, read_worksheet
from stakes.tabular.worksheet import id_name, write_worksheet


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
            raise StakesError(f"the settings of the campaign cannot be used: {error}") from error


def read_unchanged(setup: Setup, campaign: Path) -> Worksheet:
    """The table of a campaign, if it is what it was."""
    path = table_path(setup, campaign)
    if not path.exists():
        raise StakesError(
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
    raise StakesError(
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


# ----------------------------------------------------------------------
# A campaign as tables for spreadsheets, and labels back from them.


def write_rows(path: str | os.PathLike[str], journal: Journal, sheet: Worksheet, rows: Sequence[str] | None) -> int:
    """Every row, or some in their order: its id, its cells, its label, and where it stands."""
    states = journal.states()
    wanted = list(sheet.ids if rows is None else rows)
    if strangers := [row for row in wanted if row not in states]:
        raise unknown_row(strangers[0], sheet.ids)
    standing: dict[str, list[str | None]] = {
        "status": [states[row].status for row in wanted],
        "asked until": [_time(states[row].until) for row in wanted],
        "who": [states[row].who for row in wanted],
    }
    write_worksheet(path, sheet, wanted, {row: states[row].label for row in wanted}, standing)
    return len(wanted)


def write_events(path: str | os.PathLike[str], journal: Journal) -> int:
    """Every event."""
    names = ["number", "at", "kind", "row", "label", "until", "batch", "who"]
    lines = [
        [event.number, _time(event.at), event.kind, event.row, event.label, _time(event.until), event.batch, event.who]
        for event in journal.history()
    ]
    write_csv(path, names, lines)
    return len(lines)


def read_labels(path: str | os.PathLike[str], journal: Journal, setup: Setup) -> list[tuple[str, str]]:
    """The labels in a filled-in export, or in the filled-in table itself; rows without one are passed over."""
    brief, source = setup.brief, _read(path, setup)
    if brief.target not in source.names:
        raise StakesError(f"{path} has no column {brief.target!r}, which holds the labels; nothing was recorded")
    labels = [None if label is None else label.strip() for label in source.texts(brief.target)]
    ids = _ids(source, journal, setup)
    given = [(row, label, place) for place, (row, label) in enumerate(zip(ids, labels, strict=True)) if label]
    first: dict[str, int] = {}
    for row, _, place in given:
        if first.setdefault(row, place) != place:
            raise StakesError(
                f"{path}: row {row!r} stands at {source.place(first[row])} and at {source.place(place)}; nothing was "
                "recorded"
            )
    return [(row, label) for row, label, _ in given]


def _read(path: str | os.PathLike[str], setup: Setup) -> Source:
    """A file that was made by export, or the table itself, whose apostrophes are its own."""
    delimiter = setup.brief.delimiter
    plain = read_table(path, delimiter=delimiter)
    same = _same_table(setup.fingerprint, plain, setup.brief.target)
    return plain if same else read_table(path, delimiter=delimiter, unescape=True)


def _ids(source: Source, journal: Journal, setup: Setup) -> list[str]:
    """[N]: the ids in a file; row numbers where it is the table itself."""
    brief = setup.brief
    name = id_name(brief, tuple(setup.fingerprint.columns))
    if name in source.names:
        texts = source.texts(name)
        if None in texts:
            raise StakesError(
                f"{source.path}: the id at {source.place(texts.index(None))}, column {name!r}, is empty; nothing was "
                "recorded"
            )
        return [text for text in texts if text is not None]
    if _same_table(setup.fingerprint, source, brief.target):
        return list(journal.ids())
    raise StakesError(
        f"{source.path} has no column {name!r} to tell rows by, and is not the table of the campaign with labels "
        "filled in. Fill in a file made by export or ask; nothing was recorded."
    )


def _same_table(old: Fingerprint, source: Source, target: str) -> bool:
    """Whether nothing but labels has changed."""
    return set(changes(old, fingerprint(source))) <= {f"column {target!r} changed"}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
