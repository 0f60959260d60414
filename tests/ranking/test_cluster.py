"""A real cluster of Dask on this machine: the same ranking, also when a worker dies at its work."""

import os
import signal
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier

import stakes
from stakes.models import GaussianProcess

distributed = pytest.importorskip("dask.distributed", reason="a cluster needs dask[distributed]")


@pytest.fixture(scope="module")
def client():
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}  # any free port: another cluster may run, too
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **local) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((2000, 5)).astype(np.float32)


@pytest.mark.usefixtures("client")
def test_a_cluster_gives_what_one_worker_gives(rows):
    forest = RandomForestClassifier(30, random_state=0, n_jobs=2).fit(rows[:60], rows[:60, 0] > 0)
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
