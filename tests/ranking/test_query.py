"""Pools that are read in chunks: the same answer as from memory, and errors that name the rows."""

import tracemalloc
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

import stakes
from stakes.exceptions import StakesError
from stakes.files.pools import MappedPool
from stakes.models import GaussianProcess
from stakes.ranking import Pool
from stakes.ranking.query import enough_contexts, enough_listed
from tests.table_kinds import as_columns

arrow = pytest.importorskip("pyarrow", reason="files of Parquet and Arrow need pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def saved_array(rows, folder):
    np.save(folder / "pool.npy", rows)
    return folder / "pool.npy"


def mapped(rows, folder):
    return np.load(saved_array(rows, folder), mmap_mode="r")


def saved_parquet(rows, folder):
    parquet.write_table(arrow.table(as_columns(rows)), folder / "pool.parquet", row_group_size=70)
    return str(folder / "pool.parquet")


def saved_feather(rows, folder):
    feather.write_feather(arrow.table(as_columns(rows)), folder / "pool.feather", chunksize=41)
    return folder / "pool.feather"


def saved_stream(rows, folder):
    table = arrow.table(as_columns(rows))
    with arrow.ipc.new_stream(folder / "pool.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=41)
    return folder / "pool.arrow"


def saved_folder(rows, folder):
    (folder / "parts").mkdir()
    for place, part in enumerate(np.array_split(rows, 3)):
        parquet.write_table(arrow.table(as_columns(part)), folder / "parts" / f"{place}.parquet")
    return folder / "parts"


@dataclass
class Own:
    """A source of one's own, whose chunks are smaller than was asked for."""

    rows: np.ndarray

    @property
    def n_rows(self):
        return len(self.rows)

    def chunks(self, size):
        return ((start, self.rows[start : start + size // 2]) for start in range(0, len(self.rows), size // 2))

    def take(self, rows):
        return self.rows[rows]


KINDS = [mapped, saved_array, saved_parquet, saved_feather, saved_stream, saved_folder]


@pytest.fixture(scope="module")
def known():
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((40, 4))
    return rows, rows[:, 0] * rows[:, 1] + 0.1 * rng.standard_normal(40)


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(8).standard_normal((300, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def forest(known):
    return RandomForestClassifier(20, random_state=0).fit(known[0], known[1] > 0)


@pytest.fixture(scope="module")
def process(known):
    return GaussianProcess().fit(*known)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [64, 1000])
def test_a_file_gives_what_memory_gives_to_the_last_bit(kind, chunk, rows, forest, process, tmp_path):
    pool = kind(rows, tmp_path)
    options = {"n": 6, "chunk": chunk, "max_contexts": 50, "random_state": 2}
    for model, loss in ((forest, stakes.LogLoss()), (process, stakes.SquaredError())):
        assert stakes.rank(model, loss, pool, **options) == stakes.rank(model, loss, rows, **options)
    listed = {**options, "batch": True, "shortlist": 30}
    batch = stakes.rank(process, stakes.SquaredError(), pool, **listed)
    assert batch == stakes.rank(process, stakes.SquaredError(), rows, **listed)
    assert "Looked at together: the 30 of 300 rows that are worth most alone." in map(str, batch.notes)


def test_a_source_of_one_s_own(rows, process):
    assert isinstance(Own(rows), Pool)
    whole, own = (stakes.rank(process, stakes.SquaredError(), pool, n=5, chunk=64) for pool in (rows, Own(rows)))
    assert own.indices == whole.indices
    np.testing.assert_allclose(own.scores, whole.scores, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_costs_budget_weights_and_pending_rows(kind, rows, process, tmp_path, rng):
    pool, loss = kind(rows, tmp_path), stakes.SquaredError()
    more = {"costs": rng.uniform(1, 3, 300), "budget": 7.0, "context_weights": rng.uniform(size=300)}
    for options in ({**more, "pending": [3, 250]}, {**more, "batch": True, "shortlist": 40}, {"budget": 3.0}):
        found = stakes.rank(process, loss, pool, n=9, max_contexts=20, chunk=64, **options)
        assert found == stakes.rank(process, loss, rows, n=9, max_contexts=20, chunk=64, **options)


def test_outlook_and_cold_start(rows, process, tmp_path, monkeypatch):
    pool, loss = saved_parquet(rows, tmp_path), stakes.SquaredError()
    ahead = [stakes.outlook(process, loss, each, n=3, costs=0.1, decisions=50, shortlist=40) for each in (rows, pool)]
    assert ahead[0] == ahead[1]
    spread = stakes.rank(None, loss, saved_array(rows, tmp_path), n=5)
    assert spread == stakes.cold_start(rows, n=5)
    monkeypatch.setattr(import_module("stakes.ranking.cold_start"), "_MOST", 100)
    some = stakes.cold_start(mapped(rows, tmp_path), n=5)
    assert "100 of the 300 rows of the pool, drawn with random_state 0, are looked at." in map(str, some.notes)
    assert len(set(some.indices)) == 5
    assert max(some.indices) > 100  # of the table, not of those drawn


def test_columns_are_those_the_model_was_fitted_with(known, rows, tmp_path):
    names = arrow.table(as_columns(known[0]))
    forest = RandomForestClassifier(20, random_state=0).fit(names, known[1] > 0)
    table = arrow.table({"id": np.arange(300), **dict(reversed(as_columns(rows).items()))})
    parquet.write_table(table, tmp_path / "more.parquet")
    found = stakes.rank(forest, stakes.LogLoss(), tmp_path / "more.parquet", n=4)
    assert found == stakes.rank(forest, stakes.LogLoss(), arrow.table(as_columns(rows)), n=4)
    parquet.write_table(table.drop(["b"]), tmp_path / "fewer.parquet")
    with pytest.raises(StakesError, match="there is no column 'b'"):
        stakes.rank(forest, stakes.LogLoss(), tmp_path / "fewer.parquet")


def test_a_csv_is_read_whole(rows, forest, tmp_path):
    lines = ["a,b,c,d", *(",".join(map(repr, row)) for row in rows.astype(float).tolist())]
    (tmp_path / "pool.csv").write_text("\n".join(lines))

    class Named:
        def belief(self, pool, contexts):
            arrays = [np.stack([each.column(place) for place in range(4)], axis=1) for each in (pool, contexts)]
            return stakes.models.belief_of(forest, *arrays)

    loss = stakes.LogLoss()
    found = stakes.rank(Named(), loss, tmp_path / "pool.csv", batch=False)
    wanted = stakes.rank(forest, loss, rows, batch=False)
    assert found.indices == wanted.indices


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_is_none_in_the_middle_is_refused_as_in_memory(kind, rows, process, tmp_path):
    bad = rows.copy()
    bad[201, 2] = np.nan
    messages = []
    for pool in (bad, kind(bad, tmp_path)):
        with pytest.raises(ValueError, match="nan at row 201, column 2") as caught:
            stakes.rank(process, stakes.SquaredError(), pool, chunk=64)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_gaps_that_the_model_fills_are_let_through(known, rows, tmp_path):
    bad = rows.copy()
    bad[201, 2] = np.nan
    model = make_pipeline(SimpleImputer(), GaussianProcess()).fit(*known)
    loss = stakes.SquaredError()
    assert stakes.rank(model, loss, mapped(bad, tmp_path), chunk=64) == stakes.rank(model, loss, bad, chunk=64)


def test_a_gap_that_a_later_step_refuses_is_named_by_its_row(rows):
    class Choosy:
        def belief(self, pool, contexts):
            if np.isnan(pool).any():
                raise ValueError("Input contains NaN")
            return stakes.GaussianBelief(np.zeros(1), np.ones(1), np.ones(len(pool)), np.full((len(pool), 1), 0.5))

        def __sklearn_tags__(self):
            raise AttributeError

    pool = Own(rows.copy())
    question = {"contexts": rows[:1], "chunk": 64}
    stakes.rank(Choosy(), stakes.SquaredError(), pool, **question)
    changing = replace(pool)

    def chunks(size):  # which change after they were checked
        for start, part in Own.chunks(pool, size):
            gone = np.arange(start, start + len(part))[:, None] == (170 if size == 64 else -1)
            yield start, np.where(gone, np.nan, part)

    changing.chunks = chunks
    for jobs in (None, 2):
        with pytest.raises(ValueError, match="the first gap is at row 170, column 0: Input contains NaN"):
            stakes.rank(Choosy(), stakes.SquaredError(), changing, n_jobs=jobs, **question)


def test_rows_that_cannot_be_read_are_named(rows, forest, tmp_path):
    path = tmp_path / "pool.parquet"
    saved_parquet(rows, tmp_path)
    group = parquet.ParquetFile(path).metadata.row_group(2).column(1)
    data = bytearray(path.read_bytes())
    begin = group.dictionary_page_offset or group.data_page_offset
    data[begin : begin + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    path.write_bytes(data)
    with pytest.raises(StakesError, match=r"pool.parquet, rows 140 to 209, counted from 0, cannot be read"):
        stakes.rank(forest, stakes.LogLoss(), path)


def test_no_rows_and_few_rows(rows, process, tmp_path):
    loss = stakes.SquaredError()
    for kind in KINDS[1:]:
        folder = tmp_path / kind.__name__
        folder.mkdir()
        with pytest.raises(ValueError, match="pool must have at least one row; got none"):
            stakes.rank(process, loss, kind(rows[:0], folder))
    few = stakes.rank(process, loss, MappedPool(mapped(rows[:3], tmp_path)), n=5, chunk=64)
    assert few == stakes.rank(process, loss, rows[:3], n=5, chunk=64)
    assert "5 rows were asked for; the pool has 3." in map(str, few.notes)


def test_progress_tells_how_far_it_came_and_an_interrupt_goes_through(rows, process, tmp_path):
    progress = []

    def stop(what, share):
        progress.append((what, share))
        if what == "scoring rows" and share > 0.5:
            raise KeyboardInterrupt

    for jobs in (None, 2):
        with pytest.raises(KeyboardInterrupt):
            stakes.rank(
                process,
                stakes.SquaredError(),
                mapped(rows, tmp_path),
                chunk=30,
                n_jobs=jobs,
                progress=stop,
                batch=False,
            )
        assert progress[0][0] == "checking rows"
        assert progress[-1] == ("scoring rows", 0.6)


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        ("a.npy", lambda path: path.write_text("no"), "cannot be read as an array of NumPy"),
        ("a.npy", lambda path: np.save(path, np.zeros(3)), r"must hold an array of numbers \[N, p\]; it holds float64"),
        ("a.parquet", lambda path: path.write_text("no"), "it is damaged, or no .parquet file"),
        ("a.arrow", lambda path: path.write_text("no"), "it is damaged, or no .arrow file"),
        ("a.xlsx", lambda path: path.write_text("no"), "it is damaged, has a password, or is no .xlsx file"),
        ("a.docx", lambda path: path.write_text("no"), "must be a file that ends in"),
        ("folder", lambda path: path.mkdir(), "must hold files of one kind of .parquet, .*; it holds none"),
    ],
)
def test_what_is_no_pool_is_refused(name, made, message, forest, tmp_path):
    made(tmp_path / name)
    with pytest.raises(StakesError, match=message):
        stakes.rank(forest, stakes.LogLoss(), tmp_path / name)


def test_files_of_a_folder_must_be_alike(rows, forest, tmp_path):
    folder = saved_folder(rows, tmp_path)
    parquet.write_table(arrow.table({"a": [1], "b": ["x"]}), folder / "9.parquet")
    with pytest.raises(StakesError, match=r"9.parquet must have the columns of .*0.parquet.*it has a \(int64\), b \(s"):
        stakes.rank(forest, stakes.LogLoss(), folder)


@dataclass
class Endless:
    """Rows that exist when they are asked for."""

    n_rows: int

    def chunks(self, size):
        for start in range(0, self.n_rows, size):
            yield start, self.take(np.arange(start, min(start + size, self.n_rows)))

    def take(self, rows):
        return np.stack([spread(rows), np.cos(7.0 * rows)], axis=1)


def spread(rows):
    """Numbers from 0 to 1, no two of which are close."""
    return np.mod(0.6180339887498949 * rows, 1.0)


class Plain:
    """Rows are worth the square of their first column."""

    def belief(self, pool, contexts):
        return stakes.GaussianBelief(
            np.zeros(len(contexts)), np.ones(len(contexts)), np.full(len(pool), 2.0), pool[:, :1] + 0.0 * contexts[:, 0]
        )


def test_memory_does_not_grow_with_the_rows():
    model, peaks = Plain(), []
    for size in (100_000, 400_000):
        tracemalloc.start()
        found = stakes.rank(model, stakes.SquaredError(), Endless(size), n=3, max_contexts=10)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.indices == tuple(np.argsort(-spread(np.arange(size)))[:3])
    assert peaks[1] < 1.1 * peaks[0] + 1e5


def test_one_worker_and_many_give_the_same_to_the_last_bit(rows, forest, process):
    for model, loss in ((forest, stakes.LogLoss([1.0, 5.0])), (process, stakes.SquaredError())):
        one, many = (stakes.rank(model, loss, rows, n=300, chunk=40, n_jobs=jobs, batch=False) for jobs in (1, 3))
        assert one == many
        assert one.indices == stakes.rank(model, loss, rows, n=300, chunk=40, batch=False).indices


class Short(Endless):
    """Its chunks end before its rows do."""

    def chunks(self, size):
        return ((start, rows) for start, rows in Endless(self.n_rows - 1000).chunks(size))


def test_a_pool_whose_chunks_end_early_is_refused():
    with pytest.raises(ValueError, match="says that it has 5000 rows, but its chunks hold 4000"):
        stakes.rank(Plain(), stakes.SquaredError(), Short(5000), max_contexts=10)


def members(classes):
    """Two members of some classes."""
    return stakes.CategoricalEnsemble(*[np.full((1, 2, classes), 1.0 / classes)] * 2)


@given(size=st.integers(1, 10_000_000), n=st.integers(1, 200), classes=st.none() | st.integers(2, 50))
def test_what_is_looked_at_is_bounded(size, n, classes):
    contexts, width = enough_contexts(size, n, classes), (classes or 1) ** 2
    assert 250 <= contexts <= 1000
    assert contexts == 250 or size * contexts * width <= 50_000_000
    if classes is not None:
        listed, cheap = enough_listed(contexts, n, members(classes))
        assert listed == 100
        products = 256 * width * contexts * (2 + 10)  # for one row, of two members and what is made of their sums
        assert cheap == (n * min(products * max(n, listed), 3e9 + 3 * products) <= 1.5e11)


@given(size=st.integers(1, 300), n=st.integers(1, 8), classes=st.none() | st.integers(2, 3))
def test_all_of_a_few_hundred_rows_are_looked_at(size, n, classes):
    assert enough_contexts(size, n, classes) >= size
    if classes is not None:
        assert enough_listed(size, n, members(classes)) == (100, True)


@pytest.mark.parametrize(
    ("classes", "n", "cheap"), [(2, 40, True), (9, 8, True), (10, 20, True), (30, 40, False), (10, 60, False)]
)
def test_rows_are_chosen_together_where_that_takes_seconds(classes, n, cheap):
    assert enough_listed(250, n, members(classes))[1] == cheap
