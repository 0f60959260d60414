"""Linex of random size under random weights and beliefs, against mpmath.

The weights have a closed expectation W(mean, sd) = E[w(z)] under a normal, so that E[w T] has one, too, at a mean that
T = exp(-alpha z) moves by -alpha sd^2; what is left is one integral over labels, in sixty digits. Under a log-warp
there is no such form: there both integrals are dense panels in double precision, in logarithms. Steps are declared in
some cases and not in others; steep weights are not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from stakes import (
    AccuracyWarning,
    BregmanLoss,
    ExponentialWeight,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogWarp,
    NormalEnsemble,
    WarpedGaussianBelief,
    Weight,
    expected_regret,
    score,
    uncertainty,
)
from stakes.evaluation import bayes_prediction
from stakes.losses import Exponential, NegativeLog
from tests.torture.harness import Area

_DIGITS = 60
_TOLERANCE = 1e-6
_LARGEST = 700.0  # the log of what plain numbers hold


@dataclass(frozen=True)
class Case:
    """A weight as the product takes it, log E[w] under N(mean, sd^2) in mpmath, and where the weight kinks."""

    weight: Any
    log_mean: Callable[[Any, Any], Any]
    kinks: tuple[float, ...] = ()
    tilt: float = 0.0
    """Standard deviations by which the weight moves the mass"""


def _between(a: Any, b: Any) -> Any:
    """P(a < U < b), from the tail that both are in."""
    if a > 0:
        a, b = -b, -a
    return (mp.erfc(-b / mp.sqrt(2)) - mp.erfc(-a / mp.sqrt(2))) / 2


def _density(u: Any) -> Any:
    return mp.exp(-u * u / 2) / mp.sqrt(2 * mp.pi)


def _integral(function: Callable[[Any], Any], cuts: list[Any]) -> Any:
    """Over all of the cuts, with as many nodes between two of them as 1e-10 takes."""
    for degree in (4, 5, 7):
        total, error = mp.quad(function, cuts, method="gauss-legendre", error=True, maxdegree=degree)
        if error < 1e-10 * abs(total):
            return total
    raise AssertionError(f"the reference itself has not converged: {mp.nstr(error / total, 3)}")


def _constant(rng: np.random.Generator, mean: float, sd: float) -> Case:  # noqa: ARG001 (as the others)
    return Case(None, lambda m, s: mp.mpf(0))


def _exponential(rng: np.random.Generator, mean: float, sd: float) -> Case:  # noqa: ARG001 (wherever it is)
    rate = mp.mpf(float(rng.uniform(-3.0, 3.0) / sd))
    kind = ExponentialWeight if rng.random() < 0.5 else _plain_exponential
    return Case(kind(float(rate)), lambda m, s: rate * m + rate**2 * s**2 / 2, tilt=float(abs(rate) * sd))


def _plain_exponential(rate: float) -> Weight:
    return Weight(lambda z: np.exp(rate * z), log=lambda z: rate * z)


def _probit(rng: np.random.Generator, mean: float, sd: float) -> Case:
    steepest = 6.9 if rng.random() < 0.3 else 1.6  # of slope 1000 to the standard deviation, undeclared
    slope, centre = float(np.exp(rng.uniform(-2.0, steepest))) / sd, mean + sd * float(rng.uniform(-3.0, 3.0))

    def log_mean(m: Any, s: Any) -> Any:
        return mp.log(mp.erfc(-slope * (m - centre) / mp.sqrt(2 * (1 + (slope * s) ** 2))) / 2)

    function = Weight(lambda z: ndtr(slope * (z - centre)), log=lambda z: log_ndtr(slope * (z - centre)))
    return Case(function, log_mean, (centre,) if slope * sd > 5.0 else (), 3.0)


def _bump(rng: np.random.Generator, mean: float, sd: float) -> Case:
    width, centre = sd * float(np.exp(rng.uniform(-1.2, 1.5))), mean + sd * float(rng.uniform(-4.0, 4.0))

    def log_mean(m: Any, s: Any) -> Any:
        both = mp.mpf(width) ** 2 + s**2
        return mp.log(mp.mpf(width)) - mp.log(both) / 2 - (m - centre) ** 2 / (2 * both)

    log = lambda z: -0.5 * ((z - centre) / width) ** 2  # noqa: E731 (two functions of one)
    return Case(Weight(lambda z: np.exp(log(z)), log=log), log_mean, tilt=4.0)


def _interpolated(rng: np.random.Generator, mean: float, sd: float) -> Case:
    count = int(rng.integers(1, 5))
    values = np.sort(mean + sd * rng.uniform(-3.0, 3.0, count))
    weights = np.where(rng.random(count) < 0.3, 0.0, rng.uniform(0.1, 5.0, count))
    if not weights.any():
        weights[-1] = 1.0

    def log_mean(m: Any, s: Any) -> Any:
        ends = [-mp.inf, *(mp.mpf(float(v)) for v in values), mp.inf]
        levels = [mp.mpf(float(w)) for w in (weights[0], *weights, weights[-1])]
        total = mp.mpf(0)
        for i in range(count + 1):
            low, high = (ends[i] - m) / s, (ends[i + 1] - m) / s
            mass = _between(low, high)
            if i in (0, count):
                total += levels[i] * mass if i == 0 else levels[-1] * mass
                continue
            slope = (levels[i + 1] - levels[i]) / (ends[i + 1] - ends[i])
            total += (levels[i] + slope * (m - ends[i])) * mass + slope * s * (_density(low) - _density(high))
        return mp.log(total)

    return Case(InterpolatedWeight(values.tolist(), weights.tolist()), log_mean, tuple(values.tolist()), 3.0)


def _step(rng: np.random.Generator, mean: float, sd: float) -> Case:
    place, level = mean + sd * float(rng.uniform(-3.0, 3.0)), float(rng.choice([0.0, 1e-3, 0.2, 5.0]))

    def log_mean(m: Any, s: Any) -> Any:
        low = (mp.mpf(place) - m) / s
        return mp.log(_between(low, mp.inf) + level * _between(-mp.inf, low))

    declared = (place,) if rng.random() < 0.5 else ()
    weight = Weight(lambda z: np.where(z > place, 1.0, level), breakpoints=declared)
    return Case(weight, log_mean, (place,), 3.0)


_WEIGHTS = (_constant, _exponential, _probit, _bump, _interpolated, _step)


def _gaussian_values(case: Case, alpha: float, mean: float, variance: float, rho: Any) -> tuple[Any, Any, Any]:
    """The expected reduction, the uncertainty and the answer in sixty digits; rho is exact."""
    alpha, mean, variance = mp.mpf(alpha), mp.mpf(mean), mp.mpf(variance)
    sd, left = mp.sqrt(variance), mp.sqrt((1 - rho) * variance)
    root = mp.sqrt(rho * variance)
    log_total = case.log_mean(mean, sd)

    def log_t(m: Any, s: Any) -> Any:
        """log E_w[T exp(alpha mean)] under N(m, s^2)."""
        return -alpha * (m - mean) + alpha**2 * s**2 / 2 + case.log_mean(m - alpha * s**2, s) - case.log_mean(m, s)

    today = log_t(mean, sd)

    def regret(eta: Any) -> Any:
        m = mean + root * eta
        return _density(eta) * mp.exp(case.log_mean(m, left) - log_total) * (today - log_t(m, left))

    reach = 13 + mp.mpf(case.tilt)
    cuts = list(mp.linspace(-reach, reach, 12))
    for kink in case.kinks:
        centre = (mp.mpf(kink) - mean) / root
        steps = [0, 1, 3, 7, 12, 30]
        cuts += [centre + sign * step * left / root for step in steps for sign in (1, -1)]
        slope = 1 / (abs(alpha) * root)
        cuts += [centre + sign * step * slope for step in (1, 4, 16, 64) for sign in (1, -1)]
    cuts = sorted({cut for cut in cuts if -reach <= cut <= reach})
    reduction = _integral(regret, cuts)
    slope = mp.diff(lambda m: case.log_mean(m, sd), mean, h=sd * mp.mpf(10) ** -20)  # d log W / dm
    before = today + alpha * variance * slope  # log a - E_w[log T]
    return reduction * mp.exp(log_total), before * mp.exp(log_total), mean - today / alpha


def _share(rng: np.random.Generator) -> float:
    """rho, from 1e-9 to 1 - 1e-9."""
    kind = rng.random()
    if kind < 0.4:
        return float(rng.uniform(0.02, 0.98))
    small = float(10.0 ** rng.uniform(-9.0, -1.0))
    return small if kind < 0.7 else 1.0 - small


def _gaussian(rng: np.random.Generator) -> None:
    sd = float(10.0 ** rng.uniform(-3.0, 5.0))
    mean = float(rng.choice([0.0, sd, -3.0 * sd, 1e6 * min(1.0, sd)]))
    alpha = float(rng.choice([-1.0, 1.0])) * float(10.0 ** rng.uniform(-6.0, np.log10(60.0))) / sd
    case = _WEIGHTS[int(rng.integers(len(_WEIGHTS)))](rng, mean, sd)
    variance, candidate = sd**2, float(10.0 ** rng.uniform(-2.0, 2.0))
    covariance = np.sqrt(_share(rng) * variance * candidate)
    rho = mp.mpf(float(covariance)) ** 2 / (mp.mpf(variance) * mp.mpf(candidate))
    if rho >= 1 - mp.mpf(10) ** -10:
        return
    belief = GaussianBelief([mean], [variance], [candidate], [[float(covariance)]])
    reduction, before, answer = _gaussian_values(case, alpha, mean, variance, rho)
    what = f"alpha sd {alpha * sd:.4g}, rho {float(rho):.12g}, mean / sd {mean / sd:.3g}, {case.weight}"
    for loss in (Linex(alpha, case.weight), BregmanLoss(NegativeLog(), Exponential(-alpha), case.weight)):
        _close_by_log(score(loss, belief, return_log_scale=True), reduction, f"score, {what}")
        _close_by_log(uncertainty(loss, belief, return_log_scale=True), before, f"uncertainty, {what}")
        if abs(mp.log(reduction)) < _LARGEST:
            _close(expected_regret(loss, belief)[0, 0], reduction, f"expected_regret, {what}")
            _close(score(loss, belief)[0], reduction, f"score, {what}")
        gap = abs(mp.mpf(float(bayes_prediction(loss, belief)[0])) - answer) / (sd + 1e-9 * abs(mean))
        assert gap < _TOLERANCE, f"bayes_prediction off by {float(gap):.3g} sd, {what}"


def _ensemble(rng: np.random.Generator) -> None:
    """Members with a target of any width, of which a label tells."""
    count, sd = int(rng.integers(2, 5)), float(10.0 ** rng.uniform(-3.0, 3.0))
    alpha = float(rng.choice([-1.0, 1.0])) * float(10.0 ** rng.uniform(-3.0, np.log10(60.0))) / sd
    means = sd * rng.uniform(-3.0, 3.0, count) + float(rng.choice([0.0, 1e6 * min(sd, 1.0)]))
    sds = sd * (np.ones(count) if rng.random() < 0.5 else rng.uniform(0.3, 1.0, count))
    labels, noise = rng.uniform(-4.0, 4.0, count), float(rng.uniform(0.3, 2.0))
    case = _WEIGHTS[int(rng.integers(len(_WEIGHTS)))](rng, float(means.mean()), sd)
    belief = NormalEnsemble([labels], noise, [means], [sds])
    what = f"alpha sd {alpha * sd:.4g}, means {means}, sds {sds}, labels {labels}, noise {noise}, {case.weight}"
    masses = [mp.exp(case.log_mean(mp.mpf(m), mp.mpf(s))) / count for m, s in zip(means, sds, strict=True)]
    origin, rate = mp.mpf(means[0]), mp.mpf(alpha)
    raised = [
        mp.exp(-rate * (m - origin) + rate**2 * s**2 / 2 + case.log_mean(m - rate * s**2, s)) / count
        for m, s in ((mp.mpf(m), mp.mpf(s)) for m, s in zip(means, sds, strict=True))
    ]
    today = mp.log(mp.fsum(raised)) - mp.log(mp.fsum(masses))

    def regret(y: Any) -> Any:
        densities = [_density((y - mp.mpf(label)) / mp.mpf(noise)) / mp.mpf(noise) for label in labels]
        mass = mp.fdot(densities, masses)
        return mass * (today - mp.log(mp.fdot(densities, raised)) + mp.log(mass))

    low, high = labels.min() - 13 * noise, labels.max() + 13 * noise
    nearest = np.pi * noise**2 / np.ptp(labels)  # singularity to the real line: where two members weigh the same
    step = min(noise / 8, nearest / 5)  # of the trapezoid rule, which leaves exp(-2 pi nearest / step)
    reduction = mp.fsum(regret(mp.mpf(float(y))) for y in np.arange(low, high, step)) * mp.mpf(float(step))
    found = score(Linex(alpha, case.weight), belief, return_log_scale=True)
    _close_by_log(found, reduction, f"score of an ensemble, {what}")


_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(16)


def _nodes(edges: Any) -> tuple[Any, Any]:
    """[..., Q] each: nodes between edges [..., P + 1], and the logarithms of their weights."""
    half = np.diff(edges, axis=-1)[..., None] / 2.0
    nodes, lengths = edges[..., :-1, None] + half * (1.0 + _PANEL_NODES), half * _PANEL_WEIGHTS
    with np.errstate(divide="ignore"):
        return nodes.reshape(*edges.shape[:-1], -1), np.log(lengths).reshape(*edges.shape[:-1], -1)


def _log_masses(log_weight: Any, rate: float, mean: Any, sd: float, kinks: list[float]) -> tuple[Any, Any]:
    """[J] each: log E[w] and log E[w T] for f ~ N(mean, sd^2), mean [J], with log T = -rate exp(f)."""
    with np.errstate(over="ignore"):
        peak = mean + np.zeros_like(mean)
        for _ in range(200):  # of log T times the density, by Newton's method
            raised = rate * sd**2 * np.exp(np.minimum(peak, 700.0))
            peak = peak - (peak - mean + raised) / (1.0 + raised)
    width = sd / np.sqrt(1.0 + rate * sd**2 * np.exp(peak))
    share = np.linspace(0.0, 1.0, 121)
    low, high = peak - 13.0 * sd, mean + 13.0 * sd
    edges = [
        low[:, None] + (high - low)[:, None] * share,
        peak[:, None] + width[:, None] * np.linspace(-13.0, 13.0, 53),
    ]
    edges += [np.clip(np.asarray(kinks) + np.zeros((len(mean), 1)), low[:, None], high[:, None])]
    f, log_lengths = _nodes(np.sort(np.concatenate(edges, axis=1), axis=1))
    logs = log_weight(f) - 0.5 * ((f - mean[:, None]) / sd) ** 2 - np.log(sd * np.sqrt(2.0 * np.pi)) + log_lengths
    return logsumexp(logs, axis=1), logsumexp(logs - rate * np.exp(f), axis=1)


def _warped_reduction(log_weight: Any, rate: float, mean: float, sd: float, rho: float, kinks: list[float]) -> float:
    """EUR of Linex(rate) where the logarithm of the target is N(mean, sd^2)."""
    root, rest = np.sqrt(rho), np.sqrt(1.0 - rho)
    mass, raised = (float(each[0]) for each in _log_masses(log_weight, rate, np.array([mean]), sd, kinks))
    today = raised - mass
    lowest = min(0.0, float(np.log(max(1e-300, 1.0 / (rate * np.exp(mean) * sd)))) / sd) * root - 14.0
    layer = np.array([0.0, *(side * step for step in (0.5, 1.0, 2.0, 4.0, 8.0, 30.0) for side in (-1.0, 1.0))])
    cuts = [((kink - mean) / sd + rest * layer) / root for kink in kinks]
    edges = np.unique(np.clip(np.concatenate([np.linspace(lowest, 14.0, 121), *cuts]), lowest, 14.0))
    total = 0.0
    eta, log_lengths = _nodes(edges)
    for part, lengths in zip(np.array_split(eta, 40), np.array_split(log_lengths, 40), strict=True):
        here, above = _log_masses(log_weight, rate, mean + sd * root * part, sd * rest, kinks)
        log_density = lengths - 0.5 * part**2 - 0.5 * np.log(2.0 * np.pi)
        some = np.isfinite(here) & np.isfinite(above)
        r = np.where(some, above - here - today, 0.0)
        near = abs(r) < 0.1
        small = np.where(near, r, 0.0)
        series = sum(small**k / np.prod(np.arange(1.0, k + 1.0)) for k in range(2, 16))
        with np.errstate(over="ignore"):
            each = np.exp(here + log_density) * np.where(near, series, -r - 1.0)
            each += np.where(near, 0.0, np.exp(here + log_density + r))
        total += float(each[some].sum())
    return total


def _warped(rng: np.random.Generator) -> None:
    """The logarithm of the target is Gaussian."""
    mean, sd = float(rng.uniform(-2.0, 2.0)), float(rng.uniform(0.1, 1.2))
    rate = float(10.0 ** rng.uniform(-3.0, 3.0)) / np.exp(mean)
    kind, place = str(rng.choice(["none", "step", "declared", "sigmoid"])), mean + sd * float(rng.uniform(-2.0, 2.0))
    level, slope = float(rng.choice([1e-3, 0.2, 5.0])), float(np.exp(rng.uniform(0.0, 5.0))) / sd
    kinks: list[float] = []
    log_weight = np.zeros_like
    weight = None
    if kind in ("step", "declared"):
        kinks, log_weight = [place], lambda f: np.where(f > place, 0.0, np.log(level))
        where = (float(np.exp(place)),) if kind == "declared" else ()
        weight = Weight(lambda z: np.where(z > np.exp(place), 1.0, level), breakpoints=where)
    elif kind == "sigmoid":
        kinks = [place + side * step / slope for step in (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0) for side in (-1.0, 1.0)]
        log_weight = lambda f: -np.logaddexp(0.0, -slope * (f - place))  # noqa: E731 (one of two)
        weight = Weight(lambda z: np.exp(log_weight(np.log(z))), log=lambda z: log_weight(np.log(z)))
    share = min(_share(rng), 1.0 - 1e-8)
    covariance = float(np.sqrt(share) * sd)
    rho = covariance**2 / sd**2
    belief = WarpedGaussianBelief(GaussianBelief([mean], [sd**2], [1.0], [[covariance]]), LogWarp())
    what = f"warped, rate {rate:.4g}, mean {mean:.4g}, sd {sd:.4g}, rho {rho:.12g}, {kind} at {place:.6g}"
    wanted = _warped_reduction(log_weight, rate, mean, sd, rho, kinks)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = score(Linex(rate, weight), belief)[0]
    stated = [each.message.relative_error for each in caught if isinstance(each.message, AccuracyWarning)]
    allowed = max([_TOLERANCE, *stated])
    assert abs(found - wanted) <= allowed * wanted, f"{what}: {found}, wanted {wanted}, off by {found / wanted - 1:.3g}"


def _close_by_log(found: tuple[Any, float], wanted: Any, what: str) -> None:
    """What the values times exp(log scale) are, however large; a logarithm of 1e6 has ten digits after its point."""
    values, log_scale = found
    gap = abs(mp.log(mp.mpf(float(values[0]))) + log_scale - mp.log(wanted))
    assert gap <= _TOLERANCE + 1e-14 * abs(log_scale), f"{what}: off by {float(gap):.3g}"


def _close(found: Any, wanted: Any, what: str) -> None:
    found = mp.mpf(float(found))
    assert abs(found - wanted) <= _TOLERANCE * abs(wanted), (
        f"{what}: {mp.nstr(found, 12)}, wanted {mp.nstr(wanted, 12)}, off by {float(found / wanted - 1):.3g}"
    )


def case(number: int, folder: Path) -> None:  # noqa: ARG001 (nothing is written)
    """One loss under one belief."""
    rng = np.random.default_rng([16, number])
    with mp.workdps(_DIGITS), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AccuracyWarning)  # a stated error of 1e-6 is held to that as well
        (_gaussian, _gaussian, _gaussian, _ensemble, _warped)[number % 5](rng)


AREA = Area(name="linex", case=case, quick=12, seconds=120.0)
