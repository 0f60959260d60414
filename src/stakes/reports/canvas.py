"""A sheet to draw on and its picture as bytes: the one file here that names matplotlib."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

# Okabe and Ito's colours, which people who are colour-blind tell apart; the last is for whatever is left over.
BLUE, ORANGE, GREEN, PURPLE, SKY, RED, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#8A8A8A",
)
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED)
_SIZE = (5.4, 3.6)  # inches: small, so that letters are still large where the picture is scaled down to a phone
_LONG = 28  # letters of a name in a picture
_ROW = 72  # letters that fit beside each other in a legend
_STYLE: dict[Any, Any] = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "text.parse_math": False,  # a name with two dollar signs is a name
}


def check_canvas() -> None:
    """Refuse before any work is done, where there is nothing to draw with."""
    _figure_class()


def picture(draw: Callable[[Any], None]) -> bytes:
    """The PNG of what `draw` draws on a figure."""
    figure_class = _figure_class()
    from matplotlib import rc_context

    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks are drawn as boxes
        figure = figure_class(figsize=_SIZE, layout="constrained")
        draw(figure)
        drawn = io.BytesIO()
        figure.savefig(drawn, format="png", dpi=200, facecolor="white", metadata={"Software": None})
    return drawn.getvalue()


def legend(axes: Any, **more: Any) -> Any:
    """The legend below the picture, where it covers nothing."""
    figure = axes.figure
    handles, names = axes.get_legend_handles_labels()
    shown = [clipped(name) for name in names]
    columns = max(1, min(3, _ROW // max(len(name) + 5 for name in shown)))
    return figure.legend(handles, shown, loc="outside lower center", ncols=columns, columnspacing=1.2, **more)


def clipped(name: str) -> str:
    """A name that leaves room for others."""
    plain = " ".join(name.split())
    return plain if len(plain) <= _LONG else f"{plain[: _LONG - 1]}…"


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("a report has pictures, which need matplotlib: pip install 'stakes[plot]'") from error
    return Figure
