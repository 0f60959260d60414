"""Vector targets: closed forms, the general route and the definition agree; several outputs are the sum of each."""

from functools import cache

import array_api_compat
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from stakes import (
    AccuracyWarning,
    BregmanLoss,
    CostMatrix,
    ExponentialLinearWeight,
    GaussianBelief,
    LogLoss,
    Mahalanobis,
    SquaredError,
    VectorGaussianBelief,
    VectorNormalEnsemble,
    Weight,
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    find_form,
    integration_error,
    score,
    select,
    uncertainty,
)
from stakes._utils.array import on_host
from stakes.baselines import bald, margin, predictive_entropy, predictive_variance, query_by_committee
from stakes.beliefs import SymmetricNodes
from stakes.losses import FiniteChoice, Square, VectorIdentity
from stakes.losses.domains import Vectors
from tests.brute import stacked_vectors, vector_reduction

pytestmark = pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # rules of few nodes are tried on purpose

MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])
RATES = ExponentialLinearWeight([0.9, -0.5])


def sigmoid(z):
    return 1.0 / (1.0 + array_api_compat.array_namespace(z).exp(-2.0 * z[..., 0]))


def from_definition(given, weight, matrix=MATRIX):
    """[N, M]: by dense grids over y and z."""
    n_candidates, n_contexts = given["covariance"].shape[:2]
    return np.array(
        [
            [
                vector_reduction(
                    matrix,
                    weight,
                    given["mean"][m],
                    given["variance"][m],
                    given["candidate_variance"][n],
                    given["covariance"][n, m],
                )
                for m in range(n_contexts)
            ]
            for n in range(n_candidates)
        ]
    )


@pytest.mark.parametrize("size", [1, 2])
def test_against_the_definition(rng, size):
    """Two correlated outputs, a full matrix; closed forms and the general route to 1e-8, a sigmoid's weight to 1e-5."""
    given = stacked_vectors(rng, 1, 2, size, 2)
    belief = VectorGaussianBelief(**given)
    plain, weighted = Mahalanobis(MATRIX), Mahalanobis(MATRIX, RATES)
    for loss, weight in ((plain, lambda z: np.ones(len(z))), (weighted, RATES)):
        wanted = from_definition(given, weight)
        assert find_form(loss, belief).name.startswith("closed form")
        np.testing.assert_allclose(expected_reduction(loss, belief), wanted, rtol=1e-8)
        np.testing.assert_allclose(expected_regret(loss, belief), wanted, rtol=1e-8)
    smooth = Mahalanobis(MATRIX, sigmoid)
    assert find_form(smooth, belief).name == "expected regret over split moments"
    np.testing.assert_allclose(expected_reduction(smooth, belief), from_definition(given, sigmoid), rtol=1e-5)


def test_by_hand():
    """C = (1, 2), Var[y] = 4, A = diag(3, 5): tr(A C' C / 4) = (3 + 20) / 4."""
    belief = VectorGaussianBelief([[0.0, 0.0]], [[[2.0, 0.5], [0.5, 3.0]]], [[[4.0]]], [[[[1.0, 2.0]]]])
    for function in (expected_reduction, expected_regret):
        np.testing.assert_allclose(function(Mahalanobis(np.diag([3.0, 5.0])), belief), [[5.75]], rtol=1e-13)
        weighted = Mahalanobis(np.diag([3.0, 5.0]), ExponentialLinearWeight([1.0, 2.0]))  # b' V b = 2 + 2 + 12
        np.testing.assert_allclose(function(weighted, belief), [[5.75 * np.exp(8.0)]], rtol=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4))
def test_without_a_weight_and_with_an_exponential_one_the_general_route_is_exact(seed, size, d):
    rng = np.random.default_rng(seed)
    belief = VectorGaussianBelief(**stacked_vectors(rng, 2, 2, size, d), rule=SymmetricNodes(32, 64))
    mixing = rng.standard_normal((d, d))
    for weight in (None, ExponentialLinearWeight(rng.standard_normal(d))):
        loss = Mahalanobis(mixing @ mixing.T, weight)
        np.testing.assert_allclose(expected_regret(loss, belief), expected_reduction(loss, belief), rtol=1e-9)


def test_the_identity_sums_the_squared_errors_of_the_outputs(rng):
    """A label of one number, correlated outputs: the sum of scalar beliefs about each output."""
    given = stacked_vectors(rng, 4, 3, 1, 3)
    vector = expected_reduction(Mahalanobis(np.eye(3)), VectorGaussianBelief(**given))
    each = [
        expected_reduction(
            SquaredError(),
            GaussianBelief(
                given["mean"][:, i],
                given["variance"][:, i, i],
                given["candidate_variance"][:, 0, 0],
                given["covariance"][:, :, 0, i],
            ),
        )
        for i in range(3)
    ]
    np.testing.assert_allclose(vector, sum(each), rtol=1e-12)


def test_independent_outputs_are_priced_one_by_one(rng):
    """Outputs that are independent, each with its own number of the label: the priced sum of scalar beliefs."""
    prices, scalars = [3.0, 0.5], [stacked_vectors(rng, 4, 3, 1, 1) for _ in range(2)]

    def apart(name):
        blocks = np.zeros((*scalars[0][name].shape[:-2], 2, 2))
        for i in range(2):
            blocks[..., i, i] = scalars[i][name][..., 0, 0]
        return blocks

    mean = np.concatenate([scalar["mean"] for scalar in scalars], axis=1)
    belief = VectorGaussianBelief(mean, apart("variance"), apart("candidate_variance"), apart("covariance"))
    each = [
        expected_reduction(
            SquaredError(),
            GaussianBelief(
                *(scalar[name].reshape(shape) for name, shape in zip(scalar, (3, 3, 4, (4, 3)), strict=False))
            ),
        )
        for scalar in scalars
    ]
    wanted = prices[0] * each[0] + prices[1] * each[1]
    np.testing.assert_allclose(expected_reduction(Mahalanobis(np.diag(prices)), belief), wanted, rtol=1e-12)


@pytest.mark.parametrize(("size", "d", "tolerance"), [(2, 2, 1e-5), (1, 3, 5e-3), (3, 3, 0.03)])
def test_the_accuracy_that_the_rule_states(rng, size, d, tolerance):
    """A sigmoid of slope 2 a standard deviation, against the same belief with many more nodes."""
    many = SymmetricNodes(*((512, 2048) if d == 2 else (256, 1024)), random_state=5)
    given = stacked_vectors(rng, 2, 1, size, d)
    spread = np.sqrt(given["variance"][0].diagonal())
    loss = Mahalanobis(np.eye(d), lambda z: 1 / (1 + np.exp(-2 * z[..., 0] / spread[0])))
    fine = expected_regret(loss, VectorGaussianBelief(**given, rule=many))
    np.testing.assert_allclose(expected_regret(loss, VectorGaussianBelief(**given)), fine, rtol=tolerance)
    assert integration_error(loss, VectorGaussianBelief(**given)).max() < tolerance


@pytest.mark.parametrize("steep", [30.0, -30.0])
def test_a_steep_exponential_weight_costs_no_digits(rng, steep):
    """What matters lies 30 standard deviations away, and weights reach exp(450): the scale carries them."""
    given = stacked_vectors(rng, 2, 2, 2, 2)
    rate = steep / np.sqrt(given["variance"][:, 0, 0].max())
    loss = Mahalanobis(MATRIX, ExponentialLinearWeight([rate, 0.0]))
    belief = VectorGaussianBelief(**given)
    np.testing.assert_allclose(expected_regret(loss, belief), expected_reduction(loss, belief), rtol=1e-7)


def test_weights_beyond_the_range_of_numbers(rng):
    given = stacked_vectors(rng, 3, 2, 2, 2)
    far = VectorGaussianBelief(**{**given, "mean": given["mean"] + 400.0})
    loss = Mahalanobis(MATRIX, ExponentialLinearWeight([1.5, 0.5]))
    with pytest.raises(FloatingPointError, match="return_log_scale"):
        score(loss, far)
    scores, log_scale = score(loss, far, return_log_scale=True)
    near, near_scale = score(loss, VectorGaussianBelief(**given), return_log_scale=True)
    np.testing.assert_allclose(scores, near, rtol=1e-9)
    np.testing.assert_allclose(log_scale, near_scale + 800.0, rtol=1e-12)
    by_rule, rule_scale = score(Mahalanobis(MATRIX, Weight(np.exp, loss.weight.logarithm)), far, return_log_scale=True)
    np.testing.assert_allclose(by_rule, scores, rtol=1e-8)
    np.testing.assert_allclose(rule_scale, log_scale, rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_offset_costs_no_digits(rng, weighted):
    given = stacked_vectors(rng, 3, 2, 2, 2)
    far, near = VectorGaussianBelief(**{**given, "mean": 1e6 + given["mean"]}), VectorGaussianBelief(**given)
    there, here = (
        BregmanLoss(Square(), VectorIdentity(2), (lambda z, o=o: 1 + np.tanh(z[..., 0] - o)) if weighted else None)
        for o in (1e6, 0.0)
    )
    np.testing.assert_allclose(expected_regret(there, far), expected_regret(here, near), rtol=1e-7)


def test_a_label_about_something_else_is_worth_nothing(rng):
    given = stacked_vectors(rng, 2, 2, 2, 2)
    belief = VectorGaussianBelief(**{**given, "covariance": 0.0 * given["covariance"]})
    for weight in (None, RATES, sigmoid):
        loss = Mahalanobis(MATRIX, weight)
        assert np.all(abs(expected_regret(loss, belief)) < 1e-20 * uncertainty(loss, belief).max())


def test_uncertainty_is_the_priced_variance(rng):
    belief = VectorGaussianBelief(**stacked_vectors(rng, 2, 3, 2, 2))
    wanted = np.einsum("ij,mji->m", MATRIX, belief.variance)
    np.testing.assert_allclose(uncertainty(Mahalanobis(MATRIX), belief), wanted, rtol=1e-12)
    left = expected_posterior_uncertainty(Mahalanobis(MATRIX), belief)
    np.testing.assert_allclose(left, wanted - expected_reduction(Mahalanobis(MATRIX), belief), rtol=1e-12)
    weights = effective_context_weights(Mahalanobis(MATRIX, RATES), belief)
    log_mean = belief.mean @ RATES.rates + np.einsum("i,mij,j->m", RATES.rates, belief.variance, RATES.rates) / 2
    np.testing.assert_allclose(weights, np.exp(log_mean) / np.exp(log_mean).sum(), rtol=1e-10)


class BothAbove(FiniteChoice):
    """Act if the first output exceeds the second: the gain is their difference, waiting costs nothing."""

    domain = Vectors(2)

    def cost_rows(self, z):
        xp = array_api_compat.array_namespace(z)
        return xp.stack([xp.zeros_like(z[..., 0]), z[..., 1] - z[..., 0]], axis=-1)

    def __call__(self, z, prediction):
        return self.pointwise(z, prediction[..., None])


def test_a_choice_between_actions_on_vectors(rng):
    """The difference of outputs is a scalar: E[max(0, difference)] is known, sd density(mean / sd) + mean cdf."""
    given = stacked_vectors(rng, 2, 2, 1, 2)
    belief = VectorGaussianBelief(**given, rule=SymmetricNodes(1024, 512))
    step = np.array([1.0, -1.0])
    mean = given["mean"] @ step
    sd = np.abs(belief.factor[..., 0] @ step)  # [N, M]: of the mean of the difference after the label
    wanted = sd * norm.pdf(mean / sd) + mean * norm.cdf(mean / sd) - np.maximum(mean, 0)
    np.testing.assert_allclose(expected_reduction(BothAbove(), belief), wanted, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "belief", "message"),
    [
        ("scalar", "vector", r"SquaredError is for real targets .* belief about vectors of 2 numbers.*Mahalanobis"),
        ("vector", "scalar", r"Mahalanobis is for vector targets \(vectors of 2 numbers\), but GaussianBelief"),
        ("class", "vector", r"LogLoss is for class targets .* vectors of 2 numbers"),
        ("costs", "vector", r"CostMatrix is for class targets"),
        ("three", "vector", r"vectors of 3 numbers, but VectorGaussianBelief is a belief about vectors of 2.*a row"),
    ],
)
def test_a_loss_for_other_targets_is_refused(rng, loss, belief, message):
    losses = {"scalar": SquaredError(), "vector": Mahalanobis(MATRIX), "class": LogLoss(), "costs": CostMatrix(MATRIX)}
    beliefs = {
        "scalar": GaussianBelief([0.0], [1.0], [1.0], [[0.5]]),
        "vector": VectorGaussianBelief(**stacked_vectors(rng, 1, 1, 1, 2)),
    }
    with pytest.raises(TypeError, match=message):
        score({**losses, "three": Mahalanobis(np.eye(3))}[loss], beliefs[belief])


def gaussian(rng):
    return lambda **given: VectorGaussianBelief(**given, rule=SymmetricNodes(64, 64)), stacked_vectors(rng, 3, 2, 2, 2)


def members(rng):
    means = rng.standard_normal((5, 4, 2))
    given = {"candidate_mean": means[:3], "context_mean": means[3:], "member_weights": rng.uniform(1, 2, 4)}
    sds = {"candidate_sd": np.full((3, 4, 2), 0.5), "context_sd": np.full((2, 4, 2), 0.4)}
    return lambda **given: VectorNormalEnsemble(**given, rule=SymmetricNodes(16, 64)), {**given, **sds}


LOSSES = [Mahalanobis(MATRIX), Mahalanobis(MATRIX, RATES), Mahalanobis(MATRIX, sigmoid), BothAbove()]
FUNCTIONS = [expected_reduction, expected_regret, uncertainty, effective_context_weights, score]


@cache
def by_numpy(make, loss):
    """A function that tells what another gives of the loss and the belief of NumPy, computed once for all libraries."""
    kind, given = make(np.random.default_rng(7))
    return cache(lambda function: function(loss, kind(**given)))


def two_labels(loss, belief):
    return select(loss, belief, n=2, max_configurations=100)


def elsewhere(xp, array):
    """An array of that library; that of array_api_strict on a device which is not the first, where it can be chosen."""
    return xp.asarray(array, **({"device": xp.Device("device1")} if xp.__name__ == "array_api_strict" else {}))


@pytest.mark.parametrize("make", [gaussian, members])
@pytest.mark.parametrize("loss", LOSSES, ids=["plain", "exponential", "sigmoid", "choice"])
def test_all_libraries_give_the_same_numbers_where_the_belief_is(xp, make, loss):
    kind, given = make(np.random.default_rng(7))
    arrays, wanted = {name: elsewhere(xp, array.copy()) for name, array in given.items()}, by_numpy(make, loss)
    belief, device = kind(**arrays), array_api_compat.device(next(iter(arrays.values())))
    for function in FUNCTIONS:
        result = function(loss, belief)
        assert array_api_compat.array_namespace(result) is xp
        assert array_api_compat.device(result) == device
        np.testing.assert_allclose(on_host(result), wanted(function), rtol=1e-8, atol=1e-12)
    chosen, expected = two_labels(loss, belief), wanted(two_labels)
    assert chosen.indices == expected.indices
    np.testing.assert_allclose(on_host(chosen.joint_reduction), expected.joint_reduction, rtol=1e-7)


@pytest.mark.parametrize("make", [gaussian, members])
@pytest.mark.parametrize("loss", LOSSES, ids=["plain", "exponential", "sigmoid", "choice"])
def test_single_precision_stays_single(xp, host, make, loss):
    kind, given = make(np.random.default_rng(7))
    single = kind(**{name: xp.asarray(array.astype(np.float32)) for name, array in given.items()})
    for function in (expected_reduction, uncertainty, score):
        result, wanted = function(loss, single), by_numpy(make, loss)(function)
        assert result.dtype == xp.float32
        np.testing.assert_allclose(host(result), wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def test_baselines(xp, host, rng):
    given = stacked_vectors(rng, 4, 2, 2, 2)
    noise = np.stack([0.1 * np.array([[1.0, 0.3], [0.3, 0.8]])] * 4)
    given["candidate_variance"] = given["candidate_variance"] + noise
    del given["candidate_covariance"]
    belief = VectorGaussianBelief(
        **{name: xp.asarray(array) for name, array in given.items()}, noise_variance=xp.asarray(noise)
    )
    determinant = np.linalg.det(given["candidate_variance"])
    np.testing.assert_allclose(host(bald(belief)), np.log(determinant / np.linalg.det(noise)) / 2, rtol=1e-9)
    np.testing.assert_allclose(
        host(predictive_entropy(belief)), np.log((2 * np.pi * np.e) ** 2 * determinant) / 2, rtol=1e-9
    )
    np.testing.assert_allclose(host(predictive_variance(belief)), np.trace(given["candidate_variance"].T), rtol=1e-12)
    for rule in (margin, query_by_committee):
        with pytest.raises(TypeError, match=f"{rule.__name__} does not take a VectorGaussianBelief"):
            rule(belief)


def test_bald_needs_noise_and_labels_that_include_it(rng):
    given = stacked_vectors(rng, 4, 2, 2, 2)
    with pytest.raises(ValueError, match="bald needs the noise_variance of the VectorGaussianBelief"):
        bald(VectorGaussianBelief(**given))
    with pytest.raises(ValueError, match="without a direction of no noise"):
        bald(VectorGaussianBelief(**given, noise_variance=np.ones((4, 2, 2))))
    with pytest.raises(ValueError, match="must include noise_variance"):
        bald(VectorGaussianBelief(**given, noise_variance=100 * given["candidate_variance"]))
    known = VectorGaussianBelief([[0.0]], [[[1.0]]], [np.ones((2, 2))], np.full((1, 1, 2, 1), 0.1))
    assert predictive_entropy(known)[0] == -np.inf


def test_the_price_of_one_output_is_not_lost_beside_that_of_another():
    units = np.array([4e-3, 6e3, 1e-5])  # of outputs whose errors cost alike
    price = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 1.5]])
    covariance = np.array([0.5, -0.3, 0.7])
    belief = VectorGaussianBelief([[0.0] * 3], [np.diag(units**2)], [[[2.0]]], (covariance * units)[None, None, None])
    found = score(Mahalanobis(price / units[:, None] / units), belief)
    np.testing.assert_allclose(found, covariance @ price @ covariance / 2.0, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_what_few_nodes_cost_is_stated(size, seed):
    """Three outputs, and a weight along one direction: off by 1e-4 to 1e-2, and no warning said so."""
    reference = pytest.importorskip("tests.torture.reference", reason="mpmath is not installed", exc_type=ImportError)
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size + 3, 2 * (size + 3)))
    joint, rates = root @ root.T / root.shape[1], rng.normal(size=3)
    rates /= np.sqrt(rates @ joint[size:, size:] @ rates)
    belief = VectorGaussianBelief(
        np.zeros((1, 3)), joint[None, size:, size:], joint[None, :size, :size], joint[None, None, :size, size:]
    )
    with pytest.warns(AccuracyWarning, match=r"accurate to about .* only\. Give the belief more nodes") as caught:
        found = score(Mahalanobis(np.eye(3), lambda z: 1.0 + 5.0 * np.exp(-((z @ rates) ** 2))), belief)[0]
    weight = reference.Pieces.of((1,), (5, 0, 0, 2))
    wanted = float(reference.vector_expected(np.eye(3), weight, rates, np.zeros(3), joint, size))
    assert abs(found / wanted - 1.0) <= caught[0].message.relative_error < 0.5
