"""Finished runs on disk: one file for each table, belief, strategy and loss that drives it.

Runs are added as they are done, whoever does them (`loop` on the processor, or another engine that makes a `Record` of
the same splits), so that a study that was stopped goes on where it was. Every file is written whole under another name
and then renamed, so none is ever half there.

Sizes: R runs, B labels bought.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.labels_saved.tables import Host
from stakes.exceptions import StakesError


@dataclass(frozen=True, order=True)
class Key:
    """Whose runs they are."""

    table: str
    belief: str
    strategy: str
    """"random", "loss" or the name of a rival"""
    driver: str = ""
    """the loss that labels are bought for, where the strategy knows one"""

    def __str__(self) -> str:
        """The strategy with its loss."""
        return f"{self.strategy} ({self.driver})" if self.driver else self.strategy

    @property
    def path(self) -> Path:
        """The file, in the folder of the store."""
        parts = (self.table, self.belief, f"{self.strategy} by {self.driver}" if self.driver else self.strategy)
        folder, below, name = map(_file_name, parts)
        return Path(folder) / below / f"{name}.npz"


@dataclass(frozen=True, eq=False)
class Record:
    """What came of R runs."""

    runs: Host
    """[R]: their numbers, rising"""
    losses: Mapping[str, Host]
    """by name, [R, B + 1]: the loss on test rows after 0 .. B labels bought"""
    acquired: Host
    """[R, B]: positions of the rows bought, in their order"""
    counted: Host
    """[2]: after how many labels bought densities are taken"""
    log_density: Host
    """[R, 2]: the mean on test rows"""
    joint_log_density: Host
    """[R, 2]: the mean over test rows of that of each and its nearest other one"""
    promised: Host
    """[R, B]: the reduction of the driving loss that each label was bought for, in its units; NaN where none"""
    seconds: Host
    """[R]"""

    def take(self, places: Host) -> Record:
        """The runs at some places."""
        picked = {name: getattr(self, name)[places] for name in _BY_RUN}
        return replace(self, losses={name: values[places] for name, values in self.losses.items()}, **picked)


_BY_RUN = ("runs", "acquired", "log_density", "joint_log_density", "promised", "seconds")


def joined(records: Iterable[Record]) -> Record:
    """The runs of all records, rising; of a run that is there twice, the first."""
    parts = list(records)
    first = parts[0]
    if len({(frozenset(each.losses), each.acquired.shape[1], tuple(each.counted)) for each in parts}) > 1:
        raise StakesError("runs can be put together only if they measured the same losses and bought as many labels")
    arrays = {name: np.concatenate([getattr(each, name) for each in parts]) for name in _BY_RUN}
    losses = {name: np.concatenate([each.losses[name] for each in parts]) for name in first.losses}
    places = np.unique(arrays["runs"], return_index=True)[1]
    return replace(first, losses=losses, **arrays).take(places)


@dataclass(frozen=True)
class Store:
    """A folder of finished runs."""

    folder: Path

    def load(self, key: Key, settings: Mapping[str, Any] | None = None) -> Record | None:
        """The runs that are there, or None; refused if they were made by other settings than those given."""
        path = self.folder / key.path
        return _read(path, settings)[1] if path.is_file() else None

    def records(self, table: str, settings: Mapping[str, Any] | None = None) -> dict[Key, Record]:
        """All that is there of a table, whatever the beliefs and strategies; refused as by `load`."""
        paths = sorted((self.folder / _file_name(table)).glob("*/*.npz"))
        return dict(_read(path, settings) for path in paths)

    def add(self, key: Key, record: Record, settings: Mapping[str, Any]) -> Record:
        """Keep more runs beside those that are there; all of them."""
        there = self.load(key, settings)
        whole = record if there is None else joined([there, record])
        arrays: dict[str, Any] = {name: getattr(whole, name) for name in (*_BY_RUN, "counted")}
        arrays |= {f"loss {name}": values for name, values in whole.losses.items()}
        arrays |= {"settings": json.dumps(_plain(settings)), "key": json.dumps(asdict(key))}
        path = self.folder / key.path
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.tmp")
        with partial.open("wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(partial, path)
        return whole


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")


def _read(path: Path, settings: Mapping[str, Any] | None) -> tuple[Key, Record]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            key, made_by = Key(**json.loads(str(arrays["key"]))), json.loads(str(arrays["settings"]))
            losses = {name.removeprefix("loss "): arrays[name] for name in arrays.files if name.startswith("loss ")}
            record = Record(losses=losses, **{name: arrays[name] for name in (*_BY_RUN, "counted")})
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise StakesError(f"{path} holds no finished runs ({error}). Delete it: they will be run again.") from error
    if settings is not None and made_by != _plain(settings):
        raise StakesError(
            f"{path} has runs made by other settings, {made_by}; wanted are {_plain(settings)}. Take another folder, "
            "or delete the file: its runs will be run again."
        )
    return key, record


def _plain(settings: Mapping[str, Any]) -> Any:
    """As JSON gives it back."""
    return json.loads(json.dumps(settings, sort_keys=True))
