"""What a ranking says: the best rows, why each was chosen, and what was assumed."""

from __future__ import annotations

import html
import math
from dataclasses import asdict, dataclass
from typing import Any

from stakes._words import number


@dataclass(frozen=True)
class HelpedContext:
    """One of the contexts at which a label helps most, and what the model says there today."""

    index: int
    """Its position among the contexts (in the pool, where the pool stands for them)."""
    label: Any
    """Its label in a pandas index, else its position."""
    share: float
    """Of the worth of the row."""
    prediction: Any
    """The answer with the least expected loss today: a number, a class, the position of an action, or class
    probabilities; None where the answer is a whole distribution, or beyond the range of numbers."""
    uncertainty: float | None
    """The expected loss of that answer; None where it is beyond the range of numbers."""
    answer: str
    """The prediction in words."""

    def __str__(self) -> str:
        loss = "" if self.uncertainty is None else f" at an expected loss of {number(self.uncertainty)}"
        share = f"{self.share:.0%}" if self.share >= 0.01 else "<1%"
        return f"{share} at context {self.label!r} (today: {self.answer}{loss})"


@dataclass(frozen=True)
class Reason:
    """Why a row was chosen."""

    worth: float | None
    """By how much its label is expected to lower the loss of one decision; times exp(log_scale) of the ranking. In a
    batch: on top of the rows before it. None in a cold start."""
    worth_per_cost: float | None
    """The worth for each unit of cost; None without costs."""
    contexts: tuple[HelpedContext, ...]
    """Up to three contexts at which its label, alone, helps most; none where it is worth nothing by itself."""
    as_good: int | None
    """How many other rows score the same to within 1e-9, so that the seed decided; None in a batch."""
    ranked_by: str
    """What it is the best in: "worth", or where no label is worth anything what stood in for it."""

    def __str__(self) -> str:
        price = "" if self.worth_per_cost is None else f", {number(self.worth_per_cost)} for each unit of cost"
        parts = [] if self.worth is None else [f"worth {number(self.worth)}{price}"]
        parts += [] if self.ranked_by == "worth" else [f"ranked by {self.ranked_by}"]
        parts += [str(context) for context in self.contexts]
        parts += [f"{self.as_good} other rows are as good"] if self.as_good else []
        return "; ".join(parts)


@dataclass(frozen=True)
class Ranking:
    """Rows to label, best first."""

    indices: tuple[int, ...]
    """Positions in the pool."""
    labels: tuple[Any, ...]
    """Their labels in a pandas index, else their positions."""
    scores: tuple[float, ...]
    """What they are ranked by (`ranked_by`), for each unit of cost where `per_cost`; times exp(log_scale)."""
    per_cost: bool
    ranked_by: str
    """"worth", "gain" on top of the rows before it (a batch), or what stood in for them."""
    reasons: tuple[Reason, ...]
    assumptions: tuple[str, ...]
    """What was taken for granted, approximated or left out."""
    log_scale: float = 0.0
    """0, unless the scores are beyond the range of numbers."""

    def __len__(self) -> int:
        return len(self.indices)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in types that JSON knows: other labels as text, an infinite score as None."""
        told: dict[str, Any] = plain(asdict(self))
        return told

    def __str__(self) -> str:
        head = ("", "row", "label", self._score_name(), "why")
        lines = [head, *((str(place), *cells) for place, cells in enumerate(self._cells(), 1))]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        table = [
            " ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), " " + line[4]])
            for line in lines
        ]
        return "\n".join([*table, "", *(f"- {sentence}" for sentence in self.assumptions)])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in ("row", "label", self._score_name(), "why"))
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        notes = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.assumptions)
        return f"<table><tr>{head}</tr>{body}</table><ul>{notes}</ul>"

    def _score_name(self) -> str:
        return f"{self.ranked_by} per cost" if self.per_cost else self.ranked_by

    def _cells(self) -> list[tuple[str, str, str, str]]:
        rows = zip(self.indices, self.labels, self.scores, self.reasons, strict=True)
        return [(str(index), str(label), number(score), str(reason)) for index, label, score, reason in rows]


def plain(value: Any) -> Any:
    """In types that JSON knows: other things as text, an infinite number as None."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
