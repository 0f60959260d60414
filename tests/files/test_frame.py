"""Frames are taken wherever features are."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline

import stakes
from stakes._utils.tables import check_table, column_at, column_names, n_columns, n_rows, row_labels, take_rows
from stakes.exceptions import StakesError
from stakes.files import Frame
from stakes.models import DefaultModel, TableEncoder, default

N = 40


def frame(rng):
    heat = rng.normal(size=N)
    heat[3] = np.nan
    kind = np.asarray(["acid", "base", None] * N, dtype=object)[:N]
    return Frame(("heat", "kind"), (heat, kind), N)


def test_it_is_a_table(rng):
    table = check_table("pool", frame(rng), allow_nan=True)
    assert (n_rows(table), n_columns(table), column_names(table)) == (N, 2, ["heat", "kind"])
    assert row_labels(table)[:2] == [0, 1]
    part = take_rows(table, slice(2, 6))
    assert len(part) == 4
    assert column_at(part, 1).tolist() == [None, "acid", "base", None]
    np.testing.assert_array_equal(column_at(take_rows(table, [5, 0]), 0), column_at(table, 0)[[5, 0]])


def test_columns_are_chosen_by_name(rng):
    table = frame(rng)
    assert table.select(["kind", "heat"]).names == ("kind", "heat")
    assert table.drop(["heat"]).names == ("kind",)
    assert table.select([]).shape == (N, 0)
    assert len(table.select([]).take([0, 1, 1])) == 3
    with pytest.raises(StakesError, match=r"no column 'Heat'; there are heat, kind. Did you mean 'heat'\?"):
        table.select(["Heat"])
    with pytest.raises(StakesError, match="no column 'x'"):
        table.drop(["x"])


def test_it_cannot_be_changed(rng):
    table = frame(rng)
    with pytest.raises(ValueError, match="read-only"):
        table.column(0)[0] = 1.0
    with pytest.raises(AttributeError):
        table.names = ()


def test_columns_must_fit():
    with pytest.raises(StakesError, match=r"'a' must hold 3 values; got shape \[2\]"):
        Frame(("a",), (np.zeros(2),), 3)
    with pytest.raises(StakesError, match="a name of its own"):
        Frame(("a", "a"), (np.zeros(2), np.zeros(2)), 2)
    with pytest.raises(IndexError):
        Frame((), (), 2).take([2])


def test_the_encoder_takes_it(rng):
    encoded = TableEncoder().fit(frame(rng)).transform(frame(rng))
    assert encoded.shape == (N, 2 + 3)  # heat and its gaps; acid, base, missing
    assert np.isfinite(encoded).all()


@pytest.mark.parametrize("task", ["real", "classes"])
def test_default_and_rank_take_it(rng, task):
    table = frame(rng)
    labels = rng.normal(size=10) if task == "real" else ["bus", "van"] * 5
    loss = stakes.SquaredError() if task == "real" else stakes.LogLoss()
    model = default(table.take(range(10)), labels, pool=table)
    ranking = stakes.rank(model, loss, table.take(range(10, N)), n=3)
    assert len(set(ranking.indices)) == 3
    assert "heat" in " ".join(model.report)


def test_a_frame_ranks_as_the_array_of_its_numbers_does(rng):
    rows = rng.normal(size=(N, 2))
    table = Frame(("a", "b"), (rows[:, 0], rows[:, 1]), N)
    labels = rows[:10, 0] + 0.1 * rng.normal(size=10)
    rankings = [
        stakes.rank(default(each[0], labels, pool=each[1]), stakes.SquaredError(), each[1], n=5)
        for each in [(table.take(range(10)), table), (rows[:10], rows)]
    ]
    assert list(rankings[0].indices) == list(rankings[1].indices)
    np.testing.assert_array_equal(rankings[0].scores, rankings[1].scores)


def test_simulate_takes_it(rng):
    table = frame(rng)
    labels = np.nan_to_num(table.column(0)) + 0.1 * rng.normal(size=N)
    result = stakes.simulate(
        DefaultModel(task="real"), stakes.Linex(0.5), table, labels, strategies=("random", "loss"), n=2, runs=2
    )
    assert result.acquired.shape == (2, 2, 2)


def test_gaps_reach_an_encoder_before_a_model_that_takes_none(rng):
    table = frame(rng)
    model = make_pipeline(TableEncoder(), BayesianRidge()).fit(table, rng.normal(size=N))
    assert len(stakes.rank(model, stakes.SquaredError(), table, n=2).indices) == 2
