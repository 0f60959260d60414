"""What the two commands of a newcomer set up, as make says before it does anything."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _would_install(target: str, folder: Path) -> list[str]:
    """What pip is given, line by line, in a checkout where nothing was set up; what several parts want is said once."""
    command = ["make", "--dry-run", target, f"VENV={folder / 'venv'}", f"BASE={folder / 'base'}"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = [
        line.split("pip install --quiet ")[1]
        for line in printed.splitlines()
        if f"{folder}/venv/bin/python -m pip" in line
    ]
    return list(dict.fromkeys(lines))


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_run_installs_the_package_and_its_pictures_alone(tmp_path):
    """Torch and the tools of developers are gigabytes that whoever wants to see the demo does not need."""
    assert _would_install("run", tmp_path) == ['--upgrade "pip>=25.1"', '--editable ".[plot]"']


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", ["setup", "test", "check", "reproduce"])
def test_all_else_adds_the_tools_of_developers(tmp_path, target):
    (*first, last) = _would_install(target, tmp_path)
    assert first == _would_install("run", tmp_path)
    assert last == '--editable ".[plot]" --group dev'
