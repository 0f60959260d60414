"""Elicitation: simulated users who slip now and then, plain numbers in the questions, and what the loss is."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from stakes import CostMatrix, Pinball, SquaredError, ThresholdDecision, elicit
from stakes.exceptions import StakesError
from stakes.losses import Elicited, ElicitedLoss
from stakes.losses.elicitation import KINDS

ARGUMENTS = {"threshold": {"threshold": 3.0}, "weight": {"values": (100.0, 300.0)}}


def user(ratio, rng, slips=0.05):
    """Somebody to whom the first thing costs `ratio` times the second, and who slips in a share of answers."""

    def answer(question):
        meant = 1 if ratio > question.at else 2
        return 3 - meant if rng.random() < slips else meant

    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_users_are_understood_after_eight_questions(kind, rng):
    """The true ratio log-uniform from 1 to 100, 5% of answers flipped: median error at most 20%."""
    errors, held = [], 0
    for _ in range(1000):
        ratio = math.exp(rng.uniform(0.0, math.log(100.0)))
        found = elicit(user(ratio, rng), kind, questions=8, **ARGUMENTS.get(kind, {}))
        assert len(found.answers) == 8
        errors.append(abs(found.ratio.value / ratio - 1.0))
        held += found.ratio.low <= ratio <= found.ratio.high
    assert np.median(errors) <= 0.2
    page = " ".join((Path(__file__).parents[2] / "docs" / "command_line.md").read_text().split())
    (shown,) = re.findall(r"half are understood within (\d+)% after eight questions", page)
    assert 0.5 * int(shown) <= 100.0 * np.median(errors) <= int(shown)
    assert held >= 900  # of 90% intervals


@pytest.mark.parametrize("ratio", [1 / 60, 0.4, 1.0, 2.3, 90.0])
def test_it_does_not_matter_which_is_worse(ratio, rng):
    assert elicit(user(ratio, rng, 0.0), questions=10).ratio.value == pytest.approx(ratio, rel=0.12)


def test_one_slip_is_forgiven():
    """At whichever question it comes, more answers make up for it."""
    for slip in range(5):
        count = 0

        def answer(question, slip=slip):
            nonlocal count
            count += 1
            meant = 1 if question.at < 12.0 else 2
            return 3 - meant if count == slip + 1 else meant

        assert elicit(answer, questions=16).ratio.value == pytest.approx(12.0, rel=0.15)


def test_a_threshold_that_is_not_known_is_asked_for(rng):
    """Whether to act at values that are known, then what a miss costs beside a false alarm."""
    errors = []
    for _ in range(300):
        threshold, ratio = rng.uniform(20.0, 80.0), 8.0

        def answer(question, threshold=threshold, ratio=ratio):
            truth = threshold if "to act" in question.first else ratio
            meant = 1 if truth > question.at else 2
            return 3 - meant if rng.random() < 0.05 else meant

        found = elicit(answer, "threshold", between=(0.0, 100.0))
        assert len(found.answers) == 16
        errors.append(abs(found.threshold.value - threshold))
    assert np.median(errors) < 2.0


def test_weights_multiply_from_target_to_target():
    weight = {100.0: 1.0, 200.0: 3.0, 300.0: 12.0}

    def answer(question):
        high, low = (float(text.split()[-1]) for text in (question.first, question.second))
        return 1 if weight[high] / weight[low] > question.at else 2

    found = elicit(answer, "weight", values=(100, 200, 300), questions=9)
    assert [each.value for each in found.weights] == pytest.approx([1.0, 3.0, 12.0], rel=0.1)
    loss = found.loss()
    assert loss(300.0, 299.0) / loss(100.0, 99.0) == pytest.approx(12.0, rel=0.1)


def test_about_the_same_is_an_answer():
    def answer(question):
        return 0 if abs(math.log(8.0 / question.at)) < 0.1 else 1 if question.at < 8.0 else 2

    found = elicit(answer)
    assert 0 in found.answers
    assert found.ratio.value == pytest.approx(8.0, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_questions_are_plain_and_none_is_asked_twice(kind, rng):
    texts = []

    def answer(question):
        texts.append(question.text)
        return user(7.0, rng, 0.0)(question)

    elicit(answer, kind, questions=12, **ARGUMENTS.get(kind, {}))
    assert len(set(texts)) == 12
    assert all(text.startswith("Which is worse: (1) ") and text.endswith("?") for text in texts)


def test_what_is_asked():
    def first(kind, **arguments):
        texts = []
        elicit(lambda question: texts.append(question.text) or 1, kind, questions=2, **arguments)
        return texts

    assert first("costs") == [
        "Which is worse: (1) a miss, once, or (2) a false alarm, once?",
        "Which is worse: (1) a miss, once, or (2) a false alarm, 10 times?",
    ]
    assert (
        first("asymmetry", unit=5.0)[1] == "Which is worse: (1) an estimate 5 too low, or (2) an estimate 50 too high?"
    )
    assert (
        "an error of 10 where the truth is 300, once, or (2) an error of 10 where it is 100"
        in first("weight", values=(100, 300))[1]
    )
    assert first("threshold", between=(0.0, 100.0))[0] == (
        "You know that the value is 50. Which is wrong: (1) to act, or (2) to wait?"
    )


def test_losses_of_each_kind():
    ratio = Elicited(3.0, 2.0, 4.0)
    costs = ElicitedLoss("costs", ratio).loss()
    assert isinstance(costs, CostMatrix)
    assert (costs(1, 0), costs(0, 1)) == (3.0, 1.0)
    assert ElicitedLoss("asymmetry", ratio).loss() == Pinball(0.75)
    assert ElicitedLoss("asymmetry", ratio).loss("low") == Pinball(round(2 / 3, 6))
    act = ElicitedLoss("threshold", ratio, Elicited(12.0, 11.0, 13.0)).loss("high")
    assert act == ThresholdDecision(12.0, miss=4.0)
    weighted = ElicitedLoss("weight", ratio, None, (Elicited(1, 1, 1), ratio), (0.0, 10.0)).loss()
    assert isinstance(weighted, SquaredError)
    assert str(ratio) == "3 (2 to 4)"


@pytest.mark.parametrize(
    ("kind", "arguments", "match"),
    [
        ("price", {}, "kind must be one of"),
        ("costs", {"questions": 0}, "questions must be"),
        ("costs", {"questions": True}, "questions must be"),
        ("asymmetry", {"unit": -1.0}, "unit must be"),
        ("weight", {}, "two or more targets"),
        ("weight", {"values": (3.0, 1.0)}, "two or more targets"),
        ("threshold", {}, "give the threshold, or two targets"),
        ("threshold", {"between": (5.0, 5.0)}, "give the threshold, or two targets"),
    ],
)
def test_refused(kind, arguments, match):
    with pytest.raises(StakesError, match=match):
        elicit(lambda question: 1, kind, **arguments)


@pytest.mark.parametrize("answer", [3, "first", None, True])
def test_refused_answers(answer):
    with pytest.raises(StakesError, match="an answer must be 1"):
        elicit(lambda question: answer)
