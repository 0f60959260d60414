"""One connection to a campaign file: reading, writing all or nothing, and SQLite's errors in plain words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stakes.campaigns.errors import CampaignError

WAIT = 30.0  # seconds that a writer waits for the others

_SENTENCES = {
    sqlite3.SQLITE_BUSY: f"others have been writing to it for {WAIT:.0f} s; repeat the call",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk does not take or give data: it may be full or gone; see to it and repeat the call",
    sqlite3.SQLITE_READONLY: "it cannot be written to; allow writing to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened for this; allow writing to the file and to its folder",
    sqlite3.SQLITE_PERM: "access to it is not allowed; change its permissions",
    sqlite3.SQLITE_CORRUPT: "it is damaged; put a backup in its place, or rescue what is there with sqlite3's .recover",
    sqlite3.SQLITE_NOTADB: "it is not a campaign file (not even an SQLite file); give another path",
}


@dataclass(frozen=True, eq=False)
class Database:
    """A campaign file, open in one thread of one process."""

    path: Path
    connection: sqlite3.Connection
    process: int = field(default_factory=os.getpid)

    def read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All that a query finds, at once: a query left half read would keep writers out."""
        with self._guarded():
            return self.connection.execute(query, values).fetchall()

    def write(self, statement: str, *values: Any) -> None:
        """One change, inside `writing`."""
        self.connection.execute(statement, values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block whose changes are on the disk together when it ends, or not at all; one at a time."""
        with self._guarded(), transaction(self.connection, "BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block whose queries all see the same moment."""
        with self._guarded(), transaction(self.connection, "BEGIN"):
            yield

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if os.getpid() != self.process:  # a lock of SQLite is lost in a fork, and the file with it
            raise CampaignError(f"{self.path} was opened by another process; open it again in this one")
        with plain_errors(self.path):
            yield


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


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the system as sentences that say what to do."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise CampaignError(f"{path}: {_sentence(error)} ({error})") from error


def _sentence(error: Exception) -> str:
    if isinstance(error, sqlite3.ProgrammingError):  # raised by Python: closed, or used in another thread
        return "this campaign is closed, or was opened in another thread; open it again here"
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits say where in SQLite it happened
    return _SENTENCES.get(primary, "it could not be used; nothing was recorded")
