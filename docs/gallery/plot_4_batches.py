"""
Eight labels at once: not the eight best single ones
====================================================

The eight rows that are each worth most lie side by side and tell the same thing. ``select`` and ``rank`` choose rows
for what each adds to those before it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from stakes import SquaredError, rank
from stakes.acquisition import score
from stakes.models import belief_of

random = np.random.default_rng(0)
pool = random.uniform(-3, 3, size=(400, 2))
X, y = pool[:12], np.sin(pool[:12, 0]) + 0.3 * pool[:12, 1]
model = GaussianProcessRegressor(RBF(1.0, "fixed") + WhiteKernel(0.05, "fixed"), optimizer=None).fit(X, y)

# %%
# Together: what the loss is expected to fall by, as the batch grows.
rest = pool[12:]
worth = score(SquaredError(), belief_of(model, rest, rest))
best_alone = np.argsort(-worth)[:8]
together = np.asarray(rank(model, SquaredError(), rest, n=8).indices)

figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 4.3), layout="constrained")
for axis, chosen, name in zip(axes, (best_alone, together), ("best one by one", "best together"), strict=True):
    shade = axis.scatter(*rest.T, c=worth, s=14, cmap="Blues")
    axis.plot(*X.T, "kx", label="labelled")
    axis.scatter(*rest[chosen].T, s=90, facecolor="none", edgecolor="#d1495b", lw=2, label="label next")
    axis.set(title=name, aspect="equal")
axes[0].legend(fontsize=8, loc="upper left")
figure.colorbar(shade, ax=axes, label="worth of a single label")
plt.show()
