"""Files that are no campaigns, damaged ones and protected ones: refused or read, never overwritten."""

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from stakes.campaign import Journal
from stakes.campaign.sqlite import APPLICATION
from stakes.exceptions import StakesError

ROWS = [("a", None), ("b", 1.0)]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def small(path):
    Journal.create(path, ROWS, {}).close()


def foreign(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE rows (id TEXT)")
    connection.close()


def marked(path, pragma):
    connection = sqlite3.connect(path)
    connection.execute(pragma)
    connection.close()


def campaign_of_other_program(path):
    small(path)
    marked(path, "PRAGMA application_id = 1")


def from_the_future(path):
    small(path)
    marked(path, "PRAGMA user_version = 5")


def truncated(path):
    small(path)
    path.write_bytes(path.read_bytes()[:-4096])


def scribbled(path):
    rows = [(f"row {number}", None) for number in range(5000)]
    Journal.create(path, rows, {}).close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = os.urandom(4096)
    path.write_bytes(data)


def headless(path):
    small(path)
    path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.touch, "is empty: no campaign was ever in it; delete it and create one"),
        (lambda path: path.write_text("id,label\n007,cat\n"), "it is not a campaign file"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "it is not a campaign file"),
        (foreign, "is an SQLite file of another program"),
        (campaign_of_other_program, "is an SQLite file of another program"),
        (from_the_future, "has schema 5 and this stakes reads 4"),
        (truncated, "is damaged, or was changed by another program"),
        (scribbled, "is damaged, or was changed by another program"),
        (headless, "it is not a campaign file"),
    ],
)
def test_what_is_no_sound_campaign_is_refused_and_stays_as_it_is(path, make, message):
    make(path)
    before = digest(path)
    with pytest.raises(StakesError, match=message) as caught:
        Journal.open(path)
    assert str(path) in str(caught.value)
    with pytest.raises(StakesError, match="is there already and was left as it is; open it, or give another path"):
        Journal.create(path, ROWS, {})
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]


def test_a_foreign_file_with_an_unfinished_write_is_not_even_repaired(path):
    foreign(path)
    left = path.with_name(f"{path.name}-journal")
    left.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + os.urandom(5000))  # how a journal begins
    before = digest(path), digest(left)
    with pytest.raises(StakesError, match="of another program"):
        Journal.open(path)
    assert (digest(path), digest(left)) == before


def test_what_is_not_there_or_no_file_is_refused(folder):
    with pytest.raises(
        StakesError,
        match=r"no campaign at .*nowhere; check the path, or begin one: stakes init .*nowhere TABLE",
    ):
        Journal.open(folder / "nowhere")
    with pytest.raises(StakesError, match="is a folder or a device"):
        Journal.open(folder)
    with pytest.raises(StakesError, match=r"there is no folder .*; make it first"):
        Journal.create(folder / "nowhere" / "campaign", ROWS, {})
    with pytest.raises(StakesError, match="the path holds a NUL"):
        Journal.open("a\0b")
    assert list(folder.iterdir()) == []


def test_how_the_file_is_marked_and_written(path):
    with Journal.create(path, ROWS, {}) as journal:
        asked = {name: journal.read(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")}
        assert asked == {"journal_mode": "delete", "synchronous": 3}  # 3: EXTRA
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION
    assert path.read_bytes()[68:72] == b"Stks"


WRITE = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0.05, isolation_level=None).execute('BEGIN IMMEDIATE')"


def test_opening_a_file_again_keeps_the_locks_of_this_process(path):
    small(path)
    with Journal.open(path) as journal, journal.writing():
        Journal.open(path).close()  # on POSIX, a file closed by other means than SQLite's would free its locks
        done = subprocess.run([sys.executable, "-c", WRITE, path], capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr
    subprocess.run([sys.executable, "-c", WRITE, path], check=True)


@pytest.fixture
def no_rights(folder):
    """Take away the right to write, from the superuser too."""
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    folder.chmod(0o555)
    if superuser:
        os.seteuid(65534)
    yield
    if superuser:
        os.seteuid(0)
    folder.chmod(0o755)


@pytest.mark.skipif(os.name == "nt", reason="permissions of folders are those of POSIX")
def test_where_nothing_can_be_written_a_campaign_is_read(path, request):
    Journal.create(path, ROWS, {}, {"a": "cat"}).close()
    path.chmod(0o444)
    request.getfixturevalue("no_rights")
    before = path.read_bytes()
    with Journal.open(path) as journal:
        assert journal.states()["a"].label == "cat"
        with pytest.raises(StakesError, match="it cannot be written to; allow writing to the file and to its folder"):
            journal.tell_many([("b", "cat")])
        journal.check()
    with pytest.raises(StakesError, match="allow writing to the file and to its folder"):
        Journal.create(path.with_name("new"), ROWS, {})
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX")
def test_a_campaign_is_for_its_owner_until_it_is_shared(path):
    before = os.umask(0o022)
    try:
        with Journal.create(path, [("a", None), ("b", None)], {}) as journal:
            for mode in (0o600, 0o660):
                assert path.stat().st_mode & 0o777 == mode
                with journal.writing():
                    journal.connection.execute("UPDATE rows SET cost = 1 WHERE 0")
                    beside = [each.stat().st_mode & 0o777 for each in path.parent.iterdir() if each != path]
                assert set(beside) <= {mode}
                path.chmod(0o660)
            journal.tell_many([("a", "cat")])
            assert path.stat().st_mode & 0o777 == 0o660
    finally:
        os.umask(before)
