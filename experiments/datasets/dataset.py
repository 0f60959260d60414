"""A data set in memory, and the error of data that cannot be had.

Sizes: N rows, p features, C classes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

Host: TypeAlias = np.ndarray[Any, Any]


class DatasetError(ValueError):
    """A data set that cannot be had, or that is not what was published: what is wrong, and what to do."""


def checksum(values: Host) -> str:
    """SHA-256 of the values as doubles, row by row, low byte first; -0 counts as 0."""
    return hashlib.sha256(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with their labels, in the order of the source; rows that repeat the features of others are kept."""

    name: str
    features: Host = field(repr=False)
    """[N, p] doubles, in their own units, which nothing can write to"""
    target: Host = field(repr=False)
    """[N]: real labels, or the position of each label among the classes"""
    feature_names: tuple[str, ...] = field(repr=False)
    target_name: str
    classes: tuple[str, ...] | None
    """C of them, in the order that class weights take; None for a real target"""
    part: str
    """Which rows of the source: all, train or test"""
    source: str
    """Where the values came from"""
    citation: str = field(repr=False)
    licence: str = field(repr=False)

    def __post_init__(self) -> None:
        for name in ("features", "target"):
            view = getattr(self, name).view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    def __len__(self) -> int:
        return len(self.target)

    @property
    def sha256(self) -> str:
        """The checksum of features and target: doubles row by row, the target last."""
        return checksum(np.column_stack([self.features, self.target]))

    def with_classes(self, order: Sequence[str]) -> Dataset:
        """The same rows with the classes in another order, and so at other positions."""
        if self.classes is None:
            raise DatasetError(f"{self.name} has a real target, and no classes to put in order")
        if isinstance(order, str) or sorted(order) != sorted(self.classes):
            raise DatasetError(f"order must name each of {list(self.classes)} once; got {order!r}")
        places = np.asarray([list(order).index(name) for name in self.classes], dtype=np.intp)  # [C]
        return replace(self, target=places[self.target], classes=tuple(order))
