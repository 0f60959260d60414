"""What is refused at the edges, and how: errors name the row, the column, the cause; and what is not refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import stakes
from stakes.models import Bootstrap, EnsembleOf, belief_of
from stakes.ranking import TrainedWeightWarning
from stakes.simulation.store import data_hash
from tests.table_kinds import KINDS

RNG = np.random.default_rng(11)
ROWS, POOL = RNG.standard_normal((40, 3)), RNG.standard_normal((12, 3))
AMOUNTS = np.exp(0.3 * ROWS[:, 0] + 0.05 * RNG.standard_normal(40))
LABELS = np.where(ROWS[:, 0] + 0.3 * RNG.standard_normal(40) > 0, "yes", "no")
SQUARED, LOG = stakes.SquaredError(), stakes.LogLoss()


def with_gap(rows, value=np.nan):
    rows = rows.copy()
    rows[4, 1] = value
    return rows


def filling(model):
    return make_pipeline(SimpleImputer(), model)


# models that fill gaps somewhere inside, what they are fitted to, and a loss
FILLING = {
    "transformed target": (
        TransformedTargetRegressor(filling(BayesianRidge()), func=np.log, inverse_func=np.exp),
        AMOUNTS,
        SQUARED,
    ),
    "several outputs": (
        MultiOutputRegressor(filling(BayesianRidge())),
        np.stack([AMOUNTS, ROWS[:, 1]], axis=1),
        stakes.Mahalanobis(np.eye(2)),
    ),
    "bootstrap": (Bootstrap(filling(LogisticRegression()), 4, random_state=0), LABELS, LOG),
    "bagging": (BaggingClassifier(filling(GaussianNB()), 4, random_state=0), LABELS, LOG),
    "voting": (
        VotingClassifier([("a", filling(GaussianNB())), ("b", filling(LogisticRegression()))], voting="soft"),
        LABELS,
        LOG,
    ),
    "search": (GridSearchCV(filling(BayesianRidge()), {"bayesianridge__alpha_1": [1e-6]}, cv=2), AMOUNTS, SQUARED),
}


@pytest.mark.parametrize("name", FILLING)
def test_imputers_are_seen_wherever_they_are(name):
    model, labels, loss = FILLING[name]
    model = clone(model).fit(ROWS, labels)
    ranking = stakes.rank(model, loss, with_gap(POOL), n=12)
    assert sorted(ranking.indices) == list(range(12))
    if name not in ("bootstrap", "bagging"):  # whose members fill gaps each by the mean of its own sample
        filled = stakes.rank(model, loss, with_gap(POOL, ROWS[:, 1].mean()), n=12)
        assert ranking.indices == filled.indices
        np.testing.assert_allclose(ranking.scores, filled.scores, rtol=1e-9)


def test_imputers_in_lists_are_seen():
    members = [filling(GaussianNB()).fit(ROWS[i::2], LABELS[i::2]) for i in range(2)]
    wanted = stakes.rank(members, LOG, with_gap(POOL), n=5)
    assert stakes.rank(EnsembleOf(members), LOG, with_gap(POOL), n=5).indices == wanted.indices
    with pytest.raises(ValueError, match=r"pool must hold finite numbers; .* nan at row 4, column 1"):
        stakes.rank(EnsembleOf([members[0], GaussianNB().fit(ROWS, LABELS)]), LOG, with_gap(POOL))


def test_a_gap_that_a_step_refuses_is_named():
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(each, columns=list("abc")) for each in (ROWS, POOL, with_gap(POOL))]
    steps = ColumnTransformer([("filled", SimpleImputer(), ["a"]), ("kept", "passthrough", ["b", "c"])])
    model = make_pipeline(steps, BayesianRidge()).fit(frames[0], AMOUNTS)
    with pytest.raises(ValueError, match=r"pool must hold no gaps but .* at row 4, column 'b': Input"):
        stakes.rank(model, SQUARED, frames[2])
    with pytest.raises(ValueError, match=r"contexts must hold no gaps but .* at row 4, column 'b'"):
        stakes.rank(model, SQUARED, frames[1], contexts=frames[2])
    assert len(stakes.rank(model, SQUARED, frames[1].assign(a=np.nan), n=3)) == 3


def test_a_gap_in_a_sparse_matrix_is_named():
    forest = RandomForestClassifier(5, random_state=0).fit(ROWS, LABELS)
    with pytest.raises(ValueError, match=r"pool must hold no gaps but .* at row 4, column 1"):
        stakes.rank(forest, LOG, sparse.csr_array(with_gap(POOL)))
    assert len(stakes.rank(forest, LOG, with_gap(POOL), n=2)) == 2


def test_what_is_masked_is_a_gap():
    model = BayesianRidge().fit(ROWS, AMOUNTS)
    masked = np.ma.array(POOL, mask=np.isnan(with_gap(POOL)))
    with pytest.raises(ValueError, match="nan at row 4, column 1"):
        stakes.rank(model, SQUARED, masked)
    assert stakes.rank(model, SQUARED, np.ma.array(POOL)) == stakes.rank(model, SQUARED, POOL)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_infinity_and_columns_are_named_in_every_table(kind):
    frame = KINDS[kind]
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(frame(ROWS), AMOUNTS)
    with pytest.raises(ValueError, match=r"pool must hold finite numbers; .* inf at row 4, column 'b'"):
        stakes.rank(model, SQUARED, frame(with_gap(POOL, np.inf)))
    with pytest.raises(ValueError, match="contexts must hold finite numbers; the first that is not is -inf at row 4"):
        stakes.rank(model, SQUARED, frame(POOL), contexts=frame(with_gap(POOL, -np.inf)))
    with pytest.raises(ValueError, match=r"columns of pool must be those the model was fitted with.*missing \['c'\]"):
        stakes.rank(model, SQUARED, frame(POOL[:, :2]))
    swapped = frame(POOL).select(["b", "a", "c"]) if kind != "pandas" else frame(POOL)[["b", "a", "c"]]
    for wrapped in (model, EnsembleOf([model], noise_sd=0.1)):
        with pytest.raises(ValueError, match="column 0 is 'b', 'a' was expected"):
            stakes.rank(wrapped, SQUARED, swapped)


FITTED = BayesianRidge().fit(ROWS, AMOUNTS)
FITTED.n_samples_seen_ = len(ROWS)  # else it is estimated from the contexts
FOREST = RandomForestClassifier(5, random_state=0).fit(ROWS, LABELS)
UNKEPT = GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6]}, cv=2, refit=False).fit(ROWS, AMOUNTS)
REFUSED = [
    ((UNKEPT, SQUARED), {}, ValueError, "fitted with refit=False and holds no fitted estimator"),
    ((make_pipeline(StandardScaler().fit(ROWS), UNKEPT), SQUARED), {}, ValueError, "fitted with refit=False"),
    ((BayesianRidge, SQUARED), {}, TypeError, "a fitted model is needed; got the class BayesianRidge itself"),
    ((FITTED, stakes.SquaredError), {}, TypeError, r"must be a loss such as SquaredError\(\)"),
    ((FITTED, SQUARED), {"classes": [0, 1]}, ValueError, r"about \(-inf, inf\): leave them out"),
    ((FOREST, LOG), {"classes": 2}, TypeError, "classes must be a list of all classes"),
    ((FOREST, LOG), {"classes": "yes"}, TypeError, "classes must be a list of all classes"),
    ((FOREST, LOG), {"classes": ["yes"]}, ValueError, r"\['no'\] not in \['yes'\]"),
    (
        (FOREST, stakes.LogLoss([1.0, 2.0, 3.0])),
        {},
        TypeError,
        "`classes` of rank and belief_of names those",
    ),
    ((FITTED, SQUARED), {"budget": "3"}, ValueError, "budget must be positive"),
    ((lambda rows: rows, SQUARED), {}, TypeError, r"EnsembleOf\(a function of the rows\)"),
]


@pytest.mark.parametrize(("pair", "options", "error", "message"), REFUSED)
def test_misunderstandings_are_reported(pair, options, error, message):
    with pytest.raises(error, match=message):
        stakes.rank(*pair, POOL, **options)


def test_a_search_without_its_best_is_refused_in_lists_too():
    for model in (UNKEPT, EnsembleOf(UNKEPT, noise_sd=1.0)):
        with pytest.raises(ValueError, match="fitted with refit=False"):
            belief_of(model, POOL, POOL)


def test_rows_that_never_come_up_do_not_stand_for_the_future():
    weights = np.zeros(12)
    weights[[3, 8]] = 1.0, 2.0
    few = stakes.rank(FITTED, SQUARED, POOL, n=4, max_contexts=5, context_weights=weights)
    whole = stakes.rank(FITTED, SQUARED, POOL, n=4, context_weights=weights)
    assert few.indices == whole.indices
    np.testing.assert_allclose(few.scores, whole.scores, rtol=1e-12)
    assert str(few.notes[0]).startswith("2 of the 12 rows of the pool")


def test_texts_without_a_model_are_refused_with_what_to_do():
    with pytest.raises(TypeError, match=r"TfidfVectorizer\(\).fit_transform\(texts\)"):
        stakes.rank(None, LOG, ["a b", "b c"])


def simulated(model, labels, loss, **options):
    sizes = {"n": 1, "runs": 1, "n_contexts": 4, "n_test": 6, "strategies": ["random"]}
    return stakes.simulate(model, loss, ROWS, labels, **sizes, **options)


def test_simulate_warns_of_trained_weights_and_takes_instances_only():
    model = RandomForestClassifier(3, class_weight="balanced", random_state=0)
    with pytest.warns(TrainedWeightWarning, match="class_weight='balanced'"):
        simulated(model, LABELS, stakes.LogLoss([1.0, 5.0]))
    simulated(model, LABELS, LOG)
    with pytest.raises(TypeError, match=r"loss must be a loss such as SquaredError\(\)"):
        simulated(model, LABELS, stakes.LogLoss)


def test_simulate_asks_for_an_order_of_classes_that_have_none():
    mixed = np.array([1, "one"] * 20, dtype=object)
    with pytest.raises(TypeError, match=r"classes cannot be ordered.*give classes=... in order"):
        simulated(FOREST, mixed, LOG)


def test_equal_frames_have_one_hash_however_they_lie_in_memory():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ROWS[:, 0], "b": LABELS, "c": ROWS[:, 2]})
    apart = pandas.concat([frame[["a"]], frame[["b"]], frame[["c"]]], axis=1)
    assert data_hash(frame) == data_hash(frame.iloc[:]) == data_hash(apart)
    assert len({data_hash(each) for each in (frame, frame[["b", "a", "c"]], frame.assign(a=0.0), frame[:9])}) == 4
