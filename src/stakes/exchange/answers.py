"""Labels that come back from other labelling tools: whose they are, of which row, and whether they can be recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes._utils.text import did_you_mean, listed
from stakes.exceptions import StakesError
from stakes.exchange.tasks import ID
from stakes.files import unescape

if TYPE_CHECKING:
    from stakes.campaign import Campaign, Recorded

NOTHING = "Nothing was recorded."
"""The end of every refusal."""


class Answer(NamedTuple):
    """What one person says of a row.

    Attributes:
        row: Its id.
        label: A class, or a number.
        annotator: Who says so; None where the file does not tell.
        place: Where it stands, such as "task 12": for messages.
    """

    row: str
    label: str | float
    annotator: str | None
    place: str


def row_of(campaign: Campaign, place: str, *found: Any) -> str:
    """The row that a task is about, by the id that we gave along, or by the column of ids of the table.

    Args:
        campaign: The campaign.
        place: Where the task stands, for messages.
        *found: What may hold the id, the most reliable first.

    Returns:
        The id of a row of the campaign.

    Raises:
        StakesError: If there is no id, or no such row.
    """
    names = [ID, *([campaign.brief.id_column] if campaign.brief.id_column else [])]
    holders = [each for each in found if isinstance(each, Mapping)]
    ids = (holder[name] for name in names for holder in holders if name in holder)
    row = next((str(each) for each in ids if isinstance(each, str | int) and not isinstance(each, bool)), None)
    if row is None:
        raise StakesError(
            f"{place} has no {' or '.join(map(repr, names))} to tell its row by. Let people label what stakes export "
            f"--format has written, and keep that field. {NOTHING}"
        )
    known = campaign.journal.costs()
    if row not in known and unescape(row) in known:  # from a CSV, in which no cell is a formula
        return unescape(row)
    if row not in known:
        near = did_you_mean(row, campaign.journal.ids())
        raise StakesError(f"{place} is about row {row!r}, and the campaign has no such row.{near} {NOTHING}")
    return row


def numbered(items: Sequence[Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The items of a file, each with its place: "task 12", by its own number where it has one.

    Args:
        items: What was read.
        kind: What each must be, such as "task".

    Returns:
        Places and items.

    Raises:
        StakesError: If one is no object.
    """
    for number, item in enumerate(items, start=1):
        if not isinstance(item, Mapping):
            raise StakesError(f"item {number} is {json.dumps(item)[:100]}, and no {kind}. {NOTHING}")
        yield f"{kind} {item.get('id', number)}", item


def label_of(value: Any, place: str) -> str | float | None:
    """One label; a list of one is that one; None where there is none.

    Args:
        value: What was read.
        place: Where it stands, for messages.

    Returns:
        A text without spaces around it, or a number.

    Raises:
        StakesError: If there are several, or it is something else.
    """
    if isinstance(value, list):
        if len(value) > 1:
            raise StakesError(
                f"{place} has {len(value)} labels, {listed(map(str, value))}, and a row has one: let people choose a "
                f"single one. {NOTHING}"
            )
        value = value[0] if value else None
    if value is None or isinstance(value, str):
        return (value or "").strip() or None
    # compared, as a whole number of many digits is no float
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise StakesError(
            f"{place} has the label {json.dumps(value)[:100]}, which is no class and no number. {NOTHING}"
        )
    return value


def checked_answers(campaign: Campaign, answers: Sequence[Answer], *, new_class: bool = False) -> list[Answer]:
    """Labels as the campaign would keep them; the first that is none for it is refused.

    Args:
        campaign: The campaign.
        answers: The labels.
        new_class: Whether a label may be of a class that no row has had.

    Returns:
        The same labels: 1,5 as 1.5.

    Raises:
        StakesError: If one is none; the message names the place, the row, the class and those that are known.
    """
    pairs = [(each.row, each.label) for each in answers]
    try:
        kept = campaign.checked_labels(pairs, new_class=new_class)
    except StakesError:
        for each, pair in zip(answers, pairs, strict=True):  # which one it is
            try:
                campaign.checked_labels([pair], new_class=new_class)
            except StakesError as error:
                raise StakesError(f"{each.place}, {error}") from None
        raise
    return [each._replace(label=label) for each, (_, label) in zip(answers, kept, strict=True)]


def record_answers(
    campaign: Campaign,
    answers: Sequence[Answer],
    *,
    replace: bool = False,
    new_class: bool = False,
    who: str | None = None,
    annotator: str | None = None,
    before: Callable[[], None] = lambda: None,
) -> Recorded:
    """Record labels of several people, all or none: who differs from the label of a row has an opinion beside it.

    Args:
        campaign: The campaign.
        answers: The labels; of several by one person on a row the last counts.
        replace: Whether a label may take the place of another one of the same person.
        new_class: Whether a label may be of a class that no row has had.
        who: Who reports them, where nobody knows whose labels they are.
        annotator: Whose labels they are, where the answers do not tell.
        before: Called once all are known to be labels, before the first is recorded.

    Returns:
        What became of each.

    Raises:
        StakesError: If one of them cannot be recorded; nothing is recorded then.
    """
    from stakes.campaign import Recorded

    kept = checked_answers(campaign, answers, new_class=new_class)
    last = {(each.annotator or annotator, each.row): each for each in kept}
    people = dict.fromkeys(person for person, _ in last)
    by_person = {person: [each for (other, _), each in last.items() if other == person] for person in people}
    if not replace:
        _refuse_conflicts(campaign, by_person)
    before()
    recorded = [
        campaign.tell_many(
            [(each.row, each.label) for each in theirs],
            replace=replace,
            new_class=True,  # they were checked above, all of them
            who=who,
            annotator=person,
        )
        for person, theirs in by_person.items()
    ]
    return Recorded(*(tuple(row for each in recorded for row in each[at]) for at in range(len(Recorded._fields))))


def _refuse_conflicts(campaign: Campaign, by_person: Mapping[str | None, Sequence[Answer]]) -> None:
    """Refuse a label that differs from what the same person has answered, before that of any other is recorded.

    A label of nobody in particular, or of a row that tests the model, must be the one that the row has.
    """
    states = campaign.journal.states()
    labels = {row: state.label for row, state in states.items() if state.label is not None}
    own = {(each.annotator, each.row): each.label for each in campaign.opinions()}
    for person, answers in by_person.items():
        for each in answers:
            alone = person is None or states[each.row].status in ("testing", "tested")
            known = labels.get(each.row) if alone else own.get((person, each.row))
            if known is not None and not _same(known, each.label):
                whose = f" from {person!r}" if person else ""
                raise StakesError(
                    f"{each.place}: row {each.row!r} has the label {known!r}{whose} and {str(each.label)!r} was "
                    f"reported; to change it on purpose, replace it (--replace). {NOTHING}"
                )
            labels.setdefault(each.row, str(each.label))


def _same(one: str, other: str | float) -> bool:
    try:
        return one == str(other) or float(one) == float(other)
    except ValueError:
        return False
