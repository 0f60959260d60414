"""The same table, whatever file it is in."""

import csv
import datetime
import decimal
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from stakes.exceptions import StakesError
from stakes.files import fingerprint, read_table, row_ids

arrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

WORDS = st.text(st.characters(exclude_categories=("Cs", "Nd", "No", "Nl"), exclude_characters="\0_"), max_size=6)
TEXTS = st.none() | WORDS.filter(lambda text: text.casefold().strip() not in ("nan", "inf", "infinity"))
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)


def saved(folder, table):
    """The table in a file of each kind."""
    parquet.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.feather")
    with arrow.OSFile(str(folder / "t.arrow"), "wb") as file, arrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows([_cell(each) for each in row.values()] for row in table.to_pylist())
    return [folder / f"t.{kind}" for kind in ("csv", "parquet", "feather", "arrow")]


def _cell(value):
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


@given(st.lists(st.tuples(NUMBERS, WHOLE, TEXTS), max_size=8))
def test_every_kind_of_file_gives_the_same_table(tmp_path_factory, rows):
    real, whole, texts = zip(*rows, strict=True) if rows else ((), (), ())
    table = arrow.table(
        {
            "real": arrow.array(real, arrow.float64()),
            "whole": arrow.array(whole, arrow.int64()),
            "text": arrow.array(texts, arrow.string()),
        }
    )
    first, *others = [read_table(path, text=("text",)) for path in saved(tmp_path_factory.mktemp("t"), table)]
    for other in others:
        assert other.names == first.names
        assert fingerprint(other) == fingerprint(first)
        assert other.cells == first.cells
        for ours, theirs in zip(first.features().arrays, other.features().arrays, strict=True):
            assert ours.dtype == theirs.dtype
            assert ours.tolist() == theirs.tolist() or ours.tobytes() == theirs.tobytes()


def read(tmp_path, columns):
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    return read_table(tmp_path / "t.parquet")


def test_types_as_text_and_as_features(tmp_path):
    day = datetime.datetime(2024, 5, 6, 7, 8, 9)
    source = read(
        tmp_path,
        {
            "id": [2**53 + 1, 2],
            "flag": [True, None],
            "kind": arrow.array(["007", "8"]).dictionary_encode(),
            "code": arrow.array([3, 4]).dictionary_encode(),
            "price": [decimal.Decimal("1.50"), None],
            "day": [day.date(), None],
            "time": arrow.array([day, None], arrow.timestamp("s")),
            "single": arrow.array([0.1, 2], arrow.float32()),
            "nothing": arrow.nulls(2),
        },
    )
    assert source.texts("id") == ["9007199254740993", "2"]
    assert source.texts("flag") == ["true", None]
    assert source.texts("price") == ["1.50", None]
    assert source.texts("day") == ["2024-05-06", None]
    assert source.texts("time") == ["2024-05-06T07:08:09", None]
    kinds = {name: values.dtype.kind for name, values in zip(source.names, source.features().arrays, strict=True)}
    assert [name for name, kind in kinds.items() if kind == "O"] == ["flag", "kind", "day", "time"]
    assert source.features(["single"]).column(0)[0] == np.float64(np.float32(0.1))
    assert (source.line(0), source.place(0)) == (None, "row 1")
    assert row_ids(source, "id")[0] == "9007199254740993"
    assert len(source.remarks()) == 2  # day and time


def test_numbers_that_are_not_finite_are_told_from_gaps(tmp_path):
    source = read(tmp_path, {"a": [1.0, None, float("nan")], "b": [float("inf"), 1.0, 2.0]})
    with pytest.raises(StakesError, match=r"in 2 columns: a \(1\), b \(1\); first at row 1"):
        source.features()


def test_floating_ids_must_be_whole(tmp_path):
    source = read(tmp_path, {"id": [7.0, 1e16], "half": [1.0, 2.5], "gone": [1.0, float("inf")]})
    assert row_ids(source, "id") == ("7", "10000000000000000")
    with pytest.raises(StakesError, match=r"column 'half' holds 2.5 at row 2"):
        row_ids(source, "half")
    with pytest.raises(StakesError, match="column 'gone' holds inf at row 2"):
        row_ids(source, "gone")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [[1], [2]]}, "column 'a' holds list"),
        ({"a": [{"b": 1}]}, "column 'a' holds struct"),
        ({"a": [b"x"]}, "column 'a' holds binary"),
        ({"a": ["x\0y"]}, "'a' holds a NUL character at row 1"),
        ({}, "has no columns"),
    ],
)
def test_columns_that_are_refused(tmp_path, columns, message):
    with pytest.raises(StakesError, match=message):
        read(tmp_path, columns)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_files_that_are_something_else(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(StakesError, match="cannot be read as a"):
        read_table(tmp_path / name)


def test_pyarrow_is_an_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StakesError, match=r"pip install 'stakes\[parquet\]', or save the table as CSV"):
        read_table(tmp_path / "t.parquet")
