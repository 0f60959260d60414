"""Random losses, weights and beliefs against mpmath: no score is further off than a millionth, or than it says."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

import stakes
from stakes import AccuracyWarning, BoxCoxWarp, GaussianBelief, LogWarp, WarpedGaussianBelief, score
from stakes.acquisition.scores import bayes_prediction
from stakes.losses import ConvexFunction
from tests.torture import reference
from tests.torture.harness import Area
from tests.torture.reference import Bregman, Finite, Pieces, Quantile

TOLERANCE = 1e-6
RHO = (1e-12, 1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.36, 0.7, 0.9, 0.97, 0.99, 0.999, 1 - 1e-6, 1 - 1e-9)


@dataclass(frozen=True)
class Target:
    """A target z = g(f) of a latent f ~ N(mean, variance): its unit, and z and log-like functions of f as pieces."""

    mean: float
    sd: float
    warp: Any
    z: Pieces
    forward: Any
    inverse: Any

    def belief(self, rhos: Any, rng: np.random.Generator) -> tuple[Any, list[Any]]:
        """A belief with a candidate for each rho, and what rho is for the numbers that it was given."""
        own = 10.0 ** rng.uniform(-3, 3, len(rhos))
        variance = self.sd**2
        covariance = np.sqrt(rhos * variance * own) * rng.choice([-1.0, 1.0], len(rhos))
        latent = GaussianBelief([self.mean], [variance], own, covariance[:, None])
        exact = [mpf(c) ** 2 / (mpf(variance) * mpf(v)) for c, v in zip(covariance.tolist(), own.tolist(), strict=True)]
        return latent if self.warp is None else WarpedGaussianBelief(latent, self.warp), exact

    def describe(self) -> str:
        """Which one."""
        return f"{self.warp or 'plain'} N({self.mean!r}, {self.sd!r}^2)"

    @property
    def centre(self) -> Any:
        """The mean of f, as mpmath has it."""
        return mpf(self.mean)

    @property
    def variance(self) -> Any:
        """The variance of f, likewise."""
        return mpf(self.sd**2)


def plain_target(rng: np.random.Generator, far: float) -> Target:
    """z = f, with an sd from 1e-6 to 1e6 and a mean that is at most `far` sds away, or 1e6."""
    sd = float(10.0 ** rng.uniform(-6, 6))
    mean = float(rng.choice([0.0, rng.normal() * sd, rng.choice([-1.0, 1.0]) * 1e6]))
    mean = float(np.clip(mean, -far * sd, far * sd))
    return Target(mean, sd, None, Pieces.of((1, 1)), lambda f: f, lambda z: mpf(z))


def log_target(rng: np.random.Generator) -> Target:
    """z = exp(f)."""
    sd, mean = float(10.0 ** rng.uniform(-6, 0.3)), float(rng.choice([0.0, rng.normal(), 13.8, -13.8]))
    return Target(mean, sd, LogWarp(), Pieces.of((1, 0, 1)), mp.exp, lambda z: mp.log(mpf(z)))


def box_cox_target(rng: np.random.Generator) -> Target:
    """z = (1 + lam f)^(1 / lam), a polynomial of f."""
    power = int(rng.choice([1, 2, 3]))
    lam, mean = 1.0 / power, float(rng.choice([0.5, 3.0, 50.0, 1e4]))
    sd = (mean + power) / 20.0 * float(10.0 ** rng.uniform(-5, 0))  # next to no mass where the map is a continuation
    root = Pieces.of((1,), (mpf(lam), 1))
    z = root
    for _ in range(power - 1):
        z = z * root
    return Target(
        mean,
        sd,
        BoxCoxWarp(lam),
        z,
        lambda f: (1 + mpf(lam) * f) ** power,
        lambda z: (mpf(z) ** mpf(lam) - 1) / mpf(lam),
    )


def one() -> Pieces:
    """1, for no weight."""
    return Pieces.of((1,))


def weights(target: Target, rng: np.random.Generator, kind: str) -> tuple[Any, Pieces]:
    """A weight of the product, and the same as a function of f."""
    if kind == "none":
        return None, one()
    low, high = (float(target.forward(mpf(target.mean + u * target.sd))) for u in sorted(rng.uniform(-2.5, 2.5, 2)))
    if kind == "exponential":
        rate = float(rng.uniform(-3, 3)) / target.sd
        return stakes.ExponentialWeight(rate), Pieces.of((1, 0, rate))
    if kind == "interpolated":
        heights = [float(each) for each in rng.choice([0.0, 0.2, 1.0, 5.0], 3, replace=False)]
        values = [low, (low + high) / 2, high]
        if not values[0] < values[1] < values[2]:
            return None, one()
        pieces = Pieces.of((heights[0],), high=target.inverse(values[0])) + Pieces.of(
            (heights[2],), low=target.inverse(values[2])
        )
        for a, b, left, right in zip(values, values[1:], heights, heights[1:], strict=False):
            slope = (mpf(right) - mpf(left)) / (mpf(b) - mpf(a))
            line = Pieces.of((mpf(left) - slope * mpf(a),)) + target.z * slope
            pieces = pieces + line * Pieces.of((1,), low=target.inverse(a), high=target.inverse(b))
        return stakes.InterpolatedWeight(values, heights), pieces
    if kind == "power":
        unit = float(abs(target.forward(mpf(target.mean + target.sd)))) or 1.0
        return (lambda z: 1.0 + (z / unit) ** 2), one() + target.z * target.z * (1 / mpf(unit) ** 2)
    assert kind == "bump"
    assert target.warp is None
    width, height = float(rng.uniform(0.15, 1.5)) * target.sd, float(rng.choice([0.5, 5.0, 50.0]))
    q, c = 1 / mpf(width) ** 2, mpf(low)
    bump = Pieces.of((mpf(height) * mp.exp(-q * c * c / 2), 0, q * c, q))
    return (lambda z: 1.0 + height * np.exp(-0.5 * ((z - low) / width) ** 2)), one() + bump


def _stated(message: Any) -> float:
    """The relative error that a warning states."""
    if hasattr(message, "relative_error"):
        return float(message.relative_error)
    return float(re.findall(r"about ([\d.e+-]+) only", str(message))[0])


def compare(loss: Any, belief: Any, wanted: list[Any], what: str, most: Any = 0, **options: Any) -> None:
    """Scores against the reference, each relative to itself, or to 1e-12 of the most that a label can be worth."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores, log_scale = score(loss, belief, return_log_scale=True, **options)
    for one in caught:
        assert issubclass(one.category, AccuracyWarning), one.message
    stated = [_stated(one.message) for one in caught]
    allowed = max([TOLERANCE, *stated])
    for n, (found, right) in enumerate(zip(scores.tolist(), wanted, strict=True)):
        given = mpf(found) * mp.exp(mpf(log_scale))
        error = abs(given - right) / right if right else (mpf(0) if given == 0 else mp.inf)
        if error > allowed and abs(given - right) > 1e-12 * most:
            raise AssertionError(
                f"{what}: candidate {n}: {mp.nstr(given, 12)}, want {mp.nstr(right, 12)}: off by {mp.nstr(error, 3)}"
                + (f", stated {max(stated):g}" if stated else "")
            )


def pick_rhos(rng: np.random.Generator, count: int = 2) -> np.ndarray:
    """Shares that labels explain, from 1e-12 to 1 - 1e-9."""
    return rng.choice(RHO, count, replace=False)


def gaussian_bregman(rng: np.random.Generator) -> None:
    """Squared error, Linex and a potential of one's own under a Gaussian belief."""
    kind = str(rng.choice(["none", "exponential", "interpolated", "power", "bump"]))
    target = plain_target(rng, 1e12 if kind == "none" else 1e4)
    weight, w = weights(target, rng, kind)
    which = int(rng.integers(3))
    if which == 0:
        loss, ours = stakes.SquaredError(weight), Bregman("square", w, w * target.z)
    elif which == 1:
        alpha = float(rng.uniform(0.1, 5) * rng.choice([-1, 1]) / target.sd)
        loss, ours = stakes.Linex(alpha, weight), Bregman("negative log", w, w * Pieces.of((1, 0, -alpha)))
    else:
        unit = max(abs(target.mean), target.sd)
        target = Target(target.mean / unit, target.sd / unit, None, target.z, target.forward, target.inverse)
        weight, w = weights(target, rng, kind)
        phi = ConvexFunction(lambda t: np.sum(t**4, axis=-1), gradient=lambda t: 4.0 * t**3)
        loss, ours = stakes.BregmanLoss(phi, weight=weight), Bregman("fourth power", w, w * target.z)
    belief, rhos = target.belief(pick_rhos(rng), rng)
    wanted = [reference.gaussian_expected(ours, target.centre, target.variance, rho) for rho in rhos]
    compare(loss, belief, wanted, f"{loss} {kind} N({target.mean!r}, {target.sd!r}^2) rho {[float(r) for r in rhos]}")


def gaussian_log_score(rng: np.random.Generator) -> None:
    """The log score, weighted, plain or warped."""
    kind = str(rng.choice(["none", "exponential", "interpolated", "power", "bump"]))
    target = (
        log_target(rng)
        if kind in ("none", "interpolated", "power") and rng.random() < 0.5
        else plain_target(rng, 1e12 if kind == "none" else 1e4)
    )
    weight, w = weights(target, rng, kind)
    belief, rhos = target.belief(pick_rhos(rng), rng)
    m, v = target.centre, target.variance
    bend = w * Pieces.of((m * m / v - 1,), (-2 * m / v, 1), (1 / v, 2))
    wanted = [reference.log_score_expected(w, bend, m, v, rho) for rho in rhos]
    compare(stakes.LogScore(weight), belief, wanted, f"LogScore {weight} {target}"[:300])


def gaussian_quantile(rng: np.random.Generator) -> None:
    """Pinball and absolute error."""
    kind = str(rng.choice(["none", "exponential", "interpolated", "power", "bump"]))
    target = (
        log_target(rng)
        if kind in ("none", "interpolated", "power") and rng.random() < 0.5
        else plain_target(rng, 1e12 if kind == "none" else 1e4)
    )
    weight, w = weights(target, rng, kind)
    tau = float(rng.uniform(0.02, 0.98))
    loss, level, unit = (
        (stakes.Pinball(tau, weight), mpf(tau), 1)
        if rng.random() < 0.7
        else (stakes.AbsoluteError(weight), mpf("0.5"), 2)
    )
    belief, rhos = target.belief(pick_rhos(rng, 1), rng)
    ours = Quantile(level, unit, w, w * target.z, target.forward)
    wanted = [ours.gaussian(target.centre, target.variance, rho) for rho in rhos]
    compare(
        loss,
        belief,
        wanted,
        f"{loss} {kind} {target.warp} N({target.mean!r}, {target.sd!r}^2) rho {[float(r) for r in rhos]}",
    )


def warped_bregman(rng: np.random.Generator) -> None:
    """Losses of positive targets under a log warp, and under one of Box and Cox."""
    target = log_target(rng) if rng.random() < 0.6 else box_cox_target(rng)
    weight, w = weights(target, rng, str(rng.choice(["none", "interpolated", "power"])))
    which = int(rng.integers(4))
    if which == 0:
        loss, ours = stakes.SquaredError(weight), Bregman("square", w, w * target.z)
    elif which == 1:
        loss, ours = stakes.ItakuraSaito(weight), Bregman("negative log", w, w * target.z)
    elif which == 2:
        loss, ours = stakes.PoissonDeviance(weight), Bregman("negative entropy", w, w * target.z)
    elif isinstance(target.warp, BoxCoxWarp):
        loss, ours = stakes.BoxCox(target.warp.lam, weight), Bregman("square", w, w * Pieces.of((1, 1)))
    else:
        lam = float(rng.choice([0.0, 0.5, -0.5, 1.0, 2.0, -2.0, 0.001]))
        t = Pieces.of((1, 1)) if lam == 0 else Pieces.of((1 / mpf(lam), 0, lam), (-1 / mpf(lam),))
        loss, ours = stakes.BoxCox(lam, weight), Bregman("square", w, w * t)
    belief, rhos = target.belief(pick_rhos(rng), rng)
    wanted = [reference.gaussian_expected(ours, target.centre, target.variance, rho) for rho in rhos]
    compare(loss, belief, wanted, f"{loss} {target.describe()} rho {[float(r) for r in rhos]}")


def threshold(rng: np.random.Generator) -> None:
    """Wait or act, plain and warped."""
    target = log_target(rng) if rng.random() < 0.4 else plain_target(rng, 1e4)
    place = float(target.forward(mpf(target.mean + rng.normal() * target.sd)))
    miss, false_alarm = (float(10.0 ** rng.uniform(-3, 3)) for _ in range(2))
    cut = target.inverse(place)
    ours = Finite((Pieces.of((miss,), low=cut), Pieces.of((false_alarm,), high=cut)))
    belief, rhos = target.belief(pick_rhos(rng), rng)
    wanted = [reference.gaussian_expected(ours, target.centre, target.variance, rho) for rho in rhos]
    loss = stakes.ThresholdDecision(place, miss, false_alarm)
    most = min(ours.moments(target.centre, mp.sqrt(target.variance)))
    compare(
        loss,
        belief,
        wanted,
        f"{loss} {target.warp} N({target.mean!r}, {target.sd!r}^2) rho {[float(r) for r in rhos]}",
        most,
    )


def orders(rng: np.random.Generator) -> None:
    """Some actions with costs that kink: an order that is too small or too large."""
    target = plain_target(rng, 1e3)
    stock = sorted(float(target.mean + u * target.sd) for u in rng.normal(size=int(rng.integers(2, 5))))
    over, under = (float(10.0 ** rng.uniform(-1, 1)) for _ in range(2))
    costs = tuple(
        Pieces.of((over * mpf(a),), (-over, 1), high=a) + Pieces.of((-under * mpf(a),), (under, 1), low=a)
        for a in stock
    )
    ours = Finite(costs)
    levels = np.array(stock)

    def rows(z: np.ndarray) -> np.ndarray:
        short = z[..., None] - levels
        return np.maximum(-over * short, under * short)

    belief, rhos = target.belief(pick_rhos(rng), rng)
    wanted = [reference.gaussian_expected(ours, target.centre, target.variance, rho) for rho in rhos]
    most = min(ours.moments(target.centre, mp.sqrt(target.variance)))
    what = f"orders {stock} {over} {under} {target.describe()} rho {[float(r) for r in rhos]}"
    compare(stakes.FiniteActions(rows, tuple(stock)), belief, wanted, what, most)


def ensemble_distribution(rng: np.random.Generator) -> None:
    """Log score and CRPS under an ensemble of normals."""
    belief, numbers = ensemble(rng)
    centre = float(np.mean(belief.context_mean))
    spread = float(np.mean(belief.context_sd) + np.std(belief.context_mean))
    rate, slope = float(rng.uniform(-1.5, 1.5)), float(rng.uniform(0.5, 3.0))
    weight = (
        None,
        lambda z: np.exp(rate * (z - centre) / spread),
        lambda z: 1.0 + ((z - centre) / spread) ** 2,
        lambda z: 0.1 + 1.0 / (1.0 + np.exp(-slope * (z - centre) / spread)),
    )[int(rng.integers(4))]
    rule = str(rng.choice(["log", "crps"]))
    loss = stakes.LogScore(weight) if rule == "log" else stakes.CRPS(weight)
    wanted = mpf(reference.distribution_expected(rule, weight or np.ones_like, *numbers))
    compare(loss, belief, [wanted], f"{rule} {weight} {belief}")


def ensemble(rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    """An ensemble of normals with one candidate and one context, and the same numbers in mpmath."""
    count, unit, label_unit = int(rng.integers(2, 6)), 10.0 ** rng.uniform(-6, 6), 10.0 ** rng.uniform(-6, 6)
    apart = 10.0 ** rng.uniform(-4, 0.7)  # how far labels of members are apart, in their sds
    offset, label_offset = (float(rng.choice([0.0, 1.0, 1e4])) for _ in range(2))
    means = label_unit * (label_offset + apart * rng.normal(size=count))
    sds = (
        label_unit * rng.uniform(0.5, 1.5, count) * (10.0 ** rng.uniform(-1.5, 0, count) if rng.random() < 0.2 else 1.0)
    )
    centres = unit * (offset + 10.0 ** rng.uniform(-3, 0.5) * rng.normal(size=count))
    spreads = unit * rng.uniform(0.3, 1.5, count)
    shares = rng.dirichlet(np.full(count, 3.0))
    belief = stakes.NormalEnsemble(means[None, :], sds[None, :], centres[None, :], spreads[None, :], shares)
    given = [[mpf(each) for each in numbers.tolist()] for numbers in (shares, means, sds, centres, spreads)]
    total = mp.fsum(given[0])
    return belief, ([q / total for q in given[0]], *given[1:])


def ensemble_bregman(rng: np.random.Generator) -> None:
    """Squared error and Linex under an ensemble of normals."""
    belief, numbers = ensemble(rng)
    centre, spread = (
        float(np.mean(belief.context_mean)),
        float(np.mean(belief.context_sd) + np.std(belief.context_mean)),
    )
    target = Target(centre, spread, None, Pieces.of((1, 1)), lambda f: f, lambda z: mpf(z))
    kind = str(rng.choice(["none", "exponential", "interpolated", "power", "bump"]))
    weight, w = weights(target, rng, kind)
    if rng.random() < 0.5:
        loss, ours = stakes.SquaredError(weight), Bregman("square", w, w * target.z)
    else:
        alpha = float(rng.uniform(0.1, 3) * rng.choice([-1, 1]) / spread)
        loss, ours = stakes.Linex(alpha, weight), Bregman("negative log", w, w * Pieces.of((1, 0, -alpha)))
    compare(loss, belief, [reference.mixture_expected(ours, *numbers)], f"{loss} {kind} {belief}")


def ensemble_threshold(rng: np.random.Generator) -> None:
    """Wait or act, and orders, under an ensemble of normals."""
    belief, numbers = ensemble(rng)
    centre, spread = (
        float(np.mean(belief.context_mean)),
        float(np.mean(belief.context_sd) + np.std(belief.context_mean)),
    )
    place = centre + rng.normal() * spread
    miss, false_alarm = (float(10.0 ** rng.uniform(-2, 2)) for _ in range(2))
    ours = Finite((Pieces.of((miss,), low=place), Pieces.of((false_alarm,), high=place)))
    loss = stakes.ThresholdDecision(place, miss, false_alarm)
    most = mp.fsum(q * min(ours.moments(m, s)) for q, m, s in zip(*(numbers[i] for i in (0, 3, 4)), strict=True))
    compare(loss, belief, [reference.mixture_expected(ours, *numbers)], f"{loss} {belief}", most)


def ensemble_quantile(rng: np.random.Generator) -> None:
    """Pinball loss under an ensemble of normals."""
    belief, numbers = ensemble(rng)
    tau = float(rng.uniform(0.05, 0.95))
    ours = Quantile(mpf(tau), 1, one(), Pieces.of((1, 1)), lambda f: f)
    compare(stakes.Pinball(tau), belief, [ours.mixture(*numbers)], f"Pinball({tau}) {belief}")


def class_joint(rng: np.random.Generator) -> tuple[Any, Any, list[list[Any]]]:
    """An ensemble about classes (soft, or votes), and the joint table of label and target in mpmath."""
    count, n_classes = int(rng.integers(2, 9)), int(rng.integers(2, 6))
    if rng.random() < 0.3:
        sides = [rng.integers(0, n_classes, (1, count)) for _ in range(2)]
        belief = stakes.VoteEnsemble(*sides, n_classes)
        soft = [np.eye(n_classes)[side[0]] for side in sides]
        shares = np.full(count, 1.0)
    else:
        close = 10.0 ** rng.uniform(-6, 0.7)  # members that nearly agree, or hardly
        logits = [rng.normal(size=n_classes) * 2 + close * rng.normal(size=(count, n_classes)) for _ in range(2)]
        soft = [np.exp(each) / np.exp(each).sum(axis=1, keepdims=True) for each in logits]
        shares = rng.dirichlet(np.full(count, 3.0))
        belief = stakes.CategoricalEnsemble(soft[0][None], soft[1][None], shares)
    q = [mpf(each) for each in shares.tolist()]
    labels, targets = ([[mpf(p) for p in row] for row in side.tolist()] for side in soft)
    labels, targets = ([[p / mp.fsum(row) for p in row] for row in side] for side in (labels, targets))
    q = [each / mp.fsum(q) for each in q]
    table = [
        [mp.fsum(q[k] * labels[k][y] * targets[k][z] for k in range(count)) for z in range(n_classes)]
        for y in range(n_classes)
    ]
    return belief, n_classes, table


def classes(rng: np.random.Generator) -> None:
    """Every loss of classes."""
    belief, count, table = class_joint(rng)
    scale = float(10.0 ** rng.choice([0.0, 0.0, -30.0, 30.0]))
    given = None if rng.random() < 0.4 else (scale * rng.choice([0.5, 1.0, 3.0, 40.0], count)).tolist()
    w = [mpf(1)] * count if given is None else [mpf(each) for each in given]
    weighted = [[w[z] * p for z, p in enumerate(row)] for row in table]
    which = int(rng.integers(5))
    losses = (stakes.LogLoss, stakes.BrierLoss, stakes.SphericalLoss)
    if which < 3:
        loss, wanted = losses[which](given), reference.scoring_expected(("log", "square", "norm")[which], weighted)
        compare(loss, belief, [wanted], f"{loss} {belief}")
        return
    costs = np.round(rng.uniform(0, 5, (count, int(rng.integers(2, 5)))), 2) if which == 3 else 1.0 - np.eye(count)
    loss = stakes.CostMatrix(costs) if which == 3 else stakes.ZeroOne()
    rows = [[mp.fdot(row, [mpf(c) for c in costs[:, a].tolist()]) for a in range(costs.shape[1])] for row in table]
    today = reference.best_of([mp.fsum(column) for column in zip(*rows, strict=True)])
    wanted = mp.fsum(row[today] - min(row) for row in rows)
    compare(loss, belief, [wanted], f"{loss} {belief}", most=mpf(float(costs.max())))


def vectors(rng: np.random.Generator) -> None:
    """Mahalanobis under a Gaussian belief about two or three outputs, with a weight along one direction."""
    d, size = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    units, label_units = 10.0 ** rng.uniform(-6, 6, d), 10.0 ** rng.uniform(-6, 6, size)
    root = rng.normal(size=(size + d, 2 * (size + d)))
    joint = root @ root.T
    joint[:size, size:] *= (few := float(rng.choice([1e-6, 1e-3, 0.3, 1.0])))
    joint[size:, :size] *= few
    outer = np.concatenate([label_units, units])
    joint = joint * outer[:, None] * outer
    mean = units * rng.choice([0.0, 1.0, 1e4], d)
    price = rng.normal(size=(d, d))
    price = (price @ price.T + 0.1 * np.eye(d)) / units[:, None] / units
    kind = str(rng.choice(["none", "exponential", "ridge"]))
    rates = rng.uniform(-1, 1, d) / units if kind != "none" else np.zeros(d)
    belief = stakes.VectorGaussianBelief(
        mean[None], joint[size:, size:][None], joint[:size, :size][None], joint[:size, size:][None, None]
    )
    shift = float(rates @ mean)
    if kind == "none":
        weight, w = None, one()
    elif kind == "exponential":
        weight, w = stakes.ExponentialLinearWeight(rates.tolist()), Pieces.of((1, 0, 1))
    else:
        weight, w = (
            (lambda z: 1.0 + (z @ rates - shift) ** 2),
            Pieces.of((1 + mpf(shift) ** 2,), (-2 * shift, 1), (1, 2)),
        )
    loss = stakes.Mahalanobis((price + price.T) / 2, weight)
    wanted = reference.vector_expected(loss.matrix, w, rates, mean, joint, size)
    compare(loss, belief, [wanted], f"Mahalanobis {kind} d={d} L={size} few={few} units {units} rates {rates}")


def gaussian_closed(rng: np.random.Generator) -> None:
    """Losses with closed forms, several contexts of different units, weights of contexts and costs of labels."""
    count, n_contexts = 6, int(rng.integers(1, 4))
    unit = 10.0 ** rng.uniform(-6, 6)
    sds, means = unit * 10.0 ** rng.uniform(-1, 1, n_contexts), rng.choice([0.0, 1e6, -1e6], n_contexts)
    own, rhos = 10.0 ** rng.uniform(-6, 6, count), rng.choice(RHO, (count, n_contexts))
    covariance = np.sqrt(rhos * own[:, None]) * sds * rng.choice([-1.0, 1.0], (count, n_contexts))
    belief = GaussianBelief(means, sds**2, own, covariance)
    shares, costs = rng.dirichlet(np.ones(n_contexts)), 10.0 ** rng.uniform(-3, 3, count)
    rate = float(rng.uniform(-1, 1) / max(abs(means).max(), sds.max())) if rng.random() < 0.5 else None
    weight, tau, alpha = (
        None if rate is None else stakes.ExponentialWeight(rate),
        float(rng.uniform(0.01, 0.99)),
        1.0 / unit,
    )
    quantile = mp.sqrt(2) * mp.erfinv(2 * mpf(tau) - 1)
    loss, worth = (
        (stakes.SquaredError(weight), lambda v, r: r * v),
        (stakes.Linex(alpha, weight), lambda v, r: mpf(alpha) ** 2 * r * v / 2),
        (stakes.LogScore(weight), lambda v, r: -mp.log(1 - r) / 2),
        (stakes.CRPS(weight), lambda v, r: mp.sqrt(v) * (1 - mp.sqrt(1 - r)) / mp.sqrt(mp.pi)),
        (stakes.AbsoluteError(weight), lambda v, r: mp.sqrt(2 * v / mp.pi) * (1 - mp.sqrt(1 - r))),
        (
            stakes.Pinball(tau, weight),
            lambda v, r: reference.normal_density(quantile) * mp.sqrt(v) * (1 - mp.sqrt(1 - r)),
        ),
    )[int(rng.integers(6))]
    total = mp.fsum(mpf(each) for each in shares.tolist())
    wanted = []
    for n in range(count):
        parts = []
        for m in range(n_contexts):
            v = mpf(float(belief.variance[m]))
            r = mpf(float(covariance[n, m])) ** 2 / (v * mpf(float(own[n])))
            size = mpf(1) if rate is None else mp.exp(mpf(rate) * mpf(float(means[m])) + mpf(rate) ** 2 * v / 2)
            parts.append(mpf(float(shares[m])) / total * size * worth(v, r))
        wanted.append(mp.fsum(parts) / mpf(float(costs[n])))
    compare(loss, belief, wanted, f"{loss} {belief}", context_weights=shares, costs=costs)


def batches(rng: np.random.Generator) -> None:
    """What labels that were chosen together are worth, from nearly independent to nearly the same."""
    count, close = 6, 10.0 ** rng.uniform(-5, 0)
    root = rng.normal(size=(12, count + 1)) * close + rng.normal(size=(12, 1)) * rng.choice([-1.0, 1.0], count + 1)
    joint = root.T @ root + 12.0 * np.diag([float(rng.choice([1e-9, 1e-3, 1.0]))] * count + [0.0])
    units = 10.0 ** rng.uniform(-6, 6, count + 1)
    joint = joint * units[:, None] * units
    variance = float(joint[-1, -1])
    between = joint[:count, :count]
    belief = GaussianBelief([0.0], [variance], np.diagonal(between).copy(), joint[:count, -1:], between)
    v = mpf(variance)
    loss, worth = (
        (stakes.SquaredError(), lambda r: r * v),
        (stakes.LogScore(), lambda r: -mp.log(1 - r) / 2),
        (stakes.CRPS(), lambda r: mp.sqrt(v) * (1 - mp.sqrt(1 - r)) / mp.sqrt(mp.pi)),
    )[int(rng.integers(3))]
    chosen = stakes.select(loss, belief, n=4)
    picks = [int(i) for i in chosen.indices]
    for size in range(1, 5):
        labels = mp.matrix([[mpf(float(between[i, j])) for j in picks[:size]] for i in picks[:size]])
        across = mp.matrix([mpf(float(joint[i, -1])) for i in picks[:size]])
        right = worth((across.T * mp.lu_solve(labels, across))[0] / v)
        found = mpf(float(chosen.joint_reduction[size - 1]))
        assert abs(found - right) <= TOLERANCE * right, f"{loss} {size} labels, close {close}: {found}, want {right}"


def answers(rng: np.random.Generator) -> None:
    """Today's expected loss and answer, and where the loss looks."""
    kind = str(rng.choice(["none", "exponential", "interpolated", "power", "bump"]))
    target = plain_target(rng, 1e12 if kind == "none" else 1e4)
    weight, w = weights(target, rng, kind)
    m, s, z = target.centre, mp.sqrt(target.variance), target.z
    mass, first = w.mean(m, s), (w * z).mean(m, s)
    belief, _ = target.belief(pick_rhos(rng, 1), rng)
    if rng.random() < 0.5:
        loss = stakes.SquaredError(weight)
        answer, entropy = first / mass, (w * z * z).mean(m, s) - first**2 / mass
    else:
        alpha = float(rng.uniform(0.1, 3) * rng.choice([-1, 1]) / target.sd)
        loss = stakes.Linex(alpha, weight)
        level = mp.log((w * Pieces.of((1, 0, -alpha))).mean(m, s) / mass)
        answer, entropy = -level / mpf(alpha), mpf(alpha) * first + mass * level
    what = f"{loss} {kind} {target.describe()}"
    if abs(mp.log(entropy)) < 700:
        found = mpf(float(stakes.uncertainty(loss, belief)[0]))
        assert abs(found - entropy) <= TOLERANCE * entropy, f"uncertainty of {what}: {found}, want {entropy}"
    found = mpf(float(bayes_prediction(loss, belief)[0]))
    close = TOLERANCE * s + mpf(2) ** -50 * abs(answer)
    assert abs(found - answer) <= close, f"answer of {what}: {found}, want {answer}"


def vector_ensemble(rng: np.random.Generator) -> None:
    """Mahalanobis under an ensemble whose labels have two numbers: against a dense grid."""
    count, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    units, label_units = 10.0 ** rng.uniform(-6, 6, d), 10.0 ** rng.uniform(-6, 6, 2)
    means = label_units * 10.0 ** rng.uniform(-2, 0.4) * rng.normal(size=(count, 2))
    sds = label_units * rng.uniform(0.6, 1.4, (count, 2))
    centres = units * (rng.choice([0.0, 1e4]) + 10.0 ** rng.uniform(-2, 0.5) * rng.normal(size=(count, d)))
    shares = rng.dirichlet(np.full(count, 3.0))
    price = rng.normal(size=(d, d))
    price = (price @ price.T + 0.1 * np.eye(d)) / units[:, None] / units
    loss = stakes.Mahalanobis((price + price.T) / 2)
    belief = stakes.VectorNormalEnsemble(means[None], sds[None], centres[None], 0.3 * units, shares)
    wanted = reference.vector_mixture_expected(
        loss.matrix * units[:, None] * units, shares, means, sds, centres / units
    )
    compare(loss, belief, [mpf(wanted)], f"Mahalanobis {d} {belief}")


FAMILIES = (
    *(gaussian_closed, classes, vectors, batches, answers) * 3,
    gaussian_bregman,
    gaussian_log_score,
    warped_bregman,
    threshold,
    orders,
    gaussian_quantile,
    ensemble_bregman,
    ensemble_threshold,
    ensemble_quantile,
    ensemble_distribution,
    vector_ensemble,
)


def _case(number: int, folder: Path) -> None:  # noqa: ARG001 (nothing is written)
    with mp.workdps(reference.DIGITS):
        FAMILIES[number % len(FAMILIES)](np.random.default_rng(number))


AREA = Area("numbers", _case, quick=26, seconds=300.0)
