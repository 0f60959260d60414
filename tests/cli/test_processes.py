"""Real processes on one campaign: at once, and stopped at any moment."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from stakes.campaign import Journal
from tests.cli.cli_cases import run

ONE = [sys.executable, "-m", "stakes"]


def start(*arguments):
    return subprocess.Popen([*ONE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_that_ask_at_once_get_other_rows(campaign):
    asking = [start("ask", "c.stakes", "-n", "3", "--json", "--who", who) for who in ("anna", "ben")]
    answers = [json.loads(each.communicate(timeout=60)[0]) for each in asking]
    rows = [row["row_id"] for answer in answers for row in answer["rows"]]
    assert len(rows) == len(set(rows)) == 6
    with Journal.open(campaign) as journal:
        assert {journal.states()[row].status for row in rows} == {"asked"}


def stopped(process, how, after):
    """Its exit code and what it said, when it was signalled after some seconds."""
    time.sleep(after)
    process.send_signal(how)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("campaign")
def test_stopped_at_any_moment_the_campaign_is_sound(how):
    begin = time.monotonic()
    start("ask", "c.stakes").communicate(timeout=60)
    took = time.monotonic() - begin
    for at, share in enumerate(np.random.default_rng(int(how)).uniform(0.1, 1.0, 2)):
        arguments = ("ask", "c.stakes") if at % 2 == 0 else ("tell", "c.stakes", "r11", "1", "--replace")
        code, _, _ = stopped(start(*arguments), how, float(share) * took)
        assert code in (0, 128 + how, -how)  # the last: before Python could be interrupted
        assert run("doctor c.stakes").code == 0
    assert run("tell c.stakes r10 2").code == 0


def test_a_stop_in_the_middle_says_so_and_records_nothing(campaign):
    code = (
        "import signal, os\n"
        "from stakes.campaign import rankings\n"
        "rankings.suggest_rows = lambda *rest: os.kill(os.getpid(), signal.{})\n"
        "from stakes.cli.main import main\n"
        "main(['ask', 'c.stakes', '--json'])"
    )
    before = campaign.read_bytes()
    for name, number in (("SIGINT", 130), ("SIGTERM", 143)):
        done = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (number, "")
        assert campaign.read_bytes() == before
        if number == 130:
            assert "interrupted" in json.loads(done.stderr)["error"]


def test_a_reader_that_goes_away_is_no_error():
    with start("losses") as process:
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert process.stderr.read() == ""
