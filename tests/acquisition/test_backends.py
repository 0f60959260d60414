"""Every public function on every array library: the same numbers, and results that stay where their inputs are."""

from functools import cache

import array_api_compat
import numpy as np
import pytest

from stakes import (
    BregmanLoss,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogLoss,
    NormalEnsemble,
    ScoringRule,
    SphericalLoss,
    SquaredError,
    VoteEnsemble,
    Weight,
    ZeroOne,
    effective_context_weights,
    expected_posterior_uncertainty,
    expected_reduction,
    expected_regret,
    integration_error,
    score,
    uncertainty,
)
from stakes.beliefs import MemberNodes, MemberPanels
from stakes.losses import ConvexFunction, Square
from stakes.testing import check_belief

pytestmark = pytest.mark.filterwarnings("ignore::stakes.AccuracyWarning")  # the nested rule is coarse, and says so

N, M, K, C = 3, 2, 4, 3
MATRICES = [expected_reduction, expected_regret, expected_posterior_uncertainty]


def sigmoid(z):
    return 1.0 / (1.0 + array_api_compat.array_namespace(z).exp(-z))


def squares(x):
    return array_api_compat.array_namespace(x).sum(x**2, axis=-1)


REAL = {
    "squared": SquaredError(),
    "exponential weight": SquaredError(ExponentialWeight(0.4)),
    "smooth weight": SquaredError(sigmoid),
    "weight with a kink": SquaredError(InterpolatedWeight([0.0, 1.0], [0.1, 2.0])),
    "linex": Linex(0.7),
    "linex with a weight": Linex(-0.7, Weight(sigmoid)),
    "own": BregmanLoss(ConvexFunction(squares, lambda x: 2 * x)),
    "square": BregmanLoss(Square(), weight=ExponentialWeight(-0.2)),
}
CLASSES = {
    "log": LogLoss(),
    "weighted log": LogLoss([1.0, 50.0, 0.0]),
    "brier": BrierLoss([1.0, 2.0, 3.0]),
    "spherical": SphericalLoss(),
    "own": ScoringRule(squares),
    "costs": CostMatrix([[0.0, 2.0], [1.0, 0.0], [5.0, -1.0]]),
    "zero-one": ZeroOne(),
}


def gaussian(rng):
    mixing = rng.standard_normal((N + M, 4)) / 2
    covariance = mixing @ mixing.T
    return GaussianBelief, (
        rng.standard_normal(M),
        np.diag(covariance)[N:],
        np.diag(covariance)[:N] + 0.1,
        covariance[:N, N:],
    )


def normals(rng):
    means = rng.standard_normal((N + M, K))
    return NormalEnsemble, (means[:N], np.full((N, K), 0.4), means[N:], np.full((M, K), 0.3))


def uneven(rng):
    kind, (mean, _, *contexts) = normals(rng)
    return lambda *given: kind(*given, rule=MemberPanels()), (mean, rng.uniform(0.1, 1, (N, K)), *contexts)


def nested(rng):
    kind, given = normals(rng)
    return lambda *given: kind(*given, rule=MemberNodes.spaced(33)), given


def soft(rng):
    rows = rng.dirichlet(np.ones(C), (N + M, K))
    return CategoricalEnsemble, (rows[:N], rows[N:], rng.uniform(1, 2, K))


def votes(rng):
    rows = rng.integers(C, size=(N + M, K))
    return lambda candidates, contexts, q: VoteEnsemble(candidates, contexts, C, q), (
        rows[:N],
        rows[N:],
        rng.uniform(1, 2, K),
    )


OTHER_RULES = ("squared", "smooth weight", "weight with a kink", "linex with a weight")  # of the same ensemble
PAIRS = [(make, name, loss) for make in (gaussian, normals) for name, loss in REAL.items()]
PAIRS += [(make, name, REAL[name]) for make in (uneven, nested) for name in OTHER_RULES]
PAIRS += [(make, name, loss) for make in (soft, votes) for name, loss in CLASSES.items()]


@cache
def by_numpy(make, loss):
    """A function that tells what another gives of the loss and the belief of NumPy, computed once for all libraries."""
    kind, given = make(np.random.default_rng(7))
    belief, known = kind(*given), {}

    def wanted(function, **rest):
        key = function, *((name, array.tobytes()) for name, array in rest.items())
        if key not in known:
            known[key] = function(loss, belief, **rest)
        return known[key]

    return wanted


def elsewhere(xp, array):
    """An array of that library; that of array_api_strict on a device which is not the first, where it can be chosen."""
    if xp.__name__ != "array_api_strict":
        return xp.asarray(array)
    return xp.asarray(array, device=xp.Device("device1"))


def brought_back(result, like, host):
    """A result of the library and on the device of an array, as one of NumPy."""
    xp = array_api_compat.array_namespace(like)
    assert array_api_compat.array_namespace(result) is xp
    assert array_api_compat.device(result) == array_api_compat.device(like)
    return host(result.to_device(xp.Device("CPU_DEVICE")) if xp.__name__ == "array_api_strict" else result)


@pytest.mark.parametrize(("make", "name", "loss"), PAIRS, ids=[f"{make.__name__}-{name}" for make, name, _ in PAIRS])
def test_all_libraries_give_the_same_numbers_where_the_belief_is(xp, host, make, name, loss):  # noqa: ARG001
    kind, given = make(np.random.default_rng(7))
    belief, wanted = kind(*(elsewhere(xp, array.copy()) for array in given)), by_numpy(make, loss)
    costs, weights = np.arange(1.0, N + 1), np.arange(1.0, M + 1)
    like = elsewhere(xp, costs)
    for function in (*MATRICES, uncertainty, effective_context_weights):
        np.testing.assert_allclose(
            brought_back(function(loss, belief), like, host), wanted(function), rtol=1e-9, atol=1e-13
        )
    scores = score(loss, belief, context_weights=elsewhere(xp, weights), costs=like, memory_limit=200_000)
    np.testing.assert_allclose(
        brought_back(scores, like, host), wanted(score, context_weights=weights, costs=costs), rtol=1e-6, atol=1e-13
    )
    relative, log_scale = score(loss, belief, return_log_scale=True)
    np.testing.assert_allclose(
        brought_back(relative, like, host) * np.exp(log_scale), wanted(score), rtol=1e-7, atol=1e-13
    )


@pytest.mark.parametrize("make", [gaussian, normals, uneven, soft, votes])
def test_laws_hold_on_all_libraries(xp, make):
    kind, given = make(np.random.default_rng(7))
    check_belief(kind(*(xp.asarray(array.copy()) for array in given)))


def test_convergence_is_reported_on_all_libraries(xp, host):
    kind, given = normals(np.random.default_rng(7))
    assert np.all(host(integration_error(SquaredError(), kind(*(xp.asarray(array) for array in given)))) < 1e-6)


@pytest.mark.parametrize(("make", "name", "loss"), PAIRS, ids=[f"{make.__name__}-{name}" for make, name, _ in PAIRS])
def test_single_precision_stays_single(xp, host, make, name, loss):
    kind, given = make(np.random.default_rng(7))
    single = [array.astype(np.float32) for array in given]
    belief, wanted = kind(*(xp.asarray(array) for array in single)), by_numpy(make, loss)
    for function in (expected_reduction, uncertainty, score):
        result = function(loss, belief)
        assert result.dtype == xp.float32, name
        exact = wanted(function)
        tolerance = 1e-2 if name == "own" else 1e-3
        np.testing.assert_allclose(host(result), exact, rtol=tolerance, atol=tolerance * np.max(np.abs(exact)) / 10)
