"""
Importance as a few points on paper
===================================

A colleague draws how much errors matter at each value of the target: little below 1, most above 3. That is an
``InterpolatedWeight``. ``effective_context_weights`` shows which rows the loss then looks at.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import InterpolatedWeight, SquaredError, effective_context_weights
from stakes.models import belief_of

weight = InterpolatedWeight(values=[0.0, 1.0, 3.0, 5.0], weights=[0.05, 0.1, 1.0, 1.0])
x = np.array([-4.0, -2.0, 0.0, 2.0])
y = np.array([0.2, 1.2, 3.1, 1.0])
model = GaussianProcessRegressor(RBF(1.3, "fixed") + WhiteKernel(0.05, "fixed"), optimizer=None).fit(x[:, None], y)
grid = np.linspace(-6, 6, 121)
belief = belief_of(model, grid[:, None], grid[:, None])

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", width_ratios=[1, 2])
targets = np.linspace(-0.5, 5.5, 200)
left.plot(targets, weight(targets), color="#d1495b", lw=2)
left.plot(weight.values, weight.weights, "o", color="#d1495b")
left.set(xlabel="target", ylabel="how much an error matters")
mean, sd = belief.mean, np.sqrt(belief.variance)
right.fill_between(grid, mean - 2 * sd, mean + 2 * sd, color="0.9")
right.plot(grid, mean, color="0.35")
right.plot(x, y, "ko", ms=5)
right.set(xlabel="x", ylabel="prediction, 2 sd", xlim=(-6, 6))
share = right.twinx()
share.fill_between(grid, effective_context_weights(SquaredError(weight), belief), color="#30638e", alpha=0.4, lw=0)
share.set(yticks=[], ylim=(0, None))
share.set_ylabel("where the loss looks", color="#30638e")
plt.show()
