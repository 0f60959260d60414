"""`stakes set`: settings of a campaign that runs."""

import pytest

from tests.cli.cli_cases import digest, run


@pytest.mark.usefixtures("campaign")
def test_set_show_and_unset():
    assert run("set c.stakes").out == "decisions: not set\nlabel-cost: not set\nbudget: not set\n"
    told = run("set c.stakes --decisions 500 --label-cost 2 --budget 30")
    assert told.out.startswith("decisions: 500\nlabel-cost: 2\nbudget: 30\n\nChanges:\n")
    assert run("status c.stakes --no-refresh --json").json["budget"] == 30
    shown = run("set c.stakes --unset budget --json").json
    assert (shown["budget"], shown["decisions"]) == (None, 500)
    assert [sorted(each) for each in shown["changes"]] == [
        ["at", "budget", "decisions", "label_cost"],
        ["at", "budget"],
    ]
    assert "sound" in run("doctor c.stakes").out


@pytest.mark.parametrize(
    ("words", "code", "match"),
    [
        ("--budget -5", 1, "budget must be a positive number"),
        ("--budget 5 --unset budget", 2, "give one of them"),
        ("--loss linex", 2, "--loss"),
        ("--unset model", 2, "model"),
    ],
)
def test_refused_and_nothing_changed(campaign, words, code, match):
    before = digest(campaign)
    answer = run("set c.stakes", words)
    assert answer.code == code
    assert match in answer.err
    assert digest(campaign) == before
