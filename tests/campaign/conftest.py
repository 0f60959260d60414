"""Where the campaigns under test lie."""

import os
import tempfile
from pathlib import Path

import pytest

from stakes.campaign import Campaign, Journal

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder():
    """A folder in memory where there is one: what a killed process wrote stays with the system, disk or not."""
    where = MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where, prefix="stakes-campaigns-") as name:
        yield Path(name)


@pytest.fixture
def path(folder):
    return folder / "my campaign #1 50%.stakes"


@pytest.fixture
def journal(path):
    """Six rows, the first labelled from the start, the second with a cost."""
    rows = [("007", None), ("7", 2.5), ("a", None), ("b", None), ("c", None), ("d", None)]
    with Journal.create(path, rows, {"loss": "log"}, {"007": "cat"}, now=100.0) as opened:
        yield opened


@pytest.fixture
def table(folder):
    """Twelve rows, the first six labelled."""
    path = folder / "t.csv"
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},{i / 2 + i % 3 if i < 6 else ''}" for i in range(12)]
    path.write_text("\n".join(["id,x,z,y", *rows]) + "\n")
    return path


@pytest.fixture
def campaign(path, table):
    """A campaign on that table."""
    with Campaign.create(path, table, "y", "squared-error", id_column="id") as made:
        yield made
