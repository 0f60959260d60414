"""How much is looked at, so that an answer comes within seconds; and workers that are killed."""

import os
import signal
import time

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.ensemble import ExtraTreesClassifier, RandomForestRegressor

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


class OwnBelief:
    """A belief of one's own, of which nothing is known but what `stakes.Belief` asks for."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        if name not in ("n_candidates", "n_contexts", "domain", "like", "n_cells", "reference", "moments"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def split_moments(self, integrand, reference):
        return self.inner.split_moments(integrand, reference)

    def take(self, candidates, contexts):
        return OwnBelief(self.inner.take(candidates, contexts))


class OwnModel:
    """z = f(x), a Gaussian process of one's own, as a belief of some kind."""

    def __init__(self, kind):
        self.kind = kind

    def belief(self, pool, contexts):
        return self.kind(self.gaussian(pool, contexts))

    def gaussian(self, pool, contexts, length=1.0):
        def covariance(rows, others):
            return np.exp(-0.5 * np.sum((rows[:, None] - others) ** 2, axis=2) / length**2)

        sizes = np.exp(-0.1 * np.sum(contexts**2, axis=1)), np.exp(-0.1 * np.sum(pool**2, axis=1))
        covariances = sizes[1][:, None] * covariance(pool, contexts) * sizes[0]
        return stakes.GaussianBelief(contexts[:, 0], sizes[0] ** 2 + 0.1, sizes[1] ** 2 + 0.1, covariances)


def mixture(belief):
    """Two hypotheses that disagree about the mean of everything, and about how far labels reach."""
    far = stakes.GaussianBelief(belief.mean, belief.variance, belief.candidate_variance, 0.5 * belief.covariance)
    means = np.stack([np.zeros(belief.n_candidates), np.full(belief.n_candidates, 0.5)])
    return stakes.GaussianMixtureBelief.from_beliefs([belief, far], means)


@pytest.fixture
def little_effort(monkeypatch):
    monkeypatch.setattr(stakes.ranking.query, "_MAX_NUMBERS", 200_000)
    monkeypatch.setattr(stakes.ranking.query, "_FEW_PAIRS", 0)


@pytest.mark.usefixtures("little_effort")
def test_rows_of_a_belief_that_nothing_is_known_of_are_drawn(rng):
    pool = rng.standard_normal((400, 3))
    model, settings = OwnModel(OwnBelief), {"contexts": pool[:20], "batch": False}
    ranking = rank(model, stakes.SquaredError(), pool, n=3, **settings)
    assert kinds_of(ranking)["scored rows"]["count"] < 400
    assert ranking == rank(model, stakes.SquaredError(), pool, n=3, **settings)
    assert ranking.indices != rank(model, stakes.SquaredError(), pool, n=3, **settings, random_state=1).indices
    whole = rank(model, stakes.SquaredError(), pool, n=400, **settings, max_rows=400)
    scores = dict(zip(whole.indices, whole.scores, strict=True))
    assert ranking.scores == pytest.approx([scores[row] for row in ranking.indices])


def classifier(leaf):
    rows = np.random.default_rng(7).standard_normal((80, 3))
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(int) + (rows[:, 2] > 1)
    return ExtraTreesClassifier(20, min_samples_leaf=leaf, bootstrap=True, random_state=0).fit(rows, labels)


COSTS = stakes.CostMatrix([[0.0, 1.0, 2.0], [1.5, 0.0, 1.0], [3.0, 2.0, 0.0]])


@pytest.mark.usefixtures("little_effort")
@pytest.mark.parametrize(
    ("model", "loss"),
    [
        (OwnModel(lambda belief: belief), stakes.ThresholdDecision(1.5, 5.0)),
        (OwnModel(lambda belief: belief), stakes.AbsoluteError()),
        (OwnModel(lambda belief: belief), stakes.LogScore()),
        (OwnModel(lambda belief: stakes.WarpedGaussianBelief(belief, stakes.LogWarp())), stakes.ThresholdDecision(2.0)),
        (OwnModel(mixture), stakes.SquaredError()),
        (OwnModel(mixture), stakes.ThresholdDecision(1.5, 5.0)),
        (classifier(1), stakes.ZeroOne()),
        (classifier(1), COSTS),
        (classifier(5), stakes.LogLoss()),
        (classifier(2), COSTS),
    ],
)
def test_many_rows_are_screened_by_the_variance_that_the_loss_gains_from(model, loss, rng):
    """What is chosen is worth nearly as much as the best of all rows; a draw of as many rows is worth far less."""
    pool = rng.standard_normal((1500, 3))
    settings = {"contexts": pool[:25], "batch": False, "n": 5}
    found = rank(model, loss, pool, **settings)
    screened = kinds_of(found)["screened by variance"]
    assert 10 <= screened["count"] <= 500
    assert screened["size"] == 1500
    best = rank(model, loss, pool, **settings, max_rows=1500)
    assert sum(found.scores) >= 0.97 * sum(best.scores)
    drawn = rng.choice(1500, screened["count"], replace=False)
    assert sum(rank(model, loss, pool[drawn], **settings, max_rows=1500).scores) < sum(found.scores)
    assert found == rank(model, loss, pool, **settings)


def test_a_mixture_is_summarised_by_its_means_and_covariances(rng):
    pool, contexts = rng.standard_normal((4, 3)), rng.standard_normal((3, 3))
    belief = mixture(OwnModel(None).gaussian(pool, contexts))
    plain = stakes.ranking.query.screened_belief(belief)
    assert plain.mean == pytest.approx(belief.mean.mean(axis=0))
    assert plain.variance == pytest.approx(belief.variance.mean(axis=0) + belief.mean.var(axis=0))
    own, other = belief.candidate_mean, belief.mean
    assert plain.candidate_variance == pytest.approx(belief.candidate_variance.mean(axis=0) + own.var(axis=0))
    between = ((own - own.mean(axis=0))[:, :, None] * (other - other.mean(axis=0))[:, None, :]).mean(axis=0)
    assert plain.covariance == pytest.approx(belief.covariance.mean(axis=0) + between)


def test_a_loss_that_would_take_minutes_looks_at_the_best_by_a_summary_and_says_so(rng):
    forest, pool = regression_forest(rng), rng.standard_normal((300, 3))
    began = time.process_time()
    ranking = rank(forest, stakes.AbsoluteError(), pool, n=3)
    assert time.process_time() - began < 20.0
    assert 6 <= kinds_of(ranking)["screened rows"]["count"] < 300


def test_where_not_even_a_few_rows_can_be_scored_members_are_summarised(rng, monkeypatch):
    forest, pool = regression_forest(rng), rng.standard_normal((40, 3))
    monkeypatch.setattr(stakes.ranking.query, "_MAX_NUMBERS", 1_000_000)
    ranking = rank(forest, stakes.AbsoluteError(), pool, n=3)
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
