"""A Gaussian over the last layer: its precision is the Hessian, its draws are those of the Gaussian."""

import numpy as np
import pytest

import stakes
from stakes.models import belief_of
from stakes.testing import check_belief

torch = pytest.importorskip("torch", reason="networks need torch")
from torch import nn  # noqa: E402

from stakes.models.networks import NetworkEnsemble, last_layer_laplace  # noqa: E402

PRIOR = 0.7


def network(outputs, bias=True):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, outputs, bias=bias)).double()


@pytest.fixture
def rows():
    return torch.as_tensor(np.random.default_rng(1).standard_normal((30, 3)))


def features(module, rows):
    """[n, h]: what the last layer is given, and a 1."""
    with torch.no_grad():
        return torch.cat([module[:-1](rows), torch.ones(len(rows), 1, dtype=rows.dtype)], dim=1)


def covariance_of(model, mean):
    """By way of all draws: with standard normals e of the seed, deviations are R e, and R R' is the covariance."""
    draws = len(model.weights)
    normals = torch.as_tensor(np.random.default_rng(0).standard_normal((mean.numel(), draws)))  # [P, K]
    deviations = (model.weights - mean).reshape(draws, -1).T  # [P, K]
    root = torch.linalg.lstsq(normals.T, deviations.T).solution.T
    return root @ root.T


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_precision_is_the_hessian_of_cross_entropy(rows, outputs):
    module = network(outputs)
    labels = torch.as_tensor(np.random.default_rng(2).integers(max(outputs, 2), size=30))
    phi, last = features(module, rows), module[-1]
    mean = torch.cat([last.weight, last.bias[:, None]], dim=1).detach()

    def energy(weights):
        logits = phi @ weights.reshape(mean.shape).T
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1) if outputs == 1 else logits
        return nn.functional.cross_entropy(logits, labels, reduction="sum") + 0.5 * PRIOR * weights.square().sum()

    hessian = torch.autograd.functional.hessian(energy, mean.flatten())
    model = last_layer_laplace(module, rows, prior_precision=PRIOR, draws=200, batch_size=7)
    torch.testing.assert_close(
        covariance_of(model, mean) @ hessian, torch.eye(len(hessian)).double(), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("noise", [0.4, [0.4, 0.9]])
def test_means_have_the_posterior_of_bayesian_linear_regression(rows, noise):
    outputs = 1 if isinstance(noise, float) else 2
    module = network(outputs)
    phi = features(module, rows)
    y = torch.as_tensor(np.random.default_rng(2).standard_normal((30, outputs)))
    noises = torch.as_tensor(noise, dtype=torch.float64).reshape(-1)
    spread = [torch.linalg.inv(phi.T @ phi / sd**2 + PRIOR * torch.eye(5, dtype=torch.float64)) for sd in noises]
    best = torch.stack([spread[j] @ phi.T @ y[:, j] / noises[j] ** 2 for j in range(outputs)])  # [d, h]
    with torch.no_grad():
        module[-1].weight.copy_(best[:, :-1])
        module[-1].bias.copy_(best[:, -1])
    model = last_layer_laplace(module, rows, prior_precision=PRIOR, noise_sd=noise, draws=200)
    torch.testing.assert_close(covariance_of(model, best), torch.block_diag(*spread), rtol=1e-8, atol=1e-10)
    belief = belief_of(model, rows[:20], rows[20:])
    means = belief.candidate_mean if outputs == 2 else belief.candidate_mean[..., None]  # [N, K, d]
    exact = phi[:20] @ best.T
    assert float((means.mean(dim=1) - exact).abs().max()) < 0.3 * float(means.std(dim=1).max())
    variance = torch.stack([(phi[:20] @ each * phi[:20]).sum(dim=1) for each in spread], dim=1)
    torch.testing.assert_close(means.var(dim=1), variance, rtol=0.4, atol=0)
    assert isinstance(belief, stakes.NormalEnsemble if outputs == 1 else stakes.VectorNormalEnsemble)


def test_members_are_the_network_with_each_draw_for_its_last_layer(rows):
    module = network(3, bias=False)
    model = last_layer_laplace(module, rows, draws=6, random_state=3)
    belief = belief_of(NetworkEnsemble(model, batch_size=4), rows[:12], rows[6:])
    torch.testing.assert_close(belief.candidates[6:], belief.contexts[:6], rtol=1e-12, atol=0)
    for k in range(6):
        with torch.no_grad():
            wanted = torch.softmax(module[:-1](rows[:12]) @ model.weights[k].T, dim=1)
        torch.testing.assert_close(belief.candidates[:, k], wanted, rtol=1e-12, atol=0)
    check_belief(belief)
    assert torch.equal(model.weights, last_layer_laplace(module, rows, draws=6, random_state=3).weights)
    assert not torch.equal(model.weights, last_layer_laplace(module, rows, draws=6, random_state=4).weights)
    assert stakes.rank(model, stakes.LogLoss(), rows, n=3, chunk=4).indices == (
        stakes.rank(model, stakes.LogLoss(), rows, n=3).indices
    )


def test_draws_of_a_layer_in_half_precision_are_not_rounded(rows):
    model = last_layer_laplace(network(3).to(torch.bfloat16), rows, draws=6)
    assert model.weights.dtype == torch.float32
    assert belief_of(model, rows[:12], rows[12:]).candidates.shape == (12, 6, 3)


def test_the_network_is_left_as_it_was(rows):
    module = network(3)
    belief_of(last_layer_laplace(module, rows), rows[:12], rows[12:])
    with pytest.raises(RuntimeError):
        last_layer_laplace(module, rows[:, :2])
    assert all(part.training and not part._forward_hooks for part in module.modules())


def test_a_layer_of_means_has_no_classes(rows):
    model = last_layer_laplace(network(1), rows, noise_sd=0.5, draws=4)
    with pytest.raises(ValueError, match="got both"):
        NetworkEnsemble(model, classes=["a"])
    wider = belief_of(NetworkEnsemble(model, noise_sd=0.75), rows[:12], rows[12:])
    assert wider.candidate_sd.unique().tolist() == [0.75]


def test_an_output_without_its_last_axis_is_one_output(rows):
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = network(1)

        def forward(self, batch):
            return self.inside(batch).squeeze(-1)

    belief = belief_of(last_layer_laplace(Flat(), rows, noise_sd=0.5, draws=4), rows[:12], rows[12:])
    assert belief.candidate_mean.shape == (12, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rows: last_layer_laplace(nn.Tanh(), rows), "no nn.Linear layer"),
        (lambda rows: last_layer_laplace(network(3).append(nn.Softmax(1)), rows), "must end in its last nn.Linear"),
        (
            lambda rows: last_layer_laplace(network(3), rows, prior_precision=float("inf")),
            "positive and finite; got inf",
        ),
        (
            lambda rows: last_layer_laplace(network(3), rows, prior_precision=0.0),
            "prior_precision must be a number, positive and finite",
        ),
        (lambda rows: last_layer_laplace(network(3), rows, draws=0), "draws must be"),
        (lambda rows: last_layer_laplace(network(3), rows, noise_sd=-1.0), "positive and finite"),
        (lambda rows: last_layer_laplace(network(3), rows.reshape(5, 6, 3)), "must end in its last nn.Linear"),
    ],
)
def test_what_is_wrong_is_reported(make, message, rows):
    with pytest.raises(ValueError, match=message):
        make(rows)
