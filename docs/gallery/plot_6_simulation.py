"""
Would it have helped? A replay
==============================

``simulate`` hides the labels of a table, buys them back one at a time by your loss, by plain uncertainty and at random,
and notes the loss on test rows after every label. Bands are standard errors over runs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import ExponentialWeight, SquaredError, simulate

random = np.random.default_rng(0)
X = random.uniform(-3, 3, size=(200, 2))
y = 2.0 * np.exp(-np.sum((X - 1.2) ** 2, axis=1)) + 0.4 * np.sin(2.0 * X[:, 0]) + 0.05 * random.normal(size=200)
model = GaussianProcessRegressor(RBF(1.0, "fixed") + WhiteKernel(0.01, "fixed"), optimizer=None)
loss = SquaredError(ExponentialWeight(1.5))  # to be right at the peak matters most
found = simulate(model, loss, X, y, n=20, runs=15, n_initial=6)
print(found.verdict())

# %%
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, colour in (("random", "0.5"), ("plain", "#edae49"), ("loss", "#30638e")):
    curves = found.curves(name)  # [runs, labels + 1]
    mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    labels = np.arange(curves.shape[1])
    axis.fill_between(labels, mean - error, mean + error, color=colour, alpha=0.25, lw=0)
    axis.plot(
        labels, mean, color=colour, lw=2, label={"plain": "plain uncertainty", "loss": "your loss"}.get(name, name)
    )
axis.set(xlabel="labels bought", ylabel="weighted squared error on test rows", xlim=(0, 20), yscale="log")
axis.legend(frameon=False)
plt.show()
