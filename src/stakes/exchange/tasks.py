"""The rows of a campaign that want a label, in our order, as other labelling tools are given them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stakes._utils.arguments import Progress
from stakes.exceptions import StakesError
from stakes.tabular.worksheet import classes_of

if TYPE_CHECKING:
    from stakes.campaign import Campaign

ID = "stakes_id"
"""What the id of a row is called in the files of other tools."""
_LABELS = ("label", "replace", "withdraw", "result", "settle", "retract")  # events that change labels


class Task(NamedTuple):
    """A row to label.

    Attributes:
        row: Its id.
        cells: The cells of its row by column, without the target and the id; None where one is empty.
        score: Its rank, scaled: 0 for the row to label first, 1 for the last.
        guess: What the model would answer, where that is asked for.
    """

    row: str
    cells: dict[str, str | None]
    score: float
    guess: str | None = None


@dataclass(frozen=True)
class TaskList:
    """Rows to label, best first, and what is asked of them.

    Attributes:
        tasks: The rows.
        target: The name of what is asked for.
        classes: What the answer can be; None for a number.
        version: The name of the ranking: it is another one after every change of a label.
        asked: How many rows were left out, as somebody is at work on them.
    """

    tasks: tuple[Task, ...]
    target: str
    classes: tuple[str, ...] | None
    version: str
    asked: int


def open_tasks(
    campaign: Campaign, n: int | None = None, *, guess: bool = False, progress: bool | Progress = False
) -> TaskList:
    """The rows of a campaign that want a label, in the order in which to label them; nobody is handed any.

    Rows that were drawn to test the model come first, in the order of the draw: an audit waits for them. Rows that
    somebody was asked for are left out, and so are those that have a label or are skipped.

    Args:
        campaign: The campaign.
        n: How many rows at most; all without.
        guess: Whether to say what the model would answer.
        progress: True, or a function that is called with what is being done and the share that is done.

    Returns:
        The rows and what is asked of them.

    Raises:
        StakesError: If no class is known yet, the table has changed, or the model cannot be fitted.

    Examples:
        >>> import pandas as pd
        >>> from stakes import Campaign
        >>> from stakes.exchange import open_tasks
        >>> table = pd.DataFrame({"x": range(9), "y": [0.0, 2.0, 4.0, 6.0] + [None] * 5}, index=list("abcdefghi"))
        >>> with Campaign.create(None, table, "y", "squared-error", model="bayesian-ridge") as campaign:
        ...     found = open_tasks(campaign, 2)
        >>> [(task.row, task.score) for task in found.tasks], found.version
        ([('i', 0.0), ('h', 1.0)], 'stakes-4')
    """
    from stakes.tabular.suggestions import order_rows

    campaign.check_trust()
    sheet, states = campaign.sheet, campaign.journal.states()
    classes = choosable_classes(campaign)
    version = ranking_version(campaign)
    status = {place: states[row].status for place, row in enumerate(sheet.ids)}
    labels = {place: states[sheet.ids[place]].label or "" for place, each in status.items() if each == "labelled"}
    tests = sorted(
        (place for place, each in status.items() if each == "testing"), key=lambda place: states[sheet.ids[place]].event
    )
    asked = [place for place, each in status.items() if each == "asked"]
    out = [place for place, each in status.items() if each not in ("labelled", "asked", "open")]
    order, guesses = order_rows(sheet, labels=labels, pending=asked, excluded=out, guess=guess, progress=progress)
    places = [*tests, *order][:n]
    names = [name for name in sheet.source.names if name not in (sheet.brief.id_column, sheet.brief.target)]
    cells = {name: sheet.source.texts(name) for name in names}
    last = max(len(places) - 1, 1)
    tasks = tuple(
        Task(sheet.ids[place], {name: cells[name][place] for name in names}, at / last, guesses.get(place))
        for at, place in enumerate(places)
    )
    return TaskList(tasks, sheet.brief.target, classes, version, len(asked))


def choosable_classes(campaign: Campaign) -> tuple[str, ...] | None:
    """The classes of a campaign: those that it names, or else all that a row has had; None for a number.

    Args:
        campaign: The campaign.

    Returns:
        The classes in their order.

    Raises:
        StakesError: If there are fewer than two.
    """
    if campaign.sheet.task == "real":
        return None
    brief = campaign.brief
    classes = classes_of(brief.classes, brief.loss, campaign.journal.known_labels())
    if len(classes) < 2:
        raise StakesError(
            f"a choice needs two classes at least, and {list(classes)} are known: tell a label of each first, or name "
            "all of them when the campaign begins (init --classes A,B). Nothing was written."
        )
    return classes


def ranking_version(campaign: Campaign) -> str:
    """The name of the ranking that the labels so far make: stakes-12 after 12 labels, or changes of labels.

    Args:
        campaign: The campaign.

    Returns:
        The name.
    """
    return f"stakes-{sum(event.kind in _LABELS for event in campaign.journal.history())}"


def row_text(task: Task) -> str:
    r"""The cells of a row as text, for tools that show nothing else: a line for each column, or the only cell.

    Args:
        task: The row.

    Returns:
        Some text; empty cells are left out.

    Examples:
        >>> row_text(Task("a", {"area": "70", "year": None, "rooms": "3"}, 0.0))
        'area: 70\nrooms: 3'
    """
    if len(task.cells) == 1:
        return next(iter(task.cells.values())) or task.row
    return "\n".join(f"{name}: {cell}" for name, cell in task.cells.items() if cell is not None) or task.row
