"""Options that several commands share, and the brief that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from stakes.cli.output import at_terminal, prompted
from stakes.exceptions import StakesError
from stakes.files.frame import MAX_CELLS
from stakes.tabular import (
    LOSSES,
    Brief,
    LossSpec,
    ModelSpec,
    Worksheet,
    parse_class_weights,
    parse_options,
    parse_weight,
    read_cost_matrix,
    read_worksheet,
)
from stakes.tabular.costs import (
    CostTable,
    costs_by_class,
    costs_of_tests,
    is_miss_and_false_alarm,
    parse_costs,
    positive_class,
)
from stakes.tabular.target_kinds import labels_in, of_grades, of_labels
from stakes.tabular.worksheet import checked_class, read_source

F = TypeVar("F", bound=Callable[..., Any])

_MATRIX, _THRESHOLD, _ALL_ALIKE = "cost-matrix", "threshold-decision", "zero-one"
_NUMBERS = {option.name: option for entry in LOSSES.values() for option in entry.options}

READING = ("missing", "sheet", "decimal", "thousands", "date", "encoding", "delimiter")
"""Options that say how a table is written."""
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
verbose_option = click.option("--verbose", is_flag=True, help="Say all that was assumed, and why each row was chosen.")
who_option = click.option("--who", help="Your name, for the history.")
force_option = click.option(
    "--force", is_flag=True, help="Overwrite the file if it is there; a campaign, and what is read, never is."
)
trust_option = click.option(
    "--trust", is_flag=True, help="Import the classes (module:Name) that the campaign names; remembered for this file."
)
table_moved = click.option("--table", help="Where the table of the campaign is now, if it was moved.")


def applied(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in their order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


reading_options = applied(
    click.option("--missing", multiple=True, help="A mark for missing values, such as NA; can be repeated."),
    click.option("--sheet", help="The sheet of a spreadsheet; otherwise the one with the target, or the fullest."),
    click.option("--decimal", help="The sign before decimals, . or , where a number such as 1.234 leaves it open."),
    click.option("--thousands", help="The sign between thousands, where numbers leave it open."),
    click.option("--date", help="The order in dates such as 05/06/2024: dmy, mdy or ymd."),
    click.option("--encoding", help="Of a CSV that is not UTF-8, such as cp1252, gbk or utf-16."),
    click.option("--delimiter", help="What separates the cells of a CSV."),
)
table_options = applied(
    click.option(
        "--target",
        help="The column of labels; rows where it is empty are the pool. A,B,C: columns of yes and no, all at once.",
    ),
    click.option("--id", "id_column", help="The column that names rows; they are numbered from 1 otherwise."),
    click.option("--ignore", multiple=True, help="A column that the model must not see; can be repeated."),
    click.option("--classes", help="All classes, as A,B,C, also those that no label has had."),
    click.option("--ordinal", help="Classes that have an order, from the lowest to the highest: low,medium,high."),
    click.option("--text", multiple=True, help="A column of codes that look like numbers; can be repeated."),
    reading_options,
    click.option(
        "--max-cells",
        type=click.IntRange(min=1),
        default=MAX_CELLS,
        show_default=True,
        help="How large a table is read whole, in rows times columns.",
    ),
    click.option(
        "--random-state",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="For all that is drawn at random.",
    ),
)
loss_options = applied(
    click.option("--loss", help="A loss by name (see stakes losses), or module:Name."),
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=float, help=f"Option of a loss. {option.purpose}")
        for name, option in _NUMBERS.items()
    ),
    click.option("--loss-option", multiple=True, help="NAME=VALUE, for a loss of your own; can be repeated."),
    click.option("--weight", help="Which targets count more: exp:RATE, or a CSV of y and weight."),
    click.option("--class-weights", help="Which classes count more: bus=50,van=50; others count 1."),
    click.option("--cost-matrix", help="A CSV: a row for each true class, a column for each decision."),
    click.option("--costs", help='Costs of mistakes: miss=5,false-alarm=1, or "bad>good=5" (truth>answer).'),
)
model_options = applied(
    click.option("--model", default="default", show_default=True, help="A model by name, or module:Name."),
    click.option("--model-option", multiple=True, help="NAME=VALUE, of the model; can be repeated."),
)
money_options = applied(
    click.option("--cost", "cost_column", help="The column of what a label of each row costs, in units of the loss."),
    click.option("--label-cost", type=float, help="What a label of any row costs, in units of the loss."),
    click.option("--decisions", type=float, help="How many decisions will be taken with the model, in all."),
    click.option(
        "--budget",
        type=float,
        help="For all labels to come, in units of the costs (a label costs 1 if none are given).",
    ),
)
_MONEY = ("cost_column", "label_cost", "decisions", "budget")
_READING = ("target", "id_column", "ignore", "text", *READING, "max_cells", "random_state")


def brief_from(given: dict[str, Any], table: str) -> tuple[Brief, tuple[str, ...]]:
    """The brief that the options make, which are taken out of `given`; and sentences on what --costs was taken for."""
    costs = given.pop("costs")
    if costs is not None:
        given["loss"] = _loss_of_costs(given)
    line = None if costs is None else parse_costs(costs)
    classes = given.pop("classes")
    names = None if classes is None else tuple(name.strip() for name in classes.split(","))
    grades = given.pop("ordinal", None)
    if grades is not None:
        if classes is not None:
            raise click.UsageError("--ordinal names all classes in their order; leave --classes out.")
        names = tuple(name.strip() for name in grades.split(","))
        given["loss"] = given["loss"] or "absolute-error"
    known = {name: given.pop(name) for name in (*_READING, *_MONEY) if name in given}
    model = ModelSpec(given.pop("model"), parse_options(given.pop("model_option")))
    if labels := _labels(known, table):
        if names is not None:
            raise click.UsageError("the classes of several labels are their sets; leave --classes and --ordinal out.")
        if line is not None and not is_miss_and_false_alarm(line):
            raise click.UsageError("--costs of several labels are miss=..,false-alarm=.., the same for each.")
        plain = {**given, "loss": _ALL_ALIKE} if line is not None else given
        weights = plain.pop("class_weights") if plain["loss"] == _ALL_ALIKE else None
        spec = _loss({"class_weights": None, **plain})
        counted = None if weights is None else parse_class_weights(weights)
        loss, model, sets = of_labels(spec, model, labels, line, counted)
        return Brief(loss=loss, model=model, classes=sets, **known), ()
    if grades is not None and line is None:
        loss, model = of_grades(_loss(given), model, names or ())
        return Brief(loss=loss, model=model, classes=names, **known), ()
    if grades is not None:
        model = of_grades(LossSpec(_ALL_ALIKE), model, names or ())[1]
    if line is None or given["loss"] == _THRESHOLD:
        return Brief(loss=_loss(given, line), model=model, classes=names, **known), ()
    unread = Brief(loss=LossSpec(_ALL_ALIKE), model=model, classes=names, **known)
    matrix, notes = _matrix(line, read_worksheet(table, unread, stream=True))  # once more than is read anyway
    return replace(unread, loss=_loss(given, matrix=matrix)), notes


def _labels(known: dict[str, Any], table: str) -> tuple[str, ...]:
    """The columns of labels that a target names which is none itself: rows may then have several."""
    if "," not in (known["target"] or ""):
        return ()
    first = known["target"].split(",")[0].strip()
    unread = Brief(**{**known, "target": first, "loss": LossSpec(_ALL_ALIKE), **dict.fromkeys(_MONEY)})
    return labels_in(known["target"], read_source(table, unread).names)


def reading_brief(given: dict[str, Any]) -> Brief:
    """A brief that says how a table is read, and nothing of what is asked of it yet."""
    known = {name: given[name] for name in _READING if name in given}
    return Brief(**{**known, "target": given["target"] or "", "loss": LossSpec(_ALL_ALIKE)})


def _loss_of_costs(given: dict[str, Any]) -> str:
    """The loss that --costs is about."""
    if given["cost_matrix"] is not None:
        raise click.UsageError("give the costs in a file (--cost-matrix) or in a line (--costs), not both.")
    if given["loss"] not in (None, _MATRIX, _THRESHOLD):
        raise click.UsageError(
            f"--costs is for --loss {_MATRIX} or {_THRESHOLD}, not for {given['loss']}; leave --loss out."
        )
    return given["loss"] or _MATRIX


def _matrix(line: dict[str, float], sheet: Worksheet) -> tuple[CostTable, tuple[str, ...]]:
    """The cost matrix of --costs for the classes of a table, and sentences on how it was read."""
    counts = Counter(sheet.labels.values())
    named = sheet.brief.classes
    classes = sorted(counts) if named is None else named
    if not is_miss_and_false_alarm(line):
        table, note = costs_by_class(line, classes, complete=named is not None or len(classes) > 1)
        return table, (note,) if note else ()
    if len(classes) != 2:
        raise StakesError(
            f"--costs miss=..,false-alarm=.. is for two classes, and column {sheet.brief.target!r} has "
            f"{len(classes)} so far. Name the mistakes by truth and answer, such as "
            f'--costs "bad>good=5,good>bad=1", or both classes (--classes bad,good)'
        )
    found = positive_class({name: counts[name] for name in classes}, None if named is None else named[0])
    positive, why = found or _asked_positive(classes)
    table, note = costs_of_tests(line, positive, next(name for name in classes if name != positive))
    return table, (f"{note}: {positive!r} is taken for the class that must not be missed, as {why}.",)


def _asked_positive(classes: Sequence[str]) -> tuple[str, str]:
    """The class that must not be missed, as whoever sits at the terminal says."""
    one, other = classes
    if not at_terminal():
        raise StakesError(
            f"a miss could be {one!r} answered by {other!r}, or the reverse. Name the mistakes by truth and answer: "
            f'--costs "{one}>{other}=5,{other}>{one}=1", or the class that must not be missed first: --classes '
            f"{one},{other}"
        )
    chosen = prompted(f"Which class must not be missed, {one} or {other}?", lambda name: checked_class(name, classes))
    return chosen, "you said so"


def files_read(table: str, given: dict[str, Any]) -> list[str]:
    """The files that options name: they are read, and nothing is written over them."""
    named = [table, given.get("cost_matrix"), given.get("weight")]
    return [each for each in named if each is not None]


def _loss(given: dict[str, Any], costs: dict[str, float] | None = None, matrix: CostTable | None = None) -> LossSpec:
    numbers = {name: value for name in _NUMBERS if (value := given.pop(name)) is not None}
    if costs is not None:
        numbers = {**{name.replace("-", "_"): cost for name, cost in costs.items()}, **numbers}
    own, weight = parse_options(given.pop("loss_option")), given.pop("weight")
    class_weights, file = given.pop("class_weights"), given.pop("cost_matrix")
    return LossSpec(
        given.pop("loss"),
        {**numbers, **own},
        None if weight is None else parse_weight(weight),
        None if class_weights is None else parse_class_weights(class_weights),
        matrix if file is None else read_cost_matrix(file),
    )
