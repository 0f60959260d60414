"""HTML in which whatever people wrote is text: every string is escaped unless it is markup already."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # no HTML file may hold these


class Markup(str):
    """A string that is HTML; only the functions here make it."""

    __slots__ = ()


Content: TypeAlias = str | Iterable["Content"]


def text(content: Content) -> Markup:
    """The content as HTML: markup as it is, other strings escaped, a list of them one after another."""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(html.escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", content)))
    return Markup("".join(map(text, content)))


def tag(name: str, content: Content = "", **attributes: str) -> Markup:
    """An element; attributes are escaped too, and `class_` is class."""
    given = "".join(f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{text(content)}</{name}>\n")


def table(head: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table that scrolls within itself where it is too wide."""
    top = tag("thead", tag("tr", [tag("th", name, scope="col") for name in head]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("div", tag("table", [top, body]), class_="scroll", tabindex="0")


def bullets(sentences: Iterable[str]) -> Markup:
    """A list."""
    return tag("ul", [tag("li", sentence) for sentence in sentences])


def image(png: bytes, alt: str) -> Markup:
    """A picture within the page."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return Markup(f'<img src="{source}" alt="{text(alt)}">\n')


def page(title: str, style: str, content: Content) -> Markup:
    """A whole page, which needs nothing else."""
    head = [
        Markup('<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Markup('<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'),
        tag("title", title),
        tag("style", Markup(style)),
    ]
    return Markup("<!doctype html>\n" + tag("html", [tag("head", head), tag("body", tag("main", content))], lang="en"))
