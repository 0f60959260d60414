"""CatBoost's virtual ensembles as members; make integrations installs what these tests need."""

import numpy as np
import pytest

catboost = pytest.importorskip("catboost", reason="catboost is not installed: make integrations tries it")

from sklearn.base import clone  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from stakes import LogLoss, SquaredError, rank  # noqa: E402
from stakes.exceptions import StakesError  # noqa: E402
from stakes.models import belief_of  # noqa: E402
from stakes.models.virtual_ensembles import VirtualEnsemble  # noqa: E402
from stakes.tabular import ModelSpec, build_model  # noqa: E402

ROWS = np.random.default_rng(0).normal(size=(120, 3))
NUMBERS = ROWS[:, 0] + 0.3 * np.random.default_rng(1).normal(size=120)
TWO = np.where(NUMBERS > 0, "good", "bad")
THREE = np.where(NUMBERS > 0.8, "high", np.where(NUMBERS > 0, "middle", "low"))
QUIET = {"iterations": 80, "verbose": False, "allow_writing_files": False, "thread_count": 1}


@pytest.mark.parametrize("labels", [TWO, THREE], ids=["two", "three"])
def test_probabilities_are_those_of_the_members(labels):
    model = catboost.CatBoostClassifier(posterior_sampling=True, **QUIET).fit(ROWS[:80], labels[:80])
    belief = belief_of(model, ROWS[80:90], ROWS[90:])
    classes = len(set(labels))
    assert belief.candidates.shape == (10, 20, classes)
    raw = model.virtual_ensembles_predict(ROWS[80:90], prediction_type="VirtEnsembles", virtual_ensembles_count=20)
    if classes == 2:
        np.testing.assert_allclose(belief.candidates[..., 1], 1.0 / (1.0 + np.exp(-raw[..., 0])), rtol=1e-6)
    else:
        odds = np.exp(raw)
        np.testing.assert_allclose(belief.candidates, odds / odds.sum(axis=2, keepdims=True), rtol=1e-6)
    reordered = belief_of(model, ROWS[80:90], ROWS[90:], classes=sorted(set(labels), reverse=True))
    np.testing.assert_array_equal(reordered.candidates, belief.candidates[..., ::-1])


def test_one_that_does_not_sample_is_shown_what_to_do():
    model = catboost.CatBoostClassifier(**QUIET).fit(ROWS[:80], TWO[:80])
    with pytest.raises(TypeError, match=r"posterior_sampling=True.*labelled=\(X, y\)"):
        rank(model, LogLoss(), ROWS[80:])
    sampled = catboost.CatBoostRegressor(posterior_sampling=True, **QUIET).fit(ROWS[:80], NUMBERS[:80])
    with pytest.raises(StakesError, match=r"RMSEWithUncertainty.*labelled=\(X, y\)"):
        rank(sampled, SquaredError(), ROWS[80:])


def test_numbers_have_the_noise_of_held_out_rows():
    model = VirtualEnsemble(catboost.CatBoostRegressor(**QUIET)).fit(ROWS, NUMBERS)
    assert 0.15 < float(model.noise_sd_) < 0.7  # 0.3 in truth
    belief = belief_of(model, ROWS[:5], ROWS[5:])
    np.testing.assert_array_equal(belief.candidate_sd, model.noise_sd_)
    np.testing.assert_array_equal(belief_of(model, ROWS[:5], ROWS[5:], target="latent").context_sd, 0.0)
    assert model.predict(ROWS).shape == (120,)
    with pytest.raises(StakesError, match="noise_sd"):
        belief_of(VirtualEnsemble(catboost.CatBoostRegressor(**QUIET)).fit(ROWS[:2], NUMBERS[:2]), ROWS, ROWS)


def test_its_own_noise_where_the_loss_function_has_it():
    options = {**QUIET, "loss_function": "RMSEWithUncertainty", "posterior_sampling": True}
    model = catboost.CatBoostRegressor(**options).fit(ROWS, NUMBERS)
    belief = belief_of(model, ROWS[:5], ROWS[5:])
    raw = model.virtual_ensembles_predict(ROWS[:5], prediction_type="VirtEnsembles", virtual_ensembles_count=20)
    np.testing.assert_allclose(belief.candidate_sd, np.sqrt(raw[..., 1]))


def test_it_is_an_estimator():
    model = VirtualEnsemble(catboost.CatBoostClassifier(**QUIET), members=5, random_state=3)
    again = clone(model).fit(ROWS[:80], THREE[:80])
    assert again.predict_proba(ROWS).shape == (120, 3)
    assert set(again.predict(ROWS)) <= set(THREE)
    assert "5 virtual ensembles" in again.report_[0]
    gaps = ROWS[80:].copy()
    gaps[0, 0] = np.nan
    assert len(rank(again, LogLoss(), gaps, n=3)) == 3


def test_by_name():
    model = build_model(ModelSpec("catboost:CatBoostClassifier", QUIET), "classes")
    assert isinstance(model[-1], VirtualEnsemble)


def test_fewer_members_where_trees_are_few():
    few = {**QUIET, "iterations": 12}
    model = VirtualEnsemble(catboost.CatBoostClassifier(**few)).fit(ROWS[:80], TWO[:80])
    assert "6 virtual ensembles" in model.report_[0]
    assert belief_of(model, ROWS[:5], ROWS[5:]).candidates.shape == (5, 6, 2)
    fewest = catboost.CatBoostClassifier(**{**QUIET, "iterations": 2})
    with pytest.raises(StakesError, match=r"has 2: raise `iterations`, or give Bootstrap\(model\)"):
        rank(fewest, LogLoss(), ROWS[80:], labelled=(ROWS[:80], TWO[:80]))


def test_at_the_end_of_a_pipeline_that_is_fitted():
    model = make_pipeline(StandardScaler(), catboost.CatBoostClassifier(**QUIET)).fit(ROWS[:80], TWO[:80])
    assert len(rank(model, LogLoss(), ROWS[80:], labelled=(ROWS[:80], TWO[:80]), n=3)) == 3
