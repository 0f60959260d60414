"""Tables that are damaged, odd or made to do harm, in every kind of file and through everything that reads one.

A file is a real table, changed by flips, cuts, splices and numbers at the edge; a case reads it, opens it as a pool,
asks for suggestions, imports labels from it, or takes it for costs or weights. Refused in words or read; never anything
else.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import functools
import io
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from sklearn.linear_model import BayesianRidge

from stakes import SquaredError, rank
from stakes.campaign import Campaign
from stakes.cli.demo import SAMPLES
from stakes.exceptions import StakesError
from stakes.files import fingerprint, open_pool, read_table, row_ids
from stakes.tabular import parse_weight, read_cost_matrix
from tests.torture.commands_run import NUMBERS, little_memory, stakes, write_numbers
from tests.torture.harness import Area

EDGES = [
    "",
    "nan",
    "inf",
    "-inf",
    "1e309",
    "1e-320",
    "9" * 400,
    "1_000",
    "1,5",
    "1.5.2",
    "\u0663",
    "0x10",
    "+",
    "NA",
    " ",
]
TEXTS = [
    "\0",
    "\ufeff",
    "\u202e",
    '"',
    '""',
    "'",
    "=1+1",
    "\r",
    "\n",
    "\r\n",
    ",",
    ";",
    "\t",
    "é",
    "\U0001f600",
    "\x1b[2J",
    "-",
]
FOREST = ["--loss", "log-loss", "--model", "random-forest", "--model-option", "n_estimators=5"]
LINE = ["--loss", "squared-error", "--model", "bayesian-ridge"]


@functools.cache
def typed(rows: int = 24) -> pyarrow.Table:
    """A table with a column of every type that files hold."""
    day, half = datetime.datetime(2024, 5, 6, 7, 8, 9), rows // 2
    return pyarrow.table(
        {
            "id": [f"r{i}" for i in range(rows)],
            "x": [i / 2 for i in range(rows)],
            "whole": range(rows),
            "kind": pyarrow.array(["red", "blue"] * half).dictionary_encode(),
            "long": pyarrow.array(["a text that is longer than a view holds"] * rows, pyarrow.large_string()),
            "day": [day.date()] * rows,
            "time": pyarrow.array([day] * rows, pyarrow.timestamp("us", "UTC")),
            "flag": [True, None] * half,
            "money": [decimal.Decimal("1.50")] * rows,
            "small": pyarrow.array([0.1] * rows, pyarrow.float32()),
            "nothing": pyarrow.nulls(rows),
            "y": [float(i) if i < 8 else None for i in range(rows)],
        }
    )


@functools.cache
def nested(rows: int = 24) -> pyarrow.Table:
    """The same with columns that no model takes."""
    more = {
        "list": [[1, 2]] * rows,
        "struct": [{"a": 1, "b": "x"}] * rows,
        "map": pyarrow.array([[("a", 1)]] * rows, pyarrow.map_(pyarrow.string(), pyarrow.int32())),
        "bytes": [b"xx"] * rows,
        "length": pyarrow.array([datetime.timedelta(1)] * rows),
    }
    table = typed(rows)
    for name, values in more.items():
        table = table.append_column(name, [values] if isinstance(values, list) else values)
    return table


@functools.cache
def prices() -> pyarrow.Table:
    """A table as people have them."""
    columns = {name: values[:60] for name, values in SAMPLES["prices"].columns().items()}
    labels, columns["id"] = columns.pop("price"), columns.pop("flat")
    return pyarrow.table({**columns, "y": labels[:25] + [None] * 35})


@functools.cache
def as_ipc(make: Callable[[], pyarrow.Table], compression: str | None, stream: bool) -> bytes:
    data, table = io.BytesIO(), make()
    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    with (pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file)(data, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=10)
    return data.getvalue()


@functools.cache
def as_parquet(make: Callable[[], pyarrow.Table], compression: str, dictionary: bool, version: str) -> bytes:
    data = io.BytesIO()
    options = {"compression": compression, "use_dictionary": dictionary, "data_page_version": version}
    pyarrow.parquet.write_table(make(), data, row_group_size=10, **options)
    return data.getvalue()


@functools.cache
def as_csv(make: Callable[[], pyarrow.Table], delimiter: str, end: str, quoting: int) -> bytes:
    data, table = io.StringIO(newline=""), make()
    writer = csv.writer(data, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerow(table.column_names)
    writer.writerows(["" if each is None else str(each) for each in row.values()] for row in table.to_pylist())
    return data.getvalue().encode()


@functools.cache
def campaign() -> bytes:
    """A campaign on the table of `write_numbers`."""
    with tempfile.TemporaryDirectory() as folder:
        write_numbers(Path(folder, "t.csv"))
        code, output = stakes(Path(folder), "init", "c.stakes", "t.csv", *NUMBERS)
        assert code == 0, output
        return Path(folder, "c.stakes").read_bytes()


def a_file(random_state: random.Random) -> tuple[str, bytes]:
    """The ending of a file, and a table as it holds it."""
    make = random_state.choice([typed, nested, prices])
    kind = random_state.randrange(4)
    if kind == 0:
        options = random_state.choice(["snappy", "zstd", "gzip", "none", "lz4", "brotli"]), random_state.random() < 0.5
        return ".parquet", as_parquet(make, *options, random_state.choice(["1.0", "2.0"]))
    if kind == 1:
        compression, stream = random_state.choice([None, "lz4", "zstd"]), random_state.random() < 0.4
        return random_state.choice([".arrow", ".feather", ".ipc"]), as_ipc(make, compression, stream)
    make = typed if make is nested else make
    delimiter, end = random_state.choice([",", ",", ";", "\t"]), random_state.choice(["\n", "\r\n", "\r"])
    data = as_csv(make, delimiter, end, random_state.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    return random_state.choice([".csv", ".csv", ".tsv", ".txt"]), data


def damaged(random_state: random.Random, data: bytes) -> bytes:
    """The bytes with some flipped, cut, doubled, moved, or replaced by numbers at the edge."""
    changed = bytearray(data)
    for _ in range(random_state.choice([0, 1, 1, 1, 2, 4, 16, 64])):
        if not changed:
            break
        place, how = random_state.randrange(len(changed)), random_state.randrange(8)
        if how == 0:
            changed[place] ^= 1 << random_state.randrange(8)
        elif how == 1:
            changed[place] = random_state.choice([0, 1, 10, 13, 34, 44, 127, 128, 255])
        elif how == 2:
            value = random_state.choice([0, 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**16])
            changed[place : place + 4] = value.to_bytes(4, "little")
        elif how == 3:
            value = random_state.choice([2**40, 2**63 - 1, 2**64 - 1, 2**62, 2**33])
            changed[place : place + 8] = value.to_bytes(8, "little")
        elif how == 4:
            del changed[place : place + random_state.choice([1, 4, 8, 64, len(changed)])]
        elif how == 5:
            other = random_state.randrange(len(changed))
            changed[place:place] = changed[other : other + random_state.choice([1, 8, 64, 512])]
        elif how == 6:
            changed[place : place + 1] = random_state.choice(EDGES + TEXTS).encode()
        else:
            changed[place:place] = random_state.choice(EDGES + TEXTS).encode() * random_state.choice([1, 1, 30])
    return bytes(changed)


def odd_text(random_state: random.Random) -> bytes:
    """A CSV that nobody damaged: cells at the edge, odd encodings, odd rows."""
    width = random_state.choice([1, 2, 3, 5, 40])
    cells = [*EDGES, *TEXTS, "1", "2.5", "a", "r1", "y", "id", "x"]
    names = random_state.choices(cells, k=width)
    if random_state.random() < 0.5:
        names = ["id", "x", "z", "kind", "y"][:width]
    lines = [names, *(random_state.choices(cells, k=width) for _ in range(random_state.choice([0, 1, 5, 40])))]
    if random_state.random() < 0.3:
        random_state.choice(lines).append("1")
    data, out = io.StringIO(newline=""), random_state.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
    csv.writer(data, delimiter=random_state.choice(",;\t"), quoting=out).writerows(lines)
    encoding = random_state.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32", "cp1252"])
    return data.getvalue().encode(encoding, errors="replace")


def refused(path: Path, act: Callable[[], object], *needed: str) -> None:
    """Do something; if it is refused, then in words that name the file, or one of some others."""
    message = None
    try:
        act()
    except StakesError as error:
        message = str(error)
    assert message is None or any(word in message for word in (path.name, *needed)), message


def look(path: Path, random_state: random.Random) -> None:
    """Read a file in all ways."""

    def read() -> None:
        source = read_table(path, missing=("NA",) if random_state.random() < 0.3 else ())
        fingerprint(source)
        row_ids(source, "id" if "id" in source.names else None)
        source.features()
        source.remarks()

    def chunks() -> None:
        pool = open_pool(path, plain=random_state.random() < 0.3)
        for _ in pool.chunks(7):
            pass
        if pool.n_rows:
            pool.take(np.arange(min(3, pool.n_rows))[::-1])

    refused(path, read)
    refused(path, chunks)


def rank_pool(path: Path) -> None:
    """Rank rows that stay in their file; a column of text is refused by scikit-learn."""
    model = BayesianRidge().fit(np.arange(6.0)[:, None], np.arange(6.0))

    def ranked() -> None:
        pool = open_pool(path, ["x"], plain=True)
        first = next(iter(pool.chunks(1)), (0, None))[1]
        if isinstance(first, np.ndarray):
            rank(model, SquaredError(), pool, n=2)

    refused(path, ranked, "'x'", "pool", "contexts")


def import_labels(path: Path, folder: Path) -> None:
    """Labels of a file into a campaign: all or none, and none of what was there is lost."""
    write_numbers(folder / "t.csv")
    (folder / "c.stakes").write_bytes(campaign())
    with Campaign.open(folder / "c.stakes") as opened:
        before = opened.history()
    code, output = stakes(folder, "import", "c.stakes", path.name)
    with Campaign.open(folder / "c.stakes") as opened:
        after = opened.history()
        opened.journal.check()
    assert after[: len(before)] == before
    assert code == 0 or after == before, output


def as_option(path: Path) -> None:
    """A file as costs, or as weights."""
    for read in (read_cost_matrix, parse_weight):
        refused(path, lambda read=read: read(str(path)), "weight")


def case(number: int, folder: Path) -> None:
    """One file, changed, and one way to use it."""
    random_state = random.Random(number)
    if random_state.random() < 0.25:
        ending, data = ".csv", odd_text(random_state)
    else:
        ending, whole = a_file(random_state)
        data = damaged(random_state, whole)
    path = folder / f"table{ending}"
    path.write_bytes(data)
    how = random_state.random()
    with little_memory():
        if how < 0.55:
            look(path, random_state)
        elif how < 0.65:
            rank_pool(path)
        elif how < 0.8:
            flags = LINE if random_state.random() < 0.7 else FOREST
            flags = [*flags, *(["--id", "id"] if random_state.random() < 0.7 else [])]
            flags += ["--ignore", "day", "--ignore", "time"] if random_state.random() < 0.5 else []
            stakes(folder, "suggest", path.name, "--target", "y", *flags, "-n", "2", "-o", "out.csv")
        elif how < 0.92:
            import_labels(path, folder)
        else:
            as_option(path)
    assert path.read_bytes() == data  # what is read is never changed
    left = [each.name for each in folder.iterdir() if each.name.endswith(".part")]
    assert not left, left


AREA = Area("tables", case, quick=150, seconds=30.0)
