"""The recorder of terminals: what it types, and what it takes for a prompt."""

import shutil

import pytest

from tools.record import Terminal, played, steps

BLOCK = """$ read -p "Name [nobody]: " name && echo "hello $name"
Name [someone]: Ada
what was shown before
"""


def test_what_is_typed_in_a_block():
    (_, command), answer = steps(BLOCK)
    assert command.startswith("read -p")
    assert answer == ("Name [someone]:", "Ada")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_block_is_played_anew(tmp_path, capsys):
    """What a question proposes may have changed since; the rest of the block is replaced."""
    assert played(BLOCK, tmp_path, tmp_path) == "\n".join(
        [BLOCK.splitlines()[0], "Name [nobody]: Ada", "hello Ada", ""]
    )
    assert " s\n" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_prompt_after_which_something_was_typed_is_none(tmp_path):
    terminal = Terminal(tmp_path, tmp_path)
    try:
        terminal.wait_for("$ ")
        terminal.type("sleep 1; echo done")
        terminal.wait_for("$ ")
        assert terminal.shown().split("\n")[:2] == ["$ sleep 1; echo done", "done"]
    finally:
        terminal.close()
