"""Costs by the distance between classes that have an order."""

import numpy as np
import pytest

from stakes import CategoricalEnsemble
from stakes.evaluation import bayes_prediction
from stakes.exceptions import StakesError
from stakes.losses import align_classes, ordinal_costs
from stakes.testing import check_loss

OWN = ordinal_costs(list("abcd"), lambda z, a: abs(z - a) ** 0.5)


@pytest.mark.parametrize("loss", [ordinal_costs(4), ordinal_costs(4, "squared"), OWN])
def test_laws(loss):
    check_loss(loss, targets=range(4))


def test_absolute_distance_answers_a_median_and_squared_the_class_next_to_the_mean():
    probabilities = np.random.default_rng(0).dirichlet(np.ones(5), size=40)[:, None, :]
    belief = CategoricalEnsemble(probabilities, probabilities)
    median = np.argmax(np.cumsum(probabilities[:, 0], axis=1) >= 0.5, axis=1)
    assert np.array_equal(bayes_prediction(ordinal_costs(5), belief), median)
    mean = np.rint(probabilities[:, 0] @ np.arange(5.0))
    assert np.array_equal(bayes_prediction(ordinal_costs(5, "squared"), belief), mean)


def test_positions_and_names():
    loss = ordinal_costs(["low", "medium", "high"], "squared", positions=[0.0, 1.0, 5.0])
    assert loss.costs.tolist() == [[0.0, 1.0, 25.0], [1.0, 0.0, 16.0], [25.0, 16.0, 0.0]]
    assert align_classes(loss, ["high", "low", "medium"]).costs[0].tolist() == [0.0, 25.0, 16.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1,), "two names or more"),
        (("low",), "two names or more"),
        ((["a", "a"],), "different names"),
        ((3, "far"), "'absolute', 'squared'"),
        ((3, lambda z, a: z - a), "at least 0"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(StakesError, match=message):
        ordinal_costs(*given)


@pytest.mark.parametrize("positions", [[0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 1.0, np.inf]])
def test_positions_must_increase(positions):
    with pytest.raises(StakesError, match="that increase"):
        ordinal_costs(3, positions=positions)
