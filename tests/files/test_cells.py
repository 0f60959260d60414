"""Numbers, dates and yes or no: every way in which cells can be read, and never a wrong one."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes.exceptions import StakesError
from stakes.files.cells import Formats, checked_formats, joint_numbers, plain_number, ways_of
from stakes.files.read import Source

NUMBERS = {
    "1.234,5": 1234.5,
    "1,234.5": 1234.5,
    "1 234,5": 1234.5,
    "1\u202f234.5": 1234.5,
    "1\u00a0234": 1234.0,
    "1'234.5": 1234.5,
    "1\u2019234": 1234.0,
    "1.234.567": 1234567.0,
    "1,234,567": 1234567.0,
    "12,34,567.5": 1234567.5,
    "0,123": 0.123,
    "-0,5": -0.5,
    "\u22123.5": -3.5,
    "+7": 7.0,
    "12 %": 0.12,
    "12,3%": 0.123,
    "€ 5": 5.0,
    "5 €": 5.0,
    "-$1,234.50": -1234.5,
    "$-3": -3.0,
    "CHF 1'000.00": 1000.0,
    "(1,234.00)": -1234.0,
    "1,5e3": 1500.0,
    "3,14": 3.14,
    ",5": 0.5,
}


@pytest.mark.parametrize("cell", NUMBERS)
def test_a_number_that_can_be_read_in_one_way(cell):
    ways = ways_of([cell])
    assert ways.kind == "number"
    ((way, values),) = ways.values.items()
    assert (float(values[cell]), way in ".,") == (NUMBERS[cell], True)


@pytest.mark.parametrize("cell", ["1.234", "1,234", "12.345", "-999,000"])
def test_a_number_that_can_be_read_in_two_ways(cell):
    assert set(ways_of([cell]).values) == {".", ","}


@pytest.mark.parametrize(
    "cells",
    [
        ["1,5", "2.0"],  # decimal commas and points
        ["5 %", "5"],  # is the second a fraction?
        ["$5", "€5"],
        ["1.23.456"],
        ["1,2345,678"],
        ["1'234 567"],
        ["0.123.456"],
        ["12a"],
        ["A11"],
        ["1_000"],
        ["5-"],
        ["(5"],
        ["--5"],
        ["€5€"],
        ["1 2"],
        ["030 123 456"],
        [""],
    ],
)
def test_what_is_no_number(cells):
    ways = ways_of(cells)
    assert ways is None or ways.kind != "number"


DATES = {
    "2024-05-06": "2024-05-06",
    "2024/5/6": "2024-05-06",
    "6.5.2024": "2024-05-06",
    "06.05.24": "2024-05-06",
    "31.12.99": "1999-12-31",
    "31/12/2024": "2024-12-31",
    "12/31/2024": "2024-12-31",
    "6 May 2024": "2024-05-06",
    "6. Mai 2024": "2024-05-06",
    "6-mai-2024": "2024-05-06",
    "6 août 2024": "2024-08-06",
    "6 de agosto de 2024": "2024-08-06",
    "6 dic 2024": "2024-12-06",
    "May 6, 2024": "2024-05-06",
    "2024年5月6日": "2024-05-06",
    "2024-05-06T07:08": "2024-05-06 07:08:00",
    "2024-05-06 07:08:09.5+02:00": "2024-05-06 05:08:09.500000",
    "6.5.2024 17:30": "2024-05-06 17:30:00",
    "12/31/2024 5:30 PM": "2024-12-31 17:30:00",
}


@pytest.mark.parametrize("cell", DATES)
def test_a_date_that_can_be_read_in_one_way(cell):
    ways = ways_of([cell])
    ((_, values),) = ways.values.items()
    assert values[cell].isoformat(" ").removesuffix(" 00:00:00") == DATES[cell]
    assert ways.kind == ("datetime" if ":" in DATES[cell] else "date")


@pytest.mark.parametrize(
    ("cells", "orders"),
    [
        (["05/06/2024"], {"dmy", "mdy"}),
        (["05/06/2024", "13/06/2024"], {"dmy"}),
        (["05-06-24"], {"dmy", "mdy", "ymd"}),
        (["24-01-31"], {"dmy", "ymd"}),
        (["31.02.2024"], set()),
        (["2024-13-01"], set()),
        (["1.2.3"], set()),
        (["10 juil 2024", "1 jui 2024"], set()),  # juin or juillet?
    ],
)
def test_orders_of_dates(cells, orders):
    ways = ways_of(cells)
    assert (set() if ways is None else set(ways.values)) == orders


@pytest.mark.parametrize(
    ("cell", "hours"), [("14:30", 14.5), ("2:30 pm", 14.5), ("12:15 AM", 0.25), ("26:00:36", 26.01)]
)
def test_times(cell, hours):
    assert ways_of([cell]).values[""][cell] == pytest.approx(hours)


@pytest.mark.parametrize(
    "pair", [("yes", "No"), ("JA", "nein"), ("oui", "non"), ("Sí", "no"), ("sì", "no"), ("是", "否")]
)
def test_yes_and_no(pair):
    assert ways_of(pair).values[""] == {pair[0]: 1.0, pair[1]: 0.0}
    assert ways_of([*pair, "perhaps"]) is None
    assert ways_of(pair[:1]) is None


def column(cells, delimiter=";", formats=None, **others):
    named = {"x": tuple(cells), **{name: tuple(values) for name, values in others.items()}}
    lines = tuple(range(2, 2 + len(cells)))
    return Source(
        Path("t.csv"), tuple(named), tuple(named.values()), lines, formats=formats or Formats(), delimiter=delimiter
    )


def test_other_columns_tell():
    cells = ["1.234", "2.345"]
    assert column(cells, other=["1,5", "2,5"]).numbers("x") == ["1234", "2345"]
    assert column(cells, other=["1.5", "2.5"]).numbers("x") == cells
    with pytest.raises(
        StakesError, match=r"'2.345' may be 2.345 \(decimal='.', --decimal .\) or 2345 \(decimal=',', --dec"
    ):
        column(cells).numbers("x")
    with pytest.raises(StakesError, match="nothing in the table tells"):
        column(cells, a=["1,5", "2,5"], b=["1.5", "2.5"]).numbers("x")
    assert column(cells, formats=Formats(decimal=",")).numbers("x") == ["1234", "2345"]
    assert column(cells, formats=Formats(thousands=",")).numbers("x") == cells


def test_the_delimiter_tells():
    assert column(["1,234", "2"], ",").numbers("x") == ["1234", "2"]
    for delimiter in ";\t":
        with pytest.raises(StakesError, match="nothing in the table tells"):
            column(["1,234", "2"], delimiter).numbers("x")
    (note,) = column(["1.234", "2"], ",").sentences(["x"])
    assert note == "Read 1.234 as 1.234 in column x, as nothing tells otherwise. If that is wrong, say so: --decimal."
    assert column(["950", "1.250"], ";").numbers("x") == ["950", "1250"]  # three decimals would be 950.000, or 1.25


def test_dates_are_read_as_others_show():
    cells = ["05/06/2024", "01/02/2024"]
    assert column(cells, other=["13/06/2024", "01/01/2024"]).reading("x").values[cells[0]].month == 6
    assert column(cells, other=["1,5", "2,5"]).reading("x").values[cells[0]].month == 6
    with pytest.raises(StakesError, match=r"--date dmy.*--date mdy"):
        column(cells).reading("x")
    assert column(cells, formats=Formats(date="mdy")).reading("x").values[cells[0]].month == 5


def test_the_notes_of_a_column():
    source = column(["1.234,5", "2,5"], b=["3,5", "4,5"], c=["ja", "nein"], d=["1.2.2024", "3.4.2024"], e=["NA", "5"])
    assert source.sentences(source.names) == (
        "Read 1.234,5 as 1234.5 in column x.",
        "Read 4,5 as 4.5 in column b.",
        "Read ja as 1 and nein as 0 in column c.",
        "Read 3.4.2024 as 2024-04-03 in column d; the model sees days since 1970, year, month, weekday.",
        "Cells 'NA' are taken for gaps in column e.",
    )
    frame = source.features()
    assert frame.names == ("x", "b", "c", "d (days)", "d (year)", "d (month)", "d (weekday)", "e")
    assert [values[0] for values in frame.arrays[:-1]] == [1234.5, 3.5, 1.0, 19754.0, 2024.0, 2.0, 4.0]
    assert np.isnan(frame.arrays[-1][0])


SIGNS = [(".", ","), (",", "."), (",", " "), (".", "'"), (".", ""), (",", "")]
DIALECTS = [
    *((";", *signs) for signs in SIGNS),
    *((",", ".", thousands) for thousands in (",", "'", " ", "")),
    *(("\t", ",", thousands) for thousands in (" ", "\u202f", "")),
]


@given(
    st.lists(st.decimals(-10_000_000, 10_000_000, places=3), min_size=1, max_size=12),
    st.integers(0, 3),
    st.sampled_from(DIALECTS),
    st.booleans(),
    st.sampled_from(["", " €", " %"]),
)
def test_a_number_is_never_read_wrong(values, digits, dialect, short, after):
    """Either the number that was written, or a refusal."""
    delimiter, decimal, thousands = dialect
    plain = [f"{value:.{digits}f}" for value in values]
    plain = [text.rstrip("0").rstrip(".") for text in plain] if short and digits else plain
    signs = str.maketrans({",": thousands, ".": decimal})
    written = [format(Decimal(text), ",").translate(signs) + after for text in plain]
    try:
        source = column(written, delimiter)
        if source.reading("x").kind != "number":
            return
        found = [float(text) for text in source.numbers("x")]
    except StakesError:
        return
    assert found == [float(f"{text}e-2") if after == " %" else float(text) for text in plain]


def test_a_label_by_itself():
    assert plain_number("1,5", Formats()) == "1.5"
    assert plain_number("1.234", Formats()) == "1.234"
    assert plain_number("1,234", Formats(decimal=",")) == "1.234"
    assert plain_number("1,234", Formats(decimal=".")) == "1234"
    assert plain_number("12,5 %", Formats()) == "0.125"
    assert plain_number("many", Formats()) is None
    with pytest.raises(StakesError, match=r"'1,234' may be 1234 or 1.234: write 1234 or 1.234"):
        plain_number("1,234", Formats())
    with pytest.raises(StakesError, match=r"'1.234' may be 1.234 or 1234: write 1,234 or 1234"):
        plain_number("1.234", Formats(decimal=","))


def test_costs_are_written_in_one_way():
    assert joint_numbers("costs", {"0", "1.000,5"}, ";") == {"0": "0", "1.000,5": "1000.5"}
    assert joint_numbers("costs", {"0", "NA"}, ";") == {}
    assert joint_numbers("costs", {"0", "x"}, ";") == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("x", None, None), "decimal must be '.' or ','; got 'x'"),
        (("", None, None), "decimal must be"),
        ((None, "x", None), "thousands must be"),
        ((None, None, "ydm"), "date must be dmy, mdy or ymd; got 'ydm'"),
        ((",", ",", None), "cannot stand both before decimals and between thousands"),
    ],
)
def test_options_are_checked(given, message):
    with pytest.raises(StakesError, match=message):
        checked_formats(*given)
