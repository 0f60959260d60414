"""The same table, whatever file it is in."""

import csv
import datetime
import decimal
import io
import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import stakes
from stakes.exceptions import StakesError
from stakes.files import fingerprint, open_pool, read_table, row_ids

arrow = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

NOT_NUMBERS = st.text(st.characters(exclude_categories=("Cs", "Nd", "No", "Nl"), exclude_characters="\0_"), max_size=6)
TEXTS = st.none() | NOT_NUMBERS.filter(lambda text: text.casefold().strip() not in ("nan", "inf", "infinity"))
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


@given(
    st.lists(st.tuples(NUMBERS, WHOLE, TEXTS), max_size=8).filter(
        lambda rows: not rows or any(_cell(value).strip() for value in rows[-1])
    )
)
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
    frame = source.features()
    kinds = {name: values.dtype.kind for name, values in zip(frame.names, frame.arrays, strict=True)}
    assert [name for name, kind in kinds.items() if kind == "O"] == ["flag", "kind"]
    assert [name for name in frame.names if name.startswith("day")] == [
        "day (days)",
        "day (year)",
        "day (month)",
        "day (weekday)",
    ]
    assert frame.select(["time (days)", "time (hour)"]).take([0]).arrays[1].tolist() == [7 + 8 / 60 + 9 / 3600]
    assert np.isnan(frame.select(["day (year)"]).column(0)[1])
    assert source.features(["single"]).column(0)[0] == np.float64(np.float32(0.1))
    assert (source.line(0), source.place(0)) == (None, "row 1")
    assert row_ids(source, "id")[0] == "9007199254740993"
    assert source.remarks() == ()
    assert read_table(source.path, text=("day",)).features(["day"]).column(0).tolist() == ["2024-05-06", None]


def test_numbers_that_are_not_finite_are_distinguished_from_gaps(tmp_path):
    source = read(tmp_path, {"a": [1.0, None, float("nan")], "b": [float("inf"), 1.0, 2.0]})
    with pytest.raises(StakesError, match=r"in 1 column: b \(1\); first at row 1"):
        source.features()
    assert np.isnan(source.features(["a"]).column(0)).tolist() == [False, True, True]
    assert source.sentences(["a"]) == ("Cells 'nan' are taken for gaps in column a.",)


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
        ({"a": arrow.array([(1, 2, 3)], arrow.month_day_nano_interval())}, "'a' holds month_day_nano_interval"),
        ({"a": arrow.array([datetime.timedelta(1)])}, "'a' holds duration"),
        ({"a": arrow.array([[("k", 1)]], arrow.map_(arrow.string(), arrow.int8()))}, "'a' holds map<"),
        ({"a": arrow.array([[1, 2]], arrow.list_(arrow.int8(), 2))}, "'a' holds fixed_size_list<"),
        ({"a": arrow.array([b"ab"], arrow.binary(2))}, r"'a' holds fixed_size_binary\[2\]"),
        ({"a": arrow.array([b"ab"]).dictionary_encode()}, "'a' holds dictionary<values=binary"),
    ],
)
def test_columns_that_are_refused(tmp_path, columns, message):
    table = arrow.table(columns)
    if not any(arrow.types.is_interval(each.type) for each in table.schema):  # Parquet has no such type
        parquet.write_table(table, tmp_path / "t.parquet")
        with pytest.raises(StakesError, match=message):
            read_table(tmp_path / "t.parquet")
    for kind in ("arrow", "feather"):
        (tmp_path / f"t.{kind}").write_bytes(as_ipc(table, stream=kind == "arrow"))
        with pytest.raises(StakesError, match=message):
            read_table(tmp_path / f"t.{kind}")


def as_ipc(table, *, stream=False, compression=None):
    """The table in Arrow's format for streams, or in the one for files."""
    options, data = arrow.ipc.IpcWriteOptions(compression=compression), io.BytesIO()
    with (arrow.ipc.new_stream if stream else arrow.ipc.new_file)(data, table.schema, options=options) as writer:
        writer.write_table(table)
    return data.getvalue()


def test_a_column_of_a_union_is_refused(tmp_path):
    union = arrow.UnionArray.from_sparse(
        arrow.array([0, 1], arrow.int8()), [arrow.array([1, 2]), arrow.array(["x", "y"])]
    )
    (tmp_path / "t.arrow").write_bytes(as_ipc(arrow.table({"a": union})))
    with pytest.raises(StakesError, match="column 'a' holds sparse_union<"):
        read_table(tmp_path / "t.arrow")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("of", ["text", "dictionary"])
def test_offsets_and_indices_that_lead_out_of_the_file_are_refused(tmp_path, stream, of):
    texts = arrow.array([f"a text of {i}" for i in range(9)])
    column = texts if of == "text" else arrow.array(["u", "v", "w"]).dictionary_encode()
    data = as_ipc(arrow.table({"a": column}), stream=stream)
    numbers = np.frombuffer((column if of == "text" else column.indices).buffers()[1], np.int32)
    place = data.index(numbers[:3].tobytes())
    wrong = data[: place + 8] + (2**24).to_bytes(4, "little") + data[place + 12 :]
    (tmp_path / "t.arrow").write_bytes(wrong)
    for look in (
        read_table,
        lambda path: list(open_pool(path).chunks(4)),
        lambda path: open_pool(path).take(np.arange(2)),
    ):
        with pytest.raises(StakesError, match=r"t.arrow, rows 0 to \d, counted from 0, cannot be read: it is damaged"):
            look(tmp_path / "t.arrow")


def test_a_file_that_holds_fewer_rows_than_it_says_is_refused(tmp_path):
    data = io.BytesIO()
    parquet.write_table(arrow.table({"a": range(777)}), data, compression="none", use_dictionary=False)
    content = data.getvalue()
    count = bytes([0x16, 0x92, 0x0C])  # 777 as a field of 64 bits in the footer; in pages it is one of 32
    assert content.count(count) == 3  # of values, of rows in the group, and of rows
    first, _, rest = content.partition(count)
    (tmp_path / "t.parquet").write_bytes(first + count + rest.replace(count, bytes([0x16, 0x94, 0x0C])))
    pool = open_pool(tmp_path / "t.parquet")
    assert pool.n_rows == 778
    path = tmp_path / "t.parquet"
    for look in (lambda: list(pool.chunks(100)), lambda: pool.take(np.arange(3)), lambda: read_table(path)):
        with pytest.raises(StakesError, match=r"t.parquet, rows 0 to 777, .*that it holds 778 and holds 777 there"):
            look()


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_what_is_decompressed_is_limited(tmp_path, codec):
    data = as_ipc(arrow.table({"a": np.zeros(5000)}), compression=codec)
    place = data.index((40_000).to_bytes(8, "little"))  # how long the buffer will be
    (tmp_path / "t.arrow").write_bytes(data[:place] + (2**40).to_bytes(8, "little") + data[place + 8 :])
    for look in (read_table, open_pool):
        with pytest.raises(StakesError, match=r"takes 1,099,511,627,776 bytes when .*; at most 2,147,483,648 are"):
            look(tmp_path / "t.arrow")
    (tmp_path / "t.arrow").write_bytes(data[: place + 8] + bytes(8) + data[place + 16 :])  # no codec reads that
    with pytest.raises(StakesError, match=r"cannot be read: it is damaged, or no .arrow file"):
        read_table(tmp_path / "t.arrow")


def test_large_tables_are_read_up_to_a_limit(tmp_path):
    table = arrow.table({"a": np.arange(1000.0), "b": ["x" * 40] * 1000})
    for path in saved(tmp_path, table):
        assert len(read_table(path, max_cells=2000)) == 1000
        with pytest.raises(StakesError, match=r"2,000 cells.*, and at most 1,999 cells and 99,950 .*max_cells=2000 "):
            read_table(path, max_cells=1999)
    long = arrow.table({"b": ["x" * 4000] * 1000})  # a few bytes in the file
    for path in saved(tmp_path, long):
        with pytest.raises(StakesError, match=r"characters or more, and at most 1,000 cells and 50,000 characters"):
            read_table(path, max_cells=1000)
    with pytest.raises(StakesError, match="max_cells must be a whole number, 1 or more; got True"):
        read_table(tmp_path / "t.csv", max_cells=True)


def test_equal_texts_are_one_object(tmp_path):
    for path in saved(tmp_path, arrow.table({"a": [0.1] * 5, "b": ["abc"] * 5}))[1:]:
        for cells in read_table(path).cells:
            assert len({id(cell) for cell in cells}) == 1


PEAK = """
import re, sys
from pathlib import Path
from stakes.cli.commands import run
code = run(sys.argv[1:])
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())  # maxrss has that of the parent in it
print("peak", int(peak[1]) // 1024, code)
"""


def peak(folder, *arguments):
    """What a command says, the most memory it took in MB, and its exit code, in a process of its own."""
    path = os.pathsep.join([str(Path(stakes.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", PEAK, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    *_, last = done.stdout.splitlines()
    _, most, code = last.split()
    return done.stderr, int(most), int(code)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc elsewhere")
def test_a_small_file_of_forty_million_rows_takes_little_memory(tmp_path):
    schema, part = arrow.schema([("x", arrow.float64()), ("k", arrow.string()), ("y", arrow.float64())]), 2_000_000
    texts = arrow.array(["a text"]).take(arrow.array(np.zeros(part, np.int8)))
    table = arrow.table([arrow.array(np.full(part, 1.5)), texts, arrow.array(np.full(part, 2.5))], schema=schema)
    with parquet.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
        for _ in range(20):
            writer.write_table(table, row_group_size=part)
    assert (tmp_path / "t.parquet").stat().st_size < 1_000_000
    options = ("t.parquet", "--target", "y", "--loss", "squared-error")
    for command in (("init", "c.stakes"), ("simulate",)):
        output, most, code = peak(tmp_path, *command, *options)
        assert "it has 120,000,000 cells (40,000,000 rows, 3 columns), and at most 20,000,000 cells" in output
        assert code == 1
        assert most < 700, command
    output, most, code = peak(tmp_path, "suggest", *options, "--max-cells", "300000")  # every row has a label
    assert (code, "too large" in output) == (1, True)
    assert most < 700


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_files_that_are_something_else(tmp_path, name):
    (tmp_path / name).write_bytes(b"a,b\n1,2\n")
    with pytest.raises(StakesError, match=r"cannot be read: it is damaged, or no"):
        read_table(tmp_path / name)


def test_pyarrow_is_an_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StakesError, match=r"pip install 'stakes\[parquet\]', or save the table as CSV"):
        read_table(tmp_path / "t.parquet")
