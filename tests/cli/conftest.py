"""Where commands under test are run."""

import pytest

from tests.cli.cli_cases import NUMBERS, class_rows, number_rows, run, write


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own, with a table of numbers and a table of classes."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "numbers.csv", number_rows())
    write(tmp_path / "classes.csv", class_rows())
    return tmp_path


@pytest.fixture
def campaign(here):
    """Of the table of numbers."""
    assert run("init c.stakes numbers.csv", NUMBERS).code == 0
    return here / "c.stakes"
