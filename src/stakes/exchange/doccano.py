"""doccano: rows as JSON lines or CSV that it imports, its list of labels, and what its exports say.

doccano shows documents in the order of the file. Columns other than `text` and `label` are kept as metadata, and come
back with the export; so does the id. Classes are for a project of text classification, numbers for one of sequence to
sequence, whose labels are texts.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stakes.exchange.answers import Answer, label_of, numbered, row_of
from stakes.exchange.tasks import ID, TaskList, row_text

if TYPE_CHECKING:
    from stakes.campaign import Campaign

_KEYS = "123456789"
_LABELS = ("label", "labels")  # today's name, and that of old versions


def doccano_lines(found: TaskList) -> list[dict[str, Any]]:
    """The documents, a line each.

    Args:
        found: The rows, best first.

    Returns:
        Texts with metadata; the guess, where there is one, as a label to be corrected.

    Examples:
        >>> from stakes.exchange import Task, TaskList, doccano_lines
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> doccano_lines(found)
        [{'text': '70', 'label': [], 'stakes_id': 'r7', 'stakes_rank': 1}]
    """
    return [
        {
            "text": row_text(task),
            "label": [] if task.guess is None else [task.guess],
            ID: task.row,
            "stakes_rank": rank,
        }
        for rank, task in enumerate(found.tasks, start=1)
    ]


def doccano_labels(found: TaskList) -> list[dict[str, Any]]:
    """The classes, as the page "Labels" of a project imports them, with keys 1 to 9 and a colour each.

    Args:
        found: The rows and what is asked of them.

    Returns:
        A label for each class; none for numbers.

    Examples:
        >>> from stakes.exchange import Task, TaskList, doccano_labels
        >>> found = TaskList((Task("r7", {"area": "70"}, 0.0),), "kind", ("flat", "house"), "stakes-12", 0)
        >>> [(label["text"], label["suffix_key"]) for label in doccano_labels(found)]
        [('flat', '1'), ('house', '2')]
    """
    classes = found.classes or ()
    return [
        {
            "text": name,
            "suffix_key": _KEYS[place] if place < len(_KEYS) else None,
            "background_color": _colour(place, len(classes)),
            "text_color": "#ffffff",
        }
        for place, name in enumerate(classes)
    ]


def _colour(place: int, count: int) -> str:
    parts = colorsys.hls_to_rgb(place / count, 0.35, 0.6)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def is_doccano(items: Sequence[Any]) -> bool:
    """Whether the items of a file are documents of doccano; other tables may have such columns, but not our ids.

    Args:
        items: The first few will do.

    Returns:
        Whether they are.
    """
    first = items[0] if items and isinstance(items[0], Mapping) else {}
    return ("text" in first or "data" in first) and ID in first and any(name in first for name in _LABELS)


def doccano_answers(campaign: Campaign, items: Sequence[Any]) -> Iterator[Answer]:
    """The labels in an export of doccano: JSON lines, JSON or CSV. It does not tell whose they are.

    Args:
        campaign: The campaign.
        items: The documents.

    Returns:
        The label of each row that has one.

    Raises:
        StakesError: If an item is none, has several labels, or tells no row.
    """
    for place, item in numbered(items, "document"):
        value = next((item[name] for name in _LABELS if name in item), None)
        if (label := label_of(value, place)) is not None:
            yield Answer(row_of(campaign, place, item, item.get("meta")), label, None, place)
