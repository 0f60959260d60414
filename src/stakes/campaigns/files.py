"""Campaign files: made whole or not at all, opened only if they are what they should be, never overwritten."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

from stakes.campaigns.database import WAIT, Database, plain_errors, transaction
from stakes.campaigns.errors import CampaignError
from stakes.campaigns.schema import APPLICATION, STATEMENTS, VERSION

# What file systems without hard links answer, by kind of system and of file system.
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}


def create_file(path: Path, fill: Callable[[Database], None]) -> None:
    """Make a campaign beside `path` and put it there when it is whole; what is there already stays."""
    _refuse_taken(path)
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with plain_errors(path):
            _write_new(part, fill)
            _sync(part)
            _put(part, path)
            _sync(path.parent)
    finally:
        part.unlink(missing_ok=True)


def open_file(path: Path) -> Database:
    """A campaign file, opened for reading and, where allowed, writing."""
    with plain_errors(path):
        _refuse_other_things(path)
        _refuse_foreigners(path)
        connection = _connect(path, "mode=rw")
        try:
            _prepare(connection)
            refuse_damage(path, connection, "quick_check")
        except BaseException:
            connection.close()
            raise
    return Database(path, connection)


def refuse_damage(path: Path, connection: sqlite3.Connection, check: str) -> None:
    """Let SQLite look through the file: quick_check for its pages, integrity_check for its indexes as well."""
    found = [text for (text,) in connection.execute(f"PRAGMA {check}(3)").fetchall()]
    if found != ["ok"]:
        raise CampaignError(f"{path}: it is damaged ({'; '.join(found)}); put a backup in its place")


def _prepare(connection: sqlite3.Connection) -> None:
    """EXTRA: a commit is on the disk, and so is the end of its journal, before it is acknowledged."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA foreign_keys = ON")


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=WAIT, isolation_level=None)


def _write_new(part: Path, fill: Callable[[Database], None]) -> None:
    connection = _connect(part, "mode=rwc")
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # on any failure the whole file goes
        with transaction(connection, "BEGIN IMMEDIATE"):
            for statement in STATEMENTS:
                connection.execute(statement)
            fill(Database(part, connection))
    finally:
        connection.close()


def _put(part: Path, path: Path) -> None:
    """Give a file its name, unless the name was taken meanwhile."""
    try:
        _link(part, path)
    except FileExistsError as error:
        raise _taken(path) from error


def _taken(path: Path) -> CampaignError:
    return CampaignError(f"{path} is there already and was left as it is; open it, or give another path")


def _link(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # the name is ours now: nobody's file is replaced
        os.replace(part, path)


def _sync(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk; Windows does the latter by itself."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDWR if path.is_file() else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refuse_taken(path: Path) -> None:
    """A name is free where its journal's is too: an old journal would be played back into the new file."""
    if not path.parent.is_dir():
        raise CampaignError(f"there is no folder {path.parent}; make it first, or give another path")
    if os.path.lexists(path):
        raise _taken(path)
    for left in (path.with_name(f"{path.name}{suffix}") for suffix in ("-journal", "-wal")):
        if os.path.lexists(left):
            raise CampaignError(f"{left} is left from a file that is gone; move it away, or give another path")


def _refuse_other_things(path: Path) -> None:
    if not path.exists():
        raise CampaignError(f"there is no campaign at {path}; check the path, or create one")
    if not stat.S_ISREG(path.stat().st_mode):
        raise CampaignError(f"{path} is a folder or a device, not a campaign file; give the path of a file")
    if path.stat().st_size == 0:
        raise CampaignError(f"{path} is empty: no campaign was ever in it; delete it and create one")


def _refuse_foreigners(path: Path) -> None:
    """Look at the numbers in the header without taking part: no lock is asked for, no foreign journal played back."""
    connection = _connect(path, "mode=ro&immutable=1")
    try:
        connection.execute("PRAGMA writable_schema = ON")  # so that a header newer than the rest can still be read
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    finally:
        connection.close()
    if application != APPLICATION:
        raise CampaignError(f"{path} is an SQLite file of another program, not a campaign; give another path")
    if version != VERSION:
        raise CampaignError(f"{path} has schema {version} and this stakes reads {VERSION}; use the stakes that made it")
