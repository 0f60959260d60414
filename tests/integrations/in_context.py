"""What is tried of every model that learns in context."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from stakes import CRPS, CostMatrix, LogLoss, LogScore, SquaredError, ThresholdDecision, rank, score
from stakes.integrations.foundation_models import InContext
from stakes.testing import check_belief

ROWS = np.random.default_rng(0).normal(size=(30, 3))
POOL, CONTEXTS = ROWS[20:26], ROWS[26:]
FEW = {"max_candidates": 3, "n_draws": 4, "n_rows": 2}


def check_classifier(classifier: Any) -> None:
    """Beliefs by hypothetical labels and by draws, their marginals, and a ranking."""
    labels = (ROWS[:20, 0] > 0).astype(int)
    for joint in ("conditioned", "drawn"):
        model = InContext(classifier, ROWS[:20], labels, joint=joint, **FEW)
        belief: Any = model.belief(POOL, CONTEXTS)
        check_belief(belief)
        scores = score(LogLoss(), belief)
        assert scores.shape == (6,)
        if joint == "drawn":
            assert np.ptp(belief.contexts, axis=1).max() > 1e-5, "labels tell nothing at all"
        else:
            assert scores.max() > 1e-12, "labels tell nothing at all"
            np.testing.assert_allclose(belief.target, model.predict_proba(CONTEXTS), rtol=1e-4, atol=1e-6)
            assert (scores > 1e-15).sum() <= 3
            cost = CostMatrix([[0.0, 1.0], [5.0, 0.0]])
            assert len(rank(model, cost, POOL, contexts=CONTEXTS, n=2).indices) == 2
    _check_one_by_one(classifier, labels)
    frame = pd.DataFrame({"x": ROWS[:, 0], "kind": np.where(ROWS[:, 1] > 0, "new", "old")})
    mixed: Any = InContext(classifier, frame[:20], labels, **FEW).belief(frame[20:26], frame[26:])
    check_belief(mixed)
    assert score(LogLoss(), mixed).max() > 1e-12, "labels tell nothing at all"


def check_regressor(regressor: Any) -> None:
    """Beliefs by hypothetical labels and by draws, their marginals, and rankings."""
    labels = 100.0 + 5.0 * ROWS[:20, 0]
    model = InContext(regressor, ROWS[:20], labels, **FEW)
    belief: Any = model.belief(POOL, CONTEXTS)
    for loss in (SquaredError(), ThresholdDecision(100.0, miss=5.0)):
        check_belief(belief, loss)
    assert (score(SquaredError(), belief) > 1e-12).sum() == 3, "labels tell nothing at all, or of rows not asked about"
    for density in (CRPS(), LogScore()):
        assert (score(density, belief) >= 0.0).all()
    today = model.predict_quantiles(CONTEXTS, [0.1, 0.5, 0.9])
    assert (np.diff(today, axis=1) > 0.0).all()
    assert abs(today[:, 1] - labels.mean()).max() < 20.0 * labels.std()
    mean = regressor.fit(ROWS[:20], labels).predict(CONTEXTS)
    np.testing.assert_allclose(belief.moments(SquaredError(), belief.reference(SquaredError()))[:, 1]
                               + belief.reference(SquaredError()).point, mean, atol=0.1 * np.ptp(today))  # fmt: skip
    assert len(rank(model, ThresholdDecision(100.0, miss=5.0), POOL, contexts=CONTEXTS, n=2).indices) == 2
    drawn: Any = InContext(regressor, ROWS[:20], labels, joint="drawn", **FEW).belief(POOL, CONTEXTS)
    check_belief(drawn)
    assert score(SquaredError(), drawn).max() > 1e-12, "labels tell nothing at all"
    _check_one_by_one(regressor, labels)


def _check_one_by_one(model: Any, labels: Any) -> None:
    """Several sets of labels at once are answered as each by itself, where the package takes several."""
    beliefs: list[Any] = [
        InContext(model, ROWS[:20], labels, batch_size=size, **FEW).belief(POOL, CONTEXTS) for size in (1, 16)
    ]
    np.testing.assert_allclose(beliefs[0].joint, beliefs[1].joint, atol=1e-3 * float(beliefs[0].joint.max()))
