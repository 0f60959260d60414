"""Argilla: records and settings in the shape of its version 2, and what its exports say.

`rg.Settings.from_json` takes the settings and `dataset.records.from_json` the records; JSON lines and CSV are flat, a
record a line, as `dataset.records.log` takes them. Sorted by the metadata property `rank`, records stand in our order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stakes.exceptions import StakesError
from stakes.exchange.answers import NOTHING, Answer, label_of, numbered, row_of
from stakes.exchange.tasks import ID, TaskList, row_text

if TYPE_CHECKING:
    from stakes.campaign import Campaign

QUESTION, FIELD, RANK = "label", "row", "rank"
_RESPONSES = f"{QUESTION}.responses"  # in flat records; those of users and of states have an ending more
_OUT = ("draft", "discarded")  # states of responses that are none


def argilla_records(found: TaskList) -> list[dict[str, Any]]:
    """The records as `dataset.records.from_json` takes them.

    Args:
        found: The rows, best first.

    Returns:
        A list of records: fields, metadata with the rank, and a suggestion where there is a guess.

    Examples:
        >>> from stakes.exchange import Task, TaskList, argilla_records
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> argilla_records(found)[0]["fields"], argilla_records(found)[0]["metadata"]
        ({'row': '70'}, {'rank': 1, 'stakes_id': 'r7'})
    """
    return [
        {
            "id": task.row,
            "fields": {FIELD: row_text(task)},
            "metadata": {RANK: rank, ID: task.row},
            "suggestions": {}
            if task.guess is None
            else {QUESTION: {"value": task.guess, "score": None, "agent": found.version}},
            "responses": {},
            "vectors": {},
        }
        for rank, task in enumerate(found.tasks, start=1)
    ]


def argilla_lines(found: TaskList) -> list[dict[str, Any]]:
    """The records flat, as `dataset.records.log` takes them.

    Args:
        found: The rows, best first.

    Returns:
        A record for each row.
    """
    return [
        {"id": task.row, FIELD: row_text(task), RANK: rank, ID: task.row} for rank, task in enumerate(found.tasks, 1)
    ]


def argilla_settings(found: TaskList) -> dict[str, Any]:
    """The settings of the dataset, as `rg.Settings.from_json` takes them.

    Args:
        found: The rows and what is asked of them.

    Returns:
        Fields, the question and metadata properties.

    Examples:
        >>> from stakes.exchange import Task, TaskList, argilla_settings
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> [question["title"] for question in argilla_settings(found)["questions"]]
        ['kind']
    """
    answer: dict[str, Any] = {"type": "text", "use_markdown": False}
    if found.classes is not None:
        options = [{"value": name, "text": name, "description": None} for name in found.classes]
        answer = {"type": "label_selection", "options": options, "visible_options": None}
    return {
        "guidelines": f"Sort by {RANK}, ascending: the first records lower the loss most.",
        "questions": [{"name": QUESTION, "title": found.target, "required": True, "settings": answer}],
        "fields": [
            {"name": FIELD, "title": "Row", "required": True, "settings": {"type": "text", "use_markdown": False}}
        ],
        "vectors": [],
        "metadata": [
            {"name": RANK, "title": "Rank", "settings": {"type": "integer", "min": None, "max": None}},
            {"name": ID, "title": "Row", "settings": {"type": "terms", "values": None}},
        ],
        "allow_extra_metadata": False,
    }


def is_argilla(items: Sequence[Any]) -> bool:
    """Whether the items of a file are records of Argilla, nested or flat.

    Args:
        items: The first few will do.

    Returns:
        Whether they are.
    """
    found = [item for item in items[:1000] if isinstance(item, Mapping)]
    return any(("fields" in item and "responses" in item) or _RESPONSES in item for item in found)


def argilla_answers(campaign: Campaign, items: Sequence[Any]) -> Iterator[Answer]:
    """The labels in an export of Argilla: `records.to_json`, or flat records as JSON lines or CSV.

    Drafts and what was discarded are passed over, and so are records without a response.

    Args:
        campaign: The campaign.
        items: The records.

    Returns:
        What each person says of each row.

    Raises:
        StakesError: If an item is none, or tells no row.
    """
    for place, item in numbered(items, "record"):
        for value, user, status in _responses(item, place):
            label = None if status in _OUT else label_of(value, place)
            if label is not None:
                row = row_of(campaign, place, item.get("metadata"), item, {ID: item.get("id")})
                yield Answer(row, label, f"argilla:{user}" if user else None, place)


def _responses(item: Mapping[str, Any], place: str) -> list[tuple[Any, str | None, str | None]]:
    """Values, users and states of the responses to our question."""
    if "responses" in item:
        given = item["responses"] or {}
        found = given.get(QUESTION, []) if isinstance(given, Mapping) else None
        if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
            raise StakesError(f"{place} has no list of responses to {QUESTION!r}. {NOTHING}")
        return [(each.get("value"), _user(each.get("user_id")), each.get("status")) for each in found]
    values, users, states = (_listed(item.get(f"{_RESPONSES}{end}")) for end in ("", ".users", ".status"))
    padding: list[Any] = [None] * len(values)
    return [
        (value, _user(user), status)
        for value, user, status in zip(values, [*users, *padding], [*states, *padding], strict=False)
    ]


def _user(user: Any) -> str | None:
    return user[:100] if isinstance(user, str) and user not in ("", "None") else None


def _listed(value: Any) -> list[Any]:
    """A list, or the cell of a CSV that holds one as Python writes it."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return [value]
    return value if isinstance(value, list) else [] if value in (None, "") else [value]
