"""Downloads, from a repository on this machine: checked, kept, and refused where something else comes."""

import http.server
import threading
from functools import partial

import pytest

from experiments.datasets import DatasetError, load
from experiments.datasets.catalogue import CATALOGUE
from tests.experiments.datasets.dataset_cases import data_folder, hide_folder_and_package, saved

pooch = pytest.importorskip("pooch", reason="pooch is not installed, and downloads need it")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder, and logs nothing."""

    def log_message(self, *arguments):
        """No-op."""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The folder that a server on this machine serves in place of the repository; the cache is empty."""
    hide_folder_and_package(monkeypatch)
    served = tmp_path / "served"
    served.mkdir()
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=served)) as server:
        monkeypatch.setattr("experiments.datasets.catalogue.REPOSITORY", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["slump", "vehicle", "landsat", "vowel"])
def test_a_download_gives_the_same_set_and_is_kept(repository, name):
    where = repository / CATALOGUE[name].raw.folder
    saved(where, name)
    data = load(name)
    assert data.sha256 == load(name, folder=data_folder()).sha256
    assert data.source == CATALOGUE[name].raw.addresses()[0]
    for path in where.iterdir():
        path.unlink()
    assert load(name).sha256 == data.sha256


def test_a_name_with_blanks_is_asked_for_as_addresses_are_written(repository):
    saved(repository / "00477", "estate")
    with pytest.raises(DatasetError, match="estate must be the published file; another one came"):
        load("estate")  # the values are right, but the spreadsheet is ours


def test_another_file_is_refused_and_not_kept(repository, tmp_path):
    where = repository / CATALOGUE["slump"].raw.folder
    saved(where, "slump")
    (where / "slump_test.data").write_text("1,2,3\n")
    with pytest.raises(DatasetError, match="slump must be the published file; another one came, and was not kept"):
        load("slump")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


@pytest.mark.usefixtures("repository")
def test_a_repository_that_does_not_have_the_file_is_one_source_less():
    with pytest.raises(DatasetError) as caught:
        load("vowel")  # nothing is served
    message = str(caught.value)
    assert "vowel-context.data cannot be downloaded (HTTPError)" in message
    assert 'load("vowel", folder="FOLDER")' in message


@pytest.mark.usefixtures("repository")
def test_without_a_network_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr("experiments.datasets.catalogue.REPOSITORY", "http://127.0.0.1:1")
    with pytest.raises(DatasetError, match=r"yacht_hydrodynamics\.data cannot be downloaded \(ConnectionError\)"):
        load("yacht")
