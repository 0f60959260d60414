"""What ranking does at the edges: little data, odd data, other tables, other workers; every adapter in one call."""

from functools import cache

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import stakes
from stakes.models import Bootstrap, EnsembleOf, GaussianProcess, belief_of, default
from tests.table_kinds import KINDS, as_columns

RNG = np.random.default_rng(7)
ROWS, POOL, CONTEXTS = (RNG.standard_normal((count, 3)) for count in (40, 24, 3))
AMOUNTS = np.exp(0.4 * ROWS[:, 0] + 0.2 * np.sin(ROWS[:, 1]) + 0.05 * RNG.standard_normal(40))
NAMES = np.array(["ant", "bee", "cicada"])
LABELS = NAMES[np.digitize(ROWS[:, 0] + 0.3 * RNG.standard_normal(40), [-0.5, 0.5])]
PROCESS = GaussianProcessRegressor(RBF(1.5) + WhiteKernel(0.1), normalize_y=True, optimizer=None)
VOTERS = [("a", LogisticRegression()), ("b", GaussianNB())]
LOG = {"func": np.log, "inverse_func": np.exp}

MODELS = {
    "process": PROCESS,
    "own process": GaussianProcess(),
    "ridge": BayesianRidge(),
    "relevance": ARDRegression(),
    "log target": TransformedTargetRegressor(BayesianRidge(), **LOG),
    "forest of numbers": RandomForestRegressor(12, min_samples_leaf=5, oob_score=True, random_state=0),
    "bagged numbers": BaggingRegressor(n_estimators=12, oob_score=True, max_features=2, random_state=0),
    "bootstrapped numbers": Bootstrap(Ridge(), 6, random_state=0),
    "forest": RandomForestClassifier(12, random_state=0),
    "extra trees": ExtraTreesClassifier(12, random_state=0),
    "bagging": BaggingClassifier(GaussianNB(), 8, random_state=0),
    "soft voting": VotingClassifier(VOTERS, voting="soft"),
    "bootstrap": Bootstrap(LogisticRegression(), 6, random_state=0),
    "latent classes": GaussianProcessClassifier(1.0 * RBF(1.5), optimizer=None),
}
SPARSE = ["forest of numbers", "bootstrapped numbers", "forest", "extra trees", "bootstrap"]
SMOOTH = [name for name in MODELS if name != "log target"]  # whose worths are integrated, which takes a while
NOT_DRAWN = [name for name in SMOOTH if name != "latent classes"]  # which is known by draws, anew for each block
QUICK = [name for name in NOT_DRAWN if "numbers" not in name]  # whose batches take no time
FLAT = [name for name in QUICK if name not in ("own process", "bagging", "soft voting")]  # which warn of variance 0


def loss_of(model):
    return stakes.LogLoss() if is_classifier(model) else stakes.SquaredError()


def fitted(name, rows=ROWS):
    model = clone(MODELS[name])
    return model.fit(rows, LABELS if is_classifier(model) else AMOUNTS)


def ranked(model, pool=POOL, contexts=CONTEXTS, **options):
    return stakes.rank(model, loss_of(model), pool, contexts=contexts, n=5, **options)


@cache
def usual(name):
    """Fitted to the rows, once for all tests; none changes it."""
    return fitted(name)


@cache
def usual_ranking(name):
    return ranked(usual(name))


def check_alike(ranking, wanted, tolerance=1e-6):
    assert ranking.indices == wanted.indices
    np.testing.assert_allclose(ranking.scores, wanted.scores, rtol=tolerance, atol=tolerance * max(wanted.scores))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", SMOOTH)
def test_frames_rank_as_arrays_do(name, kind):
    frame = KINDS[kind]
    model = fitted(name, frame(ROWS))
    check_alike(ranked(model, frame(POOL), frame(CONTEXTS)), usual_ranking(name))


@pytest.mark.parametrize("name", MODELS)
def test_single_precision_ranks_as_double_does(name):
    found = ranked(usual(name), POOL.astype(np.float32), CONTEXTS.astype(np.float32))
    check_alike(found, usual_ranking(name))


@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_ranks_as_its_last_step_on_transformed_rows(name):
    rows, pool, contexts = (5.0 + each * [1.0, 10.0, 0.1] for each in (ROWS, POOL, CONTEXTS))
    scaler = StandardScaler().fit(rows)
    inner = fitted(name, scaler.transform(rows))
    inner.n_samples_seen_ = len(rows)  # which the scaler tells a linear model
    piped = make_pipeline(scaler, inner)
    check_alike(ranked(piped, pool, contexts), ranked(inner, scaler.transform(pool), scaler.transform(contexts)), 1e-12)


@pytest.mark.parametrize("name", ["forest", "extra trees", "bagging", "bootstrap", "forest of numbers"])
def test_workers_change_nothing(name):
    two = clone(MODELS[name]).set_params(n_jobs=2)
    with joblib.parallel_config("threading"):
        two.fit(ROWS, LABELS if is_classifier(two) else AMOUNTS)
        assert ranked(two) == usual_ranking(name)
    with joblib.parallel_config("threading", n_jobs=2):
        assert ranked(fitted(name)) == usual_ranking(name)


@pytest.mark.parametrize(("name", "batch"), [*((name, False) for name in SMOOTH), *((name, True) for name in QUICK)])
def test_two_calls_are_one(name, batch):
    model = usual(name)
    assert ranked(model, batch=batch, random_state=3) == ranked(model, batch=batch, random_state=3)


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_blocks_of_rows_do_not_change_the_model(name):
    check_alike(ranked(usual(name), chunk=5), usual_ranking(name))


def test_the_noise_of_a_forest_is_the_same_for_every_block():
    forest = usual("forest of numbers")
    noise = [belief_of(forest, POOL[part], CONTEXTS).candidate_sd.flat[0] for part in (slice(0, 1), slice(3, 24))]
    assert noise[0] == noise[1] > 0


@pytest.mark.parametrize("name", NOT_DRAWN)
def test_the_seed_decides_between_equal_rows_and_only_there(name):
    model, same = usual(name), np.concatenate([POOL, POOL])
    options = {"contexts": CONTEXTS, "n": 48, "batch": False}
    rankings = [stakes.rank(model, loss_of(model), same, random_state=seed, **options) for seed in range(2)]
    assert rankings[0].indices != rankings[1].indices
    scores = [dict(zip(ranking.indices, ranking.scores, strict=True)) for ranking in rankings]
    assert scores[0] == pytest.approx(scores[1], rel=1e-10)  # blocks of rows differ, and so does rounding
    for ranking in rankings:
        assert min(reason.as_good for reason in ranking.reasons) >= 1
        first, copies = (
            ranking.scores[: len(POOL)],
            ranking.scores[len(POOL) :],
        )  # copies of a row come after all others
        for part in (first, copies):
            np.testing.assert_allclose(part, sorted(part, reverse=True), rtol=1e-8)


ONE_CLASS = {
    "forest": RandomForestClassifier(100, random_state=0),
    "bagging": BaggingClassifier(DecisionTreeClassifier(), 7, random_state=0),
    "bootstrap": Bootstrap(LogisticRegression(), 7, random_state=0),
}


@pytest.mark.parametrize("loss", [stakes.LogLoss(), stakes.ZeroOne(), stakes.BrierLoss()], ids=repr)
@pytest.mark.parametrize("name", ONE_CLASS)
@pytest.mark.parametrize("count", [1, 40])
def test_one_class_so_far_leaves_the_order_to_the_seed(name, count, loss):
    model = clone(ONE_CLASS[name]).fit(ROWS[:count], ["ant"] * count)
    options = {"n": 24, "classes": ["bee", "ant"], "batch": False}
    rankings = [stakes.rank(model, loss, POOL, random_state=seed, **options) for seed in (0, 1)]
    assert rankings[0].indices != rankings[1].indices
    for ranking in rankings:
        assert ranking.scores == (0.0,) * 24
        assert all(reason.as_good == 23 and reason.contexts == () for reason in ranking.reasons)
        assert any("All members of the model say the same" in sentence for sentence in map(str, ranking.notes))


ONE_MEMBER = {
    "probabilities": ([LogisticRegression().fit(ROWS, LABELS)], stakes.LogLoss()),
    "answers": ([LogisticRegression().fit(ROWS, LABELS)], stakes.ZeroOne()),
    "votes": (RandomForestClassifier(1, random_state=0).fit(ROWS, LABELS), stakes.ZeroOne()),
    "numbers": (EnsembleOf([Ridge().fit(ROWS, AMOUNTS)], noise_sd=0.1), stakes.SquaredError()),
    "twins": (EnsembleOf([Ridge().fit(ROWS, AMOUNTS)] * 3, noise_sd=0.1), stakes.Linex(2.0)),
    "vectors": (EnsembleOf(lambda rows: rows[None, :, :2], noise_sd=0.1), stakes.Mahalanobis(np.eye(2))),
}


@pytest.mark.parametrize("name", ONE_MEMBER)
def test_one_member_leaves_the_order_to_the_seed(name):
    model, loss = ONE_MEMBER[name]
    orders = {stakes.rank(model, loss, POOL, n=24, random_state=seed, batch=False).indices for seed in range(4)}
    assert len(orders) == 4
    firsts = {stakes.rank(model, loss, POOL[:6], n=1, random_state=seed, batch=True).indices for seed in range(6)}
    assert len(firsts) > 1
    assert stakes.rank(model, loss, POOL, n=1, batch=False).scores == (0.0,)


@pytest.mark.parametrize("name", FLAT)
def test_constant_columns_tell_nothing(name):
    def wider(rows):
        return np.concatenate([rows, np.full((len(rows), 1), 3.0)], axis=1)

    ranking = ranked(fitted(name, wider(ROWS)), wider(POOL), wider(CONTEXTS))
    assert len(set(ranking.indices)) == 5
    flat = ranked(fitted(name, np.ones_like(ROWS)), np.ones_like(POOL), np.ones_like(CONTEXTS), batch=False)
    assert {reason.as_good for reason in flat.reasons} == {23}


@pytest.mark.parametrize("name", ["process", "ridge", "own process"])
def test_constant_columns_change_nothing_where_they_cannot(name):
    wider = [np.concatenate([rows, np.full((len(rows), 1), 3.0)], axis=1) for rows in (ROWS, POOL, CONTEXTS)]
    if name == "own process":  # whose linear part sees the constant
        wider = [rows - [0.0, 0.0, 0.0, 3.0] for rows in wider]
    check_alike(ranked(fitted(name, wider[0]), *wider[1:]), usual_ranking(name), 1e-8)


@settings(max_examples=8)
@given(st.integers(1, 6), st.integers(0, 9))
def test_more_classes_than_labels(count, seed):
    labels = np.arange(count)
    forest = RandomForestClassifier(9, random_state=seed).fit(ROWS[:count], labels)
    options = {"contexts": CONTEXTS, "n": 24, "random_state": seed, "batch": False}
    few = stakes.rank(forest, stakes.LogLoss(), POOL, **options)
    many = stakes.rank(forest, stakes.LogLoss(), POOL, classes=range(20), **options)
    assert many.indices == few.indices
    np.testing.assert_allclose(many.scores, few.scores, rtol=1e-9, atol=1e-15)
    for reason in many.reasons:
        assert all(len(context.prediction) == 20 for context in reason.contexts)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_rank_as_dense_ones(name, kind):
    rows, pool, contexts = (np.where(each > 0.3, each, 0.0) for each in (ROWS, POOL, CONTEXTS))
    model = fitted(name, rows)
    check_alike(ranked(model, KINDS[kind](pool), KINDS[kind](contexts)), ranked(model, pool, contexts), 1e-12)
    anew = fitted(name, sparse.csr_array(rows))
    check_alike(ranked(anew, KINDS[kind](pool), contexts), ranked(model, pool, contexts))


@pytest.mark.parametrize("labels", [LABELS == "bee", np.array([7, -1, 3])[np.searchsorted(NAMES, LABELS)], LABELS])
def test_answers_are_classes_as_they_were_given(labels):
    trees = RandomForestClassifier(15, max_depth=2, random_state=0).fit(ROWS, labels).estimators_
    members = [DecisionTreeClassifier(max_depth=2, random_state=i).fit(ROWS[i::4], labels[i::4]) for i in range(4)]
    names = np.unique(labels)
    function = EnsembleOf(lambda rows: np.stack([tree.predict_proba(rows) for tree in trees]), classes=names)
    for model in (members, tuple(members), EnsembleOf(members), function):
        ranking = stakes.rank(model, stakes.ZeroOne(), POOL, n=3)
        answers = [context for reason in ranking.reasons for context in reason.contexts]
        assert len(answers) > 0
        assert {context.prediction for context in answers} <= set(names.tolist())
        assert all(context.answer == f"class {context.prediction!r}" for context in answers)


def test_labels_of_rows_are_those_of_the_index_though_values_and_labels_repeat():
    pandas = pytest.importorskip("pandas")
    same = np.repeat(POOL[:4], 3, axis=0)
    frame = pandas.DataFrame(as_columns(same), index=["x", "y"] * 6)
    model = fitted("ridge", pandas.DataFrame(as_columns(ROWS)))
    ranking = stakes.rank(model, stakes.SquaredError(), frame, n=12)
    assert sorted(ranking.indices) == list(range(12))
    assert ranking.row_ids == tuple("xy"[i % 2] for i in ranking.indices)


def test_no_label_at_all():
    for rows, labels in ((ROWS[:0], []), (ROWS, None)):
        with pytest.raises(ValueError, match=r"without any, stakes.cold_start\(pool\) says which rows"):
            default(rows, labels)
    assert stakes.rank(None, stakes.LogLoss(), POOL, n=3).ranked_by == "distance to the rows before"
