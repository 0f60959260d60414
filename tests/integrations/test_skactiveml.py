"""The query strategy of scikit-activeml: the same rows as rank, and what its own tests ask of a strategy."""

import warnings

import numpy as np
import pytest

pytest.importorskip("skactiveml", reason="scikit-activeml is not installed")
from skactiveml.classifier import ParzenWindowClassifier, SklearnClassifier
from skactiveml.pool import ParallelUtilityEstimationWrapper
from skactiveml.regressor import SklearnRegressor
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

from stakes import CostMatrix, LogLoss, SquaredError, ThresholdDecision, rank
from stakes.exceptions import StakesError
from stakes.integrations.skactiveml import LossDriven
from tests.integrations.pages import run_page

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
SEEN = np.arange(40) < 12
CLASSES = np.where(SEEN, (X[:, 0] + 0.3 * RNG.normal(size=40) > 0).astype(float), np.nan)
NUMBERS = np.where(SEEN, X[:, 0] ** 2 + 0.1 * RNG.normal(size=40), np.nan)
CLF = SklearnClassifier(RandomForestClassifier(25, random_state=0), classes=[0, 1])
REG = SklearnRegressor(GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), optimizer=None))
COSTS = CostMatrix([[0, 1], [5, 0]])
ASKED = [
    pytest.param(COSTS, {"y": CLASSES, "clf": CLF}, id="classes"),
    pytest.param(SquaredError(), {"y": NUMBERS, "reg": REG}, id="numbers"),
]


def strategy(loss, **options):
    return LossDriven(loss, random_state=1, **options)


@pytest.mark.parametrize(
    ("loss", "asked"), [*ASKED, pytest.param(ThresholdDecision(1.0, 1, 4), {"y": NUMBERS, "reg": REG}, id="decision")]
)
def test_the_rows_and_worths_of_rank(loss, asked):
    model = clone(asked.get("clf", asked.get("reg"))).fit(X, asked["y"]).estimator_
    chosen, utilities = strategy(loss).query(X, **asked, return_utilities=True)
    ranking = rank(model, loss, X[12:], contexts=X, n=28, batch=False)
    assert utilities.shape == (1, 40)
    assert np.isnan(utilities[0, :12]).all()
    np.testing.assert_allclose(utilities[0, 12 + np.array(ranking.indices)], ranking.scores, rtol=1e-6, atol=1e-12)
    assert utilities[0, chosen[0]] == pytest.approx(ranking.scores[0], rel=1e-6)
    together = rank(model, loss, X[12:], contexts=X, n=3)
    batch, gains = strategy(loss).query(X, **asked, batch_size=3, return_utilities=True)
    assert gains[[0, 1, 2], batch] == pytest.approx(together.scores, rel=1e-6)
    assert len(set(batch)) == 3


def test_classes_by_name():
    names = np.array(["ill", "well"], dtype=object)
    y = np.array([None if np.isnan(each) else names[int(each)] for each in CLASSES], dtype=object)
    loss = CostMatrix({"well": {"treat": 1, "wait": 0}, "ill": {"treat": 1, "wait": 20}})
    clf = SklearnClassifier(RandomForestClassifier(25, random_state=0), classes=list(names), missing_label=None)
    by_name = LossDriven(loss, missing_label=None, random_state=1).query(X, y, clf=clf, return_utilities=True)[1]
    turned = CostMatrix([[1, 20], [1, 0]])
    by_place = LossDriven(turned, missing_label=None, random_state=1).query(X, y, clf=clf, return_utilities=True)[1]
    np.testing.assert_allclose(by_name, by_place)


@pytest.mark.parametrize(("loss", "asked"), ASKED)
def test_within_their_parallel_wrapper(loss, asked):
    wrapped = ParallelUtilityEstimationWrapper(strategy(loss), n_jobs=2, parallel_dict={"backend": "threading"})
    _, apart = wrapped.query(X, **asked, return_utilities=True)
    _, at_once = strategy(loss).query(X, **asked, return_utilities=True)
    np.testing.assert_allclose(apart, at_once, rtol=1e-9)


@pytest.mark.parametrize(("loss", "asked"), ASKED)
def test_candidates_by_position_and_as_rows(loss, asked):
    """What their TemplateSingleAnnotatorPoolQueryStrategy asks of candidates, batches and repetition."""
    every = strategy(loss).query(X, **asked, return_utilities=True)[1]
    again = strategy(loss).query(X, **asked, return_utilities=True)[1]
    np.testing.assert_array_equal(every, again)
    by_place = strategy(loss).query(X, **asked, candidates=np.flatnonzero(~SEEN), return_utilities=True)[1]
    np.testing.assert_allclose(by_place, every)
    chosen, one = strategy(loss).query(X, **asked, candidates=[20], return_utilities=True)
    assert chosen.tolist() == [20]
    assert np.flatnonzero(~np.isnan(one[0])).tolist() == [20]
    rows = strategy(loss).query(X, **asked, candidates=X[~SEEN], return_utilities=True)[1]
    np.testing.assert_allclose(rows[0], every[0, ~SEEN])
    with pytest.warns(UserWarning, match="larger than number of candidates"):
        assert len(strategy(loss).query(X, **asked, candidates=[20, 21], batch_size=3)) == 2


def test_models_are_left_as_they_were_and_may_be_fitted_before():
    clf = clone(CLF)
    strategy(COSTS).query(X, CLASSES, clf=clf)
    assert not hasattr(clf, "estimator_")
    fitted = clone(CLF).fit(X, CLASSES)
    one, other = (
        strategy(COSTS).query(X, CLASSES, clf=each, fit_clf=fit, return_utilities=True)[1]
        for each, fit in ((clf, True), (fitted, False))
    )
    np.testing.assert_allclose(one, other)


def test_few_labels_and_none():
    for count in (0, 1, 3):
        y = np.where(np.arange(40) < count, CLASSES, np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # theirs, of a model that cannot be fitted
            chosen, utilities = strategy(LogLoss()).query(X, y, clf=CLF, return_utilities=True)
        assert chosen[0] >= count
        assert np.isnan(utilities).sum() == count
    assert np.nanmax(strategy(SquaredError()).query(X, np.full(40, np.nan), reg=REG, return_utilities=True)[1]) == 0.0


@pytest.mark.parametrize(
    ("loss", "model"),
    [
        (COSTS, {"clf": SklearnClassifier(GaussianProcessClassifier(), classes=[0, 1])}),
        (SquaredError(), {"reg": SklearnRegressor(RandomForestRegressor(10, random_state=0))}),
        (SquaredError(), {"reg": SklearnRegressor(LinearRegression())}),
    ],
)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.filterwarnings("ignore:The 'base_estimator' could not be fitted")  # theirs, of one class
def test_labels_that_are_all_alike(loss, model, count):
    """Their tests begin with them: a process of classes cannot be fitted, and the noise of a number is not known."""
    y = np.where(np.arange(40) < count, 1.0, np.nan)
    chosen, utilities = strategy(loss).query(X, y, **model, batch_size=2, return_utilities=True)
    assert len(set(chosen[chosen >= count])) == 2
    assert np.nanmax(utilities) == 0.0


def test_labels_beside_none_keep_their_type():
    """Their y is of objects then, which no estimator of scikit-learn takes for classes when they are numbers."""
    y = np.array([None if np.isnan(each) else int(each) + 1 for each in CLASSES], dtype=object)
    asked = {"missing_label": None, "classes": [1, 2]}
    found = LossDriven(COSTS, missing_label=None, random_state=1).query(
        X, y, clf=ParzenWindowClassifier(**asked), return_utilities=True
    )[1]
    assert np.nanmax(found) > 0.0


def test_an_estimator_without_a_belief_is_fitted_to_rows_drawn_anew():
    clf = SklearnClassifier(LogisticRegression(), classes=[0, 1])
    utilities = strategy(COSTS).query(X, CLASSES, clf=clf, return_utilities=True)[1]
    assert np.nanmax(utilities) > 0.0


def test_contexts_that_are_too_many_are_drawn():
    few = strategy(COSTS, max_contexts=10).query(X, CLASSES, clf=CLF, return_utilities=True)[1]
    assert not np.allclose(
        few[0, ~SEEN], strategy(COSTS).query(X, CLASSES, clf=CLF, return_utilities=True)[1][0, ~SEEN]
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"clf": None}, TypeError),
        ({"reg": REG}, TypeError),
        ({"clf": GaussianNB()}, TypeError),
        ({"fit_clf": "state"}, TypeError),
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 1.2}, TypeError),
        ({"return_utilities": "string"}, TypeError),
        ({"y": np.vstack([CLASSES, CLASSES])}, ValueError),
    ],
)
def test_refusals(change, error):
    with pytest.raises(error):
        strategy(COSTS).query(**{"X": X, "y": CLASSES, "clf": CLF, **change})


@pytest.mark.parametrize(
    ("loss", "asked", "wanted"),
    [
        (SquaredError(), {"y": CLASSES, "clf": CLF}, "SquaredError is for real targets"),
        (COSTS, {"y": CLASSES, "clf": clone(CLF).set_params(classes=[0, 1, 2])}, "CostMatrix is for 2 classes"),
        ("zero-one", {"y": CLASSES, "clf": CLF}, "loss must be a loss such as"),
    ],
)
@pytest.mark.parametrize("size", [1, 2])
def test_losses_that_do_not_fit(loss, asked, wanted, size):
    with pytest.raises(TypeError, match=wanted):
        strategy(loss).query(X, **asked, batch_size=size)


def test_the_number_of_contexts_is_refused():
    with pytest.raises(StakesError, match="max_contexts must be a whole number, 1 or more; got 0"):
        strategy(COSTS, max_contexts=0).query(X, CLASSES, clf=CLF)


def test_the_loss_is_wanted():
    with pytest.raises(StakesError, match="LossDriven needs the loss"):
        LossDriven().query(X, CLASSES, clf=CLF)


def test_the_page(tmp_path):
    run_page("skactiveml", tmp_path)
