"""
A missed tumour costs twenty times a false alarm
================================================

A forest has seen 40 diagnoses. With equal costs the rows to label next lie along the border of the two classes. With
a cost of 20 for a missed malignant tumour they move to where such a miss is still possible.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from stakes import CostMatrix, ZeroOne, rank

X, y = load_breast_cancer(return_X_y=True)
X = X[:, [0, 1]]  # mean radius and mean texture, so that a picture shows all of it
model = RandomForestClassifier(200, random_state=0).fit(X[:40], y[:40])
pool = X[40:]

losses = {
    "both errors cost 1": ZeroOne(),
    "a missed malignant tumour costs 20": CostMatrix([[0.0, 20.0], [1.0, 0.0]]),
}

# %%
# The background is what the forest believes; ``rank`` chooses eight rows that are worth most together.
wide, high = np.meshgrid(np.linspace(6, 28, 120), np.linspace(9, 40, 120))
malignant = model.predict_proba(np.column_stack([wide.ravel(), high.ravel()]))[:, 0].reshape(wide.shape)
figure, axes = plt.subplots(1, 2, sharey=True, figsize=(9, 4.2), layout="constrained")
for axis, (name, loss) in zip(axes, losses.items(), strict=True):
    chosen = np.asarray(rank(model, loss, pool, n=8).indices)
    shade = axis.contourf(wide, high, malignant, levels=10, cmap="RdBu_r", alpha=0.5, vmin=0, vmax=1)
    axis.scatter(*pool.T, s=6, color="0.45", label="could be labelled")
    axis.scatter(*X[:40].T, s=14, color="black", label="labelled")
    axis.scatter(*pool[chosen].T, s=70, facecolor="none", edgecolor="#d1495b", lw=2, label="label next")
    axis.set(title=name, xlabel="mean radius")
axes[0].set_ylabel("mean texture")
axes[0].legend(fontsize=8, loc="upper right")
figure.colorbar(shade, ax=axes, label="believed probability of malignant")
plt.show()
