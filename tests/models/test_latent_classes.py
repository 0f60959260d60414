"""Gaussian process classifiers: draws of the latent function have the moments that the model says."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import CategoricalEnsemble, LogLoss, score
from stakes.models import belief_of
from stakes.models.latent_classes import latent_draws, prepare_draws
from stakes.testing import check_belief

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(90, 2))
LABELS = np.where(ROWS[:, 0] + 0.7 * RNG.normal(size=90) > 0, "yes", "no")
THREE = np.digitize(ROWS[:, 0] + 0.5 * RNG.normal(size=90), [-0.5, 0.5])
POOL, CONTEXTS = ROWS[30:50], ROWS[50:90]


def two(kernel=None):
    return GaussianProcessClassifier(kernel or 2.0 * RBF(1.0), optimizer=None).fit(ROWS[:30], LABELS[:30])


def three():
    return GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(ROWS[:30], THREE[:30])


def test_mean_probabilities_are_those_of_the_model():
    belief = prepare_draws(two(), CONTEXTS, random_state=np.random.default_rng(1), draws=40_000)(POOL)
    for table, rows in ((belief.candidates, POOL), (belief.contexts, CONTEXTS)):
        np.testing.assert_allclose(table.mean(axis=1), two().predict_proba(rows), atol=0.006)
    belief = prepare_draws(three(), CONTEXTS, random_state=np.random.default_rng(1), draws=20_000)(POOL)
    # Each draw is normalised, scikit-learn normalises the means: close, not equal.
    np.testing.assert_allclose(belief.contexts.mean(axis=1), three().predict_proba(CONTEXTS), atol=0.03)


def test_mean_probabilities_are_exact_for_two_classes():
    binary = two().base_estimator_
    draws = latent_draws(binary, CONTEXTS, 40_000, 1000, np.random.default_rng(2))
    mean, variance = binary.latent_mean_and_variance(CONTEXTS)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes) @ weights / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(expit(draws).mean(axis=1), exact, atol=0.006)  # 5 standard errors


@pytest.mark.parametrize("kernel", [2.0 * RBF(1.0), 1.5 * RBF(0.7) + WhiteKernel(0.5)])
@pytest.mark.parametrize("anchors", [1000, 30])
def test_draws_have_the_posterior_covariance(kernel, anchors):
    binary = two(kernel).base_estimator_
    draws = latent_draws(binary, CONTEXTS, 40_000, anchors, np.random.default_rng(3))
    mean, variance = binary.latent_mean_and_variance(CONTEXTS)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=0.04)
    np.testing.assert_allclose(draws.var(axis=1), variance, rtol=0.05)  # exact whatever the anchors
    inputs, weights = binary.X_train_, binary.W_sr_**2
    inner = binary.kernel_(inputs) + np.diag(1.0 / weights)
    cross = binary.kernel_(inputs, CONTEXTS)
    wanted = binary.kernel_(CONTEXTS) - cross.T @ np.linalg.solve(inner, cross)
    # Away from the diagonal: what 10 of 40 rows share beyond the other 30 is left out.
    np.testing.assert_allclose(np.cov(draws), wanted, atol=0.06 if anchors == 1000 else 0.3)
    assert np.sqrt(np.mean((np.cov(draws) - wanted) ** 2)) < 0.03


def test_candidates_and_contexts_are_drawn_together():
    belief = belief_of(two(), POOL, POOL)
    assert isinstance(belief, CategoricalEnsemble)
    assert belief.candidates.shape == (20, 100, 2)
    np.testing.assert_allclose(belief.candidates, belief.contexts, atol=1e-4)  # up to jitter
    near, far = belief_of(two(), POOL, POOL[:1] + 1e-3), belief_of(two(), POOL + 100.0, POOL[:1])
    assert score(LogLoss(), near)[0] > 5.0 * score(LogLoss(), far).mean()
    check_belief(belief)


def test_one_seed_gives_one_belief():
    beliefs = [belief_of(two(), POOL, CONTEXTS, random_state=np.random.default_rng(seed)) for seed in (4, 4, 5)]
    np.testing.assert_array_equal(beliefs[0].contexts, beliefs[1].contexts)
    assert np.any(beliefs[0].contexts != beliefs[2].contexts)


def test_classes_keep_their_columns():
    belief = belief_of(two(), POOL, CONTEXTS, classes=["yes", "perhaps", "no"])
    np.testing.assert_array_equal(belief.contexts[..., 1], 0.0)
    np.testing.assert_allclose(belief.contexts[..., 0].mean(axis=1), two().predict_proba(CONTEXTS)[:, 1], atol=0.15)
    with pytest.raises(ValueError, match=r"\['yes'\] not in"):
        belief_of(two(), POOL, CONTEXTS, classes=["no", "perhaps"])


def test_pipelines_and_default_kernels():
    model = make_pipeline(StandardScaler(), GaussianProcessClassifier()).fit(ROWS[:30], LABELS[:30])
    belief = belief_of(model, POOL, CONTEXTS)
    np.testing.assert_allclose(belief.contexts.mean(axis=1), model.predict_proba(CONTEXTS), atol=0.15)


def test_what_is_wrong_is_reported():
    against = GaussianProcessClassifier(multi_class="one_vs_one").fit(ROWS[:30], THREE[:30])
    with pytest.raises(ValueError, match="one-against-one"):
        belief_of(against, POOL, CONTEXTS)
    with pytest.raises(ValueError, match="no latent target"):
        belief_of(two(), POOL, CONTEXTS, target="latent")
    with pytest.raises(NotFittedError):
        belief_of(GaussianProcessClassifier(), POOL, CONTEXTS)
    with pytest.raises(ValueError, match="features"):
        belief_of(two(), POOL[:, :1], CONTEXTS)
