"""Finished runs on disk, so that a simulation that was killed goes on where it stopped.

A folder holds `settings.json`, one file for each run of each strategy, and in `splits` the rows of each run's parts.
Every file is written whole under another name and then renamed, so none is ever half there.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from stakes.simulation.loop import Trace
from stakes.simulation.trial import PARTS, Trial

_SETTINGS = "settings.json"


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
                return Trace(**{field.name: arrays[field.name] for field in dataclasses.fields(Trace)})
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{path} is not a finished run ({error}). Delete it: it will be run again.") from error

    def save(self, trace: Trace, strategy: int, run: int) -> None:
        """Keep a finished run."""
        arrays = {field.name: getattr(trace, field.name) for field in dataclasses.fields(trace)}
        _write(self._path(strategy, run), lambda file: np.savez(file, **arrays))

    def keep_split(self, parts: Trial, run: int) -> None:
        """Write down, once, which rows a run starts from, may buy, has for contexts and is judged by."""
        path = self.folder / "splits" / f"run{run:05d}.json"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            rows = {name: getattr(parts, name).tolist() for name in PARTS}
            _write(path, lambda file: file.write(json.dumps(rows).encode()))

    def _path(self, strategy: int, run: int) -> Path:
        return self.folder / f"run{run:05d}-strategy{strategy:02d}.npz"


def open_store(folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> Store:
    """The store in `folder`, made if there is none; refused if it was made with other settings, data or versions."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if not (path / _SETTINGS).exists():
        if stray := sorted(path.glob("run*.npz")):
            raise ValueError(f"{path} holds runs such as {stray[0].name} but no {_SETTINGS}; give another folder")
        _write(path / _SETTINGS, lambda file: file.write(json.dumps(dict(settings), indent=1).encode()))
    kept = json.loads((path / _SETTINGS).read_text())
    now = json.loads(json.dumps(dict(settings)))
    if differing := [name for name in {**kept, **now} if kept.get(name) != now.get(name)]:
        lines = "".join(f"\n  {name}: {kept.get(name)} in the store, {now.get(name)} now" for name in differing)
        raise ValueError(
            f"the store {path} belongs to another simulation; what differs:{lines}\nGive another folder, or the "
            "settings and data of the store."
        )
    return Store(path)


def _write(path: Path, fill: Callable[[BinaryIO], Any]) -> None:
    """Fill a file beside `path`, then put it in its place at once."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
