"""Real processes, killed, interrupted, out of disk and side by side: no acknowledged label is ever lost."""

import random
import signal
import subprocess
import sys
import time
from subprocess import PIPE

import pytest

from stakes.campaigns import Journal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are those of POSIX")

HEAD = """
import resource, sys
from stakes.campaigns import CampaignError, Journal
path, arguments = sys.argv[1], sys.argv[2:]
def say(*words):
    print(*words, flush=True)
journal = Journal.open(path)
"""

TELL = (
    HEAD
    + """
for number in range(int(arguments[0]), 100_000, 2):  # two labels in each call: both or neither
    journal.tell_many([(f"{number}", f"label of {number}"), (f"{number + 1}", f"label of {number + 1}")])
    say(number)
"""
)


def start(code, path, *arguments):
    command = [sys.executable, "-c", code, str(path), *map(str, arguments)]
    return subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)


def create(path, count):
    Journal.create(path, [(f"{number}", None) for number in range(count)], {"loss": "log"}).close()


def labelled(path):
    """The rows with labels, in a file that passes every check, and that each has its own label."""
    with Journal.open(path) as journal:
        journal.check()
        labels = {int(row): state.label for row, state in journal.states().items() if state.status == "labelled"}
    assert all(label == f"label of {row}" for row, label in labels.items())
    return sorted(labels)


def ended(process, luck, how):
    """Wait for some acknowledgements and a moment more, send a signal; all that was acknowledged."""
    lines = [process.stdout.readline() for _ in range(luck.randrange(1, 60))]
    time.sleep(luck.uniform(0, 0.002))
    process.send_signal(how)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == -how, errors
    return [int(line) for line in (*lines, *rest.splitlines(keepends=True)) if line.endswith("\n")]


@pytest.mark.parametrize(("how", "calls"), [(signal.SIGKILL, 1000), (signal.SIGTERM, 200), (signal.SIGINT, 200)])
def test_no_acknowledged_label_is_lost_by_a_kill_at_any_moment(path, how, calls):
    luck, acknowledged, unfinished = random.Random(int(how)), set(), 0
    create(path, 4 * calls)
    while len(acknowledged) < calls:
        acknowledged |= set(ended(start(TELL, path, len(labelled(path))), luck, how))
        unfinished += path.with_name(f"{path.name}-journal").exists()
        there = labelled(path)  # opening undoes an unfinished write
        assert there == list(range(len(there)))
        assert len(there) % 2 == 0
        assert acknowledged <= set(there)
    assert unfinished > 0 or how != signal.SIGKILL  # some came in the middle of a write


GO_ON = (
    HEAD
    + """
number, caught = 0, 0
while caught < 40:
    try:
        heard = False
        while True:
            number += 1
            journal.tell_many([(f"{number}", f"label of {number}")])
            journal.release(journal.lease([f"{number + 1}", f"{number + 2}"], 2))
            if not heard:
                heard = True
                say("ready")
    except KeyboardInterrupt:
        caught += 1
"""
)


def test_a_journal_goes_on_after_ctrl_c(path):
    luck = random.Random(0)
    create(path, 100_000)
    process = start(GO_ON, path)
    for _ in range(40):
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        time.sleep(luck.uniform(0, 0.003))
        process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert len(labelled(path)) >= 40


FILL = (
    HEAD
    + """
resource.setrlimit(resource.RLIMIT_FSIZE, (int(arguments[0]), -1))
try:
    for number in range(100_000):
        journal.tell_many([(f"{number}", f"label of {number}")])
        say(number)
except CampaignError as error:
    say(error)
say(len(journal.history()))
try:
    Journal.create(path + " of another name", [(f"{number}", None) for number in range(10_000)], {})
except CampaignError as error:
    say(error)
"""
)


@pytest.mark.parametrize("limit", [lambda size: 512, lambda size: size, lambda size: size + 20_000])
def test_a_full_disk_leaves_the_old_state_readable(path, limit):
    create(path, 5000)
    before = path.read_bytes()
    out, errors = start(FILL, path, limit(len(before))).communicate(timeout=60)
    *told, refusal, count, no_campaign = out.splitlines()
    assert "it may be full or gone; see to it and repeat the call" in refusal, errors
    assert "it may be full or gone" in no_campaign
    assert labelled(path) == [int(number) for number in told] == list(range(int(count)))
    assert told or path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


ASK = (
    HEAD
    + """
rows = [f"{number}" for number in range(400)]
say("ready")
sys.stdin.readline()
while batch := journal.lease(rows, 5, who=arguments[0]):
    say(*batch)
"""
)

TELL_SAME = (
    HEAD
    + """
say("ready")
sys.stdin.readline()
for number in range(300, 500):
    say(*journal.tell_many([(f"{number}", f"label of {number}")], who=arguments[0]).told)
"""
)


def test_two_askers_and_two_tellers_at_once_lose_nothing_and_share_no_row(path):
    create(path, 500)
    processes = [start(code, path, who) for code in (ASK, TELL_SAME) for who in ("ann", "bob")]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    first, second, one, other = (process.communicate(timeout=60)[0].split() for process in processes)
    assert all(process.returncode == 0 for process in processes)
    assert first
    assert second
    assert not set(first) & set(second)
    assert {f"{number}" for number in range(300)} <= {*first, *second}
    assert sorted(map(int, one + other)) == labelled(path) == list(range(300, 500))
    with Journal.open(path) as journal:
        asked = {event.row: event.who for event in journal.history() if event.kind == "ask"}
        assert asked == dict.fromkeys(first, "ann") | dict.fromkeys(second, "bob")
