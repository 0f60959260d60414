"""Signals at bad moments: where libraries drop an interrupt, the command stops nevertheless."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"
KEPT = "interrupted; what was recorded is kept"
HANGUP = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"  # tests under nohup ignore it, and what they start would too


def python(code, **environment):
    """What a process that runs these lines ends with, and says."""
    done = subprocess.run(
        [sys.executable, "-c", f"import os, signal, time\n{HANGUP}\n{code}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


def ask(suggested, before=""):
    """`stakes ask` in which a model is fitted by these lines instead."""
    return (
        f"def suggested(*_):\n    {suggested}\n"
        "from stakes.campaign import rankings\n"
        "rankings.suggest_rows = suggested\n"
        f"{before}\n"
        "from stakes.cli.main import main\n"
        "main(['ask', 'c.stakes'])"
    )


@pytest.mark.parametrize("arguments", [["losses"], ["losses", "--json"]])
def test_a_module_that_catches_everything_while_it_loads_keeps_no_interrupt(tmp_path, arguments):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        lines = ["import os", "try:", f"    os.kill(os.getpid(), {int(number)})", "except BaseException:", "    pass"]
        (tmp_path / "click.py").write_text("\n".join(lines))
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        found = python(f"from stakes.cli.main import main; main({arguments})", PYTHONPATH=path)
        message = json.dumps({"error": KEPT}) if "--json" in arguments else f"stakes: {KEPT}"
        assert found == (code, "", f"{message}\n")


@pytest.mark.usefixtures("campaign")
def test_an_interrupt_that_is_dropped_where_an_object_ends_is_kept():
    before = f"class Ends:\n    def __del__(self):\n        {INTERRUPT}"
    assert python(ask("Ends(); time.sleep(60)", before)) == (130, "", f"stakes: {KEPT}\n")


@pytest.mark.parametrize("after", ["time.sleep(60)", "return None"])
def test_an_interrupt_that_code_catches_ends_the_command_after_a_moment(campaign, after):
    before = campaign.read_bytes()
    caught = f"try:\n        {INTERRUPT}\n        time.sleep(1)\n    except BaseException:\n        pass\n    {after}"
    begin = time.monotonic()
    code, out, err = python(ask(caught))
    assert (code, out) == (130, "")
    assert "Traceback" not in err
    assert time.monotonic() - begin < 50
    assert after == "return None" or campaign.read_bytes() == before


@pytest.mark.usefixtures("campaign")
def test_a_second_interrupt_does_not_wait_for_the_first_to_be_seen_to():
    twice = f"try:\n        {INTERRUPT}\n    finally:\n        {INTERRUPT}\n        time.sleep(60)"
    assert python(ask(twice)) == (130, "", f"stakes: {KEPT}\n")


@pytest.mark.usefixtures("campaign")
def test_what_a_process_is_started_to_ignore_stays_ignored():
    code = f"signal.signal(signal.SIGINT, signal.SIG_IGN)\n{ask(f'{INTERRUPT}; raise ValueError')}"
    assert python(code)[0] == 3  # the command went on


def test_a_signal_after_the_command_has_ended_changes_nothing():
    code = f"import atexit\natexit.register(lambda: {INTERRUPT})\nfrom stakes.cli.main import main\nmain(['losses'])"
    found, out, err = python(code)
    assert (found, err) == (0, "")
    assert "squared-error" in out


def test_nothing_is_loaded_before_signals_are_heard():
    code = (
        "import sys\nbefore = set(sys.modules)\nimport stakes.cli.main\n"
        "print(*sorted(each for each in set(sys.modules) - before if not each.startswith('_')))"
    )
    loaded = set(python(code)[1].split())
    assert {"stakes", "stakes.cli", "stakes.cli.main"} <= loaded
    assert not loaded & {"typing", "click", "numpy", "json", "threading", "importlib.metadata"}


def test_a_signal_while_python_ends_changes_nothing():
    late = f"class Late:\n    def __del__(self):\n        {INTERRUPT}; time.sleep(0.2)\n"
    code = f"{late}import sys\nsys.late = Late()\nfrom stakes.cli.main import main\nmain(['losses'])"
    found, out, err = python(code)
    assert (found, err) == (0, "")
    assert "squared-error" in out
