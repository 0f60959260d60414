"""`stakes doctor` on damaged campaigns and on those of others, and --trust on the commands."""

import shutil
import sys

import pytest

from stakes.campaign import Journal
from stakes.campaign.trust import trust_folder
from tests.campaign.forging import changed
from tests.cli.cli_cases import NUMBERS, digest, run


@pytest.fixture
def module(here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "settings"))
    (here / "mymodule.py").write_text(
        "from sklearn.linear_model import BayesianRidge\n"
        "open('imported', 'w').close()\n"
        "class Mine(BayesianRidge): pass\n"
    )
    yield here / "imported"
    sys.modules.pop("mymodule", None)


def test_a_text_label_a_blob_and_a_note_that_is_no_json_are_not_sound(campaign):
    sound = campaign.read_bytes()
    for statement, message in (
        ("UPDATE events SET label = 'high' WHERE number = 1", "event 1 is not what was written"),
        ("UPDATE events SET label = x'31' WHERE number = 1", "event 1 cannot be one"),
        ("UPDATE records SET payload = 'no' WHERE number = 1", "record 1 is not what was written"),
        ("CREATE TRIGGER t AFTER INSERT ON events BEGIN SELECT 1; END", "the trigger t is not as stakes makes it"),
    ):
        campaign.write_bytes(sound)
        changed(campaign, statement)
        for command in ("doctor c.stakes", "status c.stakes", "tell c.stakes r8 1", "ask c.stakes"):
            answer = run(command)
            assert (answer.code, answer.out) == (1, "")
            assert message in answer.err
    campaign.write_bytes(sound)
    with Journal.open(campaign) as journal:
        journal.tell_many([("r8", "high")])  # with true hashes
    assert "'high' is no number" in run("doctor c.stakes").err


def test_what_is_sound_is_recovered(campaign):
    run("tell c.stakes r8 1")
    changed(campaign, "UPDATE events SET label = '2' WHERE number = 7")
    before = digest(campaign)
    assert "--recover" in run("status c.stakes").err
    answer = run("doctor c.stakes --recover new.stakes")
    assert answer.code == 0
    assert "6 events were taken over" in answer.out
    assert run("status new.stakes --no-refresh --json").json["labelled"] == 6
    assert digest(campaign) == before
    assert run("doctor c.stakes --recover new.stakes").code == 1
    assert run("doctor --recover new.stakes").code == 2


def test_a_campaign_of_somebody_else_imports_nothing_without_trust(here, module):
    assert run("init c.stakes numbers.csv", NUMBERS, "--model mymodule:Mine").code == 0
    shutil.rmtree(trust_folder())
    sys.modules.pop("mymodule")
    module.unlink()
    for command in ("ask c.stakes", "status c.stakes", "report c.stakes -o r.html"):
        answer = run(command)
        assert answer.code == 1
        assert "names mymodule:Mine" in answer.err
        assert "--trust" in answer.err
    doctor = run("doctor c.stakes")
    assert "it names mymodule:Mine, which is not trusted, and was not imported (--trust)" in doctor.out
    assert not module.exists()
    assert not (here / "r.html").exists()
    assert run("ask c.stakes --trust").code == 0
    assert module.exists()
    assert run("ask c.stakes").code == 0
    assert "which is trusted" in run("doctor c.stakes").out
    for command in ("tell c.stakes r8 1", "import c.stakes numbers.csv", "export c.stakes -o e.csv", "doctor c.stakes"):
        assert run(command, "--trust").code == 0


def test_a_small_problem_is_solved_and_a_wrong_answer_is_an_error(monkeypatch):
    answer = run("doctor --json")
    assert answer.code == 0
    assert answer.json["small_problem"] is True
    assert "a small problem was solved as it should be" in run("doctor").out
    monkeypatch.setattr("stakes.score", lambda loss, belief: [0.4999])
    answer = run("doctor")
    assert answer.code == 1
    assert "a small problem was solved wrongly" in answer.out
    assert "install it anew" in answer.err
