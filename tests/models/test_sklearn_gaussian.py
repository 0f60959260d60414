"""Gaussian processes and Bayesian linear models of scikit-learn as beliefs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.linear_model import ARDRegression, BayesianRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from stakes import (
    GaussianBelief,
    GaussianMixtureBelief,
    Linex,
    SquaredError,
    VectorGaussianBelief,
    WarpedGaussianBelief,
    rank,
    score,
    select,
)
from stakes.baselines import bald
from stakes.models import TableEncoder, belief_of
from stakes.models.sklearn_gaussian import signal_and_noise
from stakes.models.transformed import rescaled, untransformed
from stakes.testing import check_belief
from tests.models.regression_cases import check_reduction, data


def norm(x):
    return (x**2).sum(1)


S = 0.3
# kernel, and by hand: the variance of f at x, the noise variance there
KERNELS = {
    "none": (RBF(1.5), lambda x: 1.0, lambda x: 0.0),
    "white alone": (WhiteKernel(S), lambda x: 0.0, lambda x: S),
    "sum": (RBF(1.5) + WhiteKernel(S), lambda x: 1.0, lambda x: S),
    "white first": (WhiteKernel(S) + Matern(0.7), lambda x: 1.0, lambda x: S),
    "two whites": (WhiteKernel(S) + RBF(1.0) + WhiteKernel(0.2), lambda x: 1.0, lambda x: S + 0.2),
    "constant times sum": (ConstantKernel(2.0) * (RBF(1.5) + WhiteKernel(S)), lambda x: 2.0, lambda x: 2.0 * S),
    "scaled white": (2.0 * RBF(1.0) + 5.0 * WhiteKernel(S), lambda x: 2.0, lambda x: 5.0 * S),
    "white times linear": (RBF(1.0) + WhiteKernel(S) * DotProduct(1.0), lambda x: 1.0, lambda x: S * (1.0 + norm(x))),
    "linear times sum": (
        DotProduct(0.5) * (RBF(1.0) + WhiteKernel(S)),
        lambda x: 0.25 + norm(x),
        lambda x: S * (0.25 + norm(x)),
    ),
    "product of sums": (
        (RBF(1.0) + WhiteKernel(S)) * (DotProduct(1.0) + WhiteKernel(0.2)),
        lambda x: 1.0 + norm(x),
        lambda x: 0.2 + S * (1.0 + norm(x)) + 0.2 * S,
    ),
    "white times white": (RBF(1.0) + WhiteKernel(S) * WhiteKernel(0.2), lambda x: 1.0, lambda x: 0.2 * S),
    "power": (Exponentiation(RBF(1.0) + WhiteKernel(S), 2), lambda x: 1.0, lambda x: 2.0 * S + S**2),
    "nested": (
        ConstantKernel(3.0) * (RBF(1.0) * (ConstantKernel(0.5) + WhiteKernel(S)) + WhiteKernel(0.1))
        + DotProduct(0.0, "fixed"),
        lambda x: 1.5 + norm(x),
        lambda x: 3.0 * (S + 0.1),
    ),
    "rational": (2.0 * RationalQuadratic() + WhiteKernel(S), lambda x: 2.0, lambda x: S),
    "pairwise": (PairwiseKernel(metric="rbf") + WhiteKernel(S), lambda x: 1.0, lambda x: S),
    "pairwise without noise": (PairwiseKernel(metric="rbf"), lambda x: 1.0, lambda x: 0.0),
}
REGRESSORS = {
    "kernel noise": GaussianProcessRegressor(2.0 * RBF(1.5) + WhiteKernel(0.1), optimizer=None),
    "alpha": GaussianProcessRegressor(2.0 * RBF(1.5), alpha=0.1, optimizer=None),
    "both": GaussianProcessRegressor(2.0 * (RBF(1.5) + WhiteKernel(0.1)), alpha=0.1, optimizer=None),
    "linear noise": GaussianProcessRegressor(
        RBF(2.0) + 0.1 * WhiteKernel(0.4) * DotProduct(1.0), alpha=0.05, optimizer=None
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_noise_is_separated_from_signal_by_hand(name, rng):
    kernel, signal, noise = KERNELS[name]
    rows = rng.normal(size=(150, 3))  # more than one block
    shared, own = signal_and_noise(kernel, rows)
    np.testing.assert_allclose(shared, signal(rows) + np.zeros(150), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(own, noise(rows) + np.zeros(150), rtol=1e-12)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("alpha", [1e-10, 0.2])
@pytest.mark.parametrize("name", KERNELS)
def test_process_agrees_with_its_own_predict(name, alpha, normalize_y, rng):
    rows, labels, pool, contexts = data(rng)
    kernel, _, noise = KERNELS[name]
    model = GaussianProcessRegressor(kernel, alpha=alpha, normalize_y=normalize_y, optimizer=None).fit(rows, labels)
    mean, covariance = model.predict(np.vstack([pool, contexts]), return_cov=True)  # with the kernel's noise
    unit = labels.var() if normalize_y else 1.0
    added = unit * alpha if alpha == 0.2 else 0.0
    belief = belief_of(model, pool, contexts, joint=True)
    close = {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(belief.mean, mean[9:], **close)
    np.testing.assert_allclose(belief.variance, np.diag(covariance)[9:] + added, **close)
    np.testing.assert_allclose(belief.candidate_variance, np.diag(covariance)[:9] + added, **close)
    np.testing.assert_allclose(belief.covariance, covariance[:9, 9:], **close)
    np.testing.assert_allclose(belief.noise_variance, unit * noise(pool) + added + np.zeros(9), **close)
    between = np.stack([belief.candidate_covariance(i) for i in range(9)])
    np.testing.assert_allclose(between, covariance[:9, :9] + added * np.eye(9), **close)
    latent = belief_of(model, pool, contexts, target="latent")
    np.testing.assert_allclose(latent.variance, belief.variance - added - unit * noise(contexts), **close)
    np.testing.assert_allclose(latent.candidate_variance, belief.candidate_variance, **close)
    assert latent.candidate_covariance is None


@pytest.mark.parametrize("target", ["label", "latent"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_a_label_removes_the_variance_that_refitting_removes(name, target, rng):
    rows, labels, pool, contexts = data(rng)
    model = clone(REGRESSORS[name]).fit(rows, labels)
    belief = belief_of(model, pool, contexts, target=target)
    after = []
    for candidate in pool:
        more = clone(model).fit(np.vstack([rows, candidate]), np.append(labels, 1.0))
        after.append(belief_of(more, pool, contexts, target=target).variance)
        np.testing.assert_allclose(after[-1], _variance(more, contexts, target), rtol=1e-10)
    check_reduction(belief, np.stack(after))


def _variance(model, rows, target):
    """By the model's own predict, with the noise put right by hand."""
    kernel_noise = model.kernel_.diag(rows) - np.array([model.kernel_(x[None], x[None] + 0.0)[0, 0] for x in rows])
    alpha = 0.0 if model.alpha == 1e-10 else model.alpha
    return model.predict(rows, return_std=True)[1] ** 2 + (alpha if target == "label" else -kernel_noise)


def test_several_outputs_are_independent(rng):
    rows, labels, pool, contexts = data(rng, outputs=2)
    model = GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.1), alpha=0.05, normalize_y=True, optimizer=None)
    belief = belief_of(model.fit(rows, labels), pool, contexts, joint=True)
    assert isinstance(belief, VectorGaussianBelief)
    for j in range(2):
        alone = belief_of(clone(model).fit(rows, labels[:, j]), pool, contexts, joint=True)
        np.testing.assert_allclose(belief.mean[:, j], alone.mean, rtol=1e-10)
        for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
            np.testing.assert_allclose(getattr(belief, name)[..., j, j], getattr(alone, name), rtol=1e-10)
        np.testing.assert_allclose(belief.candidate_covariance(3)[j, :, j], alone.candidate_covariance(3), rtol=1e-10)
    assert not belief.covariance[..., 0, 1].any()
    one = belief_of(clone(model).fit(rows, labels[:, :1]), pool, contexts)
    assert isinstance(one, GaussianBelief)
    np.testing.assert_allclose(one.variance, belief.variance[:, 0, 0], rtol=1e-10)


@pytest.mark.parametrize("estimator", [BayesianRidge(), ARDRegression(), BayesianRidge(fit_intercept=False)])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_linear_models_agree_with_their_own_predict(estimator, scale, rng):
    rows, labels, pool, contexts = data(rng, n=30)
    model = clone(estimator).fit(rows + scale, labels)
    model.n_samples_seen_ = 30
    belief = belief_of(model, pool + scale, contexts + scale, joint=True)
    intercept = model.fit_intercept / model.alpha_ / 30  # the variance of a mean of labels, which predict leaves out
    mean, sd = model.predict(contexts + scale, return_std=True)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(belief.variance, sd**2 + intercept, rtol=1e-10)
    np.testing.assert_allclose(
        belief.candidate_variance, model.predict(pool + scale, return_std=True)[1] ** 2 + intercept, rtol=1e-10
    )
    np.testing.assert_allclose(belief.noise_variance, 1.0 / model.alpha_)
    latent = belief_of(model, pool + scale, contexts + scale, target="latent")
    np.testing.assert_allclose(latent.variance, sd**2 + intercept - 1.0 / model.alpha_, rtol=1e-8)
    np.testing.assert_allclose(latent.covariance, belief.covariance)


def test_a_label_removes_the_variance_of_coefficients_that_bayes_rule_removes(rng):
    rows, labels, pool, contexts = data(rng, n=30)
    model = BayesianRidge(fit_intercept=False).fit(rows, labels)
    after = []
    for candidate in pool:
        precision = np.linalg.inv(model.sigma_) + model.alpha_ * np.outer(candidate, candidate)
        after.append(np.einsum("mi,ij,mj->m", contexts, np.linalg.inv(precision), contexts) + 1.0 / model.alpha_)
    check_reduction(belief_of(model, pool, contexts), np.stack(after))


def test_pruned_coefficients_are_known(rng):
    rows, labels, pool, contexts = data(rng, n=30, p=5)
    labels = rows[:, 0] + 0.05 * rng.normal(size=30)
    model = ARDRegression(threshold_lambda=500.0).fit(rows, labels)
    assert model.sigma_.shape[0] < 5
    model.n_samples_seen_ = 30
    belief = belief_of(model, pool, contexts)
    wanted = model.predict(contexts, return_std=True)[1] ** 2 + 1.0 / model.alpha_ / 30
    np.testing.assert_allclose(belief.variance, wanted, rtol=1e-12)
    nothing = ARDRegression(threshold_lambda=1e-12).fit(rows, labels)
    assert not belief_of(nothing, pool, contexts).covariance.any()


def by_bayes_rule(model, rows, weights, places):
    """The covariance of f at `places`, from the posterior of (intercept, b): a flat prior, and that of the model."""
    design, every = (np.column_stack([np.ones(len(each)), each]) for each in (rows, places))
    prior = np.diag([0.0, *np.broadcast_to(model.lambda_, rows.shape[1])])
    return every @ np.linalg.inv(prior + model.alpha_ * design.T @ (weights[:, None] * design)) @ every.T


@pytest.mark.parametrize("estimator", [BayesianRidge(), ARDRegression(threshold_lambda=1e12)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [6, 25])
def test_the_intercept_is_as_uncertain_as_bayes_rule_says(estimator, weighted, n, rng):
    rows, labels, pool, contexts = data(rng, n=n, p=2)
    rows, pool, contexts = rows + 3.0, pool + 3.0, contexts + 3.0
    weights = rng.uniform(0.5, 2.0, size=n) if weighted and isinstance(estimator, BayesianRidge) else np.ones(n)
    model = clone(estimator)
    model.fit(rows, labels, *([weights] if weighted and isinstance(estimator, BayesianRidge) else []))
    model.n_samples_seen_ = weights.sum()
    wanted = by_bayes_rule(model, rows, weights, np.concatenate([pool, contexts]))
    belief, m = belief_of(model, pool, contexts, target="latent", joint=True), len(pool)
    np.testing.assert_allclose(belief.variance, np.diag(wanted)[m:], rtol=1e-8)
    np.testing.assert_allclose(belief.covariance, wanted[:m, m:], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.delete(belief.candidate_covariance(0), 0), wanted[0, 1:m], rtol=1e-6, atol=1e-9)


def test_six_labels_leave_the_intercept_uncertain():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(6, 1))
    model = BayesianRidge().fit(rows, 0.3 * rows[:, 0] + rng.normal(size=6))
    slope_alone = np.sqrt(model.predict(np.zeros((1, 1)), return_std=True)[1] ** 2 - 1.0 / model.alpha_)[0]
    model.n_samples_seen_ = 6
    sd = np.sqrt(belief_of(model, rows, np.zeros((1, 1)), target="latent").variance[0])
    assert sd == pytest.approx(np.sqrt(by_bayes_rule(model, rows, np.ones(6), np.zeros((1, 1)))[0, 0]), rel=1e-9)
    assert sd > 1.3 * slope_alone


def test_a_scaler_or_an_encoder_before_it_tells_how_many_labels_there_were(rng):
    rows, labels, pool, contexts = data(rng, n=12, p=3)
    alone = BayesianRidge().fit(StandardScaler().fit(rows).transform(rows), labels)
    alone.n_samples_seen_ = 12
    scaler = StandardScaler().fit(rows)
    wanted = belief_of(alone, scaler.transform(pool), scaler.transform(contexts))
    for first in (StandardScaler(), TableEncoder()):
        model = make_pipeline(first, BayesianRidge()).fit(rows, labels)
        np.testing.assert_allclose(belief_of(model, pool, contexts).covariance, wanted.covariance, rtol=1e-9)
        assert not hasattr(model[-1], "n_samples_seen_")  # the model of the user is as it was


def test_labels_are_counted_by_the_spread_of_contexts_where_nobody_tells():
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows, contexts = rng.normal(size=(20, 4)), rng.normal(size=(200, 4))
        model = BayesianRidge().fit(rows, rows[:, 0] + rng.normal(size=20))
        centre = np.tile(model.X_offset_, (1, 1))
        variance = belief_of(model, centre, np.concatenate([contexts, centre]), target="latent").variance[-1]
        found.append(1.0 / model.alpha_ / variance)  # how many labels that is the mean of
    assert 16 < np.median(found) < 24
    assert min(found) > 10
    assert max(found) < 40


def test_rankings_say_what_was_estimated_of_a_linear_model(rng):
    rows, labels, pool, _ = data(rng, n=12, p=3)
    unknown = BayesianRidge().fit(rows, labels)
    assert any("keeps no count" in str(note) for note in rank(unknown, SquaredError(), pool, n=1).notes)
    unknown.n_samples_seen_ = 12
    for model in (
        unknown,
        make_pipeline(StandardScaler(), BayesianRidge()).fit(rows, labels),
        BayesianRidge(fit_intercept=False).fit(rows, labels),
    ):
        assert not any("keeps no count" in str(note) for note in rank(model, SquaredError(), pool, n=1).notes)


def test_scores_are_those_of_a_belief_made_by_hand(rng):
    rows, labels, pool, contexts = data(rng)
    model = GaussianProcessRegressor(2.0 * RBF(1.5) + WhiteKernel(0.1), optimizer=None).fit(rows, labels)
    mean, covariance = model.predict(np.vstack([pool, contexts]), return_cov=True)
    by_hand = GaussianBelief(
        mean[9:], np.diag(covariance)[9:], np.diag(covariance)[:9], covariance[:9, 9:], covariance[:9, :9], 0.1
    )
    belief = belief_of(model, pool, contexts, joint=True)
    for loss in (SquaredError(), Linex(1.0)):
        np.testing.assert_allclose(score(loss, belief), score(loss, by_hand), rtol=1e-9)
    np.testing.assert_allclose(bald(belief), bald(by_hand), rtol=1e-9)
    np.testing.assert_array_equal(
        select(SquaredError(), belief, n=4).indices, select(SquaredError(), by_hand, n=4).indices
    )
    check_belief(belief)


def test_pipelines_and_searches_are_seen_through(rng):
    rows, labels, pool, contexts = data(rng)
    rows, pool, contexts = (5.0 + each * [1.0, 10.0, 0.1] for each in (rows, pool, contexts))
    process = REGRESSORS["both"]
    piped = make_pipeline(StandardScaler(), clone(process)).fit(rows, labels)
    scaler = piped[0]
    plain = clone(process).fit(scaler.transform(rows), labels)
    search = GridSearchCV(piped, {"gaussianprocessregressor__alpha": [0.1]}, cv=2).fit(rows, labels)
    wanted = belief_of(plain, scaler.transform(pool), scaler.transform(contexts))
    for model in (piped, search):
        belief = belief_of(model, pool, contexts)
        for name in ("mean", "variance", "candidate_variance", "covariance"):
            np.testing.assert_array_equal(getattr(belief, name), getattr(wanted, name))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("model", [REGRESSORS["both"], BayesianRidge()])
def test_data_frames_keep_their_names(library, model, rng):
    frames = pytest.importorskip(library)
    rows, labels, pool, contexts = data(rng)
    named = [frames.DataFrame(dict(zip("abc", each.T, strict=True))) for each in (rows, pool, contexts)]
    belief = belief_of(clone(model).fit(named[0], labels), *named[1:])
    np.testing.assert_allclose(belief.covariance, belief_of(clone(model).fit(rows, labels), pool, contexts).covariance)
    with pytest.raises(ValueError, match="feature names"):
        belief_of(clone(model).fit(named[0], labels), named[1][["c", "b", "a"]], named[2])


@pytest.mark.parametrize("model", [REGRESSORS["both"], REGRESSORS["linear noise"], BayesianRidge()])
def test_single_precision_changes_little(model, rng):
    sets = data(rng)
    rows, labels, pool, contexts = (each.astype(np.float32) for each in sets)
    belief = belief_of(clone(model).fit(rows, labels), pool, contexts)
    wanted = belief_of(clone(model).fit(*sets[:2]), *sets[2:])
    assert belief.mean.dtype == np.float64
    np.testing.assert_allclose(belief.mean, wanted.mean, rtol=1e-4)
    np.testing.assert_allclose(belief.covariance, wanted.covariance, atol=1e-4)


def test_one_label_so_far(rng):
    rows, labels, pool, contexts = data(rng, n=1)
    model = clone(REGRESSORS["kernel noise"]).fit(rows, labels)
    belief = belief_of(model, pool, contexts)
    np.testing.assert_allclose(belief.variance, model.predict(contexts, return_std=True)[1] ** 2)


def test_duplicated_rows_and_constant_columns(rng):
    rows, labels, pool, contexts = data(rng)
    rows, pool = np.vstack([rows, rows[:4]]), np.vstack([pool[:3], pool[:3], rows[:2]])
    labels = np.append(labels, labels[:4])
    rows, pool, contexts = (np.c_[each, np.full(len(each), 7.0)] for each in (rows, pool, contexts))
    for model in (REGRESSORS["both"], GaussianProcessRegressor(RBF(1.5), optimizer=None), BayesianRidge()):
        belief = belief_of(clone(model).fit(rows, labels), pool, np.vstack([contexts, pool[:1], rows[:1]]), joint=True)
        np.testing.assert_allclose(belief.covariance[0], belief.covariance[3])
        row, noise = belief.candidate_covariance(0), belief.noise_variance[0]
        np.testing.assert_allclose(row[0] - row[3], noise, atol=1e-9)  # two labels of one row share all but noise
        assert np.isfinite(score(SquaredError(), belief)).all()


def test_a_known_value_has_no_variance(rng):
    rows, labels, _, contexts = data(rng)
    model = GaussianProcessRegressor(RBF(1.5), optimizer=None).fit(rows, labels)  # alpha is jitter, no noise
    belief = belief_of(model, rows, np.vstack([rows, contexts]))
    assert belief.variance[: len(rows)].max() < 1e-9
    assert not belief.noise_variance.any()
    assert score(SquaredError(), belief).max() < 1e-9


def test_an_alpha_for_each_label_is_averaged_aloud(rng):
    rows, labels, pool, contexts = data(rng)
    alpha = np.linspace(0.1, 0.3, 14)
    model = GaussianProcessRegressor(RBF(1.5), alpha=alpha, optimizer=None).fit(rows, labels)
    with pytest.warns(UserWarning, match=r"none for labels to come: their mean, 0\.2, is taken"):
        belief = belief_of(model, pool, contexts)
    np.testing.assert_allclose(belief.noise_variance, 0.2)
    np.testing.assert_allclose(belief.variance, model.predict(contexts, return_std=True)[1] ** 2 + 0.2, rtol=1e-10)


@pytest.mark.parametrize("model", [GaussianProcessRegressor(), BayesianRidge(), ARDRegression()])
def test_bad_input_is_refused_as_the_model_does(model, rng):
    rows, labels, pool, contexts = data(rng)
    with pytest.raises(NotFittedError):
        belief_of(clone(model), pool, contexts)
    model = clone(model).fit(rows, labels)
    with pytest.raises(ValueError, match="3 features"):
        belief_of(model, pool[:, :2], contexts)
    with pytest.raises(ValueError, match="3 features"):
        belief_of(model, pool, contexts[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        belief_of(model, np.where(pool == pool[0, 0], np.nan, pool), contexts)


def test_a_large_pool_goes_in_blocks(rng):
    rows, labels, _, contexts = data(rng)
    pool = rng.normal(size=(2500, 3))
    model = clone(REGRESSORS["linear noise"]).fit(rows, labels)
    belief = belief_of(model, pool, contexts)
    part = belief_of(model, pool[1000:1100], contexts)
    np.testing.assert_allclose(belief.covariance[1000:1100], part.covariance, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(belief.candidate_variance[1000:1100], part.candidate_variance, rtol=1e-12)


class _Length(RBF):
    """A kernel of strings, by their lengths."""

    requires_vector_input = False

    def __call__(self, X, Y=None, eval_gradient=False):
        return RBF.__call__(self, _lengths(X), None if Y is None else _lengths(Y))

    def diag(self, X):
        return np.ones(len(X))


def _lengths(texts):
    return np.array([[float(len(word))] for word in texts])


def test_kernels_of_anything_are_served():
    model = GaussianProcessRegressor(_Length(2.0), alpha=0.1, optimizer=None).fit(["a", "bbb", "cc"], [1.0, 3.0, 2.0])
    belief = belief_of(model, ["dddd"], ["eeeee", "f"])
    numbers = GaussianProcessRegressor(RBF(2.0), alpha=0.1, optimizer=None).fit([[1.0], [3.0], [2.0]], [1.0, 3.0, 2.0])
    np.testing.assert_allclose(belief.covariance, belief_of(numbers, [[4.0]], [[5.0], [1.0]]).covariance)


def test_a_list_of_gaussian_models_is_a_mixture(rng):
    rows, contexts = rng.standard_normal((5, 2)), rng.standard_normal((3, 2))
    X = rng.standard_normal((12, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(12)
    models = [GaussianProcessRegressor(RBF(length) + WhiteKernel(0.1), optimizer=None).fit(X, y) for length in (0.5, 2)]
    for joint in (False, True):
        belief = belief_of(models, rows, contexts, joint=joint)
        assert isinstance(belief, GaussianMixtureBelief)
        for s, model in enumerate(models):
            np.testing.assert_allclose(belief.candidate_mean[s], model.predict(rows), rtol=1e-9)
            one = belief_of(model, rows, contexts, joint=joint)
            np.testing.assert_allclose(belief.mean[s], one.mean)
            np.testing.assert_allclose(belief.covariance[s], one.covariance)
            if joint:
                np.testing.assert_allclose(belief.candidate_covariance(2)[s], one.candidate_covariance(2))
    with pytest.raises(TypeError, match="a list of Gaussian models of one output"):
        belief_of([models[0], RandomForestRegressor(20, random_state=0, oob_score=True).fit(X, y)], rows, contexts)


def test_a_transformed_list_is_a_mixture_in_units_of_the_labels():
    belief = GaussianMixtureBelief.from_beliefs(
        [
            GaussianBelief([0.0], [1.0], [1.0], [[0.5]], None, 0.2),
            GaussianBelief([1.0], [2.0], [1.0], [[0.3]], None, 0.1),
        ],
        [[0.0], [1.0]],
    )
    found = rescaled(belief, 10.0, 3.0)
    np.testing.assert_allclose(found.candidate_mean, [[10.0], [13.0]])
    np.testing.assert_allclose(found.noise_variance, [[1.8], [0.9]])
    np.testing.assert_allclose(score(SquaredError(), found), 9.0 * score(SquaredError(), belief), rtol=1e-9)
    warped = untransformed(belief, FunctionTransformer(np.log, np.exp))
    assert isinstance(warped, WarpedGaussianBelief)
    assert isinstance(warped.latent, GaussianMixtureBelief)
