"""What an ensemble of networks may be, and how each kind predicts a batch.

Sizes: b rows of a batch, K members, C classes, d outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import torch
from torch import nn

from stakes.models.networks.batches import Batch, called

Predict: TypeAlias = Callable[[Batch], torch.Tensor]
"""From a batch to what K members give for it: [K, b, C], or means [K, b(, d)]."""


@runtime_checkable
class NetworkMembers(Protocol):
    """K networks that predict together, in the same order each time, each the same function of a row each time."""

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
            raise ValueError("an ensemble needs at least one network; got none")
        for each in self.modules:
            if not isinstance(each, nn.Module):
                raise TypeError(f"members must all be networks (torch.nn.Module); got {type(each).__name__}")
        if len(places := {str(each.device) for module in self.modules for each in module.parameters()}) > 1:
            raise ValueError(f"all members must be on one device; got {sorted(places)}")

    def like(self) -> torch.Tensor | None:
        """The first parameter of the first module that has one."""
        return next((each for module in self.modules for each in module.parameters()), None)

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """One module after the other."""
        yield lambda batch: stacked([called(module, batch) for module in self.modules])


@dataclass(frozen=True, eq=False)
class StackedNetworks:
    """One module and the parameters of K networks of its kind, stacked: `torch.func.stack_module_state(networks)`.

    All members are run at once by `torch.vmap`.
    """

    module: nn.Module
    parameters: Mapping[str, torch.Tensor]
    """Each [K, ...]."""
    buffers: Mapping[str, torch.Tensor]
    """Each [K, ...]."""

    def __post_init__(self) -> None:
        lengths = {len(each) if each.ndim else 0 for each in (*self.parameters.values(), *self.buffers.values())}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(
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
            return called(lambda *rows, **named: torch.func.functional_call(self.module, state, rows, named), batch)

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
        yield lambda batch: called(self.function, batch)


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
        raise ValueError(f"all members must give the same shape; got {sorted(map(list, shapes))}")
    return torch.stack(outputs)
