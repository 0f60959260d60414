"""Where to begin without a label: rows that are spread over the pool.

Sizes: N rows, n rows chosen, q encoded features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from stakes.models.encoding import TableEncoder
from stakes.models.tables import Host, check_table, n_rows, row_labels
from stakes.ranking.question import LUCK, at_least_one, generator
from stakes.ranking.result import Ranking, Reason

DISTANCE = "distance to the rows before"


def cold_start(pool: Any, n: int = 10, *, seed: int = 0) -> Ranking:
    """`n` rows to label first, when there is no label and so no model: the k-centre rule.

    The first is drawn with the seed; each after it is the row furthest from those before, in standardised columns
    (`stakes.models.TableEncoder`: categories as indicators, gaps filled); equals by the seed. Scores are that distance,
    infinite for the first. No loss has a say.
    """
    pool = check_table("pool", pool, allow_nan=True)
    size, wanted = n_rows(pool), at_least_one("n", n)
    encoder = TableEncoder().fit(pool)
    order = generator(seed, LUCK).permutation(size)
    places, distances = _furthest(encoder.transform(pool)[order], min(wanted, size))
    rows, labels = order[places].tolist(), row_labels(pool)
    said = [
        f"A cold start: no model, so no row has a worth. The first row is drawn with seed {seed}, each after it is the "
        "one furthest from those before.",
        *encoder.report_,
    ]
    if wanted > size:
        said.append(f"{wanted} rows were asked for; the pool has {size}.")
    reason = Reason(None, None, (), None, DISTANCE)
    names = tuple(labels[row] for row in rows)
    return Ranking(tuple(rows), names, tuple(distances), False, DISTANCE, (reason,) * len(rows), tuple(said))


def _furthest(features: Any, n: int) -> tuple[list[int], list[float]]:
    """Positions and distances of n rows of [N, q], beginning with the first; of equals the first."""
    squares = np.asarray(features.multiply(features).sum(axis=1) if issparse(features) else (features**2).sum(axis=1))
    nearest: Host = np.full(features.shape[0], np.inf)  # [N]: the squared distance to the nearest chosen
    places, distances = [0], [np.inf]
    while len(places) < n:
        centre = features[places[-1], :]
        product = features @ (centre.toarray().ravel() if issparse(centre) else centre)
        nearest = np.minimum(nearest, np.maximum(squares.ravel() + squares.ravel()[places[-1]] - 2.0 * product, 0.0))
        nearest[places] = -1.0
        places.append(int(np.argmax(nearest)))
        distances.append(float(np.sqrt(nearest[places[-1]])))
    return places, distances
