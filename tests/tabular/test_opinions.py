"""Rows for one annotator, of a table in memory."""

import numpy as np
import pandas as pd
import pytest

from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, read_worksheet
from stakes.tabular.opinions import rank_for_annotators


@pytest.fixture
def sheet(tmp_path):
    rng = np.random.default_rng(0)
    kinds = np.repeat(["cat", "dog"], 15)
    frame = pd.DataFrame({"id": [f"r{i}" for i in range(30)], "x": rng.normal(size=30) + 2.0 * (kinds == "dog")})
    frame["colour"], frame["kind"] = np.where(kinds == "dog", "brown", "grey"), None
    frame.to_csv(tmp_path / "pets.csv", index=False)
    return read_worksheet(
        tmp_path / "pets.csv", Brief("kind", LossSpec("zero-one"), id_column="id", classes=("cat", "dog"))
    )


def test_rows_of_others_and_new_ones_compete(sheet):
    opinions = [(row, "anna", "cat" if row < 15 else "dog") for row in range(0, 30, 3)]
    known = {1: "cat", 28: "dog"}
    offers = rank_for_annotators(sheet, {"ben": 2.0}, 28, opinions=opinions, known=known, excluded=[5])["ben"]
    rows = [each.row for each in offers]
    assert set(rows) == set(range(30)) - {1, 28, 5}
    assert {each.before for each in offers} == {0, 1}
    assert all(each.annotator == "ben" and each.price == 2.0 for each in offers)
    assert [each.worth for each in offers] == sorted((each.worth for each in offers), reverse=True)
    own = rank_for_annotators(sheet, {"anna": 1.0}, 28, opinions=opinions, known=known)["anna"]
    assert not {each.row for each in own} & {row for row, _, _ in opinions}


def test_without_a_label_there_is_nothing_to_rank_by(sheet):
    with pytest.raises(StakesError, match="there is no label yet"):
        rank_for_annotators(sheet, {"ben": 1.0}, 3, opinions=[], known={})


def test_who_has_labelled_all_that_is_in_doubt_is_asked_nothing(sheet):
    opinions = [(row, "anna", "cat" if row < 15 else "dog") for row in range(30) if row not in (1, 28)]
    offers = rank_for_annotators(sheet, {"anna": 1.0, "ben": 5.0}, 3, opinions=opinions, known={1: "cat", 28: "dog"})
    assert (offers["anna"], len(offers["ben"])) == ([], 3)
