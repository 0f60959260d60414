"""Posterior draws of ArviZ and xarray as beliefs: any order of dimensions, chains merged."""

import numpy as np
import pytest

xr = pytest.importorskip("xarray", reason="xarray is not installed")
az = pytest.importorskip("arviz", reason="arviz is not installed")

from stakes import CategoricalEnsemble, LogLoss, NormalEnsemble, SquaredError, score  # noqa: E402
from stakes.exceptions import StakesError  # noqa: E402
from stakes.integrations.arviz import categorical_ensemble, joint_draws, merged, normal_ensemble  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

RNG = np.random.default_rng(0)
POOL, LATER, SIGMA = RNG.normal(size=(2, 30, 4)), RNG.normal(size=(2, 30, 3)), RNG.uniform(0.5, 1, size=(2, 30))
ROWS = POOL.reshape(60, 4).T  # [N, K]
PROBABILITIES = RNG.dirichlet(np.ones(3), size=(2, 30, 5))


def arrays():
    return {
        "mu": xr.DataArray(POOL, dims=("chain", "draw", "row")).transpose("row", "draw", "chain"),
        "later": xr.DataArray(LATER, dims=("chain", "draw", "place")).transpose("draw", "place", "chain"),
        "sigma": xr.DataArray(SIGMA, dims=("chain", "draw")).transpose("draw", "chain"),
    }


def containers():
    found = arrays()
    dataset = xr.Dataset(found)
    numbers = {"mu": POOL.reshape(60, 4), "later": LATER.reshape(60, 3), "sigma": SIGMA.ravel()}
    inference = az.from_dict(
        posterior={"sigma": SIGMA}, posterior_predictive={"mu": POOL}, predictions={"later": LATER}
    )
    tree = xr.DataTree.from_dict(
        {"/posterior": dataset[["sigma"]], "/predictions": dataset[["later"]], "/posterior_predictive": dataset[["mu"]]}
    )
    return {"dict": numbers, "dataset": dataset, "InferenceData": inference, "DataTree": tree}


@pytest.mark.parametrize("kind", ["dict", "dataset", "InferenceData", "DataTree"])
def test_a_normal_ensemble_of_named_variables(kind):
    belief = normal_ensemble(containers()[kind], candidates="mu", contexts="later", noise="sigma")
    sd = SIGMA.ravel()
    wanted = NormalEnsemble(ROWS, sd, LATER.reshape(60, 3).T, sd)
    np.testing.assert_allclose(belief.candidate_mean, wanted.candidate_mean)
    np.testing.assert_allclose(score(SquaredError(), belief), score(SquaredError(), wanted), rtol=1e-9)


def test_arrays_and_a_number_for_the_noise():
    latent = normal_ensemble(None, candidates=arrays()["mu"], contexts=LATER, noise=0.5, target="latent", chains=True)
    np.testing.assert_allclose(latent.candidate_mean, ROWS)
    np.testing.assert_allclose(latent.context_sd, 0.0)
    for noise in (np.float32(0.5), np.array(0.5), xr.DataArray(0.5)):
        belief = normal_ensemble(None, candidates=POOL, contexts=LATER, noise=noise, chains=True)
        np.testing.assert_allclose(belief.context_sd, 0.5)
    stacked = arrays()["mu"].stack(sample=("chain", "draw"))
    np.testing.assert_allclose(merged(None, stacked), ROWS)


def test_classes_with_and_without_their_dimension():
    array = xr.DataArray(PROBABILITIES, dims=("chain", "draw", "row", "class")).transpose(
        "row", "class", "draw", "chain"
    )
    belief = categorical_ensemble(None, candidates=array, contexts=array)
    members = np.moveaxis(PROBABILITIES.reshape(60, 5, 3), 0, 1)
    wanted = CategoricalEnsemble(members, members)
    np.testing.assert_allclose(score(LogLoss(), belief), score(LogLoss(), wanted), rtol=1e-9)
    turned = array.transpose("class", "row", "draw", "chain")
    at_once = categorical_ensemble(None, candidates=turned, contexts=array)
    np.testing.assert_allclose(score(LogLoss(), at_once), score(LogLoss(), wanted), rtol=1e-9)
    two = categorical_ensemble(None, candidates=PROBABILITIES[0, :, :, 1], contexts=PROBABILITIES[0, :, :2, 1])
    np.testing.assert_allclose(two.candidates[..., 1], PROBABILITIES[0, :, :, 1].T)


def test_as_many_draws_that_are_not_the_same():
    """Thinned by one rule and by another, or in the order of `az.extract`: coordinates tell where there are any."""
    first = arrays()["mu"].assign_coords(draw=np.arange(30), chain=[0, 1])
    options = {"noise": 1.0}
    later = arrays()["later"].assign_coords(draw=np.arange(30), chain=[0, 1])
    assert normal_ensemble(None, candidates=first, contexts=later, **options).candidate_mean.shape == (4, 60)
    stacked = later.stack(sample=("chain", "draw"))
    np.testing.assert_allclose(
        normal_ensemble(None, candidates=first, contexts=stacked, **options).context_mean, LATER.reshape(60, 3).T
    )
    for other in (later.assign_coords(draw=2 * np.arange(30)), stacked[:, ::-1]):
        with pytest.raises(StakesError, match="the same draws in the same order; by their coordinates they do not"):
            normal_ensemble(None, candidates=first, contexts=other, **options)
        assert normal_ensemble(
            None, candidates=first, contexts=other.drop_vars(["draw", "chain", "sample"], errors="ignore"), **options
        )
    noise = arrays()["sigma"].assign_coords(draw=np.arange(1, 31), chain=[0, 1])
    with pytest.raises(StakesError, match="candidates and noise must hold the same draws"):
        normal_ensemble(None, candidates=first, contexts=later, noise=noise)


def test_draws_of_any_kind():
    belief = joint_draws(
        xr.Dataset(arrays()),
        labels="mu",
        targets="later",
        log_likelihood=lambda y, rows: -0.5 * (y[:, :, None] - ROWS[rows][:, None, :]) ** 2,
    )
    np.testing.assert_allclose(belief.labels, ROWS)
    assert score(SquaredError(), belief).shape == (4,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: merged(xr.Dataset(arrays()), "nu"), "no variable 'nu': there are 'later', 'mu', 'sigma'"),
        (lambda: merged(containers()["InferenceData"], "nu"), "no variable 'nu'"),
        (lambda: merged(None, xr.DataArray(np.zeros(3), dims=("row",))), "one of the dimensions chain, draw"),
        (lambda: merged(xr.Dataset(arrays()), "sigma"), "'sigma' must have a dimension of rows"),
        (
            lambda: normal_ensemble(None, candidates=POOL[0], contexts=LATER[0, :5], noise=1.0),
            "candidates 30, contexts 5",
        ),
        (lambda: normal_ensemble(None, candidates=POOL[0], contexts=LATER[0], noise=SIGMA[0, :3]), "noise 3"),
        (
            lambda: normal_ensemble(None, candidates=POOL[0], contexts=LATER[0], noise=POOL[0]),
            "one number for each draw",
        ),
        (
            lambda: normal_ensemble(None, candidates=POOL[0], contexts=np.zeros((30, 2, 5)), noise=1.0),
            r"contexts must have one dimension of rows beside the draws; got 2, of sizes \[2, 5\]",
        ),
        (
            lambda: normal_ensemble(None, candidates=POOL[0], contexts=LATER[0], noise=1.0, target="z"),
            "'label' or 'latent'",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(StakesError, match=message):
        call()


def test_the_page(tmp_path):
    run_page("arviz", tmp_path)
