"""Rows by name."""

from __future__ import annotations

from stakes.files.errors import TableError
from stakes.files.source import Source


def ids(source: Source, column: str | None = None) -> tuple[str, ...]:
    """[N]: the texts of a column, none empty and none twice; without a column, numbers from 1."""
    if column is None:
        return tuple(str(source.number(row)) for row in range(len(source)))
    texts = source.texts(column)
    names = [_whole(source, column, row, text) for row, text in enumerate(_known(source, column, texts))]
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if (before := first.setdefault(name, row)) != row:
            raise TableError(
                f"{source.path}: the id {name!r} stands at {source.place(before)} and at {source.place(row)} of column "
                f"{column!r}; ids must tell rows apart. Change one, or give another column."
            )
    return tuple(names)


def _known(source: Source, column: str, texts: list[str | None]) -> list[str]:
    if None in texts:
        raise TableError(
            f"{source.path}: the id at {source.place(texts.index(None))}, column {column!r}, is empty; every row needs "
            "one. Fill it in, or give another column."
        )
    return [text for text in texts if text is not None]


def _whole(source: Source, column: str, row: int, text: str) -> str:
    """An id of floating numbers without its .0: whole numbers with gaps are saved so by many tools."""
    if column not in source.floating:
        return text
    number = float(text)
    if not number.is_integer():
        raise TableError(
            f"{source.path}: ids must be text or whole numbers; column {column!r} holds {text} at "
            f"{source.place(row)}. Give another column, or save this one as text."
        )
    return str(int(number))
