"""What is asked of a table: its target, the loss, the model, and what its other columns are."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from stakes._utils.text import did_you_mean
from stakes.exceptions import StakesError
from stakes.files.frame import Frame, Host, kind_of, place_of
from stakes.files.read import Source, ids, read_table
from stakes.files.write import Cell, write_csv
from stakes.tabular.loss_specs import LOSSES, LossSpec, build_loss
from stakes.tabular.model_specs import ModelSpec

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
                raise StakesError(f"{name} must be a positive number; got {value!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise StakesError(f"seed must be a whole number, 0 or more; got {self.seed!r}")
        if self.cost_column is not None and self.label_cost is not None:
            raise StakesError("give a column of costs or one cost for all labels, not both")
        self._check_columns()

    def _check_columns(self) -> None:
        roles = [each for each in (self.target, self.id_column, self.cost_column) if each is not None]
        if twice := [name for place, name in enumerate(roles) if name in roles[:place]]:
            raise StakesError(f"column {twice[0]!r} can be only one of the target, the id and the cost")
        if self.target in self.ignore:
            raise StakesError(f"column {self.target!r} is the target and cannot be ignored")

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
            raise StakesError(f"a brief has no {strange[0]!r}; was it written by a newer stakes?")
        specs = {"loss": LossSpec.from_dict(kept["loss"]), "model": ModelSpec.from_dict(kept["model"])}
        return Brief(**{**kept, **specs})


# ----------------------------------------------------------------------
# Labels as people write them: the name of a class, or a number that the loss can judge.
#
# Sizes: n labels.

Task = Literal["classes", "real"]


def task_of(loss: LossSpec) -> Task:
    """Whether the loss is about classes or numbers; losses are imported only where the catalogue does not tell."""
    if loss.name in LOSSES:
        return "classes" if LOSSES[loss.name].target == "classes" else "real"
    from stakes.losses.domains import Classes, Interval

    named = [*(loss.class_weights or ()), *(loss.cost_matrix or ())]
    domain = build_loss(loss, named or None).domain
    if isinstance(domain, Classes):
        return "classes"
    if isinstance(domain, Interval):
        return "real"
    raise StakesError(f"{loss.name} is about {domain}; a column holds numbers or classes")


def classes_of(given: Sequence[str] | None, loss: LossSpec, labels: Iterable[str]) -> tuple[str, ...]:
    """All classes: those given; else those of a cost matrix; else those of the labels, in the order of the alphabet."""
    seen = sorted(set(labels))
    known = tuple(given or loss.cost_matrix or seen)
    if len(set(known)) != len(known) or "" in known:
        raise StakesError(f"each class must be named once, by some letters; got {list(known)}")
    for label in seen:
        checked_class(label, known)
    for name in loss.class_weights or ():
        if name not in known:
            more = "" if given else " If no label has had it yet, name all classes (--classes)."
            raise StakesError(
                f"there is no class {name!r} to weigh; {_there_are(known)}.{did_you_mean(name, known)}{more}"
            )
    return known


def checked_class(label: str, classes: Sequence[str]) -> str:
    """A class by name; any name will do where no class is known."""
    if not label:
        raise StakesError("a label must not be empty; leave a row without one, or skip it.")
    if classes and label not in classes:
        raise StakesError(f"{label!r} is no class; {_there_are(classes)}.{did_you_mean(label, classes)}")
    return label


def domain_of(loss: LossSpec) -> Any:
    """The interval that numbers must be in; None where any will do."""
    if loss.name in LOSSES and LOSSES[loss.name].target != "positive target":
        return None
    return build_loss(loss).domain


def checked_number(label: str, loss: LossSpec, domain: Any) -> str:
    """A number that the loss can judge, as it was written; `domain` is that of the loss, None for all numbers."""
    if kind_of(label) != "number":
        point = " Write it with a decimal point." if "," in label else ""
        raise StakesError(f"{label!r} is no number, and {loss.name} is about numbers.{point}")
    if domain is not None and not _holds(domain, float(label)):
        raise StakesError(f"{label} is not among {domain}, what {loss.name} is about.")
    return label


def as_targets(labels: Sequence[str], task: Task) -> Host:
    """[n]: what a model is fitted to."""
    return np.asarray([float(label) for label in labels]) if task == "real" else np.asarray(labels, dtype=object)


def _holds(domain: Any, value: float) -> bool:
    above: bool = value >= domain.low if domain.closed_low else value > domain.low
    return above and bool(value < domain.high)


def _there_are(classes: Sequence[Any]) -> str:
    names = ", ".join(repr(name) for name in classes[:10])
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    return f"there are {names}{more}" if classes else "none is known yet"


# ----------------------------------------------------------------------
# A table and what is asked of it, read and checked.
#
# Sizes: N rows.

_FEW = 10  # classes that may well be called by numbers


@dataclass(frozen=True, eq=False)
class Worksheet:
    """N rows with ids, features, and labels where there are any."""

    source: Source
    brief: Brief
    task: Task
    ids: tuple[str, ...]
    features: Frame
    labels: dict[int, str]
    """By row, those that the table has."""
    costs: Host | None
    """[N]"""

    @property
    def said(self) -> tuple[str, ...]:
        """What was taken for granted in reading."""
        return (*self.source.said, *self.source.remarks(self.features.names), *self._numbers_as_classes())

    def classes(self, labels: dict[int, str]) -> tuple[str, ...] | None:
        """All classes, as far as the brief and some labels tell them; None for numbers."""
        if self.task == "real":
            return None
        return classes_of(self.brief.classes, self.brief.loss, labels.values())

    def _numbers_as_classes(self) -> tuple[str, ...]:
        """A caution where a loss for classes is given labels that look measured."""
        found = set(self.labels.values()) if self.task == "classes" else set()
        if len(found) <= _FEW or any(kind_of(label) != "number" for label in found):
            return ()
        what = f"The labels are {len(found)} different numbers, and {self.brief.loss.name} takes each for a class."
        return (f"{what} If they are measured, take a loss for numbers, such as squared-error.",)


def read_worksheet(path: str | os.PathLike[str], brief: Brief) -> Worksheet:
    """The table of a file, with every cell that matters checked."""
    return worksheet_of(read_table(path, delimiter=brief.delimiter, missing=brief.missing, text=brief.text), brief)


def feature_names(path: os.PathLike[str], names: Sequence[str], brief: Brief) -> list[str]:
    """The columns that a model may see."""
    for name in brief.roles:
        place_of(name, names)
    features = [name for name in names if name not in brief.roles]
    if not features:
        raise StakesError(f"{path} has no column left to learn from; {', '.join(brief.roles)} are taken")
    return features


def worksheet_of(source: Source, brief: Brief) -> Worksheet:
    """A table that was read, with every cell that matters checked."""
    sheet = unchecked(source, brief)
    _check_labels(sheet)
    return sheet


def unchecked(source: Source, brief: Brief) -> Worksheet:
    """A table that was read, with labels as they are."""
    names = feature_names(source.path, source.names, brief)
    task = task_of(brief.loss)
    cells = {row: text.strip() for row, text in enumerate(source.texts(brief.target)) if text is not None}
    named, features = ids(source, brief.id_column), source.features(names)
    return Worksheet(source, brief, task, named, features, cells, _costs(source, brief))


def _check_labels(sheet: Worksheet) -> None:
    """Refuse the first label that cannot be one, with its place."""
    brief, domain = sheet.brief, domain_of(sheet.brief.loss) if sheet.task == "real" else None
    named = tuple(brief.classes or brief.loss.cost_matrix or ())
    for row, label in sheet.labels.items():
        try:
            if sheet.task == "real":
                checked_number(label, brief.loss, domain)
            else:
                checked_class(label, named)
        except StakesError as error:
            where = f"{sheet.source.path}, {sheet.source.place(row)}, column {brief.target!r}"
            raise StakesError(f"{where}: {error}") from None
    sheet.classes(sheet.labels)


def _costs(source: Source, brief: Brief) -> Host | None:
    """[N]: what each label costs."""
    if brief.cost_column is None:
        return None if brief.label_cost is None else np.full(len(source), float(brief.label_cost))
    cells = source.texts(brief.cost_column)
    bad = [row for row, cell in enumerate(cells) if cell is None or kind_of(cell) != "number" or float(cell) <= 0]
    if bad:
        came = "nothing" if cells[bad[0]] is None else repr(cells[bad[0]])
        raise StakesError(
            f"{source.path}: costs must be positive numbers; column {brief.cost_column!r} holds {came} at "
            f"{source.place(bad[0])}. Fill it in; a label that cannot be bought can be left out of the table."
        )
    return np.asarray([float(cell) for cell in cells if cell is not None])


_ROW = "row"  # the column of ids where the table has none


def write_worksheet(
    path: str | os.PathLike[str],
    sheet: Worksheet,
    rows: Sequence[str],
    labels: Mapping[str, str | None],
    more: Mapping[str, Sequence[Cell]] | None = None,
) -> None:
    """Rows by id, in their order: the id, the cells of the table, the label if there is one, and `more` columns."""
    source, brief = sheet.source, sheet.brief
    place = {row: position for position, row in enumerate(sheet.ids)}
    others = [name for name in source.names if name not in (brief.id_column, brief.target)]
    cells = [source.texts(name) for name in others]
    added = more or {}
    names = [id_name(brief, source.names), *others, brief.target, *(free_name(name, source.names) for name in added)]
    lines = [
        [row, *(column[place[row]] for column in cells), labels.get(row), *(values[at] for values in added.values())]
        for at, row in enumerate(rows)
    ]
    write_csv(path, names, lines)


def id_name(brief: Brief, names: Sequence[str]) -> str:
    """The column of ids in a file that is written."""
    return brief.id_column or free_name(_ROW, names)


def free_name(name: str, names: Sequence[str]) -> str:
    """A name that no column of the table has."""
    return name if name not in names else free_name(f"stakes {name}", names)
