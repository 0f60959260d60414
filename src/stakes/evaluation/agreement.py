"""How much annotators agree beyond chance: Krippendorff's alpha and Cohen's kappa, with intervals.

Sizes: n rows with two opinions or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stakes._utils.arguments import RandomState, as_generator
from stakes._utils.tables import Host
from stakes._utils.text import counted
from stakes.evaluation.annotators import OpinionTable, opinion_table
from stakes.exceptions import StakesError
from stakes.models.default_model import infer_task


@dataclass(frozen=True)
class Agreement:
    """How much annotators agree beyond chance.

    Attributes:
        value: 1 where they always agree, 0 where they agree as often as chance would have it; NaN where all labels are
            the same, so that there is nothing to agree on.
        low: The lower end of its 95% interval, by a bootstrap over rows.
        high: The upper end.
        rows: How many rows have two opinions or more.
        kind: "alpha" (Krippendorff) or "kappa" (Cohen).

    Examples:
        >>> from stakes.evaluation import agreement
        >>> opinions = [(row, who, row % 2) for row in range(8) for who in ("ann", "bob")]
        >>> agreement(opinions).value
        1.0
    """

    value: float
    low: float
    high: float
    rows: int
    kind: str

    def __str__(self) -> str:
        name = {"alpha": "Krippendorff's alpha", "kappa": "Cohen's kappa"}[self.kind]
        return f"{name} {self.value:.2f} ({self.low:.2f} to {self.high:.2f}), {counted(self.rows, 'row')}"


def agreement(
    opinions: Any,
    kind: Literal["alpha", "kappa"] = "alpha",
    *,
    level: Literal["nominal", "interval"] | None = None,
    draws: int = 1000,
    random_state: RandomState = 0,
) -> Agreement:
    """How much annotators agree beyond chance, over the rows that have two opinions or more.

    Krippendorff's alpha, 1 - D_o / D_e with D_o the mean squared difference of two opinions on a row and D_e that of
    any two opinions, takes any number of annotators, gaps and numbers. Cohen's kappa is for two annotators and classes.

    Args:
        opinions: As in `estimate_annotators`.
        kind: "alpha" or "kappa".
        level: "nominal" where labels are equal or not, "interval" where differences count; None: by the labels.
        draws: Of the bootstrap over rows that gives the interval.
        random_state: A whole number or a generator.

    Returns:
        The agreement with its 95% interval.

    Raises:
        StakesError: If no row has two opinions, or kappa is asked for with other than two annotators, or for numbers.

    Examples:
        >>> opinions = [(row, "ann", "ab"[row % 2]) for row in range(10)]
        >>> opinions += [(row, "bob", "ab"[row % 2 and row > 1]) for row in range(10)]
        >>> print(agreement(opinions, "kappa"))
        Cohen's kappa 0.80 (0.40 to 1.00), 10 rows
    """
    table = opinion_table(opinions)
    if kind not in ("alpha", "kappa"):
        raise StakesError(f"kind must be 'alpha' or 'kappa'; got {kind!r}")
    if level not in (None, "nominal", "interval"):
        raise StakesError(f"level must be 'nominal' or 'interval'; got {level!r}")
    if level is None:
        level = "interval" if infer_task(table.labels, None, None)[0] == "real" else "nominal"
    generator = as_generator(random_state)
    if kind == "kappa":
        return _kappa(table, level, draws, generator)
    counts = np.bincount(table.row, minlength=len(table.rows))
    paired = counts > 1
    if not paired.any():
        raise StakesError("agreement needs rows with two opinions or more; no row has")
    observed, expected = _disagreements(table, level, paired)
    times = _resampled(generator, draws, int(paired.sum()))  # [draws, n]
    values = _alpha(observed, expected, times)
    return _interval(_alpha(observed, expected, np.ones((1, int(paired.sum()))))[0], values, int(paired.sum()), kind)


def _disagreements(table: OpinionTable, level: str, paired: Host) -> tuple[Host, tuple[Host, ...]]:
    """For the rows with two opinions or more, [n]: pairs that differ, and what the expected number is made of."""
    keep = paired[table.row]
    row = (np.cumsum(paired) - 1)[table.row[keep]]
    size = np.bincount(row).astype(float)  # [n]
    if level == "interval":
        values = np.asarray(table.labels[keep], dtype=float)
        values = (values - values.mean()) / (values.std() or 1.0)
        sums = np.bincount(row, weights=values)
        squares = np.bincount(row, weights=values**2)
        return 2.0 * (size * squares - sums**2) / (size - 1.0), (size, sums, squares)
    names = {name: at for at, name in enumerate(dict.fromkeys(table.labels[keep].tolist()))}
    counts = np.zeros((len(size), len(names)))
    np.add.at(counts, (row, np.asarray([names[each] for each in table.labels[keep].tolist()])), 1.0)
    return (size**2 - np.sum(counts**2, axis=1)) / (size - 1.0), (counts,)


def _alpha(observed: Host, expected: tuple[Host, ...], times: Host) -> Host:
    """[draws]: with rows counted `times` [draws, n]; NaN where all labels are the same."""
    totals = [times @ each for each in expected]
    if len(totals) == 1:
        counts = totals[0]  # [draws, values]
        size = counts.sum(axis=1)
        pairs = size**2 - np.sum(counts**2, axis=1)
    else:
        size, sums, squares = totals
        pairs = 2.0 * (size * squares - sums**2)
    at_random = pairs / (size - 1.0)
    nothing = pairs <= 1e-12 * size**2
    return np.where(nothing, np.nan, 1.0 - times @ observed / np.where(nothing, 1.0, at_random))


def _kappa(table: OpinionTable, level: str, draws: int, generator: np.random.Generator) -> Agreement:
    if len(table.names) != 2 or level != "nominal":
        raise StakesError(
            f"Cohen's kappa is for two annotators and classes; there are {len(table.names)} annotators and labels are "
            f"{level}. Krippendorff's alpha takes any: kind='alpha'."
        )
    both: dict[int, dict[int, Any]] = {}
    for row, who, label in zip(table.row.tolist(), table.who.tolist(), table.labels.tolist(), strict=True):
        both.setdefault(row, {})[who] = label  # the last, where one labelled a row twice
    pairs = [(each[0], each[1]) for each in both.values() if len(each) == 2]
    if not pairs:
        raise StakesError("agreement needs rows with two opinions or more; no row has")
    names = {name: at for at, name in enumerate(dict.fromkeys(label for pair in pairs for label in pair))}
    first, second = (np.eye(len(names))[[names[pair[side]] for pair in pairs]] for side in (0, 1))  # [n, C]
    same = np.sum(first * second, axis=1)

    def value(times: Host) -> Host:
        count = times.sum(axis=1)
        at_random = np.sum((times @ first) * (times @ second), axis=1) / count**2
        nothing = at_random >= 1.0 - 1e-12
        return np.where(nothing, np.nan, 1.0 - (1.0 - times @ same / count) / np.where(nothing, 1.0, 1.0 - at_random))

    drawn = value(_resampled(generator, draws, len(pairs)))
    return _interval(value(np.ones((1, len(pairs))))[0], drawn, len(pairs), "kappa")


def _resampled(generator: np.random.Generator, draws: int, count: int) -> Host:
    """[draws, n]: how often each row is drawn, with replacement."""
    return generator.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(float)


def _interval(value: float, drawn: Host, rows: int, kind: str) -> Agreement:
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) and not np.isnan(value) else (np.nan, np.nan)
    return Agreement(float(value), float(low), float(high), rows, kind)
