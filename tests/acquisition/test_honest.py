"""Worths with the truth left out: against the definition for every loss, and against what comes in simulated worlds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from stakes import (
    CRPS,
    AbsoluteError,
    BoxCox,
    BregmanLoss,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    GaussianMixtureBelief,
    ItakuraSaito,
    Linex,
    LogLoss,
    LogScore,
    LogWarp,
    Mahalanobis,
    NormalEnsemble,
    Pinball,
    PoissonDeviance,
    ScoringRule,
    SphericalLoss,
    SquaredError,
    ThresholdDecision,
    VectorNormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
    Weight,
    ZeroOne,
    honest_reduction,
    honest_scores,
    select,
)
from stakes.evaluation import bayes_prediction
from stakes.exceptions import StakesError
from stakes.losses import DistributionLoss, Square

CLASS_LOSSES = [
    LogLoss(),
    LogLoss(class_weights=[1.0, 5.0, 0.5]),
    BrierLoss(),
    SphericalLoss(),
    ScoringRule(Square(), class_weights=[1.0, 2.0, 3.0]),
    CostMatrix([[0.0, 10.0, 2.0], [1.0, 0.0, 1.0], [4.0, 3.0, 0.0]]),
    ZeroOne(),
]
REAL_LOSSES = [
    SquaredError(),
    SquaredError(ExponentialWeight(0.5)),
    Linex(0.7),
    AbsoluteError(),
    AbsoluteError(Weight(lambda z: 1 / (1 + np.exp(-2 * z)))),
    Pinball(0.8),
    CRPS(),
    LogScore(),
    BregmanLoss(lambda x: np.sum(np.logaddexp(x, -x), axis=-1)),
]
DECISIONS = [
    ThresholdDecision(0.3, miss=4.0),
    FiniteActions(lambda z: np.stack([0.0 * z + 1.0, np.maximum(z, 0.0), 1.0 + (z - 1.0) ** 2], axis=-1), (0.0,)),
]
POSITIVE_LOSSES = [BoxCox(0.5), ItakuraSaito(), PoissonDeviance(), SquaredError(), Pinball(0.2), CRPS()]


def named(losses):
    return pytest.mark.parametrize("loss", losses, ids=lambda each: type(each).__name__)


# Independent pieces: the act of any members by `bayes_prediction`, and its cost under a law of the target

COARSE, FINE = np.linspace(-9.0, 9.0, 181), np.linspace(-9.0, 9.0, 3601)  # the second where costs kink


def normal_masses(steps):
    """Masses of a standard normal on an even grid."""
    return np.exp(-0.5 * steps**2) / np.exp(-0.5 * steps**2).sum()


def class_charge(loss, belief, law):
    """[M]: the expected cost of the belief's answers where classes have probabilities `law` [M, C]."""
    answer = np.asarray(bayes_prediction(loss, belief))[:, None, ...]
    classes = np.broadcast_to(np.arange(law.shape[1]), law.shape)
    costs = loss(classes, np.broadcast_to(answer, (*law.shape, *answer.shape[2:])))
    return np.sum(np.where(law > 0, law * costs, 0.0), axis=1)


def real_charge(loss, belief, mean, sd, forward=lambda f: f):
    """[M]: the same for targets forward(f), f normal with means and sds [M]."""
    return real_cost(loss, bayes_prediction(loss, belief), mean, sd, forward)


def real_cost(loss, answer, mean, sd, forward=lambda f: f):
    """[M]: the same of an answer that is known."""
    steps = FINE if isinstance(loss, AbsoluteError | Pinball) else COARSE
    z = forward(mean[:, None] + sd[:, None] * steps)
    return loss(z, answer[:, None] if isinstance(answer, np.ndarray) else answer) @ normal_masses(steps)


def vector_charge(loss, belief, mean, sd):
    """[M]: the same for vectors of independent normals [M, d]."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    places = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    mass = np.outer(weights, weights).ravel() / weights.sum() ** 2
    return loss(mean[:, None] + sd[:, None] * places, bayes_prediction(loss, belief)[:, None, :]) @ mass


def classes(shares, candidates, contexts):
    return CategoricalEnsemble(candidates, contexts, shares)


def some_classes(rng, n=4, m=3, k=5, c=3):
    return rng.dirichlet(np.ones(c), (n, k)), rng.dirichlet(np.ones(c), (m, k)), rng.dirichlet(np.full(k, 3.0))


def brute_classes(loss, candidates, contexts, shares, batch, weights):
    """[K]: by the definition, over all truths and labels."""
    saved = np.zeros(len(shares))
    for k in range(len(shares)):
        others = np.where(np.arange(len(shares)) == k, 0.0, shares)
        before = class_charge(loss, classes(others, candidates, contexts), contexts[:, k])
        for labels in product(range(candidates.shape[2]), repeat=len(batch)):
            likelihood = np.prod([candidates[i, :, y] for i, y in zip(batch, labels, strict=True)], axis=0)
            if not np.any(others * likelihood > 0):
                continue
            after = class_charge(loss, classes(others * likelihood, candidates, contexts), contexts[:, k])
            saved[k] += likelihood[k] * ((before - after) @ weights)
    return saved


@named(CLASS_LOSSES)
def test_classes_by_the_definition(loss, rng):
    candidates, contexts, shares = some_classes(rng)
    weights = np.array([0.5, 0.3, 0.2])
    expected = brute_classes(loss, candidates, contexts, shares, (2, 0), weights)
    found = honest_reduction(loss, classes(shares, candidates, contexts), [2, 0], context_weights=weights)
    assert found.method == "enumerated"
    assert found.sampling_error == 0
    assert found.by_member == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.reduction == pytest.approx(shares @ expected, rel=1e-9, abs=1e-12)


@named(CLASS_LOSSES)
def test_labels_that_are_drawn(loss, rng):
    candidates, contexts, shares = some_classes(rng)
    belief, batch = classes(shares, candidates, contexts), (3, 1, 2, 0)
    exact = honest_reduction(loss, belief, batch, draws=81)
    drawn = honest_reduction(loss, belief, batch, draws=80, random_state=3)
    assert (exact.method, drawn.method) == ("enumerated", "sampled")
    assert drawn.sampling_error > 0
    assert abs(drawn.reduction - exact.reduction) < 3 * drawn.sampling_error


@named(CLASS_LOSSES[2:])
def test_votes_by_the_definition(loss, rng):
    """Where no other tree allows the labels, the act stays; how often is reported."""
    votes, contexts = rng.integers(0, 3, (4, 7)), rng.integers(0, 3, (3, 7))
    belief, eye = VoteEnsemble(votes, contexts, 3), np.eye(3)
    found = honest_reduction(loss, belief, [1, 3, 0])
    weights = np.full(3, 1 / 3)
    expected = brute_classes(loss, eye[votes], eye[contexts], np.full(7, 1 / 7), (1, 3, 0), weights)
    assert found.by_member == pytest.approx(expected, abs=1e-12)
    patterns = [tuple(row) for row in votes[[1, 3, 0]].T]
    assert found.unmatched == pytest.approx(np.mean([patterns.count(each) == 1 for each in patterns]))
    assert found.unmatched > 0


def test_a_batch_of_votes_may_have_more_rows_than_a_grid_has_axes(rng):
    votes = np.tile(rng.integers(2, size=(40, 3)), 2)  # every member has a twin
    belief = VoteEnsemble(votes, np.asarray([[0, 1, 1, 0, 1, 1]]), 2)
    found = honest_reduction(ZeroOne(), belief, list(range(40)))
    assert found.unmatched == 0.0
    assert found.reduction == pytest.approx(2 / 6)  # forty labels tell the twins from the others


def test_log_loss_under_votes_is_smoothed(rng):
    """Acts get 3% of the frequencies of classes; what is not smoothed would be infinite."""
    votes, contexts = rng.integers(0, 3, (2, 6)), rng.integers(0, 3, (4, 6))
    found = honest_reduction(LogLoss(), VoteEnsemble(votes, contexts, 3), [0, 1])
    eye, shares = np.eye(3), np.full(6, 1 / 6)
    frequencies = eye[contexts].mean((0, 1))
    saved = []
    for k in range(6):
        others = np.where(np.arange(6) == k, 0.0, shares)
        agreed = others * np.all(votes == votes[:, k : k + 1], axis=0)
        acts = [np.einsum("k,mkc->mc", each / each.sum(), eye[contexts]) for each in (others, agreed) if each.any()]
        costs = [-np.log(0.97 * act + 0.03 * frequencies)[np.arange(4), contexts[:, k]] for act in acts]
        saved.append(np.mean(costs[0] - costs[-1]))
    assert found.by_member == pytest.approx(saved, abs=1e-12)
    assert found.smoothing == 0.03


def test_smoothing_is_for_classes_that_are_ruled_out(rng):
    candidates, contexts, shares = some_classes(rng)
    assert honest_reduction(LogLoss(), classes(shares, candidates, contexts), [0]).smoothing == 0
    contexts[0, 0] = [0.0, 0.5, 0.5]
    assert honest_reduction(LogLoss(), classes(shares, candidates, contexts), [0]).smoothing == 0.03
    assert honest_reduction(BrierLoss(), classes(shares, candidates, contexts), [0]).smoothing == 0


LABELS, MASSES = np.polynomial.hermite_e.hermegauss(24)
MASSES = MASSES / MASSES.sum()


def some_normals(rng, n=3, m=2, k=4):
    return (
        rng.normal(0.0, 1.0, (n, k)),
        rng.uniform(0.4, 1.0, (n, k)),
        rng.normal(0.0, 1.0, (m, k)),
        rng.uniform(0.4, 1.0, (m, k)),
    )


@named(REAL_LOSSES)
def test_normals_by_the_definition(loss, rng):
    """One label, over whose distribution draws are spread evenly."""
    mean, sd, context_mean, context_sd = some_normals(rng)
    shares, expected = np.array([0.4, 0.3, 0.2, 0.1]), np.zeros(4)
    for k in range(4):
        others = np.where(np.arange(4) == k, 0.0, shares)

        def charge(weights, k=k):
            belief = NormalEnsemble(mean[:1], sd[:1], context_mean, context_sd, weights)
            return real_charge(loss, belief, context_mean[:, k], context_sd[:, k]).mean()

        before = charge(others)
        for step, mass in zip(LABELS, MASSES, strict=True):
            y = mean[1, k] + sd[1, k] * step
            likelihood = np.exp(-0.5 * ((y - mean[1]) / sd[1]) ** 2) / sd[1]
            expected[k] += mass * (before - charge(others * likelihood))
    belief = NormalEnsemble(mean, sd, context_mean, context_sd, shares)
    found = honest_reduction(loss, belief, [1], draws=400)
    assert found.by_member == pytest.approx(expected, abs=5e-3 * np.abs(expected).max())
    assert found.method == "sampled"


@named(DECISIONS)
def test_decisions_under_normals_by_the_definition(loss, rng):
    """Costs of actions under each member on a fine grid; labels on one, too, since decisions jump."""
    mean, sd, context_mean, context_sd = some_normals(rng)
    costs = loss.cost_rows(context_mean[..., None] + context_sd[..., None] * FINE)  # [M, K, G, A]
    costs = np.einsum("g,mkga->mka", normal_masses(FINE), costs)
    expected = np.zeros(4)
    for k in range(4):
        y, others = mean[1, k] + sd[1, k] * FINE, np.arange(4) != k
        likelihood = np.exp(-0.5 * ((y[:, None] - mean[1]) / sd[1]) ** 2) / sd[1] * others
        after = np.einsum("gk,mka->gma", likelihood, costs).argmin(2)  # [G, M]
        before = np.einsum("k,mka->ma", others.astype(float), costs).argmin(1)
        own = costs[:, k, :]
        saved = own[np.arange(2), before] - own[np.arange(2), after]
        expected[k] = normal_masses(FINE) @ saved.mean(1)
    found = honest_reduction(loss, NormalEnsemble(mean, sd, context_mean, context_sd), [1], draws=4000)
    assert found.by_member == pytest.approx(expected, abs=2e-3 * np.abs(costs).max())
    assert np.abs(expected).max() > 0.01 * np.abs(costs).max()


def test_several_normal_labels_by_the_definition(rng):
    """A grid of two labels, and squared error, whose charge is known."""
    mean, sd, context_mean, context_sd = some_normals(rng)
    steps = np.stack(np.meshgrid(LABELS, LABELS, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.outer(MASSES, MASSES).ravel()
    expected = np.zeros(4)
    for k in range(4):
        y = mean[[0, 2], k] + sd[[0, 2], k] * steps  # [G, 2]
        likelihood = np.exp(-0.5 * np.sum(((y[..., None] - mean[[0, 2]]) / sd[[0, 2]]) ** 2, axis=1))
        likelihood = likelihood / np.prod(sd[[0, 2]], axis=0) * (np.arange(4) != k)
        after = likelihood @ context_mean.T / likelihood.sum(1, keepdims=True)
        before = context_mean[:, np.arange(4) != k].mean(1)
        expected[k] = masses @ np.mean((before - context_mean[:, k]) ** 2 - (after - context_mean[:, k]) ** 2, axis=1)
    found = honest_reduction(SquaredError(), NormalEnsemble(mean, sd, context_mean, context_sd), [0, 2], draws=4000)
    assert abs(found.reduction - expected.mean()) < 3 * found.sampling_error
    assert found.sampling_error < 0.02 * np.abs(expected).max()


def test_vectors_by_the_definition(rng):
    mean, sd = rng.normal(size=(2, 4, 2)), rng.uniform(0.5, 1.0, (2, 4, 2))
    context_mean, context_sd = rng.normal(size=(3, 4, 2)), rng.uniform(0.5, 1.0, (3, 4, 2))
    loss = Mahalanobis([[1.0, 0.3], [0.3, 2.0]])
    steps = np.stack(np.meshgrid(LABELS, LABELS, indexing="ij"), axis=-1).reshape(-1, 2)
    expected = np.zeros(4)
    for k in range(4):
        y = mean[0, k] + sd[0, k] * steps
        logs = -np.sum(0.5 * ((y[:, None] - mean[0]) / sd[0]) ** 2 + np.log(sd[0]), axis=2)
        likelihood = np.exp(logs) * (np.arange(4) != k)
        after = np.einsum("gk,mkd->gmd", likelihood / likelihood.sum(1, keepdims=True), context_mean)
        before = context_mean[:, np.arange(4) != k].mean(1)
        costs = [loss(context_mean[:, k], each).mean(-1) for each in (before, after)]
        expected[k] = np.outer(MASSES, MASSES).ravel() @ (costs[0] - costs[1])
    found = honest_reduction(loss, VectorNormalEnsemble(mean, sd, context_mean, context_sd), [0], draws=4000)
    assert abs(found.reduction - expected.mean()) < 3 * found.sampling_error


def some_mixture(rng, s=3, n=3, m=2):
    """[S]: hypotheses, each a covariance over labels and targets, with noise."""
    factors = rng.normal(size=(s, n + m, 3)) / 2
    covariance = factors @ np.swapaxes(factors, 1, 2)
    variance = np.diagonal(covariance, axis1=1, axis2=2)
    labels = covariance[:, :n, :n] + 0.2 * np.eye(n)
    return {
        "mean": rng.normal(0.0, 0.5, (s, m)),
        "variance": variance[:, n:] + 0.2,
        "candidate_mean": rng.normal(0.0, 0.5, (s, n)),
        "candidate_variance": variance[:, :n] + 0.2,
        "covariance": covariance[:, :n, n:],
        "candidate_covariance": labels,
    }


def given_labels(fields, shares, batch, y):
    """The hypotheses once labels y of a batch are known, by a full solve: means, variances [S, M] and shares [S]."""
    batch, rows = list(batch), []
    for s in range(len(shares)):
        block = fields["candidate_covariance"][s][np.ix_(batch, batch)]
        gap, cross = y - fields["candidate_mean"][s][batch], fields["covariance"][s][batch]
        solved = np.linalg.solve(block, cross)
        log_likelihood = -0.5 * gap @ np.linalg.solve(block, gap) - 0.5 * np.linalg.slogdet(block)[1]
        rows.append(
            (fields["mean"][s] + gap @ solved, fields["variance"][s] - np.sum(cross * solved, axis=0), log_likelihood)
        )
    mean, variance, logs = (np.array(each) for each in zip(*rows, strict=True))
    return mean, variance, shares * np.exp(logs - logs.max())


def targets(mean, variance, shares, warp=None):
    """A belief about targets alone."""
    size = len(shares)
    latent = GaussianMixtureBelief(
        mean, variance, np.zeros((size, 1)), np.ones((size, 1)), np.zeros((size, 1, mean.shape[1])), shares
    )
    return latent if warp is None else WarpedGaussianBelief(latent, warp)


@pytest.mark.parametrize(
    ("loss", "warp"),
    [(loss, None) for loss in REAL_LOSSES[:-1]] + [(loss, LogWarp()) for loss in POSITIVE_LOSSES],
    ids=lambda each: type(each).__name__,
)
def test_mixtures_by_the_definition(loss, warp, rng):
    """One label, over whose distribution draws are spread: it moves targets within hypotheses, and shares across."""
    fields, shares = some_mixture(rng), np.array([0.5, 0.3, 0.2])
    expected = brute_mixture(loss, fields, shares, (2,), warp, *np.polynomial.hermite_e.hermegauss(14))
    latent = GaussianMixtureBelief(**fields, weights=shares)
    belief = latent if warp is None else WarpedGaussianBelief(latent, warp)
    found = honest_reduction(loss, belief, [2], draws=300)
    assert found.by_member == pytest.approx(expected, abs=0.03 * np.abs(expected).max())


def brute_mixture(loss, fields, shares, batch, warp, nodes, weights):
    """[S]: by the definition, over all truths and a grid of labels."""
    steps = np.stack(np.meshgrid(*[nodes] * len(batch), indexing="ij"), axis=-1).reshape(-1, len(batch))
    masses = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * len(batch)), axis=-1), axis=-1).ravel()
    forward, expected = (lambda f: f) if warp is None else warp.forward, np.zeros(len(shares))
    for k in range(len(shares)):
        others = shares * (np.arange(len(shares)) != k)
        today = bayes_prediction(loss, targets(fields["mean"], fields["variance"], others, warp))
        root = np.linalg.cholesky(fields["candidate_covariance"][k][np.ix_(batch, batch)])
        for step, mass in zip(steps, masses, strict=True):
            y = fields["candidate_mean"][k][list(batch)] + root @ step
            mean, variance, after = given_labels(fields, others, batch, y)
            law = mean[k], np.sqrt(variance[k]), forward
            informed = bayes_prediction(loss, targets(mean, variance, after, warp))
            costs = [real_cost(loss, each, *law) for each in (today, informed)]
            expected[k] += mass * np.mean(costs[0] - costs[1])
    return expected


def test_several_labels_under_a_mixture_by_the_definition(rng):
    fields, shares = some_mixture(rng), np.array([0.5, 0.3, 0.2])
    nodes = np.polynomial.hermite_e.hermegauss(12)
    expected = brute_mixture(SquaredError(), fields, shares, (2, 0), None, *nodes)
    found = honest_reduction(SquaredError(), GaussianMixtureBelief(**fields, weights=shares), [2, 0], draws=1500)
    assert abs(found.reduction - shares @ expected) < 3 * found.sampling_error
    assert found.sampling_error < 0.03 * np.abs(expected).max()


def test_a_decision_under_a_mixture_by_the_definition(rng):
    """One label on a fine grid, which moves the mean of the target within each hypothesis."""
    fields, shares, loss, expected = some_mixture(rng), np.array([0.5, 0.3, 0.2]), ThresholdDecision(0.0), np.zeros(3)
    for k in range(3):
        y = fields["candidate_mean"][k, 1] + np.sqrt(fields["candidate_variance"][k, 1]) * FINE
        gap = y[:, None] - fields["candidate_mean"][:, 1]  # [G, S]
        variance = fields["candidate_variance"][:, 1]
        others = shares * (np.arange(3) != k)
        after = others * np.exp(-0.5 * gap**2 / variance) / np.sqrt(variance)
        slope = fields["covariance"][:, 1] / variance[:, None]  # [S, M]
        mean = fields["mean"] + gap[..., None] * slope  # [G, S, M]
        sd = np.sqrt(fields["variance"] - slope**2 * variance[:, None])
        above = ndtr((mean - loss.threshold) / sd)  # [G, S, M]
        now = ndtr((fields["mean"] - loss.threshold) / np.sqrt(fields["variance"]))
        alarm = [loss.miss * p > 1.0 - p for p in (_mean(others, now), _mean(after, above))]
        costs = [np.where(each, 1.0 - above[:, k], loss.miss * above[:, k]) for each in alarm]
        expected[k] = normal_masses(FINE) @ (costs[0] - costs[1]).mean(1)
    found = honest_reduction(loss, GaussianMixtureBelief(**fields, weights=shares), [1], draws=1000)
    assert found.by_member == pytest.approx(expected, abs=5e-3)
    assert np.abs(expected).max() > 0.02


def _mean(shares, values):
    """Values [..., S, M] averaged by shares [..., S]."""
    return np.einsum("...s,...sm->...m", shares, values) / shares.sum(-1)[..., None]


def test_an_answer_that_is_no_edge_of_panels():
    """E[w max(b - z, 0)] of any b, within and beyond the panels, for one distribution and many answers."""
    mean, sd = np.array([0.3]), np.array([0.7])
    belief = NormalEnsemble(np.zeros((1, 1)), 1.0, mean[:, None], sd[:, None])
    loss, answers = Pinball(0.8), np.linspace(-12.0, 12.0, 97)
    reference = belief.reference(loss)
    each = belief.member_distributions(loss, reference, np.zeros((1, 0)))
    u = (answers - mean) / sd
    above = loss.tau * (mean - answers) + sd * (u * ndtr(u) + np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi))
    scale = math.exp(float(reference.log_scale[0]))
    assert loss.charge(each, (answers - reference.point)[None, :])[0] * scale == pytest.approx(above, rel=1e-8)


# What comes, in worlds that the members are drawn from


class Worlds:
    """Members drawn from a law, and a truth: one more draw, or one of the members. The first places are candidates."""

    size = 8

    def __init__(self, rng):
        self.rng = rng
        self.members = self.drawn(self.size + 1)  # [n + M, K, ...]; the last is the truth, where that is a further draw

    @property
    def batch(self):
        return range(self.labels)

    def saving(self, loss, acting, truth):
        """What labels of the truth save the members that act, and are weighed by them: a mean of three draws."""
        before = self.charge(loss, self.belief(acting, np.ones(len(acting))), truth)
        after = []
        for _ in range(3):
            logs = self.log_likelihood(acting, truth)
            after.append(self.charge(loss, self.belief(acting, np.exp(logs - logs.max())), truth))
        return (before - np.mean(after, axis=0)).mean()


class ClassWorlds(Worlds):
    """Softmax of random slopes at fixed places."""

    labels, places = 4, np.random.default_rng(7).normal(size=(10, 2))

    def drawn(self, count):
        logits = np.einsum("kcd,nd->nkc", 4.0 * self.rng.normal(size=(count, 3, 2)), self.places)
        each = np.exp(logits - logits.max(-1, keepdims=True))
        return 0.97 * each / each.sum(-1, keepdims=True) + 0.01

    def belief(self, acting, shares):
        each = self.members[:, acting]
        return CategoricalEnsemble(each[:4], each[4:], shares)

    def log_likelihood(self, acting, truth):
        labels = [self.rng.choice(3, p=self.members[i, truth]) for i in self.batch]
        return sum(np.log(self.members[i, acting, y]) for i, y in zip(self.batch, labels, strict=True))

    def charge(self, loss, belief, truth):
        return class_charge(loss, belief, self.members[4:, truth])


class RealWorlds(Worlds):
    """Waves with noise, at fixed places."""

    labels, places = 2, np.array([-1.0, 0.5, -0.3, 1.7])

    def drawn(self, count):
        waves = np.stack([0.3 + 0.0 * self.places, np.sin(1.5 * self.places), np.cos(1.5 * self.places)], axis=1)
        return waves @ self.rng.normal(size=(3, count))

    def belief(self, acting, shares):
        each = self.members[:, acting]
        return NormalEnsemble(each[: self.labels], 0.4, each[2:], 0.4, shares)

    def log_likelihood(self, acting, truth):
        rows = self.members[: self.labels]
        y = rows[:, truth] + 0.4 * self.rng.normal(size=self.labels)
        return -0.5 * np.sum(((y[:, None] - rows[:, acting]) / 0.4) ** 2, axis=0)

    def charge(self, loss, belief, truth):
        mean = self.members[2:, truth]
        if loss.finite_actions:
            return loss(mean[:, None] + 0.4 * FINE, bayes_prediction(loss, belief)[:, None]) @ normal_masses(FINE)
        return real_charge(loss, belief, mean, np.full(len(mean), 0.4))


class OneLabel(RealWorlds):
    """Of one label: the joint worth of more takes seconds for losses of whole distributions."""

    labels = 1


class VectorWorlds(Worlds):
    """The same with two outputs."""

    labels, places = 2, RealWorlds.places

    def drawn(self, count):
        return np.stack([RealWorlds.drawn(self, count) for _ in range(2)], axis=-1)

    def belief(self, acting, shares):
        each = self.members[:, acting]
        return VectorNormalEnsemble(each[:2], 0.4, each[2:], 0.4, shares)

    def log_likelihood(self, acting, truth):
        y = self.members[:2, truth] + 0.4 * self.rng.normal(size=(2, 2))
        return -0.5 * np.sum(((y[:, None] - self.members[:2, acting]) / 0.4) ** 2, axis=(0, 2))

    def charge(self, loss, belief, truth):
        mean = self.members[2:, truth]
        return vector_charge(loss, belief, mean, np.full(mean.shape, 0.4))


class MixtureWorlds(Worlds):
    """Hypotheses that are lines with a random slope and spread around it, of the logarithm of the target."""

    labels, places, noise = 2, np.array([-1.0, 0.5, -2.0, 0.8, 1.7]), 0.05

    def drawn(self, count):
        slopes, spreads = 0.3 * self.rng.normal(size=count), self.rng.uniform(0.1, 0.4, count)
        return slopes * self.places[:, None], spreads * np.exp(-np.abs(self.places[:, None] - self.places))[..., None]

    def fields(self, acting):
        mean, covariance = (np.moveaxis(each[..., acting], -1, 0) for each in self.members)
        variance = np.diagonal(covariance, axis1=1, axis2=2) + self.noise
        rows = covariance[:, :2, :2] + self.noise * np.eye(2)
        names = ("mean", "variance", "candidate_mean", "candidate_variance", "covariance", "candidate_covariance")
        values = mean[:, 2:], variance[:, 2:], mean[:, :2], variance[:, :2], covariance[:, :2, 2:], rows
        return dict(zip(names, values, strict=True))

    def belief(self, acting, shares):
        return WarpedGaussianBelief(GaussianMixtureBelief(**self.fields(acting), weights=shares), LogWarp())

    def saving(self, loss, acting, truth):
        own, fields, total = self.fields([truth]), self.fields(acting), 0.0
        today = bayes_prediction(loss, self.belief(acting, np.ones(len(acting))))
        for _ in range(3):
            y = self.rng.multivariate_normal(own["candidate_mean"][0], own["candidate_covariance"][0])
            mean, variance, shares = given_labels(fields, np.ones(len(acting)), self.batch, y)
            law_mean, law_variance, _ = given_labels(own, np.ones(1), self.batch, y)
            law = law_mean[0], np.sqrt(law_variance[0]), np.exp
            informed = bayes_prediction(loss, targets(mean, variance, shares, LogWarp()))
            costs = [real_cost(loss, each, *law) for each in (today, informed)]
            total += np.mean(costs[0] - costs[1]) / 3
        return total


WORLDS = (
    [(ClassWorlds, loss) for loss in CLASS_LOSSES]
    + [(RealWorlds, loss) for loss in REAL_LOSSES + DECISIONS]
    + [(VectorWorlds, Mahalanobis([[1.0, 0.3], [0.3, 2.0]]))]
    + [(MixtureWorlds, loss) for loss in POSITIVE_LOSSES[:3]]
)


def promised_and_delivered(kind, loss, count, promise, *, further):
    """What was promised less what came, in worlds where the truth is a further draw, or one of the members."""
    rng, gaps = np.random.default_rng(5), []
    for _ in range(count):
        world = kind(rng)
        belief = world.belief(range(world.size), np.ones(world.size))
        acting = range(world.size - 1) if further else range(world.size)  # one is left out
        truth = world.size if further else rng.integers(world.size)
        gaps.append(promise(loss, belief, world.batch, rng) - world.saving(loss, acting, truth))
    return np.mean(gaps), np.std(gaps, ddof=1) / math.sqrt(count)


def honestly(loss, belief, batch, rng):
    draws = 32 if isinstance(belief, CategoricalEnsemble) else 8  # of others each takes long, and worlds differ by more
    return honest_reduction(loss, belief, batch, draws=draws, random_state=rng).reduction


def jointly(loss, belief, batch, rng):
    return select(loss, belief, n=len(batch), random_state=rng, max_configurations=64).joint_reduction[-1]


@pytest.mark.parametrize(("kind", "loss"), WORLDS, ids=lambda each: getattr(each, "__name__", type(each).__name__))
def test_what_comes_is_what_was_promised(kind, loss):
    """Honest worth where the truth is a further draw, to K - 1 members; joint worth where it is one of the members."""
    gap, error = promised_and_delivered(kind, loss, 12 if kind is MixtureWorlds else 120, honestly, further=True)
    assert abs(gap) < 3 * error
    if kind is MixtureWorlds:
        return  # whose joint worths take long, and are the belief's own
    kind = OneLabel if isinstance(loss, DistributionLoss) else kind
    gap, error = promised_and_delivered(kind, loss, 20, jointly, further=False)
    assert abs(gap) < 3 * error


def test_joint_worth_is_not_what_comes_where_no_member_is_the_truth():
    """The law above can fail: of a further draw the joint worth promises far too much."""
    gap, error = promised_and_delivered(ClassWorlds, BrierLoss(), 120, jointly, further=True)
    assert gap > 5 * error


@pytest.mark.parametrize(("size", "most"), [(8, 1.7), (60, 1.2)])
def test_the_error_is_the_spread_over_draws_of_members(size, most):
    """Other members give other worths; contexts stay, so that their error is left out. Of few it is too large."""
    rng, worths, errors = np.random.default_rng(7), [], []
    for _ in range(80):
        world = type("Sized", (ClassWorlds,), {"size": size})(rng)
        found = honest_reduction(BrierLoss(), world.belief(range(size), np.ones(size)), world.batch)
        worths.append(found.reduction)
        errors.append(found.member_error)
        assert found.error == pytest.approx(math.hypot(found.member_error, found.context_error))
    assert 0.8 < math.sqrt(np.mean(np.square(errors))) / np.std(worths, ddof=1) < most


def test_errors_of_contexts_and_draws(rng):
    """Half of the contexts have nothing to learn; draws of other seeds spread as the error says."""
    candidates, contexts, shares = some_classes(rng, n=6, m=8, k=4)
    contexts[:4] = contexts[:4, :1]
    belief = classes(shares, candidates, contexts)
    alone = [honest_reduction(BrierLoss(), belief, [0, 1], context_weights=np.eye(8)[m]).reduction for m in range(8)]
    found = honest_reduction(BrierLoss(), belief, [0, 1])
    assert found.reduction == pytest.approx(np.mean(alone))
    assert found.context_error == pytest.approx(np.std(alone) / math.sqrt(8))
    drawn = [honest_reduction(BrierLoss(), belief, range(6), draws=20, random_state=seed) for seed in range(60)]
    spread = np.std([each.reduction for each in drawn], ddof=1)
    assert spread < 1.2 * np.mean([each.sampling_error for each in drawn])  # even parts make it smaller


def test_single_worths_and_first_picks(rng):
    candidates, contexts, shares = some_classes(rng, n=5)
    belief, loss = classes(shares, candidates, contexts), BrierLoss()
    singles = honest_scores(loss, belief)
    each = [honest_reduction(loss, belief, [i]) for i in range(5)]
    assert singles.reduction == pytest.approx([one.reduction for one in each])
    assert singles.error == pytest.approx([one.error for one in each])
    assert singles.by_member.shape == (5, 5)
    chosen = select(loss, belief, n=3)
    first = [honest_reduction(loss, belief, chosen.indices[:t]) for t in (1, 2, 3)]
    assert chosen.honest_reduction == pytest.approx([one.reduction for one in first])
    assert chosen.honest_error == pytest.approx([one.error for one in first])


def test_labels_on_their_way(rng):
    """Worths come on top of them."""
    candidates, contexts, shares = some_classes(rng, n=5)
    belief, loss = classes(shares, candidates, contexts), BrierLoss()
    found = honest_reduction(loss, belief, [3], pending=[0, 2])
    both, before = (honest_reduction(loss, belief, batch) for batch in ([0, 2, 3], [0, 2]))
    assert found.reduction == pytest.approx(both.reduction - before.reduction)
    assert found.by_member == pytest.approx(both.by_member - before.by_member)
    chosen = select(loss, belief, n=1, pending=[0, 2])
    on_top = honest_reduction(loss, belief, chosen.indices, pending=[0, 2])
    assert chosen.honest_reduction[0] == pytest.approx(on_top.reduction)


def test_gaussian_beliefs_are_honest_already():
    """The truth is a draw of the belief itself."""
    belief = GaussianBelief([0.0], [1.0], [1.0, 1.0], [[0.5], [0.4]], np.array([[1.0, 0.2], [0.2, 1.0]]))
    chosen = select(SquaredError(), belief, n=2)
    assert chosen.honest_reduction == pytest.approx(chosen.joint_reduction)
    assert chosen.honest_error == pytest.approx(chosen.context_error)


def test_a_member_without_weight_is_no_truth(rng):
    candidates, contexts, _ = some_classes(rng, k=4)
    most = honest_reduction(BrierLoss(), classes([1.0, 1.0, 1.0, 0.0], candidates, contexts), [0, 1])
    three = honest_reduction(BrierLoss(), CategoricalEnsemble(candidates[:, :3], contexts[:, :3]), [0, 1])
    assert most.reduction == pytest.approx(three.reduction)
    assert most.by_member[:3] == pytest.approx(three.by_member)


def test_scales_of_any_size(rng):
    """Weights that are out of the range of plain numbers, and a thousand contexts in blocks."""
    mean = rng.normal(size=(3, 5))
    belief = NormalEnsemble(mean, 0.5, mean[:2], 0.5)
    plain, heavy = (
        honest_reduction(SquaredError(Weight(lambda z, a=a: np.exp(z + a), log=lambda z, a=a: z + a)), belief, [0, 1])
        for a in (0.0, 200.0)
    )
    assert heavy.reduction == pytest.approx(plain.reduction * math.exp(200.0), rel=1e-9)
    candidates, contexts, shares = some_classes(rng, m=1000, k=40)
    found = honest_reduction(BrierLoss(), classes(shares, candidates, contexts), [0, 1, 2, 3])
    parts = [
        honest_reduction(BrierLoss(), classes(shares, candidates, contexts[p : p + 100]), [0, 1, 2, 3]).reduction
        for p in range(0, 1000, 100)
    ]
    assert found.reduction == pytest.approx(np.mean(parts))


def test_torch_agrees(rng):
    torch = pytest.importorskip("torch")
    candidates, contexts, shares = some_classes(rng)
    for loss in (BrierLoss(), LogLoss(), CLASS_LOSSES[5]):
        ours = honest_reduction(loss, classes(shares, candidates, contexts), [0, 1])
        theirs = honest_reduction(loss, classes(*map(torch.asarray, (shares, candidates, contexts))), [0, 1])
        assert theirs.reduction == pytest.approx(ours.reduction)
        assert isinstance(theirs.by_member, torch.Tensor)


@pytest.mark.parametrize(
    ("batch", "options", "message"),
    [
        ([7], {}, "positions from 0 to 3; got 7"),
        ([0, 0], {}, "each candidate once"),
        ([], {}, "at least one candidate"),
        ([0], {"draws": 1}, "draws must be a whole number, 2 or more"),
        ([0], {"pending": [-1]}, "pending must hold positions"),
        ([True], {}, "positions from 0 to 3; got True"),
    ],
)
def test_refusals(batch, options, message, rng):
    candidates, contexts, shares = some_classes(rng)
    with pytest.raises(StakesError, match=message):
        honest_reduction(BrierLoss(), classes(shares, candidates, contexts), batch, **options)


def test_a_belief_without_members_is_refused(rng):
    belief = GaussianBelief([0.0], [1.0], [1.0], [[0.5]])
    with pytest.raises(TypeError, match="GaussianBelief has none"):
        honest_reduction(SquaredError(), belief, [0])
    candidates, contexts, _ = some_classes(rng)
    one = CategoricalEnsemble(candidates[:, :1], contexts[:, :1])
    with pytest.raises(StakesError, match="two members or more"):
        honest_reduction(BrierLoss(), one, [0])
    assert select(BrierLoss(), one, n=1).honest_reduction is None
    no_rows = some_mixture(rng) | {"candidate_covariance": None}
    with pytest.raises(ValueError, match="covariances between candidates"):
        honest_reduction(SquaredError(), GaussianMixtureBelief(**no_rows), [0, 1])
