"""A Gaussian over the weights of the last layer (Laplace): draws of it are the members.

The curvature of cross entropy or squared error in the weights of the last linear layer is exact and does not depend on
the labels: sum_n Lambda_n (x) phi_n phi_n', with features phi_n and Lambda_n = diag(p) - p p' (1 / noise^2 for means).
Sizes: n rows, b rows of a batch, K draws, C outputs, h features (and one for the bias), P = C h weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn

from stakes._utils.arguments import RandomState, as_generator
from stakes.exceptions import StakesError
from stakes.models.ensembles import checked_noise
from stakes.models.networks.members import Batch, Predict, batches, call_network, in_evaluation


@dataclass(frozen=True, eq=False)
class LastLayer:
    """A network whose last linear layer is replaced by each of K draws of its weights; see `last_layer_laplace`.

    Args:
        module: The network.
        layer: Its last linear layer.
        weights: [K, C, h]: the draws; the bias, where there is one, last.
        noise_sd: The sd of labels about means; None for classes.

    Examples:
        >>> import torch
        >>> from stakes.models.networks import last_layer_laplace
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> model = last_layer_laplace(network, torch.randn(50, 3), draws=10)  # a LastLayer
        >>> model.weights.shape  # eight weights and a bias for each of two classes
        torch.Size([10, 2, 9])
    """

    module: nn.Module
    layer: nn.Linear
    weights: torch.Tensor
    noise_sd: Any = None

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The network."""
        return (self.module,)

    def like(self) -> torch.Tensor | None:
        """The weights of the layer that is replaced."""
        return self.layer.weight

    @contextmanager
    def predicting(self) -> Iterator[Predict]:
        """The network once, and all draws on its features."""
        with _features_of([self.layer]) as seen:

            def predict(batch: Batch) -> torch.Tensor:
                call_network(self.module, batch)
                features = _extended(self.layer, seen[-1][1]).to(self.weights.dtype)
                return torch.einsum("bh,kch->kbc", features, self.weights)

            yield predict


def last_layer_laplace(
    module: nn.Module,
    rows: Any,
    *,
    prior_precision: float = 1.0,
    noise_sd: Any = None,
    draws: int = 50,
    random_state: RandomState = 0,
    batch_size: int = 256,
    prepare: Callable[[Any], Any] | None = None,
) -> LastLayer:
    """Draws of the last linear layer of a trained network: from N(its weights, (curvature at `rows` + prior)^-1).

    Args:
        module: The network, which must end in the layer. It gives logits, or with `noise_sd` means.
        rows: The rows [n, ...] it was trained on.
        prior_precision: That of each weight and bias: the weight decay of training on the sum of losses over rows.
        noise_sd: The sd of labels about means, a number or one for each output; None for classes.
        draws: The number K of draws.
        random_state: A whole number or a generator, which decides the draws.
        batch_size: Rows that go through the network at a time.
        prepare: From some rows to what the network takes; None: rows as they are.

    Returns:
        The draws, which `belief_of`, `rank` and `NetworkEnsemble` take.

    Raises:
        StakesError: If the network does not end in a linear layer, or an argument is out of range.

    Examples:
        >>> import torch
        >>> from stakes.models import belief_of
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> model = last_layer_laplace(network, torch.randn(50, 3), draws=10)
        >>> belief_of(model, torch.zeros(4, 3), torch.zeros(6, 3)).candidates.shape
        torch.Size([4, 10, 2])
    """
    if not (isinstance(prior_precision, Real) and 0 < prior_precision < math.inf):
        raise StakesError(f"prior_precision must be a number, positive and finite; got {prior_precision!r}")
    if not isinstance(draws, int) or draws < 1:
        raise StakesError(f"draws must be a whole number, 1 or more; got {draws!r}")
    noise = None if noise_sd is None else checked_noise(noise_sd)
    linear = [each for each in module.modules() if isinstance(each, nn.Linear)]
    if not linear:
        raise StakesError(f"{type(module).__name__} has no nn.Linear layer, which must be its last")
    with torch.no_grad(), in_evaluation([module]):
        parts = batches(rows, batch_size, prepare, linear[0].weight, None)
        layer, precision = _curvature(module, linear, (batch for _, batch in parts), noise)
        precision += prior_precision * torch.eye(len(precision), dtype=precision.dtype, device=precision.device)
        mean = _extended_weights(layer)  # [C, h]
        deviations = _deviations(precision, draws, as_generator(random_state)).reshape(draws, *mean.shape)
        dtype = torch.promote_types(layer.weight.dtype, torch.float32)  # half precision would round draws away
        return LastLayer(module, layer, (mean + deviations).to(dtype), noise_sd)


def _curvature(module: nn.Module, linear: list[nn.Linear], parts: Any, noise: Any) -> tuple[nn.Linear, torch.Tensor]:
    """The last layer that was called, and [P, P] in double precision."""
    total: Any = 0.0
    with _features_of(linear) as seen:
        for batch in parts:
            output = call_network(module, batch)
            layer, features, outputs = seen[-1]
            _check_last(output, outputs)
            total = total + _batch_curvature(_extended(layer, features).double(), outputs.double(), noise)
    return layer, total


def _batch_curvature(features: torch.Tensor, outputs: torch.Tensor, noise: Any) -> torch.Tensor:
    """[P, P]: sum_n Lambda_n (x) phi_n phi_n', one row of Lambda at a time; weights in the order of [C, h]."""
    curvature = _output_curvature(outputs, noise)  # [b, C, C]
    blocks = [
        features.T @ (curvature[:, c, :, None] * features[:, None, :]).flatten(1)  # [h, C h]
        for c in range(outputs.shape[1])
    ]
    return torch.cat(blocks)


def _output_curvature(outputs: torch.Tensor, noise: Any) -> torch.Tensor:
    """[b, C, C]: of the loss in what the network gives; one logit alone is beside one of 0."""
    if noise is not None:
        precision = torch.as_tensor(1.0 / np.broadcast_to(noise, outputs.shape[1]) ** 2, device=outputs.device)
        return torch.diag(precision).expand(len(outputs), -1, -1)
    if outputs.shape[1] == 1:
        p = torch.sigmoid(outputs)[..., None]
        return p * (1.0 - p)
    p = torch.softmax(outputs, dim=1)
    return torch.diag_embed(p) - p[:, :, None] * p[:, None, :]


def _deviations(precision: torch.Tensor, draws: int, random_state: np.random.Generator) -> torch.Tensor:
    """[K, P]: draws from N(0, precision^-1), by the Cholesky factor L: L' d = e."""
    normal = random_state.standard_normal((len(precision), draws))
    factor = torch.linalg.cholesky(precision)
    right = torch.as_tensor(normal, device=precision.device)
    solved: torch.Tensor = torch.linalg.solve_triangular(factor.T, right, upper=True)  # [P, K]
    return solved.T


@contextmanager
def _features_of(layers: list[nn.Linear]) -> Iterator[list[tuple[nn.Linear, torch.Tensor, torch.Tensor]]]:
    """A list that holds, of the last call of one of the layers, which it is, what it is given and what it gives."""
    seen: list[tuple[nn.Linear, torch.Tensor, torch.Tensor]] = []

    def note(layer: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        seen[:] = [(layer, inputs[0], output)]  # the last call alone: others need not be kept

    with ExitStack() as hooks:
        for each in layers:
            hooks.callback(each.register_forward_hook(note).remove)
        yield seen


def _check_last(output: torch.Tensor, outputs: torch.Tensor) -> None:
    if (
        outputs.ndim != 2
        or output.numel() != outputs.numel()
        or not torch.equal(output.reshape(outputs.shape), outputs)
    ):
        raise StakesError(
            "the network must end in its last nn.Linear, which gives a row [C] of logits or means for each row; what "
            f"that layer gives is {list(outputs.shape)}, the network {list(output.shape)}, and they differ"
        )


def _extended(layer: nn.Linear, features: torch.Tensor) -> torch.Tensor:
    """[b, h]: features, with a 1 for the bias."""
    return features if layer.bias is None else torch.cat([features, torch.ones_like(features[:, :1])], dim=1)


def _extended_weights(layer: nn.Linear) -> torch.Tensor:
    """[C, h]: weights and bias in double precision."""
    parts = [layer.weight] if layer.bias is None else [layer.weight, layer.bias[:, None]]
    return torch.cat(parts, dim=1).double()
