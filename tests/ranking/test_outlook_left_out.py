"""What a model lost on its own labels, each left out, beside what it expected: by hand, and in an outlook."""

import math

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from stakes import (
    CRPS,
    BayesianProcess,
    LogScore,
    PerContext,
    Pinball,
    SquaredError,
    ThresholdDecision,
    default,
    outlook,
    rank,
)
from stakes.ranking.outlook import (
    AS_EXPECTED,
    FURTHEST,
    GAUSSIAN_SHARE,
    LEFT_OUT_POWER,
    LeftOut,
    left_out,
    left_out_factor,
)
from stakes.ranking.query import make_query


@pytest.fixture(scope="module")
def tailed():
    """Rows, and labels of which a few are far from the rest."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    return X, X[:, 0] + rng.standard_t(1.5, size=60)


@pytest.fixture(scope="module")
def model(tailed):
    X, y = tailed
    return BayesianProcess().fit(X[:24], y[:24], pool=X[24:])


def query(model, loss, X, **options):
    return make_query(model, loss, X[24:], **options)


def test_squared_errors_by_hand(model, tailed):
    X, y = tailed
    known = model.left_out()
    found = left_out(query(model, SquaredError(), X))
    assert found.labels == 24
    assert found.lost == pytest.approx(np.mean((y[:24] - known.mean) ** 2))
    assert found.expected == pytest.approx(np.mean(known.variance))
    ratio = (24 * found.lost / found.expected + AS_EXPECTED) / (24 + AS_EXPECTED)
    assert found.factor == pytest.approx(ratio**LEFT_OUT_POWER)


def test_other_losses_are_their_own(model, tailed):
    X, y = tailed
    found = left_out(query(model, ThresholdDecision(0.5, 5.0, 1.0), X))
    known = model.left_out()
    above = 0.5 * np.array([math.erfc(z) for z in (0.5 - known.mean) / np.sqrt(2.0 * known.variance)])
    assert found.expected == pytest.approx(np.mean(np.minimum(5.0 * above, 1.0 - above)))
    act = 5.0 * above > 1.0 - above
    lost = np.where(act, (y[:24] <= 0.5) * 1.0, (y[:24] > 0.5) * 5.0)
    assert found.lost == pytest.approx(np.mean(lost))
    assert left_out(query(model, Pinball(0.9), X)).lost > 0.0


def test_the_factor_goes_to_1_with_few_labels_and_is_bounded():
    assert LeftOut(1.0, 1.0, 30).factor == 1.0
    assert 1.0 < LeftOut(2.0, 1.0, 5).factor < LeftOut(2.0, 1.0, 50).factor < 2.0**LEFT_OUT_POWER
    assert 1.0 > LeftOut(0.5, 1.0, 5).factor > LeftOut(0.5, 1.0, 50).factor > 0.5**LEFT_OUT_POWER
    assert LeftOut(1e6, 1.0, 50).factor == FURTHEST
    assert LeftOut(0.0, 1.0, 10**6).factor == 1.0 / FURTHEST


def test_an_outlook_is_all_in_proportion(model, tailed):
    """The loss of today, the most, and what labels save; their ranking stays."""
    X, _ = tailed
    asked = query(model, SquaredError(), X, n=4)
    factor = left_out_factor(asked)
    assert abs(factor - 1.0) > 0.05
    found, plain = outlook(model, SquaredError(), X[24:], n=4), rank(model, SquaredError(), X[24:], n=4)
    mean, variance = model.predict(X[24:], return_std=True)
    assert mean.shape == variance.shape
    assert found.today.value == pytest.approx(factor * np.mean(variance**2))
    assert found.ranking.indices == plain.indices
    own = np.cumsum([reason.worth for reason in plain.reasons])
    promised = np.minimum(GAUSSIAN_SHARE * factor * own, np.maximum(factor * own, found.most.value))
    assert [offer.worth for offer in found.offers] == pytest.approx(promised.tolist())
    (note,) = [note for note in found.ranking.notes if note.kind == "labels left out"]
    assert note.values["factor"] == pytest.approx(factor)
    assert f"lost {note.values['ratio']:.2g} times what it expected" in str(note)


def test_it_is_found_within_other_models(tailed):
    X, y = tailed
    inside = make_pipeline(StandardScaler(), BayesianProcess()).fit(X[:24], y[:24])
    assert left_out(query(inside, SquaredError(), X)).labels == 24
    assert left_out(query(default(X[:24], y[:24], pool=X[24:]), SquaredError(), X)).labels == 24
    assert left_out(query(BayesianRidge().fit(X[:24], y[:24]), SquaredError(), X)) is None
    assert left_out_factor(query(BayesianRidge().fit(X[:24], y[:24]), SquaredError(), X)) == 1.0


@pytest.mark.parametrize("loss", [CRPS(), LogScore(), PerContext([SquaredError()] * 36)])
def test_losses_that_it_is_not_found_for(model, tailed, loss):
    X, _ = tailed
    assert left_out(query(model, loss, X, contexts=X[24:])) is None


def test_the_function_itself_has_no_labels(model, tailed):
    X, _ = tailed
    assert left_out(query(model, SquaredError(), X, target="latent")) is None
