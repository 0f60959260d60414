"""Addresses of files, by fsspec's file system in the memory of this process."""

from pathlib import Path

import numpy as np
import pytest

from stakes.exceptions import StakesError
from stakes.files import open_pool
from stakes.files.remote import RemotePath, located

fsspec = pytest.importorskip("fsspec", reason="addresses need fsspec")
pyarrow = pytest.importorskip("pyarrow", reason="files of Parquet need pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def folder():
    """Three files of ten rows each, at memory://somewhere."""
    system = fsspec.filesystem("memory")
    for number in range(3):
        with system.open(f"/somewhere/{number}.parquet", "wb") as file:
            parquet.write_table(pyarrow.table({"x": np.arange(10.0) + 10 * number, "y": np.zeros(10)}), file)
    with system.open("/somewhere/_SUCCESS", "wb"):
        pass
    yield "memory://somewhere"
    system.rm("/somewhere", recursive=True)


def test_what_is_an_address():
    assert located("file:///a/b%20c.parquet") == Path("/a/b c.parquet")
    assert located("a/b.parquet") == Path("a/b.parquet")
    found = located("s3://bucket/folder/rows.parquet")
    assert isinstance(found, RemotePath)
    assert (str(found), found.name, found.suffix) == ("s3://bucket/folder/rows.parquet", "rows.parquet", ".parquet")
    assert located(found) is found


def test_a_folder_at_an_address_is_read_as_one_on_disk(folder):
    pool = open_pool(folder, ["x"], plain=True)
    assert pool.n_rows == 30
    assert [start for start, _ in pool.chunks(20)] == [0, 20]
    np.testing.assert_array_equal(pool.take(np.array([25, 3]))[:, 0], [25.0, 3.0])
    np.testing.assert_array_equal(open_pool(f"{folder}/1.parquet", ["x"], plain=True).take(np.array([2]))[:, 0], [12.0])


def test_an_arrow_file_at_an_address():
    system, table = fsspec.filesystem("memory"), pyarrow.table({"x": np.arange(5.0)})
    with system.open("/rows.arrow", "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    try:
        pool = open_pool("memory://rows.arrow", plain=True)
        np.testing.assert_array_equal(pool.take(np.arange(5))[:, 0], np.arange(5.0))
    finally:
        system.rm("/rows.arrow")


def test_what_is_not_there_or_not_known_is_refused(folder):
    with pytest.raises(StakesError, match=r"there is no file memory://somewhere/9.parquet"):
        open_pool(f"{folder}/9.parquet")
    with pytest.raises(StakesError, match=r"must be the address of a folder, or of a file .* there is nothing"):
        open_pool("memory://nowhere")
    with pytest.raises(StakesError, match=r"a file of another kind. Turn a CSV file into Parquet first"):
        open_pool(f"{folder}/_SUCCESS")
    with pytest.raises(StakesError, match=r"nowhere://x/y.parquet cannot be opened by fsspec: Protocol not known"):
        open_pool("nowhere://x/y.parquet")
