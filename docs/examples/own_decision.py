"""A decision of one's own, every method written out: act or wait, when acting is right above a threshold."""

import numpy as np

from stakes import GaussianBelief, ThresholdDecision, score
from stakes.losses import REAL
from stakes.testing import check_loss


class ActAbove:
    """Waiting (0) costs 5 where z > 2, acting (1) costs 1 elsewhere."""

    domain = REAL
    breakpoints = (2.0,)  # the costs jump there
    finite_actions = True  # the act is one of two, and jumps from one to the other as the belief moves

    def costs(self, z):
        """[..., 2]: what each action costs."""
        return np.stack([5.0 * (z > 2.0), 1.0 * (z <= 2.0)], axis=-1)

    def log_magnitudes(self, z):
        """[..., 1]: there is no weight."""
        return np.zeros_like(z)[..., None]

    def statistics(self, z, reference=None):
        """[..., 2]: the costs beyond those of the cheapest action for z, so at least 0."""
        costs = self.costs(z)
        return costs - costs.min(axis=-1, keepdims=True)

    def action(self, moments):
        """[..., 1]: the position of the cheapest action."""
        return np.argmin(moments, axis=-1, keepdims=True)

    def regret(self, moments, action, reference=None):
        """[...]: the expected cost of an action less that of the cheapest."""
        return np.where(action[..., 0] == 0, moments[..., 0], moments[..., 1]) - moments.min(axis=-1)

    def pointwise(self, z, action, reference=None):
        """[...]: the cost of an action for z."""
        return self(z, action[..., 0])

    def prediction(self, action, reference=None):
        """[...]: which action to take."""
        return action[..., 0]

    def __call__(self, z, prediction):
        """[...]: the cost of taking an action when the target is z."""
        return np.where(prediction == 0, 5.0 * (z > 2.0), 1.0 * (z <= 2.0))


if __name__ == "__main__":
    loss = ActAbove()
    check_loss(loss, [-1.0, 1.0, 1.9, 2.1, 4.0])
    rho = np.linspace(0.01, 0.99, 25)[:, None]
    belief = GaussianBelief([0.0, 1.1, 2.5], [1.0, 0.5, 4.0], np.ones(25), np.sqrt(rho * [1.0, 0.5, 4.0]))
    np.testing.assert_allclose(score(loss, belief), score(ThresholdDecision(2.0, 5.0, 1.0), belief), rtol=1e-6)
    print("agrees with ThresholdDecision:", score(loss, belief)[::8].round(6))
