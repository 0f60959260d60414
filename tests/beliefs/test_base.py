"""A belief of one's own that has `start_batch` is chosen from jointly, as our own are."""

import runpy
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from stakes import BrierLoss, CategoricalEnsemble, CostMatrix, LogLoss, SquaredError, ZeroOne, outlook, rank, select
from stakes.acquisition import fallback_scores
from stakes.beliefs import BatchBelief, GaussianBelief
from stakes.testing import check_belief

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
Hypotheses = runpy.run_path(str(EXAMPLES / "own_batch.py"))["Hypotheses"]
LOSSES = [LogLoss(), LogLoss([1, 4]), BrierLoss(), ZeroOne(), CostMatrix([[0, 1], [6, 0]])]


def hypotheses(rng, n_tests=5, n_outcomes=3, n_contexts=4, k=6):
    outcomes = np.swapaxes(rng.dirichlet(np.full(n_outcomes, 0.5), (n_tests, k)), 1, 2)
    return Hypotheses(rng.dirichlet(np.ones(k)), outcomes, rng.dirichlet([0.5, 0.5], (n_contexts, k)))


def enumerated(loss, belief, batch, weights=None):
    """The joint reduction from the definition: every outcome of every test of the batch, one after the other."""

    def best(probabilities):
        """[M]: the smallest expected loss at contexts with probabilities [M, C] of any total mass."""
        moments = loss.statistics(np.eye(2)[None], None)
        expected = (probabilities @ moments[0])[:, :]
        action = loss.action(expected)
        return sum(probabilities[:, z] * loss.pointwise(np.eye(2)[z], action) for z in range(2))

    total = best(np.einsum("k,mkc->mc", belief.prior, belief.classes))
    for labels in product(range(belief.outcomes.shape[1]), repeat=len(batch)):
        weight = belief.prior.copy()
        for n, y in zip(batch, labels, strict=True):
            weight = weight * belief.outcomes[n, y]
        total = total - best(np.einsum("k,mkc->mc", weight, belief.classes))
    return float(np.average(total, weights=weights))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_joint_reductions_are_those_of_the_definition(rng, loss):
    belief, weights = hypotheses(rng), [1.0, 2.0, 0.0, 3.0]
    assert isinstance(belief, BatchBelief)
    chosen = select(loss, belief, n=3, context_weights=weights)
    assert chosen.method == "exact"
    assert np.all(chosen.sampling_error == 0)
    for t in range(3):
        wanted = enumerated(loss, belief, chosen.indices[: t + 1], weights)
        np.testing.assert_allclose(chosen.joint_reduction[t], wanted, rtol=1e-9, atol=1e-12)
        others = [n for n in range(5) if n not in chosen.indices[:t]]
        most = max(enumerated(loss, belief, (*chosen.indices[:t], n), weights) for n in others)
        if "gain" in chosen.ranked_by[t]:
            np.testing.assert_allclose(wanted, most, rtol=1e-9)
    best = max(enumerated(loss, belief, batch, weights) for batch in combinations(range(5), 3))
    assert chosen.joint_reduction[2] >= 0.63 * best


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_it_chooses_what_an_ensemble_of_the_same_numbers_does(rng, loss):
    soft = rng.dirichlet([0.4, 0.4], (9, 7))
    ensemble = CategoricalEnsemble(soft[:6], soft[6:])
    own = Hypotheses(np.full(7, 1 / 7), np.swapaxes(soft[:6], 1, 2), soft[6:])
    theirs, ours = select(loss, ensemble, n=4), select(loss, own, n=4)
    count = 4 if set(theirs.ranked_by) == {"gain"} else 1  # then by repeats of a label, which only theirs has
    assert count
    assert ours.indices[:count] == theirs.indices[:count]
    np.testing.assert_allclose(ours.joint_reduction[:count], theirs.joint_reduction[:count], rtol=1e-9)
    np.testing.assert_allclose(ours.context_error[:count], theirs.context_error[:count], rtol=1e-6)


def test_pending_labels_costs_and_draws(rng):
    belief = hypotheses(rng)
    chosen = select(LogLoss(), belief, n=2, pending=[1], costs=[1, 1, 2, 3, 9.0], budget=4.0)
    assert 1 not in chosen.indices
    before = enumerated(LogLoss(), belief, (1,))
    after = enumerated(LogLoss(), belief, (1, *chosen.indices))
    np.testing.assert_allclose(chosen.joint_reduction[-1], after - before, rtol=1e-9)
    drawn = select(LogLoss(), belief, n=2, stochastic="power", random_state=np.random.default_rng(1))
    np.testing.assert_allclose(drawn.joint_reduction[-1], enumerated(LogLoss(), belief, drawn.indices), rtol=1e-9)


def test_where_no_label_is_worth_anything_variance_decides():
    """Acting is right whatever one test says: the first pick is by variance, of what the batch leaves."""
    outcomes = np.array([[[0.5, 0.6], [0.5, 0.4]], [[0.3, 0.7], [0.7, 0.3]], [[0.5, 0.5], [0.5, 0.5]]])
    belief = Hypotheses(np.array([0.5, 0.5]), outcomes, np.array([[[0.05, 0.95], [0.2, 0.8]]]))
    scores, n_labels = fallback_scores(ZeroOne(), belief)
    assert n_labels is None
    assert np.argmax(scores) == 1
    chosen = select(ZeroOne(), belief, n=3)
    assert chosen.indices == (1, 0, 2)
    assert set(chosen.ranked_by) == {"variance reduction"}


def test_rank_and_outlook_take_its_batches(rng):
    belief = hypotheses(rng)

    class Model:
        def belief(self, pool, contexts):
            return replace(belief, outcomes=belief.outcomes[pool[:, 0].astype(int)])

    pool, contexts = np.arange(5.0)[:, None], np.zeros((4, 1))
    ranking = rank(Model(), LogLoss(), pool, contexts=contexts, n=3, batch=True)
    assert tuple(ranking.indices) == select(LogLoss(), belief, n=3).indices
    ahead = outlook(Model(), LogLoss(), pool, contexts=contexts, n=3)
    np.testing.assert_allclose(ahead.offers[-1].worth, enumerated(LogLoss(), belief, ranking.indices), rtol=1e-9)


def test_the_laws_of_batches(rng):
    belief = hypotheses(rng)
    check_belief(belief)

    class Forgets(Hypotheses):
        """The batch takes the place of the label, rather than coming with it."""

        def start_batch(self, candidates):
            return replace(self, outcomes=self.outcomes[[*candidates, 0][:1] * self.n_candidates])

    class Adds(Hypotheses):
        def start_batch(self, candidates):
            return replace(self, prior=self.prior * (1.0 + 0.1 * len(candidates)))

    for wrong, law in ((Forgets, "batches: "), (Adds, "batches: the same belief about targets")):
        with pytest.raises(AssertionError, match=law):
            check_belief(wrong(belief.prior, belief.outcomes, belief.classes))


def test_a_method_of_its_own_comes_before_that_of_its_type():
    class Own(GaussianBelief):
        def start_batch(self, candidates):
            raise RuntimeError(f"asked for {candidates}")

    belief = Own([0.0], [1.0], [1.0, 2.0], [[0.5], [0.6]], np.diag([1.0, 2.0]))
    with pytest.raises(RuntimeError, match=r"asked for \(0,\)"):
        select(SquaredError(), belief, n=2)
