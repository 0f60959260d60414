"""Tasks and the labelling interface for Label Studio, and its exports as version 1.23.2 writes them."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from stakes.exceptions import StakesError
from stakes.exchange.label_studio import (
    annotation_label,
    annotator_name,
    check_config,
    is_label_studio,
    label_studio_answers,
    label_studio_config,
    label_studio_tasks,
)
from stakes.exchange.tasks import open_tasks
from tests.exchange.conftest import golden, row

CLASSES = ("$5", "bus", 'van & <"co">')


def annotation(*results, **more):
    return {"result": list(results), "was_cancelled": False, "completed_by": 1, **more}


def chosen(*names, name="label"):
    return {"from_name": name, "to_name": "row", "type": "choices", "value": {"choices": list(names)}}


def test_tasks_carry_ids_ranks_and_one_version(classes):
    found = open_tasks(classes)
    tasks = label_studio_tasks(found)
    assert [task["data"]["stakes_id"] for task in tasks] == [task.row for task in found.tasks]
    assert all(task["meta"] == {"stakes_id": task["data"]["stakes_id"]} for task in tasks)
    predictions = [task["predictions"][0] for task in tasks]
    assert [each["score"] for each in predictions] == sorted(each["score"] for each in predictions)
    assert {each["model_version"] for each in predictions} == {"stakes-8"}
    assert all(each["result"] == [] for each in predictions)


def test_guesses_are_results_of_the_control(classes, numbers):
    known = label_studio_tasks(open_tasks(classes, guess=True))[0]["predictions"][0]["result"][0]
    assert known["type"] == "choices"
    assert known["value"]["choices"][0] in CLASSES
    known = label_studio_tasks(open_tasks(numbers, guess=True))[0]["predictions"][0]["result"][0]
    assert known["type"] == "number"
    assert isinstance(known["value"]["number"], float)
    assert (known["from_name"], known["to_name"]) == ("label", "row")


def test_names_are_escaped_and_nothing_is_looked_up_in_the_data(classes):
    root = ElementTree.fromstring(label_studio_config(open_tasks(classes)))
    choices = [each.attrib for each in root.iter("Choice")]
    assert [each.get("alias", each["value"]) for each in choices] == list(CLASSES)
    assert not any(re.search(r"\$[\w\[\].{}]", each["value"]) for each in choices)  # what its pages look up
    assert root.find("Choices").attrib["toName"] == root.find("Table").attrib["name"] == "row"


def test_long_texts_have_a_box_of_their_own(classes):
    found = open_tasks(classes)
    root = ElementTree.fromstring(label_studio_config(found))
    assert [each.get("value") for each in root.iter("Text")] == ["$text_1"]
    data = next(task["data"] for task in label_studio_tasks(found) if task["data"]["stakes_id"] == row(9))
    assert data["text_1"].startswith("<script>")
    assert data["row"] == {"x": "4.5", "<b>z</b>": "3"}


def test_numbers_have_a_box_and_many_classes_a_list(numbers):
    found = open_tasks(numbers)
    assert [each.tag for each in ElementTree.fromstring(label_studio_config(found)).iter("Number")] == ["Number"]
    many = replace(found, classes=tuple(map(str, range(30))))
    assert ElementTree.fromstring(label_studio_config(many)).find("Choices").attrib["layout"] == "select"


def test_our_own_interface_is_taken_and_what_label_studio_sent_of_it(classes, numbers):
    check_config(classes, label_studio_config(open_tasks(classes)))
    check_config(numbers, label_studio_config(open_tasks(numbers)))
    check_config(classes, golden("setup-1.json")["schema"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ('<View><Choices name="label"><Choice value="buss"/></Choices></View>', "'buss'.*'bus'.*Did you mean 'bus'"),
        ('<View><Number name="label"/></View>', "no <Choices>"),
        ("<View>", "no XML"),
        ("<View>\ud800</View>", "no XML"),
        ("<a>" * 100_000, "no XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><View/>', "declaration"),
    ],
)
def test_an_interface_that_cannot_be_taken_is_refused(classes, config, message):
    with pytest.raises(StakesError, match=message):
        check_config(classes, config)


@pytest.mark.parametrize("name", ["classes-export.json", "classes-export-min.json"])
def test_exports_of_classes_tell_who_gave_which_label(classes, name):
    items = golden(name)
    assert is_label_studio(items)
    found = {(each.row, each.annotator): each.label for each in label_studio_answers(classes, items)}
    given = golden("about.json")["given"]
    second = next(name for _, name in found if name != "label-studio:1")
    assert found == {
        (given[0], "label-studio:1"): "bus",
        (given[1], "label-studio:1"): 'van & <"co">',
        (given[2], "label-studio:1"): "$5",
        (given[0], second): 'van & <"co">',
    }  # and not the fourth, which was cancelled


@pytest.mark.parametrize("name", ["numbers-export.json", "numbers-export-min.json"])
def test_exports_of_numbers(numbers, name):
    found = [each.label for each in label_studio_answers(numbers, golden(name))]
    assert sorted(found) == [0.0, 1.5, 3.0]
    assert all(isinstance(each, float) for each in found)


def test_a_task_without_our_id_is_known_by_the_column_of_ids(classes):
    task = {"id": 7, "data": {"id": row(8)}, "annotations": [annotation(chosen("bus"))]}
    assert next(iter(label_studio_answers(classes, [task]))).row == row(8)
    with pytest.raises(StakesError, match="task 7 has no 'stakes_id' or 'id'"):
        list(label_studio_answers(classes, [{**task, "data": {"x": 1}}]))
    with pytest.raises(StakesError, match="task 7 is about row 'r99'"):
        list(label_studio_answers(classes, [{**task, "data": {"stakes_id": "r99"}}]))


def test_what_an_annotation_says():
    assert annotation_label(annotation(chosen("bus")), "task 1") == "bus"
    assert annotation_label(annotation(chosen(" bus ")), "task 1") == "bus"
    assert annotation_label(annotation(chosen("bus"), was_cancelled=True), "task 1") is None
    assert annotation_label(annotation(), "task 1") is None
    assert annotation_label(annotation(chosen("bus", name="mine")), "task 1") == "bus"
    assert annotation_label(annotation(chosen("a", name="other"), chosen("b")), "task 1") == "b"
    text = {"from_name": "label", "type": "textarea", "value": {"text": ["3.5"]}}
    assert annotation_label(annotation(text), "task 1") == "3.5"
    assert annotation_label(annotation({"type": "rating", "value": {"rating": 4}}), "task 1") == 4


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (annotation(chosen("a", "b")), "task 1 has 2 labels, a, b"),
        (annotation(chosen("a", name="one"), chosen("b", name="two")), "several answers, 'one', 'two'"),
        (annotation({"type": "number", "value": {"number": float("inf")}}), "no class and no number"),
        (annotation({"type": "number", "value": {"number": True}}), "no class and no number"),
        (annotation({"type": "number", "value": {"number": 10**400}}), "no class and no number"),
        (annotation({"type": "number", "value": {"number": float("nan")}}), "no class and no number"),
        (annotation({"type": "choices", "value": {"choices": [{"a": 1}]}}), "no class and no number"),
        ({"completed_by": 1}, "no list of results"),
        ("bus", "no list of results"),
    ],
)
def test_an_annotation_that_is_none_is_refused_with_its_place(broken, message):
    with pytest.raises(StakesError, match=message) as caught:
        annotation_label(broken, "task 1")
    assert "Nothing was recorded." in str(caught.value)


@pytest.mark.parametrize("item", ["bus", 3, None, {"data": {}, "annotations": {}}])
def test_an_item_that_is_no_task_is_refused(classes, item):
    with pytest.raises(StakesError, match="Nothing was recorded"):
        list(label_studio_answers(classes, [item]))


def test_a_person_has_one_name_in_every_file():
    assert {annotator_name(each) for each in (1, "1", {"id": 1, "email": "a@example.com"})} == {"label-studio:1"}
    assert {annotator_name(each) for each in (None, "", {}, True, [])} == {None}
