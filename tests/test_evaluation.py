"""Evaluation: Bayes answers, realised losses, decompositions as identities, calibration of simulated beliefs."""

import math

import numpy as np
import pytest
from brute import random_table
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from stakes import (
    BoxCox,
    BregmanLoss,
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    LogWarp,
    NormalEnsemble,
    PoissonDeviance,
    ScoringRule,
    SphericalLoss,
    SquaredError,
    VoteEnsemble,
    WarpedGaussianBelief,
    Weight,
    ZeroOne,
)
from stakes.evaluation import bayes_prediction, bias_variance, calibration, decompose, realised_loss
from stakes.losses import Exponential, Function, NegativeEntropy, Norm, Square

WEIGHTS = [None, ExponentialWeight(0.7), ExponentialWeight(-0.4), InterpolatedWeight([1.0, 2.0, 4.0], [0.0, 3.0, 1.0])]
REAL_LOSSES = [
    make(weight)
    for weight in WEIGHTS
    for make in (
        SquaredError,
        ItakuraSaito,
        PoissonDeviance,
        lambda w: Linex(0.8, w),
        lambda w: Linex(-0.3, w),
        lambda w: BoxCox(0.0, w),
        lambda w: BoxCox(0.5, w),
        lambda w: BregmanLoss(Square(), Exponential(0.5), w),
        lambda w: BregmanLoss(NegativeEntropy(), Function(lambda z: z**2, lambda t: t**0.5), w),
    )
]
CLASS_WEIGHTS = [None, [1.0, 5.0, 0.5], [0.0, 1.0, 2.0]]
CLASS_LOSSES = [loss(weights) for weights in CLASS_WEIGHTS for loss in (LogLoss, BrierLoss)]
OTHER_LOSSES = [
    SphericalLoss(),
    ScoringRule(Norm(), [1.0, 2.0, 3.0]),
    BregmanLoss(lambda x: (x**4).sum(-1)),
    BregmanLoss(Square(), lambda z: np.stack([z, z**2], axis=-1)),
]
SEEDS = st.integers(0, 2**32 - 1)


def mean_and_weights(loss, targets):
    """E[w] along the last axis, straight from the weight."""
    if loss.weight is None:
        return np.ones(targets.shape[:-1])
    return loss.weight(np.eye(3)[targets.astype(int)] if hasattr(loss, "class_weights") else targets).mean(-1)


def draws(loss, rng, *shape):
    """Targets and as many answers."""
    if hasattr(loss, "class_weights"):
        return rng.integers(1, 3, shape) * 1.0, rng.dirichlet(np.ones(3), shape)
    return rng.uniform(1.1, 4.0, shape), rng.uniform(0.5, 5.0, shape)


# Bayes answers


def test_bayes_answers_by_hand(xp, host):
    belief = GaussianBelief(xp.asarray(np.array([1.0, -2.0])), [4.0, 1.0], [1.0], [[0.0, 0.0]])
    np.testing.assert_allclose(host(bayes_prediction(SquaredError(), belief)), [1, -2], atol=1e-12)
    np.testing.assert_allclose(host(bayes_prediction(Linex(0.5), belief)), [1 - 0.25 * 4, -2 - 0.25], atol=1e-9)
    tilted = bayes_prediction(SquaredError(ExponentialWeight(0.5)), belief)  # mean + rate variance
    np.testing.assert_allclose(host(tilted), [3, -1.5], atol=1e-9)

    contexts = xp.asarray(np.array([[[0.5, 0.5], [0.7, 0.3]], [[0.1, 0.9], [0.1, 0.9]]]))
    classes = CategoricalEnsemble(contexts, contexts)
    np.testing.assert_allclose(host(bayes_prediction(LogLoss(), classes)), [[0.6, 0.4], [0.1, 0.9]], rtol=1e-14)
    np.testing.assert_allclose(host(bayes_prediction(LogLoss([1, 3]), classes))[0], np.array([0.6, 1.2]) / 1.8)
    assert host(bayes_prediction(CostMatrix([[0, 1], [3, 0]]), classes)).tolist() == [1, 1]
    assert host(bayes_prediction(ZeroOne(), classes)).tolist() == [0, 1]


def test_no_other_answer_has_a_smaller_expected_loss(rng):
    belief = random_table(rng, np.linspace(1.0, 4.0, 7))
    probabilities = belief.joint[0].sum(1)  # [M, Z]
    for loss in (SquaredError(ExponentialWeight(0.7)), Linex(0.8), BregmanLoss(Square(), Exponential(0.5))):
        answer = bayes_prediction(loss, belief)
        best, above, below = (
            (probabilities * loss(belief.values, (answer + step)[:, None])).sum(1) for step in (0.0, 1e-3, -1e-3)
        )
        assert (best < above).all()
        assert (best < below).all()


def test_bayes_answers_in_blocks_and_in_the_dtype_of_the_belief(rng):
    means = rng.standard_normal((600, 3)).astype(np.float32)
    belief = NormalEnsemble(means[:1], np.float32(0.5), means, np.float32(0.3))
    answer = bayes_prediction(SquaredError(), belief)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer, means.mean(1), atol=1e-6)


def test_a_loss_for_positive_targets_refuses_a_gaussian_belief():
    with pytest.raises(TypeError, match="nothing is clipped"):
        bayes_prediction(ItakuraSaito(), GaussianBelief([1.0], [1.0], [1.0], [[0.0]]))


# Realised losses


def test_realised_losses_by_hand(xp, host):
    targets, predictions = xp.asarray([1.0, 2.0, 3.0]), xp.asarray([1.0, 1.0, 5.0])
    plain = realised_loss(SquaredError(), predictions, targets)
    assert host(plain.each).tolist() == [0, 1, 4]
    assert plain.mean == pytest.approx(5 / 3)
    assert plain.standard_error == pytest.approx(np.std([0, 1, 4], ddof=1) / math.sqrt(3))
    assert plain.effective_rows == pytest.approx(25 / 17)
    weighted = SquaredError(InterpolatedWeight([1.0, 3.0], [2.0, 4.0]))  # weights 2, 3, 4
    assert realised_loss(weighted, predictions, targets).mean == pytest.approx(19 / 3)
    assert realised_loss(weighted, predictions, targets, normalise=True).mean == pytest.approx(19 / 9)

    rows, labels = xp.asarray([[0.5, 0.5], [0.25, 0.75]]), xp.asarray([0, 1])
    assert realised_loss(LogLoss(), rows, labels).mean == pytest.approx((math.log(2) - math.log(0.75)) / 2)
    normalised = realised_loss(LogLoss([1, 3]), rows, labels, normalise=True)
    assert normalised.mean == pytest.approx((math.log(2) - 3 * math.log(0.75)) / 4)
    assert realised_loss(CostMatrix([[0, 1], [-3, 0]]), xp.asarray([1, 0]), labels).mean == -1.0


@pytest.mark.parametrize("loss", REAL_LOSSES + CLASS_LOSSES + OTHER_LOSSES, ids=lambda loss: repr(loss)[:70])
def test_normalised_losses_are_ratios_of_means(rng, loss):
    targets, predictions = draws(loss, rng, 40)
    plain, normalised = (realised_loss(loss, predictions, targets, normalise) for normalise in (False, True))
    weight = mean_and_weights(loss, targets)
    np.testing.assert_allclose(plain.each, loss(targets, predictions), rtol=1e-12)
    np.testing.assert_allclose(normalised.each, plain.each / weight, rtol=1e-12, atol=1e-14)
    assert normalised.mean == pytest.approx(plain.mean / weight, rel=1e-12)
    assert normalised.effective_rows == pytest.approx(plain.effective_rows, rel=1e-10)
    assert 1 <= plain.effective_rows <= 40


def test_standard_errors_cover_the_spread_of_repeated_means(rng):
    loss = SquaredError(ExponentialWeight(0.5))
    runs = [
        realised_loss(loss, np.zeros(400), rng.standard_normal(400), normalise) for normalise in [False, True] * 300
    ]
    for some in (runs[::2], runs[1::2]):
        said = np.mean([run.standard_error for run in some])
        assert said == pytest.approx(np.std([run.mean for run in some]), rel=0.15)


def test_weights_beyond_the_range_of_numbers(xp, host):
    loss = SquaredError(ExponentialWeight(1.0))
    targets, predictions = xp.asarray(np.array([800.0, 801.0, 1.0])), [801.0, 803.0, 9.0]
    shares = np.array([1, math.e, 0]) / (1 + math.e)
    realised = realised_loss(loss, predictions, targets, normalise=True)
    assert realised.mean == pytest.approx(shares @ [1, 4, 64], rel=1e-12)
    np.testing.assert_allclose(host(realised.each), 3 * shares * [1, 4, 64], rtol=1e-12)
    split = decompose(loss, 802.0, targets, normalise=True)
    centre = shares @ [800, 801, 1]
    np.testing.assert_allclose(float(split.estimation_error), (centre - 802) ** 2, rtol=1e-9)
    np.testing.assert_allclose(float(split.dispersion), shares[0] * shares[1], rtol=1e-9)
    for refused in (
        lambda: realised_loss(loss, predictions, targets),
        lambda: decompose(loss, 802.0, targets),
    ):
        with pytest.raises(FloatingPointError, match=r"exp\(80.*normalise=True"):
            refused()


def test_tiny_weights_are_not_lost():
    loss = SquaredError(ExponentialWeight(1.0))
    split = decompose(loss, 0.0 - 600.0, np.array([-600.0, -602.0]))
    weights = np.exp([-600.0, -602.0])
    assert split.total == pytest.approx(weights @ [0, 4] / 2, rel=1e-10)
    assert split.total == pytest.approx(split.estimation_error + split.dispersion, rel=1e-10)


def test_rows_that_cost_nothing_or_everything():
    right = realised_loss(SquaredError(), [1.0, 2.0], [1.0, 2.0])
    assert (right.mean, right.standard_error, right.effective_rows) == (0, 0, 0)
    wrong = realised_loss(LogLoss(), [[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]], [0, 0, 0])
    assert (wrong.mean, wrong.standard_error, wrong.effective_rows) == (math.inf, math.inf, 1)
    assert realised_loss(SquaredError(), [1.0], [2.0]).standard_error == math.inf
    weightless = realised_loss(LogLoss([0, 1]), [[0.0, 1.0], [0.5, 0.5]], [0, 1], normalise=True)
    assert weightless.mean == pytest.approx(math.log(2))
    assert realised_loss(LogLoss([0, 1]), [[0.5, 0.5]], [0]).mean == 0
    huge = realised_loss(SquaredError(), [0.0, 0.0], [1e100, 1e100])
    assert (huge.mean, huge.effective_rows) == (pytest.approx(1e200), pytest.approx(2))


# Decompositions


@pytest.mark.parametrize("loss", REAL_LOSSES + CLASS_LOSSES + OTHER_LOSSES, ids=lambda loss: repr(loss)[:70])
@given(seed=SEEDS)
@settings(max_examples=10)
def test_the_mean_loss_is_estimation_error_and_dispersion(loss, seed):
    rng = np.random.default_rng(seed)
    (targets, _), (_, prediction) = draws(loss, rng, 4, 9), draws(loss, rng, 4)
    split = decompose(loss, prediction, targets)
    exact = 1e-9 if loss in OTHER_LOSSES else 1e-12
    direct = loss(targets, prediction[:, None, ...]).mean(-1)
    np.testing.assert_allclose(split.total, direct, rtol=exact)
    np.testing.assert_allclose(split.estimation_error + split.dispersion, split.total, rtol=exact)
    assert (split.estimation_error >= 0).all()
    normalised = decompose(loss, prediction, targets, normalise=True)
    weight = mean_and_weights(loss, targets)
    np.testing.assert_allclose(normalised.estimation_error * weight, split.estimation_error, rtol=1e-12)


def test_decompositions_by_hand(xp):
    split = decompose(SquaredError(), xp.asarray(1.0), xp.asarray([1.0, 3.0, 5.0]))
    assert [float(part) for part in (split.total, split.estimation_error, split.dispersion)] == pytest.approx(
        [20 / 3, 4, 8 / 3]
    )
    split = decompose(LogLoss(), xp.asarray([0.25, 0.75]), xp.asarray([0, 0, 1, 1]))
    cross = -(math.log(0.25) + math.log(0.75)) / 2
    assert [float(part) for part in (split.total, split.estimation_error, split.dispersion)] == pytest.approx(
        [cross, cross - math.log(2), math.log(2)]
    )


def test_offsets_cost_no_digits(rng):
    targets, predictions = rng.standard_normal(50), rng.standard_normal(6)
    for loss in (SquaredError(), Linex(0.8), SquaredError(ExponentialWeight(1e-5))):
        far, near = (bias_variance(loss, predictions + shift, targets + shift) for shift in (2.0**20, 0.0))
        unit = 1.0 if loss.weight is None else math.exp(2.0**20 * 1e-5)
        for part in ("total", "bayes_error", "bias", "variance"):
            np.testing.assert_allclose(getattr(far, part), getattr(near, part) * unit, rtol=1e-7)
        np.testing.assert_allclose(far.bayes_error + far.bias + far.variance, far.total, rtol=1e-12)


@pytest.mark.parametrize("loss", REAL_LOSSES + CLASS_LOSSES, ids=lambda loss: repr(loss)[:70])
@given(seed=SEEDS)
@settings(max_examples=10)
def test_the_mean_loss_of_random_answers_is_bayes_error_bias_and_variance(loss, seed):
    rng = np.random.default_rng(seed)
    (targets, _), (_, predictions) = draws(loss, rng, 3, 8), draws(loss, rng, 3, 5)
    parts = bias_variance(loss, predictions, targets)
    direct = loss(targets[:, None, :], predictions[:, :, None, ...]).mean((1, 2))
    np.testing.assert_allclose(parts.total, direct, rtol=1e-12)
    np.testing.assert_allclose(parts.bayes_error + parts.bias + parts.variance, parts.total, rtol=1e-12)
    np.testing.assert_allclose(parts.bayes_error, decompose(loss, predictions[:, 0], targets).dispersion, rtol=1e-12)
    assert (parts.variance >= 0).all()
    one = bias_variance(loss, predictions[:, :1], targets)
    np.testing.assert_allclose(one.variance, 0, atol=1e-13 * one.total.max())
    np.testing.assert_allclose(one.bias, decompose(loss, predictions[:, 0], targets).estimation_error, rtol=1e-9)


@pytest.mark.parametrize(
    ("loss", "central"),
    [
        (SquaredError(), 2.5),  # mean of 1 and 4
        (ItakuraSaito(), 1.6),  # harmonic
        (PoissonDeviance(), 2.0),  # geometric
        (BoxCox(0.0), 2.0),  # mean of logarithms
        (Linex(0.8), -math.log(2 / (math.exp(0.8) + math.exp(3.2))) / 0.8),  # harmonic in exp(-0.8 z)
    ],
)
def test_the_central_answer_by_hand(xp, loss, central):
    parts = bias_variance(loss, xp.asarray([1.0, 4.0]), xp.asarray([3.0]))
    assert float(parts.bayes_error) == pytest.approx(0, abs=1e-15)
    assert float(parts.bias) == pytest.approx(float(loss(3.0, central)))
    assert float(parts.variance) == pytest.approx(float(loss(central, 1.0) + loss(central, 4.0)) / 2)


def test_the_central_probabilities_are_a_renormalised_geometric_mean(xp):
    rows = np.array([[0.9, 0.1], [0.4, 0.6]])
    central = np.sqrt(rows[0] * rows[1])
    parts = bias_variance(LogLoss(), xp.asarray(rows), xp.asarray([1]))
    assert float(parts.bias) == pytest.approx(-math.log(central[1] / central.sum()))
    assert float(parts.variance) == pytest.approx(-math.log(central.sum()))
    impossible = bias_variance(LogLoss(), [[1.0, 0.0], [0.4, 0.6]], [1, 0])
    assert impossible.total == impossible.bias == math.inf


# Calibration

LEVELS = (0.5, 0.8, 0.9, 0.95)


def gaussian(mean, sd):
    return GaussianBelief(mean, sd**2, np.ones(1), np.zeros((1, len(mean))))


def test_coverage_of_calibrated_and_overconfident_normals(rng):
    mean, sd = rng.standard_normal(20_000), rng.uniform(0.5, 2.0, 20_000)
    targets = mean + sd * rng.standard_normal(20_000)
    right, narrow = (calibration(gaussian(mean, sd * factor), targets) for factor in (1.0, 0.5))
    np.testing.assert_allclose(right.pit, norm.cdf(targets, mean, sd), atol=1e-14)
    np.testing.assert_allclose(right.coverage, LEVELS, atol=4 * 0.5 / math.sqrt(20_000))
    assert right.levels == LEVELS
    expected = 2 * norm.cdf(0.5 * norm.ppf(0.5 + np.array(LEVELS) / 2)) - 1
    np.testing.assert_allclose(narrow.coverage, expected, atol=4 * 0.5 / math.sqrt(20_000))


def test_coverage_of_mixtures(rng, xp, host):
    mean, sd, shares = rng.standard_normal((5000, 3)) * 2, rng.uniform(0.2, 1.0, (5000, 3)), np.array([0.2, 0.5, 0.3])
    member = rng.choice(3, p=shares, size=5000)
    rows = np.arange(5000)
    targets = mean[rows, member] + sd[rows, member] * rng.standard_normal(5000)
    belief = NormalEnsemble(*(xp.asarray(each) for each in (mean[:1], sd[:1], mean, sd, shares)))
    found = calibration(belief, xp.asarray(targets))
    np.testing.assert_allclose(host(found.pit), norm.cdf(targets[:, None], mean, sd) @ shares, atol=1e-14)
    np.testing.assert_allclose(host(found.coverage), LEVELS, atol=4 * 0.5 / math.sqrt(5000))


def test_a_warp_keeps_quantiles(rng):
    latent = gaussian(rng.standard_normal(200), np.full(200, 0.7))
    targets = latent.mean + 0.7 * rng.standard_normal(200)
    warped = calibration(WarpedGaussianBelief(latent, LogWarp()), np.exp(targets))
    np.testing.assert_allclose(warped.pit, calibration(latent, targets).pit, rtol=1e-12)
    with pytest.raises(ValueError, match="the target must lie in"):
        calibration(WarpedGaussianBelief(latent, LogWarp()), targets - 100)


def test_pits_far_out_and_of_certain_beliefs(xp, host):
    belief = GaussianBelief(xp.zeros(5), xp.asarray([1.0, 1.0, 0.0, 0.0, 0.0]), xp.ones(1), xp.zeros((1, 5)))
    found = calibration(belief, [1e6, -1e6, 1e-9, -1e-9, 0.0], levels=[0.99])
    np.testing.assert_allclose(host(found.pit), [1, 0, 1, 0, 0.5], atol=1e-14)
    assert float(found.coverage[0]) == pytest.approx(0.2)


def test_calibration_of_classes_by_hand(xp, host):
    rows = xp.asarray([[0.75, 0.25], [0.75, 0.25], [0.05, 0.95], [0.55, 0.45]])[:, None, :]
    found = calibration(CategoricalEnsemble(rows, rows), [0, 1, 1, 1])
    gaps = [abs(2 * 0.75 - 1), abs(0.95 - 1), abs(0.55 - 0)]  # in bins [.7, .8), [.9, 1], [.5, .6)
    assert found.expected_error == pytest.approx(sum(gaps) / 4)
    np.testing.assert_allclose(host(found.predicted), [2.1 / 4, 1.9 / 4])
    np.testing.assert_allclose(host(found.observed), [0.25, 0.75])
    one_bin = calibration(CategoricalEnsemble(rows, rows), [0, 1, 1, 1], bins=1)
    assert one_bin.expected_error == pytest.approx(abs(3.0 / 4 - 2 / 4))


def test_calibration_of_calibrated_and_overconfident_classes(rng):
    rows = rng.dirichlet(np.ones(3), 20_000)
    labels = (rng.random(20_000)[:, None] > np.cumsum(rows, axis=1)).sum(1)
    sharp = rows**3 / (rows**3).sum(1, keepdims=True)
    right, narrow = (calibration(CategoricalEnsemble(p[:1, None], p[:, None]), labels) for p in (rows, sharp))
    assert right.expected_error < 0.015
    assert narrow.expected_error > 0.1
    np.testing.assert_allclose(right.predicted, right.observed, atol=0.015)


def test_votes_are_classes():
    found = calibration(VoteEnsemble([[0, 1]], [[0, 0], [1, 1]], 2), [0, 0])
    assert found.expected_error == 0.5


# What is refused

BELIEF = GaussianBelief([0.0, 1.0], [1.0, 1.0], [1.0], [[0.0, 0.0]])
CLASSES = CategoricalEnsemble([[[0.5, 0.5]]], [[[0.5, 0.5]]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: realised_loss(SquaredError(), [1.0, 2.0], [1.0]), ValueError, r"predictions must have shape \[1\]"),
        (lambda: realised_loss(SquaredError(), 1.0, [1.0]), ValueError, r"predictions must have shape \[1\]"),
        (lambda: realised_loss(SquaredError(), [1.0], 1.0), ValueError, r"targets must have shape \[n\]"),
        (lambda: realised_loss(LogLoss(), [0.5], [0]), ValueError, r"predictions must have shape \[1, C\]"),
        (lambda: realised_loss(SquaredError(), [], []), ValueError, "at least one row"),
        (lambda: realised_loss(SquaredError(), [1.0], [math.nan]), ValueError, "targets must be finite"),
        (lambda: realised_loss(ItakuraSaito(), [1.0], [-1.0]), ValueError, r"the target must lie in \(0, inf\)"),
        (
            lambda: realised_loss(ItakuraSaito(ExponentialWeight(1.0)), [-1.0], [1.0], normalise=True),
            ValueError,
            r"the prediction must lie in \(0, inf\)",
        ),
        (lambda: realised_loss(LogLoss(), [[0.5, 0.5]], [2]), ValueError, "the target must be a position"),
        (lambda: realised_loss(LogLoss([1, 2, 3]), [[0.5, 0.5]], [1]), ValueError, "each of the 3 classes"),
        (lambda: realised_loss(LogLoss([0, 1]), [[0.5, 0.5]], [0], normalise=True), ValueError, "weigh nothing"),
        (
            lambda: decompose(SquaredError(Weight(lambda z: 0 * z)), 1.0, [1.0, 2.0]),
            ValueError,
            "weigh nothing",
        ),
        (lambda: decompose(ZeroOne(), 0, [0, 1]), TypeError, "weighted Bregman loss .* ZeroOne"),
        (lambda: bias_variance(CostMatrix(np.eye(2)), [0, 1], [0, 1]), TypeError, "weighted Bregman loss"),
        (lambda: decompose(SquaredError(), [1.0], [1.0, 2.0]), ValueError, "must agree in their leading axes"),
        (lambda: decompose(SquaredError(), 1.0, 1.0), ValueError, "must agree in their leading axes"),
        (lambda: decompose(SquaredError(), 1.0, []), ValueError, "not be empty"),
        (lambda: decompose(LogLoss(), [[0.5, 0.5]], [0, 1]), ValueError, r"predictions \[..., C\] and targets"),
        (lambda: decompose(SquaredError(), 1.0, [math.nan]), ValueError, "targets must be finite"),
        (lambda: decompose(ItakuraSaito(), 1.0, [0.0]), ValueError, "the target must lie in"),
        (lambda: bias_variance(SquaredError(), 1.0, [1.0]), ValueError, r"predictions \[..., A\] and targets"),
        (lambda: bias_variance(SphericalLoss(), [[0.5, 0.5]], [0]), TypeError, "Square, NegativeLog .* Norm"),
        (lambda: bias_variance(BregmanLoss(np.cosh), [1.0], [0.0]), TypeError, "BregmanLoss has ConvexFunction"),
        (lambda: calibration(BELIEF, [0.0]), ValueError, r"targets must have shape \[2\]"),
        (lambda: calibration(BELIEF, [0.0, math.nan]), ValueError, "targets must be finite"),
        (lambda: calibration(BELIEF, [0.0, 1.0], levels=(0.5, 1.0)), ValueError, "levels must lie between 0 and 1"),
        (lambda: calibration(BELIEF, [0.0, 1.0], levels=()), ValueError, "levels must lie between 0 and 1"),
        (lambda: calibration(CLASSES, [2]), ValueError, "the target must be a position"),
        (lambda: calibration(CLASSES, [0], bins=0), ValueError, "bins must be a whole number"),
        (lambda: calibration([0.5], [0]), TypeError, "got list"),
        (
            lambda: calibration(random_table(np.random.default_rng(0), [0.0, 1.0]), np.zeros(4)),
            TypeError,
            "calibration knows GaussianBelief, .* got TableBelief",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
