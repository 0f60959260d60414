"""A Dataset of Hugging Face as a pool and as a table, and back with labels; by the real package."""

import numpy as np
import pytest

pytest.importorskip("datasets", reason="the package datasets is not installed; make integrations has it")

import datasets
from sklearn.linear_model import BayesianRidge

from stakes import Campaign, SquaredError, rank
from stakes.exceptions import StakesError
from stakes.integrations.datasets import DatasetRows, as_table, ranked_rows, with_labels
from stakes.ranking import Pool
from tests.integrations.pages import run_page

X = np.random.default_rng(0).normal(size=(40, 2))
KINDS = datasets.ClassLabel(names=["cat", "dog"])


@pytest.fixture
def pets():
    features = datasets.Features({"a": datasets.Value("float64"), "kind": KINDS, "n": datasets.Value("int32")})
    columns = {"a": X[:6, 0], "kind": [0, 1, 0, -1, None, -1], "n": [3, None, None, None, None, None]}
    return datasets.Dataset.from_dict(columns, features=features)


def test_a_pool_gives_the_picks_of_the_frame():
    rows = datasets.Dataset.from_dict({"b": X[:, 1], "text": ["x"] * 40, "a": X[:, 0]})
    pool = DatasetRows(rows, ["a", "b"])
    assert isinstance(pool, Pool)
    frame = as_table(rows, ["a", "b"])
    model = BayesianRidge().fit(frame[:8], X[:8, 0])
    ranking, whole = (rank(model, SquaredError(), each, n=3, batch=False) for each in (pool, frame))
    assert ranking.indices == whole.indices
    assert ranking.scores == pytest.approx(whole.scores)
    assert [(start, len(part)) for start, part in pool.chunks(16)] == [(0, 16), (16, 16), (32, 8)]
    assert pool.take(np.asarray([5, 2]))["a"].tolist() == [X[5, 0], X[2, 0]]
    chosen = ranked_rows(rows, ranking)
    assert chosen["a"][:] == [X[row, 0] for row in ranking.indices]
    assert chosen["stakes_score"][:] == pytest.approx(ranking.scores)
    assert chosen["stakes_why"][0] == str(ranking.reasons[0])


def test_labels_come_back_in_the_types_of_the_column(pets):
    with Campaign.create(None, as_table(pets, ["a", "kind"]), "kind", "zero-one") as campaign:
        campaign.tell("3", "dog")
        back = with_labels(pets, campaign, status="where")
        assert back["kind"][:] == [0, 1, 0, 1, None, -1]
        assert back["where"][:] == ["labelled"] * 4 + ["open"] * 2
        assert back.features["kind"] == KINDS
        assert back.column_names == ["a", "kind", "n", "where"]
        assert pets["kind"][:] == [0, 1, 0, -1, None, -1]  # as it was
        campaign.tell("4", "bird", new_class=True)
        with pytest.raises(StakesError, match="the campaign has the class 'bird', and the column has cat, dog"):
            with_labels(pets, campaign)
        with pytest.raises(StakesError, match="it has 5 rows, and the campaign 6"):
            with_labels(pets.select(range(5)), campaign)
        with pytest.raises(StakesError, match="has a column 'a' already"):
            with_labels(pets, campaign, status="a")


def test_whole_numbers_come_back_as_such(pets):
    with Campaign.create(None, as_table(pets, ["a", "n"]), "n", "squared-error") as campaign:
        campaign.tell("1", 7)
        assert with_labels(pets, campaign)["n"][:] == [3, 7, None, None, None, None]


def test_a_selection_keeps_its_rows_in_order(pets):
    some = pets.select([4, 0, 3])
    assert as_table(some)["a"].tolist() == [X[4, 0], X[0, 0], X[3, 0]]
    assert as_table(some)["kind"].fillna("none").tolist() == ["none", "cat", "none"]


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        (lambda pets: datasets.DatasetDict(train=pets), None, "this has the splits train: give one"),
        (lambda pets: pets.to_iterable_dataset(), None, "got IterableDataset: load it without streaming"),
        (lambda pets: [1, 2], None, "a Dataset of Hugging Face is wanted; got list"),
        (lambda pets: pets, ["b"], "there is no column 'b'; there are a, kind, n"),
        (lambda pets: pets.add_column("v", [[1.0]] * 6), None, "column 'v' holds List"),
    ],
)
def test_what_is_no_table_is_refused(given, columns, message, pets):
    for call in (as_table, DatasetRows):
        with pytest.raises(StakesError, match=message):
            call(given(pets), columns)


def test_the_page_runs(tmp_path):
    run_page("datasets", tmp_path)
