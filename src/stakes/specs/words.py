"""The words of the command line: weights, class weights, cost matrices, options.

A weight is "exp:RATE", or points (y, weight); class weights and cost matrices go by the names of classes.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from stakes.files import read_table
from stakes.files.cells import kind_of
from stakes.files.csv_cells import read_rows
from stakes.files.read import checked_path
from stakes.specs.errors import SpecError

Points: TypeAlias = tuple[tuple[float, float], ...]

_WEIGHT = "a weight is exp:RATE, such as exp:-1, or a CSV file with the columns y and weight"


def parse_weight(words: str) -> str | Points:
    """A weight from "exp:RATE", which stays text, or from a CSV file of two columns, whose points are read now."""
    if words.lower().endswith((".csv", ".tsv", ".txt")):
        return checked_weight(_points(words))
    return checked_weight(words)


def checked_weight(weight: Any) -> str | Points:
    """A weight as it is kept: "exp:RATE", or points of increasing y."""
    if isinstance(weight, str):
        return f"exp:{exponential_rate(weight)!r}"
    try:
        points = tuple(sorted((float(y), float(w)) for y, w in weight))
    except (TypeError, ValueError) as error:
        raise SpecError(f"{_WEIGHT}; got {weight!r}") from error
    _check_weights("the weight", [w for _, w in points])
    values = [y for y, _ in points]
    if not all(map(math.isfinite, values)) or len(set(values)) != len(values):
        raise SpecError(f"the points of a weight need finite values of y, each once; got {values}")
    return points


def exponential_rate(words: str) -> float:
    """The rate of "exp:RATE"."""
    name, _, rate = words.partition(":")
    if name.strip() != "exp" or kind_of(rate) != "number":
        raise SpecError(f"{_WEIGHT}; got {words!r}")
    return float(rate)


def parse_class_weights(words: str) -> dict[str, float]:
    """Weights by class from "bus=50,van=50".

    The last = of an item stands before its weight, so that a name may hold others; an item with a comma or a quote in
    it is quoted as in CSV: '"red, dark=3",blue=1'.
    """
    try:
        (items,) = csv.reader([words], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise SpecError(f"class weights are CLASS=WEIGHT,CLASS=WEIGHT,...; got {words!r} ({error})") from error
    pairs = [item.rpartition("=") for item in items]
    bad = [item for item, (name, _, w) in zip(items, pairs, strict=True) if not name or kind_of(w) != "number"]
    if bad or not items:
        raise SpecError(f"class weights are CLASS=WEIGHT,CLASS=WEIGHT,...; got {(bad or [''])[0]!r} in {words!r}")
    names = [name for name, _, _ in pairs]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise SpecError(f"each class has one weight; {twice[0]!r} is given twice in {words!r}")
    return checked_class_weights({name: float(weight) for name, _, weight in pairs})


def checked_class_weights(weights: Mapping[str, Any]) -> dict[str, float]:
    """Weights by class, finite and at least 0."""
    if not isinstance(weights, Mapping) or not weights:
        raise SpecError(f"class weights must be numbers by class, such as {{'bus': 50}}; got {weights!r}")
    numbers = {str(name): _number(f"the weight of class {name!r}", weight) for name, weight in weights.items()}
    if negative := [name for name, weight in numbers.items() if weight < 0]:
        raise SpecError(f"class weights must be at least 0; that of {negative[0]!r} is {numbers[negative[0]]}")
    return numbers


def read_cost_matrix(path: str) -> dict[str, dict[str, float]]:
    """Costs by truth and decision from a CSV file: a class at the head of each row, decisions along the header.

    There need not be as many decisions as classes; costs may be negative (gains).
    """
    where = checked_path(path)
    table = read_rows(where)
    decisions = table.header[1:]
    _check_names(where, "decision", decisions)
    _check_names(where, "class", [row[0] for row in table.rows])
    costs: dict[str, dict[str, float]] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        costs[row[0]] = {name: _cost(where, line, name, cell) for name, cell in zip(decisions, row[1:], strict=True)}
    return costs


def checked_costs(costs: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Costs by truth and decision, with the same decisions for every truth."""
    if not isinstance(costs, Mapping) or not costs or not all(isinstance(row, Mapping) for row in costs.values()):
        raise SpecError(f"a cost matrix must be {{class: {{decision: cost}}}}; got {costs!r}")
    decisions = list(next(iter(costs.values())))
    if uneven := [name for name, row in costs.items() if set(row) != set(decisions) or not row]:
        raise SpecError(f"a cost matrix needs a cost of each decision, {decisions}, for class {uneven[0]!r} too")
    return {
        str(truth): {
            str(name): _number(f"the cost of {name!r} when the class is {truth!r}", row[name]) for name in decisions
        }
        for truth, row in costs.items()
    }


def parse_options(items: Iterable[str]) -> dict[str, Any]:
    """Options from "name=value" words; a value is what JSON makes of it, else text."""
    pairs = [item.partition("=") for item in items]
    if bad := ["".join(pair) for pair in pairs if not pair[0] or not pair[1]]:
        raise SpecError(f"an option is NAME=VALUE, such as alpha=0.5; got {bad[0]!r}")
    return {name: _value(text) for name, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _points(path: str) -> list[tuple[float, float]]:
    source = read_table(path)
    if len(source.names) != 2 or any(kind_of(name) == "number" for name in source.names):
        raise SpecError(
            f"{path} must have two columns, named in its first line, y and weight; got {list(source.names)}"
        )
    y, weight = source.features().arrays
    gaps = [row for row in range(len(source)) if None in (source.cells[0][row], source.cells[1][row])]
    if gaps or "O" in (y.dtype.kind, weight.dtype.kind):
        where = source.place(gaps[0]) if gaps else "line 2"
        raise SpecError(f"{path} must hold a number in every cell; look at {where}")
    return list(zip(y.tolist(), weight.tolist(), strict=True))


def _check_weights(what: str, weights: Sequence[float]) -> None:
    if not weights or not all(map(math.isfinite, weights)) or min(weights) < 0 or max(weights) == 0:
        raise SpecError(f"{what} must be finite, at least 0 and not all 0; got {list(weights)}")


def _check_names(path: Path, what: str, names: Sequence[str]) -> None:
    if not names or "" in names:
        raise SpecError(f"{path} must name every {what}: classes down the first column, decisions along the first line")
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise SpecError(f"{path} names the {what} {twice[0]!r} twice")


def _cost(path: Path, line: int, decision: str, cell: str) -> float:
    if kind_of(cell) != "number":
        raise SpecError(f"{path}: a cost must be a finite number; got {cell!r} at line {line}, column {decision!r}")
    return float(cell)


def _number(what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SpecError(f"{what} must be a finite number; got {value!r}")
    return float(value)
