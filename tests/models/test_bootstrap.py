"""Bootstrap is an estimator as scikit-learn has them, and an ensemble of any other."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from stakes import LogLoss, SquaredError, score
from stakes.models import Bootstrap, EnsembleOf, belief_of
from stakes.models.bootstrap import resampled

ROWS = np.random.default_rng(0).normal(size=(60, 3))
NUMBERS = ROWS[:, 0] + 0.1 * np.random.default_rng(1).normal(size=60)
LABELS = np.where(NUMBERS > 0.8, "high", np.where(NUMBERS > 0, "middle", "low"))


@parametrize_with_checks([Bootstrap(each, 3, random_state=0) for each in (DecisionTreeClassifier(), Ridge())])
@pytest.mark.filterwarnings("ignore")  # scikit-learn's own checks warn
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_it_is_what_its_estimator_is():
    assert is_classifier(Bootstrap(LogisticRegression()))
    assert is_regressor(Bootstrap(Ridge()))
    assert not hasattr(Bootstrap(Ridge()), "predict_proba")
    assert clone(Bootstrap(Ridge(alpha=3.0), 7)).get_params()["estimator__alpha"] == 3.0
    search = GridSearchCV(Bootstrap(Ridge(), 3), {"estimator__alpha": [1.0, 1e4]}, cv=3).fit(ROWS, NUMBERS)
    assert search.best_params_ == {"estimator__alpha": 1.0}
    assert (
        np.mean(cross_val_score(make_pipeline(StandardScaler(), Bootstrap(LogisticRegression(), 3)), ROWS, LABELS))
        > 0.6
    )


def test_one_seed_gives_one_model_whatever_the_workers():
    fits = [
        Bootstrap(DecisionTreeRegressor(max_features=1), 4, random_state=3, n_jobs=jobs).fit(ROWS, NUMBERS)
        for jobs in (1, 1, 2)
    ]
    for each in fits[1:]:
        np.testing.assert_array_equal(each.predict(ROWS), fits[0].predict(ROWS))
        assert each.noise_sd_ == fits[0].noise_sd_
    seeds = {member.random_state for member in fits[0].estimators_}
    assert len(seeds) == 4
    other = Bootstrap(DecisionTreeRegressor(max_features=1), 4, random_state=4).fit(ROWS, NUMBERS)
    assert np.any(other.predict(ROWS) != fits[0].predict(ROWS))


def test_every_class_keeps_a_row():
    codes = np.array([0] * 30 + [1] * 2 + [2, 3, 4])
    random_state = np.random.RandomState(0)
    samples = np.stack([resampled(codes, random_state) for _ in range(300)])
    assert samples.shape == (300, 35)
    for sample in samples:
        assert set(codes[sample]) == {0, 1, 2, 3, 4}
    # A plain bootstrap holds a row once on average; what was missing, with chance 1/e, is put back once.
    assert abs(np.mean(np.sum(samples == 34, axis=1)) - (1.0 + np.exp(-1.0))) < 0.2
    np.testing.assert_array_equal(np.sort(resampled(np.arange(5), random_state)), np.arange(5))  # one row a class


def test_members_that_differ_are_fitted_to_all_classes():
    model = Bootstrap(LogisticRegression(), 30, random_state=0).fit(ROWS[:6], ["a", "a", "a", "a", "a", "b"])
    assert all(list(member.classes_) == ["a", "b"] for member in model.estimators_)


@pytest.mark.parametrize("count", [1, 5])
def test_one_class_so_far(count):
    model = Bootstrap(LogisticRegression(), 3).fit(ROWS[:count], ["b"] * count)
    belief = belief_of(model, ROWS[:10], ROWS[10:], classes=["a", "b"])
    np.testing.assert_array_equal(score(LogLoss(), belief), 0.0)
    assert set(model.predict(ROWS)) == {"b"}


def test_one_number_so_far():
    model = Bootstrap(LinearRegression(), 3).fit(ROWS[:1], [2.0])
    np.testing.assert_allclose(model.predict(ROWS), 2.0)
    assert np.isnan(model.noise_sd_)
    with pytest.raises(ValueError, match=r"noise_sd.*positive and finite; got .*nan"):
        belief_of(model, ROWS[:10], ROWS[10:])
    for known in (Bootstrap(LinearRegression(), 3, noise_sd=0.5).fit(ROWS[:1], [2.0]), EnsembleOf(model, noise_sd=0.5)):
        np.testing.assert_allclose(score(SquaredError(), belief_of(known, ROWS[:10], ROWS[10:])), 0.0, atol=1e-14)


def test_noise_of_a_line():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(300, 2))
    labels = rows @ [1.0, -2.0] + 0.7 * rng.normal(size=300)
    model = Bootstrap(LinearRegression(), 20, random_state=0).fit(rows, labels)
    assert abs(model.noise_sd_ - 0.7) < 0.06


@pytest.mark.parametrize("members", [0, 2.5, "many"])
def test_members_must_be_a_number_of_them(members):
    with pytest.raises(ValueError, match="members must be a whole number"):
        Bootstrap(Ridge(), members).fit(ROWS, NUMBERS)
