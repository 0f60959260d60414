"""Gaussian processes on a device of torch, against the same processes in NumPy; on a GPU, too, where there is one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import SquaredError, Weight, rank, score, select
from stakes.models import GaussianProcess, Hyperparameters, OnDevice, belief_of, prepare_belief
from stakes.models.gp_posterior import KernelPosterior
from stakes.testing import check_belief
from tests.models.regression_cases import check_reduction, data

torch = pytest.importorskip("torch", reason="torch is not installed")

VALUES = Hyperparameters(linear=0.5, signal=1.2, length=1.5, noise=0.3, mean=2.0)
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")),
]
KERNELS = {
    "rbf": 2.0 * RBF(1.3) + WhiteKernel(0.1),
    "one length for each feature": ConstantKernel(1.5) * RBF([0.8, 1.3, 2.0]) + WhiteKernel(0.1),
    "matern": 1.44 * Matern(1.5, nu=2.5) + 0.3 * DotProduct(0.7) + WhiteKernel(0.05),
    "noise times a factor": 2.0 * (Matern(0.7, nu=0.5) + WhiteKernel(0.1)),
    "products": RBF(2.0) * Matern(1.0, nu=1.5) + ConstantKernel(0.2) + WhiteKernel(0.1),
    "a constant alone": ConstantKernel(0.5) + WhiteKernel(0.1),
}


def assert_same(belief, wanted, rtol=1e-9):
    assert isinstance(belief.covariance, torch.Tensor)
    for name in ("mean", "variance", "candidate_variance", "covariance", "noise_variance"):
        found, host = getattr(belief, name).cpu().numpy(), getattr(wanted, name)
        np.testing.assert_allclose(found, host, rtol=rtol, atol=rtol * np.max(abs(host)), err_msg=name)
    if wanted.candidate_covariance is not None:
        row, host = belief.candidate_covariance(2).cpu().numpy(), wanted.candidate_covariance(2)
        np.testing.assert_allclose(row, host, rtol=rtol, atol=rtol * np.max(abs(host)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, np.inf])
@pytest.mark.parametrize("target", ["label", "latent"])
def test_the_belief_is_that_of_the_host(device, nu, target, rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES, nu=nu).fit(rows, labels)
    pool = np.concatenate([pool, rows[:2], contexts[:1]])  # also where labels and contexts are
    belief = belief_of(OnDevice(process, device), pool, contexts, target=target, joint=True)
    assert_same(belief, belief_of(process, pool, contexts, target=target, joint=True))
    assert belief.covariance.device.type == device
    check_belief(belief)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("scaled", [False, True])
def test_scikit_learns_processes_are_served_with_known_kernels(name, scaled, rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcessRegressor(KERNELS[name], optimizer=None, normalize_y=scaled).fit(rows, labels)
    assert_same(
        belief_of(OnDevice(process, "cpu"), pool, contexts, joint=True), belief_of(process, pool, contexts, joint=True)
    )


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), sizes=st.tuples(*[st.integers(1, 12)] * 3), offset=st.sampled_from([0.0, 1e4]))
def test_blocks_of_any_size_give_the_same(seed, sizes, offset):
    rng = np.random.default_rng(seed)
    rows, pool, contexts = (rng.normal(size=(count, 2)) + offset for count in sizes)
    process = GaussianProcess(Hyperparameters(0.0, 1.0, 0.8, 0.2)).fit(rows, rng.normal(size=len(rows)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stakes.models.gp_posterior._ROWS", 3)
        patch.setattr("stakes.models.gp_posterior._PAIRS", 16)
        belief = belief_of(OnDevice(process, "cpu"), pool, contexts)
    assert_same(belief, belief_of(process, pool, contexts))


def test_a_label_removes_what_the_belief_says(rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    belief = belief_of(OnDevice(process, "cpu"), pool, contexts)
    refitted = [process.condition(pool[n : n + 1], [0.0]).predict(contexts, return_std=True)[1] ** 2 for n in range(9)]
    left = (1.0 - belief.rho) * belief.variance
    np.testing.assert_allclose(left.numpy(), refitted, rtol=1e-8)
    check_reduction(belief_of(process, pool, contexts), np.stack(refitted))


def sigmoid(z):
    return 1.0 / (1.0 + (torch if isinstance(z, torch.Tensor) else np).exp(-2.0 * z))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", [SquaredError(), SquaredError(Weight(sigmoid))], ids=["squared", "sigmoid"])
@pytest.mark.parametrize("batch", [False, True])
def test_the_same_rows_are_picked(device, loss, batch, rng):
    rows, labels, _, contexts = data(rng)
    process, pool = GaussianProcess(VALUES).fit(rows, labels), rng.normal(size=(200, 3))
    wanted = rank(process, loss, pool, contexts=contexts, n=5, batch=batch, chunk=64, shortlist=50)
    found = rank(OnDevice(process, device), loss, pool, contexts=contexts, n=5, batch=batch, chunk=64, shortlist=50)
    assert found.indices == wanted.indices
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-7)


def test_single_precision_by_choice(rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    belief = belief_of(OnDevice(process, "cpu", "float32"), pool, contexts, joint=True)
    assert belief.covariance.dtype == belief.mean.dtype == torch.float32
    assert_same(belief, belief_of(process, pool, contexts, joint=True), rtol=1e-4)
    assert score(SquaredError(), belief).dtype == torch.float32
    assert len(select(SquaredError(), belief, n=3).indices) == 3


def test_steps_before_the_process_run_on_the_host(rng):
    rows, labels, pool, contexts = data(rng)
    pipeline = make_pipeline(StandardScaler(), GaussianProcess()).fit(5.0 + rows, labels)
    device = OnDevice(pipeline, "cpu")
    assert_same(belief_of(device, pool, contexts), belief_of(pipeline, pool, contexts))
    assert device.n_features_in_ == 3
    search = GridSearchCV(pipeline, {"gaussianprocess__nu": [1.5, 2.5]}, cv=2).fit(rows, labels)
    assert_same(belief_of(OnDevice(search, "cpu"), pool, contexts), belief_of(search, pool, contexts))


def test_gaps_and_columns_are_left_to_the_first_step(rng):
    rows, labels, pool, contexts = data(rng)
    pool[2, 1] = np.nan
    pipeline = make_pipeline(SimpleImputer(), GaussianProcess(VALUES)).fit(rows, labels)
    wanted = rank(pipeline, SquaredError(), pool, contexts=contexts, n=3)
    assert rank(OnDevice(pipeline, "cpu"), SquaredError(), pool, contexts=contexts, n=3).indices == wanted.indices
    with pytest.raises(ValueError, match="pool"):
        rank(OnDevice(pipeline[-1], "cpu"), SquaredError(), pool, contexts=contexts, n=3)
    with pytest.raises(ValueError, match="pool must have the 3 columns"):
        rank(OnDevice(pipeline, "cpu"), SquaredError(), pool[:, :2], contexts=contexts[:, :2], n=3)


def test_tensors_are_taken_as_rows(rng):
    rows, labels, pool, contexts = data(rng)
    device = OnDevice(GaussianProcess(VALUES).fit(rows, labels), "cpu")
    found = belief_of(device, torch.as_tensor(pool), torch.as_tensor(contexts))
    torch.testing.assert_close(found.covariance, belief_of(device, pool, contexts).covariance)
    for bad, message in ((torch.zeros(2, 4), r"\[B, 3\]"), (torch.full((2, 3), torch.nan), "finite")):
        with pytest.raises(ValueError, match=message):
            belief_of(device, bad, contexts)


def _contexts(asked):
    """How often the 5 contexts were asked about on the device."""
    return sum(isinstance(rows, torch.Tensor) and len(rows) == 5 for rows in asked)


def test_what_contexts_need_is_computed_once(rng, monkeypatch):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    device, asked = OnDevice(process, "cpu"), []
    place = KernelPosterior.place
    monkeypatch.setattr(KernelPosterior, "place", lambda self, rows: asked.append(rows) or place(self, rows))
    rank(device, SquaredError(), pool, contexts=contexts, n=2, chunk=2, batch=False)
    assert _contexts(asked) == 1
    prepared = prepare_belief(device, contexts)
    for part in (pool[:2], pool[2:]):
        assert_same(prepared(part), belief_of(process, part, contexts))
    assert _contexts(asked) == 2
    contexts[0] += 1.0  # in place
    assert_same(belief_of(device, pool, contexts), belief_of(process, pool, contexts))
    assert _contexts(asked) == 3
    process.fit(rows[:7], labels[:7])
    assert_same(belief_of(device, pool, contexts), belief_of(process, pool, contexts))


def test_what_is_kept_is_not_sent_along(rng):
    rows, labels, pool, contexts = data(rng)
    device = OnDevice(GaussianProcess(VALUES).fit(rows, labels), "cpu")
    before = len(pickle.dumps(device))
    belief = belief_of(device, pool, contexts)
    sent = pickle.dumps(device)
    assert len(sent) == before
    torch.testing.assert_close(belief_of(pickle.loads(sent), pool, contexts).covariance, belief.covariance)
    assert pickle.loads(sent).device == "cpu"


def test_refusals_say_what_is_served(rng):
    rows, labels, pool, contexts = data(rng)
    process = GaussianProcess(VALUES).fit(rows, labels)
    with pytest.raises(TypeError, match=r"GaussianProcessRegressor, or a pipeline .* got Ridge"):
        OnDevice(Ridge().fit(rows, labels), "cpu")
    with pytest.raises(NotFittedError):
        OnDevice(GaussianProcess(), "cpu")
    with pytest.raises(ValueError, match="'float64' or 'float32'; got 'float16'"):
        OnDevice(process, "cpu", "float16")
    with pytest.raises(ValueError, match=r"one that torch has here.*'nowhere'"):
        OnDevice(process, "nowhere")
    other = GaussianProcessRegressor(RationalQuadratic(), alpha=0.1, optimizer=None).fit(rows, labels)
    with pytest.raises(TypeError, match=r"sums and products of .* got RationalQuadratic"):
        OnDevice(other, "cpu")
    several = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit(rows, np.stack([labels, labels], axis=1))
    with pytest.raises(ValueError, match="one output; this model has 2"):
        OnDevice(several, "cpu")
    with pytest.raises(ValueError, match="features"):
        belief_of(OnDevice(process, "cpu"), pool[:, :2], contexts)
