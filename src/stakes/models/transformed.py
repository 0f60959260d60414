"""Models of a transformed label: from what they believe of the transformed one to the label itself.

Sizes: M contexts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer
from sklearn.utils.validation import check_is_fitted

from stakes._array import Array, namespace
from stakes.beliefs import Belief, BoxCoxWarp, GaussianBelief, LogWarp, Warp, WarpedGaussianBelief
from stakes.domains import REAL, Interval
from stakes.models.base import Request, adapt, adapts
from stakes.models.monotone import affine_map, monotone_belief
from stakes.models.units import rescaled, rescaled_normal


@adapts(TransformedTargetRegressor)
def _transformed(model: TransformedTargetRegressor, pool: Any, contexts: Any, request: Request) -> Belief:
    """Of the regressor's belief about the transformed label: warped, or of its own kind where the map is affine.

    Scalers are affine; np.log, np.sqrt and power transformers have warps of their own; any other map is taken as it is
    if it rises (or falls) strictly over 4 standard deviations about every context and nowhere turns within 20, which a
    grid of 2001 points tells. With target="latent", z is the map of the function behind the transformed label.
    """
    check_is_fitted(model)
    return untransformed(adapt(model.regressor_, pool, contexts, request), model.transformer_)


def untransformed(belief: Belief, transformer: Any) -> Belief:
    """The belief about labels of which `belief` is about the transformed ones."""
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    while steps and (affine := affine_map(steps[-1])) is not None:
        belief = rescaled(belief, *affine)
        steps.pop()
    if not steps:
        return belief
    if not isinstance(belief, GaussianBelief):
        raise TypeError(
            f"only a Gaussian belief about one output can be seen through {steps[-1]}; this regressor gives a "
            f"{type(belief).__name__}. Use an affine transformer, such as StandardScaler(), or a Gaussian regressor."
        )
    if len(steps) == 1 and (known := _warp(steps[0])) is not None:
        to_warp, warp = known
        return WarpedGaussianBelief(rescaled_normal(belief, *to_warp), warp)
    _refuse_flat(steps)
    return monotone_belief(belief, steps)


def _warp(step: Any) -> tuple[tuple[float, float], Warp] | None:
    """The affine map (a, b) to what a warp starts from, and that warp; None where it is not one of those known."""
    if isinstance(step, FunctionTransformer) and not step.kw_args and not step.inv_kw_args:
        if step.func is np.log and step.inverse_func is np.exp:
            return (0.0, 1.0), LogWarp()
        if step.func is np.sqrt and step.inverse_func is np.square:
            return (-2.0, 2.0), BoxCoxWarp(0.5)  # (z^(1/2) - 1) / (1/2)
    if isinstance(step, PowerTransformer):
        lam = float(step.lambdas_[0])
        affine = affine_map(step._scaler if step.standardize else None)
        return affine or (0.0, 1.0), BoxCoxWarp(lam) if step.method == "box-cox" else YeoJohnsonWarp(lam)
    return None


def _refuse_flat(steps: list[Any]) -> None:
    if any(isinstance(step, QuantileTransformer) for step in steps):
        raise ValueError(
            "a QuantileTransformer cannot be undone beyond the smallest and largest label so far: all that lies there "
            "becomes one label. Use PowerTransformer(), or func=np.log with inverse_func=np.exp."
        )


@dataclass(frozen=True)
class YeoJohnsonWarp:
    """The inverse of ((z + 1)^lam - 1) / lam for z >= 0 and -((1 - z)^(2 - lam) - 1) / (2 - lam) for z < 0.

    With lam in [0, 2] it maps all reals onto all reals; beyond, it is continued as BoxCoxWarp is.
    """

    lam: float
    domain: Interval = field(default=REAL, init=False, repr=False)

    @property
    def latent(self) -> Interval:
        """Where both powers are of positive numbers."""
        above, below = self._sides()
        return Interval(low=-below.latent.high, high=above.latent.high)

    def _sides(self) -> tuple[BoxCoxWarp, BoxCoxWarp]:
        return BoxCoxWarp(self.lam), BoxCoxWarp(2.0 - self.lam)

    def forward(self, f: Array) -> Array:
        """Z."""
        xp, (above, below), zero = namespace(f), self._sides(), 0.0 * f
        up, down = xp.where(f > 0, f, zero), xp.where(f < 0, -f, zero)
        return xp.where(f < 0, 1.0 - below.forward(down), above.forward(up) - 1.0)

    def inverse(self, z: Array) -> Array:
        """F."""
        xp, (above, below), zero = namespace(z), self._sides(), 0.0 * z
        up, down = xp.where(z > 0, z, zero), xp.where(z < 0, -z, zero)
        return xp.where(z < 0, -below.inverse(1.0 + down), above.inverse(1.0 + up))
