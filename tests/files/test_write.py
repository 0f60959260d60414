"""Cells that no spreadsheet runs, and tables that come back."""

import os
import sqlite3
import subprocess
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given

from stakes.exceptions import StakesError
from stakes.files import escape, read_table, unescape, write_csv
from stakes.files import write as safe_cells
from stakes.files.write import checked_output, output_file

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
            write_csv(path, ["a"], bad, overwrite=True)
    monkeypatch.setattr(safe_cells.os, "fsync", _full)
    with pytest.raises(StakesError, match=r"t.csv cannot be written: No space left on device. Nothing was changed"):
        write_csv(path, ["a"], [["2"]], overwrite=True)
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


def test_a_file_that_is_there_is_overwritten_only_by_an_option(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("mine")
    path.chmod(0o600)
    with pytest.raises(StakesError, match=r"is left as it is. Give another name, or .*overwrite=True \(--force\)"):
        write_csv(path, ["a"], [["1"]])
    assert path.read_text() == "mine"
    write_csv(path, ["a"], [["1"]], overwrite=True)
    assert read_table(path).texts("a") == ["1"]
    assert path.stat().st_mode & 0o777 == 0o600  # who may read it stays


def write_late(path):
    """Somebody is quicker."""
    with output_file(path) as file:
        file.write(b"ours")
        path.write_text("theirs")


def test_a_file_that_comes_while_another_is_written_is_left_as_it_is(tmp_path):
    path = tmp_path / "t.csv"
    with pytest.raises(StakesError, match="is there already"):
        write_late(path)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["t.csv"]


def test_without_hard_links_a_name_is_still_taken_once(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(safe_cells.errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(safe_cells.os, "link", no_links)
    write_csv(tmp_path / "t.csv", ["a"], [["1"]])
    assert os.listdir(tmp_path) == ["t.csv"]
    with pytest.raises(StakesError, match="is there already"):
        write_late(tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == "theirs"


def ways_to_name(folder, name):
    """One file by several names: as it is, by way of its folder, by a link, a hard link and a link to a link."""
    (folder / "link").symlink_to(name)
    (folder / "again").symlink_to("link")
    os.link(folder / name, folder / "hard")
    return [folder / name, folder / "sub" / ".." / name, folder / "link", folder / "again", folder / "hard"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_read_is_never_overwritten_by_whatever_name(tmp_path, overwrite):
    (tmp_path / "sub").mkdir()
    (tmp_path / "t.csv").write_text("a\n1\n")
    for path in ways_to_name(tmp_path, "t.csv"):
        for inputs in ([tmp_path / "t.csv"], [tmp_path]):  # the file, or the folder that is read
            with pytest.raises(StakesError, match="which is read here, and is left as it is"):
                write_csv(path, ["a"], [["2"]], inputs=inputs, overwrite=overwrite)
    assert (tmp_path / "t.csv").read_text() == "a\n1\n"


def test_no_database_and_nothing_beside_one_is_ever_overwritten(tmp_path):
    (tmp_path / "sub").mkdir()
    connection = sqlite3.connect(tmp_path / "c.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    before = {each.name: each.read_bytes() for each in tmp_path.glob("c.db*")}
    assert set(before) == {"c.db", "c.db-wal", "c.db-shm"}
    beside = [tmp_path / f"c.db-{end}" for end in ("wal", "shm", "journal", "WAL")]
    (tmp_path / "wal").symlink_to("c.db-wal")
    for path in (*ways_to_name(tmp_path, "c.db"), *beside, tmp_path / "wal"):
        with pytest.raises(StakesError, match="a campaign or another database"):
            checked_output(path, overwrite=True)
    (tmp_path / "broken.stakes").write_bytes(b"no longer SQLite")  # may be mended by hand; not if it is overwritten
    with pytest.raises(StakesError, match="a campaign or another database"):
        checked_output(tmp_path / "broken.stakes", overwrite=True)
    assert {each.name: each.read_bytes() for each in tmp_path.glob("c.db*")} == before
    connection.close()


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "link.csv").symlink_to("t.csv")
    write_csv(tmp_path / "link.csv", ["a"], [["1"]])
    write_csv(tmp_path / "link.csv", ["a"], [["2"]], overwrite=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert read_table(tmp_path / "t.csv").texts("a") == ["2"]


@pytest.mark.parametrize("name", ["/dev/null", "x" * 300 + ".csv", "a\0b.csv", "loop/t.csv", "loop"])
def test_places_that_hold_no_file_are_refused_before_the_work(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StakesError, match="cannot be written"):
        checked_output(tmp_path / name, overwrite=True)


READ_ONLY = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = sys.argv[1].encode()
if libc.unshare(0x00020000 | (0x10000000 if os.getuid() else 0)):  # a mount namespace of our own
    sys.exit(77)
libc.mount(b"none", b"/", None, 1 << 18 | 1 << 14, None)  # private, all the way down
if libc.mount(folder, folder, None, 4096, None) or libc.mount(b"none", folder, None, 4096 | 32 | 1, None):
    sys.exit(77)
from stakes.exceptions import StakesError
from stakes.files.write import checked_output, write_csv, os as used
for check in (checked_output, lambda path: write_csv(path, ["a"], [])):
    for access in (used.access, lambda *_: True):  # as it is, and where the system does not know it beforehand
        used.access = access
        if check is checked_output and access(folder, os.W_OK):
            continue
        try:
            check(sys.argv[1] + "/t.csv")
        except StakesError as error:
            assert "cannot be written" in str(error), error
        else:
            sys.exit("written")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts are those of Linux")
def test_a_read_only_disk_is_refused_with_a_message(tmp_path):
    done = subprocess.run([sys.executable, "-c", READ_ONLY, str(tmp_path)], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this process may not mount anything")
    assert done.returncode == 0, done.stderr


def test_a_disk_that_turns_read_only_is_refused_with_a_message(tmp_path, monkeypatch):
    def read_only(*_, **__):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(safe_cells.Path, "open", read_only)
    monkeypatch.setattr(safe_cells.Path, "unlink", read_only)  # as Linux has it, also of a file that is not there
    with pytest.raises(StakesError, match=r"cannot be written: Read-only file system. Nothing was changed"):
        write_csv(tmp_path / "t.csv", ["a"], [])
