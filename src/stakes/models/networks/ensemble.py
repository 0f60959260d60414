"""An ensemble of networks as a belief: predicted in batches, kept on the device, in a chosen precision.

Sizes: n rows, b rows of a batch, K members, C classes, d outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import torch
from torch import nn

from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts, register_list, register_model
from stakes.models.ensembles import prepare_table
from stakes.models.networks.dropout import Dropout
from stakes.models.networks.laplace import LastLayer
from stakes.models.networks.members import StackedNetworks, as_members, batches, count_rows, in_evaluation


@dataclass(frozen=True, eq=False)
class NetworkEnsemble:
    """Networks that predict classes, or with `noise_sd` the mean of a real target.

    Args:
        members: A list of modules, each of which gives [n, C] (means: [n], or [n, d] for vectors); `StackedNetworks`;
            `Dropout`; what `last_layer_laplace` gives; or a module or function that gives [K, n, C] ([K, n],
            [K, n, d]) itself, members in the same order each time. One logit alone is that of the second of two
            classes.
        output: "logits" or "probabilities": what is given for classes.
        classes: The classes of the columns; None: 0 .. C - 1.
        noise_sd: The sd of labels about a member's mean: a number, or one for each of d outputs. None for classes, and
            for a last layer that was fitted with it.
        member_weights: [K]; None: equal.
        device: Where rows are sent for a function without parameters; networks are sent rows where they are.
        dtype: The precision in which predictions are kept; None: that of the network, but float32 at least.
        batch_size: Rows that are predicted at a time.
        prepare: From some rows to what the network takes: a tensor, a tuple of them, or a dict by the names of
            arguments.

    Raises:
        StakesError: If an argument is not one of those, or the networks are on another device.
        TypeError: If `dtype` is no floating dtype of torch.

    Examples:
        >>> import torch
        >>> from stakes import LogLoss, rank
        >>> networks = [torch.nn.Linear(3, 2) for _ in range(5)]
        >>> model = NetworkEnsemble(networks, dtype=torch.float64)
        >>> len(rank(model, LogLoss(), pool=torch.randn(20, 3), n=2).indices)
        2
    """

    members: Any
    _: KW_ONLY
    output: Literal["logits", "probabilities"] = "logits"
    classes: Sequence[Any] | None = None
    noise_sd: Any = None
    member_weights: Any = None
    device: Any = None
    dtype: torch.dtype | None = None
    batch_size: int = 256
    prepare: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.output not in ("logits", "probabilities"):
            raise StakesError(
                f"output must be 'logits' or 'probabilities', or means with noise_sd; got {self.output!r}"
            )
        if _noise(self) is not None and self.classes is not None:
            raise StakesError("give classes for networks that classify, or noise_sd for networks of means; got both")
        if not isinstance(self.batch_size, int) or self.batch_size < 1:
            raise StakesError(f"batch_size must be a whole number, 1 or more; got {self.batch_size!r}")
        if self.dtype not in (None, torch.float16, torch.bfloat16, torch.float32, torch.float64):
            raise TypeError(
                f"dtype must be a floating dtype of torch such as torch.float16, of 16 bits or more; got {self.dtype!r}"
            )
        like = as_members(self.members).like()
        if self.device is not None and like is not None and not _is_at(like, torch.device(self.device)):
            raise StakesError(f"the networks are on {like.device}: move them to {self.device} yourself, by network.to")

    @property
    def classes_(self) -> Sequence[Any] | None:
        """The classes of the columns, where they have names."""
        return self.classes


def _is_at(tensor: torch.Tensor, device: torch.device) -> bool:
    """Whether a tensor is on a device, any of its kind where no number is given."""
    return tensor.device.type == device.type and device.index in (None, tensor.device.index)


def _noise(model: NetworkEnsemble) -> Any:
    """The noise sd that is given, or that a last layer was fitted with; None for classes."""
    known = model.members.noise_sd if isinstance(model.members, LastLayer) else None
    return known if model.noise_sd is None else model.noise_sd


@adapts(NetworkEnsemble)
def _prepare(model: NetworkEnsemble, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    noise = _noise(model)
    targets, known = _predicted(model, contexts, noise is None), None
    if noise is None:
        known = range(targets.shape[2]) if model.classes is None else model.classes
    prepared = prepare_table(
        targets, target=target, classes=classes, known=known, noise_sd=noise, weights=model.member_weights
    )
    return lambda rows: prepared(_predicted(model, rows, noise is None))


def _of_networks(model: Any, contexts: Any, **options: Any) -> RowsToBelief:
    """Networks as they come: they give logits of the classes 0 .. C - 1."""
    return _prepare(NetworkEnsemble(model), contexts, **options)


for _kind in (nn.Module, StackedNetworks, Dropout, LastLayer):
    register_model(_kind, _of_networks)
register_list(nn.Module, _of_networks)


def _predicted(model: NetworkEnsemble, rows: Any, of_classes: bool) -> torch.Tensor:
    """[n, K, C], or means [n, K(, d)]: each batch written into one table."""
    members = as_members(model.members)
    table: torch.Tensor | None = None
    # no_grad, not inference mode: what a network may keep from one call to the next must serve its training after.
    with torch.no_grad(), in_evaluation(members.modules), members.predicting() as predict:
        for part, batch in batches(rows, model.batch_size, model.prepare, members.like(), model.device):
            values = predict(batch)  # [K, b, ...]
            _check_output(values, part.stop - part.start, of_classes)
            values = _probabilities(values, model.output) if of_classes else _means(values)
            values = values.transpose(0, 1)  # [b, K, ...]
            if table is None:
                dtype = model.dtype or torch.promote_types(values.dtype, torch.float32)
                table = torch.empty((count_rows(rows), *values.shape[1:]), dtype=dtype, device=values.device)
            table[part] = values
    assert table is not None  # there is at least one batch, be it empty
    _check_numbers(table)
    return table


def _check_numbers(table: torch.Tensor) -> None:
    """Refused here, as the advice of beliefs, to impute rows, is none where a network is at fault."""
    bad = ~table.isfinite().flatten(1).all(dim=1)
    if bool(bad.any()):
        raise StakesError(
            f"the members must give finite numbers; for {int(bad.sum())} of {len(table)} rows some give NaN or "
            "infinity. Look for training that diverged, rows in other units, or numbers beyond the range of the dtype."
        )


def _check_output(values: torch.Tensor, size: int, of_classes: bool) -> None:
    wanted = f"[K, {size}, C]" if of_classes else f"[K, {size}] or [K, {size}, d]"
    if values.ndim not in ((3,) if of_classes else (2, 3)) or values.shape[1] != size:
        if values.ndim in (2, 3) and values.shape[0] == size != values.shape[1] and values.ndim == 3 - (not of_classes):
            raise StakesError(
                f"the members must give {wanted} for {size} rows, members first; got {list(values.shape)}, rows first. "
                "Give torch.swapaxes(x, 0, 1) of it."
            )
        raise StakesError(
            f"the members must give {wanted} for {size} rows; got {list(values.shape)}. One network alone is no "
            "ensemble: give a list of networks, Dropout(network), or last_layer_laplace(network, rows). Means need "
            "NetworkEnsemble(..., noise_sd=...)."
        )


def _probabilities(values: torch.Tensor, output: str) -> torch.Tensor:
    """[K, b, C]: in single precision at least; one logit alone is beside one of 0."""
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    if output == "probabilities":
        return values
    if values.shape[2] == 1:
        values = torch.cat([torch.zeros_like(values), values], dim=2)
    return torch.softmax(values, dim=2)


def _means(values: torch.Tensor) -> torch.Tensor:
    """[K, b], or [K, b, d] for more than one output."""
    return values[..., 0] if values.ndim == 3 and values.shape[2] == 1 else values
