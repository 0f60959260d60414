"""Rows on their way to a network: in batches, prepared, on its device and in its precision.

Sizes: n rows, b rows of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from stakes._array import slices
from stakes.models.tables import n_rows, on_host, take_rows

Batch: TypeAlias = Any
"""What a network is called with: a tensor, a tuple of tensors, or a dict of tensors by the names of its arguments."""


def count_rows(rows: Any) -> int:
    """The number n of rows of a table, a dict of tensors or a pool that is read in chunks."""
    return int(rows.n_rows) if _is_pool(rows) else n_rows(rows)


def batches(
    rows: Any, size: int, prepare: Callable[[Any], Any] | None, like: torch.Tensor | None, device: Any
) -> Iterator[tuple[slice, Batch]]:
    """Where each batch of rows belongs, and the rows as the network wants them: beside `like`, or on `device`."""
    if like is not None:
        device = like.device
    for start, part in _parts(rows, size):
        batch = part if prepare is None else prepare(part)
        yield slice(start, start + n_rows(part)), placed(batch, device, None if like is None else like.dtype)


def _parts(rows: Any, size: int) -> Iterator[tuple[int, Any]]:
    if _is_pool(rows):
        yield from rows.chunks(size)
    else:
        for part in slices(n_rows(rows), size):
            yield part.start, take_rows(rows, part)


def _is_pool(rows: Any) -> bool:
    return hasattr(rows, "n_rows") and callable(getattr(rows, "chunks", None))


def placed(batch: Any, device: Any, dtype: torch.dtype | None) -> Batch:
    """Tensors on `device` (None: where they are), floating numbers in `dtype` (None: as they are)."""
    if isinstance(batch, Mapping):
        return {name: placed(each, device, dtype) for name, each in batch.items()}
    if isinstance(batch, tuple):
        return tuple(placed(each, device, dtype) for each in batch)
    tensor = _tensor(batch)
    tensor = tensor.to(dtype) if dtype is not None and tensor.is_floating_point() else tensor
    if device is None or tensor.device == torch.device(device):
        return tensor
    if torch.device(device).type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()  # so that the copy runs while the next batch is made ready
    return tensor.to(device, non_blocking=True)


def _tensor(values: Any) -> torch.Tensor:
    """Rows of numbers as a tensor, in the same memory where that may be."""
    if isinstance(values, torch.Tensor):
        return values
    host = on_host(values)
    if host.dtype.kind not in "fiub":
        raise TypeError(
            f"a network takes tensors or arrays of numbers; got {type(values).__name__} of {host.dtype}. Give "
            "NetworkEnsemble(..., prepare=a function from some rows to tensors), such as a tokenizer."
        )
    return torch.as_tensor(host if host.flags.writeable else np.array(host))


def called(function: Callable[..., Any], batch: Batch) -> torch.Tensor:
    """What a network or function gives for a batch; the `logits` where it gives an object that has them."""
    if isinstance(batch, Mapping):
        output = function(**batch)
    else:
        output = function(*batch) if isinstance(batch, tuple) else function(batch)
    output = getattr(output, "logits", output)
    if not isinstance(output, torch.Tensor):
        raise TypeError(
            f"a network must give a tensor, or an object with a tensor `logits`; got {type(output).__name__}"
        )
    return output
