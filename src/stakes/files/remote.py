"""Files at an address, such as s3://bucket/rows.parquet: those of any file system that fsspec knows, or pyarrow itself.

What the rest of this package asks of a `pathlib.Path` that is read, an address answers, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from stakes.exceptions import StakesError

_LOCAL = ("file://", "local://")


@dataclass(frozen=True, order=True)
class RemotePath:
    """A file or a folder at an address; it is opened by whoever reads it, on whichever machine that is.

    Options, such as keys and endpoints, are those of fsspec's configuration or of the environment.
    """

    address: str

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """How the name ends, with the dot."""
        return Path(self.name).suffix

    def is_dir(self) -> bool:
        """Whether it is a folder, or what stands for one in a store of objects."""
        system, path = self._system()
        return bool(system.isdir(path))

    def exists(self) -> bool:
        """Whether there is anything."""
        system, path = self._system()
        return bool(system.exists(path))

    def iterdir(self) -> Iterator[RemotePath]:
        """What is in the folder."""
        system, path = self._system()
        scheme = self.address.partition("://")[0]
        for found in system.ls(path, detail=False):
            yield RemotePath(f"{scheme}://{str(found).removeprefix(f'{scheme}://')}")

    def open(self) -> Any:
        """A file of bytes; the caller closes it."""
        system, path = self._system()
        return system.open(path, "rb")

    def _system(self) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise StakesError(
                f"{self} is read by fsspec: pip install 'stakes[remote]', and the package of its file system, such as "
                "s3fs for s3://"
            ) from error
        try:
            system, path = url_to_fs(self.address)
        except (ImportError, ValueError) as error:
            raise StakesError(f"{self} cannot be opened by fsspec: {error}") from error
        return system, str(path)


AnyPath = Path | RemotePath


def located(path: str | os.PathLike[str] | RemotePath) -> AnyPath:
    """A path on this machine, or an address: a text with ://."""
    if isinstance(path, RemotePath):
        return path
    text = os.fspath(path)
    for scheme in _LOCAL:
        if text.startswith(scheme):
            return Path(unquote(text.removeprefix(scheme)))
    return RemotePath(text) if "://" in text else Path(text)
