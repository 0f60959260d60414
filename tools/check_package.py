"""Build the package into a folder and check what is in it: the files of src/stakes and what describes them, no more.

Run: python tools/check_package.py FOLDER. The wheel is built from the source archive, so that one is complete, too.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BESIDE = {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}  # in the source archive
DESCRIBED = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}  # in the wheel


def sources() -> set[str]:
    """The files of the package, as they stand in the checkout."""
    folder = ROOT / "src"
    files = (path for path in (folder / "stakes").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in files}


def in_archive(archive: Path) -> set[str]:
    """The files of a source archive, below its one folder."""
    with tarfile.open(archive) as opened:
        return {member.name.split("/", 1)[1] for member in opened.getmembers() if member.isfile()}


def in_wheel(wheel: Path) -> tuple[set[str], set[str]]:
    """The files of a wheel: the package's, and those that describe it."""
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if not name.endswith("/")}
    about = {name for name in names if name.split("/", 1)[0].endswith(".dist-info")}
    return names - about, {name.split("/", 1)[1] for name in about}


def differences(kind: str, found: set[str], wanted: set[str]) -> list[str]:
    """A line for each file that is too many, or missing."""
    return [f"{kind}: {name} should not be there" for name in sorted(found - wanted)] + [
        f"{kind}: {name} is missing" for name in sorted(wanted - found)
    ]


def main() -> None:
    """Build, compare, and exit with 1 where something differs."""
    folder = Path(sys.argv[1])
    for old in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")):
        old.unlink()
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    package, about = in_wheel(wheel)
    wrong = [
        *differences(archive.name, in_archive(archive), BESIDE | {f"src/{name}" for name in sources()}),
        *differences(wheel.name, package, sources()),
        *differences(wheel.name, about, DESCRIBED),
    ]
    print(*wrong, f"{wheel.name}: {len(package)} files", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
