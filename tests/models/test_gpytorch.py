"""GPyTorch's and BoTorch's processes as beliefs, against the joint posteriors that they tell themselves."""

from __future__ import annotations

import copy
import gc
import warnings
import weakref

import numpy as np
import pytest

from stakes import (
    GaussianBelief,
    GaussianMixtureBelief,
    Mahalanobis,
    SquaredError,
    VectorGaussianBelief,
    WarpedGaussianBelief,
    rank,
    score,
    select,
)
from stakes.beliefs import LogWarp
from stakes.models import belief_of, prepare_belief
from stakes.testing import check_belief

torch = pytest.importorskip("torch", reason="torch is not installed")
gpytorch = pytest.importorskip("gpytorch", reason="gpytorch is not installed")

from gpytorch.kernels import InducingPointKernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel  # noqa: E402
from gpytorch.likelihoods import (  # noqa: E402
    BernoulliLikelihood,
    FixedNoiseGaussianLikelihood,
    GaussianLikelihood,
)

from stakes.models import gpytorch as torch_processes  # noqa: E402
from stakes.models.gp_posterior import KernelPosterior  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Process(gpytorch.models.ExactGP):
    def __init__(self, rows, labels, likelihood, kernel, features=None):
        super().__init__(rows, labels, likelihood)
        self.mean_module = gpytorch.means.ConstantMean(constant_prior=None)
        self.covar_module = kernel
        self.features = features

    def forward(self, x):
        x = x if self.features is None else self.features(x)
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@pytest.fixture
def given():
    rng = np.random.default_rng(3)
    rows, pool, contexts = (torch.as_tensor(rng.normal(size=(count, 3))) for count in (16, 11, 5))
    labels = torch.sin(rows[:, 0]) + 3.0 + 0.1 * torch.as_tensor(rng.normal(size=16))
    return rows, labels, pool, contexts


def process(rows, labels, kernel=None, features=None):
    likelihood = GaussianLikelihood().double()
    likelihood.noise = torch.tensor(0.05, dtype=torch.float64)
    kernel = ScaleKernel(MaternKernel(1.5)) if kernel is None else kernel
    return Process(rows, labels, likelihood, kernel, features).double()


def assert_posterior(belief, mean, covariance, noise, target="label"):
    """The belief about candidates and contexts whose joint posterior, without noise, is this."""
    count = belief.n_candidates
    own = covariance.diagonal()
    added = noise if target == "label" else 0.0
    kwargs = {"rtol": 1e-8, "atol": 1e-9}
    torch.testing.assert_close(belief.mean, mean[count:], **kwargs)
    torch.testing.assert_close(belief.variance, own[count:] + added, **kwargs)
    torch.testing.assert_close(belief.candidate_variance, own[:count] + noise, **kwargs)
    torch.testing.assert_close(belief.covariance, covariance[:count, count:], **kwargs)
    if belief.candidate_covariance is not None:
        row = covariance[4, :count].clone()
        row[4] += noise
        torch.testing.assert_close(belief.candidate_covariance(4), row, **kwargs)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()


CASES = {
    "matern": lambda rows: {},
    "a sum": lambda rows: {"kernel": ScaleKernel(RBFKernel(ard_num_dims=3)) + LinearKernel()},
    "features of a network": lambda rows: {"features": network()},
    "sparse": lambda rows: {"kernel": InducingPointKernel(RBFKernel(), rows[:5].clone(), GaussianLikelihood())},
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["label", "latent"])
def test_an_exact_process_is_what_it_says_jointly(name, target, given):
    rows, labels, pool, contexts = given
    model = process(rows, labels, **CASES[name](rows))
    if name == "sparse":
        model.covar_module.likelihood = model.likelihood
    belief = belief_of(model, pool, contexts, target=target, joint=True)
    assert type(belief) is GaussianBelief
    model.eval()
    with torch.no_grad():
        joint = model(torch.cat([pool, contexts]))
        assert_posterior(belief, joint.mean, joint.covariance_matrix, model.likelihood.noise[0], target)
    check_belief(belief)


@pytest.mark.parametrize("training", [False, True])
def test_the_mode_is_left_as_it_was_and_nothing_has_a_gradient(training, given):
    rows, labels, pool, contexts = given
    model = process(rows, labels).train(training)
    model.likelihood.train(not training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    belief = belief_of(model, pool, contexts)
    assert (model.training, model.likelihood.training) == (training, not training)
    assert not belief.covariance.requires_grad
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, before[name])


def test_single_precision_stays_single(given):
    rows, labels, pool, contexts = given
    double = belief_of(process(rows, labels), pool, contexts, joint=True)
    model = process(rows, labels).float()
    model.set_train_data(rows.float(), labels.float(), strict=False)
    single = belief_of(model, pool.numpy(), contexts.numpy(), joint=True)
    for name in ("mean", "variance", "candidate_variance", "covariance", "noise_variance"):
        assert getattr(single, name).dtype == torch.float32
        torch.testing.assert_close(getattr(single, name).double(), getattr(double, name), rtol=1e-4, atol=1e-5)
    assert select(SquaredError(), single, n=3).indices == select(SquaredError(), double, n=3).indices


def test_noise_of_each_label_is_averaged_for_labels_to_come(given):
    rows, labels, pool, contexts = given
    noise = torch.linspace(0.01, 0.1, 16).double()
    model = Process(rows, labels, FixedNoiseGaussianLikelihood(noise), ScaleKernel(RBFKernel())).double()
    with pytest.warns(UserWarning, match=r"noise variance for each of the 16 labels so far.*0\.055"):
        belief = belief_of(model, pool, contexts)
    model.eval()
    with torch.no_grad():
        joint = model(torch.cat([pool, contexts]))
    assert_posterior(belief, joint.mean, joint.covariance_matrix, noise.mean())


def test_rows_are_ranked_for_a_model_of_torch(given):
    rows, labels, pool, contexts = given
    model = process(rows, labels)
    ranking = rank(model, SquaredError(), pool.numpy(), contexts=contexts.numpy(), n=3, chunk=4, batch=False)
    scores = score(SquaredError(), belief_of(model, pool, contexts))
    assert list(ranking.indices) == torch.argsort(-scores)[:3].tolist()
    np.testing.assert_allclose(ranking.scores, scores[list(ranking.indices)], rtol=1e-9)


def test_what_labels_and_contexts_need_is_computed_once(given, monkeypatch):
    rows, labels, pool, contexts = given
    model, asked = process(rows, labels), []
    known = torch_processes._solved
    monkeypatch.setattr(torch_processes, "_solved", lambda model: asked.append("labels") or known(model))
    place = KernelPosterior.place
    monkeypatch.setattr(KernelPosterior, "place", lambda self, at: asked.append(len(at)) or place(self, at))
    rank(model, SquaredError(), pool.numpy(), contexts=contexts.numpy(), n=2, chunk=2, batch=False)
    assert asked.count("labels") == asked.count(5) == 1
    prepared = prepare_belief(model, contexts)
    for part in (pool[:2], pool[2:]):
        prepared(part)
    assert asked.count("labels") == asked.count(5) == 2
    before = contexts.clone()
    contexts.add_(1.0)  # in place
    for at in (before, contexts):
        found = belief_of(model, pool, at)
        torch.testing.assert_close(found.covariance, belief_of(copy.deepcopy(model), pool, at).covariance)


CHANGES = {
    "a length": lambda model: setattr(model.covar_module.base_kernel, "lengthscale", 0.3),
    "noise": lambda model: setattr(model.likelihood, "noise", torch.tensor(0.2).double()),
    "what is no parameter": lambda model: setattr(model.covar_module.base_kernel, "nu", 2.5),
    "labels": lambda model: model.set_train_data(targets=model.train_targets + 1.0),
    "labels in place": lambda model: model.train_targets.add_(1.0),
    "rows": lambda model: model.set_train_data(model.train_inputs[0][:7], model.train_targets[:7], strict=False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_has_changed_is_asked_anew(change, given):
    rows, labels, pool, contexts = given
    model = process(rows, labels.clone())
    before = belief_of(model, pool, contexts)
    CHANGES[change](model)
    after = belief_of(model, pool, contexts)
    assert not torch.equal(before.mean, after.mean)
    model.eval()
    with torch.no_grad():
        joint = model(torch.cat([pool, contexts]))
        assert_posterior(after, joint.mean, joint.covariance_matrix, model.likelihood.noise[0])


def test_a_model_that_is_gone_is_not_kept(given):
    rows, labels, pool, contexts = given
    model = process(rows, labels)
    belief_of(model, pool, contexts)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_refusals_of_gpytorch_models(given):
    rows, labels, pool, contexts = given
    of_classes = process(rows, labels)
    of_classes.likelihood = BernoulliLikelihood()
    with pytest.raises(TypeError, match=r"needs a GaussianLikelihood .* got BernoulliLikelihood"):
        belief_of(of_classes, pool, contexts)
    with pytest.raises(ValueError, match="needs labels and one tensor of rows"):
        belief_of(process(None, None), pool, contexts)
    with pytest.raises(ValueError, match=r"is a batch, with rows \[2, 16, 3\]"):
        belief_of(process(torch.stack([rows, rows]), torch.stack([labels, labels])), pool, contexts)
    with pytest.raises(ValueError, match=r"\[B, 3\], as the model has them; got \[11, 2\]"):
        belief_of(process(rows, labels), pool[:, :2], contexts)
    with pytest.raises(ValueError, match="finite"):
        belief_of(process(rows, labels), pool * torch.inf, contexts)


@pytest.fixture
def botorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = pytest.importorskip("botorch", reason="botorch is not installed")
        import stakes.models.botorch  # noqa: F401 (registers its adapter)
    return module


def outcomes(botorch):
    transforms = botorch.models.transforms
    return {
        "as they are": {"outcome_transform": None},
        "standardised": {},
        "inputs, too": {"input_transform": transforms.Normalize(3)},
        "known noise": {"train_Yvar": torch.full((16, 1), 0.02).double()},
        "twice": {
            "outcome_transform": transforms.ChainedOutcomeTransform(
                one=transforms.Standardize(1), two=transforms.Standardize(1)
            )
        },
        "by another way": {"outcome_transform": transforms.outcome.Power(1.0)},
    }


@pytest.mark.filterwarnings("ignore")  # BoTorch's own, of data that is not scaled
@pytest.mark.parametrize("name", ["as they are", "standardised", "inputs, too", "known noise", "twice"])
def test_a_single_task_is_what_its_posterior_says(name, botorch, given):
    rows, labels, pool, contexts = given
    model = botorch.models.SingleTaskGP(rows, labels[:, None], **outcomes(botorch)[name])
    belief = belief_of(model, pool, contexts, joint=True)
    row = belief.candidate_covariance(4)
    assert model.training
    with torch.no_grad():
        joint = model.posterior(torch.cat([pool, contexts]))
        noise = model.posterior(contexts, observation_noise=True).variance - model.posterior(contexts).variance
    assert_posterior(belief, joint.mean[:, 0], joint.distribution.covariance_matrix, noise[0, 0])
    torch.testing.assert_close(row, belief.candidate_covariance(4))
    check_belief(belief)


@pytest.mark.filterwarnings("ignore")
def test_logarithms_are_seen_through(botorch, given):
    rows, labels, pool, contexts = given
    transforms = botorch.models.transforms
    chain = transforms.ChainedOutcomeTransform(log=transforms.Log(), scale=transforms.Standardize(1))
    model = botorch.models.SingleTaskGP(rows, labels[:, None], outcome_transform=chain)
    belief = belief_of(model, pool, contexts, target="latent")
    assert isinstance(belief, WarpedGaussianBelief)
    assert belief.warp == LogWarp()
    with torch.no_grad():
        wanted = model.posterior(contexts).mean[:, 0]
    torch.testing.assert_close(torch.exp(belief.latent.mean + belief.latent.variance / 2.0), wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["one model", "a list"])
def test_independent_outputs_are_a_vector(kind, botorch, given):
    rows, labels, pool, contexts = given
    both, single = torch.stack([labels, labels**2], dim=1), botorch.models.SingleTaskGP
    several = [single(rows, both[:, k : k + 1]) for k in (0, 1)]
    model = single(rows, both) if kind == "one model" else botorch.models.ModelListGP(*several)
    belief = belief_of(model, pool, contexts, joint=True)
    assert isinstance(belief, VectorGaussianBelief)
    for k, each in enumerate(several):
        wanted = belief_of(each, pool, contexts, joint=True)
        for name in ("variance", "candidate_variance", "covariance", "noise_variance"):
            torch.testing.assert_close(getattr(belief, name)[..., k, k], getattr(wanted, name))
        torch.testing.assert_close(belief.mean[:, k], wanted.mean)
        torch.testing.assert_close(belief.candidate_covariance(4)[k, :, k], wanted.candidate_covariance(4))
    assert float(belief.covariance[..., 0, 1].abs().max()) == 0.0
    assert score(Mahalanobis(np.eye(2).tolist()), belief).shape == (11,)


@pytest.mark.filterwarnings("ignore")
def test_other_gaussian_posteriors_are_asked_in_blocks(botorch, given, monkeypatch):
    rows, labels, pool, contexts = given
    monkeypatch.setattr("stakes.models.gpytorch._FEWEST", 2)
    torch.manual_seed(0)
    model = botorch.models.SingleTaskVariationalGP(rows, labels[:, None], inducing_points=8)
    belief = belief_of(model, pool, contexts, joint=True)
    with torch.no_grad():
        joint = model.posterior(torch.cat([pool, contexts]))
        noise = model.posterior(contexts, observation_noise=True).variance - model.posterior(contexts).variance
    assert_posterior(belief, joint.mean[:, 0], joint.distribution.covariance_matrix, noise[0, 0])


@pytest.mark.filterwarnings("ignore")
def test_refusals_of_botorch_models(botorch, given):
    rows, labels, pool, contexts = given
    warped = botorch.models.SingleTaskGP(rows, labels[:, None], **outcomes(botorch)["by another way"])
    with pytest.raises(TypeError, match=r"Gaussian posterior of one output; it has a TransformedPosterior"):
        belief_of(warped, pool, contexts)
    assert warped.training
    several = botorch.models.KroneckerMultiTaskGP(rows, torch.stack([labels, labels**2], dim=1))
    with pytest.raises(TypeError, match=r"one output"):
        belief_of(several, pool, contexts)
    batch = botorch.models.SingleTaskGP(torch.stack([rows, rows]), torch.stack([labels, labels])[..., None])
    with pytest.raises(ValueError, match="is a batch"):
        belief_of(batch, pool, contexts)


@pytest.mark.filterwarnings("ignore")
def test_a_posterior_that_is_a_mixture_has_a_hypothesis_for_each_part(botorch):
    """As that of SaasFullyBayesianSingleTaskGP, whose fit needs NumPyro."""
    from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
    from gpytorch.distributions import MultivariateNormal
    from linear_operator import to_linear_operator

    torch.manual_seed(0)
    rows, pool, contexts = (torch.rand(count, 2, dtype=torch.float64) for count in (8, 5, 3))
    labels = torch.sin(6.0 * rows[:, :1])
    parts = []
    for length in (0.2, 0.6):
        part = botorch.models.SingleTaskGP(rows, labels, outcome_transform=None)
        part.covar_module.lengthscale = length
        part.likelihood.noise = 0.05
        parts.append(part.eval())

    class Mixture(botorch.models.model.Model):
        num_outputs = 1

        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(parts)

        def posterior(self, X, output_indices=None, observation_noise=False, posterior_transform=None):
            each = [part.posterior(X, observation_noise=observation_noise).distribution for part in self.parts]
            mean, covariance = (
                torch.stack([getattr(one, name) for one in each]) for name in ("mean", "covariance_matrix")
            )
            return GaussianMixturePosterior(MultivariateNormal(mean, to_linear_operator(covariance)))

    for target in ("label", "latent"):
        found = belief_of(Mixture(), pool, contexts, target=target, joint=True)
        assert isinstance(found, GaussianMixtureBelief)
        for s, part in enumerate(parts):
            one = belief_of(part, pool, contexts, target=target, joint=True)
            for name in ("mean", "variance", "candidate_variance", "covariance", "noise_variance"):
                wanted = getattr(one, name).numpy()
                np.testing.assert_allclose(getattr(found.hypothesis(s), name).numpy(), wanted, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(found.candidate_mean[s], part.posterior(pool).mean[:, 0].detach(), rtol=1e-6)
            np.testing.assert_allclose(found.candidate_covariance(2)[s], one.candidate_covariance(2), atol=1e-6)
    chosen = select(SquaredError(), found, n=2)
    assert len(set(chosen.indices)) == 2


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, inducing):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        strategy = gpytorch.variational.VariationalStrategy(self, inducing, distribution)
        super().__init__(strategy)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), ScaleKernel(RBFKernel())

    def forward(self, rows):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(rows), self.covar_module(rows))


@pytest.fixture
def variational():
    torch.manual_seed(0)
    rows = torch.linspace(-2.0, 2.0, 25, dtype=torch.float64)[:, None]
    labels = torch.sin(2.0 * rows[:, 0])
    model, likelihood = Variational(rows[::5].clone()).double(), GaussianLikelihood().double()
    elbo = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(rows))
    optimiser = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.1)
    for _ in range(60):
        optimiser.zero_grad()
        (-elbo(model(rows), labels)).backward()
        optimiser.step()
    return model, likelihood


def test_a_variational_process(variational):
    """The joint Gaussian that the model itself gives of rows, and the noise of its likelihood."""
    model, likelihood = variational
    model.likelihood = likelihood
    pool, contexts = torch.randn(6, 1, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)
    assert model.training
    belief = belief_of(model, pool, contexts, joint=True)
    assert model.training
    model.eval()
    with torch.no_grad():
        both = model(torch.cat([pool, contexts]))
    noise = float(likelihood.noise.detach())
    torch.testing.assert_close(belief.mean, both.mean[6:])
    torch.testing.assert_close(belief.covariance, both.covariance_matrix[:6, 6:], rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(belief.candidate_variance, both.variance[:6] + noise, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(belief.variance, both.variance[6:] + noise, rtol=1e-6, atol=1e-8)
    check_belief(belief)
    latent = belief_of(model, pool, contexts, target="latent")
    torch.testing.assert_close(latent.variance, both.variance[6:], rtol=1e-6, atol=1e-8)


def test_a_variational_process_without_its_likelihood_is_shown_the_line(variational):
    model, _ = variational
    with pytest.raises(ValueError, match=r"set model\.likelihood = likelihood"):
        belief_of(model, np.zeros((2, 1)), np.zeros((3, 1)))
    model.likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    with pytest.raises(TypeError, match=r"got BernoulliLikelihood\. For another, draw members"):
        belief_of(model, np.zeros((2, 1)), np.zeros((3, 1)))


def test_deep_processes_are_refused_with_a_message_of_their_own():
    class Deep(gpytorch.models.deep_gps.DeepGP):
        def forward(self, rows):
            return rows

    with pytest.raises(TypeError, match=r"a Deep has no Gaussian posterior.*EnsembleOf"):
        belief_of(Deep(), np.zeros((2, 1)), np.zeros((3, 1)))
