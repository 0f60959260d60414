"""What a report is made of, and the same as Markdown; `page` makes HTML of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


class Strong(str):
    """A cell that stands out."""

    __slots__ = ()


@dataclass(frozen=True)
class Heading:
    """From 1, that of the report, to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Words:
    """A paragraph that may end in code."""

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


Block: TypeAlias = Heading | Words | Table | Picture


def markdown(blocks: Iterable[Block]) -> str:
    """All blocks but pictures, which are files of their own."""
    return "\n".join(f"{_markdown(each)}\n" for each in blocks if not isinstance(each, Picture))


def _markdown(block: Heading | Words | Table) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Words(text, code):
            return f"{text}: `{code}`" if code else text
        case Table(head, rows):
            lines = [head, ["---"] * len(head), *rows]
            return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in lines)


def _cell(cell: str) -> str:
    return f"**{cell}**" if isinstance(cell, Strong) else cell
