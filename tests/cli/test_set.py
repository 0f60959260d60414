"""`stakes set`: settings of a campaign that runs."""

import pytest

from tests.cli.cli_cases import digest, run


@pytest.mark.usefixtures("campaign")
def test_set_show_and_unset():
    assert run("set c.stakes").out == "decisions: not set\nlabel-cost: not set\nbudget: not set\n"
    answer = run("set c.stakes --decisions 500 --label-cost 2 --budget 30")
    assert answer.out.startswith("decisions: 500\nlabel-cost: 2\nbudget: 30\n\nChanges:\n")
    assert run("status c.stakes --no-refresh --json").json["budget"] == 30
    shown = run("set c.stakes --unset budget --json").json
    assert (shown["budget"], shown["decisions"]) == (None, 500)
    assert [sorted(each) for each in shown["changes"]] == [
        ["at", "budget", "decisions", "label_cost"],
        ["at", "budget"],
    ]
    assert "sound" in run("doctor c.stakes").out


@pytest.mark.parametrize(
    ("options", "code", "match"),
    [
        ("--budget -5", 1, "budget must be a positive number"),
        ("--budget 5 --unset budget", 2, "give one of them"),
        ("--loss linex", 2, "--loss"),
        ("--unset model", 2, "model"),
    ],
)
def test_refused_and_nothing_changed(campaign, options, code, match):
    before = digest(campaign)
    answer = run("set c.stakes", options)
    assert answer.code == code
    assert match in answer.err
    assert digest(campaign) == before


def advice_of():
    return run("status c.stakes --json").json["outlook"]["advice"]


@pytest.mark.usefixtures("campaign")
def test_a_changed_price_changes_the_advice_at_once():
    """The labels and the model are the same: only what a label costs, or how many decisions there are, is not."""
    run("set c.stakes --decisions 1000 --label-cost 0.0001")
    assert advice_of() == "go on"
    assert "Go on:" in run("status c.stakes").out
    run("set c.stakes --label-cost 100000")
    old = run("status c.stakes --no-refresh").out
    assert "Stale: It is older than the last change of settings." in old
    assert advice_of() == "stop"
    assert "Stop:" in run("status c.stakes").out
    run("set c.stakes --decisions 1e12")
    assert advice_of() == "go on"
    run("set c.stakes --unset label-cost")
    status = run("status c.stakes").out
    assert "Whether labels pay is not known" in status


@pytest.mark.usefixtures("campaign")
def test_ask_shows_the_advice_of_status_and_new_prices():
    run("set c.stakes --decisions 1000 --label-cost 0.0001")
    asked = run("ask c.stakes -n 1 --json").json
    assert asked["advice"].startswith("Go on:")
    assert asked["advice"] == " ".join(run("status c.stakes --json --no-refresh").json["outlook"]["sentences"])
    run("set c.stakes --label-cost 100000")
    asked = run("ask c.stakes -n 1")
    assert "Stop:" in asked.out
    assert asked.out.index("Stop:") < asked.out.index("Next:")
    run("set c.stakes --unset decisions")
    assert run("ask c.stakes -n 1 --json").json["advice"] is None


@pytest.mark.usefixtures("campaign")
def test_prices_that_differ_little_leave_the_advice_as_it_is():
    """Within the margin a campaign keeps its course from label to label; a new price makes it think again."""
    run("set c.stakes --decisions 1000 --label-cost 1")
    offers = run("status c.stakes --json").json["outlook"]["offers"]
    even = max(1000 * offer["worth"] / offer["size"] for offer in offers)  # at this price the best batch just pays
    run(f"set c.stakes --label-cost {0.5 * even}")
    assert advice_of() == "go on"
    run(f"set c.stakes --label-cost {even}")
    assert advice_of() == "too close to call"
    run(f"set c.stakes --label-cost {3 * even}")
    assert advice_of() == "stop"
