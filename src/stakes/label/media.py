"""Files that cells of a table name: images and plain texts below one folder, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stakes.exceptions import StakesError

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
"""Kinds of images, by the end of the name; SVG is left out, as it can hold script."""
_TEXTS = (".txt",)
_MOST_TEXT = 100_000  # letters that are shown
_MOST_BYTES = 50_000_000  # of an image


@dataclass(frozen=True)
class Media:
    """A folder of files.

    Attributes:
        folder: It, with links followed.
    """

    folder: Path

    @staticmethod
    def of(folder: str) -> Media:
        """The files below a folder.

        Args:
            folder: Its path.

        Returns:
            The files.

        Raises:
            StakesError: If there is no such folder.
        """
        path = Path(folder)
        if not path.is_dir():
            raise StakesError(f"there is no folder {folder}; give the folder that has the images or texts (--media)")
        return Media(path.resolve())

    def file(self, name: str) -> Path | None:
        """The file that a cell names; None where it is none, lies elsewhere, or is of another kind.

        Args:
            name: What is in the cell, a path below the folder.

        Returns:
            Its path, with links followed.
        """
        if not name or "\0" in name or len(name) > 1000:
            return None
        try:
            found = (self.folder / name).resolve()
            inside = found.is_relative_to(self.folder) and found.is_file()
            small = inside and found.stat().st_size <= _MOST_BYTES
        except (OSError, ValueError, RuntimeError):
            return None
        return found if small and found.suffix.lower() in (*IMAGES, *_TEXTS) else None

    def is_image(self, name: str) -> bool:
        """Whether a cell names an image that is there."""
        found = self.file(name)
        return found is not None and found.suffix.lower() in IMAGES

    def text(self, name: str) -> str | None:
        """What a file of text holds, as far as it is shown; None where a cell names none."""
        found = self.file(name)
        if found is None or found.suffix.lower() not in _TEXTS:
            return None
        with found.open("rb") as file:
            held = file.read(4 * _MOST_TEXT).decode("utf-8", "replace")
        return held if len(held) <= _MOST_TEXT else f"{held[:_MOST_TEXT]} ... (the rest is left out)"
