"""What to propose for a table before anything is known of it: its target, its ids, and losses to choose from.

Everything here is a guess, with its reason; the user decides. Sizes: N rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from stakes._utils.text import listed, number
from stakes.exceptions import StakesError
from stakes.files.cells import SURE_GAPS
from stakes.files.frame import is_called_id, name_parts
from stakes.files.read import Source
from stakes.tabular.costs import cost_line, positive_class

_TARGETS = {"y", "label", "labels", "target", "class", "outcome", "response", "result", "truth", "ziel", "klasse"}
_FEW = 10  # classes that may well be called by numbers
_SCALES = (
    ("none", "very low", "low", "medium", "moderate", "high", "very high"),
    ("none", "mild", "moderate", "severe", "critical"),
    ("very poor", "poor", "fair", "average", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("small", "medium", "large"),
)
_SHOWN = 6  # values of a column that are named


@dataclass(frozen=True)
class ColumnLook:
    """A column as it is before anything is known of it.

    Attributes:
        name: Of the column.
        size: N.
        filled: How many cells hold something.
        numbers: The numbers that it holds, sorted; None where some cells are no numbers, or none is filled.
        values: What cells hold, the most frequent first.
        last: Whether it is the last column.
        dates: Whether it holds dates or times.
        ends: The lowest and the highest cell, as they are written; None where they are no numbers or dates.
    """

    name: str
    size: int
    filled: int
    numbers: tuple[float, ...] | None
    values: tuple[str, ...]
    last: bool = False
    dates: bool = False
    ends: tuple[str, str] | None = None

    @property
    def all_differ(self) -> bool:
        """Whether it could tell rows apart: every cell holds something else."""
        return self.size > 1 and self.filled == self.size == len(self.values)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it can be as a target: "classes", "numbers", or both, the likelier first."""
        if self.numbers is None:
            return ("classes",) if self.filled else ("numbers", "classes")
        whole, several = all(value.is_integer() for value in self.numbers), len(self.values)
        if whole and several <= 2:
            return ("classes",)
        return ("numbers", "classes") if whole and several <= min(_FEW, self.filled // 2) else ("numbers",)

    @property
    def grades(self) -> tuple[str, ...]:
        """What it holds from the lowest to the highest, where that clearly has an order; nothing where it has none.

        Whole numbers without a gap between them, three at least; or words of one scale, such as low, medium and high.
        """
        if self.numbers is not None:
            values = sorted({int(value) for value in self.numbers if value.is_integer()})
            whole = all(value.is_integer() for value in self.numbers)
            one_by_one = len(values) > 2 and values[-1] - values[0] == len(values) - 1 <= _FEW
            written = {str(value) for value in values} == set(self.values)
            return tuple(map(str, values)) if whole and one_by_one and written and "classes" in self.kinds else ()
        spellings = {value.strip().lower(): value for value in self.values}
        for scale in _SCALES:
            if len(spellings) > 2 and len(spellings) == len(self.values) and set(spellings) <= set(scale):
                return tuple(spellings[word] for word in scale if word in spellings)
        return ()

    @property
    def pair(self) -> tuple[str, str]:
        """Two of the classes that it holds, the positive one by its name first, or the rarer; else A and B."""
        rare, common = (*self.values[1::-1], "A", "B")[:2]
        named = positive_class({rare: 0, common: 0})
        return (common, rare) if named is not None and named[0] == common else (rare, common)

    @property
    def contents(self) -> str:
        """What it holds, in a few words."""
        if not self.filled:
            return "empty"
        if self.ends is not None and len(self.values) > _SHOWN:
            return " to ".join(self.ends)
        return listed([value if len(value) <= 20 else f"{value[:19]}…" for value in self.values], _SHOWN)


def look(source: Source) -> list[ColumnLook]:
    """The columns of a table that was read."""
    return [_look(source, name) for name in source.names]


def _look(source: Source, name: str) -> ColumnLook:
    texts = [text for text in source.texts(name) if text is not None and text not in source.missing and text.strip()]
    gaps = _gaps(set(texts)) if len(texts) == len(source) else frozenset()
    texts = [text for text in texts if text not in gaps]
    counts = Counter(text.strip() for text in texts)
    numbers = _numbers(source, name) if texts else None
    reading = source.reading(name) if numbers else None
    written = reading.values if reading is not None and reading.kind != "yes or no" else None
    ends = (number(numbers[0]), number(numbers[-1])) if numbers else None
    if written:
        order = sorted(
            written, key=lambda cell: (isinstance(written[cell], str) and float(written[cell])) or written[cell]
        )
        ends = order[0].strip(), order[-1].strip()
    return ColumnLook(
        name,
        len(source),
        len(texts),
        numbers,
        tuple(text for text, _ in counts.most_common()),
        name == source.names[-1],
        reading is not None and reading.kind in ("date", "datetime", "time"),
        ends,
    )


def _gaps(texts: set[str]) -> frozenset[str]:
    """NA and the like, where no cell is empty: they stand for a gap."""
    found = frozenset(text for text in texts if text.strip().lower() in SURE_GAPS)
    return found if len(found) < len(texts) else frozenset()


def _numbers(source: Source, name: str) -> tuple[float, ...] | None:
    try:
        values = source.features([name]).arrays[0]
    except StakesError:  # numbers and text: what is wrong is said when the column is used
        return None
    return None if values.dtype.kind == "O" else tuple(np.sort(values[np.isfinite(values)]).tolist())


def target_proposals(columns: Sequence[ColumnLook]) -> list[tuple[ColumnLook, str]]:
    """The columns that could be the target, the likeliest first, and what speaks for each."""
    scored = [(*_as_target(column), place, column) for place, column in enumerate(columns)]
    likely = sorted(scored, key=lambda each: (-each[0], each[2]))
    return [(column, why) for _, why, _, column in likely]


def _as_target(column: ColumnLook) -> tuple[float, str]:
    """How well a column would do for the target, and what speaks for it."""
    points, reasons = 0.0, []
    if 0 < column.filled < column.size:
        points += 4.0 + 0.5 * (1.0 - column.filled / column.size)
        reasons.append(f"{column.filled} of {column.size} rows have a value, the others wait for one")
    elif column.filled == 0:
        points += 2.0
        reasons.append("it is empty")
    if name_parts(column.name) & _TARGETS:
        points += 2.0
        reasons.append("its name says so")
    if column.last:
        points += 1.0
        reasons.append("it is the last column")
    remarks = column.numbers is None and column.filled > _FEW and 2 * len(column.values) > column.filled
    points -= 5.0 * (column.all_differ and column.numbers is None) + 2.0 * (column.dates or remarks)
    return points, "; ".join(reasons)


def id_proposals(columns: Sequence[ColumnLook], target: str) -> list[tuple[ColumnLook, str]]:
    """The columns that could name rows, the likeliest first, and what speaks for each."""
    found = []
    for place, column in enumerate(columns):
        named = is_called_id(column.name) or not column.name.strip()
        whole = column.numbers is not None and all(value.is_integer() for value in column.numbers)
        if column.name != target and column.all_differ and (column.numbers is None or (named and whole)):
            why = "no two rows have the same" + (", and its name says so" if named and column.name.strip() else "")
            found.append((not named, place, column, why))
    return [(column, why) for _, _, column, why in sorted(found, key=lambda each: each[:2])]


@dataclass(frozen=True)
class LossProposal:
    """A loss to choose, in plain words.

    Attributes:
        name: Of the loss.
        meaning: What it means, in plain words.
        example: The same of this table.
        flags: What the command line takes beside the name, for this example.
    """

    name: str
    meaning: str
    example: str
    flags: str = ""


def loss_proposals(column: ColumnLook) -> list[LossProposal]:
    """Losses for a target, the plainest first."""
    made = {"numbers": _for_numbers, "classes": _for_classes}
    return [proposal for kind in column.kinds for proposal in made[kind](column)]


def _for_classes(column: ColumnLook) -> list[LossProposal]:
    one, other = (repr(value) for value in column.pair)
    costs = dict(zip(column.pair, ({column.pair[1]: 5.0}, {column.pair[0]: 1.0}), strict=True))
    sure, unsure = (number(-math.log(share), 2) for share in (0.01, 0.4))
    return [
        LossProposal(
            "zero-one",
            "Every mistake costs the same.",
            f"{one} answered by {other} costs 1, {other} answered by {one} costs 1",
        ),
        LossProposal(
            "cost-matrix",
            "Some mistakes cost more than others.",
            f"{one} answered by {other} costs 5, {other} answered by {one} costs 1",
            f"--costs {quote(cost_line(costs))}",
        ),
        LossProposal(
            "log-loss",
            "You need probabilities; being sure and wrong costs most.",
            f"99% for {one} where it is {other} costs {sure}, 60% costs {unsure}",
        ),
    ]


def _for_numbers(column: ColumnLook) -> list[LossProposal]:
    step = usual_error(column)
    near, far = number(step, 3), number(2 * step, 3)
    return [
        LossProposal("squared-error", "Large errors hurt most.", f"{far} off costs 4 times as much as {near} off"),
        LossProposal(
            "absolute-error", "Every unit of error costs the same.", f"{far} off costs twice as much as {near} off"
        ),
        LossProposal(
            "pinball",
            "Too low and too high cost differently.",
            f"{near} too low costs 9 times as much as {near} too high",
            "--tau 0.9",
        ),
        LossProposal(
            "threshold-decision",
            "You act above a limit, and not below it.",
            f"act above {usual_limit(column)}; a miss costs 5, a false alarm costs 1",
            f"--threshold {usual_limit(column)} --miss 5 --false-alarm 1",
        ),
    ]


def usual_error(column: ColumnLook) -> float:
    """An error that a reader can picture: a quarter of the middle half of the values, to one digit."""
    spread = _level(column, 0.75) - _level(column, 0.25)
    return float(f"{spread / 4.0:.1g}") if spread > 0 else 1.0


def _level(column: ColumnLook, level: float) -> float:
    return float(np.quantile(column.numbers, level)) if column.numbers else 10.0


def usual_limit(column: ColumnLook) -> str:
    """A limit to begin with: the median, to three digits."""
    return f"{float(f'{_level(column, 0.5):.3g}'):g}"
