"""Install what was built, in an empty environment each, and do a newcomer's first minutes with it.

Run: python tools/try_package.py FOLDER, with the wheel and the source archive in it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIRST_MINUTES = [
    ["python", "-m", "stakes", "--version"],
    ["stakes", "--version"],
    ["stakes", "sample", "prices"],
    ["stakes", "suggest", "prices.csv", "--id", "flat", "--target", "price", "--loss", "pinball", "--tau", "0.2"],
    ["stakes", "doctor"],
]


def version() -> str:
    """The version that the source says."""
    found = re.search(r'^__version__ = "(.+)"', (ROOT / "src/stakes/__init__.py").read_text(encoding="utf-8"), re.M)
    assert found is not None
    return found[1]


def try_archive(archive: Path) -> None:
    """Install an archive and run the commands; raises where one of them fails or tells another version."""
    with tempfile.TemporaryDirectory() as folder:
        environment, empty = Path(folder, "env"), Path(folder, "empty")
        empty.mkdir()
        venv.create(environment, with_pip=True)
        programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([programs / "python", "-m", "pip", "install", "--quiet", archive.resolve()], check=True)
        for name, *arguments in FIRST_MINUTES:
            done = subprocess.run([programs / name, *arguments], cwd=empty, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{archive.name}: {name} {' '.join(arguments)} failed\n{done.stdout}{done.stderr}")
            if arguments[-1] == "--version" and version() not in done.stdout:
                raise SystemExit(f"{archive.name}: {done.stdout.strip()} is not {version()}")
    print(f"{archive.name}: installs and works in an empty environment")


def main() -> None:
    """Try the wheel and the source archive of a folder."""
    folder = Path(sys.argv[1])
    for archive in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        try_archive(archive)


if __name__ == "__main__":
    main()
