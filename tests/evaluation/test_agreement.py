"""Agreement: by its definition, and published numbers."""

import itertools

import numpy as np
import pytest

from stakes.evaluation import agreement
from stakes.exceptions import StakesError

# Krippendorff's example of four observers and twelve units (Computing Krippendorff's Alpha-Reliability, 2011), in which
# he finds 0.743 for nominal and 0.849 for interval data; "." is a gap.
OBSERVERS = {"A": "123321412...", "B": "1233224125.3", "C": ".3332342251.", "D": "12332441251."}


def published():
    return [
        (unit, name, int(value)) for name, line in OBSERVERS.items() for unit, value in enumerate(line) if value != "."
    ]


def by_definition(opinions, difference):
    """1 - D_o / D_e, pair by pair."""
    units = {}
    for row, _, label in opinions:
        units.setdefault(row, []).append(label)
    units = {row: labels for row, labels in units.items() if len(labels) > 1}
    everything = [label for labels in units.values() for label in labels]
    n = len(everything)
    observed = sum(
        sum(difference(a, b) for a, b in itertools.permutations(labels, 2)) / (len(labels) - 1)
        for labels in units.values()
    )
    expected = sum(difference(a, b) for a, b in itertools.permutations(everything, 2)) / (n - 1)
    return 1.0 - observed / expected


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("interval", 0.849)])
def test_published_numbers_of_alpha(level, value):
    found = agreement(published(), level=level)
    assert found.value == pytest.approx(value, abs=5e-4)
    assert found.low < found.value < found.high <= 1.0
    assert found.rows == 11


@pytest.mark.parametrize("seed", range(3))
def test_alpha_is_what_its_definition_says(seed):
    rng = np.random.default_rng(seed)
    opinions = [(row, f"a{a}", int(rng.integers(4))) for row in range(15) for a in range(4) if rng.random() < 0.7]
    assert agreement(opinions, level="nominal").value == pytest.approx(by_definition(opinions, lambda a, b: a != b))
    assert agreement(opinions, level="interval").value == pytest.approx(
        by_definition(opinions, lambda a, b: (a - b) ** 2)
    )


def test_kappa_of_a_two_by_two_table():
    """20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: 70% agree, 50% by chance."""
    cells = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    opinions = [(row, name, label) for row, pair in enumerate(cells) for name, label in zip("ab", pair, strict=True)]
    found = agreement(opinions, "kappa")
    assert found.value == pytest.approx(0.4)
    assert 0.1 < found.low < 0.25
    assert 0.55 < found.high < 0.7
    assert str(found).startswith("Cohen's kappa 0.40 (")


def test_intervals_hold():
    """The value of many rows lies in the intervals of few, about as often as it should."""
    rng = np.random.default_rng(0)

    def drawn(rows):
        truth = rng.integers(2, size=rows)
        return [(row, name, int(y ^ (rng.random() < 0.15))) for row, y in enumerate(truth) for name in "ab"]

    target = agreement(drawn(20000), draws=1).value
    held = [(found := agreement(drawn(80), draws=200)).low <= target <= found.high for _ in range(100)]
    assert np.mean(held) > 0.87


def test_where_all_say_the_same_there_is_nothing_to_agree_on():
    opinions = [(row, name, "x") for row in range(5) for name in "ab"]
    assert np.isnan(agreement(opinions).value)
    assert np.isnan(agreement(opinions, "kappa").value)


def test_numbers_are_of_interval_level():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=50)
    opinions = [(row, name, float(truth[row] + 0.1 * rng.normal())) for row in range(50) for name in "abc"]
    assert agreement(opinions).value > 0.95


def test_refusals():
    with pytest.raises(StakesError, match="no row has"):
        agreement([(0, "a", "x"), (1, "b", "x")])
    with pytest.raises(StakesError, match="for two annotators and classes; there are 3"):
        agreement([(0, name, "x") for name in "abc"], "kappa")
    with pytest.raises(StakesError, match="kind must be"):
        agreement([(0, "a", "x")], "pi")
    with pytest.raises(StakesError, match="level must be"):
        agreement([(0, "a", "x")], level="ordinal")
