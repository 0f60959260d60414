"""Losses in words: every name builds, JSON gives it back, and wrong words are met with the right ones."""

import dataclasses
import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import stakes
from stakes.exceptions import StakesError
from stakes.losses.domains import Classes, Interval
from stakes.tabular import LOSSES, LossSpec, build_loss, decisions_of

NEEDED = {"pinball": {"tau": 0.9}, "box-cox": {"lam": 0.5}, "threshold-decision": {"threshold": 1.0}}
CLASSES = ["bus", "red van", "ü"]
COSTS = {truth: {name: float(name != truth) for name in reversed(CLASSES)} for truth in CLASSES}


def example(name, **more):
    costs = COSTS if LOSSES[name].takes == "cost matrix" else None
    return LossSpec(name, NEEDED.get(name, {}), cost_matrix=costs, **more)


@pytest.mark.parametrize("name", LOSSES)
def test_every_name_builds_a_loss_for_its_target(name):
    loss, entry = build_loss(example(name), CLASSES), LOSSES[name]
    assert type(loss) is getattr(stakes, entry.kind)
    assert isinstance(loss.domain, Classes if entry.target == "classes" else Interval)
    if entry.target != "classes":
        assert (loss.domain.low == 0.0) == (entry.target == "positive target")
    assert build_loss(
        LossSpec(f"stakes.losses:{entry.kind}", example(name).options, None, None, example(name).cost_matrix), CLASSES
    ).__class__ is type(loss)


@pytest.mark.parametrize("name", LOSSES)
def test_the_catalogue_tells_the_truth_about_constructors(name):
    entry = LOSSES[name]
    fields = {each.name: each for each in dataclasses.fields(getattr(stakes, entry.kind)) if each.init}
    extra = {"weight": "weight", "class weights": "class_weights", "cost matrix": "costs"}.get(entry.takes)
    names = {"classes", "actions"}  # of a matrix: a spec goes by the names of classes anyway
    assert set(fields) - names == {option.name for option in entry.options} | ({extra} if extra else set())
    for option in entry.options:
        wanted = fields[option.name].default
        assert option.default == (None if wanted is dataclasses.MISSING else wanted)
    assert entry.purpose.endswith(".")


def test_what_is_built_is_what_was_specified():
    assert build_loss(LossSpec("linex", {"alpha": 0.5})) == stakes.Linex(0.5)
    assert build_loss(LossSpec("linex")) == stakes.Linex(1.0)
    weighted = build_loss(LossSpec("squared-error", weight="exp:-1"))
    assert weighted == stakes.SquaredError(stakes.ExponentialWeight(-1.0))
    points = build_loss(LossSpec("crps", weight=((2.0, 0.0), (1.0, 3.0))))
    assert points == stakes.CRPS(stakes.InterpolatedWeight((1.0, 2.0), (3.0, 0.0)))
    assert build_loss(LossSpec("threshold-decision", {"threshold": 2, "false-alarm": 3})).false_alarm == 3.0


def test_class_weights_go_by_name():
    loss = build_loss(LossSpec("log-loss", class_weights={"ü": 50, "bus": 0}), CLASSES)
    assert loss == stakes.LogLoss((0.0, 1.0, 50.0))
    with pytest.raises(StakesError, match=r"no class 'van'; there are bus, red van, ü. Did you mean 'red van'\?"):
        build_loss(LossSpec("log-loss", class_weights={"van": 2}), ["bus", "red van", "ü"])
    with pytest.raises(StakesError, match="must not all be 0"):
        build_loss(LossSpec("brier", class_weights={"bus": 0}), ["bus"])
    with pytest.raises(StakesError, match="give all classes"):
        build_loss(LossSpec("brier", class_weights={"bus": 2}))


def test_costs_go_by_name():
    loss = build_loss(example("cost-matrix"), CLASSES)
    np.testing.assert_array_equal(loss.costs, 1.0 - np.eye(3))
    spec = LossSpec("cost-matrix", cost_matrix={"b": {"wait": 0, "treat": 5}, "a": {"treat": -1, "wait": 9}})
    assert decisions_of(spec, ["a", "b"]) == ("wait", "treat")
    np.testing.assert_array_equal(build_loss(spec, ["a", "b"]).costs, [[9.0, -1.0], [0.0, 5.0]])
    with pytest.raises(StakesError, match="a row for every class; there is none for c"):
        build_loss(spec, ["a", "b", "c"])
    with pytest.raises(StakesError, match="no class 'b'"):
        build_loss(spec, ["a"])


@given(
    st.sampled_from(sorted(LOSSES)),
    st.none() | st.floats(-1e3, 1e3),
    st.dictionaries(st.text(max_size=4), st.floats(0, 1e6), min_size=1, max_size=3),
)
def test_json_gives_every_spec_back(name, rate, weights):
    takes = LOSSES[name].takes
    weight = None if rate is None or takes != "weight" else f"exp:{rate!r}"
    spec = example(name, weight=weight, class_weights=weights if takes == "class weights" else None)
    again = LossSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert again.to_dict() == spec.to_dict()


def test_points_come_back_as_points():
    spec = LossSpec("pinball", {"tau": 0.1}, weight=((0.0, 1.0), (2.0, 0.5)))
    again = LossSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again == spec
    assert build_loss(again) == build_loss(spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("linx",), r"no loss 'linx'; there are squared-error, .*module:Name.* Did you mean 'linex'\?"),
        ((5,), "a name must be text; got 5"),
        (("x:",), "an import path must be module:Name"),
        ((":Loss",), "an import path must be module:Name"),
        (("..x:y",), "an import path must be module:Name"),
        (("squared_error",), "Did you mean 'squared-error'"),
        (("linex", {"alfa": 1}), r"no option of linex 'alfa'; there are alpha. Did you mean 'alpha'\?"),
        (("crps", {"x": 1}), "no option of crps 'x'; there are none"),
        (("pinball",), "pinball needs tau, a number between 0 and 1; none was given. The level"),
        (("pinball", {"tau": "high"}), "pinball needs tau, a number between 0 and 1; got 'high'"),
        (("linex", {"alpha": float("nan")}), "finite numbers that JSON can keep"),
        (("linex", {}, "exp"), "a weight is exp:RATE"),
        (("linex", {}, "exp:nan"), "a weight is exp:RATE"),
        (("linex", {}, ((1.0, -2.0),)), "at least 0 and not all 0"),
        (("linex", {}, ((1.0, 0.0),)), "at least 0 and not all 0"),
        (("linex", {}, ((1.0, 1.0), (1.0, 2.0))), "each once"),
        (("linex", {}, ((1.0,),)), "a weight is exp:RATE"),
        (("linex", {}, None, {"bus": 2}), "linex takes no class weights; those that do are log-loss, brier"),
        (("zero-one", {}, "exp:1"), "zero-one takes no weight"),
        (("log-loss", {}, None, {"bus": -1}), "that of 'bus' is -1"),
        (("log-loss", {}, None, {"bus": float("nan")}), "the weight of class 'bus' must be a finite number"),
        (("log-loss", {}, None, {}), "must be numbers by class"),
        (("cost-matrix",), "needs a cost matrix"),
        (("cost-matrix", {}, None, None, {"a": {"x": 1}, "b": {}}), r"each decision, \['x'\], for class 'b'"),
        (("cost-matrix", {}, None, None, {"a": {"x": True}}), "the cost of 'x' when the class is 'a'"),
        (("cost-matrix", {}, None, None, {"a": 1}), "a cost matrix must be"),
    ],
)
def test_wrong_options_are_refused(arguments, message):
    with pytest.raises(StakesError, match=message):
        LossSpec(*arguments)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (LossSpec("linex", {"alpha": 0}), "linex: alpha must not be 0"),
        (LossSpec("pinball", {"tau": 2}), "pinball: tau must be a number between 0 and 1"),
        (LossSpec("no.such:Loss"), "'no.such' cannot"),
        (LossSpec("stakes.losses:Linx"), r"stakes.losses has no 'Linx'. Did you mean 'Linex'\?"),
        (LossSpec("stakes.losses:Linex", {"alfa": 1}), "Did you mean 'alpha'"),
        (LossSpec("subprocess:Popen", {"args": "true"}), "Popen is no loss: a class with statistics, regret"),
        (LossSpec("stakes.losses:WeightedBregman"), "is no loss"),
    ],
)
def test_what_cannot_be_built(spec, message):
    with pytest.raises(StakesError, match=message):
        build_loss(spec)


def test_what_was_kept_must_be_a_loss():
    with pytest.raises(StakesError, match=r"no field of a loss 'wieght'.*Did you mean 'weight'"):
        LossSpec.from_dict({"name": "linex", "wieght": None})
    with pytest.raises(StakesError, match="must be kept as"):
        LossSpec.from_dict(["linex"])


def test_options_are_a_copy():
    options = {"alpha": 2.0}
    spec = LossSpec("linex", options)
    options["alpha"] = 3.0
    assert build_loss(spec) == stakes.Linex(2.0)
