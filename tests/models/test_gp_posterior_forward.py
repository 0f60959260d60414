"""Forward substitution by blocks, against SciPy's."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from stakes.models.gp_posterior import forward_solver


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 200])
@pytest.mark.parametrize("noise", [1e-6, 1.0])
def test_it_solves_what_scipy_solves(count, noise):
    rng = np.random.default_rng(count)
    rows = rng.random((count, 2))
    gaps = np.sum((rows[:, None] - rows) ** 2, axis=2)
    factor = np.linalg.cholesky(np.exp(-gaps) + noise * np.eye(count))
    right = rng.standard_normal((7, count))
    wanted = solve_triangular(factor, right.T, lower=True).T
    found = forward_solver(factor)(right.copy())
    np.testing.assert_allclose(found, wanted, atol=1e-9 * abs(wanted).max())
    np.testing.assert_allclose(found @ factor.T, right, atol=1e-9)


def test_no_rows_are_no_rows():
    assert forward_solver(np.eye(3))(np.zeros((0, 3))).shape == (0, 3)
