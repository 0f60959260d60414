"""Command lines that nobody would write, over all commands: odd values, odd files, outputs on inputs.

Exit codes are 0, 1 or 2, no traceback is shown, and no file is changed that the command does not write: not the table,
not what options name, not another campaign, and not a file that is there without --force.
"""

from __future__ import annotations

import functools
import os
import random
import tempfile
from pathlib import Path

import click

from stakes.campaign import Campaign
from stakes.cli.commands import cli
from tests.torture.commands_run import NUMBERS, little_memory, stakes, write_numbers
from tests.torture.harness import Area

_COSTS, _WEIGHTS = "truth,act,wait\na,1,2\nb,1,0\nc,0,1\n", "y,weight\n0,1\n5,2\n"
_FILES = ["t.csv", "t.csv", "c.stakes", "other.stakes", "link.csv", "hard.csv", "costs.csv", "weights.csv", "mine.csv"]
_PLACES = [*_FILES, "new.csv", "new.html", "new.png", "sub/new.csv", "nowhere/x.csv", "", ".", "sub", "c.stakes-wal"]
_PLACES += ["/dev/null", "x" * 300, "./sub/../t.csv", "c.stakes/x", "mine.html", "ä\udcff.csv", "a\nb.csv"]
_NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "3.5",
    "nan",
    "inf",
    "-inf",
    "1e309",
    "1e-320",
    "9" * 25,
    "0x10",
    "1_0",
    "",
    "٣",
    "true",
]
_TEXTS = [
    "",
    " ",
    "-",
    "--",
    "=",
    "a=b",
    "a=",
    ",",
    "a,b,c",
    "y",
    "id",
    "x",
    "z",
    "kind",
    "r1",
    "r99",
    "\x1b[2J",
    "\udcff",
]
_TEXTS += [
    "é" * 200,
    "'",
    '"',
    "%s",
    "{}",
    "\u202e",
    "None",
    "[]",
    "alpha=1",
    "n_estimators=5",
    "max_iter=0",
    "a=[1,2",
    "\n",
]
_LOSSES = ["squared-error", "linex", "pinball", "crps", "log-score", "absolute-error", "threshold-decision", "box-cox"]
_LOSSES += ["log-loss", "brier", "zero-one", "cost-matrix", "itakura-saito", "linx", "stakes.losses:SquaredError"]
_LOSSES += ["os:system", "nowhere:Loss", "stakes.losses:Nothing", ":", "stakes.losses:"]
_MODELS = ["bayesian-ridge", "bayesian-ridge", "random-forest", "nowhere", "sklearn.linear_model:BayesianRidge"]
_MODELS += ["sklearn.linear_model:Ridge", "os:getcwd", "subprocess:Popen", "sklearn.svm:SVC", ":", "a:b:c"]
_KEPT = ["exp:0.1", "exp:nan", "exp:1e300", "exp:", "weights.csv", "costs.csv", "c.stakes", "nowhere.csv"]
_SLOW = {"report", "simulate"}  # which come less often, with few runs
_NAMED = {
    "campaign": ["c.stakes"] * 8 + _FILES + ["nowhere.stakes", "sub", ""],
    "table": ["t.csv"] * 6 + _FILES + ["nowhere.csv", "sub", ""],
    "file": ["filled.csv", "t.csv", *_FILES],
    "output": _PLACES,
    "plot": [*_PLACES, "new.png", "new.svg"],
    "new": ["new.stakes", *_PLACES],
    "store": ["sub", "store", "t.csv", "t.csv/x", ""],
    "loss": _LOSSES,
    "model": _MODELS,
    "weight": _KEPT,
    "cost_matrix": ["costs.csv", "weights.csv", "t.csv", "c.stakes", "nowhere.csv", ""],
    "target": ["y"] * 6 + ["kind", "x", "yy", ""],
    "id_column": ["id", "id", "x", "kind", "y", "nope"],
    "class_weights": ["a=2", "a=2,b=3", "a", "a=-1", "a=nan", "=", "a=1,a=2", ""],
    "rows": ["r1", "r7", "r9", "r99", "", "-5", "\x1b[2J"],
    "row": ["r1", "r7", "r9", "r99", "", "-5"],
    "label": ["1", "2.5", "nan", "", "a", "-3", "1e309", "\udcff"],
    "runs": ["1", "0", "-1", "x"],
    "jobs": ["1", "1", "0", "x"],
    "initial": ["3", "0", "5", "99"],
    "n": ["1", "2", "0", "-1", "5", "x", "9" * 25],
    "folder": ["sub", "t.csv", "nowhere/below", "sub/t.csv", ""],
    "max_cells": ["1", "10", "1000000", "0", "x"],
    "days": ["7", "1e-9", "0", "-1", "nan", "inf", "1e300", "1e-320"],
}


@functools.cache
def campaigns() -> bytes:
    """A campaign on the table of `write_numbers`, with a row asked for and one skipped."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_numbers(folder / "t.csv")
        for argv in (["init", "c.stakes", "t.csv", *NUMBERS], ["ask", "c.stakes"], ["skip", "c.stakes", "r13"]):
            code, output = stakes(folder, *argv)
            assert code == 0, output
        return (folder / "c.stakes").read_bytes()


_SERVERS = ("label", "serve-label-studio")  # go on until they are stopped; they have tests of their own


def prepared(folder: Path) -> None:
    """A folder with a table, campaigns, and files of someone."""
    write_numbers(folder / "t.csv")
    (folder / "c.stakes").write_bytes(campaigns())
    (folder / "other.stakes").write_bytes(campaigns())
    (folder / "costs.csv").write_text(_COSTS)
    (folder / "weights.csv").write_text(_WEIGHTS)
    (folder / "filled.csv").write_text("id,y\nr7,3.5\nr8,\n")
    (folder / "mine.csv").write_text("mine")
    (folder / "mine.html").write_text("<!doctype html><p>mine")
    (folder / "link.csv").symlink_to("t.csv")
    os.link(folder / "t.csv", folder / "hard.csv")
    (folder / "sub").mkdir()


def value_of(parameter: click.Parameter, random_state: random.Random) -> str:
    """A value for an option or an argument: mostly of its kind, sometimes of any."""
    named = _NAMED.get(parameter.name or "")
    if random_state.random() < 0.08:
        return random_state.choice(_TEXTS + _NUMBERS)
    if isinstance(parameter.type, click.Choice) and random_state.random() < 0.9:
        return str(random_state.choice(list(parameter.type.choices)))
    if named is not None:
        return random_state.choice(named)
    number = isinstance(parameter.type, click.types.IntParamType | click.types.FloatParamType)
    return random_state.choice(_NUMBERS if number else _TEXTS)


def command_line(random_state: random.Random) -> list[str]:
    """A command with its arguments and some of its options."""
    commands = [name for name in cli.list_commands(click.Context(cli)) if name not in _SERVERS]
    name = random_state.choice([*commands, "suggest", "ask", "export", "import"])
    if name in _SLOW and random_state.random() < 0.8:
        name = "export"
    if name == "demo":
        return ["demo", random_state.choice(["t.csv", "sub/../t.csv", ".", "c.stakes/x", "/dev/null/x"])]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    argv = [name]
    for parameter in command.params:
        wanted = 0.97 if parameter.required else 0.12
        if isinstance(parameter, click.Option):
            wanted = {"output": 0.6, "force": 0.4, "model": 0.9, "plot": 0.3}.get(parameter.name or "", wanted)
        if parameter.name in ("n", "runs", "initial") and name in _SLOW:
            wanted = 1.0
        if random_state.random() > wanted:
            continue
        values = [value_of(parameter, random_state) for _ in range(max(1, abs(parameter.nargs)))]
        if isinstance(parameter, click.Option):
            flag = [random_state.choice(parameter.opts)]
            argv += flag if parameter.is_flag or parameter.count else [*flag, *values]
        else:
            argv += values
    if "simulate" in argv and "--model" not in argv:
        argv += ["--model", "bayesian-ridge"]
    if random_state.random() < 0.05:
        argv.insert(random_state.randrange(len(argv) + 1), random_state.choice(_TEXTS))
    return argv


def case(number: int, folder: Path) -> None:
    """One command line."""
    random_state = random.Random(number)
    prepared(folder)
    argv = command_line(random_state)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and not path.is_symlink()}
    with little_memory():
        code, output = stakes(folder, *argv)
    for name, data in before.items():
        if may_change(argv, name):
            continue
        assert (folder / name).read_bytes() == data, f"{argv!r} changed {name}; it answered {code}: {output[-800:]}"
    assert not [each for each in folder.rglob("*") if each.name.endswith(".part")]
    with Campaign.open(folder / "c.stakes") as opened:
        opened.journal.check()
        kept = {row for row, state in opened.journal.states().items() if state.label is not None}
    assert kept.issuperset(f"r{i}" for i in range(6)) or "withdraw" in argv


def may_change(argv: list[str], name: str) -> bool:
    """Whether a command may change a file: a campaign that it was given, or what it was forced to overwrite."""
    if name.endswith(".stakes"):
        return name in argv
    forced = "--force" in argv and argv[0] in ("ask", "export", "report", "suggest", "simulate")
    written = [argv[place + 1] for place, word in enumerate(argv[:-1]) if word in ("-o", "--output", "--plot")]
    if not forced or not any(Path(each).name in (name, *_ALIASES.get(name, ())) for each in written):
        return False
    reads_campaign = argv[0] in ("ask", "export", "report")  # and with it its table
    read = [word for word in argv[1:] if word not in written] + ["t.csv"] * reads_campaign
    return not any(Path(each).name in (name, *_ALIASES.get(name, ())) for each in read)


_ALIASES = {"t.csv": ("link.csv", "hard.csv"), "hard.csv": ("t.csv", "link.csv")}

AREA = Area("arguments", case, quick=150, seconds=60.0)
