"""Distributions on panels: cumulative masses, quantiles, densities and scores, for every array library."""

import array_api_compat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import lognorm, norm

from stakes import CRPS, GaussianBelief, LogScore, LogWarp, NormalEnsemble, WarpedGaussianBelief
from stakes.beliefs import Distribution
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.losses.distributions import NODES, derivative, legendre_series, panel_nodes


def normal(low=-8.0, high=8.0, count=9):
    """The standard normal on even panels."""
    edges = np.linspace(low, high, count)[None, :]
    nodes, step = panel_nodes(edges)
    return Distribution(np.zeros(1), edges, nodes, step, step * norm.pdf(nodes), log_weighted_density=norm.logpdf)


def test_cumulative_masses_are_good_to_1e_11_on_panels_of_two_sds():
    distribution = normal()
    np.testing.assert_allclose(distribution.below(), norm.cdf(distribution.nodes), atol=1e-13)
    np.testing.assert_allclose(distribution.above(), norm.sf(distribution.nodes), atol=1e-13)
    np.testing.assert_allclose(distribution.above()[0, -2], norm.sf(distribution.nodes[0, -2]), rtol=1e-6)


@given(st.floats(1e-6, 1 - 1e-6))
def test_quantiles_and_cdf_are_inverse(tau):
    distribution = normal()
    np.testing.assert_allclose(distribution.quantile(tau), norm.ppf(tau), atol=1e-9)
    np.testing.assert_allclose(distribution.cdf(distribution.quantile(tau)), tau, rtol=1e-9)


def test_quantiles_next_to_a_node_are_as_good_as_others():
    distribution = normal()
    near = distribution.nodes.reshape(-1, 1) + np.array([-1e-6, -1e-8, 0.0, 1e-8, 1e-6])
    for place in near[abs(near) < 3.0].tolist():
        np.testing.assert_allclose(distribution.quantile(float(norm.cdf(place))), place, atol=1e-11)


def test_far_out():
    distribution = normal()
    np.testing.assert_array_equal(distribution.cdf(np.array([-50.0])), 0.0)
    np.testing.assert_array_equal(distribution.cdf(np.array([50.0])), 1.0)
    np.testing.assert_allclose(distribution.log_density(np.array([30.0])), norm.logpdf(30.0))
    np.testing.assert_allclose(distribution.crps(np.array([50.0])), 50 - 1 / np.sqrt(np.pi), rtol=1e-12)


def test_points_of_mass():
    """Half at 0, a quarter at 1, the rest even between them."""
    edges = np.array([[0.0, 0.0, 1.0]])
    nodes, step = panel_nodes(edges)
    distribution = Distribution(np.zeros(1), edges, nodes, step, 0.25 * step, np.array([[0.5, 0.0, 0.25]]))
    for tau, wanted in ((0.3, 0.0), (0.5, 0.0), (0.625, 0.5), (0.8, 1.0)):
        np.testing.assert_allclose(distribution.quantile(tau), wanted, atol=1e-12)
    np.testing.assert_allclose(
        distribution.cdf(np.array([[-0.1, 0.0, 0.4, 0.999999, 1.0]])), [[0, 0.5, 0.6, 0.75, 1]], atol=1e-6
    )
    np.testing.assert_allclose(distribution.crps(np.array([0.0])), 0.5**2 - 0.5 * 0.25 + 0.25**2 / 3, rtol=1e-12)
    with pytest.raises(ValueError, match="density is needed"):
        distribution.density(np.array([0.5]))


def test_series_and_slopes():
    np.testing.assert_allclose(
        legendre_series(np.array([1.0, 2.0, 3.0]), np.array(0.3)), 1 + 0.6 + 3 * (3 * 0.09 - 1) / 2
    )
    np.testing.assert_allclose(
        derivative(np.exp, np.array([0.3, 2.0]), np.array([0.5, 1.0])), np.exp([0.3, 2.0]), rtol=1e-12
    )
    assert len(NODES) == 16


def test_pushed_through_a_map():
    belief = WarpedGaussianBelief(GaussianBelief([0.3, 1.0], [0.5, 4.0], [1.0], [[0.1, 0.1]]), LogWarp())
    answer, wanted = bayes_prediction(CRPS(), belief), lognorm(np.sqrt([0.5, 4.0]), scale=np.exp([0.3, 1.0]))
    z = np.array([0.2, 9.0])
    np.testing.assert_allclose(answer.cdf(z), wanted.cdf(z), rtol=1e-11)
    np.testing.assert_allclose(answer.log_density(z), wanted.logpdf(z), rtol=1e-11)
    np.testing.assert_allclose(answer.quantile(0.3), wanted.ppf(0.3), rtol=1e-11)
    assert LogScore()(np.array([-1.0, 3.0]), answer)[0] == np.inf


def test_refusals():
    with pytest.raises(ValueError, match="tau must lie between 0 and 1"):
        normal().quantile(1.0)
    with pytest.raises(ValueError, match="one value for each of the contexts"):
        normal().cdf(np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        normal().cdf(np.array([np.nan]))


@pytest.mark.parametrize("kind", ["gaussian", "warped", "ensemble"])
def test_answers_on_all_libraries(xp, host, kind):
    def make(asarray):
        if kind == "ensemble":
            return NormalEnsemble(asarray([[0.0, 1.0]]), asarray(0.5), asarray([[0.0, 1.0], [2.0, 2.5]]), asarray(0.3))
        belief = GaussianBelief(asarray([0.3, 1.0]), asarray([1.0, 2.0]), asarray([1.0]), asarray([[0.4, 0.3]]))
        return WarpedGaussianBelief(belief, LogWarp()) if kind == "warped" else belief

    z = np.array([0.5, 1.2])
    for loss in (LogScore(), CRPS()):
        answer, wanted = (bayes_prediction(loss, make(f)) for f in (lambda a: xp.asarray(np.asarray(a)), np.asarray))
        results = [each(xp.asarray(z)) for each in (answer.cdf, answer.density)] + [loss(xp.asarray(z), answer)]
        for result, value in zip(results, (wanted.cdf(z), wanted.density(z), loss(z, wanted)), strict=True):
            assert array_api_compat.array_namespace(result) is xp
            np.testing.assert_allclose(host(result), value, rtol=1e-11)
        np.testing.assert_allclose(host(answer.quantile(0.3)), wanted.quantile(0.3), rtol=1e-11)
        single = loss(xp.asarray(z.astype(np.float32)), answer)
        assert single.dtype == xp.float32
        assert realised_loss(loss, answer, xp.asarray(z)).mean == pytest.approx(float(np.mean(loss(z, wanted))))
