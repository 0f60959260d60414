"""A report as one HTML page with its pictures in it: it needs no network and no other file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments.paper.blocks import Block, Heading, Picture, Strong, Table, Words
from stakes.report.page import STYLE, Content, Markup, image, page, table, tag

_MORE = """
h2 { border-bottom: 1px solid var(--line); padding-bottom: .3rem; margin-top: 3rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
.scroll, figure { margin: .9rem 0; }
code { font-size: .85rem; color: var(--faint); }
th { white-space: normal; vertical-align: bottom; }
td { white-space: nowrap; font-variant-numeric: tabular-nums; } td:last-child { min-width: 4rem; }
"""


def html(blocks: Iterable[Block], pictures: Mapping[str, bytes]) -> str:
    """The page; a picture that is not among `pictures` is left out."""
    title = "The paper's experiments, run again"
    return page(title, STYLE + _MORE, [_html(each, pictures) for each in blocks])


def _html(block: Block, pictures: Mapping[str, bytes]) -> Content:
    match block:
        case Heading(level, text):
            return tag(f"h{level}", text)
        case Words(text, code):
            return tag("p", [text, ": ", tag("code", code)] if code else text)
        case Table(head, rows):
            return table(head, [[_cell(cell) for cell in row] for row in rows])
        case Picture(name, caption) if name in pictures:
            return tag("figure", [image(pictures[name], caption), tag("figcaption", caption)])
        case _:
            return Markup("")


def _cell(cell: str) -> Content:
    return tag("strong", str(cell)) if isinstance(cell, Strong) else cell
