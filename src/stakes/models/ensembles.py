"""Ensembles: members of whatever model they are part of, and the belief that they are.

A member k predicts class probabilities, or means, for any row; given the member, labels and targets are independent.
Members are those of scikit-learn's ensembles, lists of fitted estimators, functions of the rows, or tables of what they
predict, which may be arrays of any library. Which column belongs to which class is known by the class itself, whatever
labels are: numbers, names, NumPy's or Python's.

Sizes: N candidates, M contexts, n rows of either, K members, C classes, c classes of one member, d outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from stakes._utils.array import Array, check_shape, constant, double, namespace, on_host, single
from stakes._utils.tables import n_rows, plain_label
from stakes.beliefs import Belief, CategoricalEnsemble, NormalEnsemble, VectorNormalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, Target, adapts, best_of, load_adapters, register_model
from stakes.models.calibration import DOUBT, calibrated_members, calibrated_votes

_LEAST = 0.1  # of the mean square of residuals that is noise at the least


def _unchanged(rows: Any) -> Any:
    return rows


class Members(NamedTuple):
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
    """The noise sd of labels that the model itself knows, from the members' means [M, K] at contexts."""
    label_share: float = 0.0
    """How much of a member's prediction at a row that it was fitted on is the label of that row: 1 for grown trees."""

    def after(self, transform: Callable[[Any], Any]) -> Members:
        """The same members, given what `transform` makes of the rows."""

        def after(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda rows: method(transform(rows))

        return self._replace(
            prepare=after(self.prepare),
            votes=None if self.votes is None else after(self.votes),
            means=None if self.means is None else after(self.means),
        )


@singledispatch
def members_of(model: Any) -> Members:
    """The members of a fitted ensemble, in its own order."""
    load_adapters(model)
    if (known := members_of.dispatch(type(model))) is not members_of.dispatch(object):
        return known(model)
    raise TypeError(
        f"a {type(model).__name__} has no members that are known here: give a forest, bagging, voting, Bootstrap, a "
        "list of fitted estimators, or a function of the rows"
    )


def prepare_ensemble(model: Any, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    """The belief of the members of `model`."""
    return prepare_members(members_of(model), contexts, target=target, classes=classes)


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


def calibrated(belief: Belief, prior: Array, power: float, share: float) -> CategoricalEnsemble:
    """Members, which count alike, whose answers at contexts are calibrated by a power and a share of `prior` [C].

    What a label tells is another question than how sure an answer is: labels of candidates come as each member says
    them, but for a little doubt. Without it a member that holds an outcome impossible would be ruled out by it for
    good, and one wrong label, or a class that no label has had yet, would do that to all. (Calibrated on both sides
    rows were chosen worse: docs/does_it_help.md.)
    """
    if isinstance(belief, VoteEnsemble):
        return CategoricalEnsemble(
            calibrated_votes(belief.candidates, prior, 1.0, DOUBT),
            calibrated_votes(belief.contexts, prior, power, share),
        )
    assert isinstance(belief, CategoricalEnsemble)
    return CategoricalEnsemble(
        calibrated_members(belief.candidates, prior, 1.0, DOUBT),
        calibrated_members(belief.contexts, prior, power, share),
    )


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
        table[:, k, class_columns(own, classes)] = values
    return table


def _votes(members: Members, rows: Any, classes: list[Any]) -> Array:
    """[n, K]: the class that each member puts its mass on."""
    assert members.classes is not None
    if members.votes is not None:
        return _renamed(members.votes(rows), class_columns(members.classes[0], classes))
    prepared, columns = members.prepare(rows), [class_columns(own, classes) for own in members.classes]
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
            "members predict means, and the noise of a label has to come from elsewhere: give the rows that they were "
            "fitted to, rank(model, loss, pool, labelled=(X, y)), or EnsembleOf(model, noise_sd=...), where "
            "out_of_bag_noise(model, X, y) estimates it for bootstrapped members; or fit "
            "RandomForestRegressor(oob_score=True) or Bootstrap(estimator), which know it themselves"
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
    places = class_columns(known, classes).tolist()
    if places == list(range(len(classes))):
        return table
    xp = namespace(table)
    nothing = xp.zeros_like(table[..., 0])
    columns = [table[..., places.index(j)] if j in places else nothing for j in range(len(classes))]
    return xp.stack(columns, axis=-1)


def _is_hard(table: Array) -> bool:
    """Whether every member puts all its mass on one class."""
    return bool(namespace(table).all((table == 0) | (table == 1)))


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
    class_columns(known, classes)
    return classes


def class_columns(own: Sequence[Any], classes: list[Any]) -> Array:
    """[c]: where among `classes` each class of `own` is."""
    place = {label: column for column, label in enumerate(classes)}
    if unknown := [label for label in map(plain_label, own) if label not in place]:
        raise StakesError(
            f"the model knows classes that are not among the classes given: {unknown!r} not in {classes!r}"
        )
    return np.asarray([place[plain_label(label)] for label in own], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class EnsembleOf:
    """An ensemble from a function of the rows, a list of fitted estimators, or a fitted ensemble.

    Args:
        members: A function that gives class probabilities [K, n, C] of K members for n rows, in the same order each
            time it is called; or, with `noise_sd`, means [K, n] ([K, n, d] for vectors). Or a list of fitted estimators
            or a fitted ensemble, here with a noise level and weights.
        classes: The classes of the columns that a function gives; None: 0 .. C - 1.
        noise_sd: The sd of labels about a member's mean: a number, or one for each of d outputs. None for classes.
        member_weights: [K]; None: equal, or the weights that an ensemble has.

    Examples:
        >>> import numpy as np
        >>> from stakes import SquaredError, score
        >>> from stakes.models import belief_of
        >>> slopes = np.array([0.5, 1.0, 1.5])
        >>> model = EnsembleOf(lambda rows: slopes[:, None] * rows[:, 0], noise_sd=0.1)
        >>> pool = np.array([[0.0], [1.0], [2.0]])
        >>> int(np.argmax(score(SquaredError(), belief_of(model, pool, contexts=pool))))
        2
    """

    members: Any
    _: KW_ONLY
    classes: Any = None
    noise_sd: Any = None
    member_weights: Any = None


@adapts(EnsembleOf)
def _ensemble(model: EnsembleOf, contexts: Any, *, target: Any, classes: Any, **_: Any) -> RowsToBelief:
    if callable(model.members):
        return _of_function(model, contexts, target=target, classes=classes)
    members = members_of(model.members)
    if model.classes is not None:
        members = members._replace(known=model.classes)
    if model.member_weights is not None:
        members = members._replace(weights=model.member_weights)
    return prepare_members(members, contexts, model.noise_sd, target=target, classes=classes)


def _of_function(model: EnsembleOf, contexts: Any, *, target: Any, classes: Any) -> RowsToBelief:
    """Both tables as they come, of any array library and wherever they are."""
    if model.noise_sd is not None and model.classes is not None:
        raise StakesError("give classes for a function of probabilities, or noise_sd for one of means; got both")
    there = _as_array(model.members(contexts))
    last = ("C",) if model.noise_sd is None or there.ndim == 3 else ()
    check_shape("what the function gives for the contexts", there, ("K", n_rows(contexts), *last))
    known = None
    if model.noise_sd is None:
        known = range(there.shape[2]) if model.classes is None else model.classes
    prepared = prepare_table(
        _rows_first(there),
        target=target,
        classes=classes,
        known=known,
        noise_sd=model.noise_sd,
        weights=model.member_weights,
    )

    def belief(pool: Any) -> Any:
        here = _as_array(model.members(pool))
        check_shape("what the function gives for the pool", here, (len(there), n_rows(pool), *last))
        return prepared(_rows_first(here))

    return belief


def _rows_first(table: Array) -> Array:
    """[n, K, C], or [n, K(, d)]."""
    return namespace(table).moveaxis(table, 0, 1)


def _as_array(table: Any) -> Array:
    """An array of whatever library it is, without the gradients that a network would keep; lists as NumPy's."""
    table = table.detach() if hasattr(table, "detach") else table
    return table if is_array_api_obj(table) else np.asarray(table)


def probabilities(classifier: Any) -> Callable[[Any], Array]:
    """Its `predict_proba`, or all mass on its answer where it has none."""
    return classifier.predict_proba if hasattr(classifier, "predict_proba") else answers(classifier)


def answers(classifier: Any) -> Callable[[Any], Array]:
    """[n, c]: all mass on the answer."""
    return lambda rows: (np.asarray(classifier.predict(rows))[:, None] == np.asarray(classifier.classes_)).astype(float)


def is_pure(classifier: Any) -> bool:
    """Whether it puts all mass on one class whatever the row: a tree with pure leaves, or answers only."""
    if not hasattr(classifier, "predict_proba"):
        return True
    if not hasattr(classifier, "tree_"):
        return False
    leaves = classifier.tree_.value[classifier.tree_.children_left < 0]  # [leaves, 1, C]
    return bool(np.all(np.count_nonzero(leaves, axis=-1) == 1))


@members_of.register(list)
@members_of.register(tuple)
def _listed(models: Sequence[Any]) -> Members:
    """Fitted estimators of one kind, classifiers (not necessarily of the same classes) or regressors."""
    for model in models:
        if isinstance(model, BaseEstimator):
            check_is_fitted(model)
        if not hasattr(model, "predict"):
            raise TypeError(
                f"a list of models must hold fitted estimators with predict; got {type(model).__name__}. Networks of "
                "torch with a noise level or weights go into stakes.models.networks.NetworkEnsemble."
            )
        if isinstance(getattr(model, "classes_", None), list):
            raise StakesError(f"{type(model).__name__} has several class outputs: give one output at a time")
    kinds = {hasattr(model, "classes_") for model in models}
    if len(kinds) > 1:
        raise TypeError(
            f"members must all be classifiers or all regressors; got {[type(each).__name__ for each in models]}"
        )
    if kinds != {True}:
        return Members(tuple(model.predict for model in models))
    return Members(
        predict=tuple(probabilities(model) for model in models),
        classes=tuple(model.classes_ for model in models),
        pure=all(map(is_pure, models)),
    )


@members_of.register(Pipeline)
def _at_the_end(model: Pipeline) -> Members:
    """Those of the last step, on what the steps before make of the rows."""
    last, before = members_of(model.steps[-1][1]), model[:-1]
    if len(model.steps) == 1:
        return last
    return last.after(before.transform)


@members_of.register(BaseSearchCV)
def _found(model: BaseSearchCV) -> Members:
    """Those of the best estimator."""
    return members_of(best_of(model))


# The noise of labels about members' means, by the method of moments, from rows that members were not fitted on.
#
# For such a row, residual = noise + how far the members' mean is off. The second part is believed to be as large as
# the members' spread: the truth is taken for one more member. With k members that have not seen the row, of variance
# s^2 about their mean, E[residual^2] = noise^2 + s^2 (1 + 1 / k), and what is left of the mean square is the noise.
#
# But members follow the noise of single labels, and spread by that as well: if one label is the share a of what they
# predict (1 for a fully grown tree, 1 / 5 for leaves of five), their spread says less about the function. So only the
# part 1 - 3 a / 4 of it is taken out, and what the mean of members has of the noise itself, a / 5:
#
#     noise^2 = (E[residual^2] - (1 - 3 a / 4) s^2 (1 + 1 / k)) / (1 + a / 5).
#
# Both numbers are measured (any two grown trees share 6% to 49% of the labels that they average, a fifth most often).
# Over 27 simulated tables of 30 to 200 labels the estimate for grown trees was 1.04 of the truth in the median, where
# all of the spread taken out gave 0.51; for leaves of five 0.94. With 200 labels it was 0.99, with 30 of them 1.28.
#
# Bias: spread and noise together are right for labels that members have not seen, but their parts may not be. Members
# that are all wrong in the same way (too smooth, too few labels) spread too little, and their common error is counted
# as noise: with 30 labels in ten dimensions up to twice the truth. At least a tenth of the mean square is kept, as a
# label without noise would be believed blindly. One noise level for all rows is estimated.
# Sizes: n training rows, K members, d outputs.

_SHARED = 0.2  # of the labels in a leaf that another tree averages as well
_NOISY = 0.75  # of the spread of grown trees: that by which they follow single labels


def out_of_bag_noise(model: Any, X: Any, y: Any) -> Array:  # noqa: N803 (scikit-learn's names)
    """Estimate the noise of labels about the members of a fitted, bootstrapped ensemble.

    By the method of moments, on rows that members were not fitted on; the comment above says how it is biased.

    Args:
        model: A forest, bagging or `Bootstrap`, fitted to `X` and `y`.
        X: Its training rows [n, p].
        y: Their labels [n], or [n, d].

    Returns:
        The noise sd, one for each output.

    Raises:
        StakesError: If members were fitted on all rows, or no row was left out by a member.

    Examples:
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
        >>> bool(0.3 < out_of_bag_noise(forest, X, y) / y.std() < 0.8)
        True
    """
    members = members_of(model)
    if members.samples is None:
        raise StakesError(
            f"the members of this {type(model).__name__} were fitted on all rows, or do not say on which: there is "
            "nothing out of bag. Fit with bootstrap=True, or wrap the estimator in Bootstrap."
        )
    noise = moment_noise(y, means_of(members, X), members.samples(), members.label_share)
    if not np.all(noise > 0):
        raise StakesError("no row was left out by a member, or there is no residual: give noise_sd yourself")
    return noise


def moment_noise(targets: Any, means: Array, samples: Sequence[Array], label_share: float = 0.0) -> Array:
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
    mean_square = np.mean((np.asarray(targets, dtype=float)[kept] - centre) ** 2, axis=0)
    return noise_left(mean_square, spread, label_share)


def noise_left(mean_square: Array, spread: Array, label_share: float) -> Array:
    """The noise sd: what is left of the mean square of residuals, a tenth of it at the least."""
    left = (mean_square - (1.0 - _NOISY * label_share) * spread) / (1.0 + _SHARED * label_share)
    return np.sqrt(np.maximum(left, _LEAST * mean_square))


def label_share_of(members: Sequence[Any], samples: Sequence[Array]) -> float:
    """How much of a prediction at a row seen is that row's label, in the mean over members fitted on these rows.

    For trees the leaves over the rows that are different; for nearest neighbours one over their number; 0 for others,
    which average over many labels.
    """
    shares = [_label_share(member, len(np.unique(rows))) for member, rows in zip(members, samples, strict=True)]
    return float(np.mean(shares))


def _label_share(member: Any, count: int) -> float:
    if isinstance(member, Pipeline):
        return _label_share(member.steps[-1][1], count)
    if hasattr(member, "get_n_leaves"):
        return min(1.0, float(member.get_n_leaves()) / count)
    neighbours = getattr(member, "n_neighbors", None)
    return 0.0 if neighbours is None else 1.0 / float(neighbours)


def _like(flags: Array, means: Array) -> Array:
    """`flags` with the axis of outputs that `means` may have."""
    return flags[..., None] if means.ndim > flags.ndim else flags


for _kind in (list, tuple):
    register_model(_kind, prepare_ensemble)
