"""Rows to other labelling tools and labels back: which files there are, and which tool a file is from."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes._utils.arguments import Progress
from stakes.exceptions import StakesError
from stakes.exchange.answers import NOTHING, Answer, record_answers
from stakes.exchange.argilla import argilla_answers, argilla_lines, argilla_records, argilla_settings, is_argilla
from stakes.exchange.doccano import doccano_answers, doccano_labels, doccano_lines, is_doccano
from stakes.exchange.label_studio import (
    is_label_studio,
    label_studio_answers,
    label_studio_config,
    label_studio_tasks,
)
from stakes.exchange.tasks import TaskList, open_tasks
from stakes.files.write import checked_output, escape, output_file

if TYPE_CHECKING:
    from stakes.campaign import Campaign, Recorded

_MOST_BYTES = 2**29  # of a file that is read whole
_HEAD = 2**20  # bytes of a line that names columns
_TABLES = (".csv", ".tsv")


class Exported(NamedTuple):
    """What was written.

    Attributes:
        files: The tasks, and then what sets up the tool.
        tasks: How many rows.
        asked: How many were left out, as somebody is at work on them.
    """

    files: tuple[Path, ...]
    tasks: int
    asked: int


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _lines(items: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False, allow_nan=False) + "\n" for item in items)


def _csv(items: Sequence[dict[str, Any]]) -> str:
    """Cells that no spreadsheet runs; a list of labels as doccano writes it, with # between them."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(items[0] if items else [])
    for item in items:
        cells = ("#".join(each) if isinstance(each, list) else str(each) for each in item.values())
        writer.writerow([escape(cell) for cell in cells])
    return text.getvalue()


class _Format(NamedTuple):
    """A tool: what its tasks look like in files of several endings, the first by default, and what sets it up."""

    name: str
    tasks: dict[str, Callable[[TaskList], str]]
    setup_name: str
    setup: Callable[[TaskList], str]


FORMATS: dict[str, _Format] = {
    "label-studio": _Format(
        "tasks", {".json": lambda found: _json(label_studio_tasks(found))}, "config.xml", label_studio_config
    ),
    "argilla": _Format(
        "records",
        {
            ".json": lambda found: _json(argilla_records(found)),
            ".jsonl": lambda found: _lines(argilla_lines(found)),
            ".csv": lambda found: _csv(argilla_lines(found)),
        },
        "settings.json",
        lambda found: _json(argilla_settings(found)),
    ),
    "doccano": _Format(
        "rows",
        {".jsonl": lambda found: _lines(doccano_lines(found)), ".csv": lambda found: _csv(doccano_lines(found))},
        "labels.json",
        lambda found: _json(doccano_labels(found)),
    ),
}
"""The tools that rows are written for."""


def export_tasks(
    campaign: Campaign,
    path: str | os.PathLike[str],
    tool: str,
    *,
    n: int | None = None,
    guess: bool = False,
    overwrite: bool = False,
    progress: bool | Progress = False,
) -> Exported:
    """Write the rows of a campaign that want a label for another labelling tool, in our order.

    Args:
        campaign: The campaign.
        path: A folder, which is made if it is not there, or the file of the tasks; what sets up the tool is then
            written beside it, with the name of the file in front.
        tool: "label-studio", "argilla" or "doccano".
        n: How many rows at most; all without.
        guess: Whether people are shown what the model would answer.
        overwrite: Whether files that are there are replaced.
        progress: True, or a function that is called with what is being done and the share that is done.

    Returns:
        The files, and how many rows there are in them.

    Raises:
        StakesError: If there is no such tool, no row to label, no class is known, or a file cannot be written. Nothing
            is written then.

    Examples:
        >>> import pandas as pd
        >>> from stakes import Campaign
        >>> from stakes.exchange import export_tasks
        >>> table = pd.DataFrame({"x": range(9), "y": [0.0, 2.0, 4.0, 6.0] + [None] * 5}, index=list("abcdefghi"))
        >>> with Campaign.create(None, table, "y", "squared-error", model="bayesian-ridge") as campaign:
        ...     done = export_tasks(campaign, campaign.path.with_name("tasks"), "label-studio", n=2)
        >>> [path.name for path in done.files], done.tasks
        (['tasks.json', 'config.xml'], 2)
    """
    if tool not in FORMATS:
        raise StakesError(f"there is no tool {tool!r}; there are {', '.join(FORMATS)}")
    form = FORMATS[tool]
    where, beside = _places(Path(path), form, tool)
    folder = where.parent
    if new := not folder.exists() and folder == Path(path):
        checked_output(folder, inputs=[campaign.path, campaign.table])
    else:
        for each in (where, beside):
            checked_output(each, inputs=[campaign.path, campaign.table], overwrite=overwrite)
    found = open_tasks(campaign, n, guess=guess, progress=progress)
    if not found.tasks:
        raise StakesError("no row is open: there is nothing to label. Nothing was written.")
    texts = {where: form.tasks[where.suffix.lower()](found), beside: form.setup(found)}
    if new:
        folder.mkdir()
    for each, text in texts.items():
        with output_file(each, inputs=[campaign.path, campaign.table], overwrite=overwrite) as file:
            file.write(text.encode())
    return Exported((where, beside), len(found.tasks), found.asked)


def _places(path: Path, form: _Format, tool: str) -> tuple[Path, Path]:
    """The file of the tasks, and that of what sets up the tool."""
    suffix = path.suffix.lower()
    if suffix in form.tasks and not path.is_dir():
        return path, path.with_name(f"{path.stem}-{form.setup_name}")
    if suffix and not path.is_dir() and suffix in (".json", ".jsonl", ".csv", ".tsv", ".xml", ".xlsx"):
        endings = " or ".join(form.tasks)
        raise StakesError(f"{path}: tasks for {tool} are written as {endings}. Give such a name, or that of a folder.")
    return path / f"{form.name}{next(iter(form.tasks))}", path / form.setup_name


def import_answers(
    campaign: Campaign,
    path: str | os.PathLike[str],
    *,
    replace: bool = False,
    new_class: bool = False,
    who: str | None = None,
    annotator: str | None = None,
) -> Recorded | None:
    """Record the labels in an export of Label Studio, Argilla or doccano, all or none.

    Args:
        campaign: The campaign.
        path: The export: JSON, JSON lines or CSV.
        replace: Whether a label may take the place of another one.
        new_class: Whether a label may be of a class that no row has had.
        who: Who reports them, where nobody knows whose labels they are.
        annotator: Whose labels they are, where the file does not tell.

    Returns:
        What became of each; None where the file is a table, and from none of these tools.

    Raises:
        StakesError: If a label is none for its row, or the file cannot be read; nothing is recorded then.

    Examples:
        >>> import pandas as pd
        >>> from stakes import Campaign
        >>> from stakes.exchange import export_tasks, import_answers
        >>> table = pd.DataFrame({"x": range(9), "y": [0.0, 2.0, 4.0, 6.0] + [None] * 5}, index=list("abcdefghi"))
        >>> with Campaign.create(None, table, "y", "squared-error", model="bayesian-ridge") as campaign:
        ...     done = export_tasks(campaign, campaign.path.with_name("rows.jsonl"), "doccano", n=2, guess=True)
        ...     recorded = import_answers(campaign, done.files[0])
        >>> recorded.new
        ('i', 'h')
    """
    answers = read_answers(campaign, path)
    if answers is None:
        return None
    return record_answers(campaign, answers, replace=replace, new_class=new_class, who=who, annotator=annotator)


def read_answers(campaign: Campaign, path: str | os.PathLike[str]) -> list[Answer] | None:
    """The labels in an export of Label Studio, Argilla or doccano; None where the file is another table.

    Args:
        campaign: The campaign.
        path: The export: JSON, JSON lines or CSV.

    Returns:
        What each person says of each row.

    Raises:
        StakesError: If the file cannot be read, or is JSON of something else.
    """
    where, suffix = Path(path), Path(path).suffix.lower()
    if suffix not in (*_TABLES, ".json", ".jsonl"):
        return None
    if not where.is_file():
        if suffix in _TABLES:
            return None  # import_labels says what is wrong
        raise StakesError(f"there is no file {path}. {NOTHING}")
    items = _table(where, "\t" if suffix == ".tsv" else ",") if suffix in _TABLES else _json_items(where)
    if items == []:
        return []
    answers = None if items is None else _reader(items)
    if items is not None and answers is not None:
        return list(answers(campaign, items))
    if suffix in _TABLES:
        return None
    raise StakesError(
        f"{path} is JSON, and no export of Label Studio (a list of tasks with data and annotations, or JSON_MIN), "
        f"Argilla (records with fields and responses) or doccano (documents with text, label and stakes_id). {NOTHING}"
    )


_TOOLS: tuple[tuple[Callable[[Sequence[Any]], bool], Callable[[Campaign, Sequence[Any]], Iterable[Answer]]], ...] = (
    (is_label_studio, label_studio_answers),
    (is_argilla, argilla_answers),
    (is_doccano, doccano_answers),
)


def _reader(items: Sequence[Any]) -> Callable[[Campaign, Sequence[Any]], Iterable[Answer]] | None:
    """What reads the labels of these items; None where they are from none of the tools."""
    return next((answers for is_one, answers in _TOOLS if is_one(items)), None)


def _text(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise StakesError(f"{path} has more than {_MOST_BYTES:,} bytes: export it in parts. {NOTHING}")
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StakesError(f"{path} is not UTF-8: {error}. {NOTHING}") from None


def _table(path: Path, delimiter: str) -> list[Any] | None:
    """The lines of a CSV that is from one of the tools, by its columns; None for any other."""
    with path.open("rb") as file:
        head = file.readline(_HEAD).decode("utf-8-sig", errors="replace")
    try:
        columns = next(csv.reader([head], delimiter=delimiter), [])
    except csv.Error:  # lines that end otherwise: no tool writes them
        return None
    if _reader([dict.fromkeys(columns, "")]) is None:
        return None
    try:
        return list(csv.DictReader(io.StringIO(_text(path), newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise StakesError(f"{path} is no CSV: {error}. {NOTHING}") from None


def _json_items(path: Path) -> list[Any]:
    """The tasks, records or documents of a file of JSON, or of JSON lines."""
    text = _text(path)
    try:
        if text.lstrip()[:1] == "[":
            return list(json.loads(text))
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise StakesError(f"{path} is no JSON, and no lines of JSON: {error}. {NOTHING}") from None
