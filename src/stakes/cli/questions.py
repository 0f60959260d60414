"""What a command line leaves open about a table: asked at a terminal, proposed elsewhere, and always as flags.

Every answer is shown as the flag for it, and after the last one the whole command is printed, so that it can be
repeated without a question.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import click

from stakes._utils.text import counted, did_you_mean, listed, printable
from stakes.cli.options import reading_brief
from stakes.cli.output import WIDTH, at_terminal, prompted, shell_word, wrapped
from stakes.exceptions import StakesError
from stakes.files.frame import cell_kind
from stakes.files.read import Source
from stakes.tabular import Brief
from stakes.tabular.costs import cost_line, parse_costs
from stakes.tabular.proposals import (
    ColumnLook,
    id_proposals,
    look,
    loss_proposals,
    target_proposals,
    usual_limit,
)
from stakes.tabular.target_kinds import labels_in
from stakes.tabular.worksheet import read_source

_LISTED = 8  # columns that are offered for the target
_NONE = "-"


class Incomplete(click.ClickException):
    """A command that leaves something open, with the one to run in its message; nothing was done."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """The message, as it is."""
        (file or io.StringIO()).write(f"{self.format_message()}\n")


def complete(table: str, given: dict[str, Any], *, as_json: bool, gaps: bool = True) -> None:
    """Make sure that `given` names a target and a loss; whoever sits at the terminal is asked for them.

    Args:
        table: The file.
        given: Options by name; what is answered is put there.
        as_json: Whether the command answers a program, which is asked nothing.
        gaps: Whether it is about rows without a label, so that a target must have empty cells.

    Raises:
        Incomplete: If something is left open, and nobody is there to ask.
    """
    if given["target"] is not None and any(given.get(name) is not None for name in ("loss", "costs", "ordinal")):
        return
    source = _source(table, reading_brief(given))
    if given["target"] is not None and labels_in(given["target"], source.names):
        given["loss"] = "zero-one"  # of each label
        return
    columns = look(source)
    size = f"{table}{f', sheet {source.sheet!r},' if source.sheet else ''} has {counted(len(source), 'row')}"
    if not (at_terminal() and not as_json):
        raise Incomplete(_proposed(f"{size} and {counted(len(columns), 'column')}", columns, given, gaps))
    _say(f"{size} and {counted(len(columns), 'column')}. Press Enter to accept the answer in brackets.")
    _ask(columns, given, gaps)
    click.echo(f"\nThe same without questions:\n  {printable(command_line(given))}\n", err=True)


def _source(table: str, brief: Brief) -> Source:
    """The table; of one that stays in its file, some rows."""
    from stakes.tabular.streamed import read_sample, stays_in_file

    return read_sample(table, brief) if stays_in_file(table) else read_source(table, brief)


def command_line(
    given: dict[str, Any],
    command: str | None = None,
    arguments: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> str:
    """The command with these options, as flags.

    Args:
        given: Options by name, as they are now: they may have been answered since.
        command: Its name; that of the command that runs without.
        arguments: What stands before the flags; that of the command that runs without.
        without: Options that are left out.

    Returns:
        A line for a shell; options that have their default value are left out.
    """
    context = click.get_current_context()
    now = {**context.params, **given}
    parts, flags = [command or context.info_name or ""], list[str]()
    for each in context.command.params:
        value = now.get(each.name or "")
        if isinstance(each, click.Argument):
            parts += [str(value)] if arguments is None else []
        elif each.name not in without and value not in (None, (), False) and value != each.get_default(context):
            longest = max(each.opts, key=len)
            values = value if isinstance(value, tuple) else (value,)
            flags += [longest] if value is True else [part for one in values for part in (longest, _written(one))]
    return " ".join(map(shell_word, ["stakes", *parts, *(arguments or ()), *flags]))


def _written(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _column(columns: Sequence[ColumnLook], name: str) -> ColumnLook:
    for column in columns:
        if column.name == name:
            return column
    names = [column.name for column in columns]
    raise StakesError(f"there is no column {name!r}; there are {listed(names)}.{did_you_mean(name, names)}")


def _proposed(size: str, columns: Sequence[ColumnLook], given: dict[str, Any], gaps: bool) -> str:
    """What the table looks like, and the command to run."""
    loss = given["loss"] is not None or given["costs"] is not None
    missing = ["what to predict"] * (given["target"] is None) + ["what errors cost"] * (not loss)
    lines = wrapped(f"stakes: {size}. Nothing was done: say {', and '.join(missing)}.")
    flags: dict[str, str] = {}
    if given["target"] is None:
        target, why = target_proposals(columns)[0]
        flags["target"] = target.name
        because = f", as {why}" if why else ""
        lines += wrapped(f"The target would be {target.name!r} ({target.contents}){because}.", "  ", "- ")
        if gaps and target.filled == target.size:
            lines += wrapped(_NO_GAP, "  ")
    else:
        target = _column(columns, given["target"])
    if not loss:
        choices = loss_proposals(target)
        flags["loss"] = choices[0].name
        lines.append("- The loss, --loss, is one of these (stakes losses has more):")
        for choice in choices:
            text = f"{choice.meaning} Example: {choice.example}{choice.flags and f' ({choice.flags})'}."
            lines += wrapped(text, " " * 23, f"    {choice.name:19}")
        if target.grades:
            lines += wrapped(_grades(target), "  ", "- ")
    if given.get("id_column") is None and (ids := id_proposals(columns, target.name)):
        flags["id_column"] = ids[0][0].name
        lines += wrapped(f"Rows would be called by {ids[0][0].name!r}, as {ids[0][1]}.", "  ", "- ")
    return "\n".join([*lines, "Run:", f"  {command_line({**given, **flags})}"])


def _grades(target: ColumnLook) -> str:
    """What to say where classes seem to have an order."""
    return f"If {target.name!r} holds grades, mistakes cost more the further they are off: --ordinal " + shell_word(
        ",".join(target.grades)
    )


_NO_GAP = "No cell of it is empty, so there is no row to label: leave it empty where the label is not known yet."


def _ask(columns: Sequence[ColumnLook], given: dict[str, Any], gaps: bool) -> None:
    """Put what somebody at the terminal answers into `given`."""

    def answer(name: str, flag: str, value: Any) -> None:
        given[name] = value
        click.echo(f"  {flag} {shell_word(_written(value))}", err=True)

    if given["target"] is None:
        answer("target", "--target", _target(columns, gaps))
    target = _column(columns, given["target"])
    if given["loss"] is None and given["costs"] is None:
        _ask_loss(target, answer)
    if given.get("id_column") is None and (named := _id(columns, target.name)):
        answer("id_column", "--id", named)


def _say(text: str, indent: str = "") -> None:
    for line in wrapped(text, indent, "") or [""]:
        click.echo(printable(line), err=True)


def _chosen(names: Sequence[str], more: Sequence[str] = ()) -> Callable[[str], str]:
    """A name by itself, or by its number in a list; some others, which are not listed, by themselves only."""

    def check(text: str) -> str:
        if text in (*names, *more):
            return text
        if text.isdigit() and 1 <= int(text) <= len(names):
            return names[int(text) - 1]
        raise StakesError(f"give a number from 1 to {len(names)}, or a name.{did_you_mean(text, (*names, *more))}")

    return check


def _target(columns: Sequence[ColumnLook], gaps: bool) -> str:
    proposals = target_proposals(columns)
    best, why = proposals[0]
    able = [column for column, _ in proposals if not gaps or column.filled < column.size] or [best]
    shown = able[:_LISTED]
    _say("")
    _say("What is to be predicted?")
    width = max(len(column.name) for column in shown)
    for place, column in enumerate(shown, 1):
        line = f"  {place} {column.name.ljust(width)}  {column.filled} of {column.size} filled in: {column.contents}"
        _say(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
    if gaps and (full := len(columns) - len(able)):
        what = f"The other {counted(full, 'column')}" if full > 1 else "The other column"
        _say(f"{what} {'have' if full > 1 else 'has'} no empty cell, so nothing to predict.", "  ")
    if why:
        _say(f"I would take {best.name!r}: {why}.")
    names = [column.name for column in columns]
    target = prompted("Column", _chosen([column.name for column in shown], names), best.name)
    if gaps and (column := _column(columns, target)).filled == column.size:
        raise StakesError(f"column {target!r} is no target to choose rows for. {_NO_GAP}")
    return target


def _ask_loss(target: ColumnLook, answer: Callable[[str, str, Any], None]) -> None:
    choices = loss_proposals(target)
    _say("")
    _say(f"What does a wrong answer about {target.name!r} cost?")
    for place, choice in enumerate(choices, 1):
        _say(f"  {place} {choice.meaning} ({choice.name})", "    ")
        _say(f"    For example: {choice.example}.", "    ")
    if target.grades:
        _say(_grades(target))
    loss = prompted("Loss", _chosen([choice.name for choice in choices]), choices[0].name)
    answer("loss", "--loss", loss)
    further = {"cost-matrix": _ask_costs, "pinball": _ask_level, "threshold-decision": _ask_limit}
    if loss in further:
        further[loss](target, answer)


def _ask_costs(target: ColumnLook, answer: Callable[[str, str, Any], None]) -> None:
    """What mistakes cost: of two classes each by itself, of more as a line."""
    if len(target.values) == 2:
        costs: dict[str, dict[str, float]] = {}
        for truth, other, usual in zip(target.pair, target.pair[::-1], "51", strict=True):
            costs[truth] = {other: prompted(f"Cost of {truth!r} answered by {other!r}", _number, usual)}
        answer("costs", "--costs", cost_line(costs))
        return
    one, other = target.pair
    _say("Costs as truth>answer=cost, with commas between them. Mistakes that are left out cost 1.")
    answer("costs", "--costs", prompted("Costs", _costs, f"{one}>{other}=5"))


def _costs(text: str) -> str:
    parse_costs(text)
    return text


def _ask_level(target: ColumnLook, answer: Callable[[str, str, Any], None]) -> None:  # noqa: ARG001 (as the others)
    ratio = prompted("How many times as much does too low cost as too high", _positive, "9")
    answer("tau", "--tau", float(f"{ratio / (1.0 + ratio):.4g}"))


def _ask_limit(target: ColumnLook, answer: Callable[[str, str, Any], None]) -> None:
    answer("threshold", "--threshold", prompted("Act above which value", _number, usual_limit(target)))
    answer("miss", "--miss", prompted("Cost of not acting when it was right to act", _positive, "5"))
    answer("false_alarm", "--false-alarm", prompted("Cost of acting when it was not", _positive, "1"))


def _number(text: str) -> float:
    if cell_kind(text) != "number":
        raise StakesError(f"give a number, with a point before decimals; got {text!r}")
    return float(text)


def _positive(text: str) -> float:
    if (value := _number(text)) <= 0.0:
        raise StakesError(f"give a number above 0; got {text}")
    return value


def _id(columns: Sequence[ColumnLook], target: str) -> str | None:
    """The column that names rows; None where they are numbered."""
    proposals = id_proposals(columns, target)
    if not proposals:
        return None
    names = [column.name for column, _ in proposals]
    _say("")
    _say(f"Which column names the rows? I would take {names[0]!r}: {proposals[0][1]}.")
    _say(f"Type {_NONE} for none: rows are then numbered from 1.")
    chosen = prompted("Column", _chosen(names, [*(column.name for column in columns), _NONE]), names[0])
    return None if chosen == _NONE else chosen
