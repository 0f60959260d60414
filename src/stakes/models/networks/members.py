"""What an ensemble of networks may be, how each kind predicts a batch, and rows on their way to a network.

Rows go in batches, prepared, on the network's device and in its precision; a `torch.utils.data.Dataset` may be the
pool. Networks are put into evaluation mode for a while, and put back. Modes and hooks belong to the module, which
threads that rank may share: one of them at a time.

Sizes: N rows of a pool, n rows, b rows of a batch, K members, C classes, d outputs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler, default_collate

from stakes._utils.array import on_host, slices
from stakes._utils.tables import n_rows, take_rows
from stakes._utils.text import listed
from stakes.exceptions import StakesError

Batch: TypeAlias = Any
"""What a network is called with: a tensor, a tuple of tensors, or a dict of tensors by the names of its arguments."""
Predict: TypeAlias = Callable[[Batch], torch.Tensor]
"""From a batch to what K members give for it: [K, b, C], or means [K, b(, d)]."""

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def in_evaluation(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Meanwhile evaluation mode, for one thread; afterwards, whatever happens, the mode that each part had."""
    with _ONE_AT_A_TIME:
        before = [(part, part.training) for module in modules for part in module.modules()]
        try:
            for module in modules:
                module.eval()
            yield
        finally:
            for part, training in before:
                part.training = training


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


@dataclass
class Heads:
    """How networks answer while they predict: whether two tensors are a mean and a variance, and whether any did so."""

    pairs: bool
    seen: bool = False


_HEADS: ContextVar[Heads | None] = ContextVar("heads", default=None)
_MEANS = ("mean", "mu", "loc")
_SPREADS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {  # names of the second head, and its variance
    **dict.fromkeys(("variance", "var"), lambda head: head),
    **dict.fromkeys(("log_variance", "log_var", "logvar"), torch.exp),
    **dict.fromkeys(("sd", "std", "stddev", "sigma", "scale"), torch.square),
}


@contextmanager
def reading_heads(pairs: bool) -> Iterator[Heads]:
    """Meanwhile two tensors that a network gives are a mean and a variance (`pairs`), and whether any did is seen."""
    heads = Heads(pairs)
    token = _HEADS.set(heads)
    try:
        yield heads
    finally:
        _HEADS.reset(token)


def call_network(function: Callable[..., Any], batch: Batch) -> torch.Tensor:
    """What a network or function gives for a batch; the `logits` where it gives an object or a dict that has them.

    [b, 2], a mean and a variance, where it gives these by name, or a distribution that has them.
    """
    if isinstance(batch, Mapping):
        output = function(**batch)
    else:
        output = function(*batch) if isinstance(batch, tuple) else function(batch)
    output = getattr(output, "logits", output)
    if isinstance(output, Mapping) and "logits" in output:
        output = output["logits"]
    if isinstance(output, torch.Tensor):
        return output
    heads, found = _HEADS.get(), _mean_and_variance(output)
    if found is None or heads is None:
        raise TypeError(_wanted(output))
    heads.seen = True
    return _joined(*found)


def _mean_and_variance(output: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Both, from a dict by name, a distribution, or a pair of tensors where that was said."""
    if isinstance(output, tuple | list):
        heads = _HEADS.get()
        both = len(output) == 2 and all(isinstance(each, torch.Tensor) for each in output)
        return (output[0], output[1]) if both and heads is not None and heads.pairs else None
    known = (
        output
        if isinstance(output, Mapping)
        else {
            name: getattr(output, name)
            for name in ("mean", "variance")
            if isinstance(getattr(output, name, None), torch.Tensor)
        }
    )
    means = [known[name] for name in _MEANS if name in known]
    variances = [variance(known[name]) for name, variance in _SPREADS.items() if name in known]
    return (means[0], variances[0]) if means and variances else None


def _joined(mean: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
    """[b, 2]: side by side."""
    flat = [each[..., 0] if each.ndim == 2 and each.shape[-1] == 1 else each for each in (mean, variance)]
    if flat[0].ndim != 1 or flat[0].shape != flat[1].shape:
        raise StakesError(
            "a mean and a variance must be one number each for every row, [n] or [n, 1]; got "
            f"{list(mean.shape)} and {list(variance.shape)}. Give one output at a time."
        )
    return torch.stack(flat, dim=-1)


def _wanted(output: Any) -> str:
    """What a network should have given in place of this, and how to get it."""
    needs = "a network must give a tensor, an object or a dict with a tensor `logits`, or a mean and a variance by name"
    if isinstance(output, Mapping):
        keys = listed(map(repr, output))
        return f"{needs}; got a dict of {keys}. Wrap it in a module whose forward gives the one that is meant."
    if isinstance(output, tuple | list):
        return (
            f"{needs}; got {len(output)} values ({listed(type(each).__name__ for each in output)}). If they are a mean "
            "and a variance, give NetworkEnsemble(networks, output='normal'), where networks may be Dropout(network), "
            "too; else wrap it in a module that gives one."
        )
    return f"{needs}; got {type(output).__name__}"


@dataclass(frozen=True, eq=False)
class DatasetPool:
    """A dataset as a `stakes.ranking.Pool`: its items are made into rows when they are asked for.

    Args:
        dataset: A `Dataset` with a length, or a `DataLoader` of one, which stands for its dataset, with its way to
            collate and its worker processes; its batches may be of any size, but their order must be that of the
            dataset.
        inputs: Which part of a collated batch is the input: a position, a key, or keys of a dict; None: all of it. The
            others, such as the label, are left out.
        collate: From a list of items to a batch; None: that of the loader, or `torch.utils.data.default_collate`.
        workers: Processes that read items while others are scored.

    Raises:
        StakesError: If a loader mixes the rows.
        TypeError: If rows cannot be asked for by position.

    Examples:
        >>> import torch
        >>> from torch.utils.data import TensorDataset
        >>> images = TensorDataset(torch.zeros(10, 1, 8, 8), torch.zeros(10))
        >>> pool = DatasetPool(images, inputs=0)
        >>> pool.n_rows, [tuple(rows.shape) for _, rows in pool.chunks(6)]
        (10, [(6, 1, 8, 8), (4, 1, 8, 8)])
    """

    dataset: Any
    _: KW_ONLY
    inputs: int | str | list[str] | None = None
    collate: Callable[[list[Any]], Any] | None = None
    workers: int = 0

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
        """The number N of rows."""
        return len(self.dataset)

    def chunks(self, size: int) -> Iterator[tuple[int, Any]]:
        """Read the rows in chunks.

        Args:
            size: The most rows of a chunk.

        Yields:
            Where each chunk begins, and its rows.
        """
        start, own = 0, torch.Generator()  # a loader draws a seed for its workers: not from the user's numbers
        loader = DataLoader(
            self.dataset, size, num_workers=self.workers, collate_fn=self._rows, generator=own.manual_seed(0)
        )
        for rows in loader:
            yield start, rows
            start = min(start + size, self.n_rows)

    def take(self, rows: Any) -> Any:
        """Read some rows.

        Args:
            rows: Their positions.

        Returns:
            The rows, in that order.
        """
        return self._rows([self.dataset[int(row)] for row in np.asarray(rows)])

    def _rows(self, items: list[Any]) -> Any:
        """A tensor [n, ...], a dict of tensors, or a list of texts."""
        batch = (self.collate or default_collate)(items)
        if isinstance(self.inputs, list):
            return {name: batch[name] for name in self.inputs}
        rows = batch if self.inputs is None else batch[self.inputs]
        if isinstance(rows, list | tuple):
            if not all(isinstance(each, str) for each in rows):
                raise StakesError(
                    f"an item of the dataset has {len(rows)} parts: say which is the input, such as "
                    "DatasetPool(dataset, inputs=0) where the label comes second"
                )
            return list(rows)
        return rows


def _of_loader(loader: DataLoader[Any], collate: Any) -> dict[str, Any]:
    """What a pool takes over from a loader."""
    if not isinstance(loader.dataset, IterableDataset) and not isinstance(loader.sampler, SequentialSampler):
        raise StakesError(
            f"rows are told apart by their positions in the dataset, and a {type(loader.sampler).__name__} mixes them: "
            "give a loader with shuffle=False and no sampler, or the dataset itself"
        )
    return {"dataset": loader.dataset, "collate": collate or loader.collate_fn, "workers": loader.num_workers}


@runtime_checkable
class NetworkMembers(Protocol):
    """K networks that predict together, in the same order each time, each the same function of a row each time.

    Examples:
        >>> import torch
        >>> from stakes.models.networks import last_layer_laplace, NetworkMembers
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> isinstance(last_layer_laplace(network, torch.randn(50, 3), draws=10), NetworkMembers)
        True
    """

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """Those that must be in evaluation mode meanwhile."""

    def like(self) -> torch.Tensor | None:
        """A parameter, which says where and in which precision they compute; None where there is none."""

    def predicting(self) -> AbstractContextManager[Predict]:
        """While the context lasts, a function that predicts batches."""


@dataclass(frozen=True, eq=False)
class ListedNetworks:
    """Modules that each give [b, C], or means [b(, d)]."""

    modules: tuple[nn.Module, ...]

    def __post_init__(self) -> None:
        if not self.modules:
            raise StakesError("an ensemble needs at least one network; got none")
        for each in self.modules:
            if not isinstance(each, nn.Module):
                raise TypeError(f"members must all be networks (torch.nn.Module); got {type(each).__name__}")
        if len(places := {str(each.device) for module in self.modules for each in module.parameters()}) > 1:
            raise StakesError(f"all members must be on one device; got {sorted(places)}")

    def like(self) -> torch.Tensor | None:
        """The first parameter of the first module that has one."""
        return next((each for module in self.modules for each in module.parameters()), None)

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """One module after the other."""
        yield lambda batch: stacked([call_network(module, batch) for module in self.modules])


@dataclass(frozen=True, eq=False)
class StackedNetworks:
    """One module and the parameters of K networks of its kind, stacked: `torch.func.stack_module_state(networks)`.

    All members are run at once by `torch.vmap`.

    Args:
        module: A network, whose own parameters are not used.
        parameters: By name, each [K, ...].
        buffers: By name, each [K, ...].

    Raises:
        StakesError: If they are not stacked, with the same K.

    Examples:
        >>> import torch
        >>> from stakes.models import belief_of
        >>> networks = [torch.nn.Linear(3, 2) for _ in range(5)]
        >>> stacked = StackedNetworks(networks[0], *torch.func.stack_module_state(networks))
        >>> belief_of(stacked, torch.zeros(4, 3), torch.zeros(6, 3)).candidates.shape
        torch.Size([4, 5, 2])
    """

    module: nn.Module
    parameters: Mapping[str, torch.Tensor]
    buffers: Mapping[str, torch.Tensor]

    def __post_init__(self) -> None:
        lengths = {len(each) if each.ndim else 0 for each in (*self.parameters.values(), *self.buffers.values())}
        if len(lengths) != 1 or 0 in lengths:
            raise StakesError(
                "parameters and buffers must be stacked, [K, ...] with the same K of 1 or more for each, as "
                f"torch.func.stack_module_state gives them; got K of {sorted(lengths)}"
            )

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The module whose parameters are replaced."""
        return (self.module,)

    def like(self) -> torch.Tensor | None:
        """The first of the stacked parameters."""
        return next(iter(self.parameters.values()), None)

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """All members at once."""

        def one(parameters: Any, buffers: Any, batch: Batch) -> torch.Tensor:
            state = {**parameters, **buffers}
            return call_network(
                lambda *rows, **named: torch.func.functional_call(self.module, state, rows, named), batch
            )

        every = torch.vmap(one, in_dims=(0, 0, None))
        yield lambda batch: every(dict(self.parameters), dict(self.buffers), batch)


@dataclass(frozen=True, eq=False)
class OwnFunction:
    """A module or any function that gives what all members predict."""

    function: Callable[..., Any]

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The function itself where it is a module."""
        return (self.function,) if isinstance(self.function, nn.Module) else ()

    def like(self) -> torch.Tensor | None:
        """The first parameter of a module."""
        return next((each for module in self.modules for each in module.parameters()), None)

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """The function."""
        yield lambda batch: call_network(self.function, batch)


def as_members(members: Any) -> NetworkMembers:
    """The members that were given, in whichever way."""
    if isinstance(members, list | tuple | nn.ModuleList):
        return ListedNetworks(tuple(members))
    if isinstance(members, NetworkMembers):
        return members
    if callable(members):
        return OwnFunction(members)
    raise TypeError(
        "members must be a list of networks, StackedNetworks, Dropout, what last_layer_laplace gives, or a function "
        f"from rows to [K, n, C]; got {type(members).__name__}"
    )


def stacked(outputs: list[torch.Tensor]) -> torch.Tensor:
    """[K, b, ...]: what each of K members gives for the same batch."""
    if len(shapes := {tuple(each.shape) for each in outputs}) > 1:
        raise StakesError(f"all members must give the same shape; got {sorted(map(list, shapes))}")
    return torch.stack(outputs)
