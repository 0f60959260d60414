"""The demo tells its story, leaves what it says, and touches nothing of anyone's."""

import csv

import pytest

from stakes.campaign import Campaign
from stakes.cli.demo import LOSS, SAMPLES, TARGET, DemoSize, run_demo
from stakes.exceptions import StakesError

LABELLED = SAMPLES["progression"].labelled
SMALL = DemoSize(rounds=2, batch=2, runs=2, labels=2)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed, and the demo draws pictures")
    lines = []
    folder = tmp_path_factory.mktemp("demo") / "new"
    return run_demo(folder, say=lines.append, size=SMALL), "\n".join(lines)


def rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_every_step_names_its_command(finished):
    files, text = finished
    for command in (
        "sample progression",
        "suggest progression.csv",
        "init campaign.stakes",
        "ask campaign.stakes",
        "tell campaign.stakes D",
    ):
        assert f"$ stakes {command}" in text
    for command in ("simulate progression-answers.csv", "report campaign.stakes -o report.html"):
        assert f"$ stakes {command}" in text
    assert "After 2 labels, in 2 runs" in text
    assert str(files.report) in text


def test_the_table_has_its_first_labels_and_the_answers_have_all(finished):
    files, _ = finished
    table, answers = rows(files.table), rows(files.answers)
    assert len(table) == len(answers) == 442
    assert sum(row[TARGET] != "" for row in table) == LABELLED
    assert all(float(row[TARGET]) > 0 for row in answers)
    assert [{**row, TARGET: ""} for row in table] == [{**row, TARGET: ""} for row in answers]


def test_the_campaign_holds_the_labels_of_the_demo(finished):
    files, _ = finished
    truths = {row["patient"]: row[TARGET] for row in rows(files.answers)}
    with Campaign.open(files.campaign) as campaign:
        bought = [event for event in campaign.history() if event.kind == "label"][LABELLED:]
        assert campaign.brief.loss == LOSS
        assert len(bought) == SMALL.rounds * SMALL.batch
        assert all(truths[event.row] == event.label for event in bought)


def test_the_pictures_are_there(finished):
    files, _ = finished
    assert files.curve.read_bytes().startswith(b"\x89PNG")
    assert files.report.read_text(encoding="utf-8").count("<img ") == 5
    assert {path.name for path in files.table.parent.iterdir()} == {path.name for path in vars(files).values()}


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    lines = []
    with pytest.raises(StakesError, match="not empty; nothing in it was touched"):
        run_demo(tmp_path, say=lines.append, size=SMALL)
    with pytest.raises(StakesError, match="Give a new folder"):
        run_demo(tmp_path / "thesis.txt", say=lines.append, size=SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert lines == []
