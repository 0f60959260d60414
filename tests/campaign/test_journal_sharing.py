"""Several processes at once: nothing is lost, and no row is handed out twice."""

from stakes.campaign import Journal
from tests.campaign.journal_processes import create, labelled, start

ASK = """
import time

rows = [f"{number}" for number in range(400)]
say("ready")
sys.stdin.readline()
while batch := journal.lease(rows, 5, who=arguments[0]):
    say(*batch)
    time.sleep(0.01)  # so that the other comes to ask, too, on a busy machine
"""

TELL_SAME = """
say("ready")
sys.stdin.readline()
for number in range(300, 500):
    say(*journal.tell_many([(f"{number}", f"label of {number}")], who=arguments[0]).new)
"""


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
