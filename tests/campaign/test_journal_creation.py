"""Making a campaign: whole or not at all, and never in the place of something else."""

import errno
import os
import sys
import threading

import pytest

from stakes.campaign import Journal
from stakes.exceptions import StakesError

ROWS = [("a", None), ("b", 1.0)]


def test_a_journal_left_by_a_deleted_campaign_is_not_played_into_a_new_one(path):
    left = path.with_name(f"{path.name}-journal")
    left.write_bytes(b"old")
    with pytest.raises(StakesError, match="is left from a file that is gone; move it away"):
        Journal.create(path, ROWS, {})
    assert (left.read_bytes(), path.exists()) == (b"old", False)
    left.rename(path)
    with pytest.raises(StakesError, match="is there already and was left as it is"):
        Journal.create(path, ROWS, {})
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
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
def test_no_file_is_made_of_bad_input(folder, rows, labels, message):
    with pytest.raises(StakesError, match=message):
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
        except StakesError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=create, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert len(refused) == 5
    assert all("is there already" in text or "is never overwritten" in text for text in refused)
    with Journal.open(path) as journal:
        assert journal.settings == {"name": done[0]}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is Unicode")
def test_a_name_need_not_be_unicode(folder):
    path = folder / os.fsdecode(b"caf\xe9")
    Journal.create(path, ROWS, {}).close()
    with Journal.open(path) as journal:
        assert journal.tell_many([("a", "cat")]).new == ("a",)
    assert os.listdir(os.fsencode(folder)) == [b"caf\xe9"]
