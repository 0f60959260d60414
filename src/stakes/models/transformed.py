"""Models of a transformed label: from what they believe of the transformed one to the label itself.

Where the map is affine, the belief is of its own kind, in other units; else it is warped. Any increasing or decreasing
map of labels is a warp, after a look at whether it is one. Sizes: N candidates, M contexts, d outputs, G points of a
grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from stakes._utils.array import Array, namespace
from stakes.beliefs import (
    Belief,
    BoxCoxWarp,
    GaussianBelief,
    GaussianMixtureBelief,
    LogWarp,
    MonotoneWarp,
    NormalEnsemble,
    VectorGaussianBelief,
    Warp,
    WarpedGaussianBelief,
)
from stakes.exceptions import StakesError
from stakes.losses.domains import REAL, Interval
from stakes.models.base import RowsToBelief, adapts, prepare_belief
from stakes.models.sklearn_gaussian import Numbers

_Normal = TypeVar("_Normal", bound=GaussianBelief | GaussianMixtureBelief)
_NEAR, _FAR = 4.0, 20.0  # standard deviations about every context
_POINTS = 2001
_RETURN = 1e-6  # of the width of the grid: by how much a label may miss where it came from


@dataclass(frozen=True, eq=False)
class Steps:
    """A chain of transformers of one column, as maps of numbers."""

    steps: tuple[Any, ...]
    sign: float = 1.0
    """-1 turns a falling map into a rising one."""

    def undo(self, f: Numbers) -> Numbers:
        """[...]: the label of which sign f is the transform."""
        column = np.reshape(self.sign * np.asarray(f), (-1, 1))
        with np.errstate(all="ignore"):  # far out, infinity is an answer
            for step in reversed(self.steps):
                column = _undone(step, column)
        return np.reshape(column, np.shape(f))

    def apply(self, z: Numbers) -> Numbers:
        """[...]: sign times the transform of labels."""
        column = np.reshape(np.asarray(z), (-1, 1))
        with np.errstate(all="ignore"):
            for step in self.steps:
                column = _done(step, column)
        return np.reshape(self.sign * column, np.shape(z))


def _undone(step: Any, column: Numbers) -> Any:
    if (affine := affine_map(step)) is not None:
        return affine[0] + affine[1] * column
    if isinstance(step, FunctionTransformer):  # whose own method refuses infinity
        return column if step.inverse_func is None else step.inverse_func(column, **(step.inv_kw_args or {}))
    return step.inverse_transform(column)


def _done(step: Any, column: Numbers) -> Any:
    if (affine := affine_map(step)) is not None:
        return (column - affine[0]) / affine[1]
    if isinstance(step, FunctionTransformer):
        return column if step.func is None else step.func(column, **(step.kw_args or {}))
    return step.transform(column)


def affine_map(step: Any) -> tuple[Any, Any] | None:
    """(a, b), numbers or [d], where the step is undone by z = a + b f; None where it is not affine."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return 0.0, 1.0
    if isinstance(step, FunctionTransformer) and step.func is None and step.inverse_func is None:
        return 0.0, 1.0
    if isinstance(step, StandardScaler):
        return _one(step.mean_ if step.with_mean else 0.0), _one(step.scale_ if step.with_std else 1.0)
    if isinstance(step, RobustScaler):
        return _one(step.center_ if step.with_centering else 0.0), _one(step.scale_ if step.with_scaling else 1.0)
    if isinstance(step, MaxAbsScaler) and not getattr(step, "clip", False):
        return 0.0, _one(step.scale_)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return _one(-step.min_ / step.scale_), _one(1.0 / step.scale_)
    return None


def _one(values: Any) -> Any:
    """A number where there is one."""
    return float(np.squeeze(values)) if np.size(values) == 1 else np.asarray(values)


def monotone_belief(belief: GaussianBelief | GaussianMixtureBelief, steps: list[Any]) -> WarpedGaussianBelief:
    """The belief about the label; that about the transformed one is mirrored where the map falls."""
    chain = Steps(tuple(steps))
    ends = chain.undo(_grid(belief, _NEAR)[[0, -1]])
    if ends[1] < ends[0]:
        chain = Steps(tuple(steps), -1.0)
        mirrored = {"candidate_mean": -belief.candidate_mean} if isinstance(belief, GaussianMixtureBelief) else {}
        belief = replace(belief, mean=-belief.mean, **mirrored)  # labels of candidates, too: covariances stay
    _check_rising(chain, belief)
    return WarpedGaussianBelief(belief, MonotoneWarp(chain.undo, chain.apply, _range(chain, belief)))


def _grid(belief: GaussianBelief | GaussianMixtureBelief, reach: float) -> Numbers:
    """[G]: over `reach` standard deviations about every context."""
    spread = reach * np.sqrt(belief.variance) + 1e-6 * (1.0 + abs(belief.mean))
    return np.linspace(np.min(belief.mean - spread), np.max(belief.mean + spread), _POINTS)


def _check_rising(chain: Steps, belief: GaussianBelief | GaussianMixtureBelief) -> None:
    """Refuse a map that is flat, broken or not undone near the contexts, or that turns or ends further out."""
    near, far = _grid(belief, _NEAR), _grid(belief, _FAR)
    labels = chain.undo(near)
    missed = abs(chain.apply(labels) - near) > _RETURN * (near[-1] - near[0])
    for f, wrong, what in (
        (near, ~np.isfinite(labels), "gives no number"),
        (near[1:], ~(np.diff(labels) > 0.0), "does not rise or fall strictly"),
        (near, missed | np.isnan(chain.apply(labels)), "is not undone by the transform"),
        (far, np.isnan(chain.undo(far)), "gives no number"),
        (far[1:], np.maximum.accumulate(chain.undo(far))[1:] > chain.undo(far)[1:], "turns"),
    ):
        if np.any(wrong):
            raise StakesError(
                f"the inverse of {_named(chain)} must rise or fall over all transformed labels that the model holds "
                f"possible, here within {max(abs(far)):.4g} of 0; at {chain.sign * f[np.argmax(wrong)]:.4g} it {what}. "
                "Use func=np.log with np.exp, np.sqrt with np.square, or PowerTransformer(), or a model with less "
                "spread."
            )


def _named(chain: Steps) -> str:
    return " after ".join(str(step) for step in reversed(chain.steps))


def _range(chain: Steps, belief: GaussianBelief | GaussianMixtureBelief) -> Interval:
    """Onto what the chain maps: an end is finite where it has stopped moving."""
    size = float(np.max(abs(_grid(belief, _FAR))))
    return Interval(_end(chain, -size), _end(chain, size))


def _end(chain: Steps, place: float) -> float:
    far, further = chain.undo(place * np.array([1e4, 1e8]))
    return float(further) if far == further else math.copysign(math.inf, place)


def rescaled(belief: Belief, a: Any, b: Any) -> Belief:
    """The belief about a + b z and a + b y: numbers, or one for each output."""
    if isinstance(belief, GaussianBelief | GaussianMixtureBelief):
        return rescaled_normal(belief, a, b)
    if isinstance(belief, VectorGaussianBelief):
        return _rescaled_vector(belief, a, b * np.ones(belief.mean.shape[1]))
    if isinstance(belief, NormalEnsemble):
        return replace(
            belief,
            candidate_mean=a + b * belief.candidate_mean,
            candidate_sd=b * belief.candidate_sd,
            context_mean=a + b * belief.context_mean,
            context_sd=b * belief.context_sd,
        )
    if np.all(np.equal(a, 0.0)) and np.all(np.equal(b, 1.0)):
        return belief
    raise TypeError(f"a {type(belief).__name__} cannot be brought to other units; transform the labels before fitting")


def rescaled_normal(belief: _Normal, a: float, b: float) -> _Normal:
    """The belief about a + b z and a + b y of one output, under each hypothesis where there are several."""
    more: dict[str, Any] = {}
    if isinstance(belief, GaussianMixtureBelief):
        more["candidate_mean"] = a + b * belief.candidate_mean
    return replace(
        belief,
        **more,
        mean=a + b * belief.mean,
        variance=b**2 * belief.variance,
        candidate_variance=b**2 * belief.candidate_variance,
        covariance=b**2 * belief.covariance,
        candidate_covariance=_times(belief.candidate_covariance, b**2),
        noise_variance=_times(belief.noise_variance, b**2),
    )


def _rescaled_vector(belief: VectorGaussianBelief, a: Any, b: Any) -> VectorGaussianBelief:
    square = np.outer(b, b)
    between = belief.candidate_covariance
    return replace(
        belief,
        mean=a + b * belief.mean,
        variance=square * belief.variance,
        candidate_variance=square * belief.candidate_variance,
        covariance=square * belief.covariance,
        candidate_covariance=_times(between, square[:, None, :]),
        noise_variance=_times(belief.noise_variance, square),
    )


def _times(values: Any, factor: Any) -> Any:
    """`values` times the factor, also of a function's values; None stays None."""
    if callable(values):
        return Scaled(values, factor)
    return None if values is None else values * factor


@dataclass(frozen=True, eq=False)
class Scaled:
    """A function of the position of a candidate, times a factor."""

    function: Callable[[int], Array]
    factor: Any

    def __call__(self, i: int) -> Array:
        """The value of candidate i."""
        return self.function(i) * self.factor


@adapts(TransformedTargetRegressor)
def _transformed(model: TransformedTargetRegressor, contexts: Any, **options: Any) -> RowsToBelief:
    """Of the regressor's belief about the transformed label: warped, or of its own kind where the map is affine.

    Scalers are affine; np.log, np.sqrt and power transformers have warps of their own; any other map is taken as it is
    if it rises (or falls) strictly over 4 standard deviations about every context and nowhere turns within 20, which a
    grid of 2001 points tells. With target="latent", z is the map of the function behind the transformed label.
    """
    check_is_fitted(model)
    prepared = prepare_belief(model.regressor_, contexts, **options)
    return lambda rows: untransformed(prepared(rows), model.transformer_)


def untransformed(belief: Belief, transformer: Any) -> Belief:
    """The belief about labels of which `belief` is about the transformed ones."""
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    while steps and (affine := affine_map(steps[-1])) is not None:
        belief = rescaled(belief, *affine)
        steps.pop()
    if not steps:
        return belief
    if not isinstance(belief, GaussianBelief | GaussianMixtureBelief):
        raise TypeError(
            f"only a Gaussian belief about one output can be seen through {steps[-1]}, or a mixture of such; this "
            f"regressor gives a {type(belief).__name__}. Use an affine transformer, such as StandardScaler(), or a "
            "Gaussian regressor."
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
        raise StakesError(
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
        """The label z of which f is the transform."""
        xp, (above, below), zero = namespace(f), self._sides(), 0.0 * f
        up, down = xp.where(f > 0, f, zero), xp.where(f < 0, -f, zero)
        return xp.where(f < 0, 1.0 - below.forward(down), above.forward(up) - 1.0)

    def inverse(self, z: Array) -> Array:
        """The transform f of labels."""
        xp, (above, below), zero = namespace(z), self._sides(), 0.0 * z
        up, down = xp.where(z > 0, z, zero), xp.where(z < 0, -z, zero)
        return xp.where(z < 0, -below.inverse(1.0 + down), above.inverse(1.0 + up))
