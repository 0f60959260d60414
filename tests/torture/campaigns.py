"""Campaign files that are flipped, cut and forged: refused in plain words, or read as they were written.

A case takes one of a few sound campaigns, damages it, and uses it as people do. What is read must be what was written,
to the last event and record; what is refused must be refused by a `StakesError` that names the file, and left as it is.
Forgeries with hashes that are made anew look like what was written: they must not end in anything but an
answer or a refusal.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from stakes import Campaign
from stakes.campaign import Journal
from stakes.campaign.journal import append
from stakes.campaign.new_files import recover
from stakes.campaign.states import Event
from stakes.cli.commands import run
from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, ModelSpec
from tests.campaign.forging import unchained
from tests.torture.harness import Area

PAGE = 4096
NAME = "c.stakes"
JUNK: tuple[Any, ...] = (None, True, -1, 0, 7, 1e300, "", "x", "a\x1b[2J", [], [1], {}, {"a": 1}, [[[]]], "9" * 400)


class Base(NamedTuple):
    """A sound campaign: its file, the journal of an unfinished write beside it, its table, and all that is in it."""

    file: bytes
    unfinished: bytes
    table: bytes
    content: dict[str, Any]


def content(journal: Journal) -> dict[str, Any]:
    """All that can be read of a campaign."""
    kinds = [kind for kind, _ in journal.replay.records]
    return {
        "rows": journal.costs(),
        "events": journal.history(),
        "settings": journal.settings,
        "records": {kind: journal.records(kind) for kind in dict.fromkeys(kinds)},
        "states": journal.states(5e9),
    }


def _table(rows: int, classes: bool) -> bytes:
    kinds = ("bus", "van", "tram")
    lines = [
        f"r{i},{i * 0.5},{(i * 7) % 5},{'' if i >= rows // 2 else kinds[i % 3] if classes else i / 2 + i % 3}"
        for i in range(rows)
    ]
    return "\n".join(["id,x,z,y", *lines, ""]).encode()


def _made(rows: int, loss: str, model: str, asks: int = 1, spill: bool = False) -> Base:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, path = folder / "t.csv", folder / NAME
        table.write_bytes(_table(rows, loss == "log-loss"))
        label = "bus" if loss == "log-loss" else "2.5"
        with Campaign.create(path, table, "y", LossSpec(loss), id_column="id", model=ModelSpec(model)) as campaign:
            for _ in range(asks):
                asked = campaign.ask(2, who="ann")
                campaign.tell(asked.row_ids[0], label)
            journal = campaign.journal
            free = [row for row, state in journal.states().items() if state.status == "open"]
            journal.tell_many([(row, label) for row in free[: rows // 4]])
            journal.skip(free[rows // 4 : rows // 4 + 1])
            journal.withdraw(["r0"], who="bob é")
            journal.tell_many([("r1", "van" if loss == "log-loss" else "9.5")], replace=True)
            kept = content(journal)
        unfinished = _spilled(path) if spill else b""
        return Base(path.read_bytes(), unfinished, table.read_bytes(), kept)


def _spilled(path: Path) -> bytes:
    """Leave a file as a process leaves it that dies while it writes; the journal that undoes it."""
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    connection = sqlite3.connect(copy, isolation_level=None)
    connection.execute("PRAGMA cache_size = 5")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE events SET label = 'half done' || hex(zeroblob(200))")
    connection.execute("UPDATE rows SET id = id || hex(zeroblob(100))")
    shutil.copy(copy, path)
    left = Path(f"{copy}-journal").read_bytes()
    connection.execute("ROLLBACK")
    connection.close()
    return left


@cache
def bases() -> tuple[Base, ...]:
    """Few and many events, numbers and classes, and one that a killed process left; made once in every worker."""
    with mock.patch("time.time", itertools.count(1.75e9, 0.25).__next__):  # the same bytes every time
        return (
            _made(12, "squared-error", "bayesian-ridge"),
            _made(12, "log-loss", "random-forest"),
            _made(800, "squared-error", "bayesian-ridge", asks=3),
            _made(800, "squared-error", "bayesian-ridge", spill=True),
        )


def flip_bits(data: bytearray, random_state: random.Random) -> None:
    for _ in range(random_state.choice((1, 1, 1, 2, 8))):
        data[random_state.randrange(len(data))] ^= 1 << random_state.randrange(8)


def flip_in_header(data: bytearray, random_state: random.Random) -> None:
    data[random_state.randrange(100)] = random_state.randrange(256)


def flip_in_texts(data: bytearray, random_state: random.Random) -> None:
    """Where there is something: in the letters and digits of ids, labels and settings."""
    places = [at for at, byte in enumerate(data) if 48 <= byte < 123]
    data[random_state.choice(places)] = random_state.randrange(48, 123)


def overwrite(data: bytearray, random_state: random.Random) -> None:
    start, length = random_state.randrange(len(data)), random_state.choice((1, 2, 4, 16, 512, PAGE))
    what = random_state.choice((b"\0" * length, b"\xff" * length, random_state.randbytes(length)))
    data[start : start + length] = what[: len(data) - start]


def cut(data: bytearray, random_state: random.Random) -> None:
    del data[
        random_state.choice((random_state.randrange(len(data)), PAGE * random_state.randrange(1 + len(data) // PAGE))) :
    ]


def lengthen(data: bytearray, random_state: random.Random) -> None:
    data += random_state.choice((b"\0", random_state.randbytes(100), b"\0" * PAGE, random_state.randbytes(PAGE)))


def _pages(data: bytearray, random_state: random.Random) -> tuple[slice, slice]:
    one, other = (random_state.randrange(len(data) // PAGE) * PAGE for _ in range(2))
    return slice(one, one + PAGE), slice(other, other + PAGE)


def swap_pages(data: bytearray, random_state: random.Random) -> None:
    one, other = _pages(data, random_state)
    data[one], data[other] = data[other], data[one]


def repeat_page(data: bytearray, random_state: random.Random) -> None:
    one, other = _pages(data, random_state)
    data[one] = data[other]


def shift(data: bytearray, random_state: random.Random) -> None:
    """A byte too many or too few in the middle."""
    at = random_state.randrange(len(data))
    data[at : at + random_state.randrange(2)] = b"" if random_state.random() < 0.5 else b"\0\0"


BYTES = (
    flip_bits,
    flip_bits,
    flip_in_texts,
    flip_in_texts,
    flip_in_header,
    overwrite,
    overwrite,
    cut,
    lengthen,
    swap_pages,
    repeat_page,
    shift,
)

SCHEMA = (
    "CREATE TRIGGER t AFTER INSERT ON {table} BEGIN UPDATE rows SET id = 'x'; END",
    "CREATE TRIGGER t AFTER UPDATE ON head BEGIN DELETE FROM {table}; END",
    "CREATE TRIGGER t BEFORE INSERT ON events BEGIN SELECT RAISE(IGNORE); END",
    "CREATE VIEW v AS SELECT * FROM {table}",
    "CREATE INDEX i ON {table} (number)",
    "CREATE TABLE more (x)",
    "CREATE TEMP TABLE rows (x); CREATE TABLE more (x)",
    "CREATE VIRTUAL TABLE f USING fts5(x)",
    "ALTER TABLE {table} ADD COLUMN more",
    "ALTER TABLE {table} ADD COLUMN more AS (number + 1) VIRTUAL",
    "ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS SELECT * FROM other",
    "ALTER TABLE {table} RENAME COLUMN number TO n",
    "DROP TABLE {table}",
    "ANALYZE",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = {digit} WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = NULL WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = x'00ff' WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET type = 'view' WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'é' || name WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; DELETE FROM sqlite_master WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; INSERT INTO sqlite_master SELECT * FROM sqlite_master LIMIT 1",
)
LINES = (
    "UPDATE {table} SET {column} = {value} WHERE number = {number}",
    "UPDATE {table} SET {column} = {value} WHERE number = {number}",
    "UPDATE {table} SET {column} = {value}",
    "UPDATE {table} SET {column} = (SELECT {column} FROM {table} WHERE number = {other}) WHERE number = {number}",
    "DELETE FROM {table} WHERE number = {number}",
    "DELETE FROM {table} WHERE number = (SELECT max(number) FROM {table})",
    "DELETE FROM {table}",
    "UPDATE {table} SET number = -number WHERE number = {number}",
    "UPDATE {table} SET number = number + 1000000 WHERE number = {number}",
    "CREATE TEMP TABLE t AS SELECT * FROM {table} WHERE number IN ({number}, {other}); "
    "DELETE FROM {table} WHERE number IN ({number}, {other}); UPDATE t SET number = {number} + {other} - number; "
    "INSERT INTO {table} SELECT * FROM t",
    "CREATE TEMP TABLE t AS SELECT * FROM {table} WHERE number = {number}; "
    "UPDATE t SET number = (SELECT max(number) + 1 FROM {table}); INSERT INTO {table} SELECT * FROM t",
    "UPDATE head SET events = events - 1; DELETE FROM events WHERE number = (SELECT max(number) FROM events)",
    "UPDATE head SET {head} = {value}",
    "INSERT INTO head SELECT 2, rows, events, records, hash FROM head",
    "PRAGMA user_version = {digit}",
    "PRAGMA application_id = {digit}",
    "PRAGMA encoding = 'UTF-16'; VACUUM",
    "PRAGMA journal_mode = WAL",
    "PRAGMA page_size = 512; VACUUM",
    "VACUUM",
)
COLUMNS = {
    "rows": ("number", "id", "cost"),
    "events": ("number", "at", "kind", "row", "label", "until", "batch", "who", "hash"),
    "records": ("number", "at", "kind", "version", "payload", "hash"),
    "head": ("number", "rows", "events", "records", "hash"),
}
VALUES = (
    "NULL",
    "0",
    "-1",
    "7",
    "1.5",
    "1e999",
    "9223372036854775807",
    "''",
    "'x'",
    "'label'",
    "x''",
    "x'00ff'",
    "'{'",
)


def forge(path: Path, statements: tuple[str, ...], random_state: random.Random) -> None:
    """Change a file by SQL, as somebody else would; what SQLite does not do is no change."""
    table = random_state.choice(sorted(COLUMNS))
    values = {
        "table": table,
        "column": random_state.choice(COLUMNS[table]),
        "head": random_state.choice(COLUMNS["head"]),
        "value": random_state.choice(VALUES),
        "digit": random_state.randrange(9),
        "number": random_state.randrange(1, 12),
        "other": random_state.randrange(1, 12),
    }
    connection = sqlite3.connect(path, isolation_level=None)
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):  # the last one: of names that are damaged already
        connection.executescript(random_state.choice(statements).format(**values))
    connection.close()


def plain(answer: Callable[[], Any], path: Path) -> tuple[bool, Any]:
    """What a call answers, or the refusal, which must be a sentence of ours that names the file."""
    try:
        return True, answer()
    except StakesError as error:
        message = str(error)
        assert path.name in message, f"a refusal does not name the file: {message}"
        assert len(message) < 2000, f"a refusal of {len(message)} letters"
        assert "Error" not in message.replace(str(path), ""), f"a raw error: {message}"
        return False, message


def read_all(path: Path) -> dict[str, Any]:
    """Open, check and read everything."""
    with Campaign.open(path) as campaign:
        campaign.check()
        return content(campaign.journal)


def command(*arguments: str) -> int:
    """The exit code of a command, which is never that of a bug."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(list(arguments))
    assert code in (0, 1), f"{arguments} ended with {code}: {err.getvalue()}"
    assert code == 0 or err.getvalue().startswith(("stakes: ", '{"error": ')), err.getvalue()
    return code


def put(base: Base, folder: Path) -> Path:
    path = folder / NAME
    path.write_bytes(base.file)
    (folder / "t.csv").write_bytes(base.table)
    if base.unfinished:
        (folder / f"{NAME}-journal").write_bytes(base.unfinished)
    return path


def check_damaged(base: Base, path: Path, random_state: random.Random, *, undone: bool = False) -> None:
    """Use a damaged file: everything is as it was, or a refusal; and go on with it where it is not refused."""
    before = path.read_bytes()
    read, answer = plain(lambda: read_all(path), path)
    if not read:
        assert undone or path.read_bytes() == before, "a file that was refused was changed"
        _check_recovered(base, path)
    else:
        assert answer == base.content, "a file that was changed was read"
        with Journal.open(path) as journal:
            label = "bus" if base is bases()[1] else "2.5"
            wrote, _ = plain(lambda: journal.tell_many([("r0", label)]), path)
            recorded = journal.history()[-1:] if wrote else ()
        after = read_all(path)
        assert after["events"] == base.content["events"] + recorded, "writing to a file changed what was in it"
        assert after["records"] == base.content["records"]
        assert after["rows"] == base.content["rows"]
    out = str(path.with_name("events.csv"))
    arguments = random_state.choice(
        (["doctor", "--json"], ["status", "--no-refresh"], ["export", "--events", "-o", out])
    )
    assert command(arguments[0], str(path), *arguments[1:]) == (0 if read else 1)


def _check_recovered(base: Base, path: Path) -> None:
    """What is recovered of a file is the beginning of what was in it."""
    new = path.with_name("new.stakes")
    found, answer = plain(lambda: recover(path, new), path)
    if not found:
        assert not new.exists()
        return
    with Journal.open(new) as journal:
        kept = content(journal)
    count = len(kept["events"])
    assert answer[0] == count
    assert kept["events"] == base.content["events"][:count], "what was recovered is not what was there"
    assert kept["rows"] == base.content["rows"]
    for kind, records in kept["records"].items():
        assert [each.payload for each in records] == [
            each.payload for each in base.content["records"][kind] if each.version <= count
        ][: len(records)]


def damaged_bytes(random_state: random.Random, folder: Path) -> None:
    base = random_state.choice(bases()[:3])
    path = put(base, folder)
    data = bytearray(base.file)
    for _ in range(random_state.choice((1, 1, 1, 2))):
        random_state.choice(BYTES)(data, random_state)
        if len(data) < PAGE:
            break
    path.write_bytes(data)
    check_damaged(base, path, random_state)


def damaged_beside(random_state: random.Random, folder: Path) -> None:
    """Damaged, strange or foreign files where SQLite looks for its own."""
    base = random_state.choice(bases()[:3])
    path = put(base, folder)
    for suffix in random_state.sample(("-journal", "-wal", "-shm"), random_state.randrange(1, 4)):
        junk = random_state.randbytes(random_state.randrange(9000))
        what = random_state.choice((b"", junk, b"\0" * 5000, b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + junk, base.file))
        path.with_name(NAME + suffix).write_bytes(what)
    check_damaged(base, path, random_state, undone=True)


def damaged_unfinished(random_state: random.Random, folder: Path) -> None:
    """A write that was never finished, and the journal that undoes it, one of them damaged."""
    base = bases()[3]
    path = put(base, folder)
    where = random_state.choice((path, path.with_name(f"{NAME}-journal"), None))
    if where is not None:
        data = bytearray(where.read_bytes())
        random_state.choice(BYTES)(data, random_state)
        where.write_bytes(data)
    if random_state.random() < 0.1:
        path.with_name(f"{NAME}-journal").unlink()
    check_damaged(base, path, random_state, undone=True)


def forged_tables(random_state: random.Random, folder: Path) -> None:
    base = random_state.choice(bases()[:3])
    path = put(base, folder)
    forge(path, SCHEMA, random_state)
    check_damaged(base, path, random_state)


def forged_lines(random_state: random.Random, folder: Path) -> None:
    base = random_state.choice(bases()[:3])
    path = put(base, folder)
    for _ in range(random_state.choice((1, 1, 2))):
        forge(path, LINES, random_state)
    check_damaged(base, path, random_state, undone=path.with_name(f"{NAME}-wal").exists())


def _mutated(value: Any, random_state: random.Random) -> Any:
    """JSON with something in it that was not there, or without something that was."""
    if isinstance(value, dict) and value and random_state.random() < 0.85:
        name = random_state.choice(sorted(value))
        if random_state.random() < 0.15:
            return {key: each for key, each in value.items() if key != name}
        return {**value, name: _mutated(value[name], random_state)}
    if isinstance(value, list) and value and random_state.random() < 0.7:
        at = random_state.randrange(len(value))
        return [*value[:at], _mutated(value[at], random_state), *value[at + random_state.randrange(1, 3) :]]
    return random_state.choice(JUNK)


def forged_hashes(random_state: random.Random, folder: Path) -> None:
    """A history that was rewritten together with its hashes: any answer or refusal will do, but nothing else."""
    base = random_state.choice(bases()[:3])
    path = put(base, folder)
    with Journal.open(path) as journal:
        kind = random_state.choice(("settings", "settings", "ranking", "failure", "event"))
        version = journal.version()
        kept = {"error": "ill"} if kind == "failure" else None
        if kind == "settings":
            kept = journal.settings
        elif kind == "ranking" and (last := journal.last_record("ranking")):
            kept = last.payload
        with journal.writing():
            if kind == "event":
                row, label = (
                    random_state.choice(("r0", "r3", "none", "")),
                    random_state.choice(("high", "", "1", "nan", "van", "-3")),
                )
                at = random_state.choice((1.0, 4e9, 1e15, -1.0))
                append(
                    journal.connection,
                    journal.replay,
                    [Event(0, at, random_state.choice(("label", "replace")), row, label)],
                    [],
                )
            else:
                text = random_state.choice(
                    ("{", "", "[" * 99_999, "NaN", *[json.dumps(_mutated(kept, random_state))] * 40)
                )
                append(journal.connection, journal.replay, [], [(4e9, kind, version, text)])
    plain(lambda: read_all(path), path)
    for arguments in (("doctor",), ("status", "--no-refresh"), ("tell", "r5", "1.5"), ("skip", "r10"), ("ask",)):
        if arguments != ("ask",) or random_state.random() < 0.2:
            command(arguments[0], str(path), *arguments[1:])


def of_the_version_before(random_state: random.Random, folder: Path) -> None:
    """Files without hashes, in which a changed letter cannot be seen: read or refused, and nothing else."""
    path = folder / NAME
    unchained(path, ("a", "b", "c"))
    data = bytearray(path.read_bytes())
    random_state.choice(BYTES)(data, random_state)
    path.write_bytes(data)
    if random_state.random() < 0.3:
        forge(path, SCHEMA + LINES, random_state)
    read, _ = plain(lambda: Journal.open(path).close(), path)
    if read:
        with Journal.open(path) as journal:
            journal.check()


def of_somebody_else(random_state: random.Random, folder: Path) -> None:
    """A campaign that names a module of its own imports nothing, whatever is asked of it."""
    base = bases()[0]
    path = put(base, folder)
    (folder / "of_somebody_else.py").write_text(f"open({str(folder / 'imported')!r}, 'w').close()\n")
    sys.path.insert(0, str(folder))
    try:
        with Journal.open(path) as journal:
            brief = journal.settings["brief"]
            spec = random_state.choice(
                (
                    {"loss": {"name": "of_somebody_else:Loss"}},
                    {"model": {"name": "of_somebody_else:Model", "parameters": {}}},
                    {"model": {"name": "bootstrap", "parameters": {"estimator": {"model": "of_somebody_else:Model"}}}},
                )
            )
            journal.update_settings(brief={**brief, **spec})
        uses = ("ask", "status", "status --no-refresh", "tell r5 1.5 --replace", "skip r10", "doctor")
        arguments = random_state.choice(
            (*uses, f"report -o {folder / 'r.html'}", f"export -o {folder / 'e.csv'}")
        ).split()
        command(arguments[0], str(path), *arguments[1:])
        assert not (folder / "imported").exists(), f"{arguments} imported a module of somebody else"
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("of_somebody_else", None)


KINDS = (
    *(damaged_bytes,) * 8,
    damaged_beside,
    *(damaged_unfinished,) * 2,
    *(forged_tables,) * 2,
    *(forged_lines,) * 3,
    *(forged_hashes,) * 2,
    of_the_version_before,
    of_somebody_else,
)


def case(number: int, folder: Path) -> None:
    """Damage a campaign in one of these ways, and use it."""
    os.environ["XDG_CONFIG_HOME"] = str(folder / "settings")
    KINDS[number % len(KINDS)](random.Random(number), folder)


AREA = Area("campaigns", case, quick=40, seconds=60)
