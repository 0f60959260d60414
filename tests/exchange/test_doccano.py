"""doccano: files in the shape that its source documents."""

import pytest

from stakes.exceptions import StakesError
from stakes.exchange.doccano import doccano_answers, doccano_labels, doccano_lines, is_doccano
from stakes.exchange.tasks import open_tasks
from tests.exchange.conftest import row


def document(number, *labels, **more):
    """As its export writes it: metadata beside the text, labels as a list."""
    return {"id": number, "text": "x: 1", "stakes_id": row(number), "stakes_rank": 3, "label": list(labels), **more}


def test_documents_come_in_our_order_with_ids(classes, numbers):
    found = open_tasks(classes)
    lines = doccano_lines(found)
    assert [each["stakes_id"] for each in lines] == [task.row for task in found.tasks]
    assert all(each["label"] == [] for each in lines)
    assert all(len(each["label"]) == 1 for each in doccano_lines(open_tasks(numbers, guess=True)))


def test_classes_have_keys_and_colours(classes, numbers):
    labels = doccano_labels(open_tasks(classes))
    assert [each["text"] for each in labels] == ["$5", "bus", 'van & <"co">']
    assert [each["suffix_key"] for each in labels] == ["1", "2", "3"]
    assert len({each["background_color"] for each in labels}) == 3
    assert doccano_labels(open_tasks(numbers)) == []


def test_labels_come_back(classes, numbers):
    items = [document(8, "bus", Comments=[]), document(9), document(10, "$5")]
    assert is_doccano(items)
    assert [(each.row, each.label) for each in doccano_answers(classes, items)] == [(row(8), "bus"), (row(10), "$5")]
    assert [each.label for each in doccano_answers(numbers, [document(8, "3.5")])] == ["3.5"]  # sequence to sequence
    old = {"id": 1, "text": "x", "meta": {"stakes_id": row(8)}, "labels": ["bus"]}
    assert [each.row for each in doccano_answers(classes, [old])] == [row(8)]


def test_other_tables_with_such_columns_are_none_of_doccano():
    assert not is_doccano([{"text": "x", "label": "a"}])
    assert not is_doccano([])


@pytest.mark.parametrize("item", ["text", document(8, "bus", "$5"), document(99, "bus")])
def test_what_is_no_document_is_refused(classes, item):
    with pytest.raises(StakesError, match="Nothing was recorded"):
        list(doccano_answers(classes, [item]))
