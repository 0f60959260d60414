"""A classifier on labels that may be wrong."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from stakes import LogLoss, rank
from stakes.exceptions import StakesError
from stakes.models import LabelDraws, belief_of


def two_groups(seed=0, rows=60, right=0.8):
    """Rows of two classes that a line separates, and what somebody says who is right in some cases."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], rows // 2)
    X = rng.normal(size=(rows, 3)) + 3.0 * truth[:, None]
    label = np.where(rng.random(rows) < right, truth, 1 - truth)
    return X, truth, np.where(np.eye(2)[label] > 0, right, 1 - right)


@pytest.mark.parametrize("estimator", [None, LogisticRegression()])
def test_neighbours_mend_wrong_labels(estimator):
    X, truth, likelihoods = two_groups()
    model = LabelDraws(estimator, copies=40).fit(X, likelihoods)
    reported = likelihoods.argmax(axis=1)
    assert (reported != truth).sum() > 5
    assert (model.posterior_.argmax(axis=1) != truth).sum() < (reported != truth).sum() / 2


def test_known_labels_stay_what_they_are():
    X, truth, likelihoods = two_groups()
    likelihoods[:10] = np.eye(2)[truth[:10]]
    model = LabelDraws(copies=20).fit(X, likelihoods)
    assert np.array_equal(model.posterior_[:10], np.eye(2)[truth[:10]])
    assert np.all(model.drawn_[:, :10] == truth[:10])


def test_drawn_labels_have_the_frequencies_of_the_posterior():
    X, _, likelihoods = two_groups(rows=20)
    model = LabelDraws(copies=2000, rounds=1).fit(X, likelihoods)
    expected = likelihoods / likelihoods.sum(axis=1, keepdims=True)  # before anything else is known
    assert model.drawn_.mean(axis=0) == pytest.approx(expected[:, 1], abs=0.05)


def test_members_hold_what_was_drawn_for_rows_that_they_saw():
    X, _, likelihoods = two_groups()
    model = LabelDraws(copies=20).fit(X, likelihoods)
    rows = np.array([3, 40])
    members = model.labelled_members(X[rows], rows)
    seen = ~model.left_out_[:, rows].T
    assert np.array_equal(members.argmax(axis=2)[seen], model.drawn_[:, rows].T[seen])
    assert members.sum(axis=2) == pytest.approx(np.ones((2, 20)), abs=1e-5)
    assert model.left_out_.mean() == pytest.approx(0.2)


def test_the_belief_is_that_of_the_copies():
    X, _, likelihoods = two_groups()
    model = LabelDraws(copies=20).fit(X, likelihoods, classes=["no", "yes"])
    belief = belief_of(model, X[:4], X[4:9])
    assert belief.candidates.shape == (4, 20, 2)
    assert belief.contexts.mean(axis=1) == pytest.approx(model.predict_proba(X[4:9]), abs=1e-6)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert len(rank(model, LogLoss(), X, n=3).indices) == 3
    assert "20 copies of an extremely randomised tree" in model.report_[0]
    with pytest.raises(StakesError, match="classes must be those of the model"):
        belief_of(model, X[:4], X[4:9], classes=["yes", "no"])


def test_the_model_answers_as_it_was_calibrated():
    """What is predicted has the power and the share under which opinions were most probable."""
    X, _, likelihoods = two_groups(rows=200)
    model = LabelDraws(copies=40).fit(X, likelihoods)
    assert model.power_ > 1.0  # the groups are apart, and one label in five is wrong
    mean = model._predicted(model._encoded(X)).mean(axis=1, dtype=float)
    sharp = mean**model.power_ / np.sum(mean**model.power_, axis=1, keepdims=True)
    expected = (1.0 - model.smoothing_) * sharp + model.smoothing_ * model.shares_
    assert model.predict_proba(X) == pytest.approx(expected, abs=1e-5)


def test_likelihoods_of_each_copy():
    X, truth, likelihoods = two_groups()
    by_copy = np.broadcast_to(likelihoods, (10, *likelihoods.shape)).copy()
    one, other = (LabelDraws(copies=10).fit(X, each) for each in (likelihoods, by_copy))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    by_copy[4] = np.eye(2)[1 - truth]  # one copy holds that all labels are wrong
    model = LabelDraws(copies=10).fit(X, by_copy)
    assert np.all(model.drawn_[4] == 1 - truth)
    assert model.labelled_members(X[:2], np.arange(2))[:, 4, 1] == pytest.approx([1.0, 1.0])
    with pytest.raises(StakesError, match="one for each of 10 copies; got 3"):
        LabelDraws(copies=10).fit(X, by_copy[:3])


def test_columns_of_any_kind():
    pd = pytest.importorskip("pandas")
    X, _, likelihoods = two_groups()
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 1.5, "a", "b")})
    frame.loc[3, "x"] = np.nan
    model = LabelDraws(copies=10).fit(frame.iloc[:40], likelihoods[:40], pool=frame)
    assert model.predict_proba(frame).shape == (60, 2)


def test_the_same_again():
    X, _, likelihoods = two_groups()
    one, other = (LabelDraws(copies=10, random_state=3).fit(X, likelihoods).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, other)


def test_few_rows_and_one_class():
    model = LabelDraws(copies=5).fit([[0.0], [1.0]], [[1.0, 0.0], [1.0, 0.0]])
    assert model.predict_proba([[0.5]]).sum() == pytest.approx(1.0)
    assert LabelDraws(copies=5).fit([[0.0], [1.0]], [[1.0], [1.0]]).predict_proba([[0.5]]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("likelihoods", "message"),
    [
        ([[0.5, 0.5]], r"likelihoods must have shape \[2, C\]"),
        ([[0.0, 0.0], [1.0, 0.0]], "leave each row a class"),
        ([[-1.0, 2.0], [1.0, 0.0]], "at least 0"),
    ],
)
def test_likelihoods_that_are_refused(likelihoods, message):
    with pytest.raises(StakesError, match=message):
        LabelDraws().fit([[0.0], [1.0]], likelihoods)


def test_other_refusals():
    X, _, likelihoods = two_groups()
    with pytest.raises(StakesError, match="classes must name the 2 columns"):
        LabelDraws().fit(X, likelihoods, classes=["a"])
    with pytest.raises(StakesError, match="copies must be a whole number, 5 or more"):
        LabelDraws(copies=3).fit(X, likelihoods)
    with pytest.raises(StakesError, match="rounds must be a whole number, 1 or more"):
        LabelDraws(rounds=0).fit(X, likelihoods)
    with pytest.raises(StakesError, match="start must have shape"):
        LabelDraws().fit(X, likelihoods, start=likelihoods[:3])
