"""Sources of rows: what `rank` asks of tables, of files, and of a source of one's own."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from stakes.exceptions import StakesError
from stakes.ranking import Pool
from stakes.ranking.pools import checked_pool, fitted_columns, pool_chunks, pool_labels, pool_rows, pool_size


class Squares:
    """Squares of positions; it may say that there are more."""

    def __init__(self, n_rows, more=0):
        self.n_rows, self._more = n_rows + more, more

    def take(self, rows):
        return np.asarray(rows, dtype=float)[:, None] ** 2

    def chunks(self, size):
        for start in range(0, self.n_rows - self._more, size):
            yield start, self.take(np.arange(start, min(start + size, self.n_rows - self._more)))


@pytest.mark.parametrize("pool", [Squares(10), np.arange(10.0)[:, None] ** 2])
def test_a_table_and_a_source_answer_alike(pool):
    assert pool_size(pool) == 10
    assert [(start, len(rows)) for start, rows in pool_chunks(pool, 4)] == [(0, 4), (4, 4), (8, 2)]
    np.testing.assert_array_equal(pool_rows(pool, np.array([3, 1])), [[9.0], [1.0]])
    assert pool_labels(pool, np.array([3, 1])) == [3, 1]


def test_a_source_is_checked_row_by_row():
    model = BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    assert fitted_columns(model) == (None, True)
    source = Squares(10)
    assert isinstance(source, Pool)
    assert checked_pool(source, model, False) is source
    with pytest.raises(StakesError, match="says that it has 12 rows, but its chunks hold 10"):
        checked_pool(Squares(10, more=2), model, False)
    with pytest.raises(StakesError, match="at least one row"):
        checked_pool(Squares(0), model, False)
