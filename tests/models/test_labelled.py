"""Any estimator has a belief, by the rows and labels that it was fitted to."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from stakes import LogLoss, SquaredError, outlook, rank
from stakes.exceptions import StakesError
from stakes.models import Bootstrap, EnsembleOf, out_of_bag_noise
from stakes.models.bootstrap import takes_weights
from stakes.models.labelled import ready_to_fit, with_belief

ROWS = np.random.default_rng(0).normal(size=(90, 3))
NUMBERS = ROWS[:, 0] + 0.1 * np.random.default_rng(1).normal(size=90)
LABELS = np.where(NUMBERS > 0.8, "high", np.where(NUMBERS > 0, "middle", "low"))
KNOWN = ROWS[:40], LABELS[:40]
MEASURED = ROWS[:40], NUMBERS[:40]


def test_the_ensemble_is_that_of_bootstrap():
    model = LogisticRegression().fit(*KNOWN)
    found = rank(model, LogLoss(), ROWS[40:], n=4, labelled=KNOWN, random_state=3)
    wanted = rank(
        Bootstrap(LogisticRegression(), random_state=3).fit(*KNOWN), LogLoss(), ROWS[40:], n=4, random_state=3
    )
    assert (found.indices, found.scores) == (wanted.indices, wanted.scores)
    assert any("20 copies of LogisticRegression" in str(note) for note in found.notes)


@pytest.mark.parametrize(
    "model", [LogisticRegression().fit(*KNOWN), make_pipeline(StandardScaler(), SVC()).fit(*KNOWN)]
)
def test_without_labelled_rows_the_line_to_write_is_given(model):
    with pytest.raises(TypeError, match=r"rank\(model, loss, pool, labelled=\(X, y\)\)"):
        rank(model, LogLoss(), ROWS[40:])


def test_a_forest_without_its_noise_is_shown_the_line():
    with pytest.raises(StakesError, match=r"rank\(model, loss, pool, labelled=\(X, y\)\)"):
        rank(RandomForestRegressor(10, random_state=0).fit(*MEASURED), SquaredError(), ROWS[40:])


def test_a_model_with_a_belief_is_used_as_it_is():
    forest = RandomForestClassifier(20, random_state=0).fit(ROWS[:60], LABELS[:60])
    found, notes = with_belief(forest, KNOWN)
    assert found is forest
    assert notes == ()


def test_a_model_that_was_not_fitted_is_fitted_and_left_as_it_was():
    model = RandomForestClassifier(20)
    found = rank(model, LogLoss(), ROWS[40:], n=3, labelled=KNOWN)
    assert not hasattr(model, "estimators_")
    assert found.scores == rank(model, LogLoss(), ROWS[40:], n=3, labelled=KNOWN).scores  # seeded by the random state
    fitted = RandomForestClassifier(20, random_state=0).fit(*KNOWN)
    assert found.scores == rank(fitted, LogLoss(), ROWS[40:], n=3).scores
    assert any("was not fitted" in str(note) for note in found.notes)


def test_noise_of_a_forest_is_from_the_labelled_rows():
    forest = RandomForestRegressor(60, random_state=0).fit(*MEASURED)
    found, _ = with_belief(forest, MEASURED)
    assert isinstance(found, EnsembleOf)
    assert found.members is forest
    assert found.noise_sd == out_of_bag_noise(forest, *MEASURED)
    other, notes = with_belief(forest, (ROWS[:50], NUMBERS[:50]))
    assert other.members is not forest
    assert "other rows" in notes[0]
    grown, notes = with_belief(ExtraTreesRegressor(60, random_state=0).fit(*MEASURED), MEASURED)
    assert grown.members.bootstrap
    assert "share all rows" in notes[0]
    pipeline, _ = with_belief(make_pipeline(StandardScaler(), RandomForestRegressor(60, random_state=0)), MEASURED)
    assert 0.05 < float(pipeline.noise_sd) < 0.5


def test_a_bayesian_line_is_given_the_number_of_its_labels():
    model = BayesianRidge().fit(*MEASURED)
    found = rank(model, SquaredError(), ROWS[40:], n=2, labelled=MEASURED)
    assert not hasattr(model, "n_samples_seen_")
    model.n_samples_seen_ = 40
    assert found.scores == rank(model, SquaredError(), ROWS[40:], n=2).scores


def test_steps_of_a_pipeline_before_the_last_are_fitted_once():
    table = pd.DataFrame({"x": ROWS[:, 0], "kind": ["rare" if i == 7 else "abc"[i % 3] for i in range(90)]})
    columns = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")  # refuses what is new to it
    model = make_pipeline(columns, LogisticRegression()).fit(table[:40], LABELS[:40])
    found = rank(model, LogLoss(), table[40:], n=3, labelled=(table[:40], LABELS[:40]))
    assert len(found) == 3
    assert found.row_ids == tuple(40 + row for row in found.indices)
    made, _ = with_belief(model, (table[:40], LABELS[:40]))
    assert made[:-1].steps == model[:-1].steps
    with pytest.raises(ValueError, match="unknown categories"):  # what would be without
        Bootstrap(model, random_state=0).fit(table[:40], LABELS[:40]).predict(table[:40])


def test_a_search_is_done_once():
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [0.1, 9.0]})
    made, notes = with_belief(search, KNOWN)
    assert isinstance(made[-1], Bootstrap)
    assert made[-1].estimator.C in (0.1, 9.0)
    assert "GridSearchCV was not fitted" in notes[0]
    forest = GridSearchCV(RandomForestClassifier(10, random_state=0), {"max_depth": [2, 3]}).fit(*KNOWN)
    assert with_belief(forest, KNOWN)[0] is forest


def test_warnings_of_fits_are_notes_and_reported_once():
    with pytest.warns(ConvergenceWarning):
        LogisticRegression(max_iter=1).fit(*KNOWN)
    found = rank(LogisticRegression(max_iter=1), LogLoss(), ROWS[40:], n=2, labelled=KNOWN)
    assert sum("While fitting: lbfgs failed to converge" in str(note) for note in found.notes) == 1


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        (LogisticRegression(), True),
        (KNeighborsClassifier(), False),
        (make_pipeline(StandardScaler(), Ridge()), False),
    ],
)
def test_weights_where_all_parts_take_them(model, weights):
    from sklearn.calibration import CalibratedClassifierCV

    assert takes_weights(model) is weights
    assert takes_weights(CalibratedClassifierCV(model)) is weights


def test_weights_are_how_often_rows_were_drawn():
    model = Bootstrap(Ridge(), 5, random_state=0).fit(*MEASURED)
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        again = Ridge().fit(ROWS[rows], NUMBERS[rows])
        np.testing.assert_allclose(member.coef_, again.coef_, rtol=1e-9)


def test_folds_of_an_estimator_find_every_class():
    """By weights all rows are there; rows drawn anew leave too few of a class with four rows."""
    from sklearn.calibration import CalibratedClassifierCV

    labels = np.asarray(["a"] * 36 + ["b"] * 4)
    found = rank(CalibratedClassifierCV(LogisticRegression(), cv=4), LogLoss(), ROWS[40:], labelled=(ROWS[:40], labels))
    assert len(found) == 10


@pytest.mark.parametrize(
    ("labelled", "message"),
    [
        (ROWS[:40], "a pair"),
        ((ROWS[:40], LABELS[:39]), "a label for each row"),
        ((ROWS[:3], [1.0, None, 2.0]), "takes y with gaps"),
        ((ROWS[:3], [1.0, np.nan, 2.0]), "missing in 1 row, the first at 1"),
    ],
)
def test_what_cannot_be_labelled_rows_is_refused(labelled, message):
    with pytest.raises(StakesError, match=message):
        rank(Ridge(), SquaredError(), ROWS[40:], labelled=labelled)


def test_other_columns_than_the_labelled_rows_have():
    with pytest.raises(StakesError, match="2 columns"):
        rank(Ridge(), SquaredError(), ROWS[40:], labelled=(ROWS[:40, :2], NUMBERS[:40]))


def test_a_copy_that_cannot_be_fitted_is_named():
    with pytest.raises(StakesError, match="copies of CannotBe could not be fitted to the 40 labelled rows"):
        rank(CannotBe(), SquaredError(), ROWS[40:], labelled=MEASURED)


class CannotBe(Ridge):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("no")


def test_outlook_takes_them_too():
    ahead = outlook(LogisticRegression(), LogLoss(), ROWS[40:], n=2, labelled=KNOWN, costs=0.001, decisions=100)
    assert ahead.advice in ("go on", "stop", "unclear")


def test_estimators_that_are_fitted_later():
    assert isinstance(ready_to_fit(LogisticRegression(), 0), Bootstrap)
    forest = ready_to_fit(RandomForestRegressor(5), 0)
    assert forest.oob_score
    assert ready_to_fit(BayesianRidge(), 0).__class__ is BayesianRidge
    assert isinstance(ready_to_fit(make_pipeline(StandardScaler(), SVC()), 0)[-1], Bootstrap)
    assert isinstance(ready_to_fit(RandomForestRegressor(5, criterion="absolute_error"), 0), Bootstrap)
    with pytest.raises(TypeError, match="neither a classifier nor a regressor"):
        ready_to_fit(StandardScaler(), 0)


def test_progress_is_reported_for_each_stage():
    """True shows lines on the error stream, once they take long (tests/_utils/test_arguments.py)."""
    seen = []
    for progress in (lambda what, share: seen.append(what), True):
        rank(LogisticRegression(), LogLoss(), ROWS[40:], labelled=KNOWN, n=2, progress=progress)
    assert "choosing rows together" in seen


def test_a_model_that_is_not_fitted_is_given_the_line_to_write():
    with pytest.raises(NotFittedError, match=r"RandomForestClassifier is not fitted yet.*labelled=\(X, y\)"):
        rank(RandomForestClassifier(), LogLoss(), ROWS)


def test_columns_of_text_are_named_where_a_fit_fails():
    table = pd.DataFrame({"x": ROWS[:, 0], "town": np.where(ROWS[:, 1] > 0, "A", "B")})
    with pytest.raises(StakesError, match=r"Columns of text must be encoded \(town\): make_pipeline\("):
        rank(LogisticRegression(), LogLoss(), table[40:], labelled=(table[:40], LABELS[:40]))
