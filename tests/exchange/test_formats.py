"""Files to other tools and back: which there are, and which tool a file is from."""

import csv
import json

import pytest

from stakes.exceptions import StakesError
from stakes.exchange import FORMATS, export_tasks, import_answers
from stakes.exchange.formats import read_answers
from tests.exchange.conftest import GOLDEN, golden, row


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("label-studio", ["tasks.json", "config.xml"]),
        ("argilla", ["records.json", "settings.json"]),
        ("doccano", ["rows.jsonl", "labels.json"]),
    ],
)
def test_a_folder_is_made(classes, tmp_path, tool, names):
    done = export_tasks(classes, tmp_path / "out", tool)
    assert [path.name for path in done.files] == names
    assert (done.tasks, done.asked) == (12, 0)
    assert all(path.parent == tmp_path / "out" for path in done.files)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("label-studio", "a.json"),
        ("argilla", "a.json"),
        ("argilla", "a.jsonl"),
        ("argilla", "a.csv"),
        ("doccano", "a.jsonl"),
        ("doccano", "a.csv"),
    ],
)
def test_what_is_labelled_in_a_file_comes_back(classes, tmp_path, tool, name):
    """Each shape, labelled as the tool would, is read again."""
    done = export_tasks(classes, tmp_path / name, tool, n=3)
    assert done.files[1].name.startswith("a-")
    with done.files[0].open(newline="") as opened:
        items = (
            list(csv.DictReader(opened))
            if name.endswith(".csv")
            else json.load(opened)
            if name.endswith(".json")
            else [json.loads(line) for line in opened]
        )
    for item in items:
        if tool == "label-studio":
            result = [{"from_name": "label", "type": "choices", "value": {"choices": ["bus"]}}]
            item["annotations"] = [{"result": result, "completed_by": 1}]
        elif tool == "argilla":
            nested = {"responses": {"label": [{"value": "bus", "user_id": "u"}]}}
            item |= nested if name.endswith(".json") else {"label.responses": ["bus"]}
        else:
            item["label"] = "bus" if name.endswith(".csv") else ["bus"]
    file = tmp_path / f"labelled{done.files[0].suffix}"
    with file.open("w", newline="") as opened:
        if name.endswith(".csv"):
            writer = csv.DictWriter(opened, items[0])
            writer.writeheader()
            writer.writerows(items)
        else:
            lines = "".join(json.dumps(item) + "\n" for item in items)
            opened.write(json.dumps(items) if name.endswith(".json") else lines)
    imported = import_answers(classes, file)
    assert len(imported.new) == 3
    assert {classes.journal.state(each).label for each in imported.new} == {"bus"}


@pytest.mark.parametrize("name", ["export.json", "export-min.json", "export.csv"])
def test_exports_of_a_real_label_studio_are_recorded(classes, numbers, name):
    imported = import_answers(classes, GOLDEN / f"classes-{name}")
    given = golden("about.json")["given"]
    assert set(imported.new) == set(given[:3])
    assert imported.opinions == (given[0],)
    assert classes.disagreements() == (given[0],)
    assert len(import_answers(numbers, GOLDEN / f"numbers-{name}").new) == 3
    again = import_answers(classes, GOLDEN / f"classes-{name}")
    assert (again.new, len(again.known)) == ((), 4)


def test_nothing_is_recorded_if_a_class_is_unknown(classes, tmp_path):
    items = golden("classes-export.json")
    items[-1]["annotations"] = [
        {"result": [{"from_name": "label", "type": "choices", "value": {"choices": ["buss"]}}], "completed_by": 1}
    ]
    (tmp_path / "e.json").write_text(json.dumps(items))
    before = classes.journal.version()
    with pytest.raises(StakesError, match=rf"task {items[-1]['id']}, row .*'buss' is no class; there are .*'bus'"):
        import_answers(classes, tmp_path / "e.json")
    assert classes.journal.version() == before


@pytest.mark.parametrize("text", ["{", "[1,", '{"a": 1}', '[{"a": 1}]', "[3]", "[" * 100_000, '"text"'])
def test_other_json_is_refused(classes, tmp_path, text):
    (tmp_path / "e.json").write_text(text)
    with pytest.raises(StakesError, match="Nothing was recorded"):
        read_answers(classes, tmp_path / "e.json")


def test_a_file_that_is_not_utf8_or_empty(classes, tmp_path):
    (tmp_path / "e.json").write_bytes(b'[{"data": "\xff"}]')
    with pytest.raises(StakesError, match="not UTF-8"):
        read_answers(classes, tmp_path / "e.json")
    (tmp_path / "e.json").write_text("[]")
    assert read_answers(classes, tmp_path / "e.json") == []


def test_other_tables_are_left_to_import_labels(classes, tmp_path):
    for name, text in (("t.csv", "id,text,label\n1,a,b\n"), ("t.xlsx", "no"), ("e.csv", "")):
        (tmp_path / name).write_text(text)
        assert import_answers(classes, tmp_path / name) is None
    assert import_answers(classes, tmp_path / "no such.csv") is None
    with pytest.raises(StakesError, match="there is no file"):
        import_answers(classes, tmp_path / "no such.json")


def test_what_is_there_is_left_as_it_is(classes, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "config.xml").write_text("mine")
    with pytest.raises(StakesError, match="is there already"):
        export_tasks(classes, tmp_path / "out", "label-studio")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["config.xml"]
    export_tasks(classes, tmp_path / "out", "label-studio", overwrite=True)
    assert (tmp_path / "out" / "config.xml").read_text().startswith("<View>")
    for place in ("classes.stakes", "classes.csv"):
        with pytest.raises(StakesError):
            export_tasks(classes, tmp_path / place, "doccano", overwrite=True)


@pytest.mark.parametrize(
    ("tool", "name", "message"),
    [
        ("label-studio", "a.csv", "written as .json"),
        ("doccano", "a.json", "written as .jsonl or .csv"),
        ("prodigy", "a", "no tool 'prodigy'; there are label-studio, argilla, doccano"),
        ("doccano", "no/such/folder", "no folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(classes, tmp_path, tool, name, message):
    with pytest.raises(StakesError, match=message):
        export_tasks(classes, tmp_path / name, tool)


def test_nothing_to_label(numbers, tmp_path):
    numbers.tell_many([(row(i), 1.0) for i in range(8, 20)])
    with pytest.raises(StakesError, match="no row is open"):
        export_tasks(numbers, tmp_path / "out", "label-studio")
    assert not (tmp_path / "out").exists()


def test_the_tools_of_the_command_line_are_these():
    from stakes.cli.export import _TOOLS

    assert tuple(FORMATS) == _TOOLS
