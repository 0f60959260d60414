"""A loss of one's own: what the protocol asks for is enough for right results, and what is missing is named."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from stakes import (
    AccuracyWarning,
    ExponentialWeight,
    GaussianBelief,
    LogWarp,
    NormalEnsemble,
    ThresholdDecision,
    WarpedGaussianBelief,
    expected_reduction,
    expected_regret,
    score,
    select,
)
from stakes.exceptions import StakesError
from stakes.losses import (
    CRPS,
    BoxCox,
    DistributionLoss,
    Exponential,
    ExponentialLinearWeight,
    Linex,
    LogLoss,
    Loss,
    SquaredError,
    ZeroOne,
)
from stakes.losses.base import missing_members
from stakes.testing import _check_continuity, check_loss

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
ActAbove = runpy.run_path(str(EXAMPLES / "own_decision.py"))["ActAbove"]
NormalLogScore = runpy.run_path(str(EXAMPLES / "own_loss.py"))["NormalLogScore"]
SAME = ThresholdDecision(2.0, 5.0, 1.0)


def gaussian(rng, n_candidates=30, n_contexts=6, shift=0.0):
    mean, variance = rng.normal(2.0 + shift, 1.5, n_contexts), rng.gamma(2.0, 0.5, n_contexts)
    rho = rng.uniform(0.01, 0.995, (n_candidates, n_contexts))
    return GaussianBelief(mean, variance, np.ones(n_candidates), np.sqrt(rho * variance))


def test_the_decision_of_the_page_is_right_under_a_gaussian_belief(rng):
    for n_candidates in (30, 200):  # few enough to be integrated one by one, and so many that there is a table
        belief = gaussian(rng, n_candidates)
        wanted = expected_reduction(SAME, belief)
        np.testing.assert_allclose(expected_reduction(ActAbove(), belief), wanted, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(expected_regret(ActAbove(), belief), wanted, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(score(ActAbove(), belief), score(SAME, belief), rtol=1e-6)


def test_the_decision_of_the_page_is_right_under_other_beliefs(rng):
    warped = WarpedGaussianBelief(gaussian(rng, shift=-1.5), LogWarp())
    ensemble = NormalEnsemble(rng.normal(2, 1, (5, 4)), 0.5, rng.normal(2, 1, (3, 4)), 0.7)
    for belief in (warped, ensemble):
        np.testing.assert_allclose(score(ActAbove(), belief), score(SAME, belief), rtol=1e-6)


def test_the_decision_of_the_page_is_chosen_for_in_batches(rng):
    root = rng.normal(size=(9, 9))
    joint = root @ root.T + 0.1 * np.eye(9)
    belief = GaussianBelief(np.full(3, 1.5), np.diag(joint)[6:], np.diag(joint)[:6], joint[:6, 6:], joint[:6, :6])
    own, same = (select(loss, belief, n=3) for loss in (ActAbove(), SAME))
    assert own.indices == same.indices
    np.testing.assert_allclose(own.joint_reduction, same.joint_reduction, rtol=1e-6)


class Undeclared(ActAbove):
    """As it was written before the protocol asked."""

    finite_actions = False


def test_undeclared_it_would_be_wrong(rng):
    """Why the protocol asks: not a property to keep, but the size of the error that the law is there to catch."""
    belief = gaussian(rng)
    with pytest.warns(AccuracyWarning, match="finite_actions = True"):
        found, wanted = (expected_regret(loss, belief) for loss in (Undeclared(), SAME))
    some = wanted > 1e-6
    assert np.median(abs(found[some] / wanted[some] - 1.0)) > 1e-4
    with pytest.warns(AccuracyWarning, match="finite_actions = True"):
        expected_reduction(Undeclared(), belief)
    with pytest.raises(AssertionError, match="finite actions: the act jumps as the belief moves"):
        check_loss(Undeclared(), [-1.0, 1.0, 1.9, 2.1, 4.0])


@pytest.mark.parametrize("miss", [1e-6, 0.01, 1.0, 300.0, 1e6])
def test_the_law_finds_a_jump_wherever_it_is(miss):
    class Rare(ThresholdDecision):
        finite_actions = False

    with pytest.raises(AssertionError, match="finite actions"):
        check_loss(Rare(0.5, miss, 1.0), [-1.0, 0.0, 0.2, 3.0])
    check_loss(ThresholdDecision(0.5, miss, 1.0), [-1.0, 0.0, 0.2, 3.0])


def test_the_law_does_not_mistake_a_steep_act_for_a_jump():
    z, parts = np.array([0.0, 1.0, 3.0]), np.random.default_rng(0).dirichlet(np.ones(3), 8)
    for rate in (3.0, 30.0, 200.0):  # the heaviest target outweighs the lightest by exp(600)
        loss = SquaredError(ExponentialWeight(rate))
        _check_continuity(loss, loss.statistics(z), parts)


class Negative(ActAbove):
    def statistics(self, z, reference=None):
        return self.costs(z) - 1.0


class MostExpensive(ActAbove):
    def action(self, moments):
        return np.argmax(moments, axis=-1, keepdims=True)

    def regret(self, moments, action, reference=None):
        return moments.max(axis=-1) - super().regret(moments, action) - moments.min(axis=-1)


@pytest.mark.parametrize(("loss", "law"), [(Negative(), "at least 0"), (MostExpensive(), "regret|cheapest")])
def test_declared_costs_are_costs(loss, law):
    with pytest.raises(AssertionError, match=law):
        check_loss(loss, [-1.0, 1.0, 1.9, 2.1, 4.0])


def test_every_loss_says_whether_its_actions_are_finite():
    for loss, finite in ((SquaredError(), False), (LogLoss(), False), (CRPS(), False), (ZeroOne(), True), (SAME, True)):
        assert loss.finite_actions is finite
        assert isinstance(loss, DistributionLoss if isinstance(loss, CRPS) else Loss)


def test_a_loss_that_does_not_say_is_refused_by_name():
    class Silent:
        pass

    for name in vars(NormalLogScore):
        if not name.startswith("__") or name == "__call__":
            setattr(Silent, name, vars(NormalLogScore)[name])
    del Silent.finite_actions
    assert missing_members(Silent(), Loss) == ["finite_actions"]
    with pytest.raises(TypeError, match=r"which lacks finite_actions. docs/adding_a_loss\.md shows how"):
        score(Silent(), gaussian(np.random.default_rng(0)))


@pytest.mark.parametrize(
    "loss",
    [
        lambda: Linex(1e308),
        lambda: Linex(-1e200),
        lambda: Linex(1.0, ExponentialWeight(1e308)),
        lambda: BoxCox(1e308),
        lambda: ExponentialLinearWeight([1.0, 1e308]),
        lambda: Exponential(1e308),
        lambda: ThresholdDecision(0.0, miss=1e308),
        lambda: ThresholdDecision(0.0, 1e308, 1e308),
    ],
)
def test_a_size_that_no_number_holds_is_refused_at_the_door(loss):
    """Their products and sums would be infinite, or end in an OverflowError."""
    with pytest.raises(StakesError, match="at most"):
        loss()
