"""What all commands share: help at once, JSON everywhere, exit codes, completion."""

import json
import os
import pty
import subprocess
import sys
import time

import click
import pytest

from stakes._utils import compute
from stakes.cli import commands
from stakes.cli import output as waiting
from stakes.exceptions import StakesError
from tests.cli.cli_cases import CLASSES, NUMBERS, number_rows, run, write

HEAVY = ("numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "sqlite3")
CODES = ("0 done", "1 refused", "2 wrong usage", "3 a bug in stakes", "130 interrupted", "143 terminated")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], []])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: sys.stderr.write(str([m for m in {HEAVY} if m in sys.modules])))\n"
        "from stakes.cli.main import main\n"
        f"main({arguments})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if arguments else 2)
    assert done.stderr.endswith("[]")


@pytest.mark.parametrize("command", ["tell", "status", "skip"])
@pytest.mark.usefixtures("campaign")
def test_what_fits_nothing_imports_no_scikit_learn(command):
    rest = {"tell": ["r8", "1"], "status": ["--no-refresh"], "skip": ["r8"]}[command]
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: sys.stderr.write(str([m for m in ('sklearn', 'scipy') if m in sys.modules])))\n"
        f"from stakes.cli.main import main\nmain({[command, 'c.stakes', *rest]})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]")


def test_help_names_every_command_and_the_exit_codes():
    answer = run("--help")
    text = " ".join(answer.out.split())
    assert all(f" {name} " in text for name in commands._COMMANDS)
    assert all(code in text for code in CODES)


@pytest.mark.parametrize("name", [name for name in commands._COMMANDS if name not in ("report", "demo")])
def test_every_command_has_help_and_json(name):
    command = commands.cli.get_command(click.Context(commands.cli), name)
    assert "--json" in [option for parameter in command.params for option in parameter.opts]
    assert "Answer in JSON" in run(name, "--help").out


def test_every_answer_in_json_parses(here):
    commands = [
        f"init c.stakes numbers.csv {NUMBERS} --budget 9",
        f"suggest classes.csv {CLASSES} -n 1",
        "ask c.stakes -n 2 -o a.csv",
        "tell c.stakes r8 1",
        "import c.stakes a.csv",
        "withdraw c.stakes r8",
        "skip c.stakes r8",
        "release c.stakes r8",
        "status c.stakes",
        "export c.stakes -o e.csv",
        "losses",
        "models",
        "doctor c.stakes",
        "completion bash",
        f"simulate many.csv {NUMBERS} --runs 2 -n 2",
    ]
    write(here / "many.csv", number_rows(40, 40))
    for arguments in commands:
        answer = run(arguments, "--json")
        assert answer.code == 0, answer.err
        assert json.loads(answer.out)
        assert answer.err == ""


ERRORS = [
    ("ask nothing.stakes", 1, "there is no campaign"),
    ("suggest nothing.csv --target y --loss linex", 1, "there is no file"),
    ("suggest numbers.csv --target y --loss linex -n 0", 2, "-n"),
    ("suggest numbers.csv --target y --loss linex -n -3", 2, "-n"),
    ("suggest numbers.csv --loss linex", 2, "--target"),
    ("frobnicate", 2, "frobnicate"),
    ("losses linx", 1, "Did you mean 'linex'?"),
    ("ask c.stakes -n 0", 2, "-n"),
    (f"simulate numbers.csv {NUMBERS} -n 400", 1, "the pool must hold n = 400 labels"),
    (f"simulate numbers.csv {NUMBERS} --plot curves.doc", 1, "a picture ends in .png, .svg, .pdf"),
    (f"simulate numbers.csv {NUMBERS} --plot nowhere/curves.png", 1, "there is no folder nowhere"),
]


@pytest.mark.parametrize(("command", "code", "message"), ERRORS)
@pytest.mark.usefixtures("here")
def test_errors_are_json_too(command, code, message):
    answer = run(command, "--json")
    assert (answer.code, answer.out) == (code, "")
    assert message in json.loads(answer.err)["error"]
    assert run(command).code == code


def raising(monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(commands.cli, "main", broken)
    return run("losses --json")


BUGS = [RuntimeError("broken"), ValueError("broken"), TypeError("broken"), KeyError("broken"), ImportError("broken")]


@pytest.mark.parametrize("error", BUGS, ids=lambda error: type(error).__name__)
def test_any_other_exception_is_shown_as_a_bug(monkeypatch, error):
    answer = raising(monkeypatch, error)
    assert answer.code == 3
    message = json.loads(answer.err)["error"]
    assert message.startswith(f"this is a bug in stakes, not in what you did: {type(error).__name__}: ")
    assert "Please report it" in message
    assert "STAKES_DEBUG=1" in message
    assert "nothing was changed" not in message


SYSTEM = [
    (FileNotFoundError(2, "No such file or directory", "gone.csv"), "gone.csv: No such file or directory"),
    (PermissionError(13, "Permission denied", "secret.csv"), "secret.csv: Permission denied"),
    (OSError(28, "No space left on device", "curve.png"), "curve.png: No space left on device"),
    (OSError("odd"), "odd (OSError, from the system)"),
    (MemoryError("Unable to allocate 7 GiB"), "out of memory (Unable to allocate 7 GiB)"),
    (MemoryError(), "out of memory; take fewer rows"),
    (StakesError("n must be positive. Nothing was changed."), "n must be positive. Nothing was changed."),
    (FloatingPointError("scores overflow"), "scores overflow"),
    (ImportError("this needs torch: pip install 'stakes[torch]'"), "pip install 'stakes[torch]'"),
]


@pytest.mark.parametrize(("error", "message"), SYSTEM, ids=lambda each: type(each).__name__)
def test_refusals_and_the_system_are_named_as_such(monkeypatch, error, message):
    answer = raising(monkeypatch, error)
    assert answer.code == 1
    assert message in json.loads(answer.err)["error"]
    assert "bug" not in answer.err


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("broken"), 3), (StakesError("refused"), 1)])
def test_the_traceback_is_shown_where_it_is_asked_for(monkeypatch, error, code):
    assert "Traceback" not in raising(monkeypatch, error).err
    monkeypatch.setenv("STAKES_DEBUG", "1")
    answer = raising(monkeypatch, error)
    assert answer.code == code
    assert "Traceback (most recent call last)" in answer.err
    assert json.loads(answer.err.splitlines()[-1])["error"]


OWN = """
from dataclasses import dataclass
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge
from stakes.losses import SquaredError

class AtFit(BayesianRidge):
    def fit(self, X, y):
        raise KeyError("no such column")

class AtBelief(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def belief(self, pool, contexts):
        raise RuntimeError("not today")

class AtConstruction(BayesianRidge):
    def __init__(self):
        raise OverflowError("too much")

@dataclass(frozen=True)
class Own(SquaredError):
    def statistics(self, *rest):
        raise ZeroDivisionError("by nothing")
"""
RAISED = [
    ("squared-error --model own_classes:AtFit", "your model own_classes:AtFit raised KeyError: 'no such column'"),
    ("squared-error --model own_classes:AtBelief", "your model own_classes:AtBelief raised RuntimeError: not today"),
    ("squared-error --model own_classes:AtConstruction", "own_classes:AtConstruction raised OverflowError: too much"),
    ("own_classes:Own --model bayesian-ridge", "your loss own_classes:Own raised ZeroDivisionError: by nothing"),
    ("squared-error --model broken_module:Model", "your module broken_module raised NameError: name 'undefined'"),
]
COMMANDS = ["suggest numbers.csv", "simulate many.csv --runs 2 -n 2", "init c.stakes numbers.csv"]


@pytest.mark.parametrize(("loss", "message"), RAISED)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_class_of_your_own_raises_is_named_as_that(here, monkeypatch, loss, message, command):
    (here / "own_classes.py").write_text(OWN)
    (here / "broken_module.py").write_text("undefined\n")
    write(here / "many.csv", number_rows(40, 40))
    monkeypatch.syspath_prepend(here)
    monkeypatch.delitem(sys.modules, "own_classes", raising=False)
    answer = run(command, "--target y --id id --json --loss", loss)
    if answer.code == 0:
        assert command.startswith("init")  # which fits nothing
        answer = run("ask c.stakes --json")
    assert answer.code == 1
    assert message in json.loads(answer.err)["error"]


@pytest.mark.usefixtures("campaign")
def test_an_id_after_two_dashes_is_no_wish_for_json():
    assert run(["tell", "c.stakes", "--", "--json", "1"]).err.startswith("stakes: the campaign has no row '--json'")


def test_the_catalogues_name_everything():
    assert "box-cox  (positive target)" in run("losses").out
    assert run("losses pinball").out.splitlines()[0] == "pinball  (real target)"
    assert "log-gaussian-process  (numbers)" in run("models").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_call_the_command(shell):
    assert "_STAKES_COMPLETE" in run("completion", shell).out


def test_completion_completes_commands():
    environment = {**os.environ, "_STAKES_COMPLETE": "bash_complete", "COMP_WORDS": "stakes su", "COMP_CWORD": "1"}
    code = "from stakes.cli.main import main; main([])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,suggest"]


def test_progress_is_shown_on_a_terminal_after_a_second(monkeypatch):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr(waiting, "_QUIET", 0.01)
        monkeypatch.setattr(waiting, "_TICK", 0.01)
        with waiting.waiting("reading") as progress:
            progress("scoring rows", 0.25)
            time.sleep(0.1)
            monkeypatch.setattr(compute, "_compiling", ["a loop"])
            time.sleep(0.1)
        shown = ""
        while not shown.endswith("\r"):  # a terminal may give what was written in parts
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
    assert "[#####...............]  25% scoring rows, " in shown
    assert "25% scoring rows (compiling loops, once after the installation), " in shown
    assert shown.endswith("\r")


@pytest.mark.usefixtures("here")
def test_no_progress_where_no_terminal_looks_on():
    assert run(f"suggest numbers.csv {NUMBERS}").err == ""


def test_an_extra_that_is_not_there_is_named_and_no_more(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = run("demo elsewhere")
    assert answer.code == 1
    assert answer.err == "stakes: a report has pictures, which need matplotlib: pip install 'stakes[plot]'\n"
    assert not (here / "elsewhere").exists()
