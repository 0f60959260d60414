"""Label Studio: tasks that it shows in our order, the page that people label on, and what its exports say.

Label Studio sorts tasks by the scores of predictions, the lowest first, of one model version. So each task has a
prediction of its rank, 0 for the first and 1 for the last, whose result is empty, or the model's guess.

An annotation is what one person says of a task: a list of results, of which ours is that of the control `label`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.exchange.answers import NOTHING, Answer, label_of, numbered, row_of
from stakes.exchange.tasks import ID, Task, TaskList, choosable_classes

if TYPE_CHECKING:
    from stakes.campaign import Campaign

CONTROL, ROW = "label", "row"
"""The names of what people fill in, and of what they look at."""
_LONG = 200  # letters, beyond which a cell has a box of its own
_MANY = 20  # classes, beyond which they are a list to choose from
_KINDS = {"choices": "choices", "number": "number", "rating": "rating", "textarea": "text"}  # of results, and of values
_FLAT = {"annotation_id", "annotator", "lead_time"}  # what each line of JSON_MIN and CSV has


def label_studio_tasks(found: TaskList) -> list[dict[str, Any]]:
    """The tasks as Label Studio imports them: the file to give it.

    Args:
        found: The rows, best first.

    Returns:
        A list of tasks, each with its data, its id also in `meta`, and a prediction.

    Examples:
        >>> from stakes.exchange import Task, TaskList, label_studio_tasks
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> label_studio_tasks(found)[0]["data"]
        {'stakes_id': 'r7', 'row': {'area': '70'}}
    """
    boxes = _boxes(found.tasks)
    return [
        {
            "data": {
                ID: task.row,
                ROW: {name: cell or "" for name, cell in task.cells.items() if name not in boxes},
                **{key: task.cells[name] or "" for name, key in boxes.items()},
            },
            "meta": {ID: task.row},
            "predictions": [prediction(task.score, task.guess, found.classes, found.version)],
        }
        for task in found.tasks
    ]


def prediction(score: float, guess: str | None, classes: Sequence[str] | None, version: str) -> dict[str, Any]:
    """What the model says of a task: its rank as a score, and the guess where there is one.

    Args:
        score: 0 for the first task, 1 for the last.
        guess: A class, or a number as text.
        classes: The classes; None for a number.
        version: The name of the ranking.

    Returns:
        A prediction in the form of Label Studio.
    """
    value = {"number": float(guess or 0.0)} if classes is None else {"choices": [guess]}
    result = {"from_name": CONTROL, "to_name": ROW, "type": next(iter(value)), "value": value}
    return {"model_version": version, "score": score, "result": [] if guess is None else [result]}


def label_studio_config(found: TaskList) -> str:
    """The labelling interface: a page with the row, and the classes as buttons or a box for a number.

    Args:
        found: The rows and what is asked of them.

    Returns:
        XML for the settings of a project, "Labeling Interface", "Code".

    Examples:
        >>> from stakes.exchange import Task, TaskList, label_studio_config
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> label_studio_config(found).splitlines()[4]
        '    <Choice value="flat"/>'
    """
    texts = [
        line
        for name, key in _boxes(found.tasks).items()
        for line in (f'  <Header value={quoteattr(_plain(name))} size="5"/>', f'  <Text name="{key}" value="${key}"/>')
    ]
    lines = [
        "<View>",
        f'  <Header value="Row ${ID}" size="4"/>',
        f'  <Header value={quoteattr(_plain(found.target))} size="5"/>',
        *_controls(found.classes),  # above the row: a table of many columns is long
        *texts,
        f'  <Table name="{ROW}" value="${ROW}"/>',
        "</View>",
    ]
    return "\n".join(lines) + "\n"


def _controls(classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        return [f'  <Number name="{CONTROL}" toName="{ROW}" required="true"/>']
    layout = "select" if len(classes) > _MANY else "vertical"
    head = f'  <Choices name="{CONTROL}" toName="{ROW}" choice="single-radio" required="true" layout="{layout}">'
    return [head, *(f"    {_choice(name)}" for name in classes), "  </Choices>"]


def _choice(name: str) -> str:
    shown = _plain(name)
    alias = f" alias={quoteattr(name)}" if shown != name else ""
    return f"<Choice value={quoteattr(shown)}{alias}/>"


def _plain(name: str) -> str:
    """A text in which nothing is looked up in the data, as $name would be: a sign without width follows each $."""
    return name.replace("$", "$\u2060")


def _boxes(tasks: Sequence[Task]) -> dict[str, str]:
    """The columns with long texts, and the names of their boxes; all others stand in a table."""
    names = tasks[0].cells if tasks else {}
    long = [name for name in names if any(len(task.cells[name] or "") > _LONG for task in tasks)]
    return {name: f"text_{place}" for place, name in enumerate(long, start=1)}


def check_config(campaign: Campaign, config: str) -> None:
    """Refuse a labelling interface whose answers the campaign could not take.

    Args:
        campaign: The campaign.
        config: The XML of a project.

    Raises:
        StakesError: If it is no XML, has no control for the target, or a class that the campaign does not know.
    """
    classes = choosable_classes(campaign)
    if "<!" in config:
        raise StakesError("the labelling interface has a declaration (<! ..), and none is expected: take it out.")
    try:
        root = ElementTree.fromstring(config)
    except (ElementTree.ParseError, UnicodeEncodeError) as error:  # the second of half a character
        raise StakesError(f"the labelling interface is no XML: {error}") from None
    wanted = "Number" if classes is None else "Choices"
    control = next((each for each in root.iter(wanted) if each.get("name") == CONTROL), None)
    control = next(root.iter(wanted), None) if control is None else control
    if control is None:
        raise StakesError(
            f"the labelling interface has no <{wanted}>, and the campaign asks for "
            f"{'a number' if classes is None else 'a class'}: take the config that stakes export --format "
            "label-studio writes."
        )
    if classes is None:
        return
    for choice in control.iter("Choice"):
        name = (choice.get("alias") or choice.get("value") or "").strip()
        if name not in classes:
            raise StakesError(
                f"the labelling interface has the class {name!r}, and the campaign knows {listed(map(repr, classes))}."
                f"{did_you_mean(name, classes)} Take it out, or begin a campaign that has it (init --classes)."
            )


def is_label_studio(items: Sequence[Any]) -> bool:
    """Whether the items of a JSON file, or the lines of a CSV, are those of an export of Label Studio.

    Args:
        items: The first few will do.

    Returns:
        Whether they are.
    """
    first = items[0] if items and isinstance(items[0], Mapping) else {}
    return ("data" in first and "annotations" in first) or first.keys() >= _FLAT


def label_studio_answers(campaign: Campaign, items: Sequence[Any]) -> Iterator[Answer]:
    """The labels in an export of Label Studio: JSON, JSON_MIN or CSV.

    Tasks without an annotation, and annotations that were cancelled ("skip") or are empty, are passed over. Of several
    by one person the last counts.

    Args:
        campaign: The campaign.
        items: The tasks.

    Returns:
        What each person says of each row.

    Raises:
        StakesError: If an item is none, or tells no row.
    """
    for place, item in numbered(items, "task"):
        if "annotations" in item:
            yield from _task_answers(campaign, item, place)
        else:
            value = _json_or_text(item.get(CONTROL, item.get(campaign.brief.target)))
            if (label := label_of(_value(value), place)) is not None:
                yield Answer(row_of(campaign, place, item), label, annotator_name(item.get("annotator")), place)


def _task_answers(campaign: Campaign, task: Mapping[str, Any], place: str) -> Iterator[Answer]:
    if not isinstance(task["annotations"], list):
        raise StakesError(f"{place} has no list of annotations. {NOTHING}")
    answers: dict[str | None, Answer] = {}
    for annotation in task["annotations"]:
        if (label := annotation_label(annotation, place)) is not None:
            row = row_of(campaign, place, task.get("data"), task.get("meta"))
            who = annotator_name(annotation.get("completed_by"))
            answers[who] = Answer(row, label, who, place)
    yield from answers.values()


def annotation_label(annotation: Any, place: str) -> str | float | None:
    """The label of one annotation; None where it was cancelled, or says nothing of the target.

    Args:
        annotation: As an export or a webhook has it.
        place: Where it stands, for messages.

    Returns:
        A class or a number.

    Raises:
        StakesError: If it has several labels, or is no annotation.
    """
    if not isinstance(annotation, Mapping) or not isinstance(annotation.get("result"), list):
        came = json.dumps(annotation)[:100]
        raise StakesError(f"{place}: {came} is no annotation, as it has no list of results. {NOTHING}")
    if annotation.get("was_cancelled"):
        return None
    known = [each for each in annotation["result"] if isinstance(each, Mapping) and each.get("type") in _KINDS]
    ours = [each for each in known if each.get("from_name") == CONTROL] or known
    if len(ours) > 1:
        names = listed(repr(each.get("from_name")) for each in ours)
        raise StakesError(f"{place} has several answers, {names}: call the one for the label {CONTROL!r}. {NOTHING}")
    return label_of(_value(ours[0].get("value")), place) if ours else None


def _value(value: Any) -> Any:
    """What is chosen, out of {"choices": [..]}, {"number": ..} and their like; JSON_MIN has a list of them."""
    if isinstance(value, list):
        return [_value(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return next((value[name] for name in _KINDS.values() if name in value), dict(value) or None)


def _json_or_text(value: Any) -> Any:
    """A cell of a CSV may hold JSON, such as several choices."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def annotator_name(completed_by: Any) -> str | None:
    """A name for the person who has a number in Label Studio: the same in every kind of its files.

    Args:
        completed_by: A number, a text with one, or a person with an `id`.

    Returns:
        Such as "label-studio:1"; None where nobody is named.
    """
    number = completed_by.get("id") if isinstance(completed_by, Mapping) else completed_by
    text = "" if number is None or isinstance(number, bool | list) else str(number).strip()
    return f"label-studio:{text[:100]}" if text else None
