"""A shortcut of one's own: the closed form of the log score under a Gaussian belief."""

import numpy as np
from own_loss import NormalLogScore

from stakes import GaussianBelief, expected_reduction, expected_regret, find_form, register
from stakes.acquisition import Form


def log_score_reduction(loss, belief):
    """EUR_c = -log(1 - rho) / 2, whatever the mean and variance of z: nothing to prepare, no scale taken out."""
    return lambda block: -np.log1p(-block.rho) / 2.0, np.zeros(belief.n_contexts)


register(NormalLogScore, None, GaussianBelief, Form("closed form: -log(1 - rho) / 2", log_score_reduction))

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    rho = rng.uniform(0.0, 0.999, size=(20, 3))
    variance = np.asarray([0.5, 1.0, 40.0])
    belief = GaussianBelief([0.0, 3.0, -1e6], variance, np.ones(20), np.sqrt(rho * variance))
    loss = NormalLogScore()
    print(find_form(loss, belief).name)
    np.testing.assert_allclose(expected_reduction(loss, belief), expected_regret(loss, belief), rtol=1e-7)
    print("agrees with expected_regret")
