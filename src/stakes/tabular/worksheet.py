"""A table and what is asked of it, read and checked: its target, the loss, the model, and what its columns are.

Labels are as people write them: the name of a class, or a number that the loss can judge.

Sizes: N rows, n labels.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from stakes._utils.arguments import as_seed, as_texts_of, is_positive
from stakes._utils.text import did_you_mean
from stakes.exceptions import StakesError
from stakes.files.cells import GAPS, SURE_GAPS, Formats, checked_formats, plain_number, unit_of
from stakes.files.frame import MAX_CELLS, Frame, Host, cell_kind, check_size, place_of
from stakes.files.read import Source, read_table, row_ids
from stakes.tabular.costs import CostTable
from stakes.tabular.loss_specs import LOSSES, LossSpec, build_loss, is_path
from stakes.tabular.model_specs import ModelSpec, Task
from stakes.tabular.target_kinds import labels_in, with_label_sets

if TYPE_CHECKING:
    from stakes.tabular.streamed import StreamedRows

_POSITIVE = ("label_cost", "decisions", "budget")
_OPTIONS = ("delimiter", "sheet", "decimal", "thousands", "encoding", "date")
_TEXTS = ("target", "id_column", "cost_column", *_OPTIONS, "unit")
_LISTS = ("ignore", "classes", "missing", "text")
_KEPT: dict[str, tuple[tuple[type, ...], bool, bool]] = {  # kinds of values, whether in a list, whether None will do
    "target": ((str,), False, False),
    **dict.fromkeys(("id_column", "cost_column", "delimiter"), ((str,), False, True)),
    **dict.fromkeys(("label_cost", "decisions", "budget"), ((int, float), False, True)),
    **dict.fromkeys(("ignore", "missing", "text"), ((str,), True, False)),
    "classes": ((str,), True, True),
    "random_state": ((int,), False, False),
    **dict.fromkeys(("loss", "model"), ((dict,), False, False)),
}
_LATER: dict[str, tuple[tuple[type, ...], bool, bool]] = dict.fromkeys(
    (*_OPTIONS[1:], "unit"), ((str,), False, True)
)  # those that a brief may lack
_FEW = 10  # classes that may well be called by numbers


@dataclass(frozen=True)
class Brief:
    """What is asked of a table: all that it does not say itself; kept as JSON.

    Args:
        target: The column of labels; rows without one are the pool.
        loss: What errors cost: a spec; a name, which stands for a spec without options; or a loss, such as
            `Linex(0.5)`, which is kept by its name and parameters.
        model: What predicts the target: a spec, a name, or an estimator, such as `Ridge()`, likewise. What it has
            learned is not kept.
        id_column: The column that names rows; they are numbered from 1 without.
        cost_column: The column of what a label of each row costs, in units of the loss.
        label_cost: What a label of any row costs, where there is no such column.
        ignore: Columns that the model does not see.
        classes: All classes, also those that no label has had; those of the labels without.
        decisions: How many decisions will be taken with the model.
        budget: For all labels to come, in units of the costs (a label costs 1 without any).
        random_state: A whole number, or a generator of which one is drawn.
        missing: Marks that stand for gaps, among labels too, but for those named among the `classes`.
        text: Columns that are text although they look like numbers.
        delimiter: What stands between the cells of a CSV; found in its lines without.
        sheet: Of a spreadsheet; without, the one with the target, or with the most cells.
        decimal: The sign before decimals, "." or ",", where a number can be read both ways.
        thousands: The sign between thousands, where a number can be read both ways.
        encoding: Of a CSV; found in its bytes without.
        date: The order in dates of digits, "dmy", "mdy" or "ymd", where they can be read in several.
        unit: What stands beside the labels of a CSV, "%" or the sign of a currency, "" for nothing; found in the table
            without. Labels that are given as text later must be written so.
        max_cells: How large a table may be that is read whole, in rows times columns, and in characters 50 times that.

    Raises:
        StakesError: If two of them contradict each other, or a number is out of range.

    Examples:
        >>> brief = Brief("price", LossSpec("pinball", {"tau": 0.2}), id_column="flat", budget=10)
        >>> Brief.from_dict(brief.to_dict()) == brief
        True
    """

    target: str
    loss: LossSpec
    model: ModelSpec = field(default_factory=ModelSpec)
    id_column: str | None = None
    cost_column: str | None = None
    label_cost: float | None = None
    ignore: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    decisions: float | None = None
    budget: float | None = None
    random_state: int = 0
    missing: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    delimiter: str | None = None
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    date: str | None = None
    unit: str | None = None
    max_cells: int = MAX_CELLS

    def __post_init__(self) -> None:
        self._check_specs()
        for name in _LISTS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_texts_of(name, getattr(self, name)))
        for name in _TEXTS:
            value = getattr(self, name)
            if not isinstance(value, str) and not (value is None and name != "target"):
                raise StakesError(f"{name} must be a text, the name of a column or a sign; got {value!r:.100}")
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not is_positive(value):
                raise StakesError(f"{name} must be a positive number; got {value!r:.100}")
        check_size(Path(), self.max_cells, 0)
        if any((self.decimal is not None, self.thousands is not None, self.date is not None)):
            checked_formats(self.decimal, self.thousands, self.date)
        object.__setattr__(self, "random_state", as_seed(self.random_state))
        if self.cost_column is not None and self.label_cost is not None:
            raise StakesError("give a column of costs or one cost for all labels, not both")
        self._check_columns()

    def _check_specs(self) -> None:
        """A name stands for a spec without options; a loss or an estimator for the spec by which it is kept."""
        for name, kind in (("loss", LossSpec), ("model", ModelSpec)):
            value = getattr(self, name)
            if isinstance(value, str):
                object.__setattr__(self, name, kind(value))
            elif not isinstance(value, kind):
                from stakes.tabular.objects import spec_of_loss, spec_of_model  # here: a name needs no library

                object.__setattr__(self, name, spec_of_loss(value) if name == "loss" else spec_of_model(value))

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

    def imports(self, *, model: bool = True) -> tuple[str, ...]:
        """What is named by "module:Name", and imported when it is used.

        Args:
            model: Whether to look at the model, and what is in its parameters, beside the loss.

        Returns:
            The names, each once.
        """
        loss = [self.loss.name] if is_path(self.loss.name) else []
        return tuple(dict.fromkeys([*loss, *(_import_paths(self.model.to_dict()) if model else ())]))

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON keeps them."""
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        lists = {name: list(value) for name, value in kept.items() if isinstance(value, tuple)}
        return {**kept, **lists, "loss": self.loss.to_dict(), "model": self.model.to_dict()}

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> Brief:
        """From JSON.

        Args:
            kept: What `to_dict` gave.

        Returns:
            The brief.

        Raises:
            StakesError: If it is something else.
        """
        known = {each.name for each in fields(Brief)}
        _check_kept(kept)
        if unknown := sorted(set(kept) - known):
            raise StakesError(f"a brief has no {unknown[0]!r}; was it written by a newer stakes?")
        specs = {"loss": LossSpec.from_dict(kept["loss"]), "model": ModelSpec.from_dict(kept["model"])}
        return Brief(**{**kept, **specs})


def _import_paths(spec: Any) -> list[str]:
    """Every "module:Name" of a model and in its parameters, however deep."""
    if isinstance(spec, Mapping):
        here = [spec[name] for name in ("name", "model") if isinstance(spec.get(name), str) and ":" in spec[name]]
        return here + [each for value in spec.values() for each in _import_paths(value)]
    return [each for value in spec for each in _import_paths(value)] if isinstance(spec, list | tuple) else []


def _check_kept(kept: Any) -> None:
    """Refuse a brief from JSON in which a field is missing or of another kind."""
    for name, (kinds, many, empty) in {**_KEPT, **_LATER}.items():
        if not isinstance(kept, Mapping) or (name not in kept and name in _KEPT):
            raise StakesError(f"a brief needs {name!r}; got {kept!r:.100}")
        if name not in kept:
            continue  # it was written before there was such an option
        value = kept[name]
        values = value if many and isinstance(value, list | tuple) else [value]
        right = (empty and value is None) or (many == isinstance(value, list | tuple))
        if not right or not all((empty and value is None) or type(each) in kinds for each in values):
            raise StakesError(f"{name} of a brief cannot be {value!r:.100}")


def loss_task(loss: LossSpec) -> Task:
    """Whether a loss is about classes or numbers; losses are imported only where the catalogue does not tell."""
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


def checked_real(label: str, loss: LossSpec, domain: Any) -> str:
    """A number that the loss can judge, as it was written; `domain` is that of the loss, None for all numbers."""
    if cell_kind(label) != "number":
        advice = "Write it with a decimal point." if "," in label else "For classes take another, such as zero-one."
        raise StakesError(f"{label!r} is no number, and {loss.name} is about numbers. {advice}")
    if domain is not None and not _holds(domain, float(label)):
        raise StakesError(f"{label} is not among {domain}, what {loss.name} is about.")
    return label


def as_targets(labels: Sequence[str], task: Task) -> Host:
    """[n]: labels as a model is fitted to them: numbers, or names of classes."""
    return np.asarray([float(label) for label in labels]) if task == "real" else np.asarray(labels, dtype=object)


def _holds(domain: Any, value: float) -> bool:
    above: bool = value >= domain.low if domain.closed_low else value > domain.low
    return above and bool(value < domain.high)


def _there_are(classes: Sequence[Any]) -> str:
    names = ", ".join(repr(name) for name in classes[:10])
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    return f"there are {names}{more}" if classes else "none is known yet"


@dataclass(frozen=True, eq=False)
class Worksheet:
    """A table and what is asked of it: N rows with ids, features, and labels where there are any.

    Attributes:
        source: The table as it is in the file.
        brief: What is asked of it.
        task: "real" or "classes": what the target is.
        ids: [N]: names of rows.
        features: [N, p]: the columns that the model sees.
        labels: By row, those that the table has.
        costs: [N]: what each label costs; None where that is not known.
        stream: The rows without a label, where they stay in their file; the N rows are then those with a label and a
            sample of the others. None where all rows are in memory.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "x", "y"], [("a", 1, 2.5), ("b", 2, None)])
        ...     sheet = read_worksheet(f"{folder}/t.csv", Brief("y", LossSpec("squared-error"), id_column="id"))
        >>> sheet.ids, sheet.labels, sheet.features.names
        (('a', 'b'), {0: '2.5'}, ('x',))
    """

    source: Source
    brief: Brief
    task: Task
    ids: tuple[str, ...]
    features: Frame
    labels: dict[int, str]
    costs: Host | None
    stream: StreamedRows | None = None

    @property
    def n_open(self) -> int:
        """How many rows of the table have no label."""
        return len(self.ids) - len(self.labels) if self.stream is None else self.stream.n_rows

    @property
    def likely_id(self) -> str | None:
        """The column that most likely is the id, where none is given; None where there is none."""
        if self.brief.id_column is not None:
            return None
        return next(iter(self.source.likely_ids(_feature_columns(self.source, self.brief))), None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was taken for granted in reading."""
        source, brief = self.source, self.brief
        names = _feature_columns(source, brief)
        numbers = [*names, brief.cost_column, brief.target if self.task == "real" else None]
        named = [name] if (name := self.likely_id) is not None else []
        return (
            *(
                f"No two rows have the same {name!r}: --id {quote(name)} calls rows by it, and keeps it from the model."
                for name in named
            ),
            *(_class_notes(source, brief) if self.task == "classes" else ()),
            *source.notes,
            *source.sentences(filter(None, numbers)),
            *source.remarks(name for name in names if name not in named),
            *self._numbers_as_classes(),
        )

    def classes(self, labels: Mapping[int, str]) -> tuple[str, ...] | None:
        """All classes, as far as the brief and some labels tell them.

        Args:
            labels: By row.

        Returns:
            The classes in their order; None for numbers.

        Raises:
            StakesError: If a label is of none of the classes that the brief names.
        """
        if self.task == "real":
            return None
        return classes_of(self.brief.classes, self.brief.loss, labels.values())

    def _numbers_as_classes(self) -> tuple[str, ...]:
        """A caution where a loss for classes is given labels that look measured."""
        found = set(self.labels.values()) if self.task == "classes" else set()
        if len(found) <= _FEW or any(cell_kind(label) != "number" for label in found):
            return ()
        what = f"The labels are {len(found)} different numbers, and {self.brief.loss.name} takes each for a class."
        return (f"{what} If they are measured, take a loss for numbers, such as squared-error.",)


def read_worksheet(path: str | os.PathLike[str], brief: Brief, *, stream: bool = False) -> Worksheet:
    """Read the table of a file, with every cell that matters checked.

    Args:
        path: A CSV, a spreadsheet, a Parquet or an Arrow file.
        brief: What is asked of it.
        stream: Whether to leave the rows without a label in their file, where that is a Parquet or Arrow file with many
            rows, or a folder of them.

    Returns:
        The table.

    Raises:
        StakesError: If the file cannot be read, a column is not there, or a cell cannot be what it should be; the
            message names the place.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["x", "y"], [(1, 2.5), (2, None)])
        ...     read_worksheet(f"{folder}/t.csv", Brief("y", LossSpec("squared-error"))).n_open
        1
    """
    if stream:
        from stakes.tabular.streamed import read_streamed, stays_in_file

        if stays_in_file(path):
            return read_streamed(path, brief)
    return worksheet_of(read_source(path, brief), brief)


def read_source(path: str | os.PathLike[str], brief: Brief, **changed: Any) -> Source:
    """A table as it is in its file, read as a brief says, but for options that are `changed`."""
    options = {name: getattr(brief, name) for name in (*_OPTIONS, "missing", "text", "max_cells")}
    labels = tuple(brief.model.parameters.get("labels", ()))  # of rows that may have several
    having = labels[0] if labels else brief.target or None
    source = read_table(path, **{**options, "having": having, **changed})
    if labels and labels_in(",".join(labels), source.names):
        return with_label_sets(source, labels, brief.target)
    return source


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
    feature_names(source.path, source.names, brief)
    task = loss_task(brief.loss)
    known = _settled(source, brief, task)
    if gaps := known.missing[len(brief.missing) :]:
        source = replace(
            source, missing=frozenset(known.missing), notes=(*source.notes, *gap_notes(gaps, brief.target))
        )
    names = _feature_columns(source, known)
    named, features = row_ids(source, known.id_column), source.features(names)
    return Worksheet(source, known, task, named, features, labels_of(source, known, task), _costs(source, known))


def _feature_columns(source: Source, brief: Brief) -> list[str]:
    """The columns of the table that features are made of."""
    return [name for name in source.names if name not in brief.roles and name != source.index]


def _settled(source: Source, brief: Brief, task: Task) -> Brief:
    """The brief with what the table itself has told, so that labels that come later are read as those in it."""
    found: dict[str, Any] = {}
    if brief.id_column is None and source.index is not None and source.tells_apart(source.index):
        found["id_column"] = source.index
    if brief.sheet is None and source.sheet is not None:
        found["sheet"] = source.sheet
    if source.lines is not None:
        found |= _label_formats(source, brief, task)
    if task == "classes" and (gaps := _gaps_among_classes(source, brief)):
        found["missing"] = (*brief.missing, *sorted(gaps))
    return replace(brief, **found) if found else brief


def _label_formats(source: Source, brief: Brief, task: Task) -> dict[str, Any]:
    """How labels that come later are written, as far as the cells of a CSV or a spreadsheet tell."""
    found: dict[str, Any] = {}
    reading = source.reading(brief.target) if task == "real" else None
    if brief.decimal is None and brief.thousands is None:
        if source.decimal == ",":
            found["decimal"] = ","
        elif reading is not None and reading.kind == "number" and any("," in cell for cell in reading.values or ()):
            found["thousands"] = ","
    plain = reading is not None and reading.kind == "number" and source.sheet is None  # a sheet shows 0.12 as 12 %
    if brief.unit is None and plain and any(cell is not None for cell in source.numbers(brief.target)):
        found["unit"] = source.unit(brief.target)
    return found


def labels_of(source: Source, brief: Brief, task: Task) -> dict[int, str]:
    """Labels by row: classes as they are written, numbers as `float` takes them; one that is none as it is."""
    if task == "classes":
        gaps = class_gaps(brief)
        texts = [cell if cell is None else cell.strip() for cell in source.texts(brief.target)]
        return {row: cell for row, cell in enumerate(texts) if cell is not None and cell not in gaps}
    cells = source.numbers(brief.target)
    if source.reading(brief.target).kind != "number":  # then each is looked at by itself, so that the one is named
        cells = [None if cell is None or cell.lower() in GAPS else _by_itself(cell, brief) for cell in cells]
    return {row: cell for row, cell in enumerate(cells) if cell is not None}


def _by_itself(cell: str, brief: Brief) -> str:
    try:
        return written_label(cell, brief, numbers=True)
    except StakesError:
        return cell


def written_label(label: str | float, brief: Brief, *, numbers: bool) -> str:
    """A label that somebody gives, as it is kept: 1,5 as 1.5; what is no number as it is.

    A number that may be two is refused: 1,234 where nothing tells which, and 5 or 5 % where other labels are per cents
    or are not.
    """
    text = str(label).strip()
    if not numbers or not isinstance(label, str):
        return text
    check_unit(text, brief)
    found = plain_number(text, Formats(brief.decimal, brief.thousands))
    return text if found is None or (cell_kind(text) == "number" and float(text) == float(found)) else found


def check_unit(text: str, brief: Brief) -> None:
    """Refuse a label with another sign beside it than the labels of the table have."""
    unit = unit_of(text)
    if brief.unit is None or unit is None or unit == brief.unit:
        return
    if brief.unit == "%":
        raise StakesError(f"the labels in {brief.target!r} are per cents, and {text!r} is none: write {text} %, if so")
    if unit == "%":
        raise StakesError(
            f"the labels in {brief.target!r} are no per cents, so {text!r} may be "
            f"{plain_number(text, Formats(brief.decimal, brief.thousands))} or {text.replace('%', '').strip()}: write "
            "the one that is meant"
        )
    if unit and brief.unit:
        raise StakesError(f"the labels in {brief.target!r} are in {brief.unit}; got {text!r}")


def class_gaps(brief: Brief) -> frozenset[str]:
    """Marks that stand for a gap among classes, too: those given, but for those that name a class."""
    return frozenset({*brief.missing} - named_classes(brief))


def named_classes(brief: Brief) -> set[str]:
    """Classes that the brief names, whatever they are called."""
    return {*(brief.classes or ()), *(brief.loss.cost_matrix or ()), *(brief.loss.class_weights or ())}


def _gaps_among_classes(source: Source, brief: Brief) -> set[str]:
    """NA and the like among classes, where no cell is empty: else there would be nothing to label."""
    cells = set(source.texts(brief.target))
    found = {cell.strip() for cell in cells if cell is not None and cell.strip().lower() in SURE_GAPS}
    return set() if None in cells or len(found) == len(cells) else found - named_classes(brief) - {*brief.missing}


def gap_notes(gaps: Iterable[str], target: str) -> tuple[str, ...]:
    """That marks among classes were taken for gaps, which nobody had said."""
    return tuple(
        f"{cell!r} in {target!r} is taken for a gap; if it is a class, name all classes (--classes)." for cell in gaps
    )


def _class_notes(source: Source, brief: Brief) -> tuple[str, ...]:
    """NA and the like among the classes that were taken for classes."""
    seen = {cell.strip() for cell in source.texts(brief.target) if cell is not None}
    return tuple(
        f"{cell!r} in {brief.target!r} is taken for a class; if it stands for a gap: --missing {quote(cell)}."
        for cell in sorted(seen - named_classes(brief) - class_gaps(brief))
        if cell.lower() in SURE_GAPS
    )


def _check_labels(sheet: Worksheet) -> None:
    """Refuse the first label that cannot be one, with its place."""
    brief, domain = sheet.brief, domain_of(sheet.brief.loss) if sheet.task == "real" else None
    named = tuple(brief.classes or brief.loss.cost_matrix or ())
    for row, label in sheet.labels.items():
        try:
            if sheet.task == "real":
                checked_real(label, brief.loss, domain)
            else:
                checked_class(label, named)
        except StakesError as error:
            where = f"{sheet.source.path}, {sheet.source.place(row)}, column {brief.target!r}"
            raise StakesError(f"{where}: {error}{_from_file(brief)}") from None
    sheet.classes(sheet.labels)


def _from_file(brief: Brief) -> str:
    """A sentence on where classes are from, where that is the file of a cost matrix."""
    costs = brief.loss.cost_matrix
    if brief.classes or not isinstance(costs, CostTable) or not costs.file:
        return ""
    return f" The classes are the rows of {costs.file.removesuffix(': ')}."


def _costs(source: Source, brief: Brief) -> Host | None:
    """[N]: what each label costs."""
    if brief.cost_column is None:
        return None if brief.label_cost is None else np.full(len(source), float(brief.label_cost))
    cells = source.numbers(brief.cost_column)
    bad = [row for row, cell in enumerate(cells) if cell is None or cell_kind(cell) != "number" or float(cell) <= 0]
    if bad:
        came = "nothing" if cells[bad[0]] is None else repr(source.texts(brief.cost_column)[bad[0]])
        raise StakesError(
            f"{source.path}: costs must be positive numbers; column {brief.cost_column!r} holds {came} at "
            f"{source.place(bad[0])}. Fill it in; a label that cannot be bought can be left out of the table."
        )
    return np.asarray([float(cell) for cell in cells if cell is not None])
