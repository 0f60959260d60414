"""
Treat or wait: labels near the threshold
========================================

A patient is treated if the value is above 140. To wait with a patient who is above costs 5, to treat one who is not
costs 1. A label far from the threshold cannot change what is done, so it is worth nothing, however uncertain the value.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import SquaredError, ThresholdDecision
from stakes.acquisition import score
from stakes.models import belief_of

age = np.array([25.0, 31.0, 38.0, 52.0, 58.0, 75.0])
pressure = np.array([112.0, 117.0, 121.0, 136.0, 139.0, 166.0])
kernel = 400.0 * RBF(18.0, "fixed") + WhiteKernel(30.0, "fixed")
model = GaussianProcessRegressor(kernel, optimizer=None).fit(age[:, None], pressure - 135.0)

# %%
# The model is of pressure - 135, so the threshold 140 is 5 there.
ages = np.linspace(20, 90, 141)
belief = belief_of(model, ages[:, None], ages[:, None])
treat = ThresholdDecision(5.0, miss=5.0)
losses = {"squared error": SquaredError(), "treat above 140, a miss costs 5": treat}

figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 6), layout="constrained")
mean, sd = belief.mean + 135.0, np.sqrt(belief.variance)
axes[0].fill_between(ages, mean - 2 * sd, mean + 2 * sd, color="0.88")
axes[0].plot(ages, mean, color="0.35")
axes[0].plot(age, pressure, "ko", ms=5)
axes[0].axhline(140.0, color="#d1495b", lw=1.2)
axes[0].set_ylabel("pressure")
for axis, (name, loss) in zip(axes[1:], losses.items(), strict=True):
    worth = score(loss, belief)
    axis.fill_between(ages, worth / worth.max(), color="#30638e", alpha=0.4, lw=0)
    axis.axvline(ages[np.argmax(worth)], color="#d1495b", ls="--", lw=1.8)
    axis.set(yticks=[], ylim=(0, 1.1))
    axis.set_title(f"worth of a label: {name}", fontsize=10, loc="left")
axes[-1].set(xlabel="age", xlim=(20, 90))
plt.show()
