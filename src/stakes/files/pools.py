"""Rows in files that are read a few at a time: Parquet, Arrow, and arrays that NumPy has saved.

Sizes: N rows, p columns.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stakes._utils.arguments import as_texts_of
from stakes.exceptions import StakesError
from stakes.files.arrow import ArrowPool, Each, library, open_arrow
from stakes.files.frame import Frame, Host
from stakes.files.read import ARROW, checked_path, read_table
from stakes.files.remote import AnyPath, RemotePath, located


@dataclass(frozen=True, eq=False)
class MappedPool:
    """The rows of an array [N, p], or N rows of any shape for networks, that is mapped from a file where it can be."""

    array: Host

    @property
    def n_rows(self) -> int:
        """The number of rows, N."""
        return int(self.array.shape[0])

    def chunks(self, size: int) -> Iterator[tuple[int, Host]]:
        """Where each chunk begins, and its rows: `size` of them, fewer in the last."""
        for start in range(0, self.n_rows, size):
            yield start, self._copied(slice(start, start + size))

    def take(self, rows: Host) -> Host:
        """The rows at some positions, in that order."""
        return self._copied(rows)

    def _copied(self, rows: slice | Host) -> Host:
        """Rows in memory; the file's own pages, which would count as memory of the process, are let go."""
        copied = np.array(self.array[rows], subok=False)
        if getattr(self.array, "mode", "") == "r" and hasattr(
            mmap, "MADV_DONTNEED"
        ):  # pages that were written to might be lost
            mapping: Any = self.array
            while not isinstance(mapping, mmap.mmap):
                mapping = mapping.base
            mapping.madvise(mmap.MADV_DONTNEED)
        return copied


def open_pool(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, *, plain: bool = False
) -> ArrowPool | MappedPool | Frame:
    """The rows of a file: .parquet, .arrow, .feather, .ipc or a folder of one of them, .npy, or .csv, .tsv, .txt.

    They may be larger than memory, but for .csv, .tsv and .txt, which are read whole. Parquet and Arrow files may be at
    an address that fsspec knows, such as s3://bucket/folder.

    Args:
        path: The file or folder, or its address.
        columns: Of a file with names, those wanted in the order wanted; all without.
        plain: Whether to give arrays [n, p] in place of tables, where all columns are numbers.

    Returns:
        A `stakes.ranking.Pool`; a `Frame` of a .csv, .tsv or .txt, unless it is to give arrays.

    Raises:
        StakesError: If the file cannot be read, or lacks a column.

    Examples:
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/pool.npy", np.eye(3))
        ...     open_pool(f"{folder}/pool.npy").n_rows
        3
    """
    where = located(path)
    columns = None if columns is None else as_texts_of("columns", columns)
    if isinstance(where, RemotePath) or where.is_dir() or where.suffix.lower() in ARROW:
        return open_fragments(where, columns, plain)
    if where.suffix.lower() == ".npy":
        return MappedPool(_mapped(where))
    frame = read_table(checked_path(where)).features(columns)
    numbers = plain and all(values.dtype.kind == "f" for values in frame.arrays)
    return MappedPool(np.stack(frame.arrays, axis=1)) if numbers else frame


def open_fragments(path: AnyPath, columns: Sequence[str] | None, plain: bool, each: Each = map) -> ArrowPool:
    """The rows of a Parquet or Arrow file, or of a folder of them; `each` goes through the files."""
    return _shaped(open_arrow(arrow_files(path), columns, each=each), plain)


def arrow_files(folder: AnyPath) -> Sequence[AnyPath]:
    """The files of a folder in the order of their names, all of one kind; or the file itself, where it is one."""
    if isinstance(folder, RemotePath) and folder.suffix.lower() in ARROW and not folder.is_dir():
        return [folder]  # whoever opens it says whether it is there
    if isinstance(folder, Path) and not folder.is_dir():
        return [checked_path(folder)]
    if isinstance(folder, RemotePath) and not folder.is_dir():
        raise StakesError(
            f"{folder} must be the address of a folder, or of a file that ends in {', '.join(ARROW)}; there is "
            f"{'a file of another kind' if folder.exists() else 'nothing'}. Turn a CSV file into Parquet first."
        )
    found = sorted((each for each in folder.iterdir() if each.suffix.lower() in ARROW), key=lambda each: each.name)
    kinds = sorted({each.suffix.lower() for each in found})
    if len(kinds) != 1:
        came = " and ".join(kinds) or "none"
        raise StakesError(f"{folder} must hold files of one kind of {', '.join(ARROW)}; it holds {came}")
    return found


def _shaped(pool: ArrowPool, plain: bool) -> ArrowPool:
    types = library().types
    numbers = all(types.is_integer(each.type) or types.is_floating(each.type) for each in pool.schema)
    return replace(pool, made=_array) if plain and numbers else pool


def _array(table: Any) -> Host:
    """[n, p]: a gap is NaN."""
    columns = [column.to_numpy() for column in table.columns]
    return np.stack(columns, axis=1)


def _mapped(path: Path) -> np.memmap[Any, Any]:
    try:
        array = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise StakesError(f"{path} cannot be read as an array of NumPy ({error}). Save it with numpy.save.") from error
    if array.ndim < 2 or array.dtype.kind not in "fiu":
        raise StakesError(f"{path} must hold an array of numbers [N, p]; it holds {array.dtype} {list(array.shape)}")
    mapped: np.memmap[Any, Any] = array
    return mapped
