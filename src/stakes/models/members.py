"""Which column belongs to which class, whatever labels are: numbers, names, NumPy's or Python's.

Sizes: c classes of one member.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stakes._utils.array import Array, constant, double, namespace, single
from stakes._utils.tables import on_host
from stakes.beliefs import Belief, CategoricalEnsemble, NormalEnsemble, VectorNormalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, Target


def union_of(classes: Iterable[Sequence[Any]]) -> list[Any]:
    """All classes that any member knows, sorted."""
    union = {plain_label(label) for own in classes for label in own}
    try:
        return sorted(union)
    except TypeError as error:
        raise TypeError(f"classes cannot be ordered ({error}): give classes=... in order") from error


def all_classes(asked: Sequence[Any] | None, known: Sequence[Any]) -> list[Any]:
    """The classes in the order of columns: those asked for, which hold all that the model knows; or the model's."""
    classes = [plain_label(label) for label in (known if asked is None else asked)]
    if len(set(classes)) < len(classes):
        raise StakesError(f"each class must be given once; got {classes!r}")
    columns_of(known, classes)
    return classes


def columns_of(own: Sequence[Any], classes: list[Any]) -> Array:
    """[c]: where among `classes` each class of `own` is."""
    place = {label: column for column, label in enumerate(classes)}
    if unknown := [label for label in map(plain_label, own) if label not in place]:
        raise StakesError(
            f"the model knows classes that are not among the classes given: {unknown!r} not in {classes!r}"
        )
    return np.asarray([place[plain_label(label)] for label in own], dtype=np.intp)


def plain_label(label: Any) -> Any:
    """A label as Python has it, so that np.int64(1) and 1 are one."""
    return label.item() if isinstance(label, np.generic) else label


# ----------------------------------------------------------------------
# The noise of labels about members' means, by the method of moments, from rows that members were not fitted on.
#
# For such a row, residual = noise + how far the members' mean is off. The second part is believed to be as large as
# the members' spread: the truth is taken for one more member. With k members that have not seen the row, of variance
# s^2 about their mean, E[residual^2] = noise^2 + s^2 (1 + 1 / k), and what is left of the mean square is the noise.
#
# Bias: spread and noise together are right for labels that members have not seen, but their parts may not be. Members
# that are all wrong in the same way (too smooth, too few labels) spread too little, and their common error is counted
# as noise. Members that follow the noise of single labels (fully grown trees) or split at random (extra trees) spread
# by that as well, and what is left is too small: leaves of five rows or more serve better. At least a tenth of the
# mean square is kept, as a label without noise would be believed blindly. One noise level for all rows is estimated.
# Sizes: n training rows, K members, d outputs.

_LEAST = 0.1  # of the mean square of residuals that is noise at the least


def moment_noise(targets: Any, means: Array, samples: Sequence[Array]) -> Array:
    """The noise sd (one for each output): targets [n(, d)], members' means [n, K(, d)], the rows of each member.

    NaN where no row was left out by any member.
    """
    outside = np.ones(means.shape[:2], dtype=bool)  # [n, K]: members that have not seen the row
    for k, rows in enumerate(samples):
        outside[rows, k] = False
    counts = np.sum(outside, axis=1)  # [n]
    kept = counts >= min(2, counts.max())  # one member alone shows no spread: used only where that is all there is
    if counts.max() == 0:
        return np.full(means.shape[2:], math.nan)
    seen, k = np.where(_like(outside, means), means, 0.0)[kept], _like(counts[kept], means[:, 0])  # [m, K(, d)], [m]
    centre = np.sum(seen, axis=1) / k
    squares = np.sum(np.where(_like(outside[kept], means), (means[kept] - centre[:, None]) ** 2, 0.0), axis=1)
    spread = np.mean(squares / np.maximum(k - 1, 1) * (1.0 + 1.0 / k), axis=0)
    return _what_is_left(np.mean((np.asarray(targets, dtype=float)[kept] - centre) ** 2, axis=0), spread)


def noise_of_trees(model: Any, means: Array) -> Array:
    """The noise sd that a forest or bagged trees know from `oob_score=True`, told members' means [M, K] at contexts.

    The model keeps neither labels nor residuals, but R^2 = 1 - mean residual^2 / var(y) out of bag, and var(y) is the
    mean impurity of the roots (up to sampling error, of relative size sqrt(2 / (n K))). The members' spread is taken at
    the contexts, which are the same for every block of the pool: estimate it on the training rows with
    `out_of_bag_noise` where the contexts are few or unlike them.
    """
    _check_known(model, means)
    trees = [member.tree_ for member in model.estimators_]
    sizes = np.asarray([tree.weighted_n_node_samples[0] for tree in trees])  # [K]
    roots = np.asarray([tree.impurity[0] for tree in trees]) / np.maximum(1.0 - 1.0 / sizes, 1e-300)
    spread = np.mean(np.var(means, axis=1, ddof=min(1, len(trees) - 1)))
    return _what_is_left((1.0 - model.oob_score_) * np.mean(roots), spread * np.mean(1.0 + 1.0 / _left_out(model)))


def _check_known(model: Any, means: Array) -> None:
    """Refuse a model whose out-of-bag score does not tell the noise, and say what does."""
    otherwise = "Or give EnsembleOf(model, noise_sd=...), where out_of_bag_noise(model, X, y) estimates it if it can."
    name = type(model).__name__
    if not model.bootstrap:
        raise StakesError(
            "the noise of labels is estimated on rows that members were not fitted on, and "
            f"{name}(bootstrap=False) leaves none out. Fit with bootstrap=True, oob_score=True. {otherwise}"
        )
    if model.oob_score is not True or not hasattr(model, "oob_score_"):
        raise StakesError(f"the noise of labels is not known: fit {name}(bootstrap=True, oob_score=True). {otherwise}")
    by_variance = [getattr(each, "criterion", None) in ("squared_error", "friedman_mse") for each in model.estimators_]
    if means.ndim > 2 or not all(by_variance):
        raise StakesError(
            f"oob_score_ tells the noise only of one output and trees split by squared error. {otherwise}"
        )
    if np.min(_left_out(model)) == 0:
        raise StakesError(f"oob_score_ is wrong: some rows are in the sample of every member. Fit more. {otherwise}")


def _left_out(model: Any) -> Array:
    """[n]: how many members have not seen each row."""
    counts = np.zeros(len(model.oob_prediction_), dtype=int)
    for rows in model.estimators_samples_:
        counts += np.bincount(rows, minlength=len(counts)) == 0
    return counts


def _what_is_left(mean_square: Array, spread: Array) -> Array:
    return np.sqrt(np.maximum(mean_square - spread, _LEAST * mean_square))


def _like(flags: Array, means: Array) -> Array:
    """`flags` with the axis of outputs that `means` may have."""
    return flags[..., None] if means.ndim > flags.ndim else flags


# ----------------------------------------------------------------------
# Members of an ensemble, whatever model they are part of, and the belief that they are.
#
# Sizes: N candidates, M contexts, n rows of either, K members, C classes, c classes of one member, d outputs.


def _unchanged(rows: Any) -> Any:
    return rows


@dataclass(frozen=True, eq=False)
class Members:
    """K predictors in a fixed order, each a function of what `prepare` makes of the rows."""

    predict: tuple[Callable[[Any], Array], ...]
    """Each: probabilities [n, c], or means [n] ([n, d] for several outputs)."""
    classes: tuple[Sequence[Any], ...] | None = None
    """The classes of the columns of each member; None for real targets."""
    known: Sequence[Any] | None = None
    """All classes that the model knows, in its order; None: the sorted union of those of the members."""
    pure: bool = False
    """Whether every member puts all its mass on one class, whatever the row."""
    votes: Callable[[Any], Array] | None = None
    """[n, K]: the position in `known` of the class that each member puts all its mass on, of all members at once."""
    means: Callable[[Any], Array] | None = None
    """[n, K]: what each member predicts, of all members at once."""
    weights: Any = None
    """[K]"""
    prepare: Callable[[Any], Any] = _unchanged
    """Done once for all members: checks of the features, or the leaf of each tree."""
    samples: Callable[[], Sequence[Array]] | None = None
    """The rows of the training data that each member was fitted on."""
    noise: Callable[[Array], Array] | None = None
    """The noise sd of labels that the model itself knows, told the members' means [M, K] at contexts."""

    def after(self, transform: Callable[[Any], Any]) -> Members:
        """The same members, told what `transform` makes of the rows."""

        def told(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda rows: method(transform(rows))

        return replace(
            self,
            prepare=told(self.prepare),
            votes=None if self.votes is None else told(self.votes),
            means=None if self.means is None else told(self.means),
        )


def prepare_members(
    members: Members, contexts: Any, noise_sd: Any = None, *, target: Target, classes: Sequence[Any] | None
) -> RowsToBelief:
    """The belief of `members`: votes or probabilities for classes, normals about their means for real targets.

    A `noise_sd` that is given goes before the one that the model knows.
    """
    if not members.predict:
        raise StakesError("an ensemble needs at least one fitted member; got none")
    check_options(members.classes is not None, target, classes, noise_sd)
    if members.classes is None:
        return _prepare_normal(members, contexts, target, noise_sd)
    return _prepare_classes(members, contexts, classes)


def check_options(of_classes: bool, target: Target, classes: Sequence[Any] | None, noise_sd: Any) -> None:
    """Refuse what members of this kind, of classes or of numbers, cannot be asked for."""
    if not of_classes and classes is not None:
        raise StakesError(
            f"classes {list(classes)!r} were given, but the members predict numbers: leave classes out, or "
            "give classifiers"
        )
    if of_classes and noise_sd is not None:
        raise StakesError("noise_sd is for real targets: the members are classifiers, whose noise is in probabilities")
    if of_classes and target == "latent":
        raise StakesError("classes have no latent target: z is the class that is realised. Ask for target='label'.")


def _prepare_classes(members: Members, contexts: Any, asked: Sequence[Any] | None) -> RowsToBelief:
    assert members.classes is not None
    known = union_of(members.classes) if members.known is None else members.known
    classes = all_classes(asked, known)
    if members.pure or members.votes is not None:
        votes = _votes(members, contexts, classes)
        return lambda rows: VoteEnsemble(_votes(members, rows, classes), votes, len(classes), members.weights)
    there = probabilities_of(members, contexts, classes)
    return lambda rows: _of_probabilities(probabilities_of(members, rows, classes), there, members.weights)


def _of_probabilities(pool: Array, contexts: Array, weights: Any) -> Belief:
    """Votes where all members are sure everywhere."""
    belief = CategoricalEnsemble(pool, contexts, weights)
    return belief.as_votes() if _is_hard(contexts) and _is_hard(pool) else belief


def probabilities_of(members: Members, rows: Any, classes: list[Any]) -> Array:
    """[n, K, C]: filled member by member, 0 where a member does not know a class."""
    assert members.classes is not None
    table, prepared = None, members.prepare(rows)
    for k, (predict, own) in enumerate(zip(members.predict, members.classes, strict=True)):
        values = np.asarray(predict(prepared))  # [n, c]
        check_columns_of(values, own)
        if table is None:
            table = np.zeros((len(values), len(members.predict), len(classes)), dtype=values.dtype)
        if table.dtype != (finer := np.result_type(table, values)):
            table = table.astype(finer)  # no member is rounded for the sake of the first
        table[:, k, columns_of(own, classes)] = values
    return table


def _votes(members: Members, rows: Any, classes: list[Any]) -> Array:
    """[n, K]: the class that each member puts its mass on."""
    assert members.classes is not None
    if members.votes is not None:
        return _renamed(members.votes(rows), columns_of(members.classes[0], classes))
    prepared, columns = members.prepare(rows), [columns_of(own, classes) for own in members.classes]
    return _stacked(
        lambda k: columns[k][np.argmax(np.asarray(members.predict[k](prepared)), axis=1)], len(columns), np.int32
    )


def _renamed(votes: Array, columns: Array) -> Array:
    """Votes for positions among all classes, the same where nothing moves."""
    return votes if np.array_equal(columns, np.arange(len(columns))) else columns.astype(votes.dtype)[votes]


def means_of(members: Members, rows: Any) -> Array:
    """[n, K], or [n, K, d]: what each member predicts."""
    if members.means is not None:
        return members.means(rows)
    prepared = members.prepare(rows)
    return _stacked(lambda k: np.asarray(members.predict[k](prepared), dtype=float), len(members.predict), float)


def _stacked(column: Callable[[int], Array], count: int, dtype: Any) -> Array:
    """[n, K, ...]: columns k = 0 .. count - 1, written into one array as they come."""
    table = None
    for k in range(count):
        values = column(k)
        if table is None:
            table = np.empty((len(values), count, *values.shape[1:]), dtype=dtype)
        table[:, k] = values
    return table


def _prepare_normal(members: Members, contexts: Any, target: Target, noise_sd: Any) -> RowsToBelief:
    targets = means_of(members, contexts)
    known = members.noise(targets) if noise_sd is None and members.noise is not None else noise_sd
    noise = checked_noise(known)
    kind = NormalEnsemble if targets.ndim == 2 else VectorNormalEnsemble
    target_noise = noise if target == "label" else 0.0
    return lambda rows: kind(means_of(members, rows), noise, targets, target_noise, members.weights)


def checked_noise(noise_sd: Any) -> Array:
    """The noise sd on the host, positive."""
    if noise_sd is None:
        raise StakesError(
            "members predict means, and the noise of a label has to come from elsewhere: give "
            "EnsembleOf(model, noise_sd=...), where out_of_bag_noise(model, X, y) estimates it for bootstrapped "
            "members; or fit RandomForestRegressor(oob_score=True) or Bootstrap(estimator), which know it themselves"
        )
    noise = np.asarray(on_host(noise_sd), dtype=float)
    if not (np.all(np.isfinite(noise)) and np.all(noise > 0)):
        raise StakesError(
            f"noise_sd, the sd of a label about its mean, must be positive and finite; got {noise!r}. Where the labels "
            "so far do not show it (one row, or all alike), give EnsembleOf(model, noise_sd=...)."
        )
    return noise


def check_columns_of(values: Array, own: Sequence[Any]) -> None:
    """Refuse probabilities of one member [n, c], or of all [n, K, c], without a column for each of its classes."""
    if values.ndim not in (2, 3) or values.shape[-1] != len(own):
        raise StakesError(
            f"a member must predict probabilities [n, {len(own)}], a column for each of its classes; got "
            f"{list(values.shape)}. Classifiers with several outputs have no belief here: give one output at a time."
        )


# ----------------------------------------------------------------------
# Members' predictions that are tables already, of any array library: the belief that they are, where they are.
#
# Sizes: N candidates, M contexts, K members, C classes, d outputs.


def prepare_table(
    contexts: Array,
    *,
    target: Target = "label",
    classes: Sequence[Any] | None = None,
    known: Sequence[Any] | None = None,
    noise_sd: Any = None,
    weights: Any = None,
) -> Callable[[Array], Belief]:
    """From what members predict for a pool, [N, K, C], to the belief; they predict `contexts` [M, K, C].

    There is a column for each `known` class. Without classes: means [N, K] and [M, K] ([N, K, d], [M, K, d] for
    vectors), with the noise of labels about them.
    """
    check_options(known is not None, target, classes, noise_sd)
    contexts = _floating(contexts)
    weights = None if weights is None else constant(on_host(weights), single(contexts[:0, ...]))
    if known is None:
        means = single(contexts)  # scores are in the precision of means
        noise = constant(checked_noise(noise_sd), means)
        kind = NormalEnsemble if means.ndim == 2 else VectorNormalEnsemble
        target_noise = noise if target == "label" else 0.0
        return lambda pool: kind(single(_floating(pool)), noise, means, target_noise, weights)
    names = all_classes(classes, known)
    ordered = _in_order(contexts, known, names)
    return lambda pool: _of_probabilities(_in_order(_floating(pool), known, names), ordered, weights)


def _floating(table: Array) -> Array:
    """Whole numbers in double precision: what stands beside them, noise and weights, is no whole number."""
    return table if namespace(table).isdtype(table.dtype, "real floating") else double(table)


def _in_order(table: Array, known: Sequence[Any], classes: list[Any]) -> Array:
    """[n, K, C]: the columns of `known` classes among all classes, 0 for a class that is not known."""
    check_columns_of(table, known)
    places = columns_of(known, classes).tolist()
    if places == list(range(len(classes))):
        return table
    xp = namespace(table)
    nothing = xp.zeros_like(table[..., 0])
    columns = [table[..., places.index(j)] if j in places else nothing for j in range(len(classes))]
    return xp.stack(columns, axis=-1)


def _is_hard(table: Array) -> bool:
    """Whether every member puts all its mass on one class."""
    return bool(namespace(table).all((table == 0) | (table == 1)))
