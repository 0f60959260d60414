"""
Four losses, one model, four different labels
=============================================

One Gaussian process has seen six labels. Where is the next label worth most? That depends on what a mistake costs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import ExponentialWeight, LogScore, SquaredError, ThresholdDecision
from stakes.acquisition import score
from stakes.models import belief_of

x = np.array([-4.0, -3.0, -1.0, 1.0, 2.2, 5.0])
y = np.array([-0.7, -0.9, 0.1, 0.6, 1.5, 0.4])
kernel = RBF(1.2, "fixed") + WhiteKernel(0.04, "fixed")
model = GaussianProcessRegressor(kernel, optimizer=None).fit(x[:, None], y)

# %%
# The rows that could be labelled, and the rows at which we will have to answer, are a grid here.
grid = np.linspace(-8, 8, 161)
belief = belief_of(model, grid[:, None], grid[:, None])

losses = {
    "all errors cost the same": SquaredError(),
    "errors on high values cost more": SquaredError(ExponentialWeight(3.0)),
    "a whole density is asked for": LogScore(),
    "act above 1; a miss costs 5": ThresholdDecision(1.0, miss=5.0),
}

# %%
# ``score`` says what the label of each row is worth, in units of the loss. The dashed line is the row to buy.
figure, axes = plt.subplots(5, 1, sharex=True, figsize=(7, 8), layout="constrained")
mean, sd = belief.mean, np.sqrt(belief.variance)
axes[0].fill_between(grid, mean - 2 * sd, mean + 2 * sd, color="0.88", label="prediction, 2 sd")
axes[0].plot(grid, mean, color="0.35")
axes[0].plot(x, y, "ko", ms=5, label="labels so far")
axes[0].legend(frameon=False, ncols=2, loc="lower center")
for axis, (name, loss) in zip(axes[1:], losses.items(), strict=True):
    worth = score(loss, belief)
    axis.fill_between(grid, worth / worth.max(), color="#30638e", alpha=0.4, lw=0)
    axis.axvline(grid[np.argmax(worth)], color="#d1495b", ls="--", lw=1.8)
    axis.set(yticks=[], ylim=(0, 1.1), xlim=(-8, 8))
    axis.set_title(name, fontsize=10, loc="left")
axes[-1].set_xlabel("x")
figure.supylabel("worth of a label at x")
plt.show()
