"""Where to begin without a label: rows that stand for groups of the pool.

Sizes: N rows, n rows chosen, q encoded features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from stakes._utils.arguments import SUBSAMPLE, TIES, RandomState, as_seed, check_budget, generator, left_to_spend
from stakes._utils.tables import Host, labels_at
from stakes.files import Frame
from stakes.models.encoding import TableEncoder
from stakes.ranking.pools import Pool, checked_pool, pool_rows, pool_size
from stakes.ranking.query import at_least_one, row_costs
from stakes.ranking.result import Note, Ranking, Reason

_MOST = 100_000  # rows of a file that are looked at: all of them must be in memory at once
_ROUNDS, _WORK, _LOOKED = 20, 10**10, 500  # of groups; products that they may take; rows of a group that are looked at
DISTANCE = "distance to the rows before"


def cold_start(
    pool: Any,
    *,
    n: int = 10,
    known: Any = None,
    costs: Any = None,
    budget: float | None = None,
    random_state: RandomState = 0,
) -> Ranking:
    """`n` rows to label first, when there is no label and so no model: the middles of `n` groups of the pool.

    Groups begin at rows that are far from each other, in standardised columns (`stakes.models.TableEncoder`: categories
    as indicators, gaps filled). Each row belongs to the nearest, and the row to which the others of a group are nearest
    in sum (its medoid) stands for it, in turns until nothing changes. They come furthest first; equals by the random
    state. No loss has a say. Of a file that is read in chunks, 100,000 rows are looked at.

    Args:
        pool: [N, p]: rows that could be labelled, as in `rank`.
        n: How many rows to choose.
        known: [k, p]: rows that have labels or will have them; they count as before all others, and rows near them need
            no other.
        costs: What a label costs, one number or one for each row of the pool; 1 each without.
        budget: What all labels may cost together; rows that the rest of it does not pay for are passed over.
        random_state: A whole number or a `numpy.random.Generator`.

    Returns:
        The rows, each furthest from those before. Scores are the distance to the nearest row before, infinite for the
        first where no row is known: it stands for the largest group.

    Raises:
        StakesError: If an argument is refused.

    Examples:
        >>> import numpy as np
        >>> from stakes import cold_start
        >>> corners = np.array([[0.0, 0.0], [0.1, 0.0], [9.0, 0.0], [0.0, 9.0]])
        >>> sorted(cold_start(corners, n=2, known=corners[:1]).indices)
        [2, 3]
    """
    source, wanted, seed = checked_pool(pool, TableEncoder(), True), at_least_one("n", n), as_seed(random_state)
    check_budget(budget)
    prices = np.asarray(row_costs(1.0 if costs is None else costs, pool_size(source)))
    looked, drawn = _looked_at(source, seed)
    pool, size = pool_rows(source, looked), len(looked)
    encoder = TableEncoder().fit(pool, pool=known)
    order = generator(seed, TIES).permutation(size)
    before = None if known is None else encoder.transform(known)
    features = encoder.transform(pool)[order]
    places, distances = _representatives(features, before, min(wanted, size), prices[looked[order]], budget)
    rows = looked[order[places]]
    notes = [
        Note("cold start", {"seed": seed, "known": None if before is None else int(before.shape[0])}),
        *drawn,
        *(Note("model report", {"text": each}) for each in encoder.report_),
    ]
    if wanted > size:
        notes.append(Note("too few rows", {"n": wanted, "size": size, "pending": 0}))
    if len(rows) < min(wanted, size):
        notes.append(Note("budget", {"budget": budget, "count": len(rows), "n": min(wanted, size)}))
    row_ids, reason = tuple(labels_at(source, rows)), Reason(None, None, (), None, DISTANCE)
    return Ranking(
        tuple(rows.tolist()), row_ids, tuple(distances), False, DISTANCE, (reason,) * len(rows), tuple(notes)
    )


def _looked_at(pool: Any, seed: int) -> tuple[Host, list[Note]]:
    """Positions: all of a table, some of a file that is larger; and a note where it is some."""
    size = pool_size(pool)
    if not isinstance(pool, Pool) or isinstance(pool, Frame) or size <= _MOST:
        return np.arange(size), []
    drawn = np.sort(generator(seed, SUBSAMPLE).choice(size, _MOST, replace=False))
    return drawn, [Note("drawn rows", {"count": _MOST, "size": size, "seed": seed})]


def _representatives(
    features: Any, before: Any, n: int, costs: Host, budget: float | None
) -> tuple[list[int], list[float]]:
    """Positions and distances of n rows of [N, q] in the middle of groups, furthest first.

    The extremes that groups begin with are often outliers, which say little of the others. A row may take the place of
    another only if it costs no more, so that the budget holds.
    """
    squares = _squares(features)
    known: Host = np.full(features.shape[0], np.inf)  # [N]: the squared distance to the nearest row that is known
    for row in range(0 if before is None else before.shape[0]):
        known = np.minimum(known, _distances(features, squares, before[[row], :]))
    places = _furthest(features, squares, known, n, costs, budget)
    sizes, limits = np.ones(len(places)), costs if budget is not None else np.zeros_like(costs)
    work = max(1, features.shape[1] * len(places) * (features.shape[0] + _LOOKED**2))
    for _ in range(min(_ROUNDS, max(1, _WORK // work))):
        groups = _groups(features, squares, known, places)
        sizes = np.asarray([len(group) for group in groups])
        moved = [_middle(features, squares, group, limits, place) for group, place in zip(groups, places, strict=True)]
        if moved == places:
            break
        places = moved
    return _in_order(features, squares, known, places, sizes)


def _furthest(features: Any, squares: Host, known: Host, n: int, costs: Host, budget: float | None) -> list[int]:
    """Positions of n rows, each furthest from those before among those within the budget; of equals the first."""
    nearest, places, spent = known, list[int](), 0.0
    while len(places) < n:
        within = np.where(costs <= left_to_spend(budget, spent), nearest, -1.0)
        place = int(np.argmax(within))
        if within[place] < 0.0:  # no row is left that the budget pays for
            break
        spent += float(costs[place])
        places.append(place)
        nearest = np.minimum(nearest, _distances(features, squares, features[[place], :]))
        nearest[places] = -1.0
    return places


def _groups(features: Any, squares: Host, known: Host, places: list[int]) -> list[Host]:
    """Positions of the rows that are nearest to each place; those nearest to a known row are in none."""
    nearest, owner = known.copy(), np.full(len(known), -1)
    for number, place in enumerate(places):
        distances = _distances(features, squares, features[[place], :])
        closer = distances < nearest
        nearest[closer], owner[closer] = distances[closer], number
    owner[places] = np.arange(len(places))  # also where rows are equal
    return [np.flatnonzero(owner == number) for number in range(len(places))]


def _middle(features: Any, squares: Host, group: Host, costs: Host, place: int) -> int:
    """The row of a group to which the others are nearest in sum, of those that cost no more than the one at `place`.

    Of a large group some rows are looked at, evenly; outliers weigh less in sums of distances than in a mean.
    """
    some = group[:: max(1, len(group) // _LOOKED)]
    allowed = np.append(some[costs[some] <= costs[place]], place)
    product = features[allowed] @ features[some].T
    product = product.toarray() if issparse(product) else np.asarray(product)
    distances = np.sqrt(np.maximum(squares[allowed][:, None] + squares[some] - 2.0 * product, 0.0)).sum(axis=1)
    best = int(np.argmin(distances))
    return place if distances[-1] <= distances[best] else int(allowed[best])


def _in_order(
    features: Any, squares: Host, known: Host, places: list[int], sizes: Host
) -> tuple[list[int], list[float]]:
    """The places, each furthest from those before, and these distances; the largest group first if no row is known."""
    left, ordered, distances = list(places), list[int](), list[float]()
    nearest = known
    while left:
        far = nearest[left]
        first = int(np.argmax(far if np.isfinite(far).all() else sizes))
        ordered.append(left.pop(first))
        distances.append(float(np.sqrt(far[first])))
        nearest = np.minimum(nearest, _distances(features, squares, features[[ordered[-1]], :]))
    return ordered, distances


def _squares(features: Any) -> Host:
    """[N]: squared lengths of rows."""
    found = features.multiply(features).sum(axis=1) if issparse(features) else (features**2).sum(axis=1)
    return np.asarray(found).ravel()


def _distances(features: Any, squares: Host, centre: Any) -> Host:
    """[N]: squared distances of rows to one, [1, q]."""
    product = features @ (centre.toarray() if issparse(centre) else centre).ravel()
    return np.asarray(np.maximum(squares + _squares(centre)[0] - 2.0 * np.asarray(product).ravel(), 0.0))
