"""How probable a belief held what came: single test rows, and pairs of near ones, jointly.

The joint density of near rows tells whether a belief knows what it does not know: two models with the same marginals
may differ in whether one label would teach them the other.

Sizes: T test rows, K members, C classes.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors

from experiments.labels_saved.problems import LEAST
from experiments.labels_saved.tables import Host
from stakes.beliefs import (
    CategoricalEnsemble,
    GaussianBelief,
    GaussianMixtureBelief,
    NormalEnsemble,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.models import belief_of

_LOG_2PI = float(np.log(2.0 * np.pi))
_STEP = 1e-5  # of the difference that gives the slope of a warp: an error of 1e-10 or so


def log_densities(
    model: Any, rows: Host, targets: Host, classes: Any = None, random_state: Any = 0
) -> tuple[float, float]:
    """The mean log density of T test rows, and the mean joint log density of each with its nearest other one.

    Of classes it is the log probability, with LEAST of it spread evenly. The joint one is of two targets; half of it
    can be compared with the single one.
    """
    belief = belief_of(model, rows, rows, classes=classes, random_state=random_state)
    single, joint = pair_log_densities(belief, np.asarray(targets), nearest(rows))
    return float(single.mean()), float(joint.mean())


def nearest(rows: Host) -> Host:
    """[T]: the position of the nearest other row of each."""
    return np.asarray(NearestNeighbors(n_neighbors=1).fit(rows).kneighbors(return_distance=False)[:, 0], dtype=np.intp)


@singledispatch
def pair_log_densities(belief: Any, targets: Host, partners: Host) -> tuple[Host, Host]:  # noqa: ARG001
    """[T], [T]: of each target, and of each with that of its partner, under a belief whose candidates are its contexts.

    A new kind of belief registers its own: `@pair_log_densities.register`.
    """
    raise TypeError(f"no joint density of pairs is known for a {type(belief).__name__}: register one")


@pair_log_densities.register
def _gaussian(belief: GaussianBelief, targets: Host, partners: Host) -> tuple[Host, Host]:
    """Bivariate normals; the covariance of two rows is that of the partner as a candidate."""
    covariance = belief.covariance[partners, np.arange(len(targets))]
    return gaussian_log_densities(belief.mean, belief.variance, covariance, targets, partners)


@pair_log_densities.register
def _mixture(belief: GaussianMixtureBelief, targets: Host, partners: Host) -> tuple[Host, Host]:
    """The same under each hypothesis."""
    covariance = belief.covariance[:, partners, np.arange(len(targets))]  # [S, T]
    found = gaussian_log_densities(belief.mean, belief.variance, covariance, targets, partners)
    shares = np.log(np.asarray(belief.weights))[:, None]
    single, joint = (logsumexp(each + shares, axis=0) for each in found)
    return single, joint


@pair_log_densities.register
def _warped(belief: WarpedGaussianBelief, targets: Host, partners: Host) -> tuple[Host, Host]:
    """Those of f behind the warp, less the logarithm of its slope at each target."""
    latent = np.asarray(belief.warp.inverse(targets))
    above, below = (np.asarray(belief.warp.forward(latent + step)) for step in (_STEP, -_STEP))
    slope = np.log((above - below) / (2.0 * _STEP))
    single, joint = pair_log_densities(belief.latent, latent, partners)
    return single - slope, joint - slope - slope[partners]


def gaussian_log_densities(
    mean: Host, variance: Host, covariance: Host, targets: Host, partners: Host
) -> tuple[Host, Host]:
    """[..., T] each: log densities of normal targets, and of each with its partner."""
    distance = targets - mean
    other, other_variance = distance[..., partners], variance[..., partners]
    determinant = variance * other_variance - covariance**2
    form = (distance**2 * other_variance - 2.0 * distance * other * covariance + other**2 * variance) / determinant
    single = -0.5 * (_LOG_2PI + np.log(variance) + distance**2 / variance)
    return single, -_LOG_2PI - 0.5 * (np.log(determinant) + form)


@pair_log_densities.register
def _normals(belief: NormalEnsemble, targets: Host, partners: Host) -> tuple[Host, Host]:
    """A mixture over members, under each of which rows are independent."""
    scaled = (targets[:, None] - belief.context_mean) / belief.context_sd
    logs = -0.5 * (_LOG_2PI + scaled**2) - np.log(belief.context_sd)  # [T, K]
    shares = np.log(_member_shares(belief, logs.shape[1]))
    return logsumexp(logs + shares, axis=1), logsumexp(logs + logs[partners] + shares, axis=1)


@pair_log_densities.register
def _classes(belief: CategoricalEnsemble, targets: Host, partners: Host) -> tuple[Host, Host]:
    return _of_members(belief, belief.contexts[np.arange(len(targets)), :, targets], partners, belief.contexts.shape[2])


@pair_log_densities.register
def _votes(belief: VoteEnsemble, targets: Host, partners: Host) -> tuple[Host, Host]:
    return _of_members(belief, (belief.contexts == targets[:, None]).astype(float), partners, belief.n_classes)


def _of_members(belief: Any, of_truth: Host, partners: Host, n_classes: int) -> tuple[Host, Host]:
    """The same from what each member gives to the class that came, [T, K]."""
    shares = _member_shares(belief, of_truth.shape[1])
    single, joint = of_truth @ shares, (of_truth * of_truth[partners]) @ shares
    return np.log((1.0 - LEAST) * single + LEAST / n_classes), np.log((1.0 - LEAST) * joint + LEAST / n_classes**2)


def _member_shares(belief: Any, count: int) -> Host:
    """[K]: what members count, alike where nothing is said."""
    weights = np.ones(count) if belief.member_weights is None else np.asarray(belief.member_weights, dtype=float)
    return np.asarray(weights / weights.sum())
