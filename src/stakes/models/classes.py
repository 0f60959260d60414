"""Which column belongs to which class, whatever labels are: numbers, names, NumPy's or Python's.

Sizes: c classes of one member.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from stakes._array import Array


def union_of(classes: Iterable[Sequence[Any]]) -> list[Any]:
    """All classes that any member knows, sorted."""
    union = {plain(label) for own in classes for label in own}
    try:
        return sorted(union)
    except TypeError as error:
        raise TypeError(f"classes cannot be ordered ({error}): give classes=... in order") from error


def all_classes(asked: Sequence[Any] | None, known: Sequence[Any]) -> list[Any]:
    """The classes in the order of columns: those asked for, which hold all that the model knows; or the model's."""
    classes = [plain(label) for label in (known if asked is None else asked)]
    if len(set(classes)) < len(classes):
        raise ValueError(f"each class must be given once; got {classes!r}")
    columns_of(known, classes)
    return classes


def columns_of(own: Sequence[Any], classes: list[Any]) -> Array:
    """[c]: where among `classes` each class of `own` is."""
    place = {label: column for column, label in enumerate(classes)}
    if unknown := [label for label in map(plain, own) if label not in place]:
        raise ValueError(
            f"the model knows classes that are not among the classes given: {unknown!r} not in {classes!r}"
        )
    return np.asarray([place[plain(label)] for label in own], dtype=np.intp)


def plain(label: Any) -> Any:
    """A label as Python has it, so that np.int64(1) and 1 are one."""
    return label.item() if isinstance(label, np.generic) else label
