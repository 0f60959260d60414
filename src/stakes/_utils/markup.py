"""HTML in which whatever people wrote is text: every string is escaped unless it is markup already."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TypeAlias

_UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")  # no HTML file may hold these


class Markup(str):
    """A string that is HTML; only functions that escape what they are given make it."""

    __slots__ = ()


Content: TypeAlias = str | Iterable["Content"]


def text(content: Content) -> Markup:
    """The content as HTML: markup as it is, other strings escaped, a list of them one after another."""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(html.escape(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", content)))
    return Markup("".join(map(text, content)))


def tag(name: str, content: Content = "", /, **attributes: str) -> Markup:
    """An element; attributes are escaped too, and `class_` is class."""
    given = "".join(f' {key.strip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{text(content)}</{name}>\n")
