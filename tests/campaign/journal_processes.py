"""Other processes that use a campaign, and what they left of it."""

import subprocess
import sys
from subprocess import PIPE

from stakes.campaign import Journal

HEAD = """
import sys
from stakes.campaign import Journal
from stakes.exceptions import StakesError
path, arguments = sys.argv[1], sys.argv[2:]
def say(*words):
    print(*words, flush=True)
journal = Journal.open(path)
"""


def start(code, path, *arguments):
    command = [sys.executable, "-c", HEAD + code, str(path), *map(str, arguments)]
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
