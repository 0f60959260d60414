"""Tables to try things on: two of real patients that scikit-learn ships, and one of prices that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stakes.files import TableError, write_csv

Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Sample:
    """A table by name."""

    name: str
    what: str
    id: str
    target: str
    labelled: int
    """Rows whose label is in the table; the others are in the answers."""
    columns: Callable[[], Columns]


def write_sample(name: str, folder: str | Path = ".") -> tuple[Path, Path]:
    """Write NAME.csv, most of its labels left empty, and NAME-answers.csv, the same with all; neither may be there."""
    if name not in SAMPLES:
        raise TableError(f"there is no sample {name!r}; there are {', '.join(SAMPLES)}")
    sample, where = SAMPLES[name], Path(folder)
    table, answers = where / f"{name}.csv", where / f"{name}-answers.csv"
    for path in (table, answers):
        if path.exists():
            raise TableError(f"{path} is there already, and is left as it is; give another folder")
    columns = sample.columns()
    labels = columns[sample.target]
    shown = {**columns, sample.target: labels[: sample.labelled] + [None] * (len(labels) - sample.labelled)}
    write_csv(table, list(shown), zip(*shown.values(), strict=True))
    write_csv(answers, list(columns), zip(*columns.values(), strict=True))
    return table, answers


def _prices() -> Columns:
    """300 flats, their prices in thousands; made up, with more noise where prices are high."""
    rng = np.random.default_rng(7)
    size = 300
    area = rng.gamma(9.0, 8.0, size) + 18.0
    year = rng.integers(1900, 2024, size)
    district = rng.choice(["harbour", "hill", "market", "station"], size, p=[0.15, 0.2, 0.35, 0.3])
    floor, balcony = rng.integers(0, 8, size), rng.random(size) < 0.4
    level = {"harbour": 0.35, "hill": 0.2, "market": 0.0, "station": -0.15}
    quality = np.array([level[each] for each in district]) + 0.002 * (year - 1960) + 0.08 * balcony + 0.015 * floor
    price = 3.1 * area * np.exp(quality + 0.12 * rng.standard_normal(size))
    return {
        "flat": [f"flat-{place:03d}" for place in range(1, size + 1)],
        "area": [round(float(each), 1) for each in area],
        "year": year.tolist(),
        "district": district.tolist(),
        "floor": floor.tolist(),
        "balcony": ["yes" if each else "no" for each in balcony],
        "price": [round(float(each), 1) for each in price],
    }


def _tumours() -> Columns:
    """Breast cancer in Wisconsin, with 40 of its malignant tumours, so that they are rare."""
    from sklearn.datasets import load_breast_cancer

    data, rng = load_breast_cancer(), np.random.default_rng(1)
    malignant, benign = (np.flatnonzero(data.target == each) for each in (0, 1))
    rows = rng.permutation(np.concatenate([rng.choice(malignant, 40, replace=False), benign]))
    names = [name.replace(" ", "_") for name in data.feature_names]
    features = {name: data.data[rows, place].tolist() for place, name in enumerate(names)}
    diagnosis = [str(data.target_names[data.target[row]]) for row in rows]
    return {"patient": [f"P{row:04d}" for row in rows], **features, "diagnosis": diagnosis}


def _progression() -> Columns:
    """Diabetes: how far the disease has gone a year later, in the units of the study."""
    from sklearn.datasets import load_diabetes

    data, rng = load_diabetes(scaled=False), np.random.default_rng(2)
    rows = rng.permutation(len(data.target))
    features = {name: data.data[rows, place].tolist() for place, name in enumerate(data.feature_names)}
    patients = [f"D{place:03d}" for place in range(1, len(rows) + 1)]
    return {"patient": patients, **features, "progression": data.target[rows].tolist()}


SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("prices", "300 flats and what they sold for (made up)", "flat", "price", 25, _prices),
        Sample("tumours", "397 tumours, 40 of them malignant (real)", "patient", "diagnosis", 40, _tumours),
        Sample("progression", "442 patients with diabetes (real)", "patient", "progression", 30, _progression),
    )
}
