"""A table as it is in a file: raw text for ids, targets and classes; columns of numbers and categories for a model.

Sizes: N rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stakes.files.cells import Cells, as_numbers, as_texts, check_text, not_finite, remarks
from stakes.files.errors import TableError, listed
from stakes.files.frame import Frame, Host, place_of


@dataclass(frozen=True, eq=False)
class Source:
    """Named columns of text cells, which become features when asked for."""

    path: Path
    names: tuple[str, ...]
    cells: tuple[tuple[str | None, ...], ...] = field(repr=False)
    """For each column N cells, None where they are empty."""
    lines: tuple[int, ...] | None = field(default=None, repr=False)
    """[N]: the line of the file that each row begins at; None where a file has no lines."""
    missing: frozenset[str] = frozenset()
    """Marks that say, among features, that a value is missing."""
    text: frozenset[str] = frozenset()
    """Columns that are text, whatever their cells look like."""
    floating: frozenset[str] = frozenset()
    """Columns that the file says hold floating numbers."""
    said: tuple[str, ...] = ()
    """Sentences on what was taken for granted in reading."""
    rows: tuple[int, ...] | None = field(default=None, repr=False)
    """[N]: where they are in the file, from 0, where these are some of its rows."""

    def __len__(self) -> int:
        return len(self.cells[0])

    def texts(self, name: str) -> list[str | None]:
        """[N]: the cells of a column as they are in the file, None where they are empty."""
        return list(self.cells[place_of(name, self.names)])

    def line(self, row: int) -> int | None:
        """The line of the file at which a row begins."""
        return None if self.lines is None else self.lines[row]

    def place(self, row: int) -> str:
        """Where a row is, in words: its line, or its number from 1."""
        return f"row {self.number(row)}" if self.lines is None else f"line {self.lines[row]}"

    def number(self, row: int) -> int:
        """The number of a row in the file, from 1."""
        return row + 1 if self.rows is None else self.rows[row] + 1

    def features(self, names: Iterable[str] | None = None) -> Frame:
        """Columns as a model takes them, all by default: each numbers throughout, or text throughout."""
        chosen = self.names if names is None else tuple(names)
        cells = {name: self._without_marks(name) for name in chosen}
        arrays = {name: self._typed(name, each) for name, each in cells.items()}
        bad = {name: not_finite(cells[name], values) for name, values in arrays.items() if values.dtype.kind == "f"}
        self._refuse_not_finite({name: rows for name, rows in bad.items() if rows})
        return Frame(chosen, tuple(arrays[name] for name in chosen), len(self))

    def remarks(self, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Sentences on columns that are likely not meant as features: dates, and texts that all differ."""
        chosen = self.names if names is None else tuple(names)
        cells = {name: self._without_marks(name) for name in chosen}
        texts = {name: each for name, each in cells.items() if self._typed(name, each).dtype.kind == "O"}
        return tuple(sentence for name, each in texts.items() for sentence in remarks(name, each))

    def _without_marks(self, name: str) -> Cells:
        cells = self.cells[place_of(name, self.names)]
        return [None if cell in self.missing else cell for cell in cells] if self.missing else cells

    def _typed(self, name: str, cells: Cells) -> Host:
        if name in self.text:
            return as_texts(cells)
        values = as_numbers(cells)
        if values is not None:
            return values
        try:
            check_text(name, cells, self.place)
        except TableError as error:
            raise TableError(f"{self.path}: {error}") from None
        return as_texts(cells)

    def _refuse_not_finite(self, bad: dict[str, list[int]]) -> None:
        if not bad:
            return
        first = self.place(min(min(rows) for rows in bad.values()))
        counts = listed(f"{name} ({len(rows)})" for name, rows in bad.items())
        raise TableError(
            f"{self.path}: NaN or infinite values in {len(bad)} column{'s' * (len(bad) > 1)}: {counts}; first at "
            f'{first}. Leave cells empty where values are missing, or name the mark: missing=("nan",) (--missing nan).'
        )
