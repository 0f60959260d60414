"""The SQLite file of a campaign: its tables, how it is opened, and what is refused before anything in it is run.

A file may come from anyone. Its tables are compared with ours, word for word: a file with a trigger, a view, an index
or a column more is refused. Errors of SQLite and of the system become sentences that say what to do.
"""

from __future__ import annotations

import errno
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from stakes._utils.text import did_you_mean, printable
from stakes.exceptions import StakesError

APPLICATION = 0x53746B73  # "Stks": marks a campaign among SQLite files
VERSION = 4
"""The version of the tables and of what is kept in them."""
SINGLE = 3
"""The version before there were opinions: a file of it becomes one of ours with the first of them."""
UNCHAINED = 2
"""The version before there were hashes; such a file is converted when it is opened."""

_WAIT = 30.0  # seconds that a writer waits for the others

TABLES = (
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT NOT NULL, cost REAL)",
    "CREATE TABLE events (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, row TEXT NOT NULL, "
    "label TEXT, until REAL, batch INTEGER, who TEXT, hash BLOB NOT NULL)",
    "CREATE TABLE records (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, version INTEGER NOT NULL, "
    "payload TEXT NOT NULL, hash BLOB NOT NULL)",
    "CREATE TABLE head (number INTEGER PRIMARY KEY, rows INTEGER NOT NULL, events INTEGER NOT NULL, "
    "records INTEGER NOT NULL, hash BLOB NOT NULL)",
)
ROWS = "SELECT number, id, cost FROM rows ORDER BY number"
EVENTS = "SELECT number, at, kind, row, label, until, batch, who, {} FROM events WHERE number > ? ORDER BY number"
RECORDS = "SELECT number, at, kind, version, payload, {} FROM records WHERE number > ? ORDER BY number"
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master"
MOST_BYTES = 2**31 - 1
"""Of a value, as far as SQLite goes."""

_SENTENCES = {
    sqlite3.SQLITE_BUSY: f"others have been writing to it for {_WAIT:.0f} s; repeat the call",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk does not take or give data: it may be full or gone; see to it and repeat the call",
    sqlite3.SQLITE_READONLY: "it cannot be written to; allow writing to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for this; allow writing to the file and to its folder",
    sqlite3.SQLITE_PERM: "access to it is not allowed; change its permissions",
    sqlite3.SQLITE_NOTADB: "it is not a campaign file (not even an SQLite file); give another path, or init one",
}

# What SQLite answers where a file is not what it was; 0: a text that is not UTF-8, which Python finds.
_DAMAGE = {0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH}


@contextmanager
def kept_in(path: Path, what: str) -> Iterator[None]:
    """A block that reads what was kept; whatever it stumbles over is damage of the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        lacking = f"{error} is missing" if isinstance(error, KeyError) else error
        raise damaged(path, f"{what} cannot be used ({lacking})") from error


def damaged(path: Path, what: str, *, recoverable: bool = True) -> StakesError:
    """The refusal of a file that is not what was written."""
    recover = f", or take what is sound into a new file: stakes doctor {shlex.quote(str(path))} --recover NEW"
    advice = f"Put a backup in its place{recover if recoverable else ''}"
    return StakesError(f"{path} is damaged, or was changed by another program: {what}. {advice}")


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A block that is committed when it ends and rolled back when anything, Ctrl-C too, ends it early."""
    if connection.in_transaction:  # a second Ctrl-C can come while the first one is being seen to
        connection.execute("ROLLBACK")
    try:
        connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# What the system says of a file, as SQLite would say it.
_OF_SYSTEM = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), sqlite3.SQLITE_CANTOPEN)
_OF_SYSTEM |= {errno.ENOSPC: sqlite3.SQLITE_FULL}


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as sentences that say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last one: of a message about damaged names
        if isinstance(error, sqlite3.ProgrammingError):  # raised by Python: closed, or used in another thread
            raise StakesError(
                f"{path}: this campaign is closed, or was opened in another thread; open it again here ({error})"
            ) from error
        code = getattr(error, "sqlite_errorcode", 0)
        if isinstance(error, OSError):
            code = _OF_SYSTEM.get(error.errno or 0, -1)
        if code == sqlite3.SQLITE_READONLY and _may_write(path):
            raise damaged(path, "its header says that it can only be read") from error
        primary = code & 0xFF  # the higher bits of a code say where in SQLite it happened
        if primary not in _DAMAGE:
            advice = _SENTENCES.get(primary, "it could not be used; nothing was recorded")
            raise StakesError(f"{path}: {advice} ({error})") from error
        raise damaged(path, f"SQLite says: {error}") from error


def _may_write(path: Path) -> bool:
    effective = os.access in os.supports_effective_ids
    return all(os.access(each, os.W_OK, effective_ids=effective) for each in (path, path.parent))


def path_of_file(path: str | os.PathLike[str]) -> Path:
    """The path of a file; old names that are not Unicode are names too."""
    if "\0" in str(path):
        raise StakesError(f"the path holds a NUL: {str(path)!r}; remove it")
    return Path(path)


def open_file(path: Path) -> tuple[sqlite3.Connection, int]:
    """A connection to a campaign file whose tables and pages are sound, and the version of its tables."""
    with plain_errors(path):
        refuse_other_things(path)
        version = _refuse_other_programs(path)
        connection = connect(path, "mode=rw")
        try:
            harden(path, connection)
            refuse_other_tables(path, connection, version)  # again: an unfinished write has been undone by now
            # EXTRA: a commit is on the disk, and so is the end of its journal, before it is acknowledged.
            connection.execute("PRAGMA synchronous = EXTRA")
            _refuse_bad_pages(path, connection)
        except BaseException:
            connection.close()
            raise
    return connection, version


def harden(path: Path, connection: sqlite3.Connection) -> None:
    """Let nothing in a file of others run, have every page looked at, and take no value for longer than the file."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(path.stat().st_size, 1_000_000), MOST_BYTES))
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    for limit in (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, sqlite3.SQLITE_LIMIT_ATTACHED):
        connection.setlimit(limit, 0)
    if hasattr(connection, "setconfig"):  # from Python 3.12 on
        for name in ("SQLITE_DBCONFIG_ENABLE_TRIGGER", "SQLITE_DBCONFIG_ENABLE_VIEW"):
            connection.setconfig(getattr(sqlite3, name), False)


def refuse_other_tables(path: Path, connection: sqlite3.Connection, version: int) -> None:
    """Refuse a file whose tables are not word for word those of its version: nothing else in it was looked at yet."""
    found = connection.execute(_SCHEMA).fetchall()
    ours = _schema(version)
    strange = [printable(f"the {kind} {name}")[:80] for kind, name, *rest in found if (kind, name, *rest) not in ours]
    if strange:
        what = f"{', '.join(strange[:3])} is not as stakes makes it, and nothing was run"
        raise damaged(path, what, recoverable=False)
    if len(found) != len(ours) or set(found) != ours:
        names = ", ".join(printable(str(name))[:80] for _, name, *_ in found[:9]) or "none"
        raise damaged(path, f"its tables are not those of a campaign but {names}", recoverable=False)


@cache
def _schema(version: int) -> frozenset[tuple[str, ...]]:
    """What SQLite keeps of the tables of a version: in memory, they are made anew."""
    statements: tuple[str, ...] = TABLES
    if version == UNCHAINED:
        from stakes.campaign.new_files import UNCHAINED_TABLES

        statements = UNCHAINED_TABLES
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    found = frozenset(connection.execute(_SCHEMA).fetchall())
    connection.close()
    return found


def _refuse_bad_pages(path: Path, connection: sqlite3.Connection) -> None:
    """Let SQLite look through all pages of the file."""
    found = [str(text) for (text,) in connection.execute("PRAGMA quick_check(3)").fetchall()]
    if found != ["ok"]:
        raise damaged(path, "; ".join(" ".join(text.split()) for text in found))


def connect(path: Path, how: str) -> sqlite3.Connection:
    """A connection in which transactions are begun and ended by hand."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=_WAIT, isolation_level=None)


def refuse_other_things(path: Path) -> None:
    """Refuse what is no file, or has something beside it that SQLite would write into it."""
    if not path.exists():
        near = did_you_mean(path.name, (each.name for each in path.parent.glob("*.stakes")))
        raise StakesError(
            f"there is no campaign at {path}; check the path, or begin one: stakes init {path} TABLE (in Python: "
            f"Campaign.create).{near}"
        )
    if not stat.S_ISREG(path.stat().st_mode):
        raise StakesError(f"{path} is a folder or a device, not a campaign file; give the path of a file")
    if path.stat().st_size == 0:
        raise StakesError(f"{path} is empty: no campaign was ever in it; delete it and create one")
    if os.path.lexists(wal := path.with_name(f"{path.name}-wal")):  # SQLite would write it into the file
        raise StakesError(f"{wal} is there, which stakes never makes; close the program that did, or move it away")


def _refuse_other_programs(path: Path) -> int:
    """The version in the header, read without taking part: no lock is asked for, no foreign journal played back."""
    connection = connect(path, "mode=ro&immutable=1")
    try:
        harden(path, connection)
        connection.execute("PRAGMA writable_schema = ON")  # so that a header newer than the rest can still be read
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        if application != APPLICATION:
            raise StakesError(f"{path} is an SQLite file of another program, not a campaign; give another path")
        if version not in (VERSION, SINGLE, UNCHAINED):
            raise StakesError(
                f"{path} has schema {version} and this stakes reads {VERSION}; use the stakes that made it"
            )
        if not os.path.lexists(path.with_name(f"{path.name}-journal")):  # else the tables may be half written
            refuse_other_tables(path, connection, version)
    finally:
        connection.close()
    return int(version)
