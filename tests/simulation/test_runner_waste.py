"""Nothing is done twice in a run: one fit for what is known alike, one belief for it, no look at what is labelled."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from stakes.simulation import Trial
from tests.simulation.simulation_cases import BayesianLine, committees, lines, same
from tests.simulation.trial_cases import noisy_line, trials


class Counting(BayesianLine):
    """A line that writes down the data of each fit, and how many candidates and contexts each belief was about."""

    fits: ClassVar[list[tuple[bytes, bytes]]] = []
    beliefs: ClassVar[list[tuple[int, int]]] = []

    def fit(self, X, y):
        self.fits.append((np.asarray(X).tobytes(), np.asarray(y).tobytes()))
        return BayesianLine.fit(self, X, y)

    def belief(self, pool, contexts):
        self.beliefs.append((len(pool), len(contexts)))
        return BayesianLine.belief(self, pool, contexts)


@pytest.fixture
def counting():
    Counting.fits.clear()
    Counting.beliefs.clear()
    return Counting()


def by_label(belief, _loss, _random_state):
    return belief.candidate_variance


def judged_by_contexts(rng):
    """As noisy_line, but contexts are the test rows."""
    trial = noisy_line(rng)
    return Trial(trial.X, trial.y, trial.initial, trial.pool, trial.test, trial.test)


def test_the_start_is_fitted_once_and_each_choice_after_it_once(counting):
    found = trials(model=counting, strategies=["random", ("mine", by_label)], n=3, runs=1)
    assert not np.array_equal(*found.acquired[:, 0, :1])  # they part at once
    assert len(counting.fits) == 1 + 2 * 3
    assert max(Counter(counting.fits).values()) == 1


def test_strategies_that_buy_the_same_rows_share_their_fits_and_beliefs(counting):
    found = trials(model=counting, strategies=["plain", "loss", "random"], runs=2)
    assert np.array_equal(found.acquired[0], found.acquired[1])  # the loss is the plain one
    assert not np.array_equal(found.acquired[1, :, 0], found.acquired[2, :, 0])
    assert max(Counter(counting.fits).values()) == 1
    assert len(counting.fits) == 2 * (1 + 2 * 3)
    alone = trials(strategies=["loss"], runs=2)
    assert np.array_equal(found.acquired[1:2], alone.acquired)
    assert np.array_equal(found.losses["loss"][1:2], alone.losses["loss"])


def test_random_labels_need_no_belief_about_the_pool(counting):
    trials(model=counting, strategies=["random"], n=3, runs=2)
    assert counting.beliefs == [(1, 7)] * 8  # the test rows, before the first label and after each


def test_labelled_rows_are_not_scored_again(counting):
    trials(model=counting, strategies=["loss"], n=3, runs=1)
    assert [each for each in counting.beliefs if each[1] == 5] == [(7, 5), (6, 5), (5, 5)]


def test_one_belief_judges_and_chooses_where_contexts_are_the_test_rows(counting):
    found = trials(judged_by_contexts, model=counting, strategies=["loss", "random"], n=3, runs=1)
    chosen = [each for each in counting.beliefs if each[0] > 1]
    assert chosen == [(7, 7), (6, 7), (5, 7)]
    assert counting.beliefs.count((1, 7)) == 1 + 4  # the last of "loss", which buys no more, and those of "random"
    apart = [trials(judged_by_contexts, strategies=[name], n=3, runs=1) for name in ("loss", "random")]
    for place, each in enumerate(apart):
        assert np.array_equal(found.losses["loss"][place], each.losses["loss"][0])
        assert np.array_equal(found.acquired[place], each.acquired[0])


@pytest.mark.parametrize("simulation", [lines, committees])
def test_a_strategy_comes_to_the_same_whoever_runs_beside_it(simulation):
    together = simulation(strategies=["random", "plain", "loss"])
    for place, name in enumerate(together.strategies):
        alone = simulation(strategies=[name])
        assert all(np.array_equal(alone.losses[each][0], together.losses[each][place]) for each in alone.losses)
        assert np.array_equal(alone.acquired[0], together.acquired[place])


def test_half_a_run_in_the_store_is_made_whole(tmp_path):
    whole = lines(store=tmp_path, runs=2)
    (tmp_path / "run00000-strategy01.npz").unlink()
    (tmp_path / "run00001-strategy02.npz").unlink()
    assert same(lines(store=tmp_path, runs=2), whole)
