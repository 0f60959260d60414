"""What a rule of integration and its refinement differ by tells the error of the rule, wherever either is used.

A warning states twice that difference, so a refinement that leaves some step of the integration as it was would be
silent of what that step leaves.
"""

from dataclasses import replace

import numpy as np
import pytest

from stakes import (
    CRPS,
    GaussianBelief,
    GaussianMixtureBelief,
    Linex,
    LogScore,
    LogWarp,
    NormalEnsemble,
    Pinball,
    SquaredError,
    WarpedGaussianBelief,
)
from stakes.acquisition.forms import prepare_general, resolve

SD = 0.5
SHARES = (0.01, 0.3, 0.9, 0.97, 0.982, 0.989, 0.9999)


def a_hundredfold_step(z):
    """And a floor that makes ratios steep."""
    return 0.01 + np.where(z > 1.2, 1.0, 0.0) + np.where(abs(z - 0.4) < 0.01, 0.5, 0.0)


def nearly_nothing_below(z):
    """A thousandth to one side, and a smooth bump that is as narrow as the posterior."""
    return 1e-3 + np.where(z > 1.6, 1.0, 0.0) + 0.1 * np.exp(-0.5 * ((z - 0.7) / 0.02) ** 2)


WEIGHTS = (a_hundredfold_step, nearly_nothing_below)
LOSSES = {
    "squared error": SquaredError,
    "Linex": lambda weight: Linex(1.0, weight),
    "log score": LogScore,
    "CRPS": CRPS,
    "pinball": lambda weight: Pinball(0.3, weight),
}


def gaussian(share):
    return GaussianBelief([1.0], [SD**2], [1.0], [[SD * share**0.5]])


def log_normal(share):
    return WarpedGaussianBelief(GaussianBelief([0.1], [SD**2], [1.0], [[SD * share**0.5]]), LogWarp())


def ensemble(share):
    return NormalEnsemble([[-1.0, 1.5 * share]], [[1.0, 0.5]], [[0.6, 1.1]], [[0.4, 0.5]], [0.4, 0.6])


def mixture(share):
    covariance = SD * np.array([[[share**0.5]], [[(0.5 * share) ** 0.5]]])
    return GaussianMixtureBelief([[1.0], [0.5]], [[SD**2]] * 2, [[0.0], [0.4]], [[1.0]] * 2, covariance)


BELIEFS = {each.__name__: each for each in (gaussian, log_normal, ensemble, mixture)}


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("belief", BELIEFS)
def test_two_rules_differ_by_no_less_than_half_the_error(belief, loss, weight):
    for share in SHARES if belief in {"gaussian", "log_normal"} else SHARES[1:4:2]:
        each, made = BELIEFS[belief](share), LOSSES[loss](weight)
        plain = resolve(made, each)
        finest = replace(plain, width=0.25, spacing=0.25 * plain.spacing, find_edges=lambda plain=plain: plain._found)
        found, finer, right = (
            float(prepare_general(made, each, rule)[0](each)[0, 0]) for rule in (plain, plain.refined(), finest)
        )
        assert abs(found - right) <= 2.0 * abs(found - finer) + 1e-8 * right, (share, found, finer, right)
        if belief in {"gaussian", "log_normal"}:
            assert abs(found - right) <= 2e-6 * right, (share, found, right)
