"""A pool at s3://, on a server of moto on this machine: read by fsspec and s3fs, here and by workers of a cluster."""

import os

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from stakes import LogLoss, rank
from stakes.exceptions import StakesError
from stakes.files import open_pool

moto_server = pytest.importorskip("moto.server", reason="make integration-s3 runs these")
s3fs = pytest.importorskip("s3fs", reason="make integration-s3 runs these")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = np.random.default_rng(0).standard_normal((3000, 4)).astype(np.float32)
KEYS = {"AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def bucket():
    """The address of three files of 1,000 rows in two row groups each; keys and endpoint are the environment's."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}:{port}"}.items():
            patch.setenv(name, value)
        system = s3fs.S3FileSystem(skip_instance_cache=True)
        system.mkdir("rows")
        for number, part in enumerate(np.split(ROWS, 3)):
            table = pyarrow.table({f"x{place}": column for place, column in enumerate(part.T)})
            with system.open(f"rows/pool/part-{number}.parquet", "wb") as file:
                parquet.write_table(table, file, row_group_size=500)
        yield "s3://rows/pool"
    server.stop()


@pytest.fixture(scope="module")
def forest():
    target = (ROWS[:200, 0] * ROWS[:200, 1] > 0).astype(int)
    return RandomForestClassifier(20, random_state=0).fit(ROWS[:200], target)


def test_rows_are_those_of_the_files(bucket):
    pool = open_pool(bucket, plain=True)
    assert pool.n_rows == len(ROWS)
    np.testing.assert_array_equal(pool.take(np.array([2750, 3, 1400])), ROWS[[2750, 3, 1400]])


def test_a_ranking_is_that_of_the_rows_in_memory(bucket, forest):
    asked = {"n": 10, "contexts": ROWS[:50], "batch": False}
    found = rank(forest, LogLoss(), bucket, **asked)
    wanted = rank(forest, LogLoss(), ROWS, **asked)
    assert found.indices == wanted.indices
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-12)


def test_workers_of_a_cluster_open_the_files_themselves(bucket, forest):
    distributed = pytest.importorskip("distributed")
    assert os.environ["AWS_ENDPOINT_URL"]  # which worker processes inherit
    asked = {"n": 10, "max_contexts": 50, "batch": False}
    with (
        distributed.LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = rank(forest, LogLoss(), bucket, client=client, **asked)
    wanted = rank(forest, LogLoss(), bucket, **asked)
    assert found.indices == wanted.indices


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_is_named():
    with pytest.raises(StakesError, match="s3://nowhere/pool"):
        open_pool("s3://nowhere/pool")
