"""What has changed in a table since it was read."""

import json

import pytest

from stakes.exceptions import StakesError
from stakes.files import Fingerprint, changes, fingerprint, read_table


@pytest.fixture
def taken(tmp_path):
    """The fingerprint of a table with this content."""

    def take(content):
        (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
        return fingerprint(read_table(tmp_path / "t.csv"))

    return take


def test_line_ends_and_marks_do_not_count(taken):
    content = 'a,b\n"x\ny",1\nü,2\n'
    first = taken(content)
    assert taken(content.replace("\n", "\r\n")) == first
    assert taken(b"\xef\xbb\xbf" + content.encode()) == first
    assert taken('b,a\n1,"x\ny"\n2,ü\n').columns["a"] == first.columns["a"]
    assert changes(first, taken(content)) == []


def test_changes_in_sentences(taken):
    old = taken("a,b\n1,2\n3,4\n")
    assert changes(old, taken("a,b\n1,2\n3,5\n")) == ["column 'b' changed"]
    assert changes(old, taken("a,b\n1,2\n3,4\n5,6\n")) == ["1 row was added"]
    assert changes(taken("a,b\n1,2\n"), Fingerprint(13, old.columns)) == ["12 rows were added"]
    assert changes(old, taken("a,b\n")) == ["2 rows were removed"]
    assert changes(old, taken("a,c\n1,2\n3,4\n")) == ["columns missing: b", "columns added: c"]


def test_cells_do_not_run_together(taken):
    assert taken("a\nx\nyz\n") != taken("a\nxy\nz\n")
    assert taken("a\n1\n") != taken("a\n1.0\n")


def test_it_is_kept_as_json(taken):
    first = taken("a,b\n1,2\n")
    assert Fingerprint.from_dict(json.loads(json.dumps(first.to_dict()))) == first
    with pytest.raises(StakesError, match="a fingerprint must be"):
        Fingerprint.from_dict({"rows": 1})
