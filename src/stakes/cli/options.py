"""Options that several commands share, and the brief that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stakes.files.frame import MAX_CELLS
from stakes.tabular import (
    LOSSES,
    Brief,
    LossSpec,
    ModelSpec,
    parse_class_weights,
    parse_options,
    parse_weight,
    read_cost_matrix,
)

F = TypeVar("F", bound=Callable[..., Any])

_NUMBERS = {option.name: option for entry in LOSSES.values() for option in entry.options}

READING = ("missing", "sheet", "decimal", "thousands", "date", "encoding", "delimiter")
"""Options that say how a table is written."""
json_option = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
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
    click.option("--sheet", help="The sheet of a spreadsheet; the first that is shown otherwise."),
    click.option("--decimal", help="The sign before decimals, . or , where a number such as 1.234 leaves it open."),
    click.option("--thousands", help="The sign between thousands, where numbers leave it open."),
    click.option("--date", help="The order in dates such as 05/06/2024: dmy, mdy or ymd."),
    click.option("--encoding", help="Of a CSV that is not UTF-8, such as cp1252, gbk or utf-16."),
    click.option("--delimiter", help="What separates the cells of a CSV."),
)
table_options = applied(
    click.option("--target", required=True, help="The column of labels; rows where it is empty are the pool."),
    click.option("--id", "id_column", help="The column that names rows; they are numbered from 1 otherwise."),
    click.option("--ignore", multiple=True, help="A column that the model must not see; can be repeated."),
    click.option("--classes", help="All classes, as A,B,C, also those that no label has had."),
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
    click.option("--loss", required=True, help="A loss by name (see stakes losses), or module:Name."),
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=float, help=f"Option of a loss. {option.purpose}")
        for name, option in _NUMBERS.items()
    ),
    click.option("--loss-option", multiple=True, help="NAME=VALUE, for a loss of your own; can be repeated."),
    click.option("--weight", help="Which targets count more: exp:RATE, or a CSV of y and weight."),
    click.option("--class-weights", help="Which classes count more: bus=50,van=50; others count 1."),
    click.option("--cost-matrix", help="A CSV: a row for each true class, a column for each decision."),
)
model_options = applied(
    click.option("--model", default="default", show_default=True, help="A model by name, or module:Name."),
    click.option("--model-option", multiple=True, help="NAME=VALUE, of the model; can be repeated."),
)
money_options = applied(
    click.option("--cost", "cost_column", help="The column of what a label of each row costs, in units of the loss."),
    click.option("--label-cost", type=float, help="What a label of any row costs, in units of the loss."),
    click.option("--decisions", type=float, help="How many decisions will be taken with the model."),
    click.option(
        "--budget",
        type=float,
        help="For all labels to come, in units of the costs (a label costs 1 if none are given).",
    ),
)


def brief_from(given: dict[str, Any]) -> Brief:
    """The brief that the options make; they are taken out of `given`."""
    loss, model = _loss(given), ModelSpec(given.pop("model"), parse_options(given.pop("model_option")))
    classes = given.pop("classes")
    names = None if classes is None else tuple(name.strip() for name in classes.split(","))
    fields = ("target", "id_column", "ignore", "text", *READING, "max_cells", "random_state")
    money = ("cost_column", "label_cost", "decisions", "budget")
    known = {name: given.pop(name) for name in (*fields, *money) if name in given}
    return Brief(loss=loss, model=model, classes=names, **known)


def files_read(table: str, given: dict[str, Any]) -> list[str]:
    """The files that options name: they are read, and nothing is written over them."""
    named = [table, given.get("cost_matrix"), given.get("weight")]
    return [each for each in named if each is not None]


def _loss(given: dict[str, Any]) -> LossSpec:
    numbers = {name: value for name in _NUMBERS if (value := given.pop(name)) is not None}
    own, weight = parse_options(given.pop("loss_option")), given.pop("weight")
    class_weights, costs = given.pop("class_weights"), given.pop("cost_matrix")
    return LossSpec(
        given.pop("loss"),
        {**numbers, **own},
        None if weight is None else parse_weight(weight),
        None if class_weights is None else parse_class_weights(class_weights),
        None if costs is None else read_cost_matrix(costs),
    )
