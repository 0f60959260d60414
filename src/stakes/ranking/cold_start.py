"""Where to begin without a label: rows that are spread over the pool.

Sizes: N rows, n rows chosen, q encoded features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from stakes._utils.random import LUCK, SUBSAMPLE, generator
from stakes._utils.tables import Host
from stakes._utils.text import counted
from stakes.models.encoding import TableEncoder
from stakes.ranking.query import Pool, TablePool, at_least_one, checked_pool, pool_labels, silent
from stakes.ranking.result import Ranking, Reason

_MOST = 100_000  # rows of a file that are looked at: all of them must be in memory at once
DISTANCE = "distance to the rows before"


def cold_start(pool: Any, n: int = 10, *, known: Any = None, seed: int = 0) -> Ranking:
    """`n` rows to label first, when there is no label and so no model: the k-centre rule.

    Each is the row furthest from those before, in standardised columns (`stakes.models.TableEncoder`: categories as
    indicators, gaps filled); equals by the seed. `known` rows [n, p], which have labels or will have them, count as
    before all others; without any, the first row is drawn with the seed. Scores are that distance, infinite for a row
    that was drawn. No loss has a say. Of a file that is read in chunks, 100,000 rows are looked at.
    """
    source, wanted = checked_pool(pool, TableEncoder(), True, silent), at_least_one("n", n)
    looked, drawn = _looked_at(source, seed)
    pool, size = source.take(looked), len(looked)
    encoder = TableEncoder().fit(pool, pool=known)
    order = generator(seed, LUCK).permutation(size)
    before = None if known is None else encoder.transform(known)
    places, distances = _furthest(encoder.transform(pool)[order], before, min(wanted, size))
    rows = looked[order[places]]
    said = [
        f"A cold start: no model, so no row has a worth. {_first_sentence(before, seed)}.",
        *drawn,
        *encoder.report_,
    ]
    if wanted > size:
        said.append(f"{wanted} rows were asked for; the pool has {size}.")
    reason = Reason(None, None, (), None, DISTANCE)
    names = tuple(pool_labels(source, rows))
    return Ranking(tuple(rows.tolist()), names, tuple(distances), False, DISTANCE, (reason,) * len(rows), tuple(said))


def _looked_at(pool: Pool, seed: int) -> tuple[Host, list[str]]:
    """Positions: all of a table, some of a file that is larger; and a sentence where it is some."""
    if isinstance(pool, TablePool) or pool.n_rows <= _MOST:
        return np.arange(pool.n_rows), []
    drawn = np.sort(generator(seed, SUBSAMPLE).choice(pool.n_rows, _MOST, replace=False))
    return drawn, [f"{_MOST} of the {pool.n_rows} rows of the pool, drawn with seed {seed}, are looked at."]


def _first_sentence(before: Any, seed: int) -> str:
    if before is None:
        return f"The first row is drawn with seed {seed}, each after it is the one furthest from those before"
    return f"Each row is the one furthest from those before it and from {counted(before.shape[0], 'known row')}"


def _furthest(features: Any, before: Any, n: int) -> tuple[list[int], list[float]]:
    """Positions and distances of n rows of [N, q], each furthest from those before; of equals the first."""
    squares = _squares(features)
    nearest: Host = np.full(features.shape[0], np.inf)  # [N]: the squared distance to the nearest before
    for row in range(0 if before is None else before.shape[0]):
        nearest = np.minimum(nearest, _distances(features, squares, before[[row], :]))
    places: list[int] = []
    distances: list[float] = []
    while len(places) < n:
        places.append(int(np.argmax(nearest)))
        distances.append(float(np.sqrt(nearest[places[-1]])))
        nearest = np.minimum(nearest, _distances(features, squares, features[[places[-1]], :]))
        nearest[places] = -1.0
    return places, distances


def _squares(features: Any) -> Host:
    """[N]: squared lengths of rows."""
    found = features.multiply(features).sum(axis=1) if issparse(features) else (features**2).sum(axis=1)
    return np.asarray(found).ravel()


def _distances(features: Any, squares: Host, centre: Any) -> Host:
    """[N]: squared distances of rows to one, [1, q]."""
    product = features @ (centre.toarray() if issparse(centre) else centre).ravel()
    return np.asarray(np.maximum(squares + _squares(centre)[0] - 2.0 * np.asarray(product).ravel(), 0.0))
