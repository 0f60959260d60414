"""Argilla 2: its files were compared with what argilla 2.8.0 reads and writes."""

import pytest

from stakes.exceptions import StakesError
from stakes.exchange.argilla import (
    argilla_answers,
    argilla_lines,
    argilla_records,
    argilla_settings,
    is_argilla,
)
from stakes.exchange.tasks import open_tasks
from tests.exchange.conftest import row

USER = "11111111-1111-1111-1111-111111111111"


def record(number, value, **more):
    """As `Record.to_dict` of argilla 2.8.0 writes it."""
    return {
        "id": row(number),
        "fields": {"row": "x: 1"},
        "metadata": {"rank": 1, "stakes_id": row(number)},
        "suggestions": {},
        "responses": {} if value is None else {"label": [{"value": value, "user_id": USER, **more}]},
        "vectors": {},
        "status": "pending",
        "_server_id": None,
    }


def flat(number, values, **more):
    """As `records.to_list(flatten=True)` of argilla 2.8.0 writes it."""
    users = {"label.responses.users": [USER] * len(values), "label.responses.status": ["submitted"] * len(values)}
    return {"id": row(number), "status": "pending", "row": "x", "rank": 1, "label.responses": values, **users, **more}


def test_records_carry_ids_and_ranks(classes):
    found = open_tasks(classes)
    records = argilla_records(found)
    assert [each["metadata"]["rank"] for each in records] == list(range(1, 13))
    assert [each["id"] for each in records] == [task.row for task in found.tasks]
    assert records[0]["suggestions"] == {}
    guessed = argilla_records(open_tasks(classes, guess=True))[0]["suggestions"]["label"]
    assert guessed["agent"] == "stakes-8"
    assert [each["stakes_id"] for each in argilla_lines(found)] == [task.row for task in found.tasks]


def test_settings_ask_for_a_class_or_a_text(classes, numbers):
    (question,) = argilla_settings(open_tasks(classes))["questions"]
    assert [each["value"] for each in question["settings"]["options"]] == ["$5", "bus", 'van & <"co">']
    (question,) = argilla_settings(open_tasks(numbers))["questions"]
    assert question["settings"]["type"] == "text"


@pytest.mark.parametrize("make", [record, lambda number, value, **more: flat(number, [value] if value else [], **more)])
def test_responses_come_back(classes, make):
    items = [make(8, "bus"), make(9, None), make(10, "$5")]
    assert is_argilla(items)
    found = list(argilla_answers(classes, items))
    assert [(each.row, each.label) for each in found] == [(row(8), "bus"), (row(10), "$5")]
    assert {each.annotator for each in found} == {f"argilla:{USER}"}


def test_drafts_and_discarded_ones_are_passed_over(classes):
    items = [record(8, "bus", status="draft"), record(9, "bus", status="discarded"), record(10, "bus")]
    assert [each.row for each in argilla_answers(classes, items)] == [row(10)]
    states = {"label.responses.status": ["discarded", "submitted"]}
    assert [each.label for each in argilla_answers(classes, [flat(8, ["bus", "$5"], **states)])] == ["$5"]


def test_a_csv_has_lists_as_python_writes_them(classes):
    line = {"id": row(8), "stakes_id": row(8), "label.responses": "['bus']", "label.responses.users": f"['{USER}']"}
    assert next(iter(argilla_answers(classes, [line]))).label == "bus"
    assert list(argilla_answers(classes, [{**line, "label.responses": ""}])) == []


@pytest.mark.parametrize("item", [3, {**record(8, "bus"), "responses": {"label": "bus"}}, record("no such", "bus")])
def test_what_is_no_record_is_refused(classes, item):
    with pytest.raises(StakesError, match="Nothing was recorded"):
        list(argilla_answers(classes, [item]))
