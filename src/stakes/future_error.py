"""Expected future error, the ancestor that refits the model for every candidate and label (Roy and McCallum, 2001).

It asks the same question as EUR and answers it by training: what it takes is what analytic scores save.
Sizes: n labelled rows, N candidates, M contexts, K members, C classes, J labels tried for a candidate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from scipy.special import ndtr, ndtri
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from stakes._array import Array
from stakes.acquisition import uncertainty
from stakes.beliefs import Belief, CategoricalEnsemble, GaussianBelief, NormalEnsemble, WarpedGaussianBelief
from stakes.losses import Loss
from stakes.models import belief_of
from stakes.models.classes import all_classes, columns_of

__all__ = ["expected_future_error"]

_PARTS = (np.arange(5) + 0.5) / 5.0  # a real label is tried at the medians of five parts of equal probability
_BISECTIONS = 60  # leave 1e-17 of the interval


def expected_future_error(
    model: Any,
    X: Any,  # noqa: N803 (scikit-learn's names)
    y: Any,
    pool: Any,
    contexts: Any,
    loss: Loss,
    *,
    classes: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> Array:
    """[N]: minus the expected loss of acting well at the contexts, once refitted with the label of each candidate.

    -sum_y p(y | x) E_c h[p(z | c)], h under the model fitted to `X`, `y` and (x, y), and p(y | x) under that fitted to
    `X`, `y`: larger is better. Labels are the `classes` (None: the model's) that the model thinks possible; a real
    label, for which the model must be one that `belief_of` takes, is tried at five quantiles. Clones are fitted, up to
    1 + N J of them, `model` itself is not. Chance in fitting adds noise: give the model a number as `random_state`.
    """
    rows, labelled = _stacked(X, pool), np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
    current = clone(model).fit(X, y)
    labels, chances = _classes(current, pool, classes) if is_classifier(model) else _quantiles(current, pool)  # [N, J]
    tried = np.argwhere(chances > 0)  # pairs of a candidate and one of its labels
    errors = Parallel(n_jobs=n_jobs)(
        delayed(_error)(
            clone(model), rows, [*labelled, len(labelled) + i], _appended(y, labels[i, j]), contexts, loss, classes
        )
        for i, j in tried
    )
    weighted = chances[tried[:, 0], tried[:, 1]] * np.asarray(errors, dtype=float)
    return -np.bincount(tried[:, 0], weights=weighted, minlength=len(chances))


def _error(
    model: Any, rows: Any, chosen: list[int], y: Array, contexts: Any, loss: Loss, classes: Sequence[Any] | None
) -> float:
    """E_c h under the model fitted to the rows that are `chosen`."""
    model.fit(_safe_indexing(rows, chosen), y)
    if not is_classifier(model):
        belief: Belief = belief_of(model, _safe_indexing(contexts, [0]), contexts)
    else:
        predicted = _probabilities(model, contexts, all_classes(classes, model.classes_))[:, None, :]  # [M, 1, C]
        belief = CategoricalEnsemble(predicted[:1], predicted)
    return float(np.mean(np.asarray(uncertainty(loss, belief))))


def _classes(model: Any, pool: Any, classes: Sequence[Any] | None) -> tuple[Array, Array]:
    """[N, C], [N, C]: all classes and their probabilities for each candidate."""
    names = all_classes(classes, model.classes_)
    chances = _probabilities(model, pool, names)
    return np.broadcast_to(np.asarray(names, dtype=object), chances.shape), chances


def _probabilities(model: Any, rows: Any, classes: list[Any]) -> Array:
    """[n, C]: those of the model, 0 for classes that it does not know."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba, which expected future error needs: calibrate it")
    predicted = np.asarray(model.predict_proba(rows))
    table = np.zeros((len(predicted), len(classes)))
    table[:, columns_of(model.classes_, classes)] = predicted
    return table


def _quantiles(model: Any, pool: Any) -> tuple[Array, Array]:
    """[N, 5], [N, 5]: quantiles of the label of each candidate, and their equal shares."""
    belief = belief_of(model, _safe_indexing(pool, [0]), pool)  # the candidates as contexts, for their marginals
    labels = label_quantiles(belief, _PARTS)
    return labels, np.full(labels.shape, 1.0 / len(_PARTS))


def label_quantiles(belief: Belief, parts: Array) -> Array:
    """[M, J]: where the target at each context has probability `parts` [J] below it."""
    if isinstance(belief, WarpedGaussianBelief):
        return np.asarray(belief.warp.forward(label_quantiles(belief.latent, parts)))
    if isinstance(belief, GaussianBelief):
        return np.asarray(belief.mean)[:, None] + np.sqrt(np.asarray(belief.variance))[:, None] * ndtri(parts)
    if isinstance(belief, NormalEnsemble):
        return np.stack([_mixture_quantile(belief, part) for part in parts], axis=1)
    raise TypeError(f"expected future error needs a model of real labels or classes; got a {type(belief).__name__}")


def _mixture_quantile(belief: NormalEnsemble, part: float) -> Array:
    """[M]: by bisection of the members' mean distribution function, between the quantiles of its members."""
    each = belief.context_mean + belief.context_sd * ndtri(part)  # [M, K]
    low, high = np.min(each, axis=1), np.max(each, axis=1)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        below = ndtr((middle[:, None] - belief.context_mean) / belief.context_sd) @ belief.member_weights < part
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2.0


def _appended(y: Any, label: Any) -> Array:
    return np.concatenate([np.asarray(y), np.asarray([label])])


def _stacked(first: Any, second: Any) -> Any:
    """Rows of both, in the library that they came in."""
    if type(first) is not type(second):
        raise TypeError(f"X and pool must be of one type; got {type(first).__name__} and {type(second).__name__}")
    if issparse(first):
        return vstack([first, second], format="csr")
    if isinstance(first, np.ndarray | list):
        return np.concatenate([np.asarray(first), np.asarray(second)])
    library = sys.modules[type(first).__module__.partition(".")[0]]  # of a frame or table: imported where it was made
    together = getattr(library, "concat", None) or getattr(library, "concat_tables", None)
    if together is None:
        raise TypeError(f"X and pool must be arrays, sparse matrices or frames; got {type(first).__name__}")
    return together([first, second])
