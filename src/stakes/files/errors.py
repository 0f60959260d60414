"""The one error of files, and the word that was perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TableError(ValueError):
    """A table that cannot be read or written: what is wrong, where, and what to do."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the known word nearest to `word`; nothing where none is near."""
    by_small_letters = {each.casefold(): each for each in known}
    near = get_close_matches(word.casefold(), by_small_letters, n=1)
    return f" Did you mean {by_small_letters[near[0]]!r}?" if near else ""


def listed(words: Iterable[str], most: int = 8) -> str:
    """The first few words, and how many more there are."""
    every = list(words)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
