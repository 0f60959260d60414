"""Real processes, killed, interrupted and out of disk: no acknowledged label is ever lost."""

import random
import signal
import sys
import time

import pytest

from tests.campaign.journal_processes import create, labelled, start

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are those of POSIX")

TELL = """
for number in range(int(arguments[0]), 100_000, 2):  # two labels in each call: both or neither
    journal.tell_many([(f"{number}", f"label of {number}"), (f"{number + 1}", f"label of {number + 1}")])
    say(number)
"""


def ended(process, random_state, how):
    """Wait for some acknowledgements and a moment more, send a signal; all that was acknowledged."""
    with process:  # not `communicate`, which would pass over what `readline` has read ahead
        lines = [process.stdout.readline() for _ in range(random_state.randrange(1, 60))]
        time.sleep(random_state.uniform(0, 0.002))
        process.send_signal(how)
        lines, errors = [*lines, *process.stdout.readlines()], process.stderr.read()
    assert process.returncode == -how, errors
    return [int(line) for line in lines if line.endswith("\n")]


@pytest.mark.parametrize(("how", "calls"), [(signal.SIGKILL, 1000), (signal.SIGTERM, 200), (signal.SIGINT, 200)])
def test_no_acknowledged_label_is_lost_by_a_kill_at_any_moment(path, how, calls):
    random_state, acknowledged, unfinished = random.Random(int(how)), set(), 0
    create(path, 4 * calls)
    while len(acknowledged) < calls:
        acknowledged |= set(ended(start(TELL, path, len(labelled(path))), random_state, how))
        unfinished += path.with_name(f"{path.name}-journal").exists()
        there = labelled(path)  # opening undoes an unfinished write
        assert there == list(range(len(there)))
        assert len(there) % 2 == 0
        assert acknowledged <= set(there)
    assert unfinished > 0 or how != signal.SIGKILL  # some came in the middle of a write


GO_ON = """
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


def test_a_journal_goes_on_after_ctrl_c(path):
    random_state = random.Random(0)
    create(path, 100_000)
    process = start(GO_ON, path)
    for _ in range(40):
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        time.sleep(random_state.uniform(0, 0.003))
        process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 0, errors
    assert len(labelled(path)) >= 40


DIE = """
import os, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(path), -1))
for number in range(100_000):
    journal.tell_many([(f"{number}", f"label of {number}")])
    say(number)
"""


def test_a_process_that_dies_between_the_pages_of_one_write_leaves_a_sound_campaign(path):
    create(path, 5000)
    process = start(DIE, path)
    acknowledged, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGXFSZ
    assert path.with_name(f"{path.name}-journal").exists()
    pages = int.from_bytes(path.read_bytes()[28:32], "big")  # the first page is new and says how many there are to be
    assert pages * 4096 > path.stat().st_size
    assert labelled(path) == [int(number) for number in acknowledged.split()]


FILL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (int(arguments[0]), -1))
try:
    for number in range(100_000):
        journal.tell_many([(f"{number}", f"label of {number}")])
        say(number)
except StakesError as error:
    say(error)
say(len(journal.history()))
try:
    Journal.create(path + " of another name", [(f"{number}", None) for number in range(10_000)], {})
except StakesError as error:
    say(error)
"""


@pytest.mark.parametrize("limit", [lambda size: 512, lambda size: size, lambda size: size + 20_000])
def test_a_full_disk_leaves_the_old_state_readable(path, limit):
    create(path, 5000)
    before = path.read_bytes()
    out, errors = start(FILL, path, limit(len(before))).communicate(timeout=60)
    *acknowledged, refusal, count, no_campaign = out.splitlines()
    assert "it may be full or gone; see to it and repeat the call" in refusal, errors
    assert "it may be full or gone" in no_campaign
    assert labelled(path) == [int(number) for number in acknowledged] == list(range(int(count)))
    assert acknowledged or path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
