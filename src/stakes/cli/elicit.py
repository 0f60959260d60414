"""`stakes elicit`: a few questions in plain words that say which loss is yours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import click

from stakes._utils.text import counted, number
from stakes.cli.options import applied, force_option, json_option
from stakes.cli.output import as_json_or, shell_word, waiting, wrapped
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.losses.elicitation import FIRST, KINDS, SAME, SECOND, ElicitedLoss, Question, elicit
from stakes.tabular import Brief, LossSpec, read_worksheet
from stakes.tabular.proposals import look, target_proposals
from stakes.tabular.worksheet import read_source

_ANSWERS = {"1": FIRST, "2": SECOND, "=": SAME}
_End: TypeAlias = Literal["value", "low", "high"]
_ENDS: tuple[_End, ...] = ("value", "low", "high")
_ROWS = 5  # of which the choice is compared
_asked = applied(
    click.option("--names", help="What the two errors are called, as A,B; the one that must not happen first."),
    click.option("--classes", help="Of costs: the two classes, as A,B; the one that must not be missed first."),
    click.option("--threshold", type=float, help="Of threshold: above it acting is right; asked for if not given."),
    click.option("--between", help="Of threshold: LOW,HIGH, between which it lies, where it is asked for."),
    click.option("--unit", type=float, help="Of asymmetry and weight: how large an error the questions are about."),
    click.option("--values", help="Of weight: the targets, as 100,200,300, at which errors are compared."),
    click.option("--questions", type=click.IntRange(min=1), default=8, show_default=True, help="For each number."),
    click.option("--answers", help="All answers, as 1,2,=,1; for scripts."),
)


@click.command("elicit")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("table", required=False)
@click.option("--target", help="The column of labels of TABLE.")
@click.option("--id", "id_column", help="The column that names its rows.")
@_asked
@click.option("-o", "--output", help="Write the costs, or the weights by points, to a CSV.")
@force_option
@json_option
def elicit_command(kind: str, table: str | None, as_json: bool, **given: Any) -> None:
    """Ask a few questions, "which is worse: ..", and say which loss the answers mean. KIND is what is asked for.

    costs: of two errors, for classes. threshold: to act or to wait, on a number. asymmetry: too low or too high.
    weight: errors at some targets beside others. With TABLE it also says how much the choice of rows depends on it.
    """
    if table is not None and given["target"] is None:
        brief = Brief("", LossSpec("squared-error"), id_column=given["id_column"])
        target, why = target_proposals(look(read_source(table, brief)))[0]
        raise click.UsageError(
            f"with TABLE, --target is needed: the column of its labels. It may be {target.name!r} ({why})."
        )
    asked = _arguments(kind, table, given)
    found = elicit(_asker(given["answers"], kind, asked, given["questions"]), questions=given["questions"], **asked)
    classes = _listed(given["classes"]) or ["positive", "negative"]
    flags = _written(found, classes, given["output"], given["force"])
    same = None if table is None else _same_rows(found, classes, table, given)
    answer = {
        "kind": kind,
        "ratio": found.ratio._asdict(),
        "threshold": None if found.threshold is None else found.threshold._asdict(),
        "values": list(found.values),
        "weights": [each._asdict() for each in found.weights],
        "answers": list(found.answers),
        "flags": flags,
        "same_rows": same,
    }
    as_json_or(as_json, answer, _lines(found, asked, flags, classes, given["output"], same))


def _listed(text: str | None) -> list[str]:
    return [] if text is None else [part.strip() for part in text.split(",")]


def _numbers(name: str, text: str | None) -> list[float]:
    try:
        return [float(part) for part in _listed(text)]
    except ValueError:
        raise click.UsageError(f"{name} wants numbers, with commas between them; got {text!r}") from None


def _arguments(kind: str, table: str | None, given: dict[str, Any]) -> dict[str, Any]:
    """What `elicit` takes; where a table is given, its labels say what a usual error and usual targets are."""
    names, classes = _listed(given["names"]), _listed(given["classes"])
    if classes and len(classes) != 2:
        raise click.UsageError(f"--classes wants two names; got {given['classes']!r}")
    if names and len(names) != 2:
        raise click.UsageError(f"--names wants two names; got {given['names']!r}")
    if classes and not names:
        names = [f"{classes[0]} taken for {classes[1]}", f"{classes[1]} taken for {classes[0]}"]
    labels = _labels(table, given) if table is not None and kind != "costs" else []
    between, values = _numbers("--between", given["between"]), _numbers("--values", given["values"])
    if labels:
        between = between or [_quantile(labels, 0.05), _quantile(labels, 0.95)]
        values = values or sorted({_quantile(labels, level) for level in (0.1, 0.5, 0.9)})
    spread = _quantile(labels, 0.75) - _quantile(labels, 0.25) if labels else 0.0
    unit = given["unit"] or (float(f"{spread / 2.0:.1g}") if spread > 0 else 10.0)
    made: dict[str, Any] = {"kind": kind, "threshold": given["threshold"], "unit": unit, "values": values}
    made["between"] = tuple(between) if len(between) == 2 else None
    return {**made, "names": tuple(names)} if names else made


def _labels(table: str, given: dict[str, Any]) -> list[float]:
    brief = Brief(given["target"], LossSpec("squared-error"), id_column=given["id_column"])
    return sorted(float(label) for label in read_worksheet(table, brief).labels.values())


def _quantile(labels: Sequence[float], level: float) -> float:
    """Of sorted labels, to two digits."""
    return float(f"{labels[min(len(labels) - 1, int(level * len(labels)))]:.2g}")


def _asker(answers: str | None, kind: str, asked: dict[str, Any], questions: int) -> Callable[[Question], int]:
    """Answers that were given, each once and no more; or those of whoever sits at the terminal."""
    if answers is None:
        return _prompted
    parts = _listed(answers)
    numbers = 1 + (kind == "threshold" and asked["threshold"] is None)
    wanted = questions * (len(asked["values"]) - 1 if kind == "weight" else numbers)
    if strange := [each for each in parts if each not in _ANSWERS]:
        raise StakesError(f"--answers wants 1, 2 or = for each question; got {strange[0]!r}")
    if len(parts) != wanted and wanted > 0:
        raise StakesError(f"--answers wants {wanted} answers, one for each question; got {len(parts)}")
    rest = iter(parts)
    return lambda question: _ANSWERS[next(rest)]


def _prompted(question: Question) -> int:
    click.echo(question.text, err=True)
    choice = click.Choice(list(_ANSWERS))
    try:
        return _ANSWERS[click.prompt("1, 2 or = (about the same)", type=choice, show_choices=False, err=True)]
    except click.Abort as stopped:
        if isinstance(stopped.__context__, EOFError):
            raise StakesError("the input ended before all questions were answered; give --answers 1,2,= ..") from None
        raise


def _spec(found: ElicitedLoss, which: _End, classes: Sequence[str]) -> LossSpec:
    """The loss as tables take it, in two digits."""
    ratio = _two_digits(getattr(found.ratio, which))
    if found.kind == "costs":
        first, second = classes
        return LossSpec(
            "cost-matrix", cost_matrix={first: {first: 0.0, second: ratio}, second: {first: 1.0, second: 0.0}}
        )
    if found.kind == "threshold":
        assert found.threshold is not None
        options = {"threshold": found.threshold.value, "miss": ratio, "false_alarm": 1.0}
        return LossSpec("threshold-decision", {name: float(f"{value:.6g}") for name, value in options.items()})
    if found.kind == "asymmetry":
        return LossSpec("pinball", {"tau": round(ratio / (1.0 + ratio), 3)})
    weights = [_two_digits(getattr(weight, which)) for weight in found.weights]
    return LossSpec("squared-error", weight=tuple(zip(found.values, weights, strict=True)))


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _written(found: ElicitedLoss, classes: Sequence[str], output: str | None, force: bool) -> list[str]:
    """The flags that say the same; what they need a file for is written to it."""
    spec = _spec(found, "value", classes)
    flags = ["--loss", spec.name]
    for name, value in spec.options.items():
        flags += [f"--{name.replace('_', '-')}", f"{value:g}"]
    if (kept := _file_of(spec, classes)) is None:
        return flags
    flag, header, rows = kept
    if output is not None:
        write_csv(output, header, rows, overwrite=force)
    return [*flags, flag, output or "FILE.csv"]


def _file_of(spec: LossSpec, classes: Sequence[str]) -> tuple[str, list[str], list[list[str | float]]] | None:
    """The flag, header and rows of a CSV that a loss is read from; None where flags are enough."""
    if spec.cost_matrix is not None:
        costs = spec.cost_matrix
        lines: list[list[str | float]] = [[truth, *(costs[truth][each] for each in classes)] for truth in classes]
        return "--cost-matrix", ["truth", *classes], lines
    if spec.weight is None or isinstance(spec.weight, str):
        return None
    return "--weight", ["y", "weight"], [list(point) for point in spec.weight]


def _same_rows(found: ElicitedLoss, classes: Sequence[str], table: str, given: dict[str, Any]) -> dict[str, Any]:
    """How many of the rows to label next stay the same at the ends of what the answers leave open."""
    from stakes.tabular import suggest

    chosen = {}
    with waiting("choosing rows"):
        for which in _ENDS:
            brief = Brief(given["target"], _spec(found, which, classes), id_column=given["id_column"])
            chosen[which] = suggest(read_worksheet(table, brief), _ROWS)[0].row_ids
    same = {which: len(set(chosen[which]) & set(chosen["value"])) for which in ("low", "high")}
    return {"rows": len(chosen["value"]), **same}


def _lines(
    found: ElicitedLoss,
    asked: dict[str, Any],
    flags: list[str],
    classes: Sequence[str],
    output: str | None,
    same: dict[str, Any] | None,
) -> list[str]:
    first, second = asked.get("names", ("a miss", "a false alarm"))
    subject = {
        "asymmetry": "Too low costs {} times as much as too high",
        "weight": f"Errors at {number(found.values[-1], 6)} count {{}} times those at {number(found.values[0], 6)}"
        if found.values
        else "",
    }.get(found.kind, f"{first[:1].upper()}{first[1:]} costs {{}} times as much as {second}")
    lines = wrapped(f"{subject.format(found.ratio)}, by {counted(len(found.answers), 'answer')}.")
    if found.threshold is not None and asked["threshold"] is None:
        lines += wrapped(f"Acting is right above {found.threshold}.")
    lines += ["", "The same as flags:", "  " + " ".join(map(shell_word, flags))]
    kept = _file_of(_spec(found, "value", classes), classes)
    if kept is not None and output is None:
        lines += ["  FILE.csv is written with -o:"]
        rows = [kept[1], *([cell if isinstance(cell, str) else f"{cell:g}" for cell in row] for row in kept[2])]
        lines += [f"    {','.join(row)}" for row in rows]
    if same is not None:
        low, high = (number(each, 2) for each in (found.ratio.low, found.ratio.high))
        ends = f"{same['low']} are the same with {low}, {same['high']} with {high}"
        lines += ["", *wrapped(f"Of {counted(same['rows'], 'row')} to label next, {ends}.")]
    return lines
