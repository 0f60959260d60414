"""The paper's Gaussian process, against scikit-learn's with the same kernel and against its rules by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from stakes import GaussianBelief, SquaredError, score, select
from stakes.models import GaussianProcess, Hyperparameters, belief_of
from stakes.models.gaussian_process import neighbour_ratio
from stakes.testing import check_belief
from tests.models.regression_cases import check_reduction, data

VALUES = Hyperparameters(linear=0.5, signal=1.2, length=1.5, noise=0.3, mean=2.0)


@parametrize_with_checks([GaussianProcess()], legacy=False)
@pytest.mark.filterwarnings("ignore:the covariance of the:UserWarning")
@pytest.mark.filterwarnings("ignore:the labels so far:UserWarning")
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
def test_agrees_with_scikit_learn_under_the_same_kernel(nu, rng):
    rows, labels, pool, contexts = data(rng)
    kernel = 0.25 * DotProduct(0.0, "fixed") + 1.44 * Matern(1.5, nu=nu) + WhiteKernel(0.09)
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(rows, labels - 2.0)
    ours = GaussianProcess(VALUES, nu=nu).fit(rows, labels)
    mean, sd = ours.predict(contexts, return_std=True)
    their_mean, their_sd = theirs.predict(contexts, return_std=True)
    np.testing.assert_allclose(mean, their_mean + 2.0, rtol=1e-10)
    np.testing.assert_allclose(ours.predict(contexts), mean)
    np.testing.assert_allclose(sd, their_sd, rtol=1e-10)
    for target in ("label", "latent"):
        belief = ours.belief(pool, contexts, target=target, joint=True)
        wanted = belief_of(theirs, pool, contexts, target=target, joint=True)
        _assert_same(belief, wanted, shift=2.0)
        _assert_same(belief_of(ours, pool, contexts, target=target, joint=True), belief)
    assert ours.jitter_ == 0.0


def _assert_same(belief, wanted, shift=0.0, rtol=1e-9):
    assert isinstance(belief, GaussianBelief)
    np.testing.assert_allclose(belief.mean, wanted.mean + shift, rtol=rtol)
    for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
        np.testing.assert_allclose(getattr(belief, name), getattr(wanted, name), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(belief.candidate_covariance(2), wanted.candidate_covariance(2), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("rules", ["text", "published"])
@pytest.mark.parametrize("size", [1, 4])
def test_conditioning_is_refitting_with_the_same_hyperparameters(rules, size, rng):
    rows, labels, pool, contexts = data(rng, n=30)
    first = GaussianProcess(rules=rules).fit(rows[:14], labels[:14])
    process = first
    for start in range(14, 30, size):
        process = process.condition(rows[start : start + size], labels[start : start + size])
    again = GaussianProcess(first.hyperparameters_).fit(rows, labels)
    assert process.hyperparameters_ == first.hyperparameters_
    np.testing.assert_allclose(process.factor_, again.factor_, atol=1e-11)
    _assert_same(process.belief(pool, contexts, joint=True), again.belief(pool, contexts, joint=True))
    assert len(first.y_) == 14  # left as it was
    before = GaussianProcess(rules=rules).fit(rows[:14], labels[:14])
    np.testing.assert_array_equal(first.predict(contexts), before.predict(contexts))


@pytest.mark.parametrize("target", ["label", "latent"])
def test_a_label_removes_what_the_belief_says(target, rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    belief = process.belief(pool, contexts, target=target)
    after = [process.condition(x[None], [0.0]).belief(pool, contexts, target=target).variance for x in pool]
    check_reduction(belief, np.stack(after))
    check_belief(belief)


def test_a_batch_removes_what_it_says(rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    belief = process.belief(pool, contexts, joint=True)
    chosen = select(SquaredError(), belief, n=4)
    after = process.condition(pool[np.asarray(chosen.indices)], np.zeros(4)).belief(pool, contexts)
    np.testing.assert_allclose(chosen.joint_reduction[-1], np.mean(belief.variance - after.variance), rtol=1e-9)


def test_published_numbers_of_the_length_rule():
    assert neighbour_ratio(1.5) == pytest.approx(1.031998, abs=5e-7)
    assert neighbour_ratio(2.5) == pytest.approx(0.9595803, abs=5e-8)
    assert neighbour_ratio(0.5) == pytest.approx(1.0 / np.log(2.0))
    assert neighbour_ratio(np.inf) == pytest.approx(1.0 / np.sqrt(2.0 * np.log(2.0)))


@pytest.mark.parametrize("rules", ["text", "published"])
def test_plug_in_rules_by_hand(rules, rng):
    rows, labels, _, _ = data(rng, n=25)
    rows, labels = rows * [1.0, 3.0, 0.2], labels + rng.normal(size=25)
    z = (rows - rows.mean(0)) / rows.std(0) if rules == "published" else rows
    apart, differences = [], []
    for i in range(25):
        distance = [np.inf if j == i else np.linalg.norm(z[i] - z[j]) for j in range(25)]
        apart.append(min(distance))
        differences.append(abs(labels[i] - labels[int(np.argmin(distance))]))
    noise = 1.4826 / np.sqrt(2.0) * np.median(differences)
    centred = labels - np.median(labels)
    fit = Ridge(alpha=1e-6).fit(z, centred).predict(z)
    rest = centred - fit
    robust = np.sqrt(max((1.4826 * np.median(abs(rest))) ** 2 - noise**2, 1e-12))
    found = GaussianProcess(rules=rules).fit(rows, labels).hyperparameters_
    assert found.mean == np.median(labels)
    assert found.noise == pytest.approx(noise)
    assert found.linear == pytest.approx(np.std(fit))
    assert found.signal == pytest.approx(np.std(rest) if rules == "published" else robust, rel=1e-6)
    assert found.length == pytest.approx(1.0319980 * np.median(apart), rel=1e-6)


def test_plug_in_rules_on_four_labels_worked_out():
    rows, labels = np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([0.0, 2.0, 6.0, 20.0])
    found = GaussianProcess().fit(rows, labels).hyperparameters_
    # neighbours: 1, 0, 1, 2 at distances 1, 1, 2, 4; differences 2, 2, 4, 14; slope 205 / 74.75 on rows of mean 11 / 4
    assert found.mean == 4.0
    assert found.noise == pytest.approx(1.4826 / np.sqrt(2.0) * 3.0)
    assert found.length == pytest.approx(1.031998 * 1.5, rel=1e-6)
    slope = ((rows[:, 0] - 2.75) @ labels) / ((rows[:, 0] - 2.75) ** 2).sum()
    assert found.linear == pytest.approx(slope * np.std(rows), rel=1e-6)
    assert found.signal == 1e-6  # the noise explains all


def test_the_most_likely_hyperparameters_are_no_less_likely_than_others(rng):
    rows = rng.uniform(-3.0, 3.0, size=(60, 2))
    labels = 5.0 + 2.0 * rows[:, 0] + 3.0 * np.sin(2.0 * rows[:, 1]) + 0.3 * rng.normal(size=60)
    best = GaussianProcess("marginal likelihood").fit(rows, labels).hyperparameters_
    others = [
        GaussianProcess().fit(rows, labels).hyperparameters_,
        Hyperparameters(best.linear * 1.1, best.signal, best.length, best.noise),
        Hyperparameters(best.linear, best.signal * 0.9, best.length, best.noise),
        Hyperparameters(best.linear, best.signal, best.length * 1.1, best.noise),
        Hyperparameters(best.linear, best.signal, best.length, best.noise * 0.9),
    ]
    assert _log_likelihood(best, rows, labels) > max(_log_likelihood(each, rows, labels) for each in others)
    assert best.noise == pytest.approx(0.3, rel=0.35)
    assert best.linear == pytest.approx(2.0, rel=1.0)


def _log_likelihood(values, rows, labels):
    kernel = (
        ConstantKernel(values.linear**2) * DotProduct(0.0, "fixed")
        + ConstantKernel(values.signal**2) * Matern(values.length, nu=1.5)
        + WhiteKernel(values.noise**2)
    )
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(rows, labels - np.median(labels))
    return process.log_marginal_likelihood()


@pytest.mark.parametrize("hyperparameters", ["plug-in", "marginal likelihood"])
def test_results_do_not_depend_on_the_unit_of_labels(hyperparameters, rng):
    rows, labels, pool, contexts = data(rng, n=30)
    once, scaled = (GaussianProcess(hyperparameters).fit(rows, c * labels).belief(pool, contexts) for c in (1.0, 1e3))
    np.testing.assert_allclose(scaled.mean, 1e3 * once.mean, rtol=1e-4)
    np.testing.assert_allclose(scaled.rho, once.rho, atol=1e-4)


@pytest.mark.parametrize("hyperparameters", ["plug-in", "marginal likelihood"])
@pytest.mark.parametrize("labels", [[4.0], [4.0, 4.0, 4.0]])
def test_labels_that_tell_no_scale_are_reported(hyperparameters, labels, rng):
    rows, _, pool, contexts = data(rng, n=len(labels))
    with pytest.warns(UserWarning, match=r"the labels so far \(\d, all alike\) tell no scale; assumed: Hyper"):
        process = GaussianProcess(hyperparameters).fit(rows, labels)
    belief = process.belief(pool, contexts)
    assert belief.variance.min() > 0.01
    assert process.hyperparameters_.mean == 4.0
    assert score(SquaredError(), belief).min() > 0


def test_repeated_rows_are_distinguished_by_index(rng):
    rows, labels, pool, contexts = data(rng)
    rows, labels = np.vstack([rows, rows[:3]]), np.append(labels, labels[:3] + 0.5)
    process = GaussianProcess().fit(rows, labels)
    assert process.jitter_ == 0.0
    assert np.isfinite(process.belief(pool, contexts).covariance).all()


def test_a_singular_covariance_is_reported(rng):
    rows, labels, pool, contexts = data(rng)
    without_noise = Hyperparameters(linear=0.0, signal=1.0, length=1.0, noise=0.0)
    process = GaussianProcess(without_noise)
    with pytest.warns(UserWarning, match=r"the 18 labels is numerically singular: 1e-12 was added"):
        process.fit(np.vstack([rows, rows[:4]]), np.append(labels, labels[:4]))
    assert process.jitter_ == 1e-12
    np.testing.assert_allclose(process.predict(rows), labels, atol=1e-6)
    plain = GaussianProcess(without_noise).fit(rows, labels)
    assert plain.jitter_ == 0.0
    with pytest.warns(UserWarning, match="the 15 labels is numerically singular"):
        more = plain.condition(rows[:1], labels[:1])
    assert more.jitter_ == 1e-12
    np.testing.assert_allclose(more.predict(contexts), plain.predict(contexts), atol=1e-6)
    np.testing.assert_allclose(more.condition(pool, np.zeros(9)).predict(pool), 0.0, atol=1e-6)


def test_rows_that_all_have_twins(rng):
    rows, labels, pool, contexts = data(rng)
    with pytest.warns(UserWarning, match="half of the rows or more have a twin"):
        process = GaussianProcess().fit(np.vstack([rows, rows]), np.append(labels, labels + 0.2))
    assert process.hyperparameters_.length == pytest.approx(GaussianProcess().fit(rows, labels).hyperparameters_.length)
    with pytest.warns(UserWarning, match="1 is taken"):
        process = GaussianProcess().fit(np.ones((6, 3)), labels[:6])
    assert np.isfinite(process.belief(pool, contexts).covariance).all()


def test_constant_columns_and_single_precision(rng):
    rows, labels, pool, contexts = (each.astype(np.float32) for each in data(rng))
    wide = [np.c_[each, np.full(len(each), 2.0, np.float32)] for each in (rows, pool, contexts)]
    belief = GaussianProcess(rules="published").fit(wide[0], labels).belief(*wide[1:])
    assert belief.mean.dtype == np.float64
    assert np.isfinite(belief.covariance).all()


def test_in_a_pipeline_it_sees_transformed_rows(rng):
    rows, labels, pool, contexts = data(rng)
    piped = make_pipeline(StandardScaler(), GaussianProcess()).fit(rows * 100.0, labels)
    alone = GaussianProcess().fit(StandardScaler().fit_transform(rows), labels)
    moved = [StandardScaler().fit(rows).transform(each) for each in (pool, contexts)]
    wanted = alone.belief(*moved)
    np.testing.assert_allclose(belief_of(piped, pool * 100.0, contexts * 100.0).covariance, wanted.covariance)


def test_parameters_survive_cloning():
    process = clone(GaussianProcess(VALUES, nu=2.5, rules="published"))
    assert process.get_params() == {"hyperparameters": VALUES, "nu": 2.5, "rules": "published"}


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (GaussianProcess("guess"), "'plug-in', 'marginal likelihood' or Hyperparameters"),
        (GaussianProcess(nu=0.0), "nu must be a positive number"),
        (GaussianProcess(rules="paper"), "rules must be 'text' or 'published'"),
    ],
)
def test_bad_parameters_are_refused(process, message, rng):
    with pytest.raises(ValueError, match=message):
        process.fit(*data(rng)[:2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": -1.0}, "noise must be a standard deviation"),
        ({"signal": np.inf}, "signal must be a standard deviation"),
        ({"length": 0.0}, "length must be a positive number"),
        ({"linear": 0.0, "signal": 0.0}, "nothing to learn"),
    ],
)
def test_bad_hyperparameters_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Hyperparameters(**{"linear": 1.0, "signal": 1.0, "length": 1.0, "noise": 1.0, **change})


def test_unfitted_and_misshapen(rng):
    rows, labels, pool, contexts = data(rng)
    for unfitted in (lambda p: p.predict(pool), lambda p: p.belief(pool, contexts), lambda p: p.condition(pool, [0.0])):
        with pytest.raises(NotFittedError):
            unfitted(GaussianProcess())
    process = GaussianProcess().fit(rows, labels)
    with pytest.raises(ValueError, match="3 features"):
        process.condition(rows[:, :2], labels)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        process.condition(rows, labels[:3])
    with pytest.raises(ValueError, match="3 features"):
        belief_of(process, pool, contexts[:, :1])
