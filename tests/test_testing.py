"""The laws catch what they are there to catch: broken losses and beliefs, each by the law it breaks."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from stakes import (
    CRPS,
    CategoricalEnsemble,
    CostMatrix,
    ExponentialWeight,
    FiniteActions,
    LogLoss,
    SquaredError,
    Weight,
)
from stakes.beliefs import Belief
from stakes.losses import Identity, Square, WeightedBregman
from stakes.testing import check_belief, check_loss
from tests.brute import random_table

TARGETS = [-1.0, 0.3, 0.9, 2.0]


class Base(WeightedBregman):
    potential, transform, weight = Square(), Identity(), ExponentialWeight(0.3)


class FlatStatistics(Base):
    def statistics(self, z, reference=None):
        return super().statistics(z, reference)[..., 0]


class MedianAct(Base):
    def action(self, moments):
        return super().action(moments) + 0.1


class DoubledRegret(Base):
    def regret(self, moments, action, reference=None):
        return 2 * super().regret(moments, action, reference)

    def pointwise(self, z, action, reference=None):
        return super().regret(self.statistics(z, reference), action, reference)


class NormalisedRegret(Base):
    def regret(self, moments, action, reference=None):
        return super().regret(moments / moments[..., :1].sum(-1, keepdims=True), action, reference)

    def pointwise(self, z, action, reference=None):
        return super().regret(self.statistics(z, reference), action, reference)


class ForgetsTheReference(Base):
    def prediction(self, action, reference=None):
        del reference
        return action[..., 0]


class OtherUnits(Base):
    def __call__(self, z, prediction):
        return 2 * super().__call__(z, prediction)


@pytest.mark.parametrize(
    ("loss", "law"),
    [
        (FlatStatistics(), "statistics"),
        (MedianAct(), "regret|units"),
        (DoubledRegret(), "regret: mean loss"),
        (NormalisedRegret(), "regret"),
        (ForgetsTheReference(), "units|reference"),
        (OtherUnits(), "units"),
        (object(), "lacks a method"),
    ],
)
def test_a_broken_loss_is_caught(loss, law):
    check_loss(Base(), TARGETS)
    with pytest.raises((AssertionError, IndexError), match=law if type(loss) is not FlatStatistics else None):
        check_loss(loss, TARGETS)


@pytest.mark.parametrize(
    ("loss", "place"),
    [
        (lambda points: SquaredError(Weight(lambda z: np.where(z > 1.25, 10.0, 1.0), breakpoints=points)), 1.25),
        (lambda points: FiniteActions(lambda z: np.stack([0 * z, (z < 0.1) * 5.0], axis=-1), breakpoints=points), 0.1),
        (lambda points: CRPS(Weight(lambda z: np.where(z > 0.7, 3.0, 1.0), breakpoints=points)), 0.7),
        (lambda points: SquaredError(Weight(lambda z: 1.0 + np.floor(z), breakpoints=points)), 1.0),
    ],
    ids=["weight", "actions", "distribution", "floor"],
)
def test_a_jump_that_is_not_declared_is_caught(loss, place):
    targets = [0.05, 0.3, 0.9, 1.7]
    check_loss(loss((place,)), targets)
    with pytest.raises(AssertionError, match=f"breakpoints: statistics jump at {place:g}, which breakpoints \\(\\) do"):
        check_loss(loss(()), targets)
    with pytest.raises(AssertionError, match=f"jump at {place:g}"):
        check_loss(loss((place + 0.01,)), targets)


def test_steep_weights_and_kinks_are_no_jumps():
    for slope in (1.0, 30.0, 1e5):
        check_loss(SquaredError(Weight(lambda z, slope=slope: 2.0 + np.tanh(slope * (z - 0.51)))), TARGETS)
    check_loss(SquaredError(Weight(lambda z: 1.0 + np.maximum(z, 0.0))), TARGETS)


def test_extreme_weights_pass_the_laws():
    check_loss(SquaredError(ExponentialWeight(1.0)), [100.0, 103.0, 107.0])
    check_loss(SquaredError(ExponentialWeight(-1.0)), [100.0, 103.0, 107.0])


def table(rng):
    return random_table(rng, TARGETS)


def wrong(belief, **methods):
    """A belief that does one thing wrong; each member is there by itself, where checks of protocols look for it."""
    members = {name: getattr(belief, name) for name in vars(Belief) if not name.startswith("_")}
    return SimpleNamespace(**members | {name: partial(method, belief) for name, method in methods.items()})


def test_a_broken_belief_is_caught(rng):
    belief = table(rng)
    check_belief(belief)
    broken = [
        ("moments: \\[M, D\\]", {"moments": lambda b, i, r: b.moments(i, r)[0]}),
        ("split moments: \\[N, M, J, D\\]", {"split_moments": lambda b, i, r: b.split_moments(i, r)[:, :1]}),
        ("split: sums to moments", {"split_moments": lambda b, i, r: 0.5 * b.split_moments(i, r)}),
        ("no more than n_cells", {"n_cells": lambda *_: 1}),
        ("blocks: take", {"take": lambda b, n, m: b.take(slice(0, n.stop - n.start if n.stop else None), m)}),
    ]
    for law, methods in broken:
        with pytest.raises(AssertionError, match=law):
            check_belief(wrong(belief, **methods))
    heavier = replace(belief, joint=2 * belief.joint)
    with pytest.raises(AssertionError, match="total mass: the moment of 1"):
        check_belief(heavier)
    with pytest.raises(AssertionError, match="lacks a method"):
        check_belief(np.zeros(3))


def test_a_negative_mass_is_caught(rng):
    belief = table(rng)
    joint = belief.joint.copy()
    joint[:, :, 0] -= 0.3 * joint.sum(2)
    joint[:, :, 1] += 0.3 * belief.joint.sum(2)
    with pytest.raises(AssertionError, match=r"no cell has negative mass|less than nothing"):
        check_belief(replace(belief, joint=joint))


def test_losses_with_gains_pass_the_laws_of_beliefs(rng):
    soft = rng.dirichlet(np.ones(3), (7, 4))
    belief = CategoricalEnsemble(soft[:4], soft[4:])
    check_belief(belief, CostMatrix([[0, -10], [5, 0], [2, 3]]))
    check_belief(belief, LogLoss([1, 0, 30]))
