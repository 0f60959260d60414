import numpy as np

from stakes.acquisition import curves as chebyshev


def test_series_of_a_polynomial_and_zeros_beyond(xp, host):
    wanted = np.array([[0.5, 1.0], [-2.0, 0.0], [0.25, 3.0]])  # [R, M]
    values = np.polynomial.chebyshev.chebval(chebyshev.points(6), wanted).T
    got = host(chebyshev.series(xp.asarray(values), 9))
    np.testing.assert_allclose(got[:3], wanted, atol=1e-14)
    np.testing.assert_allclose(got[3:6], 0.0, atol=1e-14)
    assert (got[6:] == 0).all()


def test_points_are_the_nodes_of_the_first_kind():
    np.testing.assert_allclose(chebyshev.points(5), np.polynomial.chebyshev.chebpts1(5)[::-1], atol=1e-15)
