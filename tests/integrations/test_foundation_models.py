"""Models that learn in context, by stand-ins whose joint is known exactly."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from stakes import (
    CRPS,
    AbsoluteError,
    BrierLoss,
    ExponentialWeight,
    GaussianBelief,
    Linex,
    LogLoss,
    LogScore,
    Pinball,
    SquaredError,
    ThresholdDecision,
    rank,
    score,
    uncertainty,
)
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.exceptions import StakesError
from stakes.integrations.foundation_models import InContext
from stakes.testing import check_belief
from tests.integrations.pages import run_page


class Cells:
    """Two classes in each cell x = 0, 1, ..: counts plus one, a Dirichlet prior: the joint is known."""

    def fit(self, X, y):
        self.counts = {cell: np.ones(2) for cell in range(9)}
        for row, label in zip(X[:, 0], y, strict=True):
            self.counts[int(row)][int(label)] += 1.0
        return self

    def predict_proba(self, X):
        found = np.stack([self.counts[int(cell)] for cell in X[:, 0]])
        return found / found.sum(axis=1, keepdims=True)


X = np.array([[0], [0], [0], [1], [1], [2]])
Y = np.array([0, 0, 1, 0, 1, 1])
POOL, CONTEXTS = np.array([[0], [1], [2], [3]]), np.array([[0], [1], [3]])


def _reduction(counts):
    """By hand: of the entropy at a cell by one more label in it."""

    def entropy(counts):
        p = counts / counts.sum()
        return -(p * np.log(p)).sum()

    return entropy(counts) - sum(p * entropy(counts + e) for p, e in zip(counts / counts.sum(), np.eye(2), strict=True))


def test_conditioning_is_exact_where_the_model_is_coherent():
    model = InContext(Cells(), X, Y)
    belief = model.belief(POOL, CONTEXTS)
    check_belief(belief)
    np.testing.assert_allclose(model.predict_proba(POOL)[:, 1], [2 / 5, 1 / 2, 2 / 3, 1 / 2])
    wanted = np.array([_reduction(np.array(each)) for each in ([3.0, 2.0], [2.0, 2.0], [1.0, 1.0])]) / 3.0
    found = score(LogLoss(), belief)
    np.testing.assert_allclose(found[[0, 1, 3]], wanted, rtol=1e-9)
    assert found[2] == pytest.approx(0.0, abs=1e-12)  # no context is in its cell
    assert rank(model, LogLoss(), POOL, contexts=CONTEXTS, n=1).indices[0] == 3


def test_the_least_certain_candidates_are_asked_about():
    found = score(LogLoss(), InContext(Cells(), X, Y, max_candidates=2).belief(POOL, CONTEXTS))
    assert (found[[1, 3]] > 0.0).all()  # p = 1/2
    np.testing.assert_allclose(found[[0, 2]], 0.0, atol=1e-12)


def test_draws_agree_with_conditioning():
    """Ten labels of a cell, beside four or two counts, tell 10/14 or 10/12 of it; worths go by the square of that."""
    exact = score(BrierLoss(), InContext(Cells(), X, Y).belief(POOL[[1, 3]], CONTEXTS[1:]))
    model = InContext(Cells(), X, Y, joint="drawn", n_draws=600, n_rows=20)
    drawn = model.belief(POOL[[1, 3]], CONTEXTS[1:])
    np.testing.assert_allclose(score(BrierLoss(), drawn), exact * [(10 / 14) ** 2, (10 / 12) ** 2], rtol=0.2)
    np.testing.assert_allclose(drawn.contexts.mean(axis=1)[:, 1], [0.5, 0.5], atol=0.05)


class Process:
    """A Gaussian process with a fixed kernel and noise, that gives quantiles as TabICL does."""

    noise = 0.1

    def kernel(self, left, right):
        return np.exp(-0.5 * ((left[:, None, 0] - right[None, :, 0]) / 0.8) ** 2)

    def fit(self, X, y):
        self.X, self.root = X, np.linalg.cholesky(self.kernel(X, X) + self.noise * np.eye(len(X)))
        self.rest = np.linalg.solve(self.root, y)
        return self

    def joint(self, X):
        """Means, and covariances of the function."""
        seen = np.linalg.solve(self.root, self.kernel(self.X, X))
        return seen.T @ self.rest, self.kernel(X, X) - seen.T @ seen

    def predict(self, X, output_type="mean", alphas=None):
        mean, covariance = self.joint(X)
        sd = np.sqrt(np.diagonal(covariance) + self.noise)
        return mean if output_type == "mean" else mean[:, None] + sd[:, None] * norm.ppf(alphas)


class Batched(Process):
    """The same in TabPFN's shapes, many sets of labels at once."""

    def predict(self, X, output_type="mean", quantiles=None):
        found = Process.predict(self, X, output_type, quantiles)
        return [*found.T] if output_type == "quantiles" else found

    def predict_batched(self, X, y, asked, **how):
        self.sizes = [*getattr(self, "sizes", []), len(X)]
        return [Batched().fit(*each).predict(rows, **how) for *each, rows in zip(X, y, asked, strict=True)]


LINE = np.array([[-1.0], [0.0], [1.5]])
HEIGHTS = np.array([-0.5, 0.3, 1.0])
CANDIDATES, PLACES = np.array([[-2.0], [0.7], [2.5], [9.0]]), np.array([[-1.6], [0.9], [2.0], [3.0]])


def exact(process=None):
    mean, covariance = (Process() if process is None else process).fit(LINE, HEIGHTS).joint(np.r_[PLACES, CANDIDATES])
    variance = np.diagonal(covariance) + Process.noise
    return GaussianBelief(mean[:4], variance[:4], variance[4:], covariance[4:, :4])


@pytest.mark.parametrize(
    ("loss", "error"),
    [
        (SquaredError(), 0.005),
        (SquaredError(ExponentialWeight(0.5)), 0.01),
        (Linex(1.0), 0.01),
        (ThresholdDecision(0.8, miss=5.0), 0.05),  # labels come in steps of half a standard deviation
        (CRPS(), 0.02),
        (AbsoluteError(), 0.03),
        (Pinball(0.9), 0.03),
        (LogScore(), 0.02),
    ],
)
def test_conditioning_of_numbers_is_exact_but_for_cells_and_labels(loss, error):
    belief = InContext(Process(), LINE, HEIGHTS).belief(CANDIDATES, PLACES)
    check_belief(belief)
    check_belief(belief, ThresholdDecision(0.8, miss=5.0))
    wanted = score(loss, exact())
    np.testing.assert_allclose(score(loss, belief), wanted, atol=error * wanted.max())
    if not isinstance(loss, LogScore):  # which may be near 0
        left = uncertainty(loss, exact())
        np.testing.assert_allclose(uncertainty(loss, belief), left, atol=0.01 * left.max())
    answers, targets = (bayes_prediction(loss, each) for each in (belief, exact())), np.array([-0.4, 0.5, 0.2, 0.1])
    mine, theirs = (realised_loss(loss, each, targets).mean for each in answers)
    assert mine == pytest.approx(theirs, abs=0.05 if isinstance(loss, LogScore) else 0.01)


def test_numbers_in_batches_and_those_of_largest_sd():
    one, many = Process(), Batched()
    wanted = InContext(one, LINE, HEIGHTS, max_candidates=2).belief(CANDIDATES, PLACES)
    found = InContext(many, LINE, HEIGHTS, max_candidates=2, batch_size=3).belief(CANDIDATES, PLACES)
    np.testing.assert_allclose(found.joint, wanted.joint, rtol=1e-9)
    assert many.sizes == [3, 2, 3, 2]  # five labels of each
    assert [*wanted.place] == [-1, -1, 1, 0]  # nothing is known at 9, little at 2.5
    assert (score(SquaredError(), found)[:2] == 0.0).all()
    drawn = [InContext(each, LINE, HEIGHTS, joint="drawn").belief(CANDIDATES, PLACES) for each in (one, many)]
    np.testing.assert_allclose(drawn[0].context_mean, drawn[1].context_mean, rtol=1e-9)
    model = InContext(many, LINE, HEIGHTS)
    np.testing.assert_allclose(
        model.predict_quantiles(PLACES, [0.3, 0.5]),
        np.stack(many.predict(PLACES, "quantiles", [0.3, 0.5]), 1),
        rtol=1e-3,
    )
    assert rank(model, SquaredError(), CANDIDATES, contexts=PLACES, n=1).indices[0] == int(
        np.argmax(score(SquaredError(), exact()))
    )


def test_draws_of_numbers_have_the_variances_and_covariances_of_the_process():
    """Means of members vary as the labels that were drawn let them, and their variance is what is left."""
    rows = np.r_[CANDIDATES[:3], PLACES]
    belief = InContext(Process(), LINE, HEIGHTS, joint="drawn", n_draws=600, n_rows=20).belief(CANDIDATES[:3], PLACES)
    mean, covariance = Process().fit(LINE, HEIGHTS).joint(rows)
    members = np.r_[belief.candidate_mean, belief.context_mean]
    np.testing.assert_allclose(members.mean(axis=1), mean, atol=0.15)
    left = np.r_[belief.candidate_sd, belief.context_sd] ** 2
    np.testing.assert_allclose(np.cov(members).diagonal() + left.mean(axis=1), np.diagonal(covariance) + 0.1, rtol=0.15)
    check_belief(belief)
    wanted = score(SquaredError(), exact())[:3]
    np.testing.assert_allclose(score(SquaredError(), belief), wanted, atol=0.12 * wanted.max())
    assert len(rank(InContext(Process(), LINE, HEIGHTS, joint="drawn"), CRPS(), CANDIDATES, contexts=PLACES, n=2)) == 2


class Wavering(Process):
    """What it says of all rows moves with every label, as no process does."""

    def predict(self, X, output_type="mean", alphas=None):
        found = Process.predict(self, X, output_type, alphas)
        return np.round(1.4 * found + len(self.X) - 3.0) / 2.0  # and many quantiles are the same


def test_numbers_that_are_not_coherent_are_scaled_to_the_prediction_of_today():
    belief = InContext(Wavering(), LINE, HEIGHTS).belief(CANDIDATES, PLACES)
    for loss in (SquaredError(), ThresholdDecision(0.8), SquaredError(ExponentialWeight(1.0))):
        check_belief(belief, loss)
    assert (score(CRPS(), belief)[:3] > 0.0).all()


@pytest.mark.parametrize("joint", ["conditioned", "drawn"])
def test_a_data_frame_stays_one(joint):
    """Those packages encode its columns of text themselves, and refuse an array that holds texts."""
    rng = np.random.default_rng(1)
    numbers, kinds = rng.normal(size=30), rng.integers(2, size=30)
    labels = (numbers + 2.0 * kinds + 0.3 * rng.normal(size=30) > 1.0).astype(int)[:12]
    frame = pd.DataFrame({"kind": pd.Categorical(np.array(["new", "old"])[kinds]), "x": numbers}, index=range(5, 35))
    one_hot = OneHotEncoder(sparse_output=False)
    encoded = make_pipeline(make_column_transformer((one_hot, ["kind"]), remainder="passthrough"), GaussianNB())
    arrays = np.stack([1.0 - kinds, kinds, numbers], axis=1)
    model = InContext(encoded, frame[:12], labels, joint=joint)
    found = score(LogLoss(), model.belief(frame[12:20], frame[20:]))
    wanted = InContext(GaussianNB(), arrays[:12], labels, joint=joint).belief(arrays[12:20], arrays[20:])
    np.testing.assert_allclose(found, score(LogLoss(), wanted), rtol=1e-9)
    turned = rank(model, LogLoss(), frame[12:20][["x", "kind"]], contexts=frame[20:][["x", "kind"]], n=1)
    assert turned.indices[0] == int(found.argmax())
    for wrong in (arrays, frame[["x"]]):
        with pytest.raises(StakesError, match=r"a data frame with the columns \['kind', 'x'\], as X was"):
            model.predict_proba(wrong)


def test_what_is_refused():
    for wrong in (object(), Process.kernel, np.poly1d([1.0])):
        with pytest.raises(TypeError, match="wants a classifier or a regressor"):
            InContext(wrong, X, Y)
    for wrong in ((X, Y[:2]), (X[:2], Y[:2])):
        with pytest.raises(StakesError, match="two different labels"):
            InContext(Cells(), *wrong)
    with pytest.raises(StakesError, match="it is missing in row 1"):
        InContext(Process(), LINE, np.array([0.0, np.nan, 1.0]))
    for wrong in ({"joint": "both"}, {"n_draws": 0}, {"n_labels": 1}, {"batch_size": 0}):
        with pytest.raises(StakesError, match="conditioned"):
            InContext(Cells(), X, Y, **wrong)
    with pytest.raises(TypeError, match="predict_proba says"):
        InContext(Cells(), X, Y).predict_quantiles(X, [0.5])
    model = InContext(Process(), LINE, HEIGHTS)
    with pytest.raises(TypeError, match="predict_quantiles says"):
        model.predict_proba(PLACES)
    with pytest.raises(TypeError, match="LogLoss is for class targets"):
        score(LogLoss(), model.belief(CANDIDATES, PLACES))
    lost = InContext(Process(), LINE, np.array([0.0, np.inf, 1.0]))
    with pytest.raises(StakesError, match="quantiles of Process must be finite"), np.errstate(all="ignore"):
        lost.belief(CANDIDATES, PLACES)


def test_page(tmp_path):
    run_page("foundation_models", tmp_path)
