"""A fully Bayesian model of BoTorch, fitted by NUTS: the hypotheses of `rank` and of the acquisition function."""

import numpy as np
import pytest

pytest.importorskip("numpyro", reason="NUTS of BoTorch wants NumPyro; make integration-botorch has it")
torch = pytest.importorskip("torch")
pytest.importorskip("botorch")

from botorch.fit import fit_fully_bayesian_model_nuts  # noqa: E402
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP  # noqa: E402
from botorch.models.transforms import Normalize, Standardize  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402

from stakes import SquaredError, ThresholdDecision, rank, score  # noqa: E402
from stakes.beliefs import GaussianMixtureBelief  # noqa: E402
from stakes.integrations.botorch import LossDrivenReduction, _from_posterior  # noqa: E402
from stakes.models import belief_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
CUBE = torch.tensor([[0.0] * 5, [2.0] * 5], dtype=torch.double)


def _rows(count, seed):
    return 2.0 * torch.rand(count, 5, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def model():
    rows = _rows(12, 0)
    labels = 10.0 + 3.0 * torch.sin(3.0 * rows[:, :1]) + rows[:, 1:2]  # three columns tell nothing
    transforms = {"input_transform": Normalize(5, bounds=CUBE), "outcome_transform": Standardize(1)}
    found = SaasFullyBayesianSingleTaskGP(rows, labels, **transforms)
    fit_fully_bayesian_model_nuts(
        found, max_tree_depth=4, warmup_steps=16, num_samples=16, thinning=4, disable_progbar=True
    )
    return found


@pytest.mark.parametrize("loss", [SquaredError(), ThresholdDecision(11.0, miss=5.0)])
def test_same_hypotheses_and_picks_as_rank(model, loss):
    pool, contexts = _rows(15, 1), _rows(6, 2)
    belief = belief_of(model, pool, contexts)
    assert isinstance(belief, GaussianMixtureBelief)
    assert belief.n_hypotheses == 4
    assert float(belief.mean.std(dim=0).max()) > 1e-3, "all draws of NUTS say the same"
    wanted = score(loss, belief)
    worth = LossDrivenReduction(model, loss, contexts, n_draws=64)
    found = worth(pool[:, None]).detach()
    np.testing.assert_allclose(found, wanted, rtol=0.02, atol=0.02 * float(wanted.max()))
    assert rank(model, loss, pool, contexts=contexts, n=1).indices[0] == int(wanted.argmax()) == int(found.argmax())
    batches = pool.reshape(5, 3, 5)
    by_kernel = worth(batches).detach()
    worth.covariances = _from_posterior(model, worth.contexts, several=True)
    np.testing.assert_allclose(worth(batches).detach(), by_kernel, rtol=1e-5)


def test_optimize_acqf_beats_random_candidates(model):
    torch.manual_seed(0)
    worth = LossDrivenReduction(model, ThresholdDecision(11.0, miss=5.0), bounds=CUBE, n_contexts=16, log=True)
    candidates, best = optimize_acqf(worth, CUBE, q=2, num_restarts=4, raw_samples=32)
    assert candidates.shape == (2, 5)
    with torch.no_grad():
        assert float(best) >= float(worth(_rows(1000, 5).reshape(500, 2, 5)).max())
