"""What notebooks show can be read on white and on black, and says what it is given."""

import math
import re
from xml.etree import ElementTree

import pytest

from stakes._utils.notebook import COLOURS, Curve, advice_box, bar, cell, curves, parts_bar, table


def luminance(colour):
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in values]
    return sum(share * each for share, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_are_seen_on_white_and_on_black(colour):
    bright = luminance(colour)
    assert 1.05 / (bright + 0.05) > 3
    assert (bright + 0.05) / 0.05 > 3


def test_nothing_else_has_a_colour_or_a_style_sheet():
    shown = cell(
        advice_box(["Go on: it pays."]),
        table(["a", "b"], [("1", "x")], numbers=[0]),
        bar(0.5),
        parts_bar([("labelled", 3), ("open", 5)]),
        curves([Curve("loss", [(0, 1.0, 0.5, 1.5), (1, 0.5, 0.4, 0.6)])], "labels", "Loss"),
    )
    assert "<style" not in shown
    assert "<script" not in shown
    assert set(re.findall(r"#[0-9a-f]{6}", shown)) <= set(COLOURS)
    assert not re.search(r"(?<![-\w])color:", shown)
    ElementTree.fromstring(shown)  # well-formed


def test_a_curve_is_drawn_where_its_numbers_are():
    drawn = curves([Curve("a<b", [(0, 0.0, 0.0, 0.0), (5, 5.0, 5.0, 5.0), (10, 10.0, 10.0, 10.0)])], "labels", "Loss")
    line = next(
        each for each in ElementTree.fromstring(str(drawn)).iter("polyline") if each.get("stroke") == COLOURS[0]
    )
    places = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert (x1, y1) == pytest.approx(((x0 + x2) / 2, (y0 + y2) / 2))
    assert x2 > x0
    assert y2 < y0  # up is up
    assert "a&lt;b" in drawn
    ticks = [each.text for each in ElementTree.fromstring(str(drawn)).iter("text")]
    assert ticks[:2] == ["0", "2.5"]


@pytest.mark.parametrize(
    "points",
    [
        [(0, 1.0, -math.inf, math.inf), (1, 1.0, -math.inf, math.inf)],
        [(0, 1.0, 1.0, 1.0), (1, math.nan, 0.0, 0.0), (2, 1e-9, 0.0, 1.0)],
        [(3, 0.0, 0.0, 0.0), (3, 0.0, 0.0, 0.0)],
        [(0, -1e12, -1e12, -1e12), (1, 1e12, 1e12, 1e12)],
    ],
)
def test_numbers_that_are_hard_to_draw(points):
    drawn = str(curves([Curve("", points)], "labels", "Loss"))
    ElementTree.fromstring(drawn)
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_nothing_to_draw():
    assert curves([Curve("a", [(0, 1.0, 1.0, 1.0)]), Curve("b", [])], "labels", "Loss") == ""
    assert bar(math.nan) == ""
    assert advice_box([]) == ""
    assert "open" not in parts_bar([("labelled", 3), ("open", 0)])


def test_long_curves_are_thinned():
    points = [(at, float(at), at - 1.0, at + 1.0) for at in range(5000)]
    assert len(curves([Curve("", points)], "labels", "Loss")) < 20_000
