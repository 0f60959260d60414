"""A real cluster of Dask on this machine: the same ranking, also when workers die at their work."""

import importlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier

import stakes
from stakes._utils.top_k import TopK
from stakes.exceptions import StakesError
from stakes.models import GaussianProcess
from stakes.ranking import cluster

distributed = pytest.importorskip("dask.distributed", reason="a cluster needs dask[distributed]")
pyarrow = pytest.importorskip("pyarrow", reason="files of Parquet need pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def client():
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}  # any free port: another cluster may run, too
    patience = {"distributed.deploy.lost-worker-timeout": "10m"}  # 15 s are too few on a busy machine: it is given up
    with (
        importlib.import_module("dask").config.set(patience),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((2000, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def forest(rows):
    return RandomForestClassifier(30, random_state=0, n_jobs=2).fit(rows[:60], rows[:60, 0] > 0)


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    """Four files of two row groups each, each a fragment of its own."""
    monkeypatch.setattr("stakes.files.arrow._FRAGMENT", 1)
    for number, part in enumerate(np.split(rows, 4)):
        table = pyarrow.table({f"x{place}": column for place, column in enumerate(part.T)})
        parquet.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=250)
    return tmp_path


OPTIONS = {"n": 5, "max_contexts": 50, "chunk": 100}


def killing(client, count, calls):
    """A function for `progress` that ends so many workers once, when the first fragment has been scored."""
    ended = []

    def kill(what, share):
        calls.append(what)
        if what == "scoring rows" and share and not ended:
            for process in list(client.run(os.getpid).values())[:count]:
                ended.append(process)
                os.kill(process, signal.SIGKILL)

    return kill, ended


def unread(self, names):  # noqa: ARG001
    """In place of what reads rows, in this process."""
    raise AssertionError("rows are read by workers alone")


@pytest.mark.usefixtures("client")
def test_a_cluster_gives_what_one_worker_gives(rows, forest):
    alone = stakes.rank(forest, stakes.LogLoss(), rows, n=5, max_contexts=50, chunk=500, n_jobs=1)
    with parallel_config(backend="dask"):
        assert stakes.rank(forest, stakes.LogLoss(), rows, n=5, max_contexts=50, chunk=500) == alone


def test_a_worker_that_dies_at_its_work_is_made_up_for(client, rows):
    process = GaussianProcess().fit(rows[:200], rows[:200, 0] * rows[:200, 1])
    options = {"n": 5, "max_contexts": 200, "chunk": 100}
    alone = stakes.rank(process, stakes.SquaredError(), rows, n_jobs=1, **options)
    workers, killed = client.run(os.getpid), []

    def kill(what, share):
        if what == "scoring rows" and share > 0 and not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    with parallel_config(backend="dask"):
        found = stakes.rank(process, stakes.SquaredError(), rows, progress=kill, **options)
    assert found == alone
    assert len(killed) == 1
    deadline = time.monotonic() + 20
    while killed[0] in client.run(os.getpid).values() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert killed[0] not in client.run(os.getpid).values()  # it was gone indeed


@pytest.mark.parametrize(
    "more",
    [{}, {"batch": False, "costs": 2.0, "pending": (3,)}, {"batch": False, "max_rows": 300, "costs": True}],
    ids=["together", "alone", "some rows"],
)
def test_workers_read_files_themselves_with_the_ranking_of_one_process(client, forest, folder, more, monkeypatch):
    more = {**more, "costs": 1.0 + np.arange(2000) % 7} if more.get("costs") is True else more
    here = stakes.rank(forest, stakes.LogLoss(), folder, **OPTIONS, **more)
    monkeypatch.setattr("stakes.files.arrow.Piece.batches", unread)
    there = stakes.rank(forest, stakes.LogLoss(), f"file://{folder}", client=client, **OPTIONS, **more)
    assert there.indices == here.indices
    assert there.notes == here.notes
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-9)
    assert [each.contexts[0].index for each in there.reasons] == [each.contexts[0].index for each in here.reasons]


def test_where_nothing_is_worth_anything_fragments_are_merged_as_one():
    """Chunks need two labels, one or none that would help; the fewest count, in whichever order fragments come."""
    rng, ranking = np.random.default_rng(0), importlib.import_module("stakes.ranking.rank")
    needed = [None, 3, 2, 3, 2, None]
    chunks = [
        (np.arange(20) + 20 * place, np.round(rng.standard_normal(20), 1), labels)
        for place, labels in enumerate(needed)
    ]

    def tally(some):
        kept = ranking._BestFallback(TopK(25, 0))
        for rows, logs, labels in some:
            kept.add(rows, (logs, labels), np.ones(20))
        return kept

    whole = tally(chunks)
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        merged = tally([])
        for part in order:
            merged.merge(tally(chunks[2 * part : 2 * part + 2]))
        assert set(merged.by_labels) == {None, 2, 3}
        for labels, best in merged.by_labels.items():
            assert list(best.ordered())[:25] == list(whole.by_labels[labels].ordered())[:25]


@pytest.mark.parametrize("count", [1, 2])
def test_workers_that_die_make_no_difference_to_rows_that_they_read(client, forest, folder, count):
    """Also if both do, and the model with them."""
    here = stakes.rank(forest, stakes.LogLoss(), folder, **OPTIONS)
    kill, ended = killing(client, count, calls := [])
    there = stakes.rank(forest, stakes.LogLoss(), folder, client=client, progress=kill, **OPTIONS)
    assert len(ended) == count
    assert "choosing rows together" in calls
    assert there.indices == here.indices
    client.wait_for_workers(2, timeout=60)  # for the next test


class LateToGather:
    """A task that was done when we heard of it, and whose result was lost before we had it."""

    status = "finished"

    def result(self):
        raise distributed.CancelledError("lost")


def test_what_is_lost_after_it_is_done_is_done_again():
    cluster = importlib.import_module("stakes.ranking.cluster")
    assert cluster._result(LateToGather()) is cluster._LOST


def test_dask_collections(client, forest, rows):
    """An Array knows how long its chunks are; of a DataFrame rows are counted and contexts drawn in one pass."""
    array, frame = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    here = stakes.rank(forest, stakes.LogLoss(), rows, **OPTIONS)
    there = stakes.rank(forest, stakes.LogLoss(), array.from_array(rows, chunks=(300, 3)), client=client, **OPTIONS)
    assert there.indices == here.indices
    names = [f"x{place}" for place in range(5)]
    named = RandomForestClassifier(30, random_state=0).fit(pandas.DataFrame(rows[:60], columns=names), rows[:60, 0] > 0)
    table = pandas.DataFrame(rows, columns=names, index=[f"row {place}" for place in range(2000)]).assign(other=1.0)
    found = stakes.rank(named, stakes.LogLoss(), frame.from_pandas(table, npartitions=6, sort=False), **OPTIONS)
    contexts = {each.index for reason in found.reasons for each in reason.contexts}
    assert found.row_ids == tuple(f"row {place}" for place in found.indices)
    again = stakes.rank(
        named, stakes.LogLoss(), frame.from_pandas(table, npartitions=6, sort=False), client=client, **OPTIONS
    )
    assert again == found
    assert len(contexts) > 3
    given = stakes.rank(named, stakes.LogLoss(), table[names], contexts=table[names].iloc[:50], **OPTIONS)
    pool = frame.from_pandas(table, npartitions=3, sort=False)
    assert (
        stakes.rank(named, stakes.LogLoss(), pool, contexts=table[names].iloc[:50], **OPTIONS).indices == given.indices
    )


def test_a_draw_in_one_pass_is_the_same_in_any_order_and_even(rows):
    """A row is drawn by its key alone: order and bounds make no difference, and each is drawn as often as others."""
    parts = np.split(rows, [100, 700, 700, 1500])
    drawn = []
    for seed in range(60):
        sent = cluster.Sent.of((seed, False, False))
        for order in (range(5), [3, 0, 4, 2, 1]):
            reservoir = cluster._Reservoir(50)
            for number in order:
                count, *found = cluster._counted(sent, parts[number], number, 50, reservoir.bound)
                assert count == len(parts[number])
                reservoir.add(number, *found)
            numbers, places, table = reservoir.rows()
            positions = np.array([0, 100, 700, 700, 1500])[numbers] + places
            np.testing.assert_array_equal(table, rows[positions])
            drawn.append(positions)
        np.testing.assert_array_equal(drawn[-1], drawn[-2])
    counts = np.histogram(np.concatenate(drawn[::2]), [0, 100, 700, 1500, 2000])[0]
    np.testing.assert_allclose(counts / 3000, [0.05, 0.3, 0.4, 0.25], atol=0.03)


def test_a_fragment_that_is_gone_is_named_with_who_missed_it(client, forest, folder):
    def remove(what, share):  # noqa: ARG001
        (folder / "part-3.parquet").unlink(missing_ok=True)

    with pytest.raises(StakesError, match=r"no file .*part-3.parquet, says the worker at tcp://127.0.0.1:\d+. Workers"):
        stakes.rank(forest, stakes.LogLoss(), folder, client=client, progress=remove, contexts=np.zeros((3, 5)), n=2)


def test_rows_that_the_model_cannot_take_are_named_by_their_place_in_the_pool(client, forest, folder):
    names, table = [f"x{place}" for place in range(5)], parquet.read_table(folder / "part-2.parquet")
    columns = {name: table.column(name).to_numpy().copy() for name in names}
    columns["x1"][321] = np.inf  # NaN is taken by forests
    parquet.write_table(pyarrow.table(columns), folder / "part-2.parquet", row_group_size=250)
    with pytest.raises(StakesError, match=r"finite numbers; the first that is not is inf at row 1321, column 1"):
        stakes.rank(forest, stakes.LogLoss(), folder, client=client, contexts=np.zeros((3, 5)), batch=False, n=2)


def test_versions_of_workers_must_be_those_of_the_client(client, monkeypatch):
    def other():
        return {**cluster_versions(), "scikit-learn": "0.1"}

    cluster_versions = cluster._versions_here()
    monkeypatch.setattr(cluster, "_versions_here", lambda: other)
    sent = cluster.Sent.of(1)
    monkeypatch.undo()
    with pytest.raises(StakesError, match=r"client has, scikit-learn 0.1; this worker has scikit-learn \d"):
        sent.value()  # a worker that joined later
    here = cluster._versions_here()()
    there = client.run(cluster._versions_here())
    cluster._check_versions(here, there)
    with pytest.raises(StakesError, match=r"numpy .*; tcp://127.0.0.1:1 has numpy 1.0. Install the same"):
        cluster._check_versions(here, {**there, "tcp://127.0.0.1:1": {**here, "numpy": "1.0"}})


def test_what_cannot_be_read_by_workers_is_refused(client, forest, rows, tmp_path):
    with pytest.raises(StakesError, match=r"must be something that workers read themselves.*got ndarray"):
        stakes.rank(forest, stakes.LogLoss(), rows, client=client)
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client; got str"):
        stakes.rank(forest, stakes.LogLoss(), tmp_path, client="127.0.0.1:8786")
    with pytest.raises(StakesError, match="y with gaps goes with a table in memory"):
        stakes.rank(forest, stakes.LogLoss(), str(tmp_path), y=np.zeros(3), client=client)
    with pytest.raises(StakesError, match="a cold start"):
        stakes.rank(None, stakes.LogLoss(), str(tmp_path), client=client)


def test_a_model_that_a_worker_cannot_load_is_refused(tmp_path, monkeypatch):
    (tmp_path / "nowhere.py").write_text("class Model:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    sent = cluster.Sent.of(importlib.import_module("nowhere").Model())
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "nowhere")
    with pytest.raises(StakesError, match=r"a worker cannot load the model: No module named 'nowhere'. Install"):
        sent.value()


def test_the_plan_follows_from_what_was_measured():
    """Every line of the plan on docs/clusters.md, from the measured line above it and the sizes that it names."""
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text()
    each = float(re.search(r"^\| 1e6 \| ([\d.]+) \|", page, re.MULTILINE)[1])
    on_disk, fragment = (int(re.search(text, page)[1]) for text in (r"(\d+) bytes a row on disk", r"takes (\d+) bytes"))
    lines = re.findall(
        r"^\| (1e\d+) \| ([\d,.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \| ([\d.]+) \|$", page, re.MULTILINE
    )
    assert [line[0] for line in lines] == ["1e9", "1e10", "1e11"]
    for line in lines:
        rows, *quoted = (float(text.replace(",", "")) for text in line)
        hours, groups = each * 1e-6 * rows / 3600, rows / 250_000
        np.testing.assert_allclose(
            quoted, [hours, hours / 100, on_disk * rows / 1e12, groups, groups * fragment / 1e6], rtol=0.03
        )
