"""What a table was when it was read, in a few hashes, and what has changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stakes.files.errors import TableError, listed
from stakes.files.source import Source


@dataclass(frozen=True)
class Fingerprint:
    """The number of rows, and for each column a hash of its name and cells."""

    rows: int
    columns: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"rows": self.rows, "columns": dict(self.columns)}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Fingerprint:
        """From JSON."""
        try:
            return Fingerprint(int(kept["rows"]), {str(name): str(each) for name, each in kept["columns"].items()})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TableError(f'a fingerprint must be {{"rows": n, "columns": {{name: hash}}}}; got {kept!r}') from error


def fingerprint(source: Source) -> Fingerprint:
    """The same for the same cells, whatever the line ends, the byte order mark or the kind of file."""
    return Fingerprint(len(source), {name: _hash(name, source.texts(name)) for name in source.names})


def changes(old: Fingerprint, new: Fingerprint) -> list[str]:
    """Sentences on what is no longer as it was; the order of columns does not count."""
    said = _row_changes(new.rows - old.rows)
    if gone := [name for name in old.columns if name not in new.columns]:
        said.append(f"columns missing: {listed(gone)}")
    if added := [name for name in new.columns if name not in old.columns]:
        said.append(f"columns added: {listed(added)}")
    if new.rows == old.rows:  # else every column has changed
        both = [name for name in old.columns if name in new.columns]
        said += [f"column {name!r} changed" for name in both if old.columns[name] != new.columns[name]]
    return said


def _row_changes(more: int) -> list[str]:
    if more == 0:
        return []
    rows = "1 row was" if abs(more) == 1 else f"{abs(more)} rows were"
    return [f"{rows} {'added' if more > 0 else 'removed'}"]


def _hash(name: str, cells: list[str | None]) -> str:
    """Cells hold no NUL, so it tells them apart; line breaks within cells count as one whatever they are."""
    text = "\0".join([name, *(cell or "" for cell in cells)])
    return hashlib.sha256(text.replace("\r\n", "\n").replace("\r", "\n").encode()).hexdigest()
