"""Files that are no campaigns, damaged ones, and making new ones: nothing is ever overwritten."""

import errno
import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stakes.campaigns import CampaignError, Journal
from stakes.campaigns.schema import APPLICATION

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
    marked(path, "PRAGMA user_version = 2")


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
    ("make", "words"),
    [
        (Path.touch, "is empty: no campaign was ever in it; delete it and create one"),
        (lambda path: path.write_text("id,label\n007,cat\n"), "it is not a campaign file"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "it is not a campaign file"),
        (foreign, "is an SQLite file of another program"),
        (campaign_of_other_program, "is an SQLite file of another program"),
        (from_the_future, "has schema 2 and this stakes reads 1"),
        (truncated, "it is damaged"),
        (scribbled, "it is damaged"),
        (headless, "it is not a campaign file"),
    ],
)
def test_what_is_no_sound_campaign_is_refused_and_stays_as_it_is(path, make, words):
    make(path)
    before = digest(path)
    with pytest.raises(CampaignError, match=words) as caught:
        Journal.open(path)
    assert str(path) in str(caught.value)
    with pytest.raises(CampaignError, match="is there already and was left as it is; open it, or give another path"):
        Journal.create(path, ROWS, {})
    assert digest(path) == before
    assert list(path.parent.iterdir()) == [path]


def test_a_foreign_file_with_an_unfinished_write_is_not_even_repaired(path):
    foreign(path)
    left = path.with_name(f"{path.name}-journal")
    left.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + os.urandom(5000))  # how a journal begins
    before = digest(path), digest(left)
    with pytest.raises(CampaignError, match="of another program"):
        Journal.open(path)
    assert (digest(path), digest(left)) == before


def test_what_is_not_there_or_no_file_is_refused(folder):
    with pytest.raises(CampaignError, match=r"there is no campaign at .*nowhere; check the path, or create one"):
        Journal.open(folder / "nowhere")
    with pytest.raises(CampaignError, match="is a folder or a device"):
        Journal.open(folder)
    with pytest.raises(CampaignError, match="there is no folder .*; make it first"):
        Journal.create(folder / "nowhere" / "campaign", ROWS, {})
    with pytest.raises(CampaignError, match="the path holds a NUL"):
        Journal.open("a\0b")
    assert list(folder.iterdir()) == []


def test_a_journal_left_by_a_deleted_campaign_is_not_played_into_a_new_one(path):
    left = path.with_name(f"{path.name}-journal")
    left.write_bytes(b"old")
    with pytest.raises(CampaignError, match="is left from a file that is gone; move it away"):
        Journal.create(path, ROWS, {})
    assert (left.read_bytes(), path.exists()) == (b"old", False)


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        ([], {}, "at least one row"),
        ([("a", None), ("a", None)], {}, "two rows have the id 'a'"),
        ([("", None)], {}, "the id of a row is empty"),
        ([("a\0", None)], {}, "NUL"),
        ([(7, None)], {}, "the id of a row must be a text, not 7"),
        ([("a", 0.0)], {}, "the cost of row 'a' must be a positive finite number, not 0.0"),
        ([("a", float("nan"))], {}, "must be a positive finite number, not nan"),
        ([("a", 10**400)], {}, "must be a positive finite number"),
        ([("a", True)], {}, "must be a positive finite number, not True"),
        ([("007", None)], {"7": "cat"}, "no row '7' among its 1 rows. Did you mean '007'"),
        (["ab"], {}, "pairs are wanted, not 'ab'"),
    ],
)
def test_no_file_is_made_of_bad_input(folder, rows, labels, words):
    with pytest.raises(CampaignError, match=words):
        Journal.create(folder / "campaign", rows, {}, labels)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_of_many_who_create_at_once_one_does(path, monkeypatch, links):
    def no_links(*_):
        raise OSError(errno.EPERM, "this file system has no hard links")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    done, refused = [], []

    def create(name):
        try:
            Journal.create(path, ROWS, {"name": name}).close()
            done.append(name)
        except CampaignError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert len(refused) == 5
    assert all("is there already" in text for text in refused)
    with Journal.open(path) as journal:
        assert journal.settings == {"name": done[0]}
    assert list(path.parent.iterdir()) == [path]


def test_how_the_file_is_marked_and_written(path):
    with Journal.create(path, ROWS, {}) as journal:
        asked = {name: journal.database.read(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")}
        assert asked == {"journal_mode": "delete", "synchronous": 3}  # 3: EXTRA
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION
    assert path.read_bytes()[68:72] == b"Stks"


WRITE = (
    "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0.05, isolation_level=None).execute('BEGIN IMMEDIATE')"
)


def test_opening_a_file_again_keeps_the_locks_of_this_process(path):
    small(path)
    with Journal.open(path) as journal, journal.database.writing():
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
        with pytest.raises(CampaignError, match="it cannot be written to; allow writing to the file and to its folder"):
            journal.tell_many([("b", "cat")])
        journal.check()
    with pytest.raises(CampaignError, match="allow writing to the file and to its folder"):
        Journal.create(path.with_name("new"), ROWS, {})
    assert path.read_bytes() == before
