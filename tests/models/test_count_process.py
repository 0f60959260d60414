"""A process for counts: Laplace's posterior and what counts tell against brute force, zeros, and what it predicts."""

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from stakes import BayesianProcess, CountProcess, PoissonDeviance, SquaredError, rank, score, select
from stakes.beliefs import SoftplusWarp, WarpedGaussianBelief
from stakes.beliefs.warped import warped_moments
from stakes.exceptions import StakesError
from stakes.models import belief_of
from stakes.models.count_process import Link, latent_of_moments, most_probable_rates
from stakes.testing import check_belief

GRID = np.linspace(-9.0, 9.0, 721)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3))
    rate = np.exp(0.3 + np.sin(2.0 * X[:, 0]) + 0.6 * X[:, 1])
    return X, rng.poisson(rate).astype(float), rate


@pytest.fixture(scope="module")
def model(table):
    X, y, _ = table
    return CountProcess().fit(X[:60], y[:60], pool=X)


def posterior_on_a_grid(covariance, counts, link):
    """Points [G, G, 2] of h and the log joint density of h and two labels there."""
    points = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)
    prior = multivariate_normal(np.zeros(2), covariance).logpdf(points)
    return points, prior + poisson.logpmf(counts, link.rate(points)[0]).sum(axis=-1)


@pytest.mark.parametrize("counts", [(0.0, 3.0), (0.0, 0.0), (7.0, 12.0)])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_laplace_is_near_the_posterior_by_integration(counts, scale):
    counts, link = np.array(counts), Link(scale, offset=-0.5, unit=1.2)
    covariance = np.array([[1.3, 0.6], [0.6, 1.1]])
    points, log_joint = posterior_on_a_grid(covariance, counts, link)
    mass = np.exp(log_joint - log_joint.max())
    evidence = np.log(mass.sum() * (GRID[1] - GRID[0]) ** 2) + log_joint.max()
    mean = np.einsum("ab,abk->k", mass, points) / mass.sum()
    variance = np.einsum("ab,abk->k", mass, (points - mean) ** 2) / mass.sum()
    mode = most_probable_rates(covariance, counts, link, link.start(counts))
    root = np.linalg.solve(mode.factor, covariance)
    found_mean, found_variance = mode.solved @ root, np.diag(covariance) - np.sum(root**2, axis=0)
    best = points[np.unravel_index(np.argmax(log_joint), log_joint.shape)]
    np.testing.assert_allclose(mode.place, best, atol=0.02)  # the grid's step
    np.testing.assert_allclose(found_mean, mode.place, atol=1e-5)
    np.testing.assert_array_less(np.abs(found_mean - mean), 0.3 * np.sqrt(variance))
    np.testing.assert_allclose(found_variance, variance, rtol=0.2)
    exact_factorial = gammaln(counts + 1.0) + counts - counts * np.log(np.maximum(counts, 1e-300))
    stirling = 0.5 * np.log(2.0 * np.pi * (counts + 1.0 / 6.0))
    assert mode.evidence + np.sum(stirling - exact_factorial) == pytest.approx(evidence, abs=0.15)


def test_what_a_count_tells_is_near_what_it_tells_by_summing_over_counts(table, model):
    """The share of the variance of h that a label removes on average."""
    X, _, _ = table
    posterior = model.posteriors()[0]
    place = posterior.place(model.columns_.standard_rows(X[60:90]))
    mean, (variance, noise) = posterior.mean(place), posterior.variances(place)
    extra = posterior.kernel.variances(place)[1]
    for i in range(30):
        spread = variance[i] + extra[i]
        h = mean[i] + np.sqrt(spread) * GRID
        prior = np.exp(-0.5 * GRID**2)
        prior /= prior.sum()
        counts = np.arange(400)
        joint = poisson.pmf(counts[:, None], posterior.link.rate(h)[0]) * prior
        mass = joint.sum(axis=1)
        after = np.divide(joint @ h, mass, out=np.zeros_like(mass), where=mass > 1e-200)
        exact = np.sum(mass * (after - mean[i]) ** 2) / spread
        found = spread / (spread + noise[i] - extra[i])
        assert found == pytest.approx(exact, rel=0.1, abs=0.005)


def test_the_worth_of_a_count_is_near_its_worth_by_brute_force(table, model):
    """PoissonDeviance by a grid over f at candidate and context, and a sum over the counts that may come."""
    X, _, _ = table
    belief = belief_of(model, X[60:66], X[200:203], target="latent")
    found = np.stack([score(PoissonDeviance(), belief.take(slice(None), slice(m, m + 1))) for m in range(3)], axis=1)
    warp, extra = model.warp, model.link_.unit**2 * model.draws_.noise.mean()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    rows = model.columns_.standard_rows(X[60:66])
    means = np.mean([each.mean(each.place(rows)) for each in model.posteriors()], axis=0)
    own = belief_of(model, X[60:66], X[60:66], target="latent").latent.variance
    for n in range(6):
        for m in range(3):
            context, between = belief.latent.variance[m], belief.latent.covariance[n, m]
            h = means[n] + np.sqrt(own[n] + extra) * nodes
            slope = between / (own[n] + extra)
            rate = warped_moments(
                warp, belief.latent.mean[m] + slope * (h - means[n]), context - slope * between + 0.0 * h
            )[0]
            joint = poisson.pmf(np.arange(300)[:, None], warp.forward(h)) * weights  # [counts, nodes]
            mass = joint.sum(axis=1)
            answer = np.divide(joint @ rate, mass, out=np.ones_like(mass), where=mass > 1e-200)
            prior = float(weights @ rate)
            worth = np.sum(mass * (answer * np.log(answer / prior) - answer + prior))
            assert found[n, m] == pytest.approx(worth, rel=0.25, abs=2e-5)


@pytest.mark.parametrize("scale", [0.5, 5.0, 500.0])
def test_moments_of_a_label_are_those_of_the_latent_normal(scale):
    warp = SoftplusWarp(scale)
    mean = np.array([1e-3, 0.05, 1.0, 5.0, 20.0, 500.0])
    variance = mean + np.array([1e-6, 0.1, 2.0, 5.0, 400.0, 1e4])
    found = warped_moments(warp, *latent_of_moments(warp, mean, variance))
    np.testing.assert_allclose(found, [mean, variance], rtol=1e-8)


def test_a_label_has_the_mean_and_variance_of_a_count(table, model):
    X, _, _ = table
    mean, sd = model.predict(X[60:], return_std=True)
    belief = belief_of(model, X[:2], X[60:])
    assert isinstance(belief, WarpedGaussianBelief)
    found = warped_moments(belief.warp, belief.latent.mean, belief.latent.variance)
    np.testing.assert_allclose(found, [mean, sd**2], rtol=1e-6)
    rate, about = warped_moments(
        model.warp, *(getattr(belief_of(model, X[:2], X[60:], target="latent").latent, each) for each in MOMENTS)
    )
    assert (sd**2 > about + rate).all()


MOMENTS = ("mean", "variance")


def test_it_predicts_rates_and_knows_how_well(table, model):
    X, y, rate = table
    mean, sd = model.predict(X[60:], return_std=True)
    assert np.corrcoef(np.log(mean), np.log(rate[60:]))[0, 1] > 0.9
    assert 0.5 < np.mean(((y[60:] - mean) / sd) ** 2) < 1.5


def test_it_beats_a_process_of_logarithms_and_one_of_counts(table):
    """On labels that are often 0, by the loss that it is for."""
    X, y, _ = table
    loss, gaps = PoissonDeviance(), []
    for start in range(0, 120, 40):
        some, rest = slice(start, start + 40), slice(160, 300)
        counts = CountProcess().fit(X[some], y[some], pool=X).predict(X[rest])
        logs = BayesianProcess().fit(X[some], np.log(y[some] + 0.5), pool=X).predict(X[rest], return_std=True)
        plain = BayesianProcess().fit(X[some], y[some], pool=X).predict(X[rest])
        others = np.maximum(np.exp(logs[0] + logs[1] ** 2 / 2) - 0.5, 0.05), np.maximum(plain, 0.05)
        gaps.append([np.mean(loss(y[rest], each)) - np.mean(loss(y[rest], counts)) for each in others])
    assert (np.mean(gaps, axis=0) > 0.0).all()


def test_counts_that_vary_more_than_poisson_are_reported():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((150, 2))
    rate = np.exp(1.5 + 0.5 * X[:, 0])
    extra = []
    for more in (np.ones(150), rng.gamma(1.5, 1.0 / 1.5, 150)):
        model = CountProcess().fit(X, rng.poisson(rate * more))
        extra.append(model.link_.unit * np.sqrt(np.median(model.draws_.noise)))
    assert extra[0] < 0.25
    assert extra[1] > 0.5


def test_ranks_and_batches(table, model):
    X, _, _ = table
    check_belief(belief_of(model, X[60:70], X[70:80], joint=True))
    found = rank(model, PoissonDeviance(), X[60:160], n=4)
    assert len(set(found.indices)) == 4
    joint = select(PoissonDeviance(), belief_of(model, X[60:100], X[100:150], joint=True), n=3)
    assert (np.diff(joint.joint_reduction) > 0.0).all()
    assert (score(SquaredError(), belief_of(model, X[60:70], X[70:80])) >= 0.0).all()


@pytest.mark.parametrize(
    "labels", [[0.0], [5.0], [0.0, 0.0, 0.0], [4.0] * 8, [0.0, 0.0, 1e6], [1e9, 1e9 + 7, 3.0], [1e-320, 2.5, 7.5]]
)
def test_few_and_extreme_labels_are_fitted(labels):
    X = np.arange(float(len(labels)))[:, None]
    model = CountProcess().fit(X, labels, pool=np.linspace(0.0, 9.0, 20)[:, None])
    mean, sd = model.predict(np.linspace(0.0, 9.0, 20)[:, None], return_std=True)
    assert np.isfinite(mean).all()
    assert (mean > 0.0).all()
    assert (sd > 0.0).all()
    belief = belief_of(model, X + 0.5, X)
    assert np.isfinite(score(PoissonDeviance(), belief)).all()


def test_labels_that_are_not_whole_are_counted_in_units_of_their_own(table):
    X, y, rate = table
    model = CountProcess().fit(X[:60], 0.37 * y[:60])
    assert model.grain_ != 1.0
    assert "the evidence counts them in units of" in " ".join(model.report_)
    assert np.corrcoef(np.log(model.predict(X[60:])), np.log(rate[60:]))[0, 1] > 0.85
    scaled = CountProcess().fit(X[:60], 370.0 * 1.001 * y[:60])
    np.testing.assert_allclose(scaled.predict(X[60:]) / 1001.0, model.predict(X[60:]), rtol=1e-5)


def test_more_labels_than_hyperparameters_are_drawn_with(table):
    X, y, _ = table
    model = CountProcess(n_draws=4, max_rows=50).fit(X, y)
    assert "Hyperparameters were drawn with 50 of 300 labels." in model.report_
    assert len(model.train_) == 300


def test_the_same_call_gives_the_same_model(table, model):
    X, y, _ = table
    np.testing.assert_array_equal(clone(model).fit(X[:60], y[:60], pool=X).predict(X), model.predict(X))
    other = CountProcess(random_state=1).fit(X[:60], y[:60], pool=X)
    assert not np.array_equal(other.predict(X), model.predict(X))
    ratios = np.log(other.predict(X) / model.predict(X))
    assert np.sqrt(np.mean(ratios**2)) < 0.1  # draws are others, what they say is about the same
    assert abs(ratios).max() < 0.4


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, -2.0], "0 or more; 1 of 2 labels are negative, the first is -2"),
        ([1.0, np.nan], "finite"),
        ([1.0], "a label for each of 2 rows"),
    ],
)
def test_what_are_no_counts_is_refused(labels, message):
    with pytest.raises(StakesError, match=message):
        CountProcess().fit([[0.0], [1.0]], labels)


@pytest.mark.parametrize("wrong", [{"n_draws": 0}, {"max_rows": 2}, {"limit": 0.0}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(StakesError):
        CountProcess(**wrong).fit([[0.0], [1.0]], [1.0, 2.0])


def test_it_must_be_fitted():
    with pytest.raises(NotFittedError):
        CountProcess().predict([[1.0]])
