"""Hyperparameters under priors: the prior itself, and what it is there for."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from stakes.models import default
from stakes.models.default_model import gaussian_process, most_probable


def quadratic(theta):
    """Minus a log likelihood that is Gaussian about (1, -2) with variances (1, 4)."""
    gap = theta - np.array([1.0, -2.0])
    return float(0.5 * gap**2 @ [1.0, 0.25]), gap * [1.0, 0.25]


def test_a_gaussian_likelihood_and_prior_meet_at_their_precision_weighted_mean():
    theta, value = most_probable(
        quadratic, np.zeros(2), np.array([[-9.0, 9.0]] * 2), centres=(3.0, 0.0), spreads=(2.0, 1.0)
    )
    expected = np.array([(1.0 * 1.0 + 3.0 * 0.25) / 1.25, (-2.0 * 0.25 + 0.0) / 1.25])
    assert theta == pytest.approx(expected, abs=1e-6)
    assert value == pytest.approx(quadratic(expected)[0] + 0.5 * ((expected[0] - 3) / 2) ** 2 + 0.5 * expected[1] ** 2)


def test_bounds_are_kept():
    theta, _ = most_probable(
        quadratic, np.zeros(2), np.array([[-1.0, 1.0]] * 2), centres=(9.0, 9.0), spreads=(0.1, 0.1)
    )
    assert theta == pytest.approx([1.0, 1.0])


def test_a_flat_prior_is_the_most_likely(rng):
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    likely = GaussianProcessRegressor(kernel).fit(X, y)
    flat = GaussianProcessRegressor(
        kernel, optimizer=partial(most_probable, centres=(0.0,) * 3, spreads=(1e6,) * 3)
    ).fit(X, y)
    assert flat.log_marginal_likelihood_value_ == pytest.approx(likely.log_marginal_likelihood_value_, abs=1e-3)


def test_what_is_found_is_a_minimum_of_both_together(rng):
    X, y = rng.standard_normal((25, 3)), rng.standard_normal(25)
    process, _ = gaussian_process(X, y, 0)
    prior = process.optimizer.keywords
    theta = clone(process).fit(X, y).kernel_.theta

    def value(point):
        model = clone(process).set_params(optimizer=None).fit(X, (y - y.mean()) / y.std())
        distance = (point - prior["centres"]) / np.asarray(prior["spreads"])
        return -model.log_marginal_likelihood(point) + 0.5 * distance @ distance

    for step in np.vstack([np.eye(3), -np.eye(3)]) * 0.05:
        assert value(theta + step) > value(theta)


@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_a_few_noisy_labels_do_not_say_that_there_is_nothing_to_learn():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 6))
    y = X[:, 0] - X[:, 1] + 1.5 * rng.standard_normal(400)
    likely, probable = [], []
    for start in range(0, 400, 20):
        here = slice(start, start + 20)
        model = default(X[here], y[here], pool=X)
        probable.append(model.pipeline_[-1].kernel_.theta[0])
        process = clone(model.pipeline_[-1]).set_params(optimizer="fmin_l_bfgs_b")
        likely.append(process.fit(model.pipeline_[0].transform(X[here]), y[here]).kernel_.theta[0])
    collapsed = np.log(1e-2)  # of the variance of labels
    assert np.sum(np.asarray(likely) < collapsed) >= 2  # else this test shows nothing
    assert np.min(probable) > collapsed
