"""All rows of a table in the order in which to label them."""

import numpy as np
import pytest

import stakes.tabular.suggestions
from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, ModelSpec, read_worksheet, suggest
from stakes.tabular.suggestions import order_rows


@pytest.fixture
def sheet(tmp_path):
    """40 rows with 10 labels, in columns that differ in how much they tell."""
    rng = np.random.default_rng(0)
    rows = [
        f"r{i},{x:.3f},{z:.3f},{1 + i % 4},{'' if i >= 10 else f'{2 * x + z:.3f}'}"
        for i, (x, z) in enumerate(rng.normal(size=(40, 2)))
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,x,z,price,y", *rows]) + "\n")

    def read(**rest):
        brief = Brief("y", LossSpec("squared-error"), ModelSpec("bayesian-ridge"), id_column="id", **rest)
        return read_worksheet(tmp_path / "t.csv", brief)

    return read


@pytest.mark.parametrize("given", [{}, {"cost_column": "price"}, {"ignore": ("price",)}])
def test_every_open_row_comes_once_and_the_first_are_those_that_are_suggested(sheet, given):
    made = sheet(**given)
    order, guesses = order_rows(made, labels=made.labels)
    assert sorted(order) == list(range(10, 40))
    assert guesses == {}
    assert order[:8] == suggest(made, 8)[0].indices


def test_after_the_first_rows_come_by_what_they_are_worth_alone(sheet):
    from stakes.ranking import rank
    from stakes.tabular.suggestions import fitted

    made = sheet(ignore=("price",))
    order, _ = order_rows(made, labels=made.labels)
    model, loss, _, _ = fitted(made, made.labels, range(10, 40))
    alone = [10 + place for place in rank(model, loss, made.features.take(range(10, 40)), n=30, batch=False).indices]
    assert list(order[8:]) == [row for row in alone if row not in order[:8]]


def test_rows_on_their_way_and_left_out_do_not_come(sheet):
    made = sheet()
    order, _ = order_rows(made, labels=made.labels, pending=[10, 11], excluded=[12])
    assert sorted(order) == list(range(13, 40))
    assert order_rows(made, labels=made.labels, excluded=range(10, 40)) == ((), {})


def test_beyond_a_number_rows_stand_as_in_the_table(sheet, monkeypatch):
    monkeypatch.setattr(stakes.tabular.suggestions, "_ORDERED", 10)
    made = sheet()
    order, _ = order_rows(made, labels=made.labels)
    rest = order[-(30 - len({*order[:18]})) :]
    assert len(order) == 30
    assert list(rest) == sorted(rest)


def test_guesses_are_predictions_by_row(sheet):
    made = sheet(ignore=("price",))
    order, guesses = order_rows(made, labels=made.labels, guess=True)
    x, z = made.features.column(0), made.features.column(1)
    assert set(guesses) == set(order)
    assert max(abs(float(guesses[row]) - (2 * x[row] + z[row])) for row in order) < 0.01


def test_without_labels_rows_are_spread(sheet, monkeypatch):
    monkeypatch.setattr(stakes.tabular.suggestions, "_APART", 5)
    made = sheet()
    order, guesses = order_rows(made, labels={}, guess=True)
    assert sorted(order) == list(range(40))
    assert list(order[5:]) == sorted(order[5:])
    assert guesses == {}


def test_a_model_that_answers_nothing_tells_no_guess(sheet, monkeypatch):
    made = sheet()
    model, loss, classes, notes = stakes.tabular.suggestions.fitted(made, made.labels, range(10, 40))

    class Silent:
        def belief(self, *arguments, **more):
            from stakes.models import belief_of

            return belief_of(model, *arguments, **more)

    monkeypatch.setattr(stakes.tabular.suggestions, "fitted", lambda *_: (model, loss, classes, notes))
    assert order_rows(made, labels=made.labels)[1] == {}
    with pytest.raises(StakesError, match="it tells no guess"):
        stakes.tabular.suggestions._guesses(made, Silent(), [10])
