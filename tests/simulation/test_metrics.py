"""Metrics that are functions of the belief, beside losses."""

import numpy as np
import pytest

from stakes import ExponentialWeight, LogLoss, SquaredError
from stakes.evaluation import bayes_prediction, realised_loss
from tests.simulation.simulation_cases import Committee, committees, lines
from tests.simulation.trial_cases import per_class, trials

WEIGHTS = np.asarray([1.0, 1.0, 20.0])
WEIGHTED = LogLoss(WEIGHTS)


def clipped(belief, targets):
    """Weighted log loss over the sum of weights, with q, clipped and renormalised."""
    q = np.clip(bayes_prediction(LogLoss(), belief), 1e-6, 1.0 - 1e-6)
    q = q / q.sum(axis=1, keepdims=True)
    return realised_loss(WEIGHTED, q, targets, normalise=True).mean


def test_a_function_may_do_what_a_loss_does():
    def again(belief, targets):
        return realised_loss(SquaredError(), bayes_prediction(SquaredError(), belief), targets).mean

    found = lines(metrics={"plain": SquaredError(), "again": again})
    assert list(found.losses) == ["loss", "plain", "again"]
    assert (found.losses["again"] == found.losses["plain"]).all()


def test_a_function_may_answer_with_another_act():
    """Weighted squared error of the mean, beside that of the Bayes act, which is m + v for w = exp(z)."""
    loss = SquaredError(weight=ExponentialWeight(1.0))

    def of_the_mean(belief, targets):
        return np.mean(np.exp(targets) * (targets - belief.mean) ** 2)

    def of_the_act(belief, targets):
        return np.mean(np.exp(targets) * (targets - belief.mean - belief.variance) ** 2)

    found = trials(loss=loss, metrics={"mean": of_the_mean, "act": of_the_act})
    np.testing.assert_allclose(found.losses["act"], found.losses["loss"], rtol=1e-9)
    assert not np.allclose(found.losses["mean"], found.losses["loss"], rtol=0.01)


def test_probabilities_and_reweighted_probabilities():
    seen = []

    def q_metric(belief, targets):
        seen.append((belief, targets))
        return clipped(belief, targets)

    found = trials(
        per_class, loss=WEIGHTED, model=Committee(classes=("a", "b", "c")), metrics={"q": q_metric}, strategies=["loss"]
    )
    for (belief, targets), value in zip(seen, found.losses["q"].ravel(), strict=True):
        q = belief.contexts.mean(axis=1)  # [T, C]
        weights = WEIGHTS[targets]
        assert targets.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        assert value == pytest.approx(-np.sum(weights * np.log(q[np.arange(9), targets])) / weights.sum())
    assert not np.allclose(found.losses["q"], found.losses["loss"])


def test_the_number_may_be_infinite_but_there_must_be_one():
    found = lines(metrics={"always": lambda belief, targets: np.inf})
    assert np.isposinf(found.losses["always"]).all()
    with pytest.raises(ValueError, match=r"metric 'none' must give a number; it gave NaN on 18 test rows"):
        lines(metrics={"none": lambda belief, targets: np.nan})
    with pytest.raises(TypeError, match=r"metric 'many' must give one number for all test rows; it gave array"):
        lines(metrics={"many": lambda belief, targets: targets})


@pytest.mark.parametrize("metric", [SquaredError, "squared", WEIGHTED, None])
def test_what_is_no_metric(metric):
    with pytest.raises(
        TypeError, match=r"metric 'mine' must be a loss about the same kind of target as .*, or a function"
    ):
        lines(metrics={"mine": metric})


def test_the_settings_tell_functions_apart():
    powers = [committees(metrics={"m": lambda belief, targets, k=k: float(k)}, runs=1) for k in (1, 2, 1)]
    found = [each.settings["metrics"]["m"] for each in powers]
    assert found[0] == found[2] != found[1]
