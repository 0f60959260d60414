"""Trials drawn by a function: the same loop, the same for all strategies of a run, rows by position."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stakes.simulation import Trial
from tests.simulation.simulation_cases import COSTS, WEIGHTED, BayesianLine, Committee, committees, lines, same
from tests.simulation.trial_cases import GRID, noisy_line, per_class, trials

SEEN = []


class Recording(BayesianLine):
    """Notes what it is fitted to, and asked about."""

    def fit(self, X, y):
        SEEN.append((np.asarray(X).copy(), np.asarray(y).copy()))
        return BayesianLine.fit(self, X, y)

    def belief(self, pool, contexts):
        SEEN.append(len(pool))
        return BayesianLine.belief(self, pool, contexts)


BEFORE = {  # results of simulate before there were trials: rows bought, and losses after the last label
    "lines": (
        [[[42, 47, 46], [9, 35, 41]], [[15, 46, 16], [4, 20, 46]], [[46, 15, 20], [24, 4, 20]]],
        [
            [0.3756823577494177, 0.70667175428985],
            [0.24425596074129802, 0.36972474630354113],
            [0.2760113195971762, 0.223133616717138],
        ],
    ),
    "committees": (
        [
            [[52, 63, 75, 53], [11, 45, 49, 27]],
            [[73, 47, 15, 66], [27, 45, 34, 77]],
            [[73, 47, 15, 66], [27, 45, 77, 76]],
        ],
        [
            [0.444444923519276, 0.654276998150488],
            [0.41059370117164956, 0.641843310189731],
            [0.41059370117164956, 0.6523562998616976],
        ],
    ),
}


@pytest.mark.parametrize(("simulation", "metric"), [(lines, "loss"), (committees, "plain")])
def test_a_split_table_gives_what_it_always_gave(simulation, metric):
    rows, losses = BEFORE[simulation.__name__]
    found = simulation()
    assert found.acquired.tolist() == rows
    np.testing.assert_allclose(found.losses[metric][:, :, -1], losses, rtol=1e-12)


@pytest.mark.parametrize(
    ("simulation", "arguments"),
    [
        (lines, {"loss": WEIGHTED}),
        (committees, {"loss": COSTS, "model": Committee(classes=("a", "b", "c")), "n": 4}),
    ],
)
def test_a_split_table_is_a_case_of_trials(simulation, arguments):
    split = simulation()
    drawn = iter(split.trials)
    found = trials(lambda rng: next(drawn), **arguments)
    names = ("losses", "acquired", "bought", "initial", "initial_targets", "classes", "versions")
    assert {name: found.to_dict()[name] for name in names} == {name: split.to_dict()[name] for name in names}


def test_a_trial_is_drawn_once_for_each_run_and_shared_by_its_strategies():
    drawn = []

    def counted(rng):
        drawn.append(noisy_line(rng))
        return drawn[-1]

    found = trials(counted, runs=3)
    assert list(found.trials) == drawn
    assert len({each.y[0] for each in drawn}) == 3  # noise of its own in each run
    assert (found.losses["loss"][:, :, 0] == found.losses["loss"][:1, :, 0]).all()
    again = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(2, 0)))
    assert (noisy_line(again).y[:9] == drawn[2].y[:9]).all()


def test_curves_of_trials_against_a_loop_written_out():
    found = trials(runs=2, strategies=["loss"], n=4, random_state=7)
    for run, trial in enumerate(found.trials):
        labelled, pool = [5, 2], [0, 1, 3, 4, 6, 7, 8]
        for step in range(5):
            design = trial.X[labelled]
            covariance = np.linalg.inv(design.T @ design / 0.1 + np.eye(2))
            mean = covariance @ design.T @ trial.y[labelled] / 0.1
            truth = 1.0 + 2.0 * np.linspace(-2.0, 2.0, 7)
            assert found.losses["loss"][0, run, step] == pytest.approx(np.mean((truth - trial.X[14:] @ mean) ** 2))
            if step < 4:
                variance = np.sum(trial.X @ covariance * trial.X, axis=1) + 0.1
                gains = np.sum((trial.X[pool] @ covariance @ trial.X[9:14].T) ** 2, axis=1) / variance[pool]
                labelled.append(pool.pop(int(np.argmax(gains))))
        assert found.acquired[0, run].tolist() == labelled[2:]
        assert found.bought[0, run].tolist() == trial.y[labelled[2:]].tolist()


@given(st.data())
@settings(deadline=None, max_examples=10)
def test_rows_reach_the_model_in_the_order_in_which_they_were_labelled(data):
    order = data.draw(st.permutations(range(9)))
    first, n = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    X, y = np.stack([np.ones(9), GRID], axis=1), GRID**2
    parts = {"contexts": data.draw(st.lists(st.integers(0, 8), min_size=1)), "test": [0, 8]}
    SEEN.clear()
    found = trials(lambda rng: Trial(X, y, order[:first], order[first:], **parts), model=Recording(), runs=1, n=n)
    fits = [each for each in SEEN if isinstance(each, tuple)]
    known = {(*order[:first], *bought[:step]) for bought in found.acquired[:, 0] for step in range(n + 1)}
    wanted = {(X[list(rows)].tobytes(), y[list(rows)].tobytes()) for rows in known}
    assert {(rows.tobytes(), labels.tobytes()) for rows, labels in fits} == wanted
    assert len(fits) == len(known)  # no fit but those of the loops, and none twice
    for bought in found.acquired[:, 0]:
        assert len(set(bought)) == n
        assert set(bought) <= set(order[first:])


def test_random_choice_asks_the_model_for_no_belief_about_the_pool():
    SEEN.clear()
    trials(model=Recording(), runs=1, strategies=["random"])
    assert [each for each in SEEN if isinstance(each, int)] == [1, 1, 1, 1]  # one stands in, to measure the loss
    SEEN.clear()
    trials(model=Recording(), runs=1, strategies=["loss"])
    assert [each for each in SEEN if isinstance(each, int)] == [1, 7, 1, 6, 1, 5, 1]


def test_classes_by_trial():
    model = Committee(classes=("a", "b", "c"))
    found = trials(per_class, loss=COSTS, model=model, n=6)
    assert found.classes == ("a", "b", "c")
    names = np.asarray(found.classes)
    for run, trial in enumerate(found.trials):
        assert names[found.targets[run][trial.initial]].tolist() == list("aabbcc")
        assert (names[found.bought[:, run]] == trial.y[found.acquired[:, run]]).all()
    assert found.to_dict()["initial_targets"] == [[0, 0, 1, 1, 2, 2]] * 2


def test_contexts_may_be_the_test_rows():
    X, y = np.stack([np.ones(9), GRID], axis=1), GRID**2
    found = trials(lambda rng: Trial(X, y, [0, 8], range(1, 5), range(5, 8), range(5, 8)), strategies=["loss"])
    assert (found.acquired >= 1).all()
    assert (found.acquired <= 4).all()
    assert same(
        found, trials(lambda rng: Trial(X, y, [0, 8], range(1, 5), range(5, 8), range(5, 8)), strategies=["loss"])
    )


def test_a_seed_may_be_kept_in_all_fits_of_a_run():
    states = []

    class Noted(BayesianLine):
        def fit(self, X, y):
            states.append((len(y), self.random_state))
            return BayesianLine.fit(self, X, y)

    def of_steps(**arguments):
        """The states of each step, run by run; in both runs the strategies part at once."""
        states.clear()
        trials(model=Noted(random_state=1), strategies=["random", "loss"], **arguments)
        assert [size for size, _ in states] == [2, 3, 3, 4, 4, 5, 5] * 2
        return np.reshape([state for _, state in states], (2, 7))

    anew, kept = of_steps(), of_steps(reseed=False)
    assert (anew[:, 1::2] == anew[:, 2::2]).all()  # whatever the strategy
    assert len(set(anew[:, [0, 1, 3, 5]].ravel())) == 8
    assert (kept == anew[:, :1]).all()  # that of the first fit; runs differ
    assert not same(trials(reseed=False), trials())  # the settings say so
