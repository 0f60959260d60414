"""Campaigns of data frames, losses and estimators, on the disk and in memory: the same as of files and names."""

import gc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from stakes import Campaign, CostMatrix, LogLoss, SquaredError, rank
from stakes.exceptions import StakesError
from stakes.models import Bootstrap
from stakes.tabular import LossSpec, ModelSpec

X = np.random.default_rng(0).normal(size=(30, 2))
NUMBERS = X[:, 0].round(3)
TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(np.arange(30) < 12, NUMBERS, np.nan)})
NAMED = TABLE.set_axis([f"r{i}" for i in range(30)])
CLASSES = NAMED.assign(y=np.where(NAMED["y"].isna(), None, np.where(NUMBERS > 0, "good", "bad")))


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_objects_are_what_their_names_are(tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    by_name = Campaign.create(
        tmp_path / "a.stakes", tmp_path / "t.csv", "y", LossSpec("squared-error"), model=ModelSpec("bayesian-ridge")
    )
    by_object = Campaign.create(tmp_path / "b.stakes", TABLE, "y", SquaredError(), model=BayesianRidge())
    with by_name, by_object:
        wanted, found = by_name.ask(3), by_object.ask(3)
        assert found.indices == wanted.indices
        assert found.scores == wanted.scores
        assert found.row_ids == tuple(map(str, found.indices))  # as in the index of the data frame
        assert by_object.table == (tmp_path / "b.csv").resolve()
        assert by_object.brief.model == ModelSpec("sklearn.linear_model:BayesianRidge")
    with Campaign.open(tmp_path / "b.stakes") as again:  # in another process, say
        assert again.tell(found.row_ids[0], 0.5).new == (found.row_ids[0],)
        assert again.status().labelled == 13


def test_the_index_names_rows_and_classes_go_by_name():
    costs = pd.DataFrame([[0.0, 5.0], [1.0, 0.0]], index=["bad", "good"], columns=["bad", "good"])
    asked = []
    for matrix in (costs, costs.iloc[::-1, ::-1]):
        model = RandomForestClassifier(20)
        with Campaign.create(None, CLASSES, "y", CostMatrix(matrix), model=model) as campaign:
            found = campaign.ask(2)
            asked.append((found.row_ids, found.scores))
            assert campaign.brief.id_column == "row"
            recorded = campaign.tell(found.row_ids[0], "good")
            assert recorded.new == found.row_ids[:1]
            with pytest.raises(StakesError, match="Did you mean 'good'"):
                campaign.tell(found.row_ids[1], "god")
    assert asked[0] == asked[1]
    assert set(asked[0][0]) <= set(NAMED.index[12:])


def test_in_memory_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    campaign = Campaign.create(None, NAMED, "y", "squared-error", model=BayesianRidge())
    folder = campaign.path.parent
    assert folder.parent == tmp_path / "temporary"
    assert set(campaign.ask(2).row_ids) <= set(NAMED.index[12:])
    assert campaign.status().asked == 2
    campaign.change_settings(budget=5.0)  # the table is read again
    assert len(campaign.ask(1)) == 1
    campaign.close()
    del campaign
    gc.collect()
    assert not folder.exists()
    with pytest.raises(StakesError, match="yy"):
        Campaign.create(None, NAMED, "yy", "squared-error")
    assert list((tmp_path / "temporary").iterdir()) == []
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    with Campaign.create(None, tmp_path / "t.csv", "y", "squared-error", model=BayesianRidge()) as campaign:
        assert len(campaign.ask(1)) == 1


def test_labels_that_gaps_made_floating_are_whole_classes():
    table = NAMED.assign(y=np.where(NAMED["y"].isna(), np.nan, (NUMBERS > 0).astype(float)))
    with Campaign.create(None, table, "y", LogLoss({0: 1, 1: 5}), model=LogisticRegression()) as campaign:
        found = campaign.ask(1)
        assert campaign.tell(found.row_ids[0], 1).new == found.row_ids
        notes = " ".join(map(str, found.notes))
        assert "20 copies of LogisticRegression" in notes


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    with pytest.raises(StakesError, match="CostMatrix has no names"):
        Campaign.create(tmp_path / "c.stakes", CLASSES, "y", CostMatrix([[0, 1], [1, 0]]))
    with pytest.raises(StakesError, match="is a model of numbers"):
        Campaign.create(tmp_path / "c.stakes", CLASSES, "y", LogLoss(), model=BayesianRidge())
    assert list(tmp_path.glob("c.*")) == []
    Path(tmp_path, "c.csv").write_text("mine")
    with pytest.raises(StakesError, match="which is there"):
        Campaign.create(tmp_path / "c.stakes", CLASSES, "y", LogLoss())
    assert Path(tmp_path, "c.csv").read_text() == "mine"


def test_tables_that_are_refused(tmp_path):
    with pytest.raises(StakesError, match=r"a file or a data frame.*got ndarray"):
        Campaign.create(tmp_path / "c.stakes", X, "y", "squared-error")
    twice = pd.concat([NAMED, NAMED.iloc[:1]])
    with pytest.raises(StakesError, match=r"the index, which has 'r0' more than once: give table.reset_index"):
        Campaign.create(tmp_path / "c.stakes", twice, "y", "squared-error")
    Campaign.create(tmp_path / "c.stakes", TABLE, "y", "squared-error", model=BayesianRidge()).close()
    with pytest.raises(StakesError, match=r"c.stakes is there already; open it"):
        Campaign.create(tmp_path / "c.stakes", TABLE, "y", "squared-error")


def test_a_pipeline_that_chooses_columns_by_name(tmp_path):
    """The most usual model of a data frame; it was given an array without names."""
    table = CLASSES.assign(kind=np.where(np.arange(30) % 2, "red", "blue"))
    columns = make_column_transformer((StandardScaler(), ["b", "a"]), (OneHotEncoder(), ["kind"]))
    model = make_pipeline(columns, LogisticRegression())
    with Campaign.create(tmp_path / "c.stakes", table, "y", LogLoss({"good": 1, "bad": 5}), model=model) as campaign:
        found = campaign.ask(2)
    notes = " ".join(map(str, found.notes))
    assert "Columns go to the model by name, as they are in the table." in notes
    assert "20 copies of LogisticRegression" in notes
    known = table["y"].notna()
    wanted = rank(
        Bootstrap(LogisticRegression(), random_state=0),
        LogLoss({"good": 1, "bad": 5}),
        columns.fit(table[known]).transform(table[~known]),
        labelled=(columns.transform(table[known]), table["y"][known]),
        n=1,
        batch=False,
    )
    assert int(found.indices[0]) == int(np.flatnonzero(~known)[wanted.indices[0]])
    with Campaign.open(tmp_path / "c.stakes") as again:  # it is made again from what is kept
        assert len(again.ask(1)) == 1
