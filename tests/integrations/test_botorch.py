"""BoTorch's acquisition function beside `rank`, `score` and `select` on the same model."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
botorch = pytest.importorskip("botorch")

from botorch.models import SingleTaskGP  # noqa: E402
from botorch.models.transforms import Log, Normalize  # noqa: E402
from botorch.optim import optimize_acqf  # noqa: E402
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior  # noqa: E402
from gpytorch.distributions import MultivariateNormal  # noqa: E402
from linear_operator import to_linear_operator  # noqa: E402

from stakes import CRPS, ExponentialWeight, SquaredError, ThresholdDecision, rank, score, select  # noqa: E402
from stakes.exceptions import StakesError  # noqa: E402
from stakes.integrations.botorch import LossDrivenReduction, _from_posterior  # noqa: E402
from stakes.models import belief_of  # noqa: E402
from tests.integrations.pages import run_page  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
CUBE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
LOSSES = [SquaredError(ExponentialWeight(1.0)), ThresholdDecision(1.2, miss=5.0), CRPS()]


def _rows(count, seed):
    return torch.rand(count, 2, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


def _labels(rows):
    return torch.sin(5.0 * rows[:, :1]) + rows[:, 1:] ** 2


def _process(length=0.4, **options):
    rows = _rows(15, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SingleTaskGP(rows, _labels(rows), input_transform=Normalize(2), **options)
    model.covar_module.lengthscale, model.likelihood.noise = length, 0.02
    return model.eval()


class Mixture(botorch.models.model.Model):
    """A mixture of processes, as a fully Bayesian model is one, asked by its posterior alone."""

    num_outputs = 1

    def __init__(self, parts):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)

    def posterior(self, X, output_indices=None, observation_noise=False, posterior_transform=None):
        each = [part.posterior(X, observation_noise=observation_noise).distribution for part in self.parts]
        mean = torch.stack([one.mean for one in each], dim=-2)
        covariance = torch.stack([one.covariance_matrix for one in each], dim=-3)
        return GaussianMixturePosterior(MultivariateNormal(mean, to_linear_operator(covariance)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("target", ["label", "latent"])
def test_same_picks_as_rank(loss, target):
    model, pool, contexts = _process(), _rows(60, 1), _rows(20, 2)
    weights = np.linspace(1.0, 2.0, 20)
    options = {"contexts": contexts, "context_weights": weights, "target": target}
    worth = LossDrivenReduction(model, loss, **options)
    found = worth(pool[:, None]).detach()
    wanted = score(loss, belief_of(model, pool, contexts, target=target), context_weights=weights)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6 * float(wanted.max()))
    alone = rank(model, loss, pool, n=5, batch=False, **options)
    assert [*alone.indices] == found.argsort(descending=True)[:5].tolist()

    together, picked = rank(model, loss, pool, n=3, batch=True, **options), []
    for _ in range(3):
        worth.set_X_pending(pool[picked] if picked else None)
        gains = worth(pool[:, None]).detach()
        gains[picked] = -1.0
        picked.append(int(gains.argmax()))
    assert picked == [*together.indices]


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss):
    for log in (False, True):
        worth = LossDrivenReduction(_process(), loss, _rows(6, 2), log=log)
        assert torch.autograd.gradcheck(worth, (_rows(4, 3).reshape(2, 2, 2).requires_grad_(),))


def test_joint_over_the_batch_as_select_and_by_either_route():
    model, pool, contexts = _process(), _rows(12, 1), _rows(8, 2)
    chosen = select(SquaredError(), belief_of(model, pool, contexts, joint=True), n=3)
    worth = LossDrivenReduction(model, SquaredError(), contexts)
    batch = pool[[*chosen.indices]]
    assert float(worth(batch)) == pytest.approx(float(chosen.joint_reduction[-1]), rel=1e-5)
    assert worth(batch.expand(2, 3, 3, 2)).shape == (2, 3)
    by_kernel = worth(pool.reshape(4, 3, 2))
    worth.covariances = _from_posterior(model, contexts, several=False)
    np.testing.assert_allclose(worth(pool.reshape(4, 3, 2)).detach(), by_kernel.detach(), rtol=1e-9)


def test_logarithms_of_labels_are_modelled():
    rows = _rows(15, 0)
    model = SingleTaskGP(rows, _labels(rows).exp(), outcome_transform=Log()).eval()
    pool, contexts = _rows(10, 1), _rows(8, 2)
    wanted = score(SquaredError(), belief_of(model, pool, contexts))
    found = LossDrivenReduction(model, SquaredError(), contexts)(pool[:, None]).detach()
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("loss", [SquaredError(), ThresholdDecision(1.2, miss=2.0)])
def test_mixtures_as_score_has_them(loss):
    """Labels also tell which of the processes is right, so the worth is not the mean of theirs."""
    model, pool, contexts = Mixture([_process(0.3), _process(0.9)]), _rows(15, 1), _rows(6, 2)
    wanted = score(loss, belief_of(model, pool, contexts))
    worth = LossDrivenReduction(model, loss, contexts, n_draws=128 if loss.finite_actions else 32)
    found = worth(pool[:, None]).detach()
    np.testing.assert_allclose(found, wanted, rtol=0.02, atol=1e-2 * float(wanted.max()))
    assert int(found.argmax()) == int(wanted.argmax())
    each = torch.stack([LossDrivenReduction(one, loss, contexts)(pool[:, None]).detach() for one in model.parts])
    assert float((found / each.mean(dim=0) - 1.0).abs().max()) > 0.05
    few = LossDrivenReduction(model, loss, contexts[:2], n_draws=4, log=True)
    assert torch.autograd.gradcheck(few, (_rows(2, 3)[None].requires_grad_(),))
    with pytest.raises(TypeError, match="whole distribution"):
        LossDrivenReduction(model, CRPS(), contexts)


def test_optimize_acqf_is_at_least_as_good_as_ten_thousand_random_candidates():
    torch.manual_seed(0)
    for loss in (SquaredError(ExponentialWeight(1.0)), ThresholdDecision(1.2, miss=5.0)):
        worth = LossDrivenReduction(_process(), loss, bounds=CUBE, n_contexts=32, log=True)
        assert worth.contexts.shape == (32, 2)
        _, best = optimize_acqf(worth, CUBE, q=2, num_restarts=4, raw_samples=64)
        with torch.no_grad():
            assert float(best) >= float(worth(_rows(20_000, 5).reshape(10_000, 2, 2)).max())


def test_what_is_refused():
    model = _process()
    for wrong in ({}, {"contexts": _rows(3, 0), "bounds": CUBE}, {"bounds": CUBE.flip(0)}, {"bounds": CUBE[0]}):
        with pytest.raises(StakesError, match="bounds"):
            LossDrivenReduction(model, SquaredError(), **wrong)
    with pytest.raises(StakesError, match="n_draws"):
        LossDrivenReduction(Mixture([model, model]), SquaredError(), _rows(3, 0), n_draws=0)
    with pytest.raises(StakesError, match=r"rows must be \[B, 2\], as the model has them; got \[3, 1\]"):
        LossDrivenReduction(model, SquaredError(), _rows(3, 0)[:, :1])
    with pytest.raises(StakesError, match=r"with the 2 columns of contexts; got \[1, 4, 3\]"):
        LossDrivenReduction(model, SquaredError(), _rows(3, 0))(torch.zeros(1, 4, 3, dtype=torch.double))
    for wrong in ("squared-error", SquaredError):
        with pytest.raises(TypeError, match="must be a loss such as"):
            LossDrivenReduction(model, wrong, _rows(3, 0))
    two = SingleTaskGP(_rows(5, 0), torch.cat([_labels(_rows(5, 0))] * 2, dim=1))
    with pytest.raises(TypeError, match="one output"):
        LossDrivenReduction(two, SquaredError(), _rows(3, 0))


def test_page(tmp_path):
    run_page("botorch", tmp_path)
