"""Columns with names on the host: what a table from a file is for a model, and what the cells of a column are.

A `Frame` offers what `stakes._utils.tables` knows of an Arrow table, so that encoders, `rank` and `simulate` take it as
it is, and it is a `stakes.ranking.Pool`. Cells are None where they are empty. Sizes: N rows, p columns.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes._utils.arguments import as_texts_of
from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.files.cells import GAPS, are_alike, reads_as_number

Host: TypeAlias = np.ndarray[Any, Any]
Cells: TypeAlias = Sequence[str | None]
CellKind: TypeAlias = Literal["number", "not finite", "text"]

_DATE = re.compile(r"(\d{4}-\d{2}-\d{2}|\d{1,2}([./])\d{1,2}\2\d{2,4})([T ].*)?")
_AMOUNT = re.compile(r"[+-]?\d[\d.,]*")
_EITHER_WAY = re.compile(r"\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*")
"""A number with a point that may stand before decimals, or before thousands."""
MAX_CELLS = 20_000_000
"""Of a table that is read whole, if not told otherwise: rows times columns."""
MAX_COLUMNS = 20_000
"""Of any table."""
_WORD = re.compile(r"[^\W_]+")
_IDS = {"id", "ids", "key", "code", "name", "nr", "no", "nummer", "number", "index", "row", "sample", "uuid"}
_CHARACTERS = 50  # on average, in each cell of the largest table
_UNIT = 4  # letters of a sign or a unit that may stand beside a number
_ENOUGH = 10  # cells, below which it means little that all differ
_NEARLY_ALL = 0.9
_NAMED = 2  # cells that an error shows
_LIMIT = re.compile(r"\s*[<>≤≥]=?\s*[\d.,]+\s*")


@dataclass(frozen=True, eq=False)
class Frame:
    """N rows of p named columns: floating numbers with NaN for gaps, or texts with None for gaps.

    Args:
        names: A name of its own for each of the p columns.
        arrays: p of them, each [N]; they are kept as views that nothing can write to.
        count: N, also where there is no column.

    Raises:
        StakesError: If a name comes twice, or the lengths differ.

    Examples:
        >>> import numpy as np
        >>> frame = Frame(("area", "year"), (np.asarray([40.0, 75.0]), np.asarray([1960.0, 2001.0])), 2)
        >>> frame.shape, frame.take([1]).column(0).tolist()
        ((2, 2), [75.0])
    """

    names: tuple[str, ...]
    arrays: tuple[Host, ...]
    count: int

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.names) or len(self.names) != len(self.arrays):
            raise StakesError(f"a frame needs a name of its own for each of its columns; got {list(self.names)}")
        for name, values in zip(self.names, self.arrays, strict=True):
            if values.shape != (self.count,):
                raise StakesError(f"column {name!r} must hold {self.count} values; got shape {list(values.shape)}")
        object.__setattr__(self, "arrays", tuple(_read_only(values) for values in self.arrays))

    @cached_property
    def column_names(self) -> list[str]:
        """The p names, as Arrow calls them."""
        return list(self.names)

    @property
    def n_rows(self) -> int:
        """The number of rows, N."""
        return self.count

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns, N and p."""
        return self.count, len(self.names)

    def __len__(self) -> int:
        return self.count

    def column(self, position: int) -> Host:
        """One column.

        Args:
            position: Which one, from 0.

        Returns:
            An array [N].
        """
        return self.arrays[position]

    def chunks(self, size: int) -> Iterator[tuple[int, Frame]]:
        """Where each chunk of rows begins, and its rows, in order.

        Args:
            size: How many rows; fewer in the last.

        Returns:
            Pairs of a position and a frame.
        """
        return (
            (start, self.take(np.arange(start, min(start + size, self.count)))) for start in range(0, self.count, size)
        )

    def take(self, rows: Sequence[int] | Host) -> Frame:
        """The rows at some positions, in that order.

        Args:
            rows: Positions.

        Returns:
            A frame of those rows.
        """
        places = np.asarray(rows, dtype=np.intp)
        arrays = tuple(values[places] for values in self.arrays)
        return Frame(self.names, arrays, len(np.empty(self.count, dtype=bool)[places]))

    def select(self, names: Iterable[str]) -> Frame:
        """Some columns.

        Args:
            names: Their names, in the order wanted.

        Returns:
            A frame of those columns.

        Raises:
            StakesError: If there is no such column.
        """
        chosen = as_texts_of("names", names)
        places = places_of(chosen, self.names)
        return Frame(chosen, tuple(self.arrays[place] for place in places), self.count)

    def drop(self, names: Iterable[str]) -> Frame:
        """All columns but some.

        Args:
            names: Those to leave out.

        Returns:
            A frame of the others.

        Raises:
            StakesError: If there is no such column.
        """
        gone = set(places_of(as_texts_of("names", names), self.names))
        return self.select(name for place, name in enumerate(self.names) if place not in gone)


def check_size(path: Path, max_cells: int, cells: int, characters: int = 0, shape: str = " or more") -> None:
    """Refuse a table that is too large to be read whole: a small file can hold a table that no memory can."""
    if isinstance(max_cells, bool) or not isinstance(max_cells, int) or max_cells < 1:
        raise StakesError(f"max_cells must be a whole number, 1 or more; got {max_cells!r}")
    needed = max(cells, -(-characters // _CHARACTERS))
    if needed > max_cells:
        came = f"{cells:,} cells{shape}" if cells > max_cells else f"{characters:,} characters or more"
        raise StakesError(
            f"{path} is too large: it has {came}, and at most {max_cells:,} cells and {_CHARACTERS * max_cells:,} "
            f"characters are read at once. Take fewer rows or columns, or raise the limit: max_cells={needed} "
            f"(--max-cells {needed}). `stakes suggest` reads Parquet and Arrow files in chunks."
        )


def checked_names(path: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns without spaces around them, none empty, none twice."""
    if len(names) > MAX_COLUMNS:
        raise StakesError(f"{path} has {len(names):,} columns; at most {MAX_COLUMNS:,} are read. Leave some out.")
    stripped = tuple(name.strip() for name in names)
    if not stripped:
        raise StakesError(f"{path} has no columns")
    if "" in stripped:
        raise StakesError(
            f"{path}: column {stripped.index('') + 1} has no name. Give it one; pandas leaves it out for the index, "
            "unless it is saved with index=False."
        )
    counts = Counter(stripped)
    if twice := next((name for name in stripped if counts[name] > 1), None):
        places = [str(place + 1) for place, name in enumerate(stripped) if name == twice]
        raise StakesError(
            f"{path}: {twice!r} names {len(places)} columns, {listed(places)}. Give each a name of its own."
        )
    return stripped


def place_of(name: str, names: Sequence[str]) -> int:
    """Where a column is; refused, with the name that was perhaps meant, where it is not."""
    if name in names:
        return names.index(name)
    raise StakesError(f"there is no column {name!r}; there are {listed(names)}.{did_you_mean(name, names)}")


def places_of(wanted: Iterable[str], names: Sequence[str]) -> list[int]:
    """Where some columns are, looked up once for all."""
    known = {name: place for place, name in enumerate(names)}
    return [known[name] if name in known else place_of(name, names) for name in wanted]


def _read_only(values: Host) -> Host:
    """A view of our own that nothing can write to."""
    view = values.view()
    view.flags.writeable = False
    return view


def cell_kind(cell: str) -> CellKind:
    """A number is what `float` takes, without underscores."""
    try:
        value = float(cell)
    except ValueError:
        return "text"
    if "_" in cell:
        return "text"
    return "number" if math.isfinite(value) else "not finite"


def as_numbers(cells: Cells) -> Host | None:
    """[N]: numbers with NaN for empty cells, or None where a cell is no number."""
    try:
        values = [math.nan if cell is None else float(cell) for cell in cells]
    except ValueError:
        return None
    return None if "_" in "".join(filter(None, cells)) else np.asarray(values, dtype=float)


def either_way(cells: Iterable[str | None]) -> bool | None:
    """Whether points may stand before thousands as well as before decimals, in numbers that `float` takes.

    None where there is no point at all.
    """
    found = None
    for cell in cells:
        if cell is not None and "." in cell:
            if not _EITHER_WAY.fullmatch(cell):
                return False
            found = True
    return found


def as_texts(cells: Cells) -> Host:
    """[N]: texts with None for empty cells; NaN where all are empty, as nothing says that they would be text."""
    if all(cell is None for cell in cells):
        return np.full(len(cells), np.nan)
    return np.asarray(cells, dtype=object)


def not_finite(cells: Cells, values: Host) -> list[int]:
    """The rows whose cell is NaN or infinite, rather than empty."""
    return [row for row in np.flatnonzero(~np.isfinite(values)).tolist() if cells[row] is not None]


def check_text(name: str, cells: Cells, place: Callable[[int], str]) -> None:
    """Refuse a column that is not numbers throughout if numbers are among its cells, or most are written as such."""
    kinds: dict[str, CellKind] = {cell: cell_kind(cell) for cell in set(cells) if cell is not None}
    wide: dict[str, CellKind] = {cell: "number" if reads_as_number(cell) else kind for cell, kind in kinds.items()}
    written = sum(kind == "number" for kind in wide.values())
    if written and written == len(wide):
        raise StakesError(_clash_sentence(name, cells, place))
    if "number" in kinds.values() or 2 * written > len(wide):
        raise StakesError(_mixed_sentence(name, cells, wide, place))


def remarks(name: str, cells: Cells) -> list[str]:
    """Sentences on a column of text that is likely not meant as categories."""
    known = [cell for cell in cells if cell is not None]
    if known and all(_DATE.fullmatch(cell) for cell in known):
        return [
            f"Column {name!r} is text that looks like dates, and each date becomes a category: save it as dates, or "
            "leave the column out."
        ]
    if unit := _common_unit(known):
        return [
            f"Column {name!r} holds a number with {unit!r} in every cell, and each becomes a category. If "
            f"they are meant as numbers, take {unit!r} out."
        ]
    return []


def name_parts(name: str) -> set[str]:
    """The words of the name of a column, in small letters."""
    return set(_WORD.findall(name.casefold()))


def is_called_id(name: str) -> bool:
    """Whether a column is called as columns of ids are."""
    return bool(name_parts(name) & _IDS)


def all_differ(cells: Cells) -> bool:
    """Whether nearly all cells of a column differ, as names and free text do."""
    known = [cell for cell in cells if cell is not None]
    return len(known) >= _ENOUGH and len(set(known)) >= _NEARLY_ALL * len(known)


def _common_unit(known: list[str]) -> str | None:
    """What stands after the number in every cell, if it is short and everywhere the same; A11 is a code."""
    amounts = [_AMOUNT.match(cell) for cell in known]
    beside = {"" if found is None else cell[found.end() :].strip() for found, cell in zip(amounts, known, strict=True)}
    unit = beside.pop() if len(beside) == 1 else ""
    return unit if 0 < len(unit) <= _UNIT and not any(map(str.isdigit, unit)) else None


def _clash_sentence(name: str, cells: Cells, place: Callable[[int], str]) -> str:
    """Which two cells cannot be numbers that are written in one way."""
    rows = [row for row, cell in enumerate(cells) if cell is not None]
    pairs = ((first, row) for first in rows[:1] for row in rows[1:] if not are_alike(cells[first], cells[row]))
    one, other = next(pairs, (rows[0], rows[-1]))
    return (
        f"column {name!r} holds {cells[one]!r} at {place(one)} and {cells[other]!r} at {place(other)}, which are not "
        "numbers written in one way: decimals, per cent signs or currencies differ. Write them alike. If the column is "
        f"text, say so: text=({name!r},) (--text {quote(name)})."
    )


def _mixed_sentence(name: str, cells: Cells, kinds: dict[str, CellKind], place: Callable[[int], str]) -> str:
    """Which cells keep a column from being numbers, or from being text; marks of gaps, which do not, are not named."""
    known = [cell for cell in cells if cell is not None]
    marks = {cell for cell in known if cell.casefold() in GAPS}
    numbers, texts = (sum(kinds[cell] == kind and cell not in marks for cell in known) for kind in ("number", "text"))
    strange = "text" if texts <= numbers else "number"
    odd = list(dict.fromkeys(cell for cell in known if kinds[cell] == strange and cell not in marks))
    shown = odd[:_NAMED]
    named = " and ".join(f"{cell!r} at {place(cells.index(cell))}" for cell in shown)
    such = "such as " if len(odd) > _NAMED else ""
    marked = f"missing={tuple(shown)!r} ({' '.join(f'--missing {quote(cell)}' for cell in shown)})"
    limit = (
        " A limit such as that is no number: write the number to use in its place."
        if strange == "text" and any(_LIMIT.match(cell) for cell in odd)
        else ""
    )
    counts = (numbers, "a number"), (texts, "text")
    most, few = counts if strange == "text" else counts[::-1]
    return (
        f"column {name!r} must hold numbers only, or none; {most[0]} of its cells {_are(*most)} and "
        f"{few[0]} {_are(*few)}: {such}{named}.{limit} If it is missing there, leave the cell empty, or name "
        f"the mark: {marked}. If the column is text, say so: text=({name!r},) (--text {quote(name)})."
    )


def _are(count: int, one: str) -> str:
    several = {"a number": "are numbers", "text": "are text"}
    return f"is {one}" if count == 1 else several[one]
