"""Data and helpers that tests of regression models share."""

from __future__ import annotations

import numpy as np


def data(rng, n=14, p=3, outputs=None):
    """Rows and labels so far, candidates, contexts."""
    rows, pool, contexts = rng.normal(size=(n, p)), rng.normal(size=(9, p)), rng.normal(size=(5, p))
    slopes = rng.normal(size=p if outputs is None else (p, outputs))
    labels = np.sin(rows @ slopes) + 3.0 + 0.1 * rng.normal(size=n if outputs is None else (n, outputs))
    return rows, labels, pool, contexts


def check_reduction(belief, refitted_variance):
    """For every candidate n: variance - rho variance is the variance [N, M] of a model that has its label too."""
    left = (1.0 - belief.rho) * belief.variance
    np.testing.assert_allclose(left, refitted_variance, rtol=1e-8, atol=1e-10 * belief.variance.max())
