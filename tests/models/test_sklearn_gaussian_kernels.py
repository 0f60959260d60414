"""Covariances in place, against scikit-learn's kernels themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from stakes.models.sklearn_gaussian import cross_covariance, signal_and_noise


class Smoother(Matern):
    """A kernel of someone's own, which must not be taken for what it inherits from."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 2.0 * Matern.__call__(self, X, Y, eval_gradient)

    def diag(self, X):
        return 2.0 * Matern.diag(self, X)


KERNELS = {
    "constant": ConstantKernel(2.0),
    "noise": WhiteKernel(0.3),
    "linear": DotProduct(0.7),
    "through the origin": 0.5 * DotProduct(0.0),
    "rbf": RBF([1.0, 2.0, 0.5]),
    **{f"Matern {nu}": Matern(1.3, nu=nu) for nu in (0.5, 1.5, 2.5, 0.7, np.inf)},
    "anisotropic": 3.0 * Matern([1.0, 2.0, 0.5], nu=2.5) + WhiteKernel(0.1),
    "the paper's": 0.25 * DotProduct(0.0) + 1.44 * Matern(1.5) + WhiteKernel(0.09),
    "noise in a product": (RBF(1.0) + WhiteKernel(0.2)) * (ConstantKernel(2.0) + WhiteKernel(0.5)),
    "noise in a power": (RBF(1.0) + WhiteKernel(0.2)) ** 2,
    "numbers alone": ConstantKernel(2.0) + ConstantKernel(0.5) * ConstantKernel(3.0),
    "of others": RationalQuadratic() * ExpSineSquared() + DotProduct(1.0),
    "one's own": Smoother(1.0) + ConstantKernel(1.0) * Smoother(2.0),
}


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_are_those_of_scikit_learn(name, rng):
    kernel, rows, others = KERNELS[name], rng.normal(size=(9, 3)), rng.normal(size=(70, 3))
    others[2] = rows[1]
    np.testing.assert_allclose(cross_covariance(kernel, rows, others), kernel(rows, others), rtol=1e-14)


@pytest.mark.parametrize("name", KERNELS)
def test_the_diagonal_is_separated_from_the_noise(name, rng):
    kernel, rows = KERNELS[name], rng.normal(size=(70, 3))
    signal, noise = signal_and_noise(kernel, rows)
    np.testing.assert_allclose(signal, np.diagonal(kernel(rows, rows)), rtol=1e-12)
    np.testing.assert_allclose(signal + noise, kernel.diag(rows), rtol=1e-12)
    assert (noise > 0).all() == ("noise" in name or "WhiteKernel" in repr(kernel))


def test_a_kernel_that_gives_its_own_array_keeps_it(rng):
    rows = rng.normal(size=(4, 3))

    class Stored(Kernel):
        gram = np.ones((4, 4))

        def __call__(self, X, Y=None, eval_gradient=False):
            return self.gram

        def diag(self, X):
            return np.ones(len(X))

        def is_stationary(self):
            return False

    twice = Stored() * ConstantKernel(2.0) + ConstantKernel(1.0)
    np.testing.assert_array_equal(cross_covariance(twice, rows, rows), 3.0)
    np.testing.assert_array_equal(Stored.gram, 1.0)
