"""No command writes over what it reads, a campaign, or, without --force, any file that is there."""

import json
import os
import shutil

import pytest

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from tests.cli.cli_cases import NUMBERS, digest, number_rows, run, write

COSTS = "truth,treat,wait\nbus,1,2\nvan,1,0\nNA,0,1\n"
READS = [
    "export c.stakes -o {}",
    "export c.stakes --events -o {}",
    "ask c.stakes -o {}",
    "report c.stakes -o {}",
    f"suggest numbers.csv {NUMBERS} -o {{}}",
    "suggest classes.csv --target kind --id id --loss cost-matrix --cost-matrix costs.csv -o {}",
]


@pytest.fixture
def files(campaign, here):
    """A campaign, its table, and the same by other names."""
    (here / "costs.csv").write_text(COSTS)
    (here / "mine.csv").write_text("mine")
    (here / "mine.html").write_text("<!doctype html><p>mine")
    (here / "table-link.csv").symlink_to("numbers.csv")
    (here / "campaign-link.csv").symlink_to("c.stakes")
    os.link(here / "numbers.csv", here / "table-hard.csv")
    os.link(campaign, here / "campaign-hard.csv")
    shutil.copy(campaign, here / "other.stakes")
    return here


def all_files(folder):
    return {str(path.relative_to(folder)): digest(path) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("force", ["", " --force"])
@pytest.mark.parametrize("command", READS)
def test_no_command_destroys_a_table_or_a_campaign(files, command, force):
    before = all_files(files)
    names = ["c.stakes", "./c.stakes", "other.stakes", "c.stakes-wal", "campaign-link.csv", "campaign-hard.csv"]
    if "classes" not in command:
        names += ["numbers.csv", "table-link.csv", "table-hard.csv", f"{files}/sub/../numbers.csv"]
    else:
        names += ["classes.csv", "costs.csv"]
    (files / "sub").mkdir()
    for name in names:
        answer = run(command.format(name) + force)
        assert (answer.code, answer.out) == (1, ""), (name, answer)
        assert "Give another name" in answer.err
        assert all_files(files) == before, name
    assert run("status c.stakes --no-refresh --json").json["asked"] == 0  # nothing was handed out


@pytest.mark.parametrize("command", READS)
def test_a_file_that_is_there_goes_only_by_force(files, command):
    for name in ("mine.csv", "mine.html"):
        before = all_files(files)
        answer = run(command.format(name))
        assert (answer.code, answer.out) == (1, "")
        assert f"{name} is there already and is left as it is" in answer.err
        assert all_files(files) == before
        assert run(command.format(name), "--force").code == 0
        assert (files / name).read_text(encoding="utf-8-sig") != before[name]
        (files / name).write_text("mine")
    assert not list(files.glob(".stakes-*"))


@pytest.mark.usefixtures("campaign")
def test_a_report_replaces_one_that_it_wrote(here):
    pytest.importorskip("matplotlib")
    for _ in range(2):
        assert run("report c.stakes").code == 0
    assert (here / "report.html").exists()


def test_simulate_leaves_pictures_and_tables_as_they_are(here):
    pytest.importorskip("matplotlib")
    options = f"simulate numbers.csv {NUMBERS} --model bayesian-ridge -n 1 --runs 1 --initial 3"
    write(here / "numbers.csv", number_rows(30, 30))
    (here / "mine.png").write_text("mine")
    os.link(here / "numbers.csv", here / "numbers.png")
    before = all_files(here)
    assert "is left as it is" in run(options, "--plot mine.png").err
    assert "which is read here" in run(options, "--plot numbers.png --force").err
    for store in ("numbers.csv", "numbers.csv/below"):
        answer = run(options, "--store", store)
        assert (answer.code, "cannot be made" in answer.err) == (1, True)
    assert all_files(here) == before


@pytest.mark.usefixtures("campaign")
def test_rows_that_could_not_be_written_are_given_back(here, monkeypatch):
    def full(*_, **__):
        raise StakesError("a.csv cannot be written: No space left on device. Nothing was changed.")

    monkeypatch.setattr(Campaign, "export", full)
    answer = run("ask c.stakes -n 2 -o a.csv")
    assert (answer.code, "No space left" in answer.err) == (1, True)
    assert run("status c.stakes --no-refresh --json").json["asked"] == 0
    assert not (here / "a.csv").exists()


def test_a_table_and_a_campaign_may_be_links(campaign, here):
    (here / "far").mkdir()
    (here / "far" / "link.stakes").symlink_to(campaign)
    assert run("doctor far/link.stakes").code == 0  # the table is beside the file, not beside the link
    shutil.move(here / "numbers.csv", here / "far" / "moved.csv")
    (here / "current.csv").symlink_to("far/moved.csv")
    assert run("status c.stakes --table current.csv").code == 0
    assert run("ask far/link.stakes").code == 0
    shutil.move(here / "far" / "moved.csv", here / "far" / "again.csv")
    (here / "current.csv").unlink()
    (here / "current.csv").symlink_to("far/again.csv")  # pointed elsewhere, it is the table still
    assert run("doctor c.stakes").code == 0


@pytest.mark.parametrize("command", ["init c.stakes-wal numbers.csv", "init c.stakes-journal numbers.csv"])
def test_no_campaign_is_made_that_would_be_part_of_another(campaign, command):
    before = digest(campaign)
    answer = run(command, NUMBERS)
    assert (answer.code, "is part of" in answer.err) == (1, True)
    assert run("doctor c.stakes --recover c.stakes-wal").code == 1
    assert digest(campaign) == before
    assert run("doctor c.stakes").code == 0


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "doccano"])
def test_rows_for_other_tools_in_our_order(campaign, here, tool):
    answer = run(f"export c.stakes --format {tool} -o out --json")
    assert answer.code == 0, answer.err
    assert answer.json["rows"] == 6
    assert all((here / name).exists() for name in answer.json["files"])
    text = run(f"export c.stakes --format {tool} -o out2 -n 2")
    assert "Wrote 2 rows, best first, to out2/" in text.out
    assert f"stakes import {campaign.name}" in text.out
    first = run("ask c.stakes --json").json["rows"][0]["row_id"]
    assert first in (here / answer.json["files"][0]).read_text()[:400]
    assert "1 row left out" in run(f"export c.stakes --format {tool} -o out3").out


def test_options_for_tools_are_for_tools(campaign):
    for options in ("-n 3", "--guess", "--events --format doccano"):
        assert run(f"export {campaign.name} -o out.csv {options}").code == 2


def test_an_export_of_label_studio_is_imported(campaign, here):
    number = {"from_name": "label", "to_name": "row", "type": "number", "value": {"number": 2.5}}
    task = {"id": 1, "data": {"stakes_id": "r8"}, "annotations": [{"result": [number], "completed_by": 3}]}
    (here / "export.json").write_text(json.dumps([task]))
    answer = run("import c.stakes export.json --json")
    assert answer.json["new"] == ["r8"]
    with Campaign.open(campaign) as opened:
        assert (opened.journal.state("r8").label, opened.journal.state("r8").who) == ("2.5", "label-studio:3")
    number["value"]["number"] = "much"
    (here / "export.json").write_text(json.dumps([{**task, "data": {"stakes_id": "r9"}}]))
    refused = run("import c.stakes export.json")
    assert refused.code == 1
    assert "task 1, row 'r9': 'much' is no number" in refused.err
