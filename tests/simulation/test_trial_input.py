"""What a trial is refused for, and the messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import CostMatrix, ItakuraSaito, LogLoss
from stakes.simulation import Trial
from tests.simulation.simulation_cases import BayesianLine, Committee, class_data
from tests.simulation.trial_cases import noisy_line, per_class, trials

X, Y = np.eye(6), np.arange(6.0)
PARTS = {"initial": [0], "pool": [1, 2], "contexts": [3], "test": [4, 5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"initial": []}, "initial must hold at least one row; got none"),
        ({"contexts": []}, "contexts must hold at least one row"),
        ({"test": [6]}, "test must hold positions from 0 to 5, of the 6 rows of X; got 6"),
        ({"pool": [-1]}, "pool must hold positions from 0 to 5, .* got -1"),
        ({"pool": [1, 0]}, "initial and pool must hold a row once, .* there is row 0"),
        ({"pool": [1, 2, 2, 1]}, "initial and pool must hold a row once, .* there are rows 1, 2"),
    ],
)
def test_bad_positions(change, message):
    with pytest.raises(ValueError, match=message):
        Trial(X, Y, **{**PARTS, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": [4.0, 5.0]}, r"test must be a list of positions of rows; got shape \[2\] of float64\.$"),
        ({"pool": np.arange(6) > 3}, r"pool must be a list of positions .* of bool\. Give np.flatnonzero\(mask\)"),
        ({"contexts": 3}, r"contexts must be a list of positions of rows; got shape \[\]"),
    ],
)
def test_what_is_no_position(change, message):
    with pytest.raises(TypeError, match=message):
        Trial(X, Y, **{**PARTS, **change})


def test_x_must_have_rows():
    with pytest.raises(TypeError, match=r"X must have rows and columns, \[n, p\]; got 3"):
        Trial(3, Y, **PARTS)


def test_rows_are_positions_of_a_kind_and_may_share_contexts_and_tests():
    trial = Trial(X, Y, [0], range(1, 3), contexts=[4, 5, 5], test=[4, 5, 5])
    assert all(getattr(trial, name).dtype == np.intp for name in PARTS)
    assert trial.labelled.tolist() == [0, 1, 2, 4, 5]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.lists(st.integers(0, 5), max_size=4))
def test_a_label_is_had_once(initial, pool):
    if len({*initial, *pool}) == len(initial) + len(pool):
        trial = Trial(X, Y, initial, pool, [3], [4, 5])
        assert (trial.initial.tolist(), trial.pool.tolist()) == (initial, pool)
        assert set(trial.labelled) == {*initial, *pool, 4, 5}
    else:
        with pytest.raises(ValueError, match="must hold a row once"):
            Trial(X, Y, initial, pool, [3], [4, 5])


def changed(**changes):
    """The noisy line with another y at some rows."""

    def trial(rng):
        found = noisy_line(rng)
        y = found.y.copy()
        for row, value in changes.items():
            y[int(row[1:])] = value
        return Trial(found.X, y, found.initial, found.pool, found.contexts, found.test)

    return trial


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (changed(y5=np.nan), "y must be known for every row of initial, pool and test; it is missing in row 5"),
        (changed(y20=np.nan, y0=np.nan), "it is missing in rows 0, 20. Drop those rows"),
        (changed(y1=np.inf), "y must be finite; it is not in row 1"),
        (
            lambda rng: Trial(X, Y[1:], **{**PARTS, "pool": [1, 2, 3]}),
            r"one label for each of the 6 rows of X; got \[5\]",
        ),
        (lambda rng: Trial(X, Y, **PARTS), "must hold n = 3 labels; that of the trial has 2 rows"),
        (lambda rng: Trial(X * np.nan, Y, **{**PARTS, "pool": [1, 2, 3]}), "X must hold finite numbers"),
    ],
)
def test_bad_trials_are_refused_before_the_first_fit_and_the_run_is_named(trial, message):
    class Unfit(BayesianLine):
        def fit(self, X, y):
            raise AssertionError("fitted")

    drawn = iter([noisy_line, trial])
    with pytest.raises(ValueError, match=message) as caught:
        trials(lambda rng: next(drawn)(rng), model=Unfit())
    assert caught.value.__notes__ == ["This was in the trial of run 1."]


def test_labels_that_nobody_looks_at_may_be_anything():
    assert np.isfinite(trials(changed(y9=np.inf)).losses["loss"]).all()
    with pytest.raises(ValueError, match=r"y must lie in \(0, inf\)"):
        trials(loss=ItakuraSaito())


def test_what_is_no_trial():
    with pytest.raises(TypeError, match=r"returns a Trial; it returned \(1, 2\)"):
        trials(lambda rng: (1, 2))
    with pytest.raises(TypeError, match="trial must be a function of a generator"):
        trials(noisy_line(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be a whole number, 1 or more; got 0"),
        ({"runs": 1.5}, ValueError, "runs must be a whole number, 1 or more; got 1.5"),
        ({"random_state": -1}, ValueError, "random_state must be 0 or more; got -1"),
        ({"model": object()}, TypeError, "model must be an estimator that can be cloned"),
        ({"loss": "squared"}, TypeError, "loss must be a loss such as"),
        ({"reseed": 0}, TypeError, "reseed must be True"),
        ({"classes": [0, 1]}, ValueError, "classes are for losses about classes"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        trials(**arguments)


def test_classes_of_the_first_trial_are_those_of_all():
    rows, names = class_data()
    few = names == "a"
    model = Committee(classes=("a", "b", "c"))

    def second_has_more(rng):
        trial = per_class(rng)
        pool = trial.pool[few[trial.pool]] if next(runs) == 0 else trial.pool
        kept = [each[few[each]] for each in (trial.initial, trial.contexts, trial.test)]
        return Trial(rows, names, kept[0], pool, kept[1], kept[2])

    runs = iter(range(4))
    with pytest.raises(ValueError, match=r"y must be among the classes \('a',\); 'b', 'c' is not"):
        trials(second_has_more, loss=LogLoss(), model=model)
    found = trials(second_has_more, loss=LogLoss(), model=model, classes=["a", "b", "c"], runs=2)
    assert found.classes == ("a", "b", "c")
    with pytest.raises(ValueError, match="the loss is about 2 classes, but there are 3"):
        trials(per_class, loss=CostMatrix([[0, 1], [1, 0]]), model=model)
