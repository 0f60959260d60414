"""Members' predictions that are tables already, of any array library: the belief that they are, where they are.

Sizes: N candidates, M contexts, K members, C classes, d outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stakes._array import Array, constant, double, namespace, single
from stakes.beliefs import Belief, CategoricalEnsemble, NormalEnsemble, VectorNormalEnsemble
from stakes.models.base import Request
from stakes.models.classes import all_classes, columns_of
from stakes.models.members import check_columns_of, check_request, checked_noise
from stakes.models.tables import on_host


def table_belief(
    pool: Array,
    contexts: Array,
    request: Request,
    *,
    known: Sequence[Any] | None = None,
    noise_sd: Any = None,
    weights: Any = None,
) -> Belief:
    """The belief of members that predict `pool` [N, K, C] and `contexts` [M, K, C], a column for each `known` class.

    Without classes: means [N, K] and [M, K] ([N, K, d], [M, K, d] for vectors), with the noise of labels about them.
    """
    check_request(known is not None, request, noise_sd)
    pool, contexts = _floating(pool), _floating(contexts)
    weights = None if weights is None else constant(on_host(weights), single(contexts[:0, ...]))
    if known is None:
        pool, contexts = single(pool), single(contexts)  # scores are in the precision of means
        noise = constant(checked_noise(noise_sd), contexts)
        kind = NormalEnsemble if contexts.ndim == 2 else VectorNormalEnsemble
        return kind(pool, noise, contexts, noise if request.target == "label" else 0.0, weights)
    classes = all_classes(request.classes, known)
    tables = [_in_order(table, known, classes) for table in (pool, contexts)]
    belief = CategoricalEnsemble(tables[0], tables[1], weights)
    return belief.as_votes() if all(map(_is_hard, tables)) else belief


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
