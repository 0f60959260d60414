"""Tables with a target: what is read, how much is looked at, and what is said."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge

from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, ModelSpec, appraise, read_worksheet
from stakes.tabular.fitting import chosen_model
from stakes.tabular.suggest import Effort, effort, looked_at, reached


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
    found = appraise(made, made.labels, 6, pending=[6, 7], excluded=[8])
    assert sorted(found.ranking.row_ids) == ["r10", "r11", "r9"]
    assert (found.n_labels, found.n_pool) == (6, 5)
    assert any("2 labels that are on their way" in sentence for sentence in found.said)


def test_nothing_to_choose_is_refused(sheet):
    made = sheet()
    with pytest.raises(ValueError, match="there is none to choose"):
        appraise(made, made.labels, 1, pending=range(6, 12))


def test_a_positive_loss_has_a_model_that_knows_it(sheet):
    made = sheet("itakura-saito")
    assert chosen_model(made)[0].name == "log-gaussian-process"
    assert any("is about positive numbers" in sentence for sentence in appraise(made, made.labels, 1).said)


def test_a_zero_that_no_model_learns_from_is_told(sheet):
    made = sheet("poisson-deviance")
    with pytest.raises(StakesError, match="1 of 6 labels are 0"):
        appraise(made, {**made.labels, 0: "0"}, 1)


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
    "wrong", [{"budget": 0}, {"decisions": -1}, {"seed": -1}, {"ignore": ("y",)}, {"id_column": "y"}]
)
def test_a_brief_that_cannot_be_is_refused(wrong):
    with pytest.raises(StakesError):
        Brief("y", LossSpec("squared-error"), **wrong)


def test_a_budget_reaches_for_the_first_rows(sheet):
    made = sheet(cost_column="price")
    assert reached(made, [0, 1, 2], 3.0) == [0, 1]
    assert reached(made, [0, 1, 2], None) == [0, 1, 2]
    assert reached(sheet(label_cost=0.1), [0, 1, 2], 0.3) == [0, 1, 2]


SIZES = st.integers(1, 10_000_000)


@given(size=SIZES, n=st.integers(1, 200), classes=st.none() | st.integers(2, 50))
def test_effort_is_bounded(size, n, classes):
    found, width = effort(size, n, classes), (classes or 1) ** 2
    assert 1 <= found.contexts <= found.rows <= size
    assert found.rows * found.contexts * width <= 50_000_000 + 250 * 250 * width
    assert found.shortlist is None or max(n, 20) <= found.shortlist < 100


@given(size=st.integers(1, 300), n=st.integers(1, 8), classes=st.none() | st.integers(2, 3))
def test_a_table_of_a_few_hundred_rows_is_seen_as_rank_sees_it(size, n, classes):
    assert effort(size, n, classes) == Effort(size, size, None)


@given(
    size=st.integers(1, 300),
    rows=st.integers(1, 300),
    keep=st.sets(st.integers(0, 299), max_size=5),
    seed=st.integers(0, 9),
)
def test_rows_drawn_are_of_the_pool_in_order_with_those_to_keep(size, rows, keep, seed):
    pool = list(range(0, 2 * size, 2))
    kept = {row for row in keep if row in pool}
    seen, said = looked_at(pool, kept, rows, seed)
    assert seen == sorted(seen)
    assert kept <= set(seen) <= set(pool)
    assert min(rows, size) <= len(seen) <= min(rows, size) + len(kept)
    assert bool(said) == (rows < size)


def test_warnings_of_a_model_are_told_among_the_assumptions(sheet, monkeypatch):
    made, fit = sheet(model=ModelSpec("bayesian-ridge")), BayesianRidge.fit

    def warned(self, *rest, **more):
        warnings.warn("rows are few", UserWarning, stacklevel=2)
        return fit(self, *rest, **more)

    monkeypatch.setattr(BayesianRidge, "fit", warned)
    assert "While fitting: rows are few" in appraise(made, made.labels, 1).said


def test_what_a_model_refuses_is_said_to_be_that(sheet):
    made = sheet(model=ModelSpec("random-forest", {"n_estimators": -4}))
    with pytest.raises(StakesError, match="the model random-forest cannot be used with 6 labels: The 'n_estimators'"):
        appraise(made, made.labels, 1)
