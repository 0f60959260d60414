"""What each decision costs for each true class: read from a CSV, or written in a line of the command.

A line names mistakes as truth>answer, "bad>good=5,good>bad=1", or, where there are two classes, by what they are
called in tests: "miss=5,false-alarm=1". Other mistakes cost 1, and right answers nothing.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stakes._utils.text import counted, did_you_mean, listed, short
from stakes.exceptions import StakesError
from stakes.files.cells import joint_numbers
from stakes.files.frame import cell_kind
from stakes.files.read import checked_path
from stakes.files.rows import read_rows

_MISS, _FALSE_ALARM = "miss", "false-alarm"
_INLINE = "costs are TRUTH>ANSWER=COST, such as bad>good=5,good>bad=1, or for two classes miss=5,false-alarm=1"
_POSITIVE = {"1": "0", "yes": "no", "y": "n", "true": "false", "t": "f", "positive": "negative", "pos": "neg", "+": "-"}
"""Names of two classes of which the first is the one that a test looks for."""
_LISTED = 4  # mistakes that are named in a sentence
_RARER = 2  # times as many labels as the rarer class, which then is the one that must not be missed


class CostTable(dict[str, dict[str, float]]):
    """Costs by true class and decision, which knows where each row was read.

    Args:
        costs: By true class and decision.
        places: By true class, such as "costs.csv, line 3"; none where they come from no file.
    """

    def __init__(self, costs: Mapping[str, dict[str, float]], places: Mapping[str, str] | None = None) -> None:
        super().__init__(costs)
        self.places = dict(places or {})

    @property
    def file(self) -> str:
        """The file that it was read from, with a colon and a space; nothing where there is none."""
        first = next(iter(self.places.values()), "")
        return f"{first.rpartition(', ')[0]}: " if first else ""


def read_cost_matrix(path: str) -> CostTable:
    """Read a cost matrix from a CSV file: a class at the head of each row, decisions along the header.

    There need not be as many decisions as classes; costs may be negative (gains).

    Args:
        path: The file.

    Returns:
        Costs by true class and decision.

    Raises:
        StakesError: If the file cannot be read as that; the message names the line.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/c.csv", ["truth", "treat", "wait"], [("ill", 1, 20), ("well", 1, 0)])
        ...     read_cost_matrix(f"{folder}/c.csv")["ill"]
        {'treat': 1.0, 'wait': 20.0}
    """
    where = checked_path(path)
    table = read_rows(where)
    rows, lines, decisions = table.rows, table.lines, table.header[1:]
    if not rows:
        raise StakesError(f"{where} must name every class down the first column, from line 2 on; it has one line only")
    _check_names(where, "decision", decisions, [1] * len(decisions))
    _check_names(where, "class", [row[0] for row in rows], lines)
    try:
        numbers = joint_numbers("costs", {cell for row in rows for cell in row[1:]}, table.delimiter)
    except StakesError as error:
        raise StakesError(f"{where}: {error}") from None
    costs: dict[str, dict[str, float]] = {}
    for row, line in zip(rows, lines, strict=True):
        cells = zip(decisions, row[1:], strict=True)
        costs[row[0]] = {name: _cost(where, line, name, numbers.get(cell, cell)) for name, cell in cells}
    return CostTable(costs, {row[0]: f"{where}, line {line}" for row, line in zip(rows, lines, strict=True)})


def checked_cost_matrix(costs: Mapping[str, Any]) -> CostTable:
    """Costs by truth and decision, with the same decisions for every truth."""
    if not isinstance(costs, Mapping) or not costs or not all(isinstance(row, Mapping) for row in costs.values()):
        raise StakesError(f"a cost matrix must be {{class: {{decision: cost}}}}; got {costs!r}")
    decisions = list(next(iter(costs.values())))
    if uneven := [name for name, row in costs.items() if set(row) != set(decisions) or not row]:
        raise StakesError(f"a cost matrix needs a cost of each decision, {decisions}, for class {uneven[0]!r} too")
    checked = {
        str(truth): {
            str(name): finite(f"the cost of {name!r} when the class is {truth!r}", row[name]) for name in decisions
        }
        for truth, row in costs.items()
    }
    return CostTable(checked, costs.places if isinstance(costs, CostTable) else None)


def finite(what: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise StakesError(f"{what} must be a finite number; got {value!r}")
    return float(value)


def _check_names(path: Path, what: str, names: Sequence[str], lines: Sequence[int]) -> None:
    if not names or "" in names:
        line = lines[names.index("")] if names else 1
        raise StakesError(
            f"{path} must name every {what}: classes down the first column, decisions along the first line; look at "
            f"line {line}"
        )
    if twice := [place for place, name in enumerate(names) if name in names[:place]]:
        raise StakesError(f"{path} names the {what} {names[twice[0]]!r} twice, again at line {lines[twice[0]]}")


def _cost(path: Path, line: int, decision: str, cell: str) -> float:
    if cell_kind(cell) != "number":
        raise StakesError(f"{path}: a cost must be a finite number; got {cell!r} at line {line}, column {decision!r}")
    return float(cell)


def parse_costs(text: str) -> dict[str, float]:
    """The costs of a line by what each is of, "bad>good" or "miss", as it is written."""
    try:
        (items,) = csv.reader([text], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise StakesError(f"{_INLINE}; got {text!r} ({error})") from error
    pairs = [tuple(part.strip() for part in item.rpartition("=")) for item in items]
    bad = [item for item, (what, _, cost) in zip(items, pairs, strict=True) if not what or cell_kind(cost) != "number"]
    if bad or not items:
        raise StakesError(f"{_INLINE}; got {(bad or [''])[0]!r} in {text!r}. Decimals come after a point.")
    if joined := [what for what, _, _ in pairs if "=" in what and ";" in what]:
        raise StakesError(f"{_INLINE}; got {joined[0]!r} in {text!r}. Put commas between the mistakes.")
    named = [_plain(what) for what, _, _ in pairs]
    if twice := [what for place, what in enumerate(named) if what in named[:place]]:
        raise StakesError(f"each mistake has one cost; {twice[0]!r} is given twice in {text!r}")
    return {what: float(cost) for what, (_, _, cost) in zip(named, pairs, strict=True)}


def _plain(what: str) -> str:
    """False_Alarm, false alarm: false-alarm."""
    word = what.casefold().replace("_", "-").replace(" ", "-")
    return word if word in (_MISS, _FALSE_ALARM) else what


def is_miss_and_false_alarm(costs: Mapping[str, float]) -> bool:
    """Whether mistakes are called a miss and a false alarm, not by classes; both at once are refused."""
    named = [what for what in costs if what in (_MISS, _FALSE_ALARM)]
    if named and len(named) < len(costs):
        other = next(what for what in costs if what not in named)
        raise StakesError(f"{_INLINE}; got {named[0]!r} beside {other!r}")
    return bool(named)


def positive_class(counts: Mapping[str, int], first: str | None = None) -> tuple[str, str] | None:
    """Which of two classes must not be missed, and why that is thought; None where nothing tells.

    Args:
        counts: How many labels each of the two has.
        first: The one that was named first, where the order was given.
    """
    one, other = counts
    if first is not None:
        return first, "it is the first of --classes"
    for positive, negative in ((one, other), (other, one)):
        if _POSITIVE.get(positive.casefold()) == negative.casefold():
            return positive, "it is the positive one by its name"
    for rare, common in ((one, other), (other, one)):
        if 0 < _RARER * counts[rare] <= counts[common]:
            total = counts[rare] + counts[common]
            return rare, f"it is the rarer one, {counts[rare]} of {counted(total, 'label')}"
    return None


def cost_line(costs: Mapping[str, Mapping[str, float]]) -> str:
    """The mistakes of a cost matrix as one line, bad>good=5,good>bad=1."""
    items = [
        f"{truth}>{answer}={short(cost).replace(',', '')}"
        for truth, row in costs.items()
        for answer, cost in row.items()
        if truth != answer or cost != 0.0
    ]
    return ",".join(f'"{item.replace(chr(34), chr(34) * 2)}"' if set(',"') & set(item) else item for item in items)


def costs_of_tests(costs: Mapping[str, float], positive: str, negative: str) -> tuple[CostTable, str]:
    """The matrix of a miss and a false alarm, and a sentence that says which mistakes those are."""
    miss, alarm = costs.get(_MISS, 1.0), costs.get(_FALSE_ALARM, 1.0)
    table = {positive: {positive: 0.0, negative: miss}, negative: {positive: alarm, negative: 0.0}}
    note = (
        f"A miss is {positive!r} answered by {negative!r} and costs {short(miss)}; a false alarm is {negative!r} "
        f"answered by {positive!r} and costs {short(alarm)}"
    )
    return CostTable({name: table[name] for name in sorted(table)}), note


def costs_by_class(costs: Mapping[str, float], known: Sequence[str], *, complete: bool) -> tuple[CostTable, str]:
    """The matrix of mistakes by truth and answer, and a sentence on those that were not named.

    Args:
        costs: By "truth>answer".
        known: The classes.
        complete: Whether there can be no others: they were named, or labels have had them.
    """
    classes = list(known) if complete else sorted({*known, *(name for what in costs for name in what.split(">"))})
    table = {truth: {answer: float(truth != answer) for answer in classes} for truth in classes}
    for what, cost in costs.items():
        truth, answer = _mistake(what, classes)
        table[truth][answer] = cost
    named = {_mistake(what, classes) for what in costs}
    others = [f"{one}>{other}" for one in classes for other in classes if one != other and (one, other) not in named]
    note = f"Mistakes that --costs leaves out cost 1: {listed(others, _LISTED)}." if others else ""
    return CostTable(table), note


def _mistake(what: str, classes: Sequence[str]) -> tuple[str, str]:
    """Truth and answer of "truth>answer"; a class may have a > in its name."""
    parts = what.split(">")
    splits = [(">".join(parts[:place]).strip(), ">".join(parts[place:]).strip()) for place in range(1, len(parts))]
    found = [(truth, answer) for truth, answer in splits if truth in classes and answer in classes]
    if len(found) == 1:
        return found[0]
    if found:
        raise StakesError(f"{what!r} can be read in {len(found)} ways; write the costs to a CSV (--cost-matrix FILE)")
    if not splits:
        raise StakesError(f"{_INLINE}; got {what!r}, which has no > in it.{did_you_mean(what, (_MISS, _FALSE_ALARM))}")
    strange = next(name for name in splits[0] if name not in classes)
    raise StakesError(
        f"there is no class {strange!r} in {what!r}; there are {listed(map(repr, classes))}."
        f"{did_you_mean(strange, classes)} If no label has had it yet, name all classes (--classes); decisions that "
        "are no classes go into a CSV (--cost-matrix FILE)"
    )
