"""Rows with labels and rows without in one table: y with gaps in place, as spreadsheets have it.

The rows with a label are what a model is fitted to, the others are the pool; positions are those of the whole table.
Sizes: N rows of the table, n of them without a label, p columns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stakes._utils.array import on_host
from stakes._utils.tables import Host, Table, is_gap, n_rows, take_rows
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.losses.domains import Classes
from stakes.ranking.pools import Pool
from stakes.ranking.result import Ranking, Reason


@dataclass(frozen=True, eq=False)
class OpenRows:
    """The rows of a table that have no label, and the others with theirs."""

    pool: Table
    """[n, p]"""
    positions: Host
    """[n]: where they are in the table"""
    labelled: tuple[Any, Any]
    """The rows that have a label, and their labels"""
    size: int
    """N"""
    indexed: bool
    """Whether rows have names of their own, those of a pandas index"""

    def arguments(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The arguments of `rank`, those that count by row for these rows."""
        weights = asked["context_weights"]
        return {
            **asked,
            "costs": self._of_these("costs", asked["costs"]),
            "context_weights": weights if asked["contexts"] is not None else self._of_these("context_weights", weights),
            "pending": self._places(asked["pending"]),
            "labelled": self.labelled,
        }

    def _of_these(self, name: str, values: Any) -> Any:
        """[n]: those of these rows, of one for each row of the table."""
        if values is None or np.ndim(values) == 0:
            return values
        if len(values) != self.size:
            raise StakesError(f"{name} must hold a number for each of the {self.size} rows of X; got {len(values)}")
        return np.asarray(on_host(values))[self.positions]

    def _places(self, pending: Sequence[int]) -> list[int]:
        place = {int(row): at for at, row in enumerate(self.positions)}
        if known := [row for row in pending if row not in place]:
            raise StakesError(f"pending must hold positions of rows of X that have no label; got {known[0]!r}")
        return [place[row] for row in pending]

    def renumbered(self, ranking: Ranking, pool_is_future: bool) -> Ranking:
        """The ranking with positions in the whole table; of contexts too, where these rows stand for the future."""
        indices = tuple(int(self.positions[row]) for row in ranking.indices)
        reasons = tuple(map(self._reason, ranking.reasons)) if pool_is_future else ranking.reasons
        return replace(ranking, indices=indices, row_ids=ranking.row_ids if self.indexed else indices, reasons=reasons)

    def _reason(self, reason: Reason) -> Reason:
        places = [int(self.positions[each.index]) for each in reason.contexts]
        contexts = [
            replace(each, index=place, row_id=each.row_id if self.indexed else place)
            for each, place in zip(reason.contexts, places, strict=True)
        ]
        return replace(reason, contexts=tuple(contexts))


def open_rows(table: Any, y: Any, loss: AnyLoss | None, labelled: Any) -> OpenRows:
    """The rows of `table` without a label in `y`, where NaN, None and empty text stand for one that is missing."""
    if labelled is not None:
        raise StakesError("give y, with gaps, for the rows of the pool, or labelled=(X, y) beside it; not both")
    if isinstance(table, str | os.PathLike | Pool):
        raise StakesError(
            "y with gaps goes with a table in memory. For a file, fit the model yourself, or give its labelled rows, "
            "labelled=(X, y), and the others as the pool."
        )
    count, labels = n_rows(table), np.ma.getdata(y) if isinstance(y, np.ma.MaskedArray) else on_host(y)
    if labels.ndim == 0 or len(labels) != count:
        raise StakesError(f"y must hold a label, or a gap, for each of the {count} rows of X; got {list(labels.shape)}")
    if hasattr(y, "iloc") and hasattr(table, "iloc") and not y.index.equals(table.index):
        raise StakesError(
            "y must have the index of X, in its order; their rows would be mixed up otherwise. Give "
            "y.reindex(X.index), or y.to_numpy() if they are in the same order."
        )
    gaps = _gaps(labels) | (np.ma.getmaskarray(y) if isinstance(y, np.ma.MaskedArray) else False)
    if gaps.all():
        raise StakesError(
            "y holds no label, so there is nothing to fit a model to: cold_start(X) says which rows to label first; "
            "leave y out to rank by a model that was fitted elsewhere"
        )
    if not gaps.any():
        raise StakesError(
            f"all {count} rows have a label: there is none to choose. Rows without one have NaN, None or '' in y."
        )
    known, positions = np.flatnonzero(~gaps), np.flatnonzero(gaps)
    kept = _kept(labels[known], loss)
    return OpenRows(
        take_rows(table, positions), positions, (take_rows(table, known), kept), count, hasattr(table, "iloc")
    )


def _gaps(labels: Host) -> Host:
    """[N]: where a label is missing; of a vector, where a number of it is."""
    if labels.ndim > 1:
        columns = np.moveaxis(labels.reshape(len(labels), -1), 1, 0)
        return np.asarray(np.any([_gaps(column) for column in columns], axis=0))
    if labels.dtype.kind in "OUST":
        blank = [isinstance(each, str) and not each.strip() for each in labels.tolist()]
        return np.asarray(blank, dtype=bool) | is_gap(labels.astype(object))
    return is_gap(labels)


def _kept(labels: Host, loss: AnyLoss | None) -> Host:
    """Labels without gaps, in the type that they have without: numbers, whole ones for classes, or texts."""
    if labels.dtype.kind == "O" and labels.ndim == 1:
        values = labels.tolist()
        if len({str if isinstance(each, str) else bool if isinstance(each, bool) else float for each in values}) == 1:
            labels = np.asarray(values)
    about_classes = loss is not None and isinstance(getattr(loss, "domain", None), Classes)
    if about_classes and labels.dtype.kind == "f" and np.all(labels == np.floor(labels)):
        return labels.astype(int)  # NaN made them floating numbers
    return labels
