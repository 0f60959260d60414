"""Any increasing or decreasing map of labels as a warp, after a look at whether it is one.

Sizes: M contexts, G points of a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from stakes.beliefs import GaussianBelief, MonotoneWarp, WarpedGaussianBelief
from stakes.domains import Interval
from stakes.models.kernels import Numbers

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


def monotone_belief(belief: GaussianBelief, steps: list[Any]) -> WarpedGaussianBelief:
    """The belief about the label; that about the transformed one is mirrored where the map falls."""
    chain = Steps(tuple(steps))
    ends = chain.undo(_grid(belief, _NEAR)[[0, -1]])
    if ends[1] < ends[0]:
        chain = Steps(tuple(steps), -1.0)
        belief = replace(belief, mean=-belief.mean)  # labels of candidates are mirrored, too: covariances stay
    _check_rising(chain, belief)
    return WarpedGaussianBelief(belief, MonotoneWarp(chain.undo, chain.apply, _range(chain, belief)))


def _grid(belief: GaussianBelief, reach: float) -> Numbers:
    """[G]: over `reach` standard deviations about every context."""
    spread = reach * np.sqrt(belief.variance) + 1e-6 * (1.0 + abs(belief.mean))
    return np.linspace(np.min(belief.mean - spread), np.max(belief.mean + spread), _POINTS)


def _check_rising(chain: Steps, belief: GaussianBelief) -> None:
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
            raise ValueError(
                f"the inverse of {_named(chain)} must rise or fall over all transformed labels that the model holds "
                f"possible, here within {max(abs(far)):.4g} of 0; at {chain.sign * f[np.argmax(wrong)]:.4g} it {what}. "
                "Use func=np.log with np.exp, np.sqrt with np.square, or PowerTransformer(), or a model with less "
                "spread."
            )


def _named(chain: Steps) -> str:
    return " after ".join(str(step) for step in reversed(chain.steps))


def _range(chain: Steps, belief: GaussianBelief) -> Interval:
    """Onto what the chain maps: an end is finite where it has stopped moving."""
    size = float(np.max(abs(_grid(belief, _FAR))))
    return Interval(_end(chain, -size), _end(chain, size))


def _end(chain: Steps, place: float) -> float:
    far, further = chain.undo(place * np.array([1e4, 1e8]))
    return float(further) if far == further else math.copysign(math.inf, place)
