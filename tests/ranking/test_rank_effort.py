"""How much is looked at, so that an answer comes within seconds; and workers that are killed."""

import os
import signal
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import stakes
import stakes.ranking.query
from stakes import rank
from stakes.exceptions import StakesError
from stakes.files.frame import Frame


def regression_forest(rng, n=400):
    rows = rng.standard_normal((n, 3))
    labels = rows[:, 0] * rows[:, 1] + 0.3 * rng.standard_normal(n)
    return RandomForestRegressor(40, min_samples_leaf=5, oob_score=True, random_state=0).fit(rows, labels)


def kinds_of(ranking):
    return {note.kind: note.values for note in ranking.notes}


def test_of_many_rows_the_best_by_a_summary_are_scored_as_they_were(rng, monkeypatch):
    forest, pool = regression_forest(rng), rng.standard_normal((600, 3))
    settings = {"contexts": pool[:60], "n": 5}
    everything = rank(forest, stakes.SquaredError(), pool, **settings, max_rows=600)
    assert "screened rows" not in kinds_of(everything)
    monkeypatch.setattr(stakes.ranking.query, "_MAX_NUMBERS", 20_000_000)
    bounded = rank(forest, stakes.SquaredError(), pool, **settings)
    scored = kinds_of(bounded)["screened rows"]
    assert 10 <= scored["count"] < scored["size"] == 600
    scores = dict(zip(everything.indices, everything.scores, strict=True))
    both = [row for row in bounded.indices if row in scores]
    assert len(both) >= 3
    assert [bounded.scores[bounded.indices.index(row)] for row in both] == pytest.approx([scores[row] for row in both])
    assert bounded == rank(forest, stakes.SquaredError(), pool, **settings)
    known, frame, where = (
        Frame(("a", "b", "c"), tuple(rows.T.copy()), len(rows)) for rows in (pool[:99], pool, pool[:60])
    )
    model = stakes.default(known, pool[:99, 0] + rng.standard_normal(99), task="real", max_gp_labels=10)
    of_frame = rank(model, stakes.SquaredError(), frame, contexts=where, n=5)
    assert "screened rows" in kinds_of(of_frame)  # what a table that was read into memory is


def test_rows_of_a_belief_that_has_no_summary_are_drawn(rng, monkeypatch):
    rows = rng.standard_normal((80, 3))
    forest = RandomForestClassifier(20, random_state=0).fit(rows, rows[:, 0] > 0)
    monkeypatch.setattr(stakes.ranking.query, "_MAX_NUMBERS", 20_000)
    monkeypatch.setattr(stakes.ranking.query, "_FEW_PAIRS", 0)
    pool = rng.standard_normal((400, 3))
    settings = {"contexts": pool[:50], "batch": False}
    ranking = rank(forest, stakes.LogLoss(), pool, n=3, **settings)
    drawn = kinds_of(ranking)["scored rows"]
    assert drawn["count"] < 400
    assert ranking == rank(forest, stakes.LogLoss(), pool, n=3, **settings)
    assert ranking.indices != rank(forest, stakes.LogLoss(), pool, n=3, **settings, random_state=1).indices
    whole = rank(forest, stakes.LogLoss(), pool, n=400, **settings, max_rows=400)
    scores = dict(zip(whole.indices, whole.scores, strict=True))
    assert ranking.scores == pytest.approx([scores[row] for row in ranking.indices])


def test_a_loss_that_would_take_minutes_looks_at_a_summary_and_says_so(rng):
    forest, pool = regression_forest(rng), rng.standard_normal((300, 3))
    began = time.process_time()
    ranking = rank(forest, stakes.AbsoluteError(), pool, n=3)
    assert time.process_time() - began < 20.0
    assert "summarised members" in kinds_of(ranking)
    exact = rank(forest, stakes.AbsoluteError(), pool[list(ranking.indices)], contexts=pool[:5], n=3, max_rows=3)
    assert "summarised members" not in kinds_of(exact)
    assert exact.scores[0] > 0


def test_max_rows_is_a_number_of_rows(rng):
    forest, pool = regression_forest(rng, 60), rng.standard_normal((50, 3))
    ranking = rank(forest, stakes.SquaredError(), pool, n=2, max_rows=7)
    assert kinds_of(ranking)["screened rows"] == {"count": 7, "size": 50}
    with pytest.raises(StakesError, match="max_rows must be 1 or more"):
        rank(forest, stakes.SquaredError(), pool, max_rows=0)


class Dies:
    """A model whose belief kills every process but the first."""

    def __init__(self):
        self.here = os.getpid()

    def belief(self, pool, contexts):
        if os.getpid() != self.here:
            os.kill(os.getpid(), signal.SIGKILL)
        spread = 1.0 + pool[:, :1] ** 2
        covariance = np.tile(spread, (1, len(contexts)))
        return stakes.GaussianBelief(
            np.zeros(len(contexts)), np.full(len(contexts), 20.0), 20.0 + spread[:, 0], covariance
        )


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_killed_worker_does_not_change_the_ranking(rng):
    pool = rng.standard_normal((40, 2))
    settings = {"n": 3, "chunk": 10, "batch": False}
    with parallel_config(backend="loky"), pytest.warns(RuntimeWarning, match="a worker process was ended"):
        found = rank(Dies(), stakes.SquaredError(), pool, n_jobs=2, **settings)
    assert found == rank(Dies(), stakes.SquaredError(), pool, **settings)
