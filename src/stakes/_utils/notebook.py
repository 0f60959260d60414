"""Pieces of what a notebook shows of a result: tables, bars and curves, as HTML and SVG.

Jupyter, marimo and editors show it on their own background, light or dark, which nobody tells us. So text has the
colour that is there, faint things are that colour with some transparency, and the few colours of our own have a
contrast of 3 or more with both white and black. Styles stand in the elements: a style sheet would reach other cells,
and pages that show notebooks take it out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stakes._utils.markup import Content, Markup, tag, text
from stakes._utils.text import number

COLOURS = ("#2b8ac6", "#d1701f", "#1f9470", "#b5609a", "#8a8420", "#7d7d7d")
"""Of curves, in their order; then they begin anew."""
_DASHES = ("", "7 4", "2 3", "9 3 2 3")  # so that curves differ without colour
_MOODS = {"Go on": "#1f9470", "Stop": "#d1701f", "Done": "#d1701f"}  # how advice begins
_WIDE, _HIGH = 460, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 40
_TICKS = 4  # about so many
_MOST = 200  # points of a curve that are drawn


@dataclass(frozen=True)
class Curve:
    """A line in a picture, with a band about it.

    Attributes:
        name: What the legend says; empty for none.
        points: x, y, and the ends of the band, which may be infinite where there is none.
    """

    name: str
    points: Sequence[tuple[float, float, float, float]]


def cell(*parts: Content) -> str:
    """What a notebook shows."""
    return str(tag("div", parts, class_="stakes", style="max-width:60rem;line-height:1.45"))


def title(content: str) -> Markup:
    """What the pieces below are about."""
    return tag("p", tag("strong", content), style="margin:.6em 0 .3em")


def lines(sentences: Sequence[str]) -> list[Markup]:
    """A paragraph for each."""
    return [tag("p", sentence, style="margin:.2em 0") for sentence in sentences]


def advice_box(sentences: Sequence[str]) -> Content:
    """Whether to go on, with a bar beside it whose colour says the same; nothing where nothing is said."""
    if not sentences:
        return ""
    colour = next((each for start, each in _MOODS.items() if sentences[0].startswith(start)), "#8a8420")
    return tag("div", lines(sentences), style=f"border-left:4px solid {colour};padding:.1em .8em;margin:.6em 0")


def folded(summary: str, content: Content) -> Markup:
    """Something that is shown when it is asked for."""
    return tag("details", [tag("summary", summary, style="cursor:pointer"), content], style="margin:.4em 0")


def bullet_list(sentences: Sequence[str]) -> Markup:
    """A list."""
    return tag("ul", [tag("li", each) for each in sentences], style="margin:.3em 0;padding-left:1.4em")


def table(head: Sequence[str], rows: Sequence[Sequence[Content]], numbers: Sequence[int] = ()) -> Markup:
    """A table that scrolls within itself where it is too wide; columns of `numbers` are set to the right."""

    def cells(kind: str, line: Sequence[Content], rule: str) -> Markup:
        sides = ["right" if place in numbers else "left" for place in range(len(line))]
        style = "padding:.25em .7em;vertical-align:top;border:0;border-bottom:1px solid rgba(128,128,128,{})"
        return tag(
            "tr",
            [
                tag(
                    kind, each, style=f"{style.format(rule)};text-align:{side}" + ";white-space:nowrap" * (kind == "th")
                )
                for each, side in zip(line, sides, strict=True)
            ],
            style="background:none",
        )

    body = tag("tbody", [cells("td", row, ".25") for row in rows])
    whole = tag(
        "table",
        [tag("thead", cells("th", head, ".6")), body],
        style="border-collapse:collapse;margin:0;font-variant-numeric:tabular-nums",
    )
    return tag("div", whole, style="overflow-x:auto")


def bar(share: float) -> Content:
    """A short bar for a share from 0 to 1; nothing where it is none."""
    if not 0.0 <= share <= 1.0:
        return ""
    outside = "display:inline-block;width:4.5em;height:.55em;margin-left:.6em;background:rgba(128,128,128,.18)"
    inside = f"display:block;height:100%;width:{100 * share:.0f}%;background:{COLOURS[0]}"
    return tag("span", tag("span", style=inside), style=outside, aria_hidden="true")


def parts_bar(parts: Sequence[tuple[str, int]]) -> Markup:
    """A bar that is divided as the counts are, with a legend; parts of none are left out."""
    there = [(place, name, count) for place, (name, count) in enumerate(parts) if count]
    whole = sum(count for *_, count in there) or 1
    pieces = [
        tag("span", style=f"display:block;width:{100 * count / whole:.3f}%;background:{_colour(place)}")
        for place, _, count in there
    ]
    shown = (
        "display:flex;height:.7em;max-width:30rem;border-radius:.35em;overflow:hidden;background:rgba(128,128,128,.18)"
    )
    legend = _legend([(f"{count:,} {name}", _colour(place)) for place, name, count in there])
    return tag("div", [tag("div", pieces, style=shown, aria_hidden="true"), legend], style="margin:.4em 0")


def curves(drawn: Sequence[Curve], across: str, up: str) -> Content:
    """A picture of curves over one axis; nothing where none has two points."""
    finite = [Curve(each.name, [point for point in each.points if math.isfinite(point[1])]) for each in drawn]
    thinned = [Curve(each.name, each.points[:: max(1, len(each.points) // _MOST)]) for each in finite]
    if not any(len(each.points) > 1 for each in thinned):
        return ""
    every = [point for each in thinned for point in each.points]
    ends = [end for point in every for end in point[1:] if math.isfinite(end)]
    x_ticks, x = _axis([point[0] for point in every], _LEFT, _WIDE - _RIGHT, whole=True)
    y_ticks, y = _axis(ends, _HIGH - _BOTTOM, _TOP)
    parts: list[Content] = []
    for value, name in y_ticks:
        parts.append(_line([(_LEFT, y(value)), (_WIDE - _RIGHT, y(value))], "currentColor", 0.6, opacity=".2"))
        parts.append(_label(_LEFT - 6, y(value) + 4, name, "end"))
    parts += [_label(x(value), _HIGH - _BOTTOM + 16, name, "middle") for value, name in x_ticks]
    parts.append(_label((_LEFT + _WIDE - _RIGHT) / 2, _HIGH - 6, across, "middle"))
    for place, each in enumerate(thinned):
        band = [(x(at), y(high)) for at, _, low, high in each.points if math.isfinite(low + high)]
        band += [(x(at), y(low)) for at, _, low, high in reversed(each.points) if math.isfinite(low + high)]
        if len(band) > 2:
            parts.append(tag("polygon", points=_points(band), fill=_colour(place), opacity=".13"))
    for place, each in enumerate(thinned):
        path = [(x(at), y(value)) for at, value, *_ in each.points]
        parts.append(_line(path, _colour(place), 2.2, stroke_dasharray=_DASHES[place % len(_DASHES)]))
    names = [(each.name, _colour(place)) for place, each in enumerate(thinned) if each.name]
    picture = tag(
        "svg", parts, viewBox=f"0 0 {_WIDE} {_HIGH}", width=str(_WIDE), height=str(_HIGH), role="img",
        aria_label=f"{up} over {across}", style="max-width:100%;height:auto;background:none",
    )  # fmt: skip
    caption = tag("figcaption", [tag("strong", up), _legend(names)], style="font-size:.9em")
    return tag("figure", [caption, picture], style="margin:.6em 0")


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]


def _legend(names: Sequence[tuple[str, str]]) -> Markup:
    dot = "display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.35em;background:"
    entries = [
        tag("span", [tag("span", style=dot + colour), name], style="margin-right:1.1em;white-space:nowrap")
        for name, colour in names
    ]
    return tag("div", entries, style="font-size:.9em")


def _points(path: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in path)


def _line(path: Sequence[tuple[float, float]], colour: str, width: float, **more: str) -> Markup:
    given = {name: value for name, value in more.items() if value}
    return tag("polyline", points=_points(path), fill="none", stroke=colour, stroke_width=str(width), **given)


def _label(x: float, y: float, content: str, anchor: str) -> Markup:
    size = {"font_size": "12", "fill": "currentColor", "text_anchor": anchor}
    return tag("text", text(content), x=f"{x:.1f}", y=f"{y:.1f}", **size)


def _axis(
    values: Sequence[float], start: float, end: float, *, whole: bool = False
) -> tuple[list[tuple[float, str]], Callable[[float], float]]:
    """Round numbers that cover the values, with their text, and the place of a value between `start` and `end`."""
    low, high = min(values), max(values)
    if high <= low:
        low, high = low - (0.5 * abs(low) or 0.5), high + (0.5 * abs(high) or 0.5)
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1.0, 2.0, 2.5, 5.0, 10.0) if times * power >= rough * 0.999)
    step = max(1.0, round(step)) if whole else step
    first, last = (low, high) if whole else (step * math.floor(low / step), step * math.ceil(high / step))
    ticks = [step * count for count in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)]
    return [
        (tick, number(tick + 0.0)) for tick in ticks
    ], lambda value: start + (value - first) / (last - first) * (end - start)
