"""Small pictures as SVG: how the loss fell as labels came, and which labels were acquired."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stakes._utils.markup import Content, Markup, tag
from stakes._utils.text import counted, number

_WIDE, _HIGH = 320, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 10, 22
_MOST = 200  # points that are drawn


def learning_chart(points: Sequence[tuple[int, float, float]]) -> Content:
    """The expected loss of a decision after each ranking, with two standard errors; nothing before the second.

    Args:
        points: Labels, loss and its standard error.

    Returns:
        The picture with a heading.
    """
    last = {labels: (value, error) for labels, value, error in points if math.isfinite(value)}
    if len(last) < 2:
        return ""
    some = sorted(last.items())[:: max(1, len(last) // _MOST)]
    low = min(0.0, *(value for _, (value, _) in some))
    high = max(value + 2.0 * (error if math.isfinite(error) else 0.0) for _, (value, error) in some) or 1.0
    x = _scale([labels for labels, _ in some], _LEFT, _WIDE - _RIGHT)
    y = _axis(low, high)
    band = [(x(labels), y(value + 2.0 * error)) for labels, (value, error) in some if math.isfinite(error)]
    band += [
        (x(labels), y(max(low, value - 2.0 * error)))
        for labels, (value, error) in reversed(some)
        if math.isfinite(error)
    ]
    line = [(x(labels), y(value)) for labels, (value, _) in some]
    ends = (f"{number(loss)} with {counted(labels, 'label')}" for labels, (loss, _) in (some[0], some[-1]))
    caption = ", ".join(ends)
    drawn = [
        _polygon(band),
        _polyline(line),
        _circle(*line[-1], 3.5, "point"),
        *_labels(some[0][0], some[-1][0], low, high),
    ]
    return tag(
        "figure",
        [
            tag("h2", "Expected loss of a decision"),
            _svg(drawn, f"Expected loss of a decision: {caption}"),
            tag("figcaption", caption),
        ],
    )


def acquired_chart(labels: Sequence[str], initial: int, *, numbers: bool) -> Content:
    """The labels in the order in which they came: dots for numbers, bars for classes.

    Args:
        labels: In the order in which they came.
        initial: How many came with the table.
        numbers: Whether they are numbers.

    Returns:
        The picture with a heading; nothing where there is no label.
    """
    if not labels:
        return ""
    drawn, caption = _dots(labels, initial) if numbers else _bars(labels, initial)
    return tag(
        "figure",
        [tag("h2", "What was acquired"), _svg(drawn, f"What was acquired: {caption}"), tag("figcaption", caption)],
    )


def _dots(labels: Sequence[str], initial: int) -> tuple[list[Markup], str]:
    values = [float(label) for label in labels]
    step = max(1, len(values) // _MOST)
    low, high = min(values), max(values)
    x, y = _scale([1, len(values)], _LEFT, _WIDE - _RIGHT), _axis(low, high)
    dots = [
        _circle(x(place + 1), y(values[place]), 2.5, "given" if place < initial else "bought")
        for place in range(0, len(values), step)
    ]
    caption = f"{counted(len(values), 'label')} from {number(low)} to {number(high)}, {initial:,} there from the start"
    return [*dots, *_labels(1, len(values), low, high)], caption


def _bars(labels: Sequence[str], initial: int) -> tuple[list[Markup], str]:
    given, bought = Counter(labels[:initial]), Counter(labels[initial:])
    names = [name for name, _ in Counter(labels).most_common(6)]
    most = max(given[name] + bought[name] for name in names)
    high = (_HIGH - 8) / len(names)
    drawn: list[Markup] = []
    for place, name in enumerate(names):
        top, per = 4 + place * high, (_WIDE - 130) / most
        first, second = given[name] * per, bought[name] * per
        drawn += [
            _text(92, top + high / 2 + 4, name if len(name) <= 13 else f"{name[:12]}\N{HORIZONTAL ELLIPSIS}", "end"),
            _rect(98, top + 2, first, high - 4, "given"),
            _rect(98 + first, top + 2, second, high - 4, "bought"),
            _text(102 + first + second, top + high / 2 + 4, str(given[name] + bought[name]), "start"),
        ]
    rest = len(set(labels)) - len(names)
    caption = ", ".join(f"{name} {given[name] + bought[name]}" for name in names) + (
        f" and {rest} more classes" if rest else ""
    )
    return drawn, f"{caption}; {initial:,} of {counted(len(labels), 'label')} there from the start (light)"


def _axis(low: float, high: float) -> _Line:
    return _Line(low, high if high > low else low + 1.0, _HIGH - _BOTTOM, _TOP)


def _scale(values: Sequence[float], left: float, right: float) -> _Line:
    return _Line(values[0], values[-1] if values[-1] > values[0] else values[0] + 1.0, left, right)


class _Line:
    """From values to places on a picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.per, self.start = low, (end - start) / (high - low), start

    def __call__(self, value: float) -> float:
        return round(self.start + (value - self.low) * self.per, 1)


def _labels(first: float, last: float, low: float, high: float) -> list[Markup]:
    """The ends of both axes in numbers."""
    bottom = _HIGH - _BOTTOM
    return [
        Markup(f'<path class="axis" d="M{_LEFT} {_TOP}V{bottom}H{_WIDE - _RIGHT}"/>'),
        _text(_LEFT - 5, _TOP + 4, number(high, 3), "end"),
        _text(_LEFT - 5, bottom + 2, number(low, 3), "end"),
        _text(_LEFT, _HIGH - 6, f"{first:g}", "middle"),
        _text(_WIDE - _RIGHT, _HIGH - 6, f"{last:g} labels", "end"),
    ]


def _svg(drawn: Sequence[Markup], caption: str) -> Markup:
    return tag("svg", drawn, viewBox=f"0 0 {_WIDE} {_HIGH}", role="img", aria_label=caption)


def _text(x: float, y: float, content: str, anchor: str) -> Markup:
    return tag("text", content, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def _circle(x: float, y: float, size: float, kind: str) -> Markup:
    return Markup(f'<circle class="{kind}" cx="{x}" cy="{y}" r="{size}"/>')


def _rect(x: float, y: float, wide: float, high: float, kind: str) -> Markup:
    return Markup(f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"/>')


def _polyline(points: Sequence[tuple[float, float]]) -> Markup:
    return Markup(f'<polyline class="curve" points="{_points(points)}"/>')


def _polygon(points: Sequence[tuple[float, float]]) -> Markup:
    return Markup(f'<polygon class="band" points="{_points(points)}"/>')


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
