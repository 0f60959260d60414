"""A table larger than memory: its rows stay in their file, but for those with a label and a sample of the others.

Sizes: N rows, L of them with a label, n rows of a chunk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stakes.exceptions import StakesError
from stakes.files.arrow import ArrowPool, library, open_arrow, refuse_types, texts_of
from stakes.files.cells import GAPS, SURE_GAPS
from stakes.files.frame import Cells, Frame, Host, cell_kind, check_size
from stakes.files.pools import arrow_files
from stakes.files.read import Source, is_arrow, some_rows
from stakes.tabular.worksheet import (
    Brief,
    Worksheet,
    class_gaps,
    feature_names,
    gap_notes,
    loss_task,
    named_classes,
    unchecked,
    worksheet_of,
)

LARGE = 50_000  # rows, from which on a table is not read whole
_READ = 2**16  # rows whose labels are read at a time
_SAMPLE = 10_000  # rows without a label, for what columns hold


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """The features of rows without a label, which are read in chunks: a `stakes.ranking.Pool`."""

    table: ArrowPool
    """N rows, all columns."""
    labelled: Host
    """[L]: positions of rows with a label, rising."""
    costs: Host | float | None
    """[N - L]: of labels of the pool, or of any label"""
    names: tuple[str, ...]
    """The columns that features are made of."""
    brief: Brief
    like: Source
    """Which columns are text, and what stands for a gap."""

    def worksheet(self, rows: Sequence[int] | Host) -> Worksheet:
        """Some rows of the table, by position, as a worksheet."""
        wanted = np.asarray(rows, dtype=np.intp)
        return unchecked(_some(self.like.path, self.table, wanted, self.brief), self.brief)

    @property
    def n_rows(self) -> int:
        """The number of rows without a label, N - L."""
        return self.table.n_rows - len(self.labelled)

    def rows(self, places: Host) -> Host:
        """Where rows of the pool are in the table."""
        return _open_rows(self.labelled, places)

    def chunks(self, size: int) -> Iterator[tuple[int, Frame]]:
        """Where each chunk begins in the pool, and its rows: `size`, less those with a label."""
        for start, table in self.table.select(self.names).chunks(size):
            within = np.arange(start, start + table.num_rows)
            rows = np.setdiff1d(within, self.labelled, assume_unique=True)
            if len(rows):
                yield (
                    int(rows[0] - np.searchsorted(self.labelled, rows[0])),
                    self._frame(table.take(rows - start), rows),
                )

    def take(self, places: Host) -> Frame:
        """The rows at some positions of the pool, in that order."""
        rows = self.rows(np.asarray(places))
        return self._frame(self.table.select(self.names).take(rows), rows)

    def _frame(self, table: Any, rows: Host) -> Frame:
        """Columns of numbers as they are in the file; all others, and what is wrong, by way of their cells."""
        quick = {name: values for name in self.names if (values := self._numbers(table, name)) is not None}
        others = self._by_cells(table, [name for name in self.names if name not in quick], rows)
        arrays: dict[str, Host] = {}
        for name in self.names:
            arrays |= {name: quick[name]} if name in quick else others[name]
        return Frame(tuple(arrays), tuple(arrays.values()), len(rows))

    def _numbers(self, table: Any, name: str) -> Host | None:
        """[n]: a column of finite numbers and gaps, None where it is none, or has marks that stand for gaps."""
        column, types = table.column(name), library().types
        plain = types.is_integer(column.type) or types.is_floating(column.type)
        if not plain or name in self.like.text or self.like.missing:
            return None
        values: Host = column.cast("float64", safe=False).to_numpy()
        return None if (~np.isfinite(values) & column.is_valid().to_numpy()).any() else values

    def _by_cells(self, table: Any, names: list[str], rows: Host) -> dict[str, dict[str, Host]]:
        if not names:
            return {}
        text = sorted(self.like.text.intersection(names))
        source = some_rows(
            self.like.path, table.select(names), rows.tolist(), missing=tuple(self.like.missing), text=text
        )
        frames = {name: source.features([name]) for name in names}
        return {name: dict(zip(frame.names, frame.arrays, strict=True)) for name, frame in frames.items()}


def stays_in_file(path: str | os.PathLike[str]) -> bool:
    """Whether a table stays in its file: a folder of files, or a file of Parquet or Arrow with many rows."""
    where = Path(path)
    if where.is_dir():
        return True
    return is_arrow(where) and where.is_file() and opened_table(where).n_rows > LARGE


def opened_table(path: Path) -> ArrowPool:
    """The rows of a Parquet or Arrow file, or of a folder of them."""
    return open_arrow(arrow_files(path), share_texts=True)


def read_streamed(path: str | os.PathLike[str], brief: Brief) -> Worksheet:
    """A table in a file, of which only labels, costs and a sample of the other rows are read now."""
    where = Path(path)
    table = opened_table(where)
    names = tuple(feature_names(where, table.schema.names, brief))
    refuse_types(where, table.schema)
    given = brief.missing
    brief, labelled = _labelled(where, table, brief)
    others = table.n_rows - len(labelled)
    drawn = np.random.default_rng(brief.random_state).choice(others, min(_SAMPLE, others), replace=False)
    source = _some(where, table, np.union1d(labelled, _open_rows(labelled, drawn)), brief)
    known = worksheet_of(replace(source, notes=gap_notes(brief.missing[len(given) :], brief.target)), brief)
    costs = _costs(where, table, brief, labelled)
    return replace(known, stream=StreamedRows(table, labelled, costs, names, known.brief, known.source))


def read_sample(path: str | os.PathLike[str], brief: Brief) -> Source:
    """Some rows of a table that stays in its file, in their order, for a first look at what its columns hold."""
    where = Path(path)
    table = opened_table(where)
    refuse_types(where, table.schema)
    drawn = np.random.default_rng(brief.random_state).choice(table.n_rows, min(_SAMPLE, table.n_rows), replace=False)
    return _some(where, table, np.sort(drawn), brief)


def _open_rows(labelled: Host, places: Host) -> Host:
    """Where rows without a label are in the table: each label before them moves them on by one."""
    return places + np.searchsorted(labelled - np.arange(len(labelled)), places, side="right")


def _some(path: Path, table: ArrowPool, rows: Host, brief: Brief) -> Source:
    return some_rows(path, table.take(rows), rows.tolist(), missing=brief.missing, text=brief.text)


def _labelled(path: Path, table: ArrowPool, brief: Brief) -> tuple[Brief, Host]:
    """[L]: the rows with a label, which are read whole and must not be too many for that.

    NA and the like among classes are marks for gaps where no cell is empty, as in a table that is read whole.
    """
    found, real = [np.empty(0, np.intp)], loss_task(brief.loss) == "real"
    gaps = frozenset(brief.missing) if real else class_gaps(brief)
    marks: set[str] = set()
    for rows, cells in _cells(path, table, brief.target):
        found.append(rows[[_is_label(cell, gaps, real) for cell in cells]])
        marks |= set() if real else {cell for cell in cells if cell is not None and cell.strip().lower() in SURE_GAPS}
        if not marks:
            n_cells = sum(map(len, found)) * len(table.schema.names)
            check_size(path, brief.max_cells, n_cells, shape=" with a label or more")
    labelled = np.concatenate(found)
    known = marks - named_classes(brief) - {*brief.missing}
    if known and len(labelled) == table.n_rows:
        return _labelled(path, table, replace(brief, missing=(*brief.missing, *sorted(known))))
    check_size(path, brief.max_cells, len(labelled) * len(table.schema.names), shape=" with a label or more")
    return brief, labelled


def _is_label(cell: str | None, gaps: frozenset[str], real: bool) -> bool:
    """Whether a cell of the target holds a label: what `labels_of` does not leave out."""
    text = (cell or "").strip()
    return bool(text) and text not in gaps and not (real and text.lower() in GAPS)


def _cells(path: Path, table: ArrowPool, name: str) -> Iterator[tuple[Host, Cells]]:
    """Positions and cells of one column, those that hold something in the file, chunk by chunk."""
    for start, part in table.select([name]).chunks(_READ):
        values = part.column(0)
        places = np.flatnonzero(values.is_valid().to_numpy())
        yield start + places, texts_of(path, name, values.take(places))


def _costs(path: Path, table: ArrowPool, brief: Brief, labelled: Host) -> Host | float | None:
    """[N - L]: what each label costs, or one cost for all."""
    if brief.cost_column is None:
        return brief.label_cost
    costs = np.full(table.n_rows, np.nan)
    for rows, cells in _cells(path, table, brief.cost_column):
        for row, cell in zip(rows.tolist(), cells, strict=True):
            costs[row] = float(cell) if cell and cell_kind(cell) == "number" else np.nan
            if cell and not costs[row] > 0.0:
                raise _bad_cost(path, brief, repr(cell), row)
    if len(empty := np.flatnonzero(np.isnan(costs))):
        raise _bad_cost(path, brief, "nothing", int(empty[0]))
    return np.delete(costs, labelled)


def _bad_cost(path: Path, brief: Brief, came: str, row: int) -> StakesError:
    return StakesError(
        f"{path}: costs must be positive numbers; column {brief.cost_column!r} holds {came} at row {row + 1}. Fill it "
        "in; a label that cannot be bought can be left out of the table."
    )
