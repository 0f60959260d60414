"""An ordered probit process: against brute force, laws of its belief, and what is refused."""

import numpy as np
import pytest
from scipy.special import ndtr

from stakes import expected_regret, rank, score
from stakes.exceptions import StakesError
from stakes.losses import ordinal_costs
from stakes.models import DefaultModel, OrderedProbit, belief_of, default
from stakes.models.ordered_probit import _JITTER, _Chain, _cut_points, log_probabilities
from stakes.models.process_hyperparameters import LogPosterior, covariance_of
from stakes.testing import check_belief

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
GRADES = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=60), [-0.7, 0.7])


def test_logarithms_of_intervals_keep_their_digits():
    values = np.array([0.3, -40.0, 40.0, 0.0])
    lower, upper = np.array([-1.0, 0.0, -np.inf, -np.inf]), np.array([1.0, 1.0, 0.0, np.inf])
    found = log_probabilities(values, lower, upper)
    assert found[0] == pytest.approx(np.log(ndtr(0.7) - ndtr(-1.3)))
    assert found[3] == 0.0
    assert np.all(np.isfinite(found))
    assert found[1] < -700
    assert found[2] == pytest.approx(found[1], rel=0.01)


def test_members_are_draws_of_the_posterior_by_brute_force():
    """Draws of the prior, weighed by the labels: chances at one row, and of two rows together."""
    rows, asked = np.array([[-1.0], [0.0], [1.5]]), np.array([[-0.6], [-0.4]])
    grades = np.array([0, 1, 2])
    model = OrderedProbit(classes=[0, 1, 2], n_draws=100).fit(rows, grades)
    standard, there = model.columns_.standard_rows(rows), model.columns_.standard_rows(asked)
    posterior = LogPosterior.of(standard, grades.astype(float), model.columns_.median_)
    generator, count = np.random.default_rng(1), 4000
    chain = _Chain(posterior, standard, grades, _cut_points(grades, 3), generator)
    both = np.concatenate([standard, there])
    weights, probabilities = np.empty(count), np.empty((count, 2, 3))
    for k in range(count):
        draws = posterior.draws(generator.standard_normal((1, posterior.size)))
        covariance = covariance_of(draws, 0, both, both)
        values = np.linalg.cholesky(covariance + _JITTER * covariance[0, 0] * np.eye(5)) @ generator.standard_normal(5)
        cuts = chain._cuts(generator.standard_normal(2))
        weights[k] = np.exp(np.sum(log_probabilities(values[:3], cuts[grades], cuts[grades + 1])))
        probabilities[k] = np.diff(ndtr(cuts[None, :] - values[3:, None]), axis=1)
    weights /= weights.sum()
    found = model.member_probabilities(asked)  # [2, K, C]
    np.testing.assert_allclose(found.mean(axis=1), np.einsum("k,knc->nc", weights, probabilities), atol=0.05)
    together = np.einsum("k,ka,kb->ab", weights, probabilities[:, 0], probabilities[:, 1])
    joint = np.einsum("ka,kb->ab", found[0], found[1]) / found.shape[1]
    np.testing.assert_allclose(joint, together, atol=0.05)
    apart = np.outer(found[0].mean(axis=0), found[1].mean(axis=0))
    assert np.trace(joint) > np.trace(apart) + 0.02  # one tells about the other


def test_its_belief_passes_the_laws_and_scores_are_the_general_ones():
    model = OrderedProbit(n_draws=5).fit(X[:30], GRADES[:30])
    belief = belief_of(model, X[30:36], X[36:46])
    check_belief(belief)
    loss = ordinal_costs([0, 1, 2])
    np.testing.assert_allclose(score(loss, belief), expected_regret(loss, belief).mean(axis=1), rtol=1e-9, atol=1e-12)
    assert len(rank(model, ordinal_costs([0, 1, 2], "squared"), X[30:], n=2)) == 2


def test_it_learns_grades_in_their_order_whatever_they_are_called():
    names = np.array(["low", "medium", "high"])[GRADES]
    model = OrderedProbit(["low", "medium", "high"], n_draws=5).fit(X[:40], names[:40])
    assert np.mean(model.predict(X[40:]) == names[40:]) >= 0.6
    probabilities = model.predict_proba([[-2.5, 0.0], [2.5, 0.0]])
    assert probabilities[0, 0] > 0.6
    assert probabilities[1, 2] > 0.6
    assert probabilities[0, 2] < 0.05  # the far end is ruled out


def test_a_grade_that_no_label_has_had_is_possible():
    model = OrderedProbit([0, 1, 2, 3], n_draws=5).fit(X[:20], GRADES[:20])
    assert np.all(model.predict_proba(X[20:30])[:, 3] > 0)


def test_the_default_model_takes_it_for_classes_with_an_order():
    model = default(X[:30], GRADES[:30], pool=X[30:], classes=[0, 1, 2], ordinal=True)
    assert isinstance(model.pipeline_[-1], OrderedProbit)
    assert "ordered probit" in " ".join(model.report)
    assert model.predict_proba(X[30:33]).sum(axis=1) == pytest.approx(1.0)
    assert belief_of(model, X[:2], X[:3], classes=[0, 1, 2, 9]).n_classes == 4
    many = DefaultModel(ordinal=True, classes=[0, 1, 2], max_gp_labels=10).fit(X[:30], GRADES[:30])
    assert not isinstance(many.pipeline_[-1], OrderedProbit)


def test_hyperparameters_without_a_covariance_are_not_drawn():
    """Where one column is far shorter than the others, rounding leaves the covariance of like rows no root."""
    rng = np.random.default_rng(0)
    rows, labels = rng.integers(0, 3, size=(40, 4)) / 0.7 - 1.3, rng.integers(0, 3, size=40)
    chain = _Chain(LogPosterior.of(rows, labels - 1.0, 2.0), rows, labels, _cut_points(labels, 3), rng)
    far = np.array([-5.15, 5.69, 1.81, -1.5, -0.88, -2.12, -11.74, 0.46, -4.28, 0.0, 0.0])
    with pytest.raises(np.linalg.LinAlgError):
        chain._factor(far[:9])
    assert chain.likelihood_at(far) == -np.inf
    assert np.isfinite(chain.likelihood_at(0.0 * far))
    chain.hyperparameters = 0.3 * far[:9]  # towards such places
    for _ in range(5):
        chain.turn()
        assert np.isfinite(chain.likelihood_at(np.concatenate([chain.hyperparameters, chain.steps])))


def test_what_is_refused():
    with pytest.raises(StakesError, match="from the lowest to the highest"):
        OrderedProbit().fit(X[:3], ["a", "b", "a"])
    with pytest.raises(StakesError, match="n_draws"):
        OrderedProbit(n_draws=0).fit(X[:3], [0, 1, 1])
    with pytest.raises(StakesError, match="one of the classes"):
        OrderedProbit([0, 1]).fit(X[:3], [0, 1, 2])
    with pytest.raises(StakesError, match="give one of them"):
        default(X[:3], [0, 1, 1], ordinal=True, task="real")
