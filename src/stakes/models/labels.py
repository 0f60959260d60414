"""Labels as they come: checked, and as positions among the classes.

Sizes: n labels, C classes, L labels of which a row may have several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stakes._utils.array import on_host
from stakes._utils.tables import Host, is_gap
from stakes.exceptions import StakesError
from stakes.losses.multi_label import label_set_names, label_sets


def as_labels(y: Any, count: int) -> Host:
    """[n]: the labels on the host, none missing."""
    labels = on_host(y if hasattr(y, "shape") else np.asarray(y, dtype=None if _alike(y) else object))
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or len(labels) != count:
        raise StakesError(f"y must hold a label for each of the {count} rows of X; got shape {list(labels.shape)}")
    bad = ~np.isfinite(labels) if labels.dtype.kind == "f" else is_gap(labels)
    if bad.any():
        raise StakesError(f"y must hold no gaps and no infinite numbers; rows {_listed(np.flatnonzero(bad))} do")
    return labels


def check_classes(labels: Host, classes: Sequence[Any] | None) -> Host:
    """[C]: the classes given, each once, with every label among them; those of the labels, sorted, without."""
    if classes is None:
        return np.asarray(sorted(set(labels.tolist()), key=lambda name: (str(type(name)), name)), dtype=labels.dtype)
    names = [classes] if isinstance(classes, str) else list(classes)
    if len(set(names)) != len(names) or not names:
        raise StakesError(f"classes must name each class once; got {names}")
    if bad := [row for row, label in enumerate(labels.tolist()) if label not in names]:
        raise StakesError(
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


def as_label_sets(y: Any, names: Sequence[str]) -> Host:
    """[n]: the names of label sets, of rows of 0 and 1 [n, L] or of such names."""
    known, labels = label_set_names(names), on_host(y if hasattr(y, "shape") else np.asarray(y))
    if labels.ndim == 1 and len(names) > 1:
        return np.asarray(labels, dtype=object)
    if labels.ndim == 1:
        labels = labels[:, None]
    there = labels.astype(float) if labels.dtype.kind in "biuf" else np.full((1, 1), np.nan)
    if labels.ndim != 2 or labels.shape[1] != len(names) or not np.isin(there, (0.0, 1.0)).all():
        raise StakesError(
            f"labels of several kinds must be rows [n, {len(names)}] of 0 and 1, one for each of {', '.join(names)}; "
            f"got shape {list(labels.shape)}"
        )
    powers = 2 ** np.arange(len(names))[::-1]
    assert (label_sets(len(names)) @ powers == np.arange(len(known))).all()
    return np.asarray(known, dtype=object)[(there @ powers).astype(np.intp)]
