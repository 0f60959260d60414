"""A campaign as tables for spreadsheets, and labels back from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from stakes.campaigns.errors import CampaignError, unknown_row
from stakes.campaigns.journal import Journal
from stakes.campaigns.setup import Setup
from stakes.files import Fingerprint, Source, changes, fingerprint, read_table, write_csv
from stakes.worksheets import Worksheet, writing


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
    writing.write_rows(path, sheet, wanted, {row: states[row].label for row in wanted}, standing)
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
        raise CampaignError(f"{path} has no column {brief.target!r}, which holds the labels; nothing was recorded")
    labels = [None if label is None else label.strip() for label in source.texts(brief.target)]
    ids = _ids(source, journal, setup)
    given = [(row, label, place) for place, (row, label) in enumerate(zip(ids, labels, strict=True)) if label]
    first: dict[str, int] = {}
    for row, _, place in given:
        if first.setdefault(row, place) != place:
            raise CampaignError(
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
    name = writing.id_name(brief, tuple(setup.fingerprint.columns))
    if name in source.names:
        texts = source.texts(name)
        if None in texts:
            raise CampaignError(
                f"{source.path}: the id at {source.place(texts.index(None))}, column {name!r}, is empty; nothing was "
                "recorded"
            )
        return [text for text in texts if text is not None]
    if _same_table(setup.fingerprint, source, brief.target):
        return list(journal.ids())
    raise CampaignError(
        f"{source.path} has no column {name!r} to tell rows by, and is not the table of the campaign with labels "
        "filled in. Fill in a file made by export or ask; nothing was recorded."
    )


def _same_table(old: Fingerprint, source: Source, target: str) -> bool:
    """Whether nothing but labels has changed."""
    return set(changes(old, fingerprint(source))) <= {f"column {target!r} changed"}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
