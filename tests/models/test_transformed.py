"""TransformedTargetRegressor and MultiOutputRegressor as beliefs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import stakes
from stakes import (
    BoxCoxWarp,
    GaussianBelief,
    ItakuraSaito,
    LogWarp,
    NormalEnsemble,
    SquaredError,
    VectorGaussianBelief,
    WarpedGaussianBelief,
    score,
    select,
)
from stakes.losses.domains import POSITIVE, REAL, Interval
from stakes.models import GaussianProcess, belief_of
from stakes.models.transformed import YeoJohnsonWarp
from stakes.testing import check_belief
from tests.models.regression_cases import check_reduction, data


def logit(z):
    return np.log(z / (1.0 - z))


def expit(f):
    return 1.0 / (1.0 + np.exp(-f))


def log_of_any_base(z, base=10.0):
    return np.log(z) / np.log(base)


def power_of_any_base(f, base=10.0):
    return base**f


PROCESS = GaussianProcessRegressor(0.3 * RBF(1.5) + WhiteKernel(0.01), optimizer=None)
LOG = {"func": np.log, "inverse_func": np.exp}
AFFINE = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1.0, 3.0)),
    RobustScaler(),
    MaxAbsScaler(),
    FunctionTransformer(),
    make_pipeline(MinMaxScaler(), StandardScaler()),
    make_pipeline("passthrough", StandardScaler()),
]
WARPED = {
    "log": (LOG, LogWarp, POSITIVE),
    "log, then scaled": (
        {"transformer": make_pipeline(FunctionTransformer(np.log, np.exp), StandardScaler())},
        LogWarp,
        POSITIVE,
    ),
    "box-cox": ({"transformer": PowerTransformer("box-cox")}, BoxCoxWarp, POSITIVE),
    "box-cox alone": ({"transformer": PowerTransformer("box-cox", standardize=False)}, BoxCoxWarp, POSITIVE),
    "yeo-johnson": ({"transformer": PowerTransformer()}, YeoJohnsonWarp, REAL),
    "log1p": ({"func": np.log1p, "inverse_func": np.expm1}, None, Interval(low=-1.0)),
    "log10": ({"func": np.log10, "inverse_func": power_of_any_base}, None, POSITIVE),
    "cube root": ({"func": np.cbrt, "inverse_func": lambda f: f**3}, None, REAL),
    "arcsinh": ({"func": np.arcsinh, "inverse_func": np.sinh}, None, REAL),
    "with arguments": (
        {
            "transformer": FunctionTransformer(
                log_of_any_base, power_of_any_base, kw_args={"base": 2.0}, inv_kw_args={"base": 2.0}
            )
        },
        None,
        POSITIVE,
    ),
    "falling": ({"func": lambda z: -np.log(z), "inverse_func": lambda f: np.exp(-f)}, None, POSITIVE),
    "scaled, then log": (
        {"transformer": make_pipeline(MinMaxScaler((1.0, 2.0)), FunctionTransformer(np.log, np.exp))},
        None,
        None,
    ),
}


def positive_data(rng):
    rows, labels, pool, contexts = data(rng, n=25)
    return rows, np.exp(0.3 * (labels - 3.0)), pool, contexts


@pytest.mark.parametrize("transformer", AFFINE, ids=str)
def test_affine_transformers_leave_the_belief_gaussian(transformer, rng):
    rows, labels, pool, contexts = positive_data(rng)
    model = TransformedTargetRegressor(PROCESS, transformer=transformer).fit(rows, labels)
    belief = belief_of(model, pool, contexts, joint=True)
    assert isinstance(belief, GaussianBelief)
    np.testing.assert_allclose(belief.mean, model.predict(contexts), rtol=1e-12)
    ends = np.asarray(model.transformer_.inverse_transform([[0.0], [1.0]]))[:, 0]
    unit = (ends[1] - ends[0]) ** 2
    plain = belief_of(model.regressor_, pool, contexts, joint=True)
    for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
        np.testing.assert_allclose(getattr(belief, name), unit * getattr(plain, name), rtol=1e-10)
    np.testing.assert_allclose(belief.candidate_covariance(1), unit * plain.candidate_covariance(1), rtol=1e-10)


@pytest.mark.parametrize("name", WARPED)
def test_other_transformers_warp_it(name, rng):
    rows, labels, pool, contexts = positive_data(rng)
    arguments, kind, domain = WARPED[name]
    model = TransformedTargetRegressor(PROCESS, **arguments).fit(rows, labels)
    belief = belief_of(model, pool, contexts, joint=True)
    assert isinstance(belief, WarpedGaussianBelief)
    assert kind is None or type(belief.warp) is kind
    median = belief.warp.forward(belief.latent.mean)
    np.testing.assert_allclose(median, model.predict(contexts), rtol=1e-10)
    np.testing.assert_allclose(belief.warp.inverse(median), belief.latent.mean, rtol=1e-8, atol=1e-10)
    quantile = belief.warp.forward(belief.latent.mean + np.sqrt(belief.latent.variance))
    assert (quantile > median).all()
    mean, sd = model.regressor_.predict(contexts, return_std=True)
    side = -1.0 if name == "falling" else 1.0
    wanted = model.transformer_.inverse_transform((mean + side * sd)[:, None])[:, 0]
    np.testing.assert_allclose(quantile, wanted, rtol=1e-7)
    np.testing.assert_allclose(belief.rho, belief_of(model.regressor_, pool, contexts).rho, rtol=1e-10)
    assert domain is None or belief.domain == domain
    assert score(SquaredError(), belief).min() > 0
    assert len(select(SquaredError(), belief, n=3).indices) == 3


def test_limits_of_a_map_become_the_domain(rng):
    rows, labels, pool, contexts = positive_data(rng)
    scaled = make_pipeline(MinMaxScaler((0.2, 0.8)), FunctionTransformer(logit, expit))
    model = TransformedTargetRegressor(PROCESS, transformer=scaled).fit(rows, labels)
    belief = belief_of(model, pool, contexts)
    low, high = model.transformer_[0].inverse_transform([[0.0], [1.0]])[:, 0]
    assert (belief.domain.low, belief.domain.high) == pytest.approx((low, high))
    check_belief(belief, rtol=1e-4)


def test_any_map_scores_as_the_warp_it_is(rng):
    rows, labels, pool, contexts = positive_data(rng)
    known = belief_of(TransformedTargetRegressor(PROCESS, **LOG).fit(rows, labels), pool, contexts)
    for sign in (1.0, -1.0):
        pair = {"func": lambda z, s=sign: s * np.log(z), "inverse_func": lambda f, s=sign: np.exp(s * f)}
        belief = belief_of(TransformedTargetRegressor(PROCESS, **pair).fit(rows, labels), pool, contexts)
        for loss in (SquaredError(), ItakuraSaito()):
            np.testing.assert_allclose(score(loss, belief), score(loss, known), rtol=1e-8)


def test_a_log_target_is_the_belief_made_by_hand(rng):
    rows, labels, pool, contexts = positive_data(rng)
    model = make_pipeline(StandardScaler(), TransformedTargetRegressor(GaussianProcess(), **LOG)).fit(rows, labels)
    belief = belief_of(model, pool, contexts)
    scaler = StandardScaler().fit(rows)
    process = GaussianProcess().fit(scaler.transform(rows), np.log(labels))
    by_hand = WarpedGaussianBelief(process.belief(scaler.transform(pool), scaler.transform(contexts)), LogWarp())
    np.testing.assert_allclose(score(ItakuraSaito(), belief), score(ItakuraSaito(), by_hand), rtol=1e-10)
    check_belief(belief)


@pytest.mark.parametrize("target", ["label", "latent"])
def test_a_label_removes_latent_variance_as_refitting_does(target, rng):
    rows, labels, pool, contexts = positive_data(rng)
    model = TransformedTargetRegressor(PROCESS, **LOG).fit(rows, labels)
    belief = belief_of(model, pool, contexts, target=target)
    after = []
    for candidate in pool:
        more = clone(model).fit(np.vstack([rows, candidate]), np.append(labels, 1.0))
        after.append(belief_of(more, pool, contexts, target=target).latent.variance)
    check_reduction(belief.latent, np.stack(after))


def test_square_roots_need_belief_in_positive_roots(rng):
    rows, labels, pool, contexts = positive_data(rng)
    pair = {"func": np.sqrt, "inverse_func": np.square}
    sure = TransformedTargetRegressor(BayesianRidge(), **pair).fit(rows, labels + 9.0)
    belief = belief_of(sure, pool, contexts)
    assert belief.warp == BoxCoxWarp(0.5)
    np.testing.assert_allclose(belief.warp.forward(belief.latent.mean), sure.predict(contexts), rtol=1e-10)
    doubtful = TransformedTargetRegressor(PROCESS, **pair).fit(rows, 0.01 * labels)
    with pytest.raises(ValueError, match="of its mass outside"):
        belief_of(doubtful, 9.0 * pool, 9.0 * contexts)


@pytest.mark.parametrize("lam", [-0.5, 0.0, 0.3, 1.0, 1.7, 2.0, 2.5])
def test_yeo_johnson_is_that_of_scikit_learn(lam, xp, host):
    transformer = PowerTransformer(standardize=False).fit([[1.0], [2.0], [3.0]])
    transformer.lambdas_ = np.array([lam])
    warp = YeoJohnsonWarp(lam)
    z = np.array([-3.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 4.0])
    f = transformer.transform(z[:, None])[:, 0]
    assert ((warp.latent.low < f) & (f < warp.latent.high)).all()
    np.testing.assert_allclose(host(warp.forward(xp.asarray(f))), z, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(host(warp.inverse(xp.asarray(z))), f, rtol=1e-12, atol=1e-13)
    far = np.linspace(-30.0, 30.0, 501)
    assert (np.diff(host(warp.forward(xp.asarray(far)))) > 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"func": np.reciprocal, "inverse_func": np.reciprocal}, "does not rise or fall strictly"),
        ({"func": np.log, "inverse_func": np.log1p, "check_inverse": False}, "gives no number"),
        ({"func": np.log, "inverse_func": np.sinh, "check_inverse": False}, "is not undone by the transform"),
        ({"func": lambda z: z, "inverse_func": lambda f: np.clip(f, 0.9, 1.1), "check_inverse": False}, "strictly"),
        ({"func": np.cos, "inverse_func": lambda f: f - f**3 / 40.0, "check_inverse": False}, "is not undone|turns"),
        ({"transformer": QuantileTransformer(n_quantiles=9)}, "beyond the smallest and largest label"),
        ({"transformer": make_pipeline(QuantileTransformer(n_quantiles=9), PowerTransformer())}, "QuantileTransformer"),
    ],
)
def test_maps_that_cannot_be_undone_are_refused(arguments, message, rng):
    rows, labels, pool, contexts = positive_data(rng)
    model = TransformedTargetRegressor(PROCESS, **arguments).fit(rows, labels)
    with pytest.raises(ValueError, match=message):
        belief_of(model, pool, contexts)


class _Members(RegressorMixin, BaseEstimator):
    """Two members of the labels' mean and spread."""

    def fit(self, X, y):
        self.members_ = np.array([np.mean(y), np.max(y)])
        return self

    def predict(self, X):
        return np.full(len(X), self.members_.mean())

    def belief(self, pool, contexts):
        means = [np.tile(self.members_, (len(each), 1)) for each in (pool, contexts)]
        return NormalEnsemble(means[0], 0.5, means[1], 0.5)


def test_ensembles_are_scaled_and_not_warped(rng):
    rows, labels, pool, contexts = positive_data(rng)
    model = TransformedTargetRegressor(_Members(), transformer=StandardScaler()).fit(rows, labels)
    belief = belief_of(model, pool, contexts)
    np.testing.assert_allclose(belief.context_mean[0], [labels.mean(), labels.max()])
    np.testing.assert_allclose(belief.candidate_mean[0], [labels.mean(), labels.max()])
    np.testing.assert_allclose(belief.context_sd, 0.5 * labels.std())
    with pytest.raises(TypeError, match="only a Gaussian belief about one output can be seen through Function"):
        belief_of(TransformedTargetRegressor(_Members(), **LOG).fit(rows, labels), pool, contexts)


def test_outputs_are_scaled_each_by_its_own(rng):
    rows, labels, pool, contexts = data(rng, outputs=2)
    labels = labels * [1.0, 20.0]
    model = TransformedTargetRegressor(PROCESS, transformer=StandardScaler()).fit(rows, labels)
    belief = belief_of(model, pool, contexts, joint=True)
    assert isinstance(belief, VectorGaussianBelief)
    np.testing.assert_allclose(belief.mean, model.predict(contexts))
    for j in range(2):
        alone = belief_of(clone(model).fit(rows, labels[:, j]), pool, contexts, joint=True)
        for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
            np.testing.assert_allclose(getattr(belief, name)[..., j, j], getattr(alone, name), rtol=1e-10)
        np.testing.assert_allclose(belief.candidate_covariance(4)[j, :, j], alone.candidate_covariance(4), rtol=1e-10)
    with pytest.raises(TypeError, match="one output"):
        belief_of(TransformedTargetRegressor(PROCESS, **LOG).fit(rows, labels), pool, contexts)


def test_a_regressor_for_each_output(rng):
    rows, labels, pool, contexts = data(rng, outputs=2)
    model = MultiOutputRegressor(GaussianProcess()).fit(rows, labels)
    belief = belief_of(model, pool, contexts, joint=True)
    assert isinstance(belief, VectorGaussianBelief)
    np.testing.assert_allclose(belief.mean, model.predict(contexts))
    for j in range(2):
        alone = GaussianProcess().fit(rows, labels[:, j]).belief(pool, contexts, joint=True)
        for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
            np.testing.assert_allclose(getattr(belief, name)[..., j, j], getattr(alone, name), rtol=1e-10)
            assert not getattr(belief, name)[..., j, 1 - j].any()
        np.testing.assert_allclose(belief.candidate_covariance(4)[j, :, j], alone.candidate_covariance(4), rtol=1e-10)
    assert belief_of(model, pool, contexts).candidate_covariance is None
    with pytest.raises(TypeError, match="MultiOutputRegressor is served where its regressors are Gaussian"):
        belief_of(MultiOutputRegressor(_Members()).fit(rows, labels), pool, contexts)


@pytest.mark.parametrize("model", [TransformedTargetRegressor(PROCESS, **LOG), MultiOutputRegressor(PROCESS)])
def test_unfitted_and_unknown_regressors(model, rng):
    rows, labels, pool, contexts = positive_data(rng)
    with pytest.raises(NotFittedError):
        belief_of(model, pool, contexts)
    tree = TransformedTargetRegressor(LinearRegression(), **LOG).fit(rows, labels)
    with pytest.raises(TypeError, match="no adapter knows a LinearRegression"):
        belief_of(tree, pool, contexts)


@pytest.mark.parametrize("batch", [None, False])
def test_linex_of_a_model_of_the_logarithm_through_rank_and_outlook(batch):
    """The pair that the design recommends, latent N(0, 1): exp(-exp(f)) has a mean, and no number for most f."""
    noise = 1.0 / 0.97 - 1.0  # of a label: it tells 0.97 of the variance
    kernel = RBF(1.0, "fixed") + WhiteKernel(noise, "fixed")
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0)
    model = TransformedTargetRegressor(process, **LOG).fit([[99.0]], [1.0])  # so far off that it tells nothing
    settings = {"pool": np.zeros((1, 1)), "contexts": np.zeros((1, 1)), "n": 1, "target": "latent"}
    ranking = stakes.rank(model, stakes.Linex(1.0), **settings, batch=batch)
    assert ranking.scores[0] == pytest.approx(0.598647, rel=2e-6)
    if batch is None:
        found = stakes.outlook(model, stakes.Linex(1.0), **settings)
        assert found.offers[0].worth == found.most.value  # a fifth more, but no more than that
        assert found.today.value == pytest.approx(0.685749, rel=2e-6)
        assert found.most.value == pytest.approx(0.685749, rel=2e-6)
