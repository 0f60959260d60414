"""How a model of GPyTorch or BoTorch is asked: with rows beside it, in the mode for predictions, and left as it was.

Sizes: B rows of any block, n labels so far, p features.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from stakes.models.device_posterior import Tensor


def check_labels(model: Any) -> None:
    """Refuse a model without labels, with several inputs, or of several models at once."""
    inputs = model.train_inputs
    if inputs is None or model.train_targets is None or len(inputs) != 1:
        count = 0 if inputs is None else len(inputs)
        raise ValueError(
            f"a {type(model).__name__} needs labels and one tensor of rows [n, p], as given to set_train_data; got "
            f"{count} tensors of rows"
        )
    if inputs[0].ndim != 2 or model.train_targets.ndim != 1:
        raise ValueError(
            f"one model at a time is asked: rows [n, p] and labels [n]; this {type(model).__name__} is a batch, with "
            f"rows {list(inputs[0].shape)} and labels {list(model.train_targets.shape)}. Give one of the batch."
        )


@contextmanager
def asking(model: Any) -> Iterator[None]:
    """The model in the mode for predictions, without gradients; then all its parts in the modes that they were in."""
    modes = [(part, part.training) for part in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        if modes[0][1]:
            model.train()
        for part, training in modes:
            part.training = training


def rows_beside(like: Tensor, rows: Any, width: int | None = None) -> Tensor:
    """[B, p]: rows as a finite tensor beside `like`, of as many columns as are wanted."""
    values = rows if isinstance(rows, torch.Tensor) else np.asarray(rows, dtype=np.float64)
    tensor = torch.as_tensor(values, dtype=like.dtype, device=like.device)
    if tensor.ndim != 2 or width not in (None, tensor.shape[1]):
        raise ValueError(f"rows must be [B, {width or 'p'}], as the model has them; got {list(tensor.shape)}")
    if not bool(tensor.isfinite().all()):
        raise ValueError("rows must be finite; some are NaN or infinite")
    return tensor
