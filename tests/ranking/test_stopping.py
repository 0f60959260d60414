"""When to stop: by hand, and at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import ThresholdDecision, outlook
from stakes.ranking.stopping import Amount, Offer, advised


def purchase(count=100, budget=None):
    return {"costs": np.ones(count), "budget": budget}


def offers(worths, errors=None, decisions=1.0):
    errors = errors or [0.0] * len(worths)
    return tuple(Offer(b, w, e, float(b), decisions) for b, (w, e) in enumerate(zip(worths, errors, strict=True), 1))


@pytest.mark.parametrize(
    ("worths", "errors", "most", "bought", "verdict", "message"),
    [
        ([0.0, 0.0, 5.0], None, 9.0, purchase(), "go on", "the next 3 labels save 5"),  # one or two are worth nothing
        ([0.5, 1.0], None, 2.9, purchase(), "stop", "can save 2.9 at most, and 3 labels cost 3"),
        ([0.5, 1.0], None, 9.0, purchase(budget=2.5), "stop", "allows no more"),
        ([0.5, 1.0], None, 9.0, purchase(count=2), "stop", "allows no more"),
        ([0.5, 1.0], None, 9.0, purchase(), "stop", "saves what it costs; the next label saves 0.5"),  # nor do more
        ([1.5, 1.5], [0.5, 0.5], 9.0, purchase(), "go on", "saves 1.5 (± 1) over 1 decisions and costs 1"),
        ([0.5, 0.6], [0.5, 0.5], 9.0, purchase(), "stop", "the next label saves 0.5 (± 1)"),
        ([1.05, 1.1], [0.5, 0.5], 9.0, purchase(), "too close to call", "the next label saves 1.05"),
        ([1.05, 1.1], None, 9.0, purchase(), "too close to call", "the next label saves 1.05"),
        ([0.9, 1.0], [0.5, 0.5], 1.1, purchase(), "too close to call", "saves 0.9"),
        ([], None, 9.0, purchase(), "stop", "covers no label"),
    ],
)
def test_the_advice_is_what_is_expected_to_lose_less(worths, errors, most, bought, verdict, message):
    found, sentences = advised(offers(worths, errors), Amount(most, 0.0), decisions=1.0, **bought)
    assert found == verdict
    assert message in sentences[0]


def test_it_looks_further_where_worth_grows_faster_than_the_number_of_labels():
    """Up to 4 labels none pays, but twice as many are worth four times as much: 32 are worth all there is."""
    worths = [0.1 * size**2 for size in range(1, 5)]
    found, (sentence, *_) = advised(offers(worths), Amount(99.0, 0.0), decisions=1.0, **purchase())
    assert found == "go on"
    assert "the next 32 labels save 99" in sentence
    assert "if worth grows as it does up to 4" in sentence
    for limits in (purchase(count=7), purchase(budget=7.0)):
        assert advised(offers(worths), Amount(99.0, 0.0), decisions=1.0, **limits)[0] == "stop"
    assert advised(offers(worths), Amount(4.0, 0.0), decisions=1.0, **purchase())[0] == "stop"  # no more can be saved


def test_many_weak_labels_pay_where_a_few_do_not():
    """A decision two standard deviations from its threshold, and labels of which each tells little."""
    rows = np.random.default_rng(0).uniform(0.0, 0.3, (80, 1))
    model = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(10.0), optimizer=None).fit(rows[:1], [0.0])
    given = {"costs": 5.0, "decisions": 100_000.0, "target": "latent"}
    few = outlook(model, ThresholdDecision(2.0, 1.0, 1.0), rows[1:], n=8, **given)
    many = outlook(model, ThresholdDecision(2.0, 1.0, 1.0), rows[1:], n=64, **given)
    assert all(offer.net < 0 for offer in few.offers)
    assert many.offers[31].net > 0
    assert "stop" not in (few.advice, many.advice)  # one label says little of how wrong the model is
    assert "if worth grows as it does up to 8" in few.sentences[0]
    assert "if worth grows" not in many.sentences[0]


def test_labels_that_save_nothing_are_not_worth_nearly_what_they_cost():
    """However little the model may know of that: a batch that is said to save nothing is no close call."""
    nothing = tuple(Offer(size, 0.0, 1.0, 0.1 * size, 10.0) for size in (1, 2))
    assert advised(nothing, Amount(0.0, 0.0), np.full(20, 0.1), None, 10.0)[0] == "stop"
    half = tuple(Offer(size, 0.005 * size, 1.0, 0.1 * size, 10.0) for size in (1, 2))  # a quarter of it is the margin
    assert advised(half, Amount(0.5, 0.0), np.full(20, 0.1), None, 10.0)[0] == "stop"
    nearly = tuple(Offer(size, 0.0085 * size, 1.0, 0.1 * size, 10.0) for size in (1, 2))
    assert advised(nearly, Amount(0.5, 0.0), np.full(20, 0.1), None, 10.0)[0] == "too close to call"


def test_what_is_at_risk_is_reported_where_the_advice_may_be_wrong():
    unsure = advised(offers([1.5], [0.5]), Amount(9.0, 0.0), decisions=1.0, **purchase())[1]
    assert unsure[1:] == ("At risk, weighed by how likely it is: 0.02 if you buy, 0.52 if you stop.",)
    sure = advised(offers([9.0], [0.5]), Amount(9.0, 0.0), decisions=1.0, **purchase())[1]
    assert len(sure) == 1


@pytest.mark.parametrize("net", [-0.9, -0.3, 0.0, 0.4, 3.0])
def test_regrets_are_means_over_what_is_not_known(net):
    offer = Offer(1, (net + 1.0) / 10.0, 0.07, 1.0, 10.0)
    spread = np.sqrt(np.log1p((0.7 / (net + 1.0)) ** 2))  # of the logarithm of a saving of net + 1 ± 0.7
    saved = (net + 1.0) * np.exp(np.random.default_rng(0).normal(-(spread**2) / 2.0, spread, 1_000_000))
    assert offer.regret_of_stopping == pytest.approx(np.maximum(saved - 1.0, 0.0).mean(), rel=0.02, abs=0.005)
    assert offer.regret_of_buying == pytest.approx(np.maximum(1.0 - saved, 0.0).mean(), rel=0.02, abs=0.005)
    assert offer.regret_of_buying <= 1.0  # the cost
    assert offer.regret_of_stopping - offer.regret_of_buying == pytest.approx(net)
    certain = Offer(1, (net + 1.0) / 10.0, 0.0, 1.0, 10.0)
    assert (certain.regret_of_stopping, certain.regret_of_buying) == pytest.approx((max(net, 0), max(-net, 0)))
    assert Offer(1, 0.5, 0.1, None, 10.0).regret_of_buying is None
    in_vain = Offer(1, 0.0, 0.1, 1.0, 10.0)
    assert (in_vain.regret_of_stopping, in_vain.regret_of_buying) == (0.0, 1.0)


def test_advice_does_not_flicker():
    """After a stop, net savings that go to and fro within two margins leave the advice as it is."""
    most, history = Amount(9.0, 0.0), []
    nets = [0.5, 0.05, 0.01, -0.05, 0.05, 0.15, -0.05, 0.15, 0.5, 0.05, -0.5, 0.05]
    as_before = []
    for net in nets:
        verdict, sentences = advised(offers([1.0 + net]), most, decisions=1.0, history=history, **purchase())
        history.append(verdict)
        as_before.append("as before" in sentences[0])
    assert history == ["go on"] * 3 + ["stop"] * 5 + ["go on"] * 2 + ["stop"] * 2
    assert as_before == [False] * 4 + [True] * 4 + [False] * 3 + [True]
    assert advised(offers([1.05]), most, decisions=1.0, **purchase())[0] == "too close to call"
    undecided = advised(offers([1.05]), most, decisions=1.0, history=["too close to call"], **purchase())
    assert undecided[0] == "too close to call"


@given(
    st.lists(st.floats(0, 3), min_size=1, max_size=6),
    st.floats(0, 20),
    st.floats(0, 2),
    st.floats(0.1, 10),
    st.none() | st.floats(0.5, 20),
    st.lists(st.sampled_from(["go on", "stop", "too close to call"]), max_size=3),
)
def test_it_never_stops_where_a_batch_clearly_pays_nor_goes_on_where_none_might(
    gains, extra, error, decisions, budget, history
):
    worths = np.cumsum(gains).tolist()
    made = offers(worths, [error] * len(worths), decisions)
    verdict, sentences = advised(
        made, Amount(worths[-1] + extra, 0.0), decisions=decisions, history=history, **purchase(budget=budget)
    )
    assert sentences[0].lower().startswith(verdict)
    margins = [max(0.25 * decisions * error, 0.1 * offer.cost) for offer in made]
    if any(offer.net > 2.0 * margin for offer, margin in zip(made, margins, strict=True)):
        assert verdict == "go on"
    if decisions * (worths[-1] + extra) < 0.5 and all(
        offer.net < -margin for offer, margin in zip(made, margins, strict=True)
    ):
        assert verdict == "stop"
    assert all(math.isfinite(float(offer.net)) for offer in made)
