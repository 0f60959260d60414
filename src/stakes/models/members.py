"""Members of an ensemble, whatever model they are part of, and the belief that they are.

Sizes: N candidates, M contexts, n rows of either, K members, C classes, c classes of one member, d outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stakes._array import Array
from stakes.beliefs import Belief, CategoricalEnsemble, NormalEnsemble, VectorNormalEnsemble, VoteEnsemble
from stakes.models.base import Request
from stakes.models.classes import all_classes, columns_of, union_of
from stakes.models.tables import on_host


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


def ensemble_belief(members: Members, pool: Any, contexts: Any, request: Request, noise_sd: Any = None) -> Belief:
    """The belief of `members`: votes or probabilities for classes, normals about their means for real targets.

    A `noise_sd` that is given goes before the one that the model knows.
    """
    if not members.predict:
        raise ValueError("an ensemble needs at least one fitted member; got none")
    check_request(members.classes is not None, request, noise_sd)
    if members.classes is None:
        return _normal_belief(members, pool, contexts, request, noise_sd)
    return _class_belief(members, pool, contexts, request)


def check_request(of_classes: bool, request: Request, noise_sd: Any) -> None:
    """Refuse what members of this kind, of classes or of numbers, cannot be asked for."""
    if not of_classes and request.classes is not None:
        raise ValueError(
            f"classes {list(request.classes)!r} were given, but the members predict numbers: leave classes out, or "
            "give classifiers"
        )
    if of_classes and noise_sd is not None:
        raise ValueError("noise_sd is for real targets: the members are classifiers, whose noise is in probabilities")
    if of_classes and request.target == "latent":
        raise ValueError("classes have no latent target: z is the class that is realised. Ask for target='label'.")


def _class_belief(members: Members, pool: Any, contexts: Any, request: Request) -> Belief:
    assert members.classes is not None
    known = union_of(members.classes) if members.known is None else members.known
    classes = all_classes(request.classes, known)
    if members.pure or members.votes is not None:
        votes = _votes(members, pool, classes)
        at_contexts = request.kept("votes", lambda: _votes(members, contexts, classes))
        return VoteEnsemble(votes, at_contexts, len(classes), members.weights)
    there = request.kept("probabilities", lambda: probabilities_of(members, contexts, classes))
    tables = [probabilities_of(members, pool, classes), there]
    belief = CategoricalEnsemble(tables[0], tables[1], members.weights)
    return belief.as_votes() if all(np.all((table == 0) | (table == 1)) for table in tables) else belief


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


def _normal_belief(members: Members, pool: Any, contexts: Any, request: Request, noise_sd: Any) -> Belief:
    candidates, targets = means_of(members, pool), request.kept("means", lambda: means_of(members, contexts))
    known = members.noise(targets) if noise_sd is None and members.noise is not None else noise_sd
    noise = checked_noise(known)
    kind = NormalEnsemble if candidates.ndim == 2 else VectorNormalEnsemble
    return kind(candidates, noise, targets, noise if request.target == "label" else 0.0, members.weights)


def checked_noise(noise_sd: Any) -> Array:
    """The noise sd on the host, positive."""
    if noise_sd is None:
        raise ValueError(
            "members predict means, and the noise of a label has to come from elsewhere: give "
            "EnsembleOf(model, noise_sd=...), where out_of_bag_noise(model, X, y) estimates it for bootstrapped "
            "members; or fit RandomForestRegressor(oob_score=True) or Bootstrap(estimator), which know it themselves"
        )
    noise = np.asarray(on_host(noise_sd), dtype=float)
    if not (np.all(np.isfinite(noise)) and np.all(noise > 0)):
        raise ValueError(
            f"noise_sd, the sd of a label about its mean, must be positive and finite; got {noise!r}. Where the labels "
            "so far do not show it (one row, or all alike), give EnsembleOf(model, noise_sd=...)."
        )
    return noise


def check_columns_of(values: Array, own: Sequence[Any]) -> None:
    """Refuse probabilities of one member [n, c], or of all [n, K, c], without a column for each of its classes."""
    if values.ndim not in (2, 3) or values.shape[-1] != len(own):
        raise ValueError(
            f"a member must predict probabilities [n, {len(own)}], a column for each of its classes; got "
            f"{list(values.shape)}. Classifiers with several outputs have no belief here: give one output at a time."
        )
