"""Pools of images, texts or anything else that a `torch.utils.data.Dataset` holds.

Sizes: N rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler, default_collate


@dataclass(frozen=True, eq=False)
class DatasetPool:
    """A dataset as a `stakes.ranking.Pool`: its items are made into rows when they are asked for.

    A `DataLoader` stands for its dataset, with its way to collate and its worker processes; its batches may be of any
    size, but their order must be that of the dataset.
    """

    dataset: Any
    """A `Dataset` with a length, or a `DataLoader` of one."""
    _: KW_ONLY
    inputs: int | str | list[str] | None = None
    """Which part of a collated batch is the input: a position, a key, or keys of a dict; None: all of it. The others,
    such as the label, are left out."""
    collate: Callable[[list[Any]], Any] | None = None
    """From a list of items to a batch; None: that of the loader, or `torch.utils.data.default_collate`."""
    workers: int = 0
    """Processes that read items while others are scored."""

    def __post_init__(self) -> None:
        if isinstance(self.dataset, DataLoader):
            for name, value in _of_loader(self.dataset, self.collate).items():
                object.__setattr__(self, name, value)
        if isinstance(self.dataset, IterableDataset) or not hasattr(self.dataset, "__len__"):
            raise TypeError(
                "a pool needs rows that can be asked for by position: a dataset with a length and items by number, or "
                f"a loader of one; got {type(self.dataset).__name__}"
            )

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.dataset)

    def chunks(self, size: int) -> Iterator[tuple[int, Any]]:
        """Where each chunk begins, and its rows."""
        start, own = 0, torch.Generator()  # a loader draws a seed for its workers: not from the user's numbers
        loader = DataLoader(
            self.dataset, size, num_workers=self.workers, collate_fn=self._rows, generator=own.manual_seed(0)
        )
        for rows in loader:
            yield start, rows
            start = min(start + size, self.n_rows)

    def take(self, rows: Any) -> Any:
        """The rows at some positions, in that order."""
        return self._rows([self.dataset[int(row)] for row in np.asarray(rows)])

    def _rows(self, items: list[Any]) -> Any:
        """A tensor [n, ...], a dict of tensors, or a list of texts."""
        batch = (self.collate or default_collate)(items)
        if isinstance(self.inputs, list):
            return {name: batch[name] for name in self.inputs}
        rows = batch if self.inputs is None else batch[self.inputs]
        if isinstance(rows, list | tuple):
            if not all(isinstance(each, str) for each in rows):
                raise ValueError(
                    f"an item of the dataset has {len(rows)} parts: say which is the input, such as "
                    "DatasetPool(dataset, inputs=0) where the label comes second"
                )
            return list(rows)
        return rows


def _of_loader(loader: DataLoader[Any], collate: Any) -> dict[str, Any]:
    """What a pool takes over from a loader."""
    if not isinstance(loader.dataset, IterableDataset) and not isinstance(loader.sampler, SequentialSampler):
        raise ValueError(
            f"rows are told apart by their positions in the dataset, and a {type(loader.sampler).__name__} mixes them: "
            "give a loader with shuffle=False and no sampler, or the dataset itself"
        )
    return {"dataset": loader.dataset, "collate": collate or loader.collate_fn, "workers": loader.num_workers}
