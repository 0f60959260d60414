"""What a command line did not say: asked at a terminal, proposed elsewhere."""

import csv
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time

import click
import pytest
from click.testing import CliRunner

import stakes.cli.questions
from stakes.cli.commands import cli
from stakes.cli.questions import Incomplete
from tests.cli.cli_cases import digest, run


@pytest.fixture
def graded(here):
    """24 batches, of which 12 have a grade, 4 of them bad."""
    with (here / "batches.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["sample", "catalyst", "heat", "grade"])
        for i in range(24):
            grade = ("bad" if i % 3 == 2 else "good") if i < 12 else ""
            lines.writerow([f"B{i:02d}", "Ni" if i % 2 else "Pd", 150 + 7 * (i % 9) + 20 * (i % 3 == 2), grade])
    return here / "batches.csv"


@pytest.fixture
def asked(monkeypatch):
    """Run a command as if somebody sat there and typed these lines."""
    monkeypatch.setattr(stakes.cli.questions, "at_terminal", lambda: True)

    def made(command, *typed):
        return CliRunner().invoke(cli, shlex.split(command), input="".join(f"{line}\n" for line in typed))

    return made


def command_in(text):
    """The command that says the same without a question, as words."""
    return shlex.split(re.search(r"(?:Run|without questions):\n  (stakes .*)", text)[1])


def test_without_a_terminal_the_command_to_run_is_printed_and_nothing_is_done(graded, here):
    before = digest(graded)
    answer = run("suggest batches.csv -n 2")
    assert (answer.code, answer.out) == (2, "")
    text = " ".join(answer.err.split())
    assert "The target would be 'grade' (good, bad), as 12 of 24 rows have a value" in text
    for part in ("zero-one", "cost-matrix", "log-loss", "Example: 'bad' answered by 'good' costs 5", "by 'sample'"):
        assert part in text
    command = command_in(answer.err)
    assert command == shlex.split("stakes suggest batches.csv --target grade --id sample --loss zero-one -n 2")
    assert len(run(command[1:], "--json").json["rows"]) == 2  # and it is one that runs
    assert digest(graded) == before
    assert sorted(each.name for each in here.iterdir()) == ["batches.csv", "classes.csv", "numbers.csv"]


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ("suggest numbers.csv --loss linex", "suggest numbers.csv --target y --id id --loss linex"),
        ("suggest numbers.csv --target y", "suggest numbers.csv --target y --id id --loss squared-error"),
        ("init c.stakes classes.csv --id id", "init c.stakes classes.csv --target kind --id id --loss zero-one"),
        ("simulate numbers.csv --runs 2", "simulate numbers.csv --target y --id id --loss squared-error --runs 2"),
        (
            "suggest numbers.csv --ignore z --ignore x --label-cost 0.5",
            "suggest numbers.csv --target y --id id --ignore z --ignore x --loss squared-error --label-cost 0.5",
        ),
    ],
)
@pytest.mark.usefixtures("here")
def test_the_answers_are_in_the_command(command, flags):
    answer = run(command)
    assert answer.code == 2
    assert command_in(answer.err) == ["stakes", *flags.split()]


@pytest.mark.usefixtures("here")
def test_programs_are_asked_nothing(monkeypatch):
    monkeypatch.setattr(stakes.cli.questions, "at_terminal", lambda: True)
    answer = run("suggest numbers.csv --json")
    assert (answer.code, answer.out) == (2, "")
    assert '{"error": "' in answer.err


def test_a_table_without_gaps_says_so(here):
    (here / "full.csv").write_text("x,y\n1,2.5\n2,3.5\n")
    assert "No cell of it is empty" in " ".join(run("suggest full.csv").err.split())
    assert "No cell of it is empty" not in run("simulate full.csv").err


@pytest.mark.usefixtures("here")
def test_a_file_or_a_column_that_is_not_there():
    assert run("suggest nothing.csv").code == 1
    answer = run("suggest numbers.csv --target yy")
    assert (answer.code, "Did you mean 'y'?" in answer.err) == (1, True)


@pytest.mark.usefixtures("graded")
def test_enter_takes_what_is_proposed(asked):
    answer = asked("suggest batches.csv -n 2", "", "", "")
    assert answer.exit_code == 0, answer.output
    for flag in ("  --target grade", "  --loss zero-one", "  --id sample"):
        assert f"{flag}\n" in answer.output
    wanted = shlex.split("stakes suggest batches.csv --target grade --id sample --loss zero-one -n 2")
    assert command_in(answer.output) == wanted
    again = run(command_in(answer.output)[1:])
    assert again.out in answer.output


@pytest.mark.usefixtures("graded")
def test_costs_of_two_classes_are_asked_for_one_by_one(asked):
    answer = asked("suggest batches.csv -n 2", "grade", "2", "much", "20", "2", "-")
    assert answer.exit_code == 0, answer.output
    assert "Cost of 'bad' answered by 'good' [5]" in answer.output
    assert "give a number, with a point before decimals; got 'much'" in answer.output
    assert "  --costs 'bad>good=20,good>bad=2'" in answer.output
    command = "stakes suggest batches.csv --target grade --loss cost-matrix --costs 'bad>good=20,good>bad=2' -n 2"
    assert command_in(answer.output) == shlex.split(command)


@pytest.mark.usefixtures("here")
def test_more_classes_are_asked_for_in_a_line(asked):
    answer = asked("suggest classes.csv -n 1", "", "cost-matrix", "bus>van", "bus>van=9", "")
    assert answer.exit_code == 0, answer.output
    assert "costs are TRUTH>ANSWER=COST" in answer.output
    assert "  --costs 'bus>van=9'" in answer.output
    assert "Mistakes that --costs leaves out cost 1: " in answer.output


@pytest.mark.usefixtures("here")
def test_numbers_too_low_and_too_high(asked):
    answer = asked("suggest numbers.csv -n 1", "y", "3", "-1", "4", "")
    assert answer.exit_code == 0, answer.output
    assert "give a number above 0; got -1" in answer.output
    command = "stakes suggest numbers.csv --target y --id id --loss pinball --tau 0.8 -n 1"
    assert command_in(answer.output) == command.split()


@pytest.mark.usefixtures("here")
def test_a_limit_above_which_something_is_done(asked):
    answer = asked("suggest numbers.csv -n 1 --id id", "", "threshold-decision", "2.5", "", "")
    assert answer.exit_code == 0, answer.output
    options = "--loss threshold-decision --threshold 2.5 --miss 5 --false-alarm 1 -n 1"
    assert command_in(answer.output) == f"stakes suggest numbers.csv --target y --id id {options}".split()


@pytest.mark.usefixtures("here")
def test_a_slip_is_asked_again(asked):
    answer = asked("suggest numbers.csv -n 1", "9", "yy", "y", "sqared-error", "1", "")
    assert answer.exit_code == 0, answer.output
    for part in ("give a number from 1 to 1, or a name", "Did you mean 'y'?", "Did you mean 'squared-error'?"):
        assert part in answer.output


@pytest.mark.usefixtures("here")
def test_a_campaign_is_begun_by_questions_too(asked):
    answer = asked("init c.stakes numbers.csv", "", "", "")
    assert answer.exit_code == 0, answer.output
    command = "stakes init c.stakes numbers.csv --target y --id id --loss squared-error"
    assert command_in(answer.output) == command.split()
    assert run("status c.stakes --no-refresh").code == 0


@pytest.mark.usefixtures("here")
def test_an_input_that_ends_is_no_answer(asked):
    answer = asked("suggest numbers.csv", "y")
    assert isinstance(answer.exception, ValueError)
    assert "the input ended before all questions were answered" in str(answer.exception)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        ("", "say what to predict, and what errors cost."),
        ("--loss squared-error", "say what to predict."),
        ("--target y", "say what errors cost."),
    ],
)
def test_what_is_missing_is_reported_and_nothing_else(flags, missing):
    answer = run(f"suggest numbers.csv {flags}")
    assert answer.code == 2
    assert f"Nothing was done: {missing}" in " ".join(answer.err.split())


def test_the_message_is_shown_as_it_is():
    assert issubclass(Incomplete, click.ClickException)
    assert Incomplete("x").exit_code == 2


def _as_at_a_terminal():
    """Ctrl-C reaches the command, also where the tests run in the background, which ignores it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A command at a real pseudo-terminal."""

    def __init__(self, folder, *arguments):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stakes", *arguments],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_as_at_a_terminal,
        )
        os.close(slave)
        self.shown = ""

    def until(self, text, seconds=60.0):
        """Read on until these words are shown, or the end."""
        end, begin = time.monotonic() + seconds, len(self.shown)
        while text not in self.shown[begin:]:
            assert time.monotonic() < end, f"{text!r} is not shown:\n{self.shown}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    data = os.read(self.master, 4096).decode()
                except OSError:  # the other end is closed
                    data = ""
                if not data:
                    assert not text, f"{text!r} is not shown:\n{self.shown}"
                    return
                self.shown += data

    def type(self, line):
        os.write(self.master, f"{line}\n".encode())

    def interrupt(self, seconds=60.0):
        """Press Ctrl-C until the command has ended: Python misses one between the question and the wait for it."""
        end = time.monotonic() + seconds
        while True:
            os.write(self.master, b"\x03")
            try:
                return self.process.wait(1.0)
            except subprocess.TimeoutExpired:
                assert time.monotonic() < end, self.shown

    def end(self):
        self.until("Next: ", 120)
        code = self.process.wait(60)
        self.until_closed()
        return code

    def until_closed(self):
        while select.select([self.master], [], [], 0.5)[0]:
            try:
                data = os.read(self.master, 4096).decode()
            except OSError:
                break
            if not data:
                break
            self.shown += data
        os.close(self.master)


def test_a_person_at_a_real_terminal(graded):
    terminal = Terminal(graded.parent, "suggest", "batches.csv", "-n", "2")
    terminal.until("Column [grade]:")
    terminal.type("")
    terminal.until("Loss [zero-one]:")
    terminal.type("2")
    terminal.until("answered by 'good' [5]:")
    terminal.type("")
    terminal.until("answered by 'bad' [1]:")
    terminal.type("")
    terminal.until("Column [sample]:")
    terminal.type("")
    assert terminal.end() == 0
    command = "suggest batches.csv --target grade --id sample --loss cost-matrix --costs 'bad>good=5,good>bad=1' -n 2"
    shown = terminal.shown.replace("\r\n", "\n")
    assert command_in(shown) == shlex.split(f"stakes {command}")
    assert not re.search(r"\x1b", shown)


def test_ctrl_c_at_a_question_ends_it(graded):
    terminal = Terminal(graded.parent, "suggest", "batches.csv")
    terminal.until("Column [grade]:")
    assert terminal.interrupt() == 130
    terminal.until_closed()
    assert "interrupted" in terminal.shown
