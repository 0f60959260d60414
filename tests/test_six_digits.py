"""Scores are right to a millionth from rho = 1e-12 to 1 - 1e-9, sds from 1e-6 to 1e6, and at an offset of 1e6.

Against mpmath: closed forms over the whole range, pairs that are integrated at its corners. Random pairs are in
tests/torture/numbers.py.
"""

import numpy as np
import pytest

pytest.importorskip("mpmath", reason="mpmath is not installed, and the references are its")
from mpmath import mp, mpf

from stakes import (
    CRPS,
    AbsoluteError,
    GaussianBelief,
    InterpolatedWeight,
    Linex,
    LogScore,
    Pinball,
    SquaredError,
    ThresholdDecision,
    score,
)
from tests.torture import reference
from tests.torture.reference import Bregman, Finite, Pieces

RHO = np.array([1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.99, 1 - 1e-6, 1 - 1e-9])
CORNERS = [(0.0, 1e-6), (0.0, 1e6), (1e6, 1.0), (-1e6, 1e3)]
Z = Pieces.of((1, 1))

CLOSED = {
    "squared error": (lambda sd: SquaredError(), lambda v, r: r * v),
    "Linex": (lambda sd: Linex(1.0 / sd), lambda v, r: r * v * mpf(1.0 / float(mp.sqrt(v))) ** 2 / 2),
    "log score": (lambda sd: LogScore(), lambda v, r: -mp.log(1 - r) / 2),
    "CRPS": (lambda sd: CRPS(), lambda v, r: mp.sqrt(v / mp.pi) * (1 - mp.sqrt(1 - r))),
    "absolute error": (lambda sd: AbsoluteError(), lambda v, r: mp.sqrt(2 * v / mp.pi) * (1 - mp.sqrt(1 - r))),
    "pinball": (
        lambda sd: Pinball(0.125),
        lambda v, r: reference.normal_density(mp.sqrt(2) * mp.erfinv(mpf("-0.75"))) * mp.sqrt(v) * (1 - mp.sqrt(1 - r)),
    ),
}


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(reference.DIGITS):
        yield


def belief_of(mean, sd, rho):
    """A candidate for each rho, and rho as the numbers have it."""
    covariance = np.sqrt(rho) * sd
    exact = [mpf(float(each)) ** 2 / mpf(sd**2) for each in covariance]
    return GaussianBelief([mean], [sd**2], np.ones(len(rho)), covariance[:, None]), exact


def check(loss, belief, wanted):
    errors = [abs(mpf(float(found)) / right - 1) for found, right in zip(score(loss, belief), wanted, strict=True)]
    assert max(errors) <= 1e-6, [mp.nstr(error, 2) for error in errors]


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("mean", [0.0, 1e6, -1e6])
@pytest.mark.parametrize("sd", [1e-6, 1.0, 1e6])
def test_closed_forms(name, mean, sd):
    loss, worth = CLOSED[name]
    belief, rhos = belief_of(mean, sd, RHO)
    check(loss(sd), belief, [worth(mpf(sd**2), rho) for rho in rhos])


def weighed(mean, sd):
    """1 + u^2 for the standardised target u, as a function of z and in pieces."""
    u = Pieces.of((-mpf(mean) / mpf(sd),), (1 / mpf(sd), 1))
    return (lambda z: 1.0 + ((z - mean) / sd) ** 2), Pieces.of((1,)) + u * u


@pytest.mark.parametrize(("mean", "sd"), CORNERS)
@pytest.mark.parametrize("rho", [1e-12, 0.5, 1 - 1e-9])
def test_pairs_that_are_integrated(mean, sd, rho):
    weight, w = weighed(mean, sd)
    belief, (exact,) = belief_of(mean, sd, np.array([rho]))
    alpha = 1.5 / sd
    for loss, ours in (
        (SquaredError(weight), Bregman("square", w, w * Z)),
        (Linex(alpha, weight), Bregman("negative log", w, w * Pieces.of((1, 0, -alpha)))),
        (ThresholdDecision(mean), Finite((Pieces.of((1,), low=mean), Pieces.of((1,), high=mean)))),
    ):
        check(loss, belief, [reference.gaussian_expected(ours, mpf(mean), mpf(sd**2), exact)])


@pytest.mark.parametrize(("mean", "sd"), CORNERS[1:3])
def test_a_weight_with_kinks(mean, sd):
    low, high = mean - sd, mean + 0.5 * sd
    slope = 3 / (mpf(high) - mpf(low))
    line = Pieces.of((1 - slope * mpf(low),), (slope, 1), low=low, high=high)
    w = Pieces.of((1,), high=low) + line + Pieces.of((4,), low=high)
    belief, rhos = belief_of(mean, sd, np.array([0.5]))
    ours = Bregman("square", w, w * Z)
    wanted = [reference.gaussian_expected(ours, mpf(mean), mpf(sd**2), rho) for rho in rhos]
    check(SquaredError(InterpolatedWeight([low, high], [1.0, 4.0])), belief, wanted)
