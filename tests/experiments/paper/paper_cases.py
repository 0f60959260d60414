"""Small slices of the paper's studies, on data made up here: no files are needed."""

from __future__ import annotations

import numpy as np

from experiments.paper.regression import Splits
from stakes.beliefs import GaussianBelief
from stakes.simulation import Trial


def table(rows=60, seed=0):
    """Features and positive targets, some rows repeating the inputs of others, as Estate has them."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 3))
    features[1] = features[0]
    return features, np.exp(0.4 * features[:, 0] + 0.2 * rng.normal(size=rows) + 2.0)


def splits(unit="standard", own_contexts=False):
    features, target = table()
    return Splits(features, target, n_initial=8, n_test=12, own_contexts=own_contexts, unit=unit)


def drawn(unit="standard", own_contexts=False, seed=0) -> Trial:
    return splits(unit, own_contexts).draw(np.random.default_rng(seed))


def belief(contexts=5, candidates=4, seed=0, scale=1.0, level=0.0) -> GaussianBelief:
    """Jointly Gaussian targets and labels of a random covariance."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(contexts + candidates, 4))
    covariance = scale * (root @ root.T / 4.0 + 0.3 * np.eye(contexts + candidates))
    variance = np.diag(covariance)
    mean = level + np.sqrt(scale) * rng.normal(size=contexts)
    return GaussianBelief(mean, variance[:contexts], variance[contexts:], covariance[contexts:, :contexts])


def blobs():
    """Three classes in two features."""
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1, 2], 30)
    return rng.normal(size=(90, 2)) + target[:, None], target
