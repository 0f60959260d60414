"""`stakes audit`: rows to test the model on, and what it loses by their labels."""

import csv

import pytest

from tests.cli.cli_cases import digest, run

pytestmark = pytest.mark.usefixtures("campaign")


def test_from_the_draw_to_the_loss():
    drawn = run("audit c.stakes -n 4")
    assert drawn.code == 0
    assert "Label 4 rows to test the model; it does not learn from them." in drawn.out
    assert "Then: stakes audit c.stakes --read" in drawn.out
    rows = [line.split()[1] for line in drawn.out.splitlines() if line[:3].strip().isdigit()]
    assert len(rows) == 4
    assert "0 of 4 rows are done" in run("status c.stakes --no-refresh").out
    assert "4 drawn to test the model" in run("status c.stakes --no-refresh").out
    for row in rows:
        assert run("tell c.stakes", row, "2.5").out.splitlines()[0] == "1 recorded"
    status = run("status c.stakes --no-refresh").out
    assert "Your loss is " in status
    assert "audited with 4 labels (of the model with 6 labels)." in " ".join(status.split())
    assert "4 tested" in status
    read = run("audit c.stakes --read --json").json
    assert read["labels"] == 4
    assert read["low"] <= read["high"]
    assert read["text"] in run("audit c.stakes --read").out
    assert "learns from these labels from now on" in run("audit c.stakes --read --use-for-training").out.replace(
        "\n", " "
    )
    assert run("status c.stakes --no-refresh --json").json["labelled"] == 10
    assert "sound" in run("doctor c.stakes").out


def test_a_file_to_fill_in():
    rows = run("audit c.stakes -n 3 -o rows.csv --json").json["rows"]
    with open("rows.csv", newline="", encoding="utf-8-sig") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == rows
    assert {line["status"] for line in lines} == {"testing"}
    with open("filled.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, lines[0].keys())
        writer.writeheader()
        writer.writerows({**line, "y": "1.5"} for line in lines)
    assert run("import c.stakes filled.csv").out.splitlines()[0] == "3 recorded"
    assert run("audit c.stakes --read --json").json["labels"] == 3


def test_a_report_says_it():
    for row in run("audit c.stakes -n 3 --json").json["rows"]:
        run("tell c.stakes", row, "2.5")
    assert run("report c.stakes -o r.html").code == 0
    with open("r.html") as page:
        text = page.read()
    assert "audited with 3 labels" in text
    assert "<dt>tested</dt>" in text


def test_rows_that_cannot_be_written_go_back(campaign):
    assert run("audit c.stakes -o numbers.csv").code == 1  # the table itself
    before = digest(campaign)
    assert run("audit c.stakes -o no/such/folder/rows.csv").code == 1
    assert digest(campaign) == before


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        ("--use-for-training", 2, "goes with --read"),
        ("--read -o x.csv", 2, "give one of them"),
        ("-n 0", 2, "0"),
        ("--read", 1, "there is no audit to read"),
    ],
)
def test_refused_and_nothing_changed(campaign, options, code, match):
    before = digest(campaign)
    answer = run("audit c.stakes", options)
    assert answer.code == code
    assert match in answer.err
    assert digest(campaign) == before
