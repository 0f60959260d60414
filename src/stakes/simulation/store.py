"""Finished runs on disk, so that a simulation that was killed continues where it stopped.

A folder holds `settings.json`, one file for each run of each strategy, and in `splits` the rows of each run's parts.
Every file is written whole under another name and then renamed, so none is ever half there. A store recognises its own
simulation by the settings: descriptions of model, loss, strategies and metrics, hashes of the data, versions.

Sizes: B labels acquired, Q metrics.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import platform
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import joblib
import numpy as np

from stakes._utils.tables import Host, column_at, column_names, n_columns
from stakes.exceptions import StakesError
from stakes.files.write import output_file
from stakes.simulation.trial import PARTS, Trial

_SETTINGS = "settings.json"
_LIBRARIES = ("stakes", "numpy", "scipy", "scikit-learn", "joblib")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, eq=False)
class Trace:
    """The result of one run of one strategy."""

    losses: Host
    """[Q, B + 1]: the metrics on test rows after 0 .. B labels"""
    acquired: Host
    """[B]: positions of rows, in the order in which they were acquired"""
    fit_seconds: Host
    """[B + 1]: of fits, also those that other strategies shared"""
    score_seconds: Host
    """[B]: of the belief about the pool, and the scores"""
    promised: Host
    """[B]: by how much each label was expected to lower the loss that chose it; NaN where no loss did"""


TRACE_FIELDS = tuple(field.name for field in dataclasses.fields(Trace))


@dataclass(frozen=True)
class Store:
    """A folder of finished runs."""

    folder: Path

    def load(self, strategy: int, run: int) -> Trace | None:
        """A finished run, or None."""
        path = self._path(strategy, run)
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return Trace(**{name: arrays[name] for name in TRACE_FIELDS})
        except (OSError, ValueError, KeyError) as error:
            raise StakesError(f"{path} is not a finished run ({error}). Delete it: it will be run again.") from error

    def save(self, trace: Trace, strategy: int, run: int) -> None:
        """Keep a finished run."""
        arrays = {name: getattr(trace, name) for name in TRACE_FIELDS}
        _write(self._path(strategy, run), lambda file: np.savez(file, **arrays))

    def save_split(self, trial: Trial, run: int) -> None:
        """Keep, once, which rows are the initial ones, the pool, the contexts and the test rows of a run."""
        path = self.folder / "splits" / f"run{run:05d}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            rows = {name: getattr(trial, name).tolist() for name in PARTS}
            _write(path, lambda file: file.write(json.dumps(rows).encode()))

    def _path(self, strategy: int, run: int) -> Path:
        return self.folder / f"run{run:05d}-strategy{strategy:02d}.npz"


def open_store(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> Store:
    """The store in `folder`, made if there is none; refused if it was made with other settings, data or versions."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StakesError(
            f"the store {path} cannot be made: {why}. Give a folder, new or of this simulation."
        ) from error
    if not (path / _SETTINGS).exists():
        if stray := sorted(path.glob("run*.npz")):
            raise StakesError(f"{path} holds runs such as {stray[0].name} but no {_SETTINGS}; give another folder")
        _write(path / _SETTINGS, lambda file: file.write(json.dumps(dict(settings), indent=1).encode()))
    kept = _settings(path / _SETTINGS)
    now = json.loads(json.dumps(dict(settings)))
    if differing := [name for name in {**kept, **now} if kept.get(name) != now.get(name)]:
        lines = "".join(f"\n  {name}: {kept.get(name)} in the store, {now.get(name)} now" for name in differing)
        raise StakesError(
            f"the store {path} belongs to another simulation; what differs:{lines}\nGive another folder, or the "
            "settings and data of the store."
        )
    return Store(path)


def _settings(path: Path) -> dict[str, Any]:
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(kept, dict):
            raise ValueError(f"it holds {kept!r}")
    except (OSError, ValueError) as error:
        raise StakesError(f"{path} holds no settings of a simulation ({error}). Give another folder.") from error
    return kept


def _write(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Fill a file of the store, whole or not at all; a run that another process finished meanwhile is the same."""
    with output_file(path, overwrite=True) as file:
        fill(file)


def description(value: Any) -> str:
    """`value` as text without an address in memory: functions by their code and what they close over.

    What a function reads from its module is not seen, nor the code of classes: they go by their name.
    """
    if isinstance(value, types.FunctionType):
        return f"{value.__qualname__}#{_code_hash(value)}"
    if isinstance(value, types.MethodType):
        return f"{description(value.__func__)} of {description(value.__self__)}"
    if isinstance(value, functools.partial):
        return f"partial {description(value.func)} with {description((value.args, value.keywords))}"
    if isinstance(value, types.CodeType):
        return f"{value.co_code.hex()} {value.co_names} {description(value.co_consts)}"
    if isinstance(value, np.ndarray):
        return f"array#{joblib.hash(np.ascontiguousarray(value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _constructor(value, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if callable(getattr(value, "get_params", None)) and not isinstance(value, type):
        return _constructor(value, value.get_params(deep=False))
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(description, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(description, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{description(key)}: {description(each)}' for key, each in value.items())}}}"
    return _ADDRESS.sub("", repr(value))


def _constructor(value: Any, parameters: dict[str, Any]) -> str:
    """The call that would make `value`."""
    given = ", ".join(f"{name}={description(parameters[name])}" for name in sorted(parameters))
    return f"{type(value).__name__}({given})"


def _code_hash(function: types.FunctionType) -> str:
    """Of the code, the defaults and the values closed over."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    parts = (description(function.__code__), description(function.__defaults__), description(function.__kwdefaults__))
    return hashlib.sha256("\n".join((*parts, description(cells))).encode()).hexdigest()[:16]


def data_hash(values: Any) -> str:
    """The same for equal data of one kind: frames go by their columns, however they lie in memory."""
    if column_names(values) is not None:
        values = column_names(values), [column_at(values, position) for position in range(n_columns(values))]
    return str(joblib.hash(np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values))


def versions() -> dict[str, str]:
    """Of Python and of the libraries that numbers come from."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
