"""New files of campaigns: whole or not there, for their owner, never in place of another file."""

import errno
import os
import sqlite3
import stat

import pytest

import stakes.campaign.new_files as new_files
from stakes.campaign import Event, Journal
from stakes.campaign.new_files import create_file, recover
from stakes.exceptions import StakesError
from tests.campaign.forging import changed, unchained

ROWS = [("a", None), ("b", 2.5)]
EVENTS = [Event(0, 100.0, "label", "a", "cat")]
RECORDS = [(100.0, "settings", 0, '{"loss": "log"}')]


def everything(path):
    """What a campaign holds, and what lies beside it."""
    with Journal.open(path) as journal:
        labels = {event.row: event.label for event in journal.history()}
        return journal.costs(), labels, journal.settings, sorted(each.name for each in path.parent.iterdir())


def test_a_file_is_made_whole_and_for_its_owner(path):
    create_file(path, ROWS, EVENTS, RECORDS)
    assert everything(path) == ({"a": None, "b": 2.5}, {"a": "cat"}, {"loss": "log"}, [path.name])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["_fill_tables", "_sync", "_put", "connect"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_whatever_fails_nothing_is_left(path, monkeypatch, broken, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(new_files, broken, fail)
    with pytest.raises((StakesError, KeyboardInterrupt)):
        create_file(path, ROWS, EVENTS, RECORDS)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_left_as_it_is(path, monkeypatch, links):
    """The name is looked at first, and is taken in one step: with a hard link, or where there are none without."""
    looked = new_files._refuse_taken

    def look_then_lose(place):
        looked(place)
        place.write_text("mine")

    def no_links(*_):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(new_files, "_refuse_taken", look_then_lose)
    if not links:
        monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StakesError, match="is there already and was left as it is"):
        create_file(path, ROWS, EVENTS, RECORDS)
    assert path.read_text() == "mine"
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_without_hard_links_a_file_is_made_all_the_same(path, monkeypatch):
    def no_links(*_):
        raise OSError(errno.ENOTSUP, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    create_file(path, ROWS, EVENTS, RECORDS)
    assert everything(path)[1] == {"a": "cat"}


def test_no_folder_and_what_sqlite_takes_for_a_part_of_another_file_are_refused(path):
    with pytest.raises(StakesError, match="there is no folder"):
        create_file(path.parent / "gone" / "c.stakes", ROWS, EVENTS, RECORDS)
    path.with_name(f"{path.name}-wal").write_text("left")
    with pytest.raises(StakesError, match="is left from a file that is gone"):
        create_file(path, ROWS, EVENTS, RECORDS)


def test_a_conversion_that_is_interrupted_leaves_the_old_file(path, monkeypatch):
    """Tables with hashes take the place of those without in one transaction."""
    unchained(path, ("a", "b"))
    before = path.read_bytes()

    def fail(*_):
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(new_files, "_fill_tables", fail)
        with pytest.raises(StakesError):
            Journal.open(path)
    assert path.read_bytes() == before
    assert everything(path)[1] == {"a": "cat", "b": None}


def test_what_is_recovered_is_a_new_file_and_the_damaged_one_stays(path):
    create_file(path, ROWS, EVENTS, RECORDS)
    changed(path, "UPDATE events SET label = 'dog'")
    before = path.read_bytes()
    new = path.with_name("new.stakes")
    assert recover(path, new) == (0, "event 1 is not what was written")
    assert path.read_bytes() == before
    assert everything(new)[:3] == ({"a": None, "b": 2.5}, {}, {"loss": "log"})
    with pytest.raises(StakesError, match="is there already"):
        recover(path, new)
