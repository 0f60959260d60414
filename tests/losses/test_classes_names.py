"""Losses that know the names of classes: matched by name, whatever order anyone has them in."""

import re
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from stakes import BrierLoss, CostMatrix, LogLoss, ScoringRule, SphericalLoss, audit, outlook, rank, simulate
from stakes.exceptions import StakesError
from stakes.losses import Square, align_classes

NAMES = ("setosa", "versicolor", "virginica")
COSTS = pd.DataFrame([[0.0, 1.0, 2.0], [3.0, 0.0, 7.0], [20.0, 5.0, 0.0]], index=NAMES, columns=NAMES)


@pytest.fixture(scope="module")
def flowers():
    X, y = load_iris(return_X_y=True)
    names = np.asarray(NAMES)[y]
    model = RandomForestClassifier(30, max_depth=3, random_state=0).fit(X[::4], names[::4])
    return model, X, names


@pytest.mark.parametrize("rows", list(permutations(range(3))))
@pytest.mark.parametrize("columns", [(0, 1, 2), (2, 0, 1)])
def test_a_permuted_data_frame_gives_the_same_scores(flowers, rows, columns):
    model, X, _ = flowers
    wanted = rank(model, CostMatrix(COSTS.to_numpy()), X[1::4], n=5)
    found = rank(model, CostMatrix(COSTS.iloc[list(rows), list(columns)]), X[1::4], n=5)
    assert found.indices == wanted.indices
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-12)  # sums depend on how arrays lie in memory


@pytest.mark.parametrize("order", list(permutations(NAMES)))
def test_for_every_order_of_classes_in_the_model(flowers, order):
    model, X, _ = flowers
    wanted = rank(model, CostMatrix(COSTS.to_numpy()), X[1::4], n=5, batch=False)
    for rows, columns in product(permutations(NAMES), (NAMES, NAMES[::-1])):
        costs = COSTS.loc[list(rows), list(columns)]
        found = rank(model, CostMatrix(costs), X[1::4], n=5, batch=False, classes=order)
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9)


def test_decisions_that_are_no_classes_keep_their_names(flowers):
    model, X, _ = flowers
    costs = pd.DataFrame({"treat": [1.0, 1.0, 1.0], "wait": [0.0, 0.5, 9.0]}, index=NAMES)
    found = rank(model, CostMatrix(costs.iloc[::-1]), X[1::4], n=5)
    wanted = rank(model, CostMatrix(costs.to_numpy()), X[1::4], n=5)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-12)
    contexts = [context for reason in found.reasons for context in reason.contexts]
    assert {context.prediction for context in contexts} <= {"treat", "wait"}
    assert {context.answer for context in contexts} <= {"decision 'treat'", "decision 'wait'"}


@pytest.mark.parametrize("loss", [CostMatrix(COSTS), CostMatrix(COSTS.to_numpy())])
def test_reasons_say_the_class(flowers, loss):
    model, X, _ = flowers
    found = rank(model, loss, X[1::4], n=5)
    answers = {context.answer for reason in found.reasons for context in reason.contexts}
    assert answers
    assert answers <= {f"class {name!r}" for name in NAMES}


def test_actions_that_are_not_to_name_the_class_stay_numbers(flowers):
    model, X, _ = flowers
    found = rank(model, CostMatrix([[5.0, 0.0, 1.0], [0.0, 5.0, 1.0], [4.0, 4.0, 1.0]]), X[1::4], n=3)
    answers = {context.answer for reason in found.reasons for context in reason.contexts}
    assert answers <= {"action 0", "action 1", "action 2"}


@pytest.mark.parametrize("kind", [LogLoss, BrierLoss, SphericalLoss, lambda weights: ScoringRule(Square(), weights)])
@pytest.mark.parametrize("order", [NAMES, NAMES[::-1]])
def test_class_weights_go_by_name(flowers, kind, order):
    model, X, _ = flowers
    weights = dict(zip(NAMES, (1.0, 2.0, 9.0), strict=True))
    wanted = rank(model, kind([1.0, 2.0, 9.0]), X[1::4], n=5, batch=False)
    found = rank(model, kind({name: weights[name] for name in order}), X[1::4], n=5, batch=False)
    assert found.scores == wanted.scores
    series = rank(model, kind(pd.Series(weights)[list(order)]), X[1::4], n=5, batch=False)
    assert series.scores == wanted.scores


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("setosa", "versicolor", "Virginica"), "Did you mean 'virginica'"),
        (("setosa", "versicolor"), "it lacks 'virginica'"),
        ((*NAMES, "rosa"), "give classes="),
        ((0, 1, 2), "to_numpy"),
    ],
)
def test_names_that_are_not_the_classes_are_refused(flowers, names, message):
    model, X, _ = flowers
    for loss in (
        CostMatrix(pd.DataFrame(np.eye(len(names)), index=names, columns=names)),
        LogLoss(dict.fromkeys(names, 1.0)),
    ):
        with pytest.raises(StakesError, match="must name the classes") as refused:
            rank(model, loss, X[1::4])
        assert message in str(refused.value)


def test_a_class_that_no_label_has_had_is_named_by_classes(flowers):
    model, X, _ = flowers
    names = ["rosa", *NAMES]
    found = rank(
        model, LogLoss(dict(zip(names, (9.0, 1.0, 1.0, 1.0), strict=True))), X[1::4], n=2, classes=[*NAMES, "rosa"]
    )
    wanted = rank(model, LogLoss([1.0, 1.0, 1.0, 9.0]), X[1::4], n=2, classes=[*NAMES, "rosa"])
    assert found.scores == wanted.scores


def test_a_model_without_names_is_given_them(flowers):
    _, X, _ = flowers

    class Own:
        def belief(self, pool, contexts):
            raise AssertionError("not to be asked")

    with pytest.raises(StakesError, match="the model knows none: give classes="):
        rank(Own(), CostMatrix(COSTS), X)


def test_elsewhere_too(flowers):
    model, X, names = flowers
    shuffled, plain = CostMatrix(COSTS.iloc[::-1, ::-1]), CostMatrix(COSTS.to_numpy())
    assert outlook(model, shuffled, X[1::4], n=2).ranking.scores == outlook(model, plain, X[1::4], n=2).ranking.scores
    drawn = audit(model, shuffled, X[1::4], n=20)
    wanted = audit(model, plain, X[1::4], n=20)
    assert drawn.draw.rows == wanted.draw.rows
    labels = names[1::4][list(drawn.draw.rows)]
    assert str(drawn.estimate(labels)) == str(wanted.estimate(labels))
    short = {"n": 2, "runs": 2, "n_initial": 12}
    forest, other = RandomForestClassifier(10, random_state=0), {name: i + 1 for i, name in enumerate(NAMES[::-1])}
    found, same = (
        simulate(forest, loss, X, names, classes=NAMES, metrics={"other": metric}, **short)
        for loss, metric in ((shuffled, LogLoss(other)), (plain, LogLoss([3, 2, 1])))
    )
    for metric in ("loss", "other"):
        np.testing.assert_array_equal(found.curves("random", metric), same.curves("random", metric))
    with pytest.raises(StakesError, match="y must be among the classes"):
        simulate(
            forest,
            CostMatrix(COSTS.rename(index={"setosa": "Setosa"}, columns={"setosa": "Setosa"})),
            X,
            names,
            **short,
        )


def test_what_cannot_be_names_is_refused():
    with pytest.raises(StakesError, match="3 different names"):
        CostMatrix(np.eye(3), classes=["a", "b", "a"])
    with pytest.raises(StakesError, match="2 different names"):
        CostMatrix([[0.0, 1.0]], actions=["a"])
    with pytest.raises(StakesError, match="leave classes out"):
        CostMatrix(COSTS, classes=NAMES)
    with pytest.raises(StakesError, match="costs of 'a' lack the answers 'y'"):
        CostMatrix({"a": {"x": 1}, "b": {"y": 1}})
    with pytest.raises(StakesError, match="costs by name"):
        CostMatrix({"a": 1})
    with pytest.raises(TypeError, match="list of names"):
        CostMatrix(np.eye(2), classes="ab")


def test_a_loss_of_ones_own_with_names_needs_their_order():
    class Own:
        classes = ("b", "a")
        domain = LogLoss([1.0, 1.0]).domain

    loss = Own()
    assert align_classes(loss, ["b", "a"]) is loss
    with pytest.raises(StakesError, match="in the order of the loss"):
        align_classes(loss, ["a", "b"])


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (["Good", "Bad"], "a column 'Good', and the classes are 'good', 'bad'. Did you mean 'good'"),
        (["good", "bda"], "a column 'bda', and the classes are 'good', 'bad'. Did you mean 'bad'"),
    ],
)
def test_an_action_that_is_nearly_a_class_is_refused(actions, message):
    with pytest.raises(StakesError, match=re.escape(message)):
        CostMatrix([[0, 1], [5, 0]], classes=["good", "bad"], actions=actions)


def test_actions_that_are_no_classes():
    assert CostMatrix([[0, 1], [5, 0]], classes=["ill", "well"], actions=["treat", "wait"]).actions == ("treat", "wait")
    both = CostMatrix([[0, 1, 2], [5, 0, 2]], classes=["good", "bad"], actions=["good", "bad", "refer"])
    assert both.actions == ("good", "bad", "refer")
