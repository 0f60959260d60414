"""Scorers as they are usually written, to measure against: a product of members in chunks, then logarithms.

Members are class probabilities [n, K, C], and all is done in their precision.
Sizes: N candidates, n of a chunk, M contexts, K members, C classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

CELLS = 2**22  # of the joint distribution that a chunk holds, 16 MB
_LEAST = np.float32(1e-30)


def product(candidates: Any, contexts: Any) -> None:
    """The bare product [N C, K] x [K, M C] of members as `flat` gives them, in chunks into one output.

    The output is used again and again, so that fresh memory costs it nothing.
    """
    step = max(1, CELLS // len(contexts))
    out = np.empty((step, len(contexts)), dtype=np.float32)
    for start in range(0, len(candidates), step):
        part = candidates[start : start + step]
        np.matmul(part, contexts.T, out=out[: len(part)])


def flat(members: Any) -> Any:
    """[n C, K] of members [n, K, C]."""
    return np.ascontiguousarray(np.swapaxes(members, 1, 2)).reshape(-1, members.shape[1])


def weighted_epig(candidates: Any, contexts: Any, weights: Any) -> Any:
    """[N]: the mean over contexts of E_y of the drop of weighted entropy, of log loss with `weights` [C]."""
    before = _information(np.mean(contexts, axis=1)[:, None, :], weights)  # [M]
    return np.concatenate(
        [np.mean(_information(joint, weights) - before, axis=1) for joint in _joints(candidates, contexts)]
    )


def _joints(candidates: Any, contexts: Any) -> Iterator[Any]:
    """[n, M, C, C] of each chunk."""
    _, members, classes = contexts.shape
    there = flat(contexts).T / np.float32(members)  # [K, M C]
    step = max(1, CELLS // (classes * there.shape[1]))
    for start in range(0, len(candidates), step):
        joint = np.matmul(flat(candidates[start : start + step]), there)  # [n C, M C]
        yield joint.reshape(-1, classes, len(contexts), classes).swapaxes(1, 2)


def _information(joint: Any, weights: Any) -> Any:
    """[...]: sum_yz w_z J log J - sum_y W_y log W_y of J [..., C, C], W_y = sum_z w_z J."""
    mass = joint @ weights  # [..., C]
    logs = np.log(np.maximum(joint, _LEAST))
    logs *= joint
    return np.sum(logs @ weights - mass * np.log(np.maximum(mass, _LEAST)), axis=-1)


def epig_by_products(candidates: Any, contexts: Any) -> Any:
    """[N]: EPIG as the mutual information of the joint and the product of its margins, both written out in chunks."""
    scores = []
    for joint in _joints(candidates, contexts):
        apart = np.sum(joint, axis=3, keepdims=True) * np.sum(joint, axis=2, keepdims=True)
        logs = np.log(np.maximum(joint, _LEAST)) - np.log(np.maximum(apart, _LEAST))
        scores.append(np.mean(np.sum(joint * logs, axis=(2, 3)), axis=1))
    return np.concatenate(scores)


def epig_by_logarithms(candidates: Any, contexts: Any) -> Any:
    """[N]: EPIG from log-probabilities, as its literature writes it: logsumexp over members of their joint."""
    here, there = (np.log(np.maximum(each, _LEAST)) for each in (candidates, contexts))
    members, scores = contexts.shape[1], []
    for row in here:
        pairs = row[:, None, :, None] + np.swapaxes(there, 0, 1)[:, :, None, :]  # [K, M, C, C]
        joint = logsumexp(pairs, axis=0) - np.log(np.float32(members))  # [M, C, C]
        apart = logsumexp(joint, axis=2, keepdims=True) + logsumexp(joint, axis=1, keepdims=True)
        scores.append(np.mean(np.sum(np.exp(joint) * (joint - apart), axis=(1, 2))))
    return np.array(scores)
