"""What learning curves say, as numbers: labels needed, ratios of final losses, tests, medians over tables.

*Level* and *passage* are read from the mean curve over runs after isotonic (non-increasing) smoothing. The level is
what (reference, random) has after its last label; the passage of another curve is the first count of bought labels from
which on it is at or below the level, infinite where it never is; the share is the passage over all labels bought.
Intervals are percentiles of a bootstrap over runs, paired: all curves of a problem are drawn by the same runs. Tests
are Wilcoxon's signed-rank test on paired differences of runs, one-sided, and Holm's correction goes over all cases.

Sizes: R runs, B labels bought, G bootstrap draws, P problems.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import stats
from sklearn.isotonic import isotonic_regression

from experiments.labels_saved.tables import Host
from stakes.simulation import Estimate

ALPHA = 0.05
LEAST_FALL = 0.1
"""Of the loss at the start, by which (reference, random) must fall for a problem to count in medians."""
DRAWS = 1000
_SEED = 0
_ROUNDING = 1e-12  # relative, by which a curve may be above the level and yet be there
_NOTHING = 1e-6  # of the largest loss of both: added to both losses of a ratio, as a loss can be 0

_Name = TypeVar("_Name", bound=Hashable)


def smoothed(curve: Host) -> Host:
    """[B + 1]: the non-increasing curve nearest to a mean curve in squared distance."""
    return np.asarray(isotonic_regression(_finite(curve), increasing=False))


def last_level(means: Host) -> Host:
    """[...]: the last value of each smoothed curve of [..., B + 1], which is the least mean of any of its tails."""
    tails = np.cumsum(_finite(means)[..., ::-1], axis=-1) / np.arange(1, means.shape[-1] + 1)
    return np.asarray(tails.min(axis=-1))


def passages(means: Host, levels: Host) -> Host:
    """[...]: the first count at which each smoothed curve of [..., B + 1] is at or below its level [...].

    Smoothing pools neighbours until the curve falls. What is left above the level is then the stretch at the start over
    which the sum of (curve - level) is largest, so nothing needs to be smoothed.
    """
    above = _finite(means) - (levels + _ROUNDING * np.abs(levels))[..., None]
    sums = np.concatenate([np.zeros_like(above[..., :1]), np.cumsum(above, axis=-1)], axis=-1)  # [..., B + 2]
    first = np.argmax(sums, axis=-1)
    return np.where(first == means.shape[-1], math.inf, first)


def level_of(reference: Host) -> float:
    """The loss to reach: that of the smoothed mean of curves [R, B + 1] after the last label."""
    return float(last_level(reference.mean(axis=0)))


def passage(curves: Host, level: float) -> float:
    """The first count of bought labels from which on the smoothed mean of curves [R, B + 1] is at or below a level."""
    return float(passages(curves.mean(axis=0), np.asarray(level)))


def share_needed(curves: Host, reference: Host, draws: int = DRAWS) -> Estimate:
    """The labels that curves [R, B + 1] need for the level of the reference's [R, B + 1], over B; 95% interval."""
    bought = reference.shape[1] - 1
    drawn = passages(_means(curves, draws), last_level(_means(reference, draws))) / bought
    return _percentiles(passage(curves, level_of(reference)) / bought, drawn)


def labels_against(curves: Host, rival: Host, reference: Host, draws: int = DRAWS) -> Estimate:
    """The labels that curves [R, B + 1] need for the reference's level, over those that the rival's need.

    A rival that never gets there counts as if it had with the last label, so that the ratio is at most what is said;
    infinite where only the curves never do, NaN where neither does.
    """
    level = np.concatenate([[level_of(reference)], last_level(_means(reference, draws))])  # [1 + G]
    ours, theirs = (
        passages(np.concatenate([each.mean(axis=0)[None], _means(each, draws)]), level) for each in (curves, rival)
    )
    ratios = [
        _ratio_of_labels(*pair, reference.shape[1] - 1) for pair in zip(ours.tolist(), theirs.tolist(), strict=True)
    ]
    return _percentiles(ratios[0], [each for each in ratios[1:] if not math.isnan(each)])


def _ratio_of_labels(ours: float, theirs: float, bought: int) -> float:
    if math.isinf(ours):
        return math.nan if math.isinf(theirs) else math.inf
    if theirs == 0:
        return 1.0 if ours == 0 else math.inf
    return ours / min(theirs, float(bought))


def final_ratio(curves: Host, rival: Host, draws: int = DRAWS) -> Estimate:
    """The mean loss after the last label over that of the rival, both [R, B + 1]; 95% interval."""
    nothing = _NOTHING * max(float(curves.max()), float(rival.max())) or 1.0  # all are 0, and so equal
    value = float((curves[:, -1].mean() + nothing) / (rival[:, -1].mean() + nothing))
    return _percentiles(value, (_means(curves[:, -1:], draws) + nothing) / (_means(rival[:, -1:], draws) + nothing))


def worse(losses: Host, rivals: Host) -> float:
    """The p-value of "no worse than the rival" for final losses [R] of the same runs; 1 where all are equal."""
    return _signed_rank(np.asarray(losses) - np.asarray(rivals))


def counts(reference: Host) -> bool:
    """Whether (reference, random), curves [R, B + 1], falls significantly (5%, one-sided) and by a tenth at least."""
    start, end = reference[:, 0], reference[:, -1]
    return bool(_signed_rank(start - end) < ALPHA and end.mean() <= (1.0 - LEAST_FALL) * start.mean())


def _signed_rank(differences: Host) -> float:
    """Against "above 0"; equal runs are left out."""
    differences = differences[differences != 0]
    return float(stats.wilcoxon(differences, alternative="greater").pvalue) if len(differences) else 1.0


def holm(p_values: Mapping[_Name, float]) -> dict[_Name, float]:
    """Holm's adjusted p-values: below ALPHA where the case is significant among all of them."""
    adjusted: dict[_Name, float] = {}
    largest = 0.0
    for place, (name, value) in enumerate(sorted(p_values.items(), key=lambda each: each[1])):
        largest = max(largest, min(1.0, (len(p_values) - place) * value))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


@dataclass(frozen=True)
class Saving:
    """What labels were bought for, and what they brought, summed over the labels of a run; means over runs."""

    promised: float
    delivered: Estimate
    """the fall of the mean loss on test rows, with Student's t interval"""


def saving(promised: Host, curves: Host) -> Saving:
    """Promises [R, B] beside what curves [R, B + 1] of the same loss did."""
    falls = curves[:, 0] - curves[:, -1]
    half = float(stats.t.ppf(0.975, len(falls) - 1) * stats.sem(falls)) if len(falls) > 1 else math.inf
    mean = float(falls.mean())
    return Saving(float(promised.sum(axis=1).mean()), Estimate(mean, mean - half, mean + half))


def median_over(values: Sequence[float], draws: int = DRAWS) -> Estimate:
    """The median over P problems, which may be infinite, and its 95% interval by a bootstrap over them."""
    known = np.asarray(values, dtype=float)
    drawn = known[_resampled(len(known), draws)]  # [G, P]
    return _percentiles(float(_medians(known)), _medians(drawn))


def geometric_mean(values: Sequence[float], draws: int = DRAWS) -> Estimate:
    """That of P positive ratios, and its 95% interval by a bootstrap over them."""
    logs = np.log(np.asarray(values, dtype=float))
    return _percentiles(float(np.exp(logs.mean())), np.exp(_means(logs[:, None], draws)))


def _medians(values: Host) -> Host:
    """[...]: of [..., P]; the mean of the middle two is infinite where one of them is."""
    ordered, count = np.sort(values, axis=-1), values.shape[-1]
    return np.asarray((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2.0)


def _means(curves: Host, draws: int) -> Host:
    """[G, ...]: means over rows of [R, ...] drawn with replacement."""
    rows = _resampled(len(curves), draws)
    times = np.stack([np.bincount(each, minlength=len(curves)) for each in rows])  # [G, R]
    return np.asarray(times @ curves / len(curves))


def _resampled(count: int, draws: int) -> Host:
    """[G, count]: positions drawn with replacement, the same at every call."""
    return np.random.default_rng(_SEED).integers(count, size=(draws, count))


def _percentiles(value: float, drawn: Host | Sequence[float]) -> Estimate:
    """2.5% and 97.5% by order statistics, which infinite draws do not spoil; open where there is nothing to go by."""
    if not np.size(drawn):
        return Estimate(value, -math.inf, math.inf)
    low, high = np.quantile(np.ravel(np.asarray(drawn)), [0.025, 0.975], method="inverted_cdf")
    return Estimate(value, float(low), float(high))


def _finite(means: Host) -> Host:
    """Refused where a loss is infinite or NaN: there is then no curve to smooth."""
    if not np.isfinite(means).all():
        raise FloatingPointError(
            f"mean curves must be finite; {int((~np.isfinite(means)).sum())} of their values are not"
        )
    return means
