"""What a campaign answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class AskedRow:
    """A row that was handed out."""

    id: str
    score: float | None
    """What it was ranked by; None where the rows ran out of a ranking, and for the first row of a cold start."""
    why: str


@dataclass(frozen=True)
class Asked:
    """Rows to label."""

    rows: tuple[AskedRow, ...]
    ranked_by: str
    per_cost: bool
    """Whether scores are for each unit of cost."""
    until: float | None
    """When the first of them comes back by itself, in seconds since 1970."""
    stale: str | None
    """Why the ranking is an old one; None where it is not."""
    done: str | None
    """Why there are fewer rows than were asked for; None where there are not."""
    said: tuple[str, ...]
    """What was assumed."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Status:
    """Where a campaign stands."""

    rows: int
    labelled: int
    asked: int
    skipped: int
    open: int
    spent: float
    """The cost of labels told since the start, in units of the costs (1 each without)."""
    pending: float
    """The cost of labels on their way."""
    budget: float | None
    outlook: dict[str, Any] | None
    """What the next labels are worth, as `Outlook.to_dict` has it; None before the first, and in a cold start."""
    outlook_labels: int | None
    """How many labels the outlook knew of."""
    stale: str | None
    """Why the outlook is an old one; None where it is not."""
    advice: str
    """Whether to go on, in words."""

    @property
    def budget_left(self) -> float | None:
        """What may still be spent."""
        return None if self.budget is None else max(0.0, self.budget - self.spent - self.pending)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "budget_left": self.budget_left}
