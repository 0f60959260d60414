"""Numbers as people read them."""

import math
import time

import pytest

from stakes._utils.text import counted, did_you_mean, listed, number, plus_minus, short, utc_time


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.012346, "0.01235"),
        (12.3456, "12.35"),
        (999.96, "1000"),
        (1234.5, "1,234"),
        (-46979.3, "-46,979"),
        (1.5e9, "1.5e+09"),
        (3e-7, "3e-07"),
        (math.inf, "inf"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


def test_fewer_digits():
    assert number(1234.5, 3) == "1,234"
    assert number(0.98765, 2) == "0.99"


def test_errors_are_two_standard_errors_of_which_two_digits_matter():
    assert plus_minus(62.764, 3.77) == "62.76 (± 7.5)"
    assert plus_minus(20493.2, 561.0) == "20,493 (± 1,100)"
    assert plus_minus(1.0, math.inf) == "1 (± inf)"


def test_what_was_given_is_shown_as_given():
    assert short(1234.5678) == "1,234.5678"
    assert short(0.5) == "0.5"


def test_counts_and_times():
    assert [counted(each, "label") for each in (0, 1, 1200)] == ["0 labels", "1 label", "1,200 labels"]
    assert utc_time(0.0) == "1970-01-01 00:00 UTC"


def test_the_nearest_known_word_is_named():
    assert did_you_mean("Squared-eror", ["squared-error", "log-loss"]) == " Did you mean 'squared-error'?"
    assert did_you_mean("pinball", ["squared-error"]) == ""


def test_long_lists_are_cut():
    assert listed("abc") == "a, b, c"
    assert listed("abcdef", most=2) == "a, b and 4 more"


def test_a_near_word_is_found_at_once_among_very_many():
    many = [f"a name that is long enough {i:06d}" for i in range(300_000)]
    begin = time.process_time()
    assert did_you_mean("pric", [*many, "price"]) == " Did you mean 'price'?"
    assert did_you_mean("a name that is long enough 9", many)
    assert did_you_mean("x" * 10**6, many) == ""
    assert time.process_time() - begin < 5.0
