"""Split moments at nodes that all contexts share, against those of each pair."""

import numpy as np
import pytest

from stakes import BregmanLoss, GaussianBelief, Linex, LogWarp, SquaredError, WarpedGaussianBelief, Weight
from stakes.acquisition.forms import GENERAL
from stakes.acquisition.profile import tabulator
from stakes.beliefs.gaussian_integration import shared_split
from stakes.beliefs.roughness import resolved
from stakes.losses import Square

RHO = np.array([1e-8, 0.01, 0.3, 0.9, 0.95, 0.97, 0.99, 0.997, 0.9999, 1 - 1e-6, 1 - 1e-12])
SIGMOID = Weight(lambda z: 1 / (1 + np.exp(-np.clip(3 * z, -700, 700))))
LOSSES = {
    "sigmoid": SquaredError(SIGMOID),
    "softplus": SquaredError(Weight(lambda z: np.logaddexp(0, 2 * z))),
    "bregman": BregmanLoss(Square()),
    "linex": Linex(0.8, SIGMOID),
}


def contexts(count=6):
    rng = np.random.default_rng(5)
    return rng.normal(0, 1.5, count), rng.uniform(0.05, 2.0, count)


def general(loss, belief):
    """EUR_c / rho of each context by the general route."""
    reduction = GENERAL.prepare(loss, belief)
    of, log_scale = reduction
    return of(belief) / RHO[:, None], log_scale


def candidates(mean, variance):
    return GaussianBelief(mean, variance, np.ones(len(RHO)), np.sqrt(RHO[:, None] * variance))


@pytest.mark.parametrize("name", LOSSES)
def test_regrets_are_those_of_the_general_route_at_all_rho(name):
    belief = candidates(*contexts())
    assert belief.shared_split(LOSSES[name]) is not None
    values, log_scale, _ = tabulator(LOSSES[name], belief.resolved(LOSSES[name]), belief, lambda table: table)
    wanted, scale = general(LOSSES[name], belief)
    np.testing.assert_allclose(log_scale, scale, atol=1e-12)
    np.testing.assert_allclose(values(RHO), wanted, rtol=3e-8)


def test_under_a_warp_too():
    mean, variance = contexts()
    belief = WarpedGaussianBelief(candidates(0.3 * mean, 0.2 * variance), LogWarp())
    loss = SquaredError(SIGMOID)
    under = lambda table: WarpedGaussianBelief(table, LogWarp())  # noqa: E731
    values, log_scale, _ = tabulator(loss, belief.resolved(loss), belief.latent, under)
    wanted, scale = general(loss, belief)
    np.testing.assert_allclose(log_scale, scale, atol=1e-12)
    np.testing.assert_allclose(values(RHO), wanted, rtol=3e-8)


@pytest.mark.parametrize("rho", RHO)
def test_moments_add_up_to_those_of_today(rho, xp, host):
    mean, variance = (xp.asarray(each) for each in contexts())
    loss = SquaredError(Weight(lambda z: 1 / (1 + xp.exp(-2 * z))))
    belief = GaussianBelief(mean, variance, xp.ones(1, dtype=mean.dtype), xp.zeros((1, 6), dtype=mean.dtype))
    split = belief.shared_split(loss)
    total = np.concatenate([host(moments).sum(1) for _, moments in split.moments(rho)])
    np.testing.assert_allclose(total, host(belief.moments(loss, split.reference)), rtol=1e-8, atol=1e-12)


def test_what_is_not_smooth_or_too_far_apart_shares_no_nodes():
    mean, sd = np.array([0.0, 1.0]), np.ones(2)

    def shared(loss, sd):
        return shared_split(resolved(loss, mean, sd), mean, sd)

    assert shared(SquaredError(Weight(lambda z: np.where(z > 0, 2.0, 1.0), breakpoints=(0.0,))), sd) is None
    steep = Weight(lambda z: np.exp(40 * z), log=lambda z: 40 * z)
    assert shared(SquaredError(steep), np.array([1.0, 0.01])) is None
    assert shared(SquaredError(), sd) is not None
