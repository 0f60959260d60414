"""What is asked of a table: its target, the loss, the model, and what its other columns are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from stakes.specs import LossSpec, ModelSpec, SpecError

_POSITIVE = ("label_cost", "decisions", "budget")
_LISTS = ("ignore", "classes", "missing", "text")


@dataclass(frozen=True)
class Brief:
    """All that a table does not say itself; kept as JSON."""

    target: str
    """The column of labels; rows without one are the pool."""
    loss: LossSpec
    model: ModelSpec = field(default_factory=ModelSpec)
    id_column: str | None = None
    """Row numbers, from 1, without."""
    cost_column: str | None = None
    """What a label of each row costs, in units of the loss."""
    label_cost: float | None = None
    """What a label of any row costs."""
    ignore: tuple[str, ...] = ()
    """Columns that the model does not see."""
    classes: tuple[str, ...] | None = None
    """All classes, also those that no label has had; those of the labels without."""
    decisions: float | None = None
    """How many decisions will be taken with the model."""
    budget: float | None = None
    """For all labels to come, in units of the costs (a label costs 1 without any)."""
    seed: int = 0
    missing: tuple[str, ...] = ()
    """Marks that stand for gaps among features."""
    text: tuple[str, ...] = ()
    """Columns that are text although they look like numbers."""
    delimiter: str | None = None

    def __post_init__(self) -> None:
        for name in _LISTS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise SpecError(f"{name} must be a positive number; got {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise SpecError(f"seed must be a whole number, 0 or more; got {self.seed!r}")
        if self.cost_column is not None and self.label_cost is not None:
            raise SpecError("give a column of costs or one cost for all labels, not both")
        self._check_columns()

    def _check_columns(self) -> None:
        roles = [each for each in (self.target, self.id_column, self.cost_column) if each is not None]
        if twice := [name for place, name in enumerate(roles) if name in roles[:place]]:
            raise SpecError(f"column {twice[0]!r} can be only one of the target, the id and the cost")
        if self.target in self.ignore:
            raise SpecError(f"column {self.target!r} is the target and cannot be ignored")

    @property
    def roles(self) -> tuple[str, ...]:
        """Columns that are no features."""
        named = (self.target, self.id_column, self.cost_column, *self.ignore)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        lists = {name: list(value) for name, value in kept.items() if isinstance(value, tuple)}
        return {**kept, **lists, "loss": self.loss.to_dict(), "model": self.model.to_dict()}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Brief:
        """From JSON."""
        known = {each.name for each in fields(Brief)}
        if strange := sorted(set(kept) - known):
            raise SpecError(f"a brief has no {strange[0]!r}; was it written by a newer stakes?")
        specs = {"loss": LossSpec.from_dict(kept["loss"]), "model": ModelSpec.from_dict(kept["model"])}
        return Brief(**{**kept, **specs})
