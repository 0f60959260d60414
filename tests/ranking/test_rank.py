"""One call: the rows worth labelling, in any kind of table, and why."""

import json
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import stakes
from stakes.acquisition import fallback_scores
from stakes.evaluation import bayes_prediction
from stakes.ranking import TrainedWeightWarning, cold_start
from tests.table_kinds import KINDS, FrameLike, as_columns, dense


@dataclass
class Linear:
    """z = w'x + noise with w ~ N(mean, spread): a model of one's own, features of any kind."""

    spread: np.ndarray
    noise: float = 0.1
    scale: float = 1.0
    xp: object = np

    def belief(self, pool, contexts):
        rows, places = dense(pool) * self.scale, dense(contexts) * self.scale
        inner = rows @ self.spread @ places.T
        return stakes.GaussianBelief(
            self.xp.asarray(places.sum(1)),
            self.xp.asarray(((places @ self.spread) * places).sum(1) + self.noise),
            self.xp.asarray(((rows @ self.spread) * rows).sum(1) + self.noise),
            self.xp.asarray(inner),
            candidate_covariance=self.xp.asarray(rows @ self.spread @ rows.T + self.noise * np.eye(len(rows)))
            if len(rows) < 1000
            else None,
        )


@dataclass
class Committee:
    """Members that put all their mass on one class each: the sign of a fixed direction."""

    directions: np.ndarray

    def belief(self, pool, contexts):
        votes = [(dense(each) @ self.directions.T > 0).astype(int) for each in (pool, contexts)]
        return stakes.VoteEnsemble(*votes, n_classes=2)


class Slow:
    """Two members, who both lean the same way after one label but not after two or more."""

    def belief(self, pool, contexts):
        rows, places = dense(pool), dense(contexts)
        second = np.where(rows[:, 2] > 0, 0.85, 0.45 + 0.02 * np.tanh(rows[:, 0]))  # those near 0.9 tell little
        members = [np.stack([np.full_like(second, 0.9), second], axis=1), np.tile([0.9, 0.45], (len(places), 1))]
        return stakes.CategoricalEnsemble(*(np.stack([1.0 - each, each], axis=2) for each in members))


MODEL = Linear(np.diag([1.0, 2.0, 0.5]))
LOSS = stakes.SquaredError()


@pytest.fixture
def pool(rng):
    return rng.standard_normal((40, 3))


def test_rows_are_those_with_the_best_scores(pool):
    ranking = stakes.rank(MODEL, LOSS, pool, contexts=pool[:7], n=5, batch=False)
    scores = stakes.score(LOSS, MODEL.belief(pool, pool[:7]))
    best = np.argsort(-scores)[:5]
    assert ranking.indices == ranking.row_ids == tuple(best)
    np.testing.assert_allclose(ranking.scores, scores[best], rtol=1e-12)
    assert [reason.worth for reason in ranking.reasons] == list(ranking.scores)
    assert (len(ranking), ranking.per_cost, ranking.ranked_by, ranking.log_scale) == (5, False, "worth", 0.0)


@pytest.mark.parametrize("chunk", [1, 7, 39, 40, 1000])
def test_blocks_of_rows_change_nothing(pool, chunk):
    whole, parts = (stakes.rank(MODEL, LOSS, pool, n=40, chunk=size, batch=False) for size in (4096, chunk))
    assert whole.indices == parts.indices
    np.testing.assert_allclose(parts.scores, whole.scores, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [False, True])
def test_every_kind_of_table_gives_the_same_rows(kind, batch, pool):
    wanted = stakes.rank(MODEL, LOSS, pool, n=6, batch=batch, max_contexts=15)
    ranking = stakes.rank(MODEL, LOSS, KINDS[kind](pool), n=6, batch=batch, max_contexts=15)
    assert ranking.indices == wanted.indices
    np.testing.assert_allclose(ranking.scores, wanted.scores, rtol=1e-6)
    assert ranking.notes[0] == wanted.notes[0]


def test_the_index_of_a_frame_comes_back(pool):
    names = [f"row {i}" for i in range(40)]
    frame = FrameLike(as_columns(pool), index=names)
    ranking = stakes.rank(MODEL, LOSS, frame, n=3)
    assert ranking.row_ids == tuple(names[i] for i in ranking.indices)
    helped = ranking.reasons[0].contexts[0]
    assert helped.row_id == names[helped.index]
    given = stakes.rank(MODEL, LOSS, frame, contexts=FrameLike(as_columns(pool[:2]), index=["x", "y"]), n=1)
    assert {context.row_id for context in given.reasons[0].contexts} == {"x", "y"}


def test_results_of_other_array_libraries(pool, xp):
    ranking = stakes.rank(Linear(MODEL.spread, xp=xp), LOSS, pool, n=4)
    assert ranking.indices == stakes.rank(MODEL, LOSS, pool, n=4).indices
    assert isinstance(ranking.reasons[0].contexts[0].prediction, float)
    batch = stakes.rank(Linear(MODEL.spread, xp=xp), LOSS, pool, n=4, batch=True)
    assert batch.indices == stakes.rank(MODEL, LOSS, pool, n=4, batch=True).indices


@settings(max_examples=20)
@given(st.permutations(range(9)), st.integers(0, 3))
def test_a_shuffled_pool_gives_the_same_rows(order, seed):
    pool = np.random.default_rng(5).standard_normal((9, 3))
    contexts = np.random.default_rng(6).standard_normal((4, 3))
    plain = stakes.rank(MODEL, LOSS, pool, contexts=contexts, n=9, random_state=seed, batch=False)
    shuffled = stakes.rank(MODEL, LOSS, pool[order], contexts=contexts, n=9, random_state=seed, batch=False)
    assert [order[i] for i in shuffled.indices] == list(plain.indices)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 2), min_size=2, max_size=12), st.integers(0, 5), st.booleans())
def test_equal_rows_are_distinguished_by_position(which, seed, batch):
    pool = np.eye(3)[which] * np.array([1.0, 2.0, 3.0])[which][:, None]
    ranking = stakes.rank(MODEL, LOSS, pool, contexts=np.eye(3), n=len(which), random_state=seed, batch=batch)
    assert sorted(ranking.indices) == list(range(len(which)))
    again = stakes.rank(MODEL, LOSS, pool, contexts=np.eye(3), n=len(which), random_state=seed, batch=batch)
    assert ranking == again
    if not batch:
        equals = [which.count(which[i]) - 1 for i in ranking.indices]
        assert [reason.as_good for reason in ranking.reasons] == equals


def test_the_seed_decides_between_equals(pool):
    best = pool[list(stakes.rank(MODEL, LOSS, pool, n=1, batch=False).indices)]
    same = np.concatenate([np.repeat(best * 9.0, 20, axis=0), pool])
    for batch in (False, True):
        options = {"contexts": pool, "n": 1, "batch": batch}
        firsts = {stakes.rank(MODEL, LOSS, same, random_state=seed, **options).indices[0] for seed in range(12)}
        assert len(firsts) > 4
        assert firsts < set(range(20))
    ranking = stakes.rank(MODEL, LOSS, same, contexts=pool, n=3, random_state=4, batch=False)
    assert "1 of the rows chosen have equals in the pool; random_state 4 decided" in str(ranking.notes[-1])
    assert "19 other rows are as good" in str(ranking.reasons[0])


def test_scores_apart_by_rounding_are_equal(pool):
    near = np.concatenate([[[3.0, 0, 0]], [[3.0 * (1 + 1e-13), 0, 0]], [[3.0 * (1 + 1e-6), 0, 0]]])
    rankings = [stakes.rank(MODEL, LOSS, near, contexts=pool, n=3, random_state=seed, batch=False) for seed in range(8)]
    assert {ranking.indices[0] for ranking in rankings} == {2}
    assert {ranking.indices[1] for ranking in rankings} == {0, 1}
    assert [reason.as_good for reason in rankings[0].reasons] == [0, 1, 1]


def test_costs_and_budget(pool, rng):
    costs = rng.uniform(1.0, 5.0, 40)
    scores = stakes.score(LOSS, MODEL.belief(pool, pool), costs=costs)
    ranking = stakes.rank(MODEL, LOSS, pool, n=5, costs=costs, batch=False)
    np.testing.assert_array_equal(ranking.indices, np.argsort(-scores)[:5])
    np.testing.assert_allclose(ranking.scores, np.sort(scores)[::-1][:5], rtol=1e-12)
    assert ranking.per_cost
    assert "Scores are for each unit of cost." in map(str, ranking.notes)
    for reason, row in zip(ranking.reasons, ranking.indices, strict=True):
        assert reason.worth_per_cost == pytest.approx(reason.worth / costs[row])
    bought = stakes.rank(MODEL, LOSS, pool, n=40, costs=costs, budget=9.0, batch=False)
    assert costs[list(bought.indices)].sum() <= 9.0
    left = 9.0 - costs[list(bought.indices)].sum()
    assert min(np.delete(costs, bought.indices)) > left
    assert f"The budget of 9 covers {len(bought)} of 40 rows." in map(str, bought.notes)
    assert len(stakes.rank(MODEL, LOSS, pool, n=40, budget=3, batch=False)) == 3
    assert len(stakes.rank(MODEL, LOSS, pool, n=3, costs=np.full(40, 0.1), budget=0.3, batch=False)) == 3


def test_a_budget_that_reaches_nothing(pool):
    ranking = stakes.rank(MODEL, LOSS, pool, costs=np.full(40, 2.0), budget=1.0)
    assert len(ranking) == 0
    assert "The budget of 1 covers 0 of 10 rows." in str(ranking)


def test_a_batch_is_what_select_chooses(pool, rng):
    costs = rng.uniform(1.0, 2.0, 40)
    for options in ({}, {"costs": costs}, {"costs": costs, "budget": 5.0}):
        ranking = stakes.rank(MODEL, LOSS, pool, n=6, batch=True, **options)
        selection = stakes.select(LOSS, MODEL.belief(pool, pool), n=6, **options)
        assert ranking.indices == selection.indices
        worths = [reason.worth for reason in ranking.reasons]
        np.testing.assert_allclose(np.cumsum(worths), selection.joint_reduction, rtol=1e-9)
    assert ranking.ranked_by == "gain"
    assert any("(exact)" in sentence for sentence in map(str, ranking.notes))


def test_a_large_pool_is_subsampled_and_says_so(pool):
    ranking = stakes.rank(MODEL, LOSS, pool, n=4, max_contexts=10, random_state=3)
    assert str(ranking.notes[0]) == (
        "10 of the 40 rows of the pool, drawn with random_state 3, stand for the future contexts, each as likely."
    )
    assert stakes.rank(MODEL, LOSS, pool, n=4, max_contexts=10, random_state=3) == ranking
    assert stakes.rank(MODEL, LOSS, pool, n=4, max_contexts=10, random_state=4).scores != ranking.scores
    assert "40 rows of the pool stand" in str(stakes.rank(MODEL, LOSS, pool, max_contexts=40).notes[0])


def test_context_weights(pool):
    weights = np.zeros(40)
    weights[[3, 5]] = 1.0, 3.0
    ranking = stakes.rank(MODEL, LOSS, pool, n=4, context_weights=weights, batch=False)
    direct = stakes.rank(MODEL, LOSS, pool, contexts=pool[[3, 5]], n=4, context_weights=[0.25, 0.75], batch=False)
    assert ranking.indices == direct.indices
    np.testing.assert_allclose(ranking.scores, direct.scores, rtol=1e-12)
    assert {context.index for context in ranking.reasons[0].contexts} == {3, 5}
    assert "weighted as given" in str(ranking.notes[0])


def test_reasons_name_the_contexts_that_are_helped_most(pool, rng):
    weights = rng.uniform(size=8)
    ranking = stakes.rank(MODEL, LOSS, pool, contexts=pool[:8], n=3, context_weights=weights, batch=False)
    belief = MODEL.belief(pool, pool[:8])
    worths = stakes.expected_reduction(LOSS, belief) * weights / weights.sum()
    for row, reason in zip(ranking.indices, ranking.reasons, strict=True):
        best = np.argsort(-worths[row])[:3]
        assert [context.index for context in reason.contexts] == list(best)
        np.testing.assert_allclose([context.share for context in reason.contexts], worths[row, best] / reason.worth)
        today = bayes_prediction(LOSS, belief)[best], stakes.uncertainty(LOSS, belief)[best]
        np.testing.assert_allclose([context.prediction for context in reason.contexts], today[0])
        np.testing.assert_allclose([context.uncertainty for context in reason.contexts], today[1])


def test_answers_in_sentences(pool, rng):
    committee = Committee(rng.standard_normal((9, 3)))

    def answer(loss):
        ranking = stakes.rank(committee, loss, pool, n=1, classes=["no", "yes"])
        return ranking.reasons[0].contexts[0]

    log_loss = answer(stakes.LogLoss())
    assert len(log_loss.prediction) == 2
    assert log_loss.answer.startswith(("class 'no' at", "class 'yes' at"))
    assert answer(stakes.ZeroOne()).prediction in ("no", "yes")
    assert answer(stakes.CostMatrix([[0, 1, 2], [5, 0, 2]])).answer in ("action 0", "action 1", "action 2")


def test_where_no_label_is_worth_anything(pool):
    model = Slow()
    ranking = stakes.rank(model, stakes.ZeroOne(), pool, n=4, batch=False)
    scores, n_labels = fallback_scores(stakes.ZeroOne(), model.belief(pool, pool))
    assert n_labels == 2
    assert ranking.ranked_by == "worth of 2 such labels"
    np.testing.assert_allclose(ranking.scores, np.sort(scores)[::-1][:4], rtol=1e-9)
    note = next(note for note in ranking.notes if note.kind == "fallback")
    assert note.values["labels"] == 2
    assert str(note) == "No single label is worth anything; rows are ranked by worth of 2 such labels."
    assert all(reason.worth == 0.0 for reason in ranking.reasons)
    blocks = stakes.rank(model, stakes.ZeroOne(), pool, n=4, chunk=3, batch=False)
    np.testing.assert_allclose(blocks.scores, ranking.scores, rtol=1e-9)


def test_one_class_so_far_leaves_it_to_the_seed(pool):
    class Certain:
        def belief(self, pool, contexts):
            return stakes.CategoricalEnsemble(np.ones((len(pool), 4, 1)), np.ones((len(contexts), 4, 1)))

    for loss in (stakes.LogLoss(), stakes.ZeroOne()):
        ranking = stakes.rank(Certain(), loss, pool, n=3, batch=False)
        assert (ranking.ranked_by, ranking.scores) == ("variance reduction", (0.0, 0.0, 0.0))
        assert ranking.reasons[0].as_good == 39
        assert len(set(stakes.rank(Certain(), loss, pool, n=3, batch=True).indices)) == 3


def test_rounding_is_no_worth(pool):
    tied = Committee(np.concatenate([np.ones((2, 3)), -np.ones((2, 3)), np.eye(3), -np.eye(3)]))
    ranking = stakes.rank(tied, stakes.CostMatrix([[0.0, 1e-14], [1e-14, 0.0]]), pool, n=2, batch=False)
    assert ranking.ranked_by == "worth"  # small costs are costs
    certain = Committee(np.ones((5, 3)))
    assert stakes.rank(certain, stakes.ZeroOne(), pool, n=2, batch=False).ranked_by == "variance reduction"


def test_scores_beyond_the_range_of_numbers(pool):
    loss = stakes.SquaredError(weight=stakes.ExponentialWeight(1.0))
    ranking = stakes.rank(Linear(MODEL.spread, scale=40.0), loss, pool, n=3)
    assert ranking.log_scale > 700
    assert ranking.scores[0] == pytest.approx(1.0)
    text = " ".join(map(str, ranking.notes))
    assert "multiplied by exp(" in text
    assert "What is expected at contexts is not reported in full" in text
    assert ranking.reasons[0].contexts[0].uncertainty is None


def test_more_rows_than_there_are(pool):
    ranking = stakes.rank(MODEL, LOSS, pool[:3], n=5)
    assert sorted(ranking.indices) == [0, 1, 2]
    assert "5 rows were asked for; the pool has 3." in map(str, ranking.notes)
    assert len(stakes.rank(MODEL, LOSS, pool[:3], n=5, batch=True)) == 3


def test_it_reads_well(pool):
    ranking = stakes.rank(MODEL, LOSS, FrameLike(as_columns(pool), index=["<b>"] * 40), n=2, batch=False)
    text = str(ranking).splitlines()
    assert text[0].split()[:3] == ["row", "id", "worth"]
    assert text[3] == "worth: what the model itself expects a label to save, if it is right."
    assert len(text) == 1 + 2 + 2 + 1 + len(ranking.notes)
    assert "today: " in text[1]
    assert "&lt;b&gt;" in ranking._repr_html_()
    assert "<b>" not in ranking._repr_html_()


def test_json_takes_it(pool):
    labels = [np.int64(3), ("a", 1), None, np.datetime64("2026-01-02")] * 10
    frame = FrameLike(as_columns(pool), index=range(40))
    frame.index = np.asarray(labels, dtype=object)
    read = json.loads(json.dumps(stakes.rank(MODEL, LOSS, frame, n=40).to_dict(), allow_nan=False))
    assert set(map(str, read["row_ids"])) == {"3", "['a', 1]", "None", "2026-01-02"}
    assert len(read["reasons"]) == 40
    json.dumps(stakes.rank(None, LOSS, pool).to_dict(), allow_nan=False)


class Weighted(BaseEstimator):
    def __init__(self, class_weight=None):
        self.class_weight = class_weight

    def belief(self, pool, contexts):
        return Committee(np.eye(3)).belief(pool, contexts)


@pytest.mark.parametrize("loss", [stakes.LogLoss([1.0, 5.0]), stakes.CostMatrix([[0, 1], [5, 0]])])
def test_weights_trained_into_the_model_are_warned_of(pool, loss):
    with pytest.warns(TrainedWeightWarning, match="class_weight='balanced'"):
        ranking = stakes.rank(make_pipeline(Weighted("balanced")), loss, pool)
    assert any("a loss trained into the model" in sentence for sentence in map(str, ranking.notes))
    stakes.rank(Weighted(), loss, pool)
    stakes.rank(Weighted("balanced"), stakes.LogLoss(), pool)


def test_what_the_model_makes_of_target_is_reported(pool):
    own = stakes.rank(MODEL, LOSS, pool, n=1).notes
    assert "own method `belief`" in str(own[1])


BAD = [
    ({"n": 0}, ValueError, "n must be 1 or more"),
    ({"n": 2.5}, TypeError, "n must be a whole number"),
    ({"chunk": 0}, ValueError, "chunk must be 1 or more"),
    ({"max_contexts": 0}, ValueError, "max_contexts must be 1 or more"),
    ({"pool": np.zeros((0, 3))}, ValueError, "pool must have at least one row"),
    ({"contexts": np.zeros((0, 3))}, ValueError, "contexts must have at least one row"),
    ({"contexts": np.zeros((2, 2))}, ValueError, "contexts must have the 3 columns of the pool; got 2"),
    ({"pool": np.full((2, 3), np.nan)}, ValueError, r"pool.*nan at row 0, column 0"),
    ({"costs": [1.0]}, ValueError, r"costs must have shape \[40\]"),
    ({"costs": np.zeros(40)}, ValueError, "costs must be positive"),
    ({"budget": 0.0}, ValueError, "budget must be positive"),
    ({"context_weights": [1.0]}, ValueError, r"context_weights must have shape \[40\]"),
    ({"context_weights": np.zeros(40)}, ValueError, "context_weights must not all be 0"),
    ({"loss": stakes.LogLoss()}, TypeError, "LogLoss is for class targets"),
    ({"loss": "squared"}, TypeError, r"must be a loss such as SquaredError\(\)"),
    ({"target": "noise"}, ValueError, "target must be 'label' or 'latent'"),
    ({"model": BayesianRidge()}, NotFittedError, "not fitted"),
    ({"model": object()}, TypeError, "no adapter knows a object"),
    ({"random_state": -1}, ValueError, "random_state must be 0 or more"),
    ({"random_state": 1.5}, TypeError, "random_state must be a whole number or a numpy.random.Generator"),
    ({"model": None, "budget": 3.0}, ValueError, "no row has a worth to weigh against costs"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), BAD)
def test_bad_input_is_refused(pool, wrong, error, message):
    arguments = {"model": MODEL, "loss": LOSS, "pool": pool, **wrong}
    with pytest.raises(error, match=message):
        stakes.rank(**arguments)


def test_a_belief_about_other_rows_is_refused(pool):
    class Short(Linear):
        def belief(self, pool, contexts):
            return Linear.belief(self, pool[:-1], contexts)

    with pytest.raises(ValueError, match="must be about the 1 rows and 40 contexts"):
        stakes.rank(Short(MODEL.spread), LOSS, pool, batch=False)


def test_a_large_pool_stays_small(rng):
    pool = rng.standard_normal((100_000, 50))
    model = Linear(np.eye(50))
    tracemalloc.start()
    ranking = stakes.rank(model, LOSS, pool, n=20, max_contexts=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6, peak  # the pool itself is 40 MB, a matrix of all pairs would be 80 MB for each temporary
    assert len(set(ranking.indices)) == 20


def test_cold_start_spreads_rows(pool):
    clusters = np.concatenate([0.01 * pool, 0.01 * pool + 5.0, 0.01 * pool - [0, 9.0, 0]])
    ranking = stakes.cold_start(clusters, n=3, random_state=1)
    assert {index // 40 for index in ranking.indices} == {0, 1, 2}
    assert ranking.scores[0] == np.inf
    assert "A cold start" in str(ranking.notes[0])
    assert ranking == cold_start(clusters, n=3, random_state=1)
    assert ranking == stakes.rank(None, LOSS, clusters, n=3, random_state=1)
    standard = (clusters - clusters.mean(0)) / clusters.std(0)
    gaps = np.linalg.norm(standard[:, None] - standard, axis=2)
    for index in ranking.indices:  # the middle of its cluster
        own = slice(index // 40 * 40, index // 40 * 40 + 40)
        assert gaps[index, own].sum() == pytest.approx(gaps[own, own].sum(axis=0).min())
    first, second, third = ranking.indices
    assert ranking.scores[1:] == pytest.approx((gaps[first, second], min(gaps[third, first], gaps[third, second])))


@pytest.mark.parametrize("kind", KINDS)
def test_cold_start_of_every_kind_of_table(kind, pool):
    ranking = stakes.cold_start(KINDS[kind](pool), n=6)
    assert len(set(ranking.indices)) == 6
    if kind not in ("csr", "csc"):  # those are not centred
        assert ranking.indices == stakes.cold_start(pool, n=6).indices


def test_cold_start_with_equal_rows_and_too_few():
    ranking = stakes.cold_start(np.ones((4, 2)), n=6)
    assert sorted(ranking.indices) == [0, 1, 2, 3]
    assert "6 rows were asked for; the pool has 4." in map(str, ranking.notes)


def test_a_gaussian_process_in_a_pipeline(pool):
    kernel = RBF(1.0) + WhiteKernel(0.1)
    y = np.sin(pool[:20]).sum(1)
    scaler = StandardScaler().fit(pool[:20])
    inner = GaussianProcessRegressor(kernel, optimizer=None).fit(scaler.transform(pool[:20]), y)
    piped = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, optimizer=None)).fit(pool[:20], y)
    for batch in (False, True):
        ranking = stakes.rank(piped, LOSS, pool[20:], n=5, batch=batch)
        plain = stakes.rank(inner, LOSS, scaler.transform(pool[20:]), n=5, batch=batch)
        assert ranking.indices == plain.indices
        np.testing.assert_allclose(ranking.scores, plain.scores, rtol=1e-9)
    assert "with its noise" in str(ranking.notes[1])
    assert "latent function" in str(stakes.rank(piped, LOSS, pool[20:], target="latent").notes[1])
    with pytest.raises(ValueError, match="3 columns that StandardScaler was fitted with; got 2"):
        stakes.rank(piped, LOSS, pool[:, :2])


def test_a_forest_with_a_class_no_label_has_had(pool):
    forest = RandomForestClassifier(20, random_state=0).fit(pool[:20], np.where(pool[:20, 0] > 0, "a", "b"))
    ranking = stakes.rank(forest, stakes.LogLoss(), pool[20:], n=5, classes=["a", "b", "c"])
    two = stakes.rank(forest, stakes.LogLoss(), pool[20:], n=5)
    assert len(ranking.reasons[0].contexts[0].prediction) == 3
    np.testing.assert_allclose(ranking.scores, two.scores, rtol=1e-9)


def test_a_cold_start_keeps_away_from_known_rows(rng):
    clusters = np.concatenate([centre + 0.01 * rng.standard_normal((10, 2)) for centre in ([0, 0], [5, 0], [0, 9])])
    whole = stakes.cold_start(clusters, n=3, random_state=4)
    one, two = whole.indices[:2]
    rest = np.delete(np.arange(30), [one, two])
    then = stakes.cold_start(clusters[rest], n=1, known=clusters[[one, two]], random_state=9)
    assert rest[then.indices[0]] // 10 == whole.indices[2] // 10
    gaps = np.linalg.norm((clusters[rest][:, None] - clusters[[one, two]]) / clusters.std(axis=0), axis=2).min(axis=1)
    assert then.scores[0] == pytest.approx(gaps[then.indices[0]], rel=1e-9)
    assert "2 known rows" in str(then.notes[0])
