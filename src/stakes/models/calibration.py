"""Class probabilities that come true: a power of the mean of members, and a share of it given to class frequencies.

Trees of a few labels vote, and the mean of their votes is rarely as sure as it could be: where nine of ten trees agree
they may be right in ninety-nine of a hundred rows, or, where labels are noise, in six of ten. So the mean p of members
is raised to a power, and mixed with class frequencies r,

    q = (1 - share) p^power / sum(p^power) + share r,

and each member is moved as little as makes q their mean. Power and share are read off labels left out in five folds.
Few labels tell little of them: so they are averaged, weighed by how probable the left-out labels are under them and by
a prior, log-normal for the power (median exp(.2), sd of the logarithm .5) and exponential for the share (mean .2).

Sizes: n labels, N rows, K members, C classes, P powers, S shares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

from stakes._utils.tables import Host

DOUBT = 0.03
"""The share of class frequencies in what a member says of a label that is to be bought."""
FOLD_TREES = 100
"""Members that are fitted without a fold, and tell about its labels."""
_FOLDS = 5
_ROWS_ASKED = 2000  # left-out labels; more would change nothing
_LOG_POWERS = np.linspace(np.log(0.5), np.log(6.0), 26)
_LOG_MEDIAN, _LOG_SD = 0.2, 0.5
_SHARES = np.concatenate([[0.01, 0.02], np.arange(0.03, 0.95, 0.03)])
_SHARE_RATE = 5.0
_LEAST = 1e-12  # of a probability before its logarithm is taken


def normalised(values: Host) -> Host:
    """[..., C]: shares; where nothing is left, evenly."""
    total = values.sum(axis=-1, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1.0), 1.0 / values.shape[-1])


def calibrated_mean(mean: Host, prior: Host, power: float, share: float) -> Host:
    """[..., C]: of a mean of members [..., C], with class frequencies `prior` [C]."""
    return np.asarray((1.0 - share) * normalised(mean**power) + share * prior)


def calibrated_members(members: Host, prior: Host, power: float, share: float) -> Host:
    """[N, K, C]: members moved as little as makes their mean that of `calibrated_mean`."""
    return np.asarray((1.0 - share) * sharpened(members, power) + share * prior, dtype=members.dtype)


def sharpened(members: Host, power: float) -> Host:
    """[N, K, C]: moved as little as makes their mean the power of what it was."""
    if power == 1.0:
        return members
    kept, gains = _moves(members.mean(axis=1, dtype=float), power)
    moved = np.sum(members * (1.0 - kept[:, None, :]), axis=2, keepdims=True)
    return np.asarray(members * kept[:, None, :] + moved * gains[:, None, :], dtype=members.dtype)


def calibrated_votes(votes: Host, prior: Host, power: float, share: float) -> Host:
    """[N, K, C] in float32: the same for members that vote for one of C classes each, by position [N, K]."""
    rows, classes = np.arange(len(votes))[:, None], len(prior)
    mean = np.stack([np.mean(votes == c, axis=1) for c in range(classes)], axis=1)  # [N, C]
    kept, gains = _moves(mean, power)
    of_vote = kept[:, :, None] * np.eye(classes) + (1.0 - kept)[:, :, None] * gains[:, None, :]  # [N, C, C]
    return ((1.0 - share) * of_vote + share * prior).astype(np.float32)[rows, votes]


def _moves(mean: Host, power: float) -> tuple[Host, Host]:
    """[N, C], [N, C]: the part of each class that members keep, and where the rest of their mass goes."""
    wanted = normalised(mean**power)
    kept = np.minimum(1.0, wanted / np.where(mean > 0, mean, 1.0))
    return kept, normalised(np.maximum(wanted - mean, 0.0))


def found_calibration(
    predict: Callable[[Host, Host], Host], targets: Host, n_classes: int, generator: np.random.Generator
) -> tuple[float, float]:
    """The power and the share, by labels left out in folds.

    A label that is alone in its class says nothing: without it the class is unknown.

    Args:
        predict: From positions [a] of labels to fit members to, and [b] of rows, to [b, C]: the mean of such members.
        targets: [n], the class of each label.
        n_classes: C.
        generator: Of the folds, which are stratified by class.
    """
    counts = np.bincount(targets, minlength=n_classes)
    folds = _stratified(targets, generator)
    likelihood = np.zeros((len(_LOG_POWERS), len(_SHARES)))
    asked = 0
    for fold in range(folds.max() + 1):
        seen, left_out = np.flatnonzero(folds != fold), np.flatnonzero((folds == fold) & (counts[targets] > 1))
        if len(seen) == 0 or len(left_out) == 0 or asked >= _ROWS_ASKED:
            continue
        asked += len(left_out)
        rates = np.bincount(targets[seen], minlength=n_classes) + 1.0
        likelihood += _log_likelihoods(predict(seen, left_out), rates / rates.sum(), targets[left_out])
    prior = -0.5 * ((_LOG_POWERS - _LOG_MEDIAN) / _LOG_SD) ** 2
    widths = np.log(np.gradient(_SHARES)) - _SHARE_RATE * _SHARES
    log_weights = likelihood + prior[:, None] + widths
    weights = np.exp(log_weights - logsumexp(log_weights))  # [P, S]
    return float(np.exp(weights.sum(axis=1) @ _LOG_POWERS)), float(weights.sum(axis=0) @ _SHARES)


def _log_likelihoods(mean: Host, rates: Host, targets: Host) -> Host:
    """[P, S]: of left-out labels, given the mean of members [b, C] and class frequencies [C]."""
    logs = np.log(np.maximum(mean, _LEAST))[None] * np.exp(_LOG_POWERS)[:, None, None]  # [P, b, C]
    own = np.exp(logs[:, np.arange(len(targets)), targets] - logsumexp(logs, axis=2))  # [P, b]
    mixed = (1.0 - _SHARES)[None, :, None] * own[:, None, :] + _SHARES[None, :, None] * rates[targets]
    return np.asarray(np.log(mixed).sum(axis=2))


def _stratified(targets: Host, generator: np.random.Generator) -> Host:
    """[n]: the fold of each label, each class spread over all folds."""
    order = generator.permutation(len(targets))
    order = order[np.argsort(targets[order], kind="stable")]
    folds = np.empty(len(targets), dtype=np.intp)
    folds[order] = np.arange(len(targets)) % min(_FOLDS, len(targets))
    return folds
