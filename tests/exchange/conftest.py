"""Campaigns about the tables that a real Label Studio was tried with; see tools/label_studio.py."""

import json
import shutil
from pathlib import Path

import pytest

from stakes.campaign import Campaign
from stakes.tabular import ModelSpec

GOLDEN = Path(__file__).parent / "golden"


def golden(name):
    """What Label Studio sent."""
    text = (GOLDEN / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


def create(folder, kind, **settings):
    shutil.copy(GOLDEN / f"{kind}.csv", folder / f"{kind}.csv")
    light = {
        "classes": ("zero-one", ModelSpec("extra-trees", {"n_estimators": 20})),
        "numbers": ("squared-error", ModelSpec("bayesian-ridge")),
    }
    loss, model = light[kind]
    return Campaign.create(
        folder / f"{kind}.stakes", folder / f"{kind}.csv", "target", loss, id_column="id", model=model, **settings
    )


@pytest.fixture
def classes(tmp_path):
    with create(tmp_path, "classes") as opened:
        yield opened


@pytest.fixture
def numbers(tmp_path):
    with create(tmp_path, "numbers") as opened:
        yield opened


def row(number):
    """The id of a row."""
    return f'r{number} <&"$'
