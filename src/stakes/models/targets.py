"""Labels as they come: real numbers or classes, checked, with errors that name the rows.

Sizes: n labels, C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from stakes.models.tables import Host, is_gap, is_number, on_host

Task: TypeAlias = Literal["classes", "real"]

_FEW = 10  # distinct whole numbers that may be classes


def read_labels(y: Any, count: int) -> Host:
    """[n]: the labels on the host, none missing."""
    labels = on_host(y if hasattr(y, "shape") else np.asarray(y, dtype=None if _alike(y) else object))
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or len(labels) != count:
        raise ValueError(f"y must hold a label for each of the {count} rows of X; got shape {list(labels.shape)}")
    bad = ~np.isfinite(labels) if labels.dtype.kind == "f" else is_gap(labels)
    if bad.any():
        raise ValueError(f"y must hold no gaps and no infinite numbers; rows {_listed(np.flatnonzero(bad))} do")
    return labels


def task_of(labels: Host, task: Task | None, classes: Sequence[Any] | None) -> tuple[Task, str]:
    """Whether labels are classes or real numbers, and a sentence that says why."""
    if task not in (None, "classes", "real"):
        raise ValueError(f"task must be 'classes', 'real' or None, to go by the labels; got {task!r}")
    if task == "real":
        if classes is not None:
            raise ValueError("a real target has no classes: leave out task='real' or classes")
        if not is_number(labels) and labels.dtype.kind != "b":
            raise TypeError(f"a real target must be numbers; y holds {labels.dtype}")
        return "real", "The target is a number, as was said."
    if task == "classes" or classes is not None:
        return "classes", "The target is a class, as was said."
    if not is_number(labels):
        return "classes", "The target is a class: y holds no numbers."
    if labels.dtype.kind == "f":
        return "real", "The target is real: y holds floating numbers (task='classes' if they are classes)."
    return _task_of_integers(labels)


def _task_of_integers(labels: Host) -> tuple[Task, str]:
    """Classes where values are few and either small, as codes are, or repeated."""
    values = np.unique(labels)
    codes = values[0] >= 0 and values[-1] < _FEW
    if len(values) <= _FEW and (codes or 2 * len(values) <= len(labels)):
        return (
            "classes",
            f"The target is a class: y holds {len(values)} whole numbers (task='real' if they are amounts).",
        )
    return "real", "The target is real: y holds whole numbers with many values (task='classes' if they are classes)."


def check_classes(labels: Host, classes: Sequence[Any] | None) -> Host:
    """[C]: the classes given, each once, with every label among them; those of the labels, sorted, without."""
    if classes is None:
        return np.asarray(sorted(set(labels.tolist()), key=lambda name: (str(type(name)), name)), dtype=labels.dtype)
    names = list(classes)
    if len(set(names)) != len(names) or not names:
        raise ValueError(f"classes must name each class once; got {names}")
    if bad := [row for row, label in enumerate(labels.tolist()) if label not in names]:
        raise ValueError(
            f"every label must be one of the classes {names}; rows {_listed(bad)} are not, the first is "
            f"{labels.tolist()[bad[0]]!r}"
        )
    return np.asarray(names, dtype=None if _alike(names) else object)


def positions_of(labels: Host, classes: Host) -> Host:
    """[n]: the position of each label among the classes."""
    places = {name: place for place, name in enumerate(classes.tolist())}
    return np.asarray([places[label] for label in labels.tolist()], dtype=np.intp)


def _alike(values: Any) -> bool:
    """Whether all values are of one type, so that NumPy turns none of them into text."""
    return len({type(each) for each in values}) <= 1 or all(
        isinstance(each, int | float | np.number) and not isinstance(each, bool) for each in values
    )


def _listed(rows: Any, most: int = 5) -> str:
    rows = [int(row) for row in rows]
    return ", ".join(map(str, rows[:most])) + (f" and {len(rows) - most} more" if len(rows) > most else "")
