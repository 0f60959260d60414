"""Several labels of one row: laws, brute force over label sets, and what is refused."""

from itertools import product

import numpy as np
import pytest

from stakes import (
    BrierLoss,
    CategoricalEnsemble,
    CostMatrix,
    LogLoss,
    ScoringRule,
    SphericalLoss,
    SquaredError,
    ZeroOne,
    expected_regret,
    score,
    select,
    uncertainty,
)
from stakes.exceptions import StakesError
from stakes.losses import MultiLabelScore, Square, label_set_names, label_sets, multi_label
from stakes.testing import check_loss

COSTS = CostMatrix([[0.0, 1.0], [5.0, 0.0]])
SCORES = {
    "log": multi_label(LogLoss(), labels=3, weights=[1.0, 2.0, 0.5]),
    "brier": multi_label({"a": BrierLoss(), "b": BrierLoss([1.0, 4.0])}),
    "mixed scores": multi_label([LogLoss([1.0, 3.0]), SphericalLoss(), ScoringRule(Square())], weights=[3.0, 1.0, 1.0]),
}


def members(rows, labels, count=5, seed=0):
    """[n, K, L]: the probability of each label, by member."""
    return np.random.default_rng(seed).uniform(0.02, 0.98, size=(rows, count, labels))


def of_sets(each):
    """[n, K, 2^L]: given the member, labels are independent."""
    sets = label_sets(each.shape[2])
    return np.prod(np.where(sets == 1, each[:, :, None, :], 1.0 - each[:, :, None, :]), axis=3)


def belief_of_sets(labels, rows=4, contexts=3):
    return CategoricalEnsemble(of_sets(members(rows, labels)), of_sets(members(contexts, labels, seed=1)))


@pytest.mark.parametrize("name", SCORES)
def test_scores_pass_the_laws(name):
    count = len(SCORES[name].losses)
    check_loss(SCORES[name], targets=range(2**count))


def test_costs_pass_the_laws_and_are_the_sum():
    loss = multi_label([COSTS, ZeroOne()], weights=[2.0, 1.0])
    check_loss(loss, targets=range(4))
    for truth, answer in product(range(4), repeat=2):
        there, answered = label_sets(2)[truth], label_sets(2)[answer]
        assert loss(truth, answer) == 2.0 * COSTS.costs[there[0], answered[0]] + (there[1] != answered[1])


@pytest.mark.parametrize("name", SCORES)
def test_a_score_is_the_sum_over_labels(name):
    loss = SCORES[name]
    count = len(loss.losses)
    answers = np.random.default_rng(2).uniform(0.05, 0.95, size=count)
    for number, there in enumerate(label_sets(count)):
        each = [
            weight * one(z, [1.0 - p, p])
            for one, weight, z, p in zip(loss.losses, loss.weights, there, answers, strict=True)
        ]
        assert loss(number, answers) == pytest.approx(sum(each))


@pytest.mark.parametrize("name", SCORES)
def test_uncertainty_is_the_sum_over_labels(name):
    loss = SCORES[name]
    count, here = len(loss.losses), members(3, len(loss.losses), seed=1).mean(axis=1)  # [M, L]
    belief = belief_of_sets(count)
    expected = 0.0
    for place, (one, weight) in enumerate(zip(loss.losses, loss.weights, strict=True)):
        own = np.stack([1.0 - here[:, place], here[:, place]], axis=1)[:, None, :]
        expected = expected + weight * uncertainty(one, CategoricalEnsemble(own, own))
    np.testing.assert_allclose(uncertainty(loss, belief), expected, rtol=1e-9)


@pytest.mark.parametrize("loss", [*SCORES.values(), multi_label([COSTS, ZeroOne()])], ids=[*SCORES, "costs"])
def test_worth_is_what_a_row_with_all_its_labels_saves_by_brute_force(loss):
    count = len(getattr(loss, "losses", (0, 0)))
    belief = belief_of_sets(count)
    pool, there = members(4, count), members(3, count, seed=1)
    parts, weights = getattr(loss, "losses", (COSTS, ZeroOne())), getattr(loss, "weights", (1.0, 1.0))
    worths = np.zeros(4)
    for n in range(4):
        for given in label_sets(count):
            likely = np.prod(np.where(given == 1, pool[n], 1.0 - pool[n]), axis=1)  # [K]
            share, after = likely.mean(), likely / likely.sum()
            for place, (one, weight) in enumerate(zip(parts, weights, strict=True)):
                for m in range(3):
                    before = _least(one, there[m, :, place].mean())
                    worths[n] += share * weight * (before - _least(one, after @ there[m, :, place])) / 3
    np.testing.assert_allclose(score(loss, belief), worths, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(expected_regret(loss, belief).mean(axis=1), worths, rtol=1e-8, atol=1e-12)


def _least(loss, probability):
    """The expected loss of the best answer where a label is there with this chance."""
    own = np.array([[[1.0 - probability, probability]]])
    return float(uncertainty(loss, CategoricalEnsemble(own, own))[0])


def test_a_batch_of_rows_is_chosen_together():
    found = select(SCORES["log"], belief_of_sets(3), n=2)
    assert found.joint_reduction[1] > found.joint_reduction[0] > 0


def test_sets_are_counted_in_binary_and_named():
    assert label_set_names("abc") == ("none", "c", "b", "b+c", "a", "a+c", "a+b", "a+b+c")
    assert multi_label(ZeroOne(), labels=["a", "b"]).actions == ("none", "b", "a", "a+b")
    named = CostMatrix({0: {"ship": 0, "repair": 1}, 1: {"ship": 9, "repair": 1}})
    assert multi_label({"x": named, "y": ZeroOne()}).actions[1] == "x: ship, y: 1"
    assert isinstance(SCORES["log"], MultiLabelScore)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: multi_label([ZeroOne(), LogLoss()]), "must all be"),
        (lambda: multi_label(ZeroOne()), "for each label"),
        (lambda: multi_label([ZeroOne()] * 2, labels=3), "for each label"),
        (lambda: multi_label(ZeroOne(), labels=7), "1 to 6 labels"),
        (lambda: multi_label({"a": SquaredError()}), "about two classes"),
        (lambda: multi_label({"a": CostMatrix(np.eye(3))}), "about two classes"),
        (lambda: multi_label(ZeroOne(), labels=["a", "a"]), "different names"),
        (lambda: multi_label(ZeroOne(), labels=["a", "b+c"]), "without"),
        (lambda: multi_label({"a": ZeroOne()}, labels=["b"]), "names already"),
        (lambda: multi_label(ZeroOne(), labels=2, weights=[1.0]), "2 numbers"),
        (lambda: multi_label(ZeroOne(), labels=2, weights=[-1.0, 1.0]), "at least 0"),
        (lambda: SCORES["log"](0, [0.5, 0.5]), "probability of each of"),
        (lambda: SCORES["log"](8, [0.5, 0.5, 0.5]), "target"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(StakesError, match=message):
        make()
