"""Arguments with one meaning everywhere: `random_state`, `budget` (one rule) and `progress` (a line, or a function)."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge

import stakes
from stakes import CRPS, GaussianBelief, LogLoss, SquaredError, cold_start, outlook, rank, simulate
from stakes._utils.arguments import (
    DRAWS,
    SUBSAMPLE,
    TIES,
    affordable,
    affords,
    as_generator,
    as_progress,
    as_seed,
    as_texts_of,
    check_budget,
    generator,
    implements,
    is_positive,
    is_true_or_false,
    left_to_spend,
    no_progress,
)
from stakes.beliefs.base import Belief, DistributionBelief, SimplifiedBelief
from stakes.exceptions import StakesError
from stakes.losses import DistributionLoss, Loss


def test_a_random_state_is_a_number_a_generator_or_none():
    assert [as_seed(each) for each in (None, 0, 7, np.int64(3))] == [0, 0, 7, 3]
    state = np.random.default_rng(1)
    assert as_seed(np.random.default_rng(1)) == as_seed(state)
    assert as_seed(state) != as_seed(np.random.default_rng(1))  # each call draws anew


@pytest.mark.parametrize("wrong", [-1, np.int64(-3)])
def test_a_negative_random_state_is_refused(wrong):
    with pytest.raises(StakesError, match="random_state must be 0 or more"):
        as_seed(wrong)


@pytest.mark.parametrize("wrong", [True, 1.0, "1", [1], np.random.RandomState(0)])
def test_what_is_no_random_state_is_a_type_error(wrong):
    for function in (as_seed, as_generator):
        with pytest.raises(TypeError, match=r"must be a whole number or a numpy\.random\.Generator"):
            function(wrong)


def test_a_generator_is_taken_as_it_is_and_numbers_give_the_same_draws():
    state = np.random.default_rng(2)
    assert as_generator(state) is state
    assert as_generator(5).random() == as_generator(5).random() == np.random.default_rng(5).random()
    assert as_generator(None).random() == as_generator(0).random()


def test_streams_of_one_seed_differ():
    draws = [generator(4, purpose).random() for purpose in (SUBSAMPLE, TIES, DRAWS)]
    assert len(set(draws)) == 3
    assert draws[0] == generator(4, SUBSAMPLE).random()


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), True, "5"])
def test_a_budget_is_a_positive_number(wrong):
    with pytest.raises(StakesError, match="budget must be positive"):
        check_budget(wrong)
    check_budget(None)
    check_budget(0.5)


def test_three_labels_at_a_tenth_fit_into_three_tenths():
    assert affordable([("a", 0.1), ("b", 0.1), ("c", 0.1), ("d", 0.1)], 0.3) == ["a", "b", "c"]
    assert affords(0.3, 0.1 + 0.1, 0.1)
    assert not affords(0.3, 0.3, 1e-6)


def test_an_expensive_row_does_not_end_the_list():
    assert affordable([(0, 1.0), (1, 9.0), (2, 1.0), (3, 1.0)], 3.0) == [0, 2, 3]
    assert affordable([(0, 1.0), (1, 9.0), (2, 1.0), (3, 1.0)], 3.0, n=2) == [0, 2]


def test_without_a_budget_all_is_affordable():
    assert affordable([(0, 1e300), (1, 1e300)], None) == [0, 1]
    assert left_to_spend(None, 1e9) == np.inf


@given(st.lists(st.floats(0.01, 5.0), max_size=12), st.floats(0.1, 20.0), st.none() | st.integers(0, 12))
def test_what_is_bought_is_within_the_budget_and_what_is_passed_over_is_not(costs, budget, n):
    bought = affordable(enumerate(costs), budget, n)
    spent = sum(costs[row] for row in bought)
    assert spent <= budget * (1.0 + 1e-8)
    assert bought == sorted(bought)
    if n is None or len(bought) < n:
        assert all(not affords(budget, spent, cost) for row, cost in enumerate(costs) if row not in bought)


class Stream:
    def __init__(self, terminal):
        self.text, self.isatty, self.flush = "", lambda: terminal, lambda: None

    def write(self, text):
        self.text += text


def shown(monkeypatch, terminal, times, shares):
    """What a stream gets of `shares` that are reported at `times`."""
    stream, clock = Stream(terminal), iter([0.0, *times])
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = as_progress(True)
    for share in shares:
        progress("simulate", share)
    return stream.text


@pytest.mark.parametrize("terminal", [True, False])
def test_quick_work_shows_nothing(monkeypatch, terminal):
    assert shown(monkeypatch, terminal, [0.1, 0.2, 0.3], [0.3, 0.6, 1.0]) == ""


def test_progress_is_one_line_on_a_terminal(monkeypatch):
    text = shown(monkeypatch, True, [0.5, 2.0, 2.1, 90.0, 120.0], [0.1, 0.2, 0.25, 0.75, 1.0])
    assert text.count("\r") == 3
    assert text.count("\n") == 1
    assert text.startswith("\rsimulate:  20% done, 0 min  8 s left\r")
    assert text.endswith("\rsimulate: done in 2 min  0 s        \n")  # the rest of the line before it is blotted out


def test_each_stage_has_its_own_clock_and_its_own_line(monkeypatch):
    stream, clock = Stream(True), iter([0.0, 10.0, 20.0, 22.0, 30.0])
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = as_progress(True)
    for what, share in [("scoring many rows", 0.5), ("choosing", None), ("choosing", 0.5), ("choosing", 1.0)]:
        progress(what, share)
    shown = stream.text.split("\r")[1:]
    assert shown[0] == "scoring many rows:  50% done, 0 min 10 s left"
    assert shown[1].rstrip() == "choosing, 0 s"
    assert len(shown[1]) == len(shown[0])
    assert shown[2].rstrip() == "choosing:  50% done, 0 min  2 s left"
    assert shown[3].rstrip(" ") == f"{'choosing: done in 0 min 10 s'.ljust(len(shown[2].rstrip()))}\n"


def test_progress_elsewhere_comes_now_and_then(monkeypatch):
    text = shown(monkeypatch, False, [0.5, 31.0, 40.0, 62.0, 63.0], [0.2, 0.4, 0.6, 0.8, 1.0])
    assert [line[10:14] for line in text.splitlines()] == [" 40%", " 80%", "done"]


def test_without_a_share_the_seconds_are_shown(monkeypatch):
    assert shown(monkeypatch, False, [31.0], [None]) == "simulate, 31 s\n"


def test_a_function_is_called_as_it_is_and_false_is_silent():
    seen = []
    as_progress(lambda what, share: seen.append((what, share)))("reading", 0.5)
    assert seen == [("reading", 0.5)]
    assert as_progress(False) is as_progress(None) is no_progress
    with pytest.raises(TypeError, match="progress must be True, False or a function"):
        as_progress("yes")


@pytest.mark.parametrize(
    ("given", "texts"), [("ab", ("ab",)), (["a", "b"], ("a", "b")), ((), ()), (iter("ab"), ("a", "b"))]
)
def test_one_text_is_a_list_of_one(given, texts):
    assert as_texts_of("names", given) == texts


@pytest.mark.parametrize("value", [True, False, np.True_, 0, -1.0, float("nan"), float("inf"), 10**400, "1", None])
def test_what_is_no_positive_number(value):
    assert not is_positive(value)
    assert is_true_or_false(value) == (type(value) in (bool, np.bool_))


def test_true_is_no_number_anywhere(rng):
    X = rng.normal(size=(12, 1))
    model, loss = BayesianRidge().fit(X[:5], X[:5, 0]), SquaredError()
    for refused in (
        lambda: rank(model, loss, X, n=True),
        lambda: rank(model, loss, X, costs=True),
        lambda: rank(model, loss, X, budget=True),
        lambda: rank(model, loss, X, random_state=True),
        lambda: outlook(model, loss, X, n=True),
        lambda: outlook(model, loss, X, decisions=True),
        lambda: cold_start(X, n=True),
        lambda: simulate(model, loss, X, X[:, 0], n=True),
        lambda: simulate(model, loss, X, X[:, 0], n=1, runs=True),
        lambda: simulate(model, loss, X, X[:, 0], n=1, n_initial=True),
    ):
        with pytest.raises((StakesError, TypeError), match=r"must be .*; got True"):
            refused()


PROTOCOLS = [Loss, DistributionLoss, Belief, DistributionBelief, SimplifiedBelief]


def members(protocol):
    names = {*vars(protocol), *getattr(protocol, "__annotations__", {})}
    return {name for name in names if name == "__call__" or not name.startswith("_")}


class Passing:
    """Has all that another object has."""

    def __init__(self, other):
        self.other = other

    def __getattr__(self, name):
        return getattr(self.other, name)


def some_values():
    belief = GaussianBelief([0.0], [1.0], [1.0], [[0.5]])
    losses = [SquaredError(), LogLoss(), CRPS(), stakes.ThresholdDecision(0.0), stakes.CostMatrix([[0.0, 1.0]])]
    filled = [SimpleNamespace(**dict.fromkeys(members(protocol), print)) for protocol in PROTOCOLS]
    lacking = type("Lacking", (), {**dict.fromkeys(members(Loss), print), "action": None})()
    return [
        belief,
        stakes.NormalEnsemble([[0.0, 1.0]], 0.5, [[0.0, 2.0]], 0.5),
        *losses,
        *filled,
        lacking,
        1,
        None,
        int,
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_value_implements_is_what_isinstance_says(protocol):
    for value in some_values() * 2:  # the second time from what is kept of types
        assert implements(value, protocol) is isinstance(value, protocol)


def test_instances_of_one_type_may_differ():
    class Free:
        pass

    empty, full = Free(), Free()
    vars(full).update(dict.fromkeys(members(Belief), print))
    assert not implements(empty, Belief)
    assert implements(full, Belief)
    assert not implements(empty, Belief)
    belief = GaussianBelief([0.0], [1.0], [1.0], [[0.5]])
    assert implements(Passing(belief), Belief)
    assert not implements(Passing(SquaredError()), Belief)


def test_one_who_says_that_he_implements_a_protocol_does():
    class Declared(Loss):
        """Nothing written."""

    assert implements(object.__new__(Declared), Loss)
