"""Tables with a target: what is read, and what is said."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

import stakes.tabular.suggestions
from stakes import AbsoluteError
from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, ModelSpec, build_problem, read_worksheet, suggest
from stakes.tabular.suggestions import chosen_model, fitted


@pytest.fixture
def sheet(tmp_path):
    """Of 12 rows with 6 labels, as some brief has it."""
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},{i + 1},{i / 2 + i % 3 + 1 if i < 6 else ''}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["id,x,z,price,y", *rows]) + "\n")

    def read(loss="squared-error", **rest):
        return read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec(loss), id_column="id", **rest))

    return read


def test_rows_left_out_and_on_their_way_are_not_chosen(sheet):
    made = sheet()
    found, _ = suggest(made, 6, pending=[6, 7], excluded=[8])
    assert sorted(found.row_ids) == ["r10", "r11", "r9"]
    assert (len(made.labels), made.n_open) == (6, 6)
    assert any("2 labels that are on their way" in str(note) for note in found.notes)


def test_nothing_to_choose_is_refused(sheet):
    made = sheet()
    with pytest.raises(ValueError, match="there is none to choose"):
        suggest(made, 1, pending=range(6, 12))


def test_a_positive_loss_has_a_model_that_knows_it(sheet):
    made = sheet("itakura-saito")
    assert chosen_model(made)[0].name == "log-gaussian-process"
    assert any("is about positive numbers" in str(note) for note in suggest(made, 1)[0].notes)


def test_a_process_that_nobody_asked_for_is_fitted_to_as_many_labels_as_seconds_allow(sheet, monkeypatch):
    """7,000 labels took it 39 seconds; what was left out is said, and a model by name gets them all."""
    monkeypatch.setattr(stakes.tabular.suggestions, "_MOST_LABELS", 4)
    made = sheet("itakura-saito")
    model, _, _, notes = fitted(made, made.labels, range(6, 12))
    assert len(model[-1].regressor_.X_) == 4
    assert any("fitted to 4 of the 6 labels, drawn with random_state 0" in str(note) for note in notes)
    again = fitted(made, made.labels, range(6, 12))[0]
    assert (again[-1].regressor_.X_ == model[-1].regressor_.X_).all()
    named = sheet("itakura-saito", model=ModelSpec("log-gaussian-process"))
    assert len(fitted(named, named.labels, range(6, 12))[0][-1].regressor_.X_) == 6
    with pytest.raises(StakesError, match="1 of 6 labels are 0"):
        fitted(made, {**made.labels, 0: "0"}, range(6, 12))


def test_a_zero_that_no_model_learns_from_is_reported(sheet):
    made = sheet("poisson-deviance", model=ModelSpec("log-gaussian-process"))
    with pytest.raises(StakesError, match=r"1 of 6 labels are 0.*count-process"):
        suggest(made, 1, labels={**made.labels, 0: "0"})


def test_counts_have_a_model_that_allows_zeros(sheet):
    made = sheet("poisson-deviance")
    assert chosen_model(made)[0].name == "count-process"
    ranking, outlook = suggest(made, 2, labels={**made.labels, 0: "0"})
    notes = " ".join(map(str, ranking.notes))
    assert "is about counts, which may be 0, so the model is count-process" in notes
    assert "Beyond Poisson's law" in notes
    assert len(ranking.row_ids) == 2
    assert outlook is not None
    assert min(ranking.scores) > 0.0


def test_costs_come_from_a_column_or_are_all_the_same(sheet):
    assert sheet(cost_column="price").costs.tolist() == list(range(1, 13))
    assert set(sheet(label_cost=2.5).costs.tolist()) == {2.5}
    assert sheet().costs is None
    with pytest.raises(StakesError, match="not both"):
        sheet(label_cost=1.0, cost_column="price")


def test_a_brief_comes_back_from_json():
    brief = Brief("y", LossSpec("linex", {"alpha": 2.0}), classes=("a", "b"), missing=("NA",), budget=3.0)
    assert Brief.from_dict(brief.to_dict()) == brief


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"decisions": -1}, {"random_state": -1}, {"ignore": ("y",)}, {"id_column": "y"}]
)
def test_a_brief_that_cannot_be_is_refused(wrong):
    with pytest.raises(StakesError):
        Brief("y", LossSpec("squared-error"), **wrong)


@pytest.mark.parametrize("known", [6, 0])
def test_three_labels_at_a_tenth_fit_into_three_tenths(sheet, known):
    made = sheet(label_cost=0.1)
    labels = {row: made.labels[row] for row in range(known)}
    assert len(suggest(made, 5, labels=labels, budget=0.3)[0]) == 3
    assert len(suggest(made, 5, labels=labels, budget=None)[0]) == 5


@pytest.mark.parametrize("known", [6, 0])
def test_an_expensive_row_is_passed_over_and_does_not_end_the_list(sheet, known):
    made = sheet(cost_column="price")
    labels = {row: made.labels[row] for row in range(known)}
    alike = replace(made, costs=np.ones(12))
    first, second = suggest(alike, 2, labels=labels)[0].indices
    costs = np.ones(12)
    costs[second] = 3.5
    found, _ = suggest(replace(made, costs=costs), 4, labels=labels, budget=4.0)
    assert len(found) == 4
    assert found.indices[0] == first
    assert second not in found.indices


def test_what_no_budget_reaches_for_is_reported(sheet):
    found, outlook = suggest(sheet(cost_column="price"), 2, labels={}, budget=0.5)
    assert (len(found), outlook) == (0, None)
    assert str(found.notes[-1]) == "The budget covers no label."


def test_the_data_of_a_simulation_are_the_rows_with_a_label(sheet):
    model, loss, features, targets, classes = build_problem(sheet("absolute-error", model=ModelSpec("bayesian-ridge")))
    assert features.names == ("x", "z", "price")
    assert targets.tolist() == [1.0, 2.5, 4.0, 2.5, 4.0, 5.5]
    assert (loss, classes) == (AbsoluteError(), None)
    assert len(model.fit(features, targets).predict(features)) == 6


def test_warnings_of_a_model_are_reported_among_the_assumptions(sheet, monkeypatch):
    made, fit = sheet(model=ModelSpec("bayesian-ridge")), BayesianRidge.fit

    def warned(self, *rest, **more):
        warnings.warn("rows are few", UserWarning, stacklevel=2)
        return fit(self, *rest, **more)

    monkeypatch.setattr(BayesianRidge, "fit", warned)
    assert "While fitting: rows are few" in map(str, suggest(made, 1)[0].notes)


def test_what_a_model_refuses_is_reported_as_that(sheet):
    made = sheet(model=ModelSpec("random-forest", {"n_estimators": -4}))
    with pytest.raises(StakesError, match="the model random-forest cannot be used with 6 labels: The 'n_estimators'"):
        suggest(made, 1)
