"""Joint draws as a belief: its laws, and what it refuses."""

import numpy as np
import pytest

from stakes import CostMatrix, LogLoss, SquaredError, ThresholdDecision, rank, score, select
from stakes.beliefs import DrawsBelief
from stakes.exceptions import StakesError
from stakes.losses import POSITIVE, Classes, Vectors
from stakes.testing import check_belief

RNG = np.random.default_rng(0)
MEAN = RNG.normal(size=(4, 60))  # [N, K]
LABELS = MEAN + RNG.normal(size=MEAN.shape)


def likelihood(y, rows):
    return -0.5 * (y[:, :, None] - MEAN[rows][:, None, :]) ** 2


def table(outcomes=slice(None)):
    return likelihood(LABELS, np.arange(4))[:, outcomes]


@pytest.mark.parametrize(
    ("targets", "domain", "losses"),
    [
        (MEAN[:3], None, [SquaredError(), ThresholdDecision(0.2, 1.0, 3.0)]),
        (np.exp(MEAN[:3]), POSITIVE, [SquaredError()]),
        ((MEAN[:3] > 0).astype(int), Classes(2), [LogLoss(), CostMatrix([[0, 1], [5, 0]])]),
        (RNG.dirichlet(np.ones(3), size=(3, 60)), Classes(), [LogLoss()]),
        (np.stack([MEAN[:3], MEAN[1:]], axis=-1), Vectors(2), [None]),
    ],
    ids=["numbers", "positive", "classes", "probabilities", "vectors"],
)
def test_laws(targets, domain, losses):
    belief = DrawsBelief(LABELS, targets, likelihood, **({} if domain is None else {"domain": domain}))
    for loss in losses:  # labels of a batch are gone through by the same few draws, so that they may seem to tell less
        check_belief(belief, loss, rtol=0.3 if domain == Classes(2) else 1e-6)


def test_a_table_of_likelihoods_is_as_good_as_the_function():
    by_function, by_table = (DrawsBelief(LABELS, MEAN, each) for each in (likelihood, table()))
    np.testing.assert_allclose(score(SquaredError(), by_function), score(SquaredError(), by_table), rtol=1e-12)
    np.testing.assert_allclose(
        by_function.take(slice(1, 3), slice(None)).tabulated().log_weights(), by_function.log_weights()[1:3], rtol=1e-12
    )


def test_some_outcomes_stand_for_all():
    few = DrawsBelief(LABELS, MEAN, likelihood, outcomes=20)
    assert few.n_cells(SquaredError()) == 20
    assert few.log_weights().shape == (4, 20, 60)
    every, some = score(SquaredError(), DrawsBelief(LABELS, MEAN, likelihood)), score(SquaredError(), few)
    assert np.all(np.abs(every - some) < 0.5 * every.max())
    check_belief(few, rtol=0.1)


def test_likelihoods_of_a_batch_multiply():
    belief = DrawsBelief(LABELS, MEAN, likelihood).start_batch((1, 2))
    each = likelihood(LABELS, np.arange(4))
    joint = each[0] + each[1] + each[2]
    np.testing.assert_allclose(np.exp(belief.log_weights()[0]).sum(axis=1), 1.0)
    shifted = belief.log_weights()[0] - joint
    np.testing.assert_allclose(shifted - shifted[:, :1], 0.0, atol=1e-9)


def test_labels_are_chosen_together():
    """Two candidates have the same label; the batch takes one of them, and the other that is worth less alone."""
    rng = np.random.default_rng(1)
    f = rng.normal(size=(2, 300)) * [[1.0], [0.7]]
    mean = f[[0, 0, 1]]
    labels = mean + 0.1 * rng.normal(size=f.shape)[[0, 0, 1]]
    belief = DrawsBelief(labels, f, lambda y, rows: -50.0 * (y[:, :, None] - mean[rows][:, None, :]) ** 2)
    chosen = select(SquaredError(), belief, n=2)
    assert set(chosen.indices) in ({0, 2}, {1, 2})
    assert 0.35 < chosen.joint_reduction[0] < chosen.joint_reduction[1]


def test_rank_takes_a_model_of_draws():
    slopes = np.random.default_rng(2).normal(size=200)

    class Line:
        def belief(self, pool, contexts):
            mean = pool * slopes  # [N, K]
            labels = mean + 0.5 * np.random.default_rng(3).normal(size=mean.shape)
            return DrawsBelief(
                labels, contexts * slopes, lambda y, r: -2.0 * (y[:, :, None] - mean[r][:, None, :]) ** 2
            )

    pool = np.array([[0.1], [2.0], [0.5]])
    assert rank(Line(), SquaredError(), pool, n=1).indices == (1,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": LABELS[0]}, r"labels must have shape \[N, K\]"),
        ({"targets": MEAN.T}, "Its axes are swapped, by their sizes"),
        ({"targets": MEAN[:0]}, r"targets must have shape \[M, K\]"),
        ({"targets": np.full((1, 60), np.nan)}, "targets must be finite"),
        ({"domain": POSITIVE}, "targets must lie in"),
        ({"domain": Classes()}, "say how many classes there are"),
        ({"log_likelihood": table()[:, :5]}, r"an array \[N, K, K\] = \[4, 60, 60\]"),
        ({"outcomes": 0}, "outcomes must be a whole number, 1 or more"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(StakesError, match=message):
        DrawsBelief(**{"labels": LABELS, "targets": MEAN, "log_likelihood": likelihood, **change})


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y, rows: likelihood(y, rows)[..., :5], r"must give \[4, 60, 60\]"),
        (lambda y, rows: likelihood(y, rows) * np.nan, "finite or -inf"),
        (lambda y, rows: np.full((len(rows), y.shape[1], 60), -np.inf), "for 240 of 240 labels it is not"),
    ],
)
def test_likelihoods_are_checked(function, message):
    with pytest.raises(StakesError, match=message):
        score(SquaredError(), DrawsBelief(LABELS, MEAN, function))
