"""What a simulation was made of, in words that are the same in every process: how a store knows its own."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import platform
import re
import types
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any, TypeAlias

import joblib
import numpy as np

from stakes._utils.array import Array, constant, namespace
from stakes._utils.tables import Host, column, column_names, n_columns
from stakes.beliefs import Belief
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, DistributionLoss, Loss
from stakes.losses.domains import Classes
from stakes.simulation.problem import plain_loss

_LIBRARIES = ("stakes", "numpy", "scipy", "scikit-learn", "joblib")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def described(value: Any) -> str:
    """`value` in words, with no address in memory: functions by their code and what they close over.

    What a function reads from its module is not seen, nor the code of classes: they go by their name.
    """
    if isinstance(value, types.FunctionType):
        return f"{value.__qualname__}#{_function(value)}"
    if isinstance(value, types.MethodType):
        return f"{described(value.__func__)} of {described(value.__self__)}"
    if isinstance(value, functools.partial):
        return f"partial {described(value.func)} with {described((value.args, value.keywords))}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code.hex()} {value.co_names} {described(value.co_consts)}"
    if isinstance(value, np.ndarray):
        return f"array#{joblib.hash(np.ascontiguousarray(value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _call(value, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if callable(getattr(value, "get_params", None)) and not isinstance(value, type):
        return _call(value, value.get_params(deep=False))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(described, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{described(key)}: {described(each)}' for key, each in value.items())}}}"
    return _ADDRESS.sub("", repr(value))


def data_hash(values: Any) -> str:
    """The same for equal data of one kind: frames go by their columns, however they lie in memory."""
    if column_names(values) is not None:
        values = column_names(values), [column(values, position) for position in range(n_columns(values))]
    return str(joblib.hash(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values))


def versions() -> dict[str, str]:
    """Of Python and of the libraries that numbers come from."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def _call(value: Any, parameters: dict[str, Any]) -> str:
    return (
        f"{type(value).__name__}({', '.join(f'{name}={described(parameters[name])}' for name in sorted(parameters))})"
    )


def _function(function: types.FunctionType) -> str:
    """Of the code, the defaults and the values closed over."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = (described(function.__code__), described(function.__defaults__), described(function.__kwdefaults__))
    return hashlib.sha256("\n".join((*parts, described(cells))).encode()).hexdigest()[:16]


# ----------------------------------------------------------------------
# What the answers on test rows are judged by: losses of Bayes answers, or functions of the belief.
#
# Sizes: T test rows, Q metrics.

Metric: TypeAlias = Callable[[Belief, Array], float]
"""(belief about test rows, their targets [T]: numbers, or positions of classes) -> a number, smaller is better."""
MetricLike: TypeAlias = AnyLoss | Metric


def checked_metrics(loss: AnyLoss, given: Mapping[str, MetricLike] | None) -> dict[str, MetricLike]:
    """The loss first, then the others; without them, the plain loss."""
    if given is None:
        plain = plain_loss(loss)
        given = {} if described(plain) == described(loss) else {"plain": plain}
    if "loss" in given:
        raise StakesError('the metric "loss" is the loss itself; give the others other names')
    for name, each in given.items():
        if not _suits(each, loss):
            raise TypeError(
                f"metric {name!r} must be a loss about the same kind of target as {loss!r}, or a function of "
                f"(belief, targets); got {each!r}"
            )
    return {"loss": loss, **given}


def judged(metrics: Mapping[str, MetricLike], belief: Belief, targets: Host) -> list[float]:
    """[Q]: what each metric says of a belief about test rows, given their targets [T]."""
    known = constant(targets, belief.like)
    return [_value(name, each, belief, known) for name, each in metrics.items()]


def _suits(metric: MetricLike, loss: AnyLoss) -> bool:
    if isinstance(metric, type):
        return False
    if isinstance(metric, Loss | DistributionLoss):
        return type(metric.domain) is type(loss.domain)
    return callable(metric)


def _value(name: str, metric: MetricLike, belief: Belief, targets: Array) -> float:
    """The realised loss of the Bayes answers, or what the function says."""
    if isinstance(metric, Loss | DistributionLoss):
        return realised_loss(metric, bayes_prediction(metric, belief), targets).mean
    value = metric(belief, _positions(targets) if isinstance(belief.domain, Classes) else targets)
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metric {name!r} must give one number for all test rows; it gave {value!r}") from error
    if math.isnan(number):
        raise StakesError(f"metric {name!r} must give a number; it gave NaN on {targets.shape[0]} test rows")
    return number


def _positions(targets: Array) -> Array:
    """[T]: whole numbers, so that they can be an index."""
    xp = namespace(targets)
    return xp.astype(targets, xp.int64)
