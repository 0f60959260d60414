"""What is tried of every classifier that learns in context."""

from __future__ import annotations

from typing import Any

import numpy as np

from stakes import CostMatrix, LogLoss, rank, score
from stakes.integrations.foundation_models import InContext
from stakes.testing import check_belief


def check_both_ways(classifier: Any) -> None:
    """Beliefs by hypothetical labels and by draws, their marginals, and a ranking."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    labels = (rows[:, 0] > 0).astype(int)
    pool, contexts = rows[20:26], rows[26:]
    for joint in ("conditioned", "drawn"):
        model = InContext(classifier, rows[:20], labels[:20], joint=joint, max_candidates=3, n_draws=3, n_rows=2)
        belief: Any = model.belief(pool, contexts)
        check_belief(belief)
        scores = score(LogLoss(), belief)
        assert scores.shape == (6,)
        assert scores.max() > 1e-12, "labels tell nothing at all"
        if joint == "conditioned":
            np.testing.assert_allclose(belief.target, model.predict_proba(contexts), rtol=1e-4, atol=1e-6)
            assert (scores > 1e-15).sum() <= 3
            cost = CostMatrix([[0.0, 1.0], [5.0, 0.0]])
            assert len(rank(model, cost, pool, contexts=contexts, n=2).indices) == 2
