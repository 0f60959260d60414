"""A loss of one's own, every method written out: answer with a normal distribution, pay its log score."""

import numpy as np

from stakes import GaussianBelief, expected_regret, uncertainty
from stakes.losses import REAL
from stakes.testing import check_loss


class NormalLogScore:
    """l(z, (m, v)) = (log(2 pi v) + (z - m)^2 / v) / 2: minus the log density of the answer N(m, v) at z."""

    domain = REAL  # where z may lie
    breakpoints = ()  # the statistics neither jump nor kink
    finite_actions = False  # the act moves continuously with the belief

    def log_magnitudes(self, z):
        """[..., 1]: log w(z) = 0; there is no weight."""
        return np.zeros_like(z)[..., None]

    def statistics(self, z, reference=None):
        """[..., 3]: S(z) = (1, t, t^2) with t = z - reference."""
        t = z if reference is None else z - reference
        return np.stack([np.ones_like(t), t, t**2], axis=-1)

    def action(self, moments):
        """[..., 2]: the mean, from the reference, and the variance; moments may have any total mass, also 0."""
        mass, first, second = np.moveaxis(moments, -1, 0)
        mass = np.where(mass > 0, mass, 1.0)
        return np.stack([first / mass, second / mass - (first / mass) ** 2], axis=-1)

    def regret(self, moments, action, reference=None):
        """[...]: E[1] KL(N(best mean, best variance) || N(action)), in which no large terms cancel."""
        possible = moments[..., :1] > 0
        mean, variance = np.moveaxis(np.where(possible, self.action(moments), action), -1, 0)
        ratio = variance / action[..., 1]
        gap = ratio - 1.0 - np.log(ratio) + (mean - action[..., 0]) ** 2 / action[..., 1]
        return moments[..., 0] * gap / 2.0

    def pointwise(self, z, action, reference=None):
        """[...]: l(z, a), the act measured from the reference."""
        return self(z, self.prediction(action, reference))

    def prediction(self, action, reference=None):
        """[..., 2]: mean and variance in target units."""
        return action if reference is None else np.stack([action[..., 0] + reference, action[..., 1]], axis=-1)

    def __call__(self, z, prediction):
        """[...]: the loss of answering N(mean, variance) when the target is z."""
        mean, variance = np.moveaxis(np.asarray(prediction), -1, 0)
        return (np.log(2.0 * np.pi * variance) + (z - mean) ** 2 / variance) / 2.0


if __name__ == "__main__":
    loss = NormalLogScore()
    check_loss(loss, [-1.5, -0.2, 0.4, 1.1, 2.5])
    belief = GaussianBelief(mean=[0.0], variance=[4.0], candidate_variance=[1.0, 1.0], covariance=[[1.0], [1.6]])
    print("h of N(0, 4):", uncertainty(loss, belief))  # its Shannon entropy
    print("EUR:", expected_regret(loss, belief)[:, 0])  # EPIG, -log(1 - rho) / 2
