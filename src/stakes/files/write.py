"""Files that are written: where one may be, whole or not at all; and CSV files that a spreadsheet opens safely.

`checked_output` decides for every command and function what may be overwritten. A cell that a spreadsheet would take
for a formula gets an apostrophe in front. Cells that begin with an apostrophe get another, so that taking one off
always gives back the cell.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeAlias

from stakes._utils.arguments import as_texts_of
from stakes.exceptions import StakesError

Cell: TypeAlias = str | int | float | None

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Spreadsheets may strip spaces and quotes before they look; the last four are the full-width forms of the others.
_RUNS = re.compile(r"[\t\r\n']|[\s\"'`]*[=+\-@\uff1d\uff0b\uff0d\uff20]")

_SQLITE, _WAL, _ROLLBACK = b"SQLite format 3\0", b"\x37\x7f\x06", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
_DATABASES = (_SQLITE, _WAL, _ROLLBACK)  # how files of SQLite begin
_BESIDE = ("-wal", "-shm", "-journal")  # how files end that it keeps beside one
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


def is_plain_number(cell: str) -> bool:
    """Whether a spreadsheet takes a text for a number wherever it is opened."""
    return _NUMBER.fullmatch(cell) is not None


def escape(cell: str) -> str:
    """The cell, with an apostrophe in front if a spreadsheet might run it; plain numbers such as -3.5 stay.

    Args:
        cell: Any text.

    Returns:
        A text that no spreadsheet runs.

    Examples:
        >>> escape("=1+1"), escape("-3.5")
        ("'=1+1", '-3.5')
    """
    return f"'{cell}" if _RUNS.match(cell) and not is_plain_number(cell) else cell


def unescape(cell: str) -> str:
    """The cell that `escape` was given.

    Args:
        cell: What `escape` returned.

    Returns:
        The text before that.

    Examples:
        >>> unescape(escape("=1+1"))
        '=1+1'
    """
    return cell.removeprefix("'")


def checked_output(
    path: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
    ours: Callable[[Path], bool] | None = None,
) -> Path:
    """Where a file may be written; asked before the work, so that nobody waits to be refused.

    Never what is read, a campaign, another database, a folder or a device; a file that is there only if it is to be
    overwritten. Links are followed: two names of one file are one file.

    Args:
        path: The file to write.
        inputs: Files that are read, and folders of them.
        overwrite: Whether a file that is there may be replaced.
        ours: Tells of a file that is there whether it may be replaced all the same, as it was written by us.

    Returns:
        The path, links followed.

    Raises:
        StakesError: If nothing may be written there.
    """
    try:
        where = Path(os.path.realpath(path))
        mode = _mode(where)
    except (OSError, ValueError) as error:  # a NUL in a path is a ValueError
        raise _cannot(path, error) from error
    if not where.parent.is_dir():
        raise StakesError(f"{path} cannot be written: there is no folder {Path(path).parent}")
    if mode is not None and not stat.S_ISREG(mode):
        raise StakesError(f"{path} cannot be written: it is a folder or a device. Give the name of a file.")
    _refuse_input(path, where, inputs)
    _refuse_database(path, where)
    if not os.access(where.parent, os.W_OK | os.X_OK):
        raise StakesError(f"{path} cannot be written: nothing can be written to the folder {where.parent}")
    if mode is not None and not overwrite and not (ours is not None and ours(where)):
        raise _taken(path)
    return where


def _mode(path: Path) -> int | None:
    """What is there; None for nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _refuse_input(path: str | os.PathLike[str], where: Path, inputs: Iterable[str | os.PathLike[str]]) -> None:
    if not where.exists():
        return
    for given in map(Path, inputs):
        for each in given.iterdir() if given.is_dir() else [given]:
            if each.exists() and where.samefile(each):
                raise StakesError(f"{path} is {each}, which is read here, and is left as it is. Give another name.")


def _refuse_database(path: str | os.PathLike[str], where: Path) -> None:
    """Refuse a campaign, any other database of SQLite, and the files that SQLite keeps beside one."""
    begins = _first_bytes(where)
    if begins.startswith(_DATABASES) or (where.suffix.lower() == ".stakes" and where.exists()):
        raise StakesError(f"{path} is a campaign or another database, and is never overwritten. Give another name.")
    for suffix in _BESIDE:
        if where.name.lower().endswith(suffix):
            database = where.with_name(where.name[: -len(suffix)])
            if _first_bytes(database).startswith(_DATABASES):
                raise StakesError(f"{path} is part of {database}, a campaign or another database. Give another name.")


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError:  # nothing is there, or nobody may look: then it is refused for being there
        return b""


def _taken(path: str | os.PathLike[str]) -> StakesError:
    return StakesError(
        f"{path} is there already and is left as it is. Give another name, or have it overwritten: overwrite=True "
        "(--force)."
    )


def _cannot(path: str | os.PathLike[str], error: Exception) -> StakesError:
    why = getattr(error, "strerror", None) or error
    return StakesError(f"{os.fspath(path)!s} cannot be written: {why}. Nothing was changed.")


@contextmanager
def output_file(
    path: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    overwrite: bool = False,
    ours: Callable[[Path], bool] | None = None,
) -> Iterator[BinaryIO]:
    """A file to fill, which takes its name at the end, whole; after any failure all is as it was.

    What may be overwritten is what `checked_output` says.
    """
    where = checked_output(path, inputs=inputs, overwrite=overwrite, ours=ours)
    replace = overwrite or (ours is not None and where.exists())
    part = where.with_name(f".stakes-{secrets.token_hex(8)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _put(part, where, replace)
        _sync_folder(where.parent)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _cannot(path, error) from error
    finally:
        with suppress(OSError):  # a disk that cannot be written to cannot hold it either
            part.unlink(missing_ok=True)


def _put(part: Path, where: Path, replace: bool) -> None:
    """Give a file its name. One that nobody had is taken by a link, which fails where somebody was quicker."""
    if replace:
        if where.exists():
            shutil.copymode(where, part)
        os.replace(part, where)
        return
    try:
        os.link(part, where)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(where, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(part, where)


def _sync_folder(folder: Path) -> None:
    """So that the new name, too, outlives a loss of power; not every system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_csv(
    path: str | os.PathLike[str],
    names: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    overwrite: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> None:
    """Write a table with safe cells, whole or not at all; `read_table(path, unescape=True)` gives it back.

    Args:
        path: The file.
        names: Of the columns.
        rows: A cell for each name; None is an empty cell.
        overwrite: Whether a file that is there is replaced; a campaign, or another database, never is.
        inputs: Files that the rows come from, which are never replaced either.

    Raises:
        StakesError: If the file is there, cannot be written, or a row has another number of cells; nothing is changed
            then.

    Examples:
        >>> import tempfile
        >>> from stakes.files import read_table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "note"], [("a", "=1+1"), ("b", None)])
        ...     read_table(f"{folder}/t.csv", unescape=True).texts("note")
        ['=1+1', None]
    """
    names = as_texts_of("names", names)
    lines = [[escape(name) for name in names]]
    lines += [_line(place, row, len(names)) for place, row in enumerate(rows)]
    # The byte order mark tells Excel that this is UTF-8; quotes keep a cell with ; whole where ; stands between cells.
    with output_file(path, inputs=inputs, overwrite=overwrite) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            csv.writer(text, quoting=csv.QUOTE_ALL).writerows(lines)
            text.flush()
        except UnicodeEncodeError as error:
            raise _cannot(path, error) from error
        finally:
            text.detach()


def _line(place: int, row: Sequence[Cell], width: int) -> list[str]:
    if len(row) != width:
        raise StakesError(f"each row must have {width} cells, one for each name; row {place + 1} has {len(row)}")
    cells = ["" if cell is None else escape(str(cell)) for cell in row]
    if any("\0" in cell for cell in cells):
        raise StakesError(f"row {place + 1} holds a NUL character, which no CSV file can. Take it out.")
    return cells
