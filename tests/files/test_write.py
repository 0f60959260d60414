"""Cells that no spreadsheet runs, and tables that come back."""

import os

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stakes.exceptions import StakesError
from stakes.files import escape, read_table, unescape, write_csv
from stakes.files import write as safe_cells

CELLS = st.text(max_size=8) | st.text("=+-@'\"\t\r\n 1.e", max_size=6)


@given(CELLS)
def test_escaping_is_taken_back(cell):
    assert unescape(escape(cell)) == cell


@given(CELLS)
def test_no_escaped_cell_begins_like_a_formula(cell):
    safe = escape(cell)
    begins = safe.lstrip(' "`').startswith(("=", "+", "-", "@")) or safe[:1] in ("\t", "\r", "\n")
    assert not begins or isinstance(float(safe), float)


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", " =1", '"=1', "\uff1d1", "'x"]
)
def test_what_is_escaped(cell):
    assert escape(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-3.5", "+2", "-.5e-3", "1e5", "", "a=b", "x-1", "ü", "a'b"])
def test_what_stays(cell):
    assert escape(cell) == cell


NAMES = st.lists(
    st.text(max_size=5).filter(lambda name: name.strip() and "\0" not in name),
    min_size=1,
    max_size=3,
    unique_by=str.strip,
)


@given(st.data())
def test_a_written_table_comes_back(tmp_path_factory, data):
    names = data.draw(NAMES)
    cell = st.none() | CELLS.filter(lambda text: "\0" not in text)
    rows = data.draw(st.lists(st.tuples(*[cell] * len(names)), max_size=4))
    path = tmp_path_factory.mktemp("w") / "t.csv"
    write_csv(path, names, rows)
    source = read_table(path, unescape=True)
    assert source.names == tuple(name.strip() for name in names)
    wanted = [[each if each and not each.isspace() else None for each in row] for row in rows]
    assert [list(row) for row in zip(*source.cells, strict=True)] == wanted


def test_numbers_keep_all_digits(tmp_path):
    write_csv(tmp_path / "t.csv", ["a", "b"], [(0.1 + 0.2, -3), (None, 2**60 + 1)])
    source = read_table(tmp_path / "t.csv", unescape=True)
    assert source.texts("b") == ["-3", str(2**60 + 1)]
    assert source.features(["a"]).column(0)[0] == 0.1 + 0.2


def test_the_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    write_csv(path, ["a"], [["1"]])
    before = path.read_bytes()
    for bad in ([["1", "2"]], [["x\0"]], [["\ud800"]]):
        with pytest.raises(StakesError):
            write_csv(path, ["a"], bad)
    monkeypatch.setattr(safe_cells.os, "fsync", _full)
    with pytest.raises(StakesError, match=r"t.csv cannot be written: No space left on device. Nothing was changed"):
        write_csv(path, ["a"], [["2"]])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.csv"]


def _full(_):
    raise OSError(28, "No space left on device")


def test_an_interrupt_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(safe_cells.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_csv(tmp_path / "t.csv", ["a"], [["2"]])
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(tmp_path):
    (tmp_path / "file").touch()
    for folder in ("none", "file"):
        with pytest.raises(StakesError, match=f"there is no folder .*{folder}"):
            write_csv(tmp_path / folder / "t.csv", ["a"], [])
    with pytest.raises(StakesError, match="cannot be written"):
        write_csv(tmp_path, ["a"], [])
