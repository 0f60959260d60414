"""What a report is made of: headings, paragraphs, tables and pictures, written as Markdown or as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stakes.report.page import STYLE, Content, Markup, html_table, image, page, tag

_MORE = """
h2 { border-bottom: 1px solid var(--line); padding-bottom: .3rem; margin-top: 3rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem; }
.scroll, figure { margin: .9rem 0; }
code { font-size: .85rem; color: var(--faint); }
th { white-space: normal; vertical-align: bottom; }
td { white-space: nowrap; font-variant-numeric: tabular-nums; } td:last-child { min-width: 4rem; }
"""


class Strong(str):
    """A cell that stands out."""

    __slots__ = ()


@dataclass(frozen=True)
class Heading:
    """From 1, that of the report, to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Text that may end in code."""

    text: str
    code: str = ""


@dataclass(frozen=True)
class Table:
    """Cells under their headings."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """One of the pictures that `figures.drawn` gives, by name."""

    name: str
    caption: str


Block: TypeAlias = Heading | Paragraph | Table | Picture


def markdown(blocks: Iterable[Block]) -> str:
    """All blocks but pictures, which are files of their own."""
    return "\n".join(f"{_markdown(each)}\n" for each in blocks if not isinstance(each, Picture))


def _markdown(block: Heading | Paragraph | Table) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Paragraph(text, code):
            return f"{text}: `{code}`" if code else text
        case Table(head, rows):
            lines = [head, ["---"] * len(head), *rows]
            return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines)


def _cell(cell: str) -> str:
    return f"**{cell}**" if isinstance(cell, Strong) else cell


def html(blocks: Iterable[Block], pictures: Mapping[str, bytes]) -> str:
    """One page that needs no network and no other file; a picture that is not among `pictures` is left out."""
    title = "The paper's experiments, run again"
    return page(title, STYLE + _MORE, [_html(each, pictures) for each in blocks])


def _html(block: Block, pictures: Mapping[str, bytes]) -> Content:
    match block:
        case Heading(level, text):
            return tag(f"h{level}", text)
        case Paragraph(text, code):
            return tag("p", [text, ": ", tag("code", code)] if code else text)
        case Table(head, rows):
            return html_table(head, [[_html_cell(cell) for cell in row] for row in rows])
        case Picture(name, caption) if name in pictures:
            return tag("figure", [image(pictures[name], caption), tag("figcaption", caption)])
        case _:
            return Markup("")


def _html_cell(cell: str) -> Content:
    return tag("strong", str(cell)) if isinstance(cell, Strong) else cell
