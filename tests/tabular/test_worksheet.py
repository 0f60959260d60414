"""Labels: numbers within the domain of a loss, classes by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge

from stakes import SquaredError
from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, ModelSpec
from stakes.tabular.worksheet import as_targets, checked_class, checked_real, classes_of, domain_of, loss_task

NAMES = st.text(min_size=1).filter(lambda text: text.strip() == text)
SQUARED, POISSON, ITAKURA = LossSpec("squared-error"), LossSpec("poisson-deviance"), LossSpec("itakura-saito")


@pytest.mark.parametrize(
    ("name", "task"),
    [("squared-error", "real"), ("log-loss", "classes"), ("stakes.losses:BrierLoss", "classes"), ("crps", "real")],
)
def test_a_loss_tells_what_labels_are(name, task):
    assert loss_task(LossSpec(name)) == task


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_is_a_label_as_it_was_written(value):
    assert checked_real(repr(value), SQUARED, domain_of(SQUARED)) == repr(value)


@given(value=st.floats(max_value=-1e-300, allow_nan=False, allow_infinity=False))
def test_a_negative_number_is_refused_where_targets_are_positive(value):
    for loss in (POISSON, ITAKURA):
        with pytest.raises(StakesError, match="is not among"):
            checked_real(repr(value), loss, domain_of(loss))


def test_zero_is_within_some_domains():
    assert checked_real("0", POISSON, domain_of(POISSON)) == "0"
    with pytest.raises(StakesError, match="is not among"):
        checked_real("0", ITAKURA, domain_of(ITAKURA))


@pytest.mark.parametrize("label", ["", "nan", "inf", "1_000", "1,5", "five"])
def test_what_is_no_number_is_refused(label):
    with pytest.raises(StakesError, match="is no number"):
        checked_real(label, SQUARED, None)


@given(names=st.lists(NAMES, min_size=1, unique=True), other=NAMES)
def test_a_class_is_one_of_those_known(names, other):
    assert [checked_class(name, names) for name in names] == names
    assert checked_class(other, ()) == other
    if other not in names:
        with pytest.raises(StakesError, match="is no class"):
            checked_class(other, names)


def test_no_class_is_called_nothing():
    for known in ((), ("a",)):
        with pytest.raises(StakesError, match="must not be empty"):
            checked_class("", known)
    for given_names in (["a", ""], ["a", "a"]):
        with pytest.raises(StakesError, match="named once"):
            classes_of(given_names, LossSpec("log-loss"), [])


@given(labels=st.lists(NAMES, min_size=1))
def test_classes_are_those_of_the_labels_in_order(labels):
    assert classes_of(None, LossSpec("log-loss"), labels) == tuple(sorted(set(labels)))


def test_a_weight_for_a_class_that_is_not_there_is_refused():
    with pytest.raises(StakesError, match=r"Did you mean 'bus'\? If no label has had it yet"):
        classes_of(None, LossSpec("log-loss", class_weights={"buss": 2.0}), ["bus", "van"])


def test_targets_are_numbers_or_names():
    assert as_targets(["1", "2.5"], "real").tolist() == [1.0, 2.5]
    assert as_targets(["NA", "1"], "classes").tolist() == ["NA", "1"]


def test_what_a_brief_would_import_is_found_however_deep():
    inner = {"model": "one.two:Three", "parameters": {"steps": [["a", {"model": "four:Five"}]]}}
    brief = Brief("y", LossSpec("mine:Loss"), ModelSpec("bootstrap", {"estimator": inner}))
    assert brief.imports() == ("mine:Loss", "one.two:Three", "four:Five")
    assert brief.imports(model=False) == ("mine:Loss",)
    assert Brief("y", LossSpec("squared-error")).imports() == ()
    assert Brief("y", LossSpec("squared-error"), ModelSpec("a.b:C")).imports() == ("a.b:C",)


def test_a_text_in_place_of_a_list_is_a_list_of_one():
    brief = Brief("y", LossSpec("squared-error"), ignore="ab", missing="NA", text="cd", classes="van")
    assert (brief.ignore, brief.missing, brief.text, brief.classes) == (("ab",), ("NA",), ("cd",), ("van",))
    assert Brief("y", "linex", "random-forest") == Brief("y", LossSpec("linex"), ModelSpec("random-forest"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": True}, "budget must be a positive number; got True"),
        ({"label_cost": np.True_}, "label_cost must be a positive number"),
        ({"decisions": True}, "decisions must be a positive number; got True"),
        ({"max_cells": True}, "max_cells must be a whole number"),
        ({"target": None}, "target must be a text, the name of a column or a sign; got None"),
        ({"id_column": 3}, "id_column must be a text"),
        ({"cost_column": ["x"]}, "cost_column must be a text"),
        ({"delimiter": 3}, "delimiter must be a text"),
        ({"ignore": 3}, "ignore must be a text or a list of texts; got 3"),
        ({"model": BayesianRidge}, "the model of a table is a name.*a ModelSpec, or an estimator.*; got"),
        ({"loss": SquaredError}, "the loss of a table is a name.*a LossSpec, or a loss.*; got"),
    ],
)
def test_what_a_brief_cannot_hold_is_refused_with_a_message(given, message):
    with pytest.raises(StakesError, match=message):
        Brief(**{"target": "y", "loss": LossSpec("squared-error"), **given})
