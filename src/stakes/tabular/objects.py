"""Python objects as what a file keeps: a loss or an estimator by its name and parameters, a data frame as a CSV.

An object is kept if it can be made again from its class and its parameters; what cannot be is refused, by its name.
What an estimator has learned is not kept: it is fitted to the labels anyway.
"""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from stakes._utils.tables import column_names, n_rows, plain_label
from stakes.exceptions import StakesError
from stakes.files.frame import cell_kind
from stakes.tabular.loss_specs import LOSSES, LossEntry, LossSpec
from stakes.tabular.model_specs import ModelSpec

_LOSSES = "stakes.losses"
_ROW = "row"  # what the column of ids is called where the index has no name


def spec_of_loss(loss: Any) -> LossSpec:
    """A loss as its name, options and weights; refused where one of them cannot be kept."""
    kind = type(loss)
    if isinstance(loss, type) or not all(callable(getattr(loss, name, None)) for name in ("statistics", "regret")):
        raise StakesError(
            "the loss of a table is a name, such as 'linex', a LossSpec, or a loss, such as Linex(0.5); got "
            f"{loss!r:.100}"
        )
    entry = next((each for each in LOSSES.values() if each.kind == kind.__name__), None)
    if entry is None or not kind.__module__.startswith(f"{_LOSSES}."):
        return LossSpec(path_of(kind), _own_fields(loss))
    options = {
        option.name: _kept(f"{option.name} of {kind.__name__}", getattr(loss, option.name)) for option in entry.options
    }
    return LossSpec(entry.name, options, **_concerns(loss, entry))


def _own_fields(loss: Any) -> dict[str, Any]:
    """The fields of a loss of one's own, which is a dataclass, or takes nothing."""
    name = type(loss).__name__
    if is_dataclass(loss):
        return {
            each.name: _kept(f"{each.name} of {name}", getattr(loss, each.name)) for each in fields(loss) if each.init
        }
    if inspect.signature(type(loss)).parameters:
        raise StakesError(f"{name} is no dataclass, so that nobody knows what it was made with: name it by LossSpec")
    return {}


def _concerns(loss: Any, entry: LossEntry) -> dict[str, Any]:
    """What says which errors count more, as a spec has it."""
    if entry.takes == "weight":
        return {} if loss.weight is None else {"weight": _weight(loss)}
    if entry.takes == "cost matrix":
        return {"cost_matrix": _cost_matrix(loss)}
    if entry.takes == "class weights" and loss.class_weights is not None:
        if loss.classes is None:
            raise StakesError(
                f"the class weights of this {type(loss).__name__} have no names, and a file keeps them by name: give "
                f'{type(loss).__name__}({{"good": 1, "bad": 5}})'
            )
        return {"class_weights": dict(zip(map(str, loss.classes), loss.class_weights, strict=True))}
    return {}


def _weight(loss: Any) -> Any:
    from stakes.losses import ExponentialWeight, InterpolatedWeight

    if isinstance(loss.weight, ExponentialWeight):
        return f"exp:{loss.weight.rate!r}"
    if isinstance(loss.weight, InterpolatedWeight):
        return tuple(zip(loss.weight.values, loss.weight.weights, strict=True))
    raise StakesError(
        f"the weight of this {type(loss).__name__} is a {type(loss.weight).__name__}, which a file cannot keep: give "
        "ExponentialWeight(rate), or InterpolatedWeight(values, weights)"
    )


def _cost_matrix(loss: Any) -> dict[str, dict[str, float]]:
    actions = loss.actions
    if actions is None and loss.classes is not None and loss.costs.shape[0] == loss.costs.shape[1]:
        actions = loss.classes
    if loss.classes is None or actions is None:
        raise StakesError(
            "this CostMatrix has no names, and a file keeps costs by name: give a data frame, or CostMatrix(costs, "
            "classes=[...], actions=[...])"
        )
    return {
        str(truth): dict(zip(map(str, actions), row, strict=True))
        for truth, row in zip(loss.classes, loss.costs.tolist(), strict=True)
    }


def spec_of_model(model: Any) -> ModelSpec:
    """An estimator as its class and the parameters that are not the usual; refused where one cannot be kept."""
    if isinstance(model, type) or not hasattr(model, "get_params"):
        raise StakesError(
            "the model of a table is a name, such as 'random-forest', a ModelSpec, or an estimator with get_params, "
            f"such as Ridge(); got {model!r:.100}"
        )
    kept = _kept_estimator(model)
    if kept["model"] == "stakes.models:DefaultModel":
        ours = ("task", "classes", "random_state")  # which the table tells
        return ModelSpec("default", {name: value for name, value in kept["parameters"].items() if name not in ours})
    return ModelSpec(kept["model"], kept["parameters"])


def _kept_estimator(model: Any) -> dict[str, Any]:
    kind = type(model)
    known = inspect.signature(kind).parameters
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if name not in known or not _same(value, known[name].default)
    }
    parameters = {name: _kept(f"{name} of {kind.__name__}", value) for name, value in changed.items()}
    return {"model": path_of(kind), "parameters": parameters}


def _same(value: Any, usual: Any) -> bool:
    if value is usual:
        return True
    if isinstance(value, float) and isinstance(usual, float) and math.isnan(value) and math.isnan(usual):
        return True
    return type(value) is type(usual) and isinstance(value, bool | int | float | str | tuple) and bool(value == usual)


def _kept(what: str, value: Any) -> Any:
    """A value as JSON has it, estimators and functions of NumPy by their names."""
    value = plain_label(value)
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, np.ufunc) and getattr(np, name := str(value.__name__), None) is value:
        return {"function": f"numpy:{name}"}
    if isinstance(value, list | tuple):
        return [_kept(what, each) for each in value]
    if isinstance(value, np.ndarray):
        return [_kept(what, each) for each in value.tolist()]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _kept(what, each) for name, each in value.items()}
    if not isinstance(value, type) and hasattr(value, "get_params") and hasattr(value, "set_params"):
        return _kept_estimator(value)
    raise StakesError(
        f"{what} is {value!r:.100}, which a file cannot keep by name and parameters. Numbers, texts, lists of them, "
        "other estimators and functions of NumPy it can; for others write a class in a module of your own, with "
        "parameters that it can."
    )


def path_of(kind: type) -> str:
    """The class as "module:Name", by the shortest module that has it; refused where nobody else could import it."""
    module, name = kind.__module__, kind.__qualname__
    if module == "__main__" or "." in name:
        raise StakesError(
            f"{name} is defined in {'the session' if module == '__main__' else module}, where a file cannot find it "
            "again: put it at the top of a module that can be imported"
        )
    parts = module.split(".")
    for count in range(1, len(parts)):
        short = ".".join(parts[:count])
        if getattr(import_module(short), name, None) is kind:
            return f"{short}:{name}"
    return f"{module}:{name}"


def is_frame(table: Any) -> bool:
    """Whether a table is in memory: a data frame of pandas or polars, or an Arrow table."""
    return column_names(table) is not None and hasattr(table, "shape")


def write_frame(path: Path, table: Any, target: str, id_column: str | None, of_classes: bool) -> dict[str, Any]:
    """Write a data frame as a CSV of the same values, and give options to read it with: ids and columns of text.

    Rows are called by the index of a pandas frame, and counted from 0 in other frames. Labels of classes that gaps have
    made floating numbers, 1.0, are whole numbers again.
    """
    names = column_names(table) or []
    columns = {name: _cells(table, place) for place, name in enumerate(names)}
    if len(columns) != len(names):
        raise StakesError("the columns of the table must have different names; some are there twice")
    if id_column is None:
        id_column, ids = _index(table, names)
        columns = {id_column: ids, **columns}
    if of_classes and target in columns:
        columns[target] = _whole(columns[target])
    with path.open("x", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(map(_as_cell, cells) for cells in columns.values()), strict=True))
    text = [name for name, cells in columns.items() if name not in (target, id_column) and _looks_measured(cells)]
    return {"text": tuple(text), "id_column": id_column}


def _cells(table: Any, place: int) -> list[Any]:
    if hasattr(table, "iloc"):
        return list(table.iloc[:, place].tolist())
    if hasattr(table, "to_series"):
        return list(table.to_series(place).to_list())
    return list(table.column(place).to_pylist())


def _index(table: Any, names: Sequence[str]) -> tuple[str, list[Any]]:
    """A name for the column of ids, and the ids: a pandas index, or numbers from 0."""
    if not hasattr(table, "iloc"):
        return _free(_ROW, names), list(range(n_rows(table)))
    index = table.index
    if getattr(index, "nlevels", 1) > 1:
        raise StakesError("rows must have one name each, and this index has several levels: give table.reset_index()")
    if not index.is_unique:
        raise StakesError(
            f"rows are called by the index, which has {index[index.duplicated()][0]!r} more than once: give "
            "table.reset_index(drop=True), or id_column=..., a column that tells rows apart"
        )
    if index.name is None:
        return _free(_ROW, names), list(index.tolist())
    if str(index.name) in names:
        raise StakesError(f"the index is called {str(index.name)!r}, as a column is: rename one of them")
    return str(index.name), list(index.tolist())


def _free(name: str, names: Sequence[str]) -> str:
    """A name that no column has."""
    return name if name not in names else _free(f"{name} {_ROW}", names)


def _whole(cells: list[Any]) -> list[Any]:
    numbers = [each for each in cells if isinstance(each, float) and not math.isnan(each)]
    if not numbers or not all(each.is_integer() for each in numbers):
        return cells
    return [int(each) if isinstance(each, float) and not math.isnan(each) else each for each in cells]


def _as_cell(value: Any) -> str:
    """A value as text; nothing for a gap."""
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    ):
        return ""
    if isinstance(value, datetime) and (value.hour, value.minute, value.second, value.microsecond) == (0, 0, 0, 0):
        value = value.date()
    return value.isoformat() if isinstance(value, date) else repr(value) if isinstance(value, float) else str(value)


def _looks_measured(cells: list[Any]) -> bool:
    """Whether texts, and nothing else, look like numbers."""
    texts = [each for each in cells if isinstance(each, str) and each]
    others = any(not isinstance(each, str) and _as_cell(each) for each in cells)
    return bool(texts) and not others and any(cell_kind(each.strip()) == "number" for each in texts)
