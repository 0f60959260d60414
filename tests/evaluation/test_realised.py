"""Bayes answers and realised losses: by hand, as ratios of means, with honest errors, however large the weights."""

import math

import numpy as np
import pytest

from stakes import (
    BregmanLoss,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    ItakuraSaito,
    Linex,
    LogLoss,
    NormalEnsemble,
    SquaredError,
    ZeroOne,
)
from stakes.evaluation import bayes_prediction, decompose, realised_loss
from stakes.losses import Exponential, Square
from tests.brute import random_table
from tests.evaluation.evaluation_cases import CLASS_LOSSES, OTHER_LOSSES, REAL_LOSSES, draws, mean_and_weights

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
        mean_error = np.mean([run.standard_error for run in some])
        assert mean_error == pytest.approx(np.std([run.mean for run in some]), rel=0.15)


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


# What is refused


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
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
