"""The usual acquisition rules, which know no loss: what to compare with.

A rule takes a belief and gives one number for each candidate, larger is better. It looks at candidates only: contexts
and what will be decided there do not enter. All is computed in double precision and returned in that of the belief.

`expected_future_error` is another kind: the ancestor that knows the loss and refits the model for every candidate and
label (Roy and McCallum, 2001). It asks the same question as the expected reduction and answers it by training; its time
is what analytic scores save.

Sizes: N candidates, n of a block or labelled rows, M contexts, J cells of the label (classes or nodes) or labels tried
for a candidate, K members, C classes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack
from scipy.special import ndtr, ndtri
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from stakes._utils.arguments import RandomState, as_generator
from stakes._utils.array import Array, check_all, constant, double, namespace, ratio, slices
from stakes._utils.compute import all_parts
from stakes.acquisition import uncertainty
from stakes.acquisition.closed_forms import label_entropy, label_information, label_spread
from stakes.acquisition.forms import simplest
from stakes.beliefs import (
    Belief,
    CategoricalEnsemble,
    GaussianBelief,
    GaussianMixtureBelief,
    NormalEnsemble,
    VectorGaussianBelief,
    VoteEnsemble,
    WarpedGaussianBelief,
)
from stakes.exceptions import StakesError
from stakes.losses import Loss, NegativeEntropy
from stakes.losses.domains import labels_to_indicators
from stakes.models import belief_of
from stakes.models.ensembles import all_classes, class_columns

__all__ = [
    "BASELINES",
    "bald",
    "expected_future_error",
    "least_confident",
    "margin",
    "predictive_entropy",
    "predictive_variance",
    "query_by_committee",
    "random_scores",
]

_BLOCK = 2**18  # numbers that a temporary may hold, or those of one candidate
_ROUNDING = 1e-6  # relative, by which the variance of a label may fall below that of its noise


def random_scores(belief: Belief, random_state: RandomState = 0) -> Array:
    """Uniform draws, so that the best is a random candidate.

    Args:
        belief: Any belief; only its number of candidates counts.
        random_state: A whole number, or a NumPy generator.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the random state is neither.

    Examples:
        >>> from stakes import GaussianBelief
        >>> belief = GaussianBelief([0.0], [1.0], candidate_variance=[1.0, 2.0], covariance=[[0.5], [0.5]])
        >>> random_scores(belief, random_state=0).shape
        (2,)
    """
    return constant(as_generator(random_state).random(belief.n_candidates), belief.like)


def bald(belief: Belief) -> Array:
    """BALD: the mutual information of the label and the member (the function, under a Gaussian belief), in nats.

    Ensembles: sum_y P(y) KL(p(k | y) || q), y by classes or by the rule of the belief: entropies are not subtracted, so
    that little information keeps its digits. Gaussian: log(candidate_variance / noise_variance) / 2, the determinants
    of both for vectors. Mixtures of Gaussian beliefs: that under each hypothesis, and that of the hypothesis.

    Args:
        belief: A belief about classes, a Gaussian one (which needs its noise_variance) or an ensemble of normals.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.
        StakesError: If a Gaussian belief has no noise_variance, or one that is 0.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> certain, split, vague = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> belief = CategoricalEnsemble([certain, split, vague], contexts=[vague])  # 2 members, 2 classes
        >>> bald(belief).round(4)  # only the second label says which member is right: log 2
        array([0.    , 0.6931, 0.    ])
    """
    return _like(belief, _information(belief))


def predictive_entropy(belief: Belief) -> Array:
    """The entropy of the label in nats; of its density where it is real, which may be negative.

    Args:
        belief: A belief about classes, a Gaussian one or an ensemble of normals.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> certain, split, vague = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> belief = CategoricalEnsemble([certain, split, vague], contexts=[vague])  # 2 members, 2 classes
        >>> predictive_entropy(belief).round(4)
        array([0.    , 0.6931, 0.6931])
    """
    belief = _as_members(belief)
    if isinstance(belief, VectorGaussianBelief):
        return _like(belief, label_entropy(belief))
    if isinstance(belief, GaussianBelief):
        return _like(belief, _normal_entropy(double(belief.candidate_variance)))
    if isinstance(belief, NormalEnsemble):
        members = _normal_entropy(double(belief.candidate_sd) ** 2)  # [N, K]
        return _like(belief, _information(belief) + namespace(members).matmul(members, _member_shares(belief)))
    return _like(belief, _entropy(_mean_probabilities("predictive_entropy", belief)))


def margin(belief: Belief) -> Array:
    """Minus the difference between the two largest mean probabilities; 0 for one class.

    Args:
        belief: A CategoricalEnsemble or VoteEnsemble.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> certain, split, vague = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> belief = CategoricalEnsemble([certain, split, vague], contexts=[vague])  # 2 members, 2 classes
        >>> margin(belief)
        array([-1.,  0.,  0.])
    """
    mean = _mean_probabilities("margin", belief)
    return _like(belief, mean[:, max(mean.shape[1] - 2, 0)] - mean[:, -1])


def least_confident(belief: Belief) -> Array:
    """The probability 1 - max_c p(c) that the most probable class is wrong.

    Args:
        belief: A CategoricalEnsemble or VoteEnsemble.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> certain, split, vague = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> belief = CategoricalEnsemble([certain, split, vague], contexts=[vague])  # 2 members, 2 classes
        >>> least_confident(belief)
        array([0. , 0.5, 0.5])
    """
    return _like(belief, _rest(_mean_probabilities("least_confident", belief)))


def predictive_variance(belief: Belief) -> Array:
    """The variance of the label (vectors: its trace); for classes that of its indicator, 1 - sum_c p(c)^2.

    Args:
        belief: A belief about classes, a Gaussian one or an ensemble of normals.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.

    Examples:
        >>> from stakes import GaussianBelief
        >>> belief = GaussianBelief([0.0], [1.0], candidate_variance=[1.0, 2.0], covariance=[[0.5], [0.5]])
        >>> predictive_variance(belief)
        array([1., 2.])
    """
    belief = _as_members(belief)
    if isinstance(belief, VectorGaussianBelief):
        return _like(belief, label_spread(belief))
    if isinstance(belief, GaussianBelief):
        return _like(belief, belief.candidate_variance)
    if isinstance(belief, NormalEnsemble):
        variances = double(belief.candidate_sd) ** 2  # [N, K]
        within = namespace(variances).matmul(variances, _member_shares(belief))
        return _like(belief, within + _variance_of_means(belief))
    return _like(belief, _gini(_mean_probabilities("predictive_variance", belief)))


def query_by_committee(belief: Belief) -> Array:
    """How far members disagree: the entropy of their votes for a class, or the variance of their means.

    A member votes for its most probable class, the first of those that tie.

    Args:
        belief: An ensemble: of classes, votes or normals.

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If the belief is of another kind.

    Examples:
        >>> from stakes import CategoricalEnsemble
        >>> certain, split, vague = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]
        >>> belief = CategoricalEnsemble([certain, split, vague], contexts=[vague])  # 2 members, 2 classes
        >>> query_by_committee(belief).round(4)
        array([0.    , 0.6931, 0.    ])
    """
    belief = _as_members(belief)
    if isinstance(belief, NormalEnsemble):
        return _like(belief, _variance_of_means(belief))
    if isinstance(belief, GaussianBelief):
        raise TypeError(
            "query_by_committee asks members, and a GaussianBelief has none. Use predictive_variance or bald, or draw "
            "functions from the model and give their values as a NormalEnsemble."
        )
    return _like(belief, _entropy(_mean_probabilities("query_by_committee", belief, _votes)))


BASELINES: dict[str, Callable[[Belief, np.random.Generator], Array]] = {
    "random": random_scores,
    "bald": lambda belief, random_state: bald(belief),
    "predictive entropy": lambda belief, random_state: predictive_entropy(belief),
    "margin": lambda belief, random_state: margin(belief),
    "least confident": lambda belief, random_state: least_confident(belief),
    "predictive variance": lambda belief, random_state: predictive_variance(belief),
    "query by committee": lambda belief, random_state: query_by_committee(belief),
}
"""All of them by name and with one signature, (belief, random_state) -> [N], to loop over."""


def _information(belief: Belief) -> Array:
    """[N]: the mutual information that `bald` returns."""
    belief = simplest(belief)
    if isinstance(belief, GaussianMixtureBelief):  # of the label with the hypothesis, and with the function under each
        within = [double(belief.weights)[s] * _information(belief.hypothesis(s)) for s in range(belief.n_hypotheses)]
        return _information(belief.marginals()) + sum(within)
    if isinstance(belief, VectorGaussianBelief):
        return label_information(belief)
    if isinstance(belief, GaussianBelief):
        excess = _excess_over_noise(belief)
        return namespace(excess).log1p(excess) / 2.0
    if isinstance(belief, NormalEnsemble):
        cells = belief.rule.size(belief.candidate_mean, belief.candidate_sd)
        return _by_blocks(belief, cells, _mutual_information)
    if isinstance(belief, CategoricalEnsemble):
        return _by_blocks(belief, belief.n_classes, _mutual_information)
    return _entropy(_mean_probabilities("bald", belief))  # votes: a member has no entropy of its own


def _as_members(belief: Belief) -> Belief:
    """A mixture as the ensemble of normals that its labels are; other beliefs as they are."""
    belief = simplest(belief)
    return belief.marginals() if isinstance(belief, GaussianMixtureBelief) else belief


def _excess_over_noise(belief: GaussianBelief) -> Array:
    """[N]: candidate_variance / noise_variance - 1."""
    if belief.noise_variance is None:
        raise StakesError("bald needs the noise_variance of the GaussianBelief; got None. Give it when you make one.")
    noise = double(belief.noise_variance)
    check_all(
        noise > 0,
        "bald needs a positive noise_variance; got 0, and a label without noise tells infinitely much. Use "
        "predictive_variance, which ranks alike where the noise is the same everywhere.",
    )
    excess = (double(belief.candidate_variance) - noise) / noise
    check_all(
        excess >= -_ROUNDING,
        "candidate_variance must include noise_variance, but is smaller for some candidates: add the noise to it",
    )
    return namespace(excess).clip(excess, 0.0, None)


def _mutual_information(block: CategoricalEnsemble | NormalEnsemble) -> Array:
    """[n]: sum_j P(j) KL(p(k | j) || q); given j nothing is out of range, however improbable j is."""
    xp, shares = namespace(block.like), _member_shares(block)
    if isinstance(block, NormalEnsemble):
        joint = block.rule.masses(double(block.candidate_mean), double(block.candidate_sd), shares)  # [n, J, K]
    else:
        joint = shares * xp.permute_dims(double(block.candidates), (0, 2, 1))
    mass = xp.sum(joint, axis=2)  # [n, J]
    return xp.sum(mass * NegativeEntropy().divergence(ratio(joint, mass[..., None]), shares), axis=1)


def _probabilities(block: CategoricalEnsemble | VoteEnsemble) -> Array:
    """[n, K, C]: the probabilities that members give."""
    return double(block.candidates) if isinstance(block, CategoricalEnsemble) else _votes(block)


def _votes(block: CategoricalEnsemble | VoteEnsemble) -> Array:
    """[n, K, C]: 1 for the class that a member votes for, 0 for others."""
    xp = namespace(block.like)
    votes = xp.argmax(block.candidates, axis=2) if isinstance(block, CategoricalEnsemble) else block.candidates
    return labels_to_indicators(double(votes), block.n_classes)


def _mean_probabilities(rule: str, belief: Belief, members: Callable[[Any], Array] = _probabilities) -> Array:
    """[N, C]: the mean of `members`, smallest first, as no rule here asks which class is which."""
    if not isinstance(belief, CategoricalEnsemble | VoteEnsemble):
        raise TypeError(
            f"{rule} does not take a {type(belief).__name__}. It takes a CategoricalEnsemble or VoteEnsemble; bald, "
            "predictive_entropy and predictive_variance also take a GaussianBelief, NormalEnsemble or "
            "VectorGaussianBelief."
        )
    xp, shares = namespace(belief.like), _member_shares(belief)
    mean = _by_blocks(belief, belief.n_classes, lambda block: xp.matmul(shares, members(block)))
    return xp.sort(mean / xp.sum(mean, axis=1, keepdims=True), axis=1)  # exactly 1 where all agree


def _rest(ascending: Array) -> Array:
    """[N]: the mass of all classes but the largest, which 1 - max would round away near certainty."""
    return namespace(ascending).sum(ascending[:, :-1], axis=1)


def _entropy(ascending: Array) -> Array:
    """[N]: - sum p log p, with log(1 - rest) for the largest, which may be all but 1."""
    xp, others = namespace(ascending), ascending[:, :-1]
    logs = xp.log(xp.where(others > 0, others, xp.ones_like(others)))
    return -xp.sum(others * logs, axis=1) - ascending[:, -1] * xp.log1p(-_rest(ascending))


def _gini(ascending: Array) -> Array:
    """[N]: sum p (1 - p), with the rest for 1 - p of the largest."""
    xp, others = namespace(ascending), ascending[:, :-1]
    return xp.sum(others * (1.0 - others), axis=1) + ascending[:, -1] * _rest(ascending)


def _normal_entropy(variance: Array) -> Array:
    """[...]: log(2 pi e variance) / 2; -inf for a label that is known."""
    xp = namespace(variance)
    logs = xp.log(xp.where(variance > 0, variance, xp.ones_like(variance)))
    return xp.where(variance > 0, (math.log(2.0 * math.pi * math.e) + logs) / 2.0, xp.full_like(logs, -xp.inf))


def _variance_of_means(belief: NormalEnsemble) -> Array:
    """[N]: sum_k q_k (mean_k - mean)^2, counted from the first member so that equal ones give exactly 0."""
    xp, shares = namespace(belief.like), _member_shares(belief)
    gaps = double(belief.candidate_mean) - double(belief.candidate_mean[:, :1])  # [N, K]
    return xp.matmul((gaps - xp.matmul(gaps, shares)[:, None]) ** 2, shares)


def _member_shares(belief: CategoricalEnsemble | VoteEnsemble | NormalEnsemble) -> Array:
    """[K]: q, which sums to one in double precision too."""
    weights = double(belief.member_weights)
    return weights / namespace(weights).sum(weights)


def _by_blocks(belief: Any, cells: int, of: Callable[[Any], Array]) -> Array:
    """[N, ...]: `of` blocks of candidates, each of which needs `cells` numbers a member."""
    parts = slices(belief.n_candidates, max(1, _BLOCK // (cells * belief.member_weights.shape[0])))
    return namespace(belief.like).concat([of(belief.take(part, slice(None))) for part in parts], axis=0)


def _like(belief: Belief, scores: Array) -> Array:
    return namespace(scores).astype(scores, belief.like.dtype)


_PARTS = (np.arange(5) + 0.5) / 5.0  # a real label is tried at the medians of five parts of equal probability
_BISECTIONS = 60  # leave 1e-17 of the interval


def expected_future_error(
    model: Any,
    loss: Loss,
    X: Any,  # noqa: N803 (scikit-learn's name)
    y: Any,
    pool: Any,
    *,
    contexts: Any,
    classes: Sequence[Any] | None = None,
    n_jobs: int | None = None,
) -> Array:
    """Minus the expected loss at the contexts, once the model is refitted with the label of each candidate.

    -sum_y p(y | x) E_c h[p(z | c)], h under the model fitted to `X`, `y` and (x, y), and p(y | x) under that fitted to
    `X`, `y`. Labels are the classes that the model thinks possible; a real label, for which the model must be one that
    `belief_of` takes, is tried at five quantiles. Clones are fitted, up to 1 + N J of them, `model` itself is not. A
    model that is fitted with random numbers adds noise: give it a number as `random_state`.

    Args:
        model: An estimator that can be cloned; a classifier needs `predict_proba`.
        loss: The loss at the contexts.
        X: [n, p]: the labelled rows: an array, a sparse matrix or a data frame.
        y: [n]: their labels.
        pool: [N, p]: the candidates, of the type of `X`.
        contexts: [M, p]: the rows that stand for the future.
        classes: All classes in the order of the loss; by default those that the model knows.
        n_jobs: Workers that fit (None: one, or what `joblib.parallel_config` says; -1: all cores).

    Returns:
        [N]: a score for each candidate, larger is better.

    Raises:
        TypeError: If `X` and `pool` are of different types, or the model gives no probabilities.

    Examples:
        >>> import numpy as np
        >>> from sklearn.linear_model import LogisticRegression
        >>> from stakes import LogLoss
        >>> pool, contexts = np.array([[0.0], [0.45], [1.0]]), np.linspace(0, 1, 11)[:, None]
        >>> scores = expected_future_error(
        ...     LogisticRegression(C=1e3), LogLoss(), np.array([[0.0], [1.0]]), [0, 1], pool, contexts=contexts
        ... )
        >>> int(np.argmax(scores))  # a step between two known ends: the middle
        1
    """
    rows, labelled = _stacked(X, pool), np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
    current = clone(model).fit(X, y)
    labels, probabilities = (
        _class_labels(current, pool, classes) if is_classifier(model) else _quantile_labels(current, pool)
    )  # [N, J]
    tried = np.argwhere(probabilities > 0)  # pairs of a candidate and one of its labels

    def parts() -> Iterator[tuple[Any, ...]]:
        for i, j in tried:
            known = [*labelled, len(labelled) + i]
            yield clone(model), rows, known, _appended(y, labels[i, j]), contexts, loss, classes

    errors = all_parts(_error, parts, n_jobs)
    weighted = probabilities[tried[:, 0], tried[:, 1]] * np.asarray(errors, dtype=float)
    return -np.bincount(tried[:, 0], weights=weighted, minlength=len(probabilities))


def _error(
    model: Any, rows: Any, chosen: list[int], y: Array, contexts: Any, loss: Loss, classes: Sequence[Any] | None
) -> float:
    """E_c h under the model fitted to the rows that are `chosen`."""
    model.fit(_safe_indexing(rows, chosen), y)
    if not is_classifier(model):
        belief: Belief = belief_of(model, _safe_indexing(contexts, [0]), contexts)
    else:
        predicted = _class_probabilities(model, contexts, all_classes(classes, model.classes_))  # [M, C]
        belief = CategoricalEnsemble(predicted[:1, None, :], predicted[:, None, :])
    return float(np.mean(np.asarray(uncertainty(loss, belief))))


def _class_labels(model: Any, pool: Any, classes: Sequence[Any] | None) -> tuple[Array, Array]:
    """[N, C], [N, C]: all classes and their probabilities for each candidate."""
    names = all_classes(classes, model.classes_)
    probabilities = _class_probabilities(model, pool, names)
    return np.broadcast_to(np.asarray(names, dtype=object), probabilities.shape), probabilities


def _class_probabilities(model: Any, rows: Any, classes: list[Any]) -> Array:
    """[n, C]: the probabilities of the model, 0 for classes that it does not know."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba, which expected future error needs: calibrate it")
    predicted = np.asarray(model.predict_proba(rows))
    table = np.zeros((len(predicted), len(classes)))
    table[:, class_columns(model.classes_, classes)] = predicted
    return table


def _quantile_labels(model: Any, pool: Any) -> tuple[Array, Array]:
    """[N, 5], [N, 5]: quantiles of the label of each candidate, and their equal shares."""
    belief = belief_of(model, _safe_indexing(pool, [0]), pool)  # the candidates as contexts, for their marginals
    labels = label_quantiles(belief, _PARTS)
    return labels, np.full(labels.shape, 1.0 / len(_PARTS))


def label_quantiles(belief: Belief, parts: Array) -> Array:
    """[M, J]: where the target at each context has probability `parts` [J] below it."""
    belief = _as_members(belief)
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
