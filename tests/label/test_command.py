"""A program as an annotator: what it is asked, what it may answer, and what becomes of one that fails."""

import sys

import pytest

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.label.command import CommandAnnotator
from tests.label.label_cases import classes_campaign
from tests.label.test_flow import desk_of  # noqa: F401 (a fixture)

GOOD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    known = asked["classes"] == ["good", "bad"] and "remark" in asked["values"]
    print(json.dumps({"label": ("bad" if asked["row"].endswith("7") else "good") if known else None}), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """A function that makes an annotator of a program."""
    made = []

    def make(code, **more):
        path = tmp_path / "annotator.py"
        path.write_text(code)
        made.append(CommandAnnotator(f"'{sys.executable}' '{path}'", **more))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_a_program_is_asked_row_after_row(program):
    annotator = program(GOOD)
    values = {"remark": "hello"}
    assert [annotator.ask(row, values, ["good", "bad"]) for row in ("p016", "p017")] == ["good", "bad"]
    assert annotator.ask("p016", {}, ["good", "bad"]) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("print('no JSON', flush=True); input()", "failed on row 'a'"),
        ("print('{\"label\": []}', flush=True); input()", "a line such as"),
        ("print('[1]', flush=True); input()", "a line such as"),
        ("", "failed on row 'a'"),
        ("import time; time.sleep(60)", "did not answer within 0.5 seconds"),
    ],
)
def test_a_program_that_says_nothing_sensible_is_refused_and_ended(program, code, message):
    annotator = program(code, patience=0.5 if "sleep" in code else 60.0)
    with pytest.raises(StakesError, match=message):
        annotator.ask("a", {}, [])
    assert annotator._process is None


@pytest.mark.parametrize("command", ["", "/nothing/there --x"])
def test_a_program_that_cannot_be_started_is_refused(command):
    with pytest.raises(StakesError, match=r"empty|cannot be started"):
        CommandAnnotator(command).ask("a", {}, [])


def test_its_labels_are_opinions_of_its_own_and_people_tell_how_reliable_it_is(desk_of, tmp_path):  # noqa: F811
    desk = desk_of(classes_campaign(tmp_path), opinions=2, share=1.0, command=CommandAnnotator("x", "robot", 3))
    rows = []
    while (card := desk.for_command()) is not None:
        rows.append(card.row)
        desk.take("robot", card.row, "good")
    assert len(rows) == 3
    assert "will be known once people" in desk.agreement()[-1]
    assert desk.card("anna").row in rows  # people are asked about its rows, too
    desk.tell("anna", rows[0], "bad")
    desk.tell("anna", rows[1], "good")
    assert desk.agreement()[-1] == "robot says what people say in 1 of 2 labels (50%)."
    assert desk.campaign.disagreements() == (rows[0],)


def test_what_it_does_not_know_is_for_people(desk_of, tmp_path):  # noqa: F811
    desk = desk_of(classes_campaign(tmp_path), command=CommandAnnotator("x", "robot"))
    row = desk.for_command().row
    desk.take("robot", row, None)
    assert desk.disputes() == [row]


def test_a_command_is_never_kept_in_a_campaign(serve, tmp_path):
    """It labels beside the people, while the file says nothing of it but its labels."""
    path = classes_campaign(tmp_path, rows=20)
    script = tmp_path / "annotator.py"
    script.write_text(GOOD)
    serve(
        path,
        "--annotator-command",
        f"'{sys.executable}' '{script}'",
        "--command-name",
        "robot",
        "--annotator",
        "robot:0.5",
    )
    with Campaign.open(path) as campaign:
        while sum(opinion.annotator == "robot" for opinion in campaign.opinions()) < 3:
            pass
        assert campaign.annotators() == {"robot": 0.5}
    assert b"annotator.py" not in path.read_bytes()
