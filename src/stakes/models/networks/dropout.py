"""MC dropout: a network with dropout left on is an ensemble, each member the network under one set of masks.

A member must be one function, so that what a label says of a row says the same of every context: its masks are drawn
once, from `random_state`, and are the same for all rows, batches and calls. Sizes: b rows of a batch, K draws.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd
from torch.overrides import TorchFunctionMode

from stakes._utils.arguments import RandomState, as_seed
from stakes.exceptions import StakesError
from stakes.models.networks.members import Batch, Predict, call_network, stacked

_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)  # drop whole channels, axis 1
_SELU = (nn.AlphaDropout, nn.FeatureAlphaDropout)
_FUNCTIONS = 2**16  # the place of all calls of functions: no network has as many layers
_CALLED = {  # functions, whether each drops whole channels, and whether it is made for SELU
    functional.dropout: (False, False),
    functional.alpha_dropout: (False, True),
    functional.dropout1d: (True, False),
    functional.dropout2d: (True, False),
    functional.dropout3d: (True, False),
    functional.feature_alpha_dropout: (True, True),
}
_ALPHA = -1.0507009873554805 * 1.6732632423543772  # where SELU saturates: what a unit that is dropped is set to


@dataclass(frozen=True, eq=False)
class Dropout:
    """One network under several sets of dropout masks; all layers but dropout are in evaluation mode.

    The rows must be the first axis of what dropout is given. Dropout called as a function in `forward`
    (`torch.nn.functional.dropout` and its kin) is masked as a layer is, whatever its `training` says; dropout inside a
    recurrent layer, or of attention (`dropout_p`), is neither and stays off.

    Args:
        module: A network with dropout layers.
        draws: The number K of sets of masks.
        random_state: A whole number or a generator, which decides the masks.

    Raises:
        StakesError: If the network has no dropout, or `draws` is no whole number of 1 or more.
        TypeError: If the module is no network.

    Examples:
        >>> import torch
        >>> from stakes.models import belief_of
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        >>> belief = belief_of(Dropout(network, draws=10), torch.zeros(4, 3), torch.zeros(6, 3))
        >>> belief.candidates.shape
        torch.Size([4, 10, 2])
    """

    module: nn.Module
    _: KW_ONLY
    draws: int = 30
    random_state: RandomState = 0

    def __post_init__(self) -> None:
        if not isinstance(self.module, nn.Module):
            raise TypeError(f"Dropout needs a network (torch.nn.Module); got {type(self.module).__name__}")
        if not isinstance(self.draws, int) or self.draws < 1:
            raise StakesError(f"draws must be a whole number, 1 or more; got {self.draws!r}")
        object.__setattr__(self, "random_state", as_seed(self.random_state))
        if not _layers(self.module) and not _may_call(self.module):
            raise StakesError(
                f"{type(self.module).__name__} has no dropout layer (nn.Dropout and its kin) with p above 0, and no "
                "`forward` in it names dropout: all draws would be the same."
            )

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The network."""
        return (self.module,)

    def like(self) -> torch.Tensor | None:
        """The first parameter."""
        return next(self.module.parameters(), None)

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """One draw after the other; the hooks that mask are taken away afterwards."""
        masks = _Masks(as_seed(self.random_state))
        with ExitStack() as hooks:
            for place, layer in enumerate(_layers(self.module)):
                for handle in (
                    layer.register_forward_pre_hook(masks.enter),
                    layer.register_forward_hook(partial(masks.masked, place)),
                ):
                    hooks.callback(handle.remove)
            hooks.enter_context(_Functions(masks))
            yield lambda batch: stacked([self._draw(masks, k, batch) for k in range(self.draws)])

    def _draw(self, masks: _Masks, draw: int, batch: Batch) -> torch.Tensor:
        masks.begin(draw, _size(batch))
        output = call_network(self.module, batch)
        if not masks.calls:
            raise StakesError(f"no dropout of {type(self.module).__name__} is called in `forward`: nothing varies")
        return output


class _Masks:
    """The masks of one network, each drawn when it is first needed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.draw, self.size = seed, 0, 0
        self.calls: Counter[int] = Counter()
        self.drawn: dict[tuple[Any, ...], torch.Tensor] = {}
        self.inside = False  # of a dropout layer, whose own call of the function is not another dropout

    def begin(self, draw: int, size: int) -> None:
        """From here the network is run under the masks of one draw, on `size` rows."""
        self.draw, self.size, self.calls, self.inside = draw, size, Counter(), False

    def enter(self, *_: Any) -> None:
        """A dropout layer is called."""
        self.inside = True

    def masked(self, place: int, layer: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
        """What a dropout layer gives in place of its `output`, which in evaluation mode is its input."""
        self.inside = False
        return self.dropped(place, output, layer.p, isinstance(layer, _CHANNELS), isinstance(layer, _SELU))

    def dropped(self, place: int, output: torch.Tensor, p: float, channels: bool, selu: bool) -> torch.Tensor:
        """Numbers, or whole channels, dropped with probability p: in the same places for all rows."""
        if output.ndim < 2 or output.shape[0] != self.size:
            raise StakesError(
                f"dropout is given {list(output.shape)} for {self.size} rows: the rows must be its first axis, so that "
                "all of them can have the same mask"
            )
        shape = tuple(output.shape[1:])
        if channels:
            shape = (shape[0], *(1 for _ in shape[1:]))
        return _dropped(output, self._mask(place, shape, p, output.device), p, selu)

    def _mask(self, place: int, shape: tuple[int, ...], p: float, device: Any) -> torch.Tensor:
        """True where a number is kept. Drawn row by row, so that a longer text has the mask of a shorter one."""
        key = (self.draw, place, self.calls[place], shape)
        self.calls[place] += 1  # a layer that is called twice has two masks
        if key not in self.drawn:
            uniform = np.random.default_rng([self.seed, *key[:3]]).random(shape)
            self.drawn[key] = torch.as_tensor(uniform >= p, device=device)
        return self.drawn[key]


class _Functions(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Meanwhile dropout that is called as a function has the masks of the draw."""

    def __init__(self, masks: _Masks) -> None:
        self.masks = masks

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        if func not in _CALLED or self.masks.inside:
            return func(*args, **named)
        values = args[0] if args else named["input"]
        p = float(named.get("p", args[1] if len(args) > 1 else 0.5))
        if p == 0:
            return values
        return self.masks.dropped(_FUNCTIONS, values, p, *_CALLED[func])


def _dropped(values: torch.Tensor, kept: torch.Tensor, p: float, selu: bool) -> torch.Tensor:
    """As dropout does in training: what is kept is scaled so that means (for SELU also variances) stay."""
    if selu:
        scale = 1.0 / math.sqrt((1.0 - p) * (1.0 + p * _ALPHA**2)) if p < 1 else 0.0
        return scale * (torch.where(kept, values, torch.full_like(values, _ALPHA)) - _ALPHA * p)
    return values * kept / (1.0 - p) if p < 1 else torch.zeros_like(values)


def _may_call(module: nn.Module) -> bool:
    """Whether code of a network, or of a part of it that is no dropout layer, names dropout."""
    kinds = {type(each) for each in module.modules() if not isinstance(each, _DropoutNd)}
    own = {kind for each in kinds for kind in each.__mro__ if not kind.__module__.startswith("torch.nn.")}
    codes = [each.__code__ for kind in own for each in vars(kind).values() if hasattr(each, "__code__")]
    return any("dropout" in name for code in codes for name in (*code.co_names, *code.co_varnames))


def _layers(module: nn.Module) -> list[nn.Module]:
    return [each for each in module.modules() if isinstance(each, _DropoutNd) and each.p > 0]


def _size(batch: Batch) -> int:
    if isinstance(batch, dict):
        batch = tuple(batch.values())
    return len(batch[0] if isinstance(batch, tuple) else batch)
