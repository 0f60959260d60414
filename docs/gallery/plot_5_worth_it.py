"""
Is the next label worth its price?
==================================

``outlook`` says what the best 1, 2, ... labels are expected to save. With the price of a label and the number of
decisions to come it says whether to go on. The grey band is how far that may be wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge

from stakes import Pinball, outlook

X, y = load_diabetes(return_X_y=True)
model = BayesianRidge().fit(X[:25], y[:25])
found = outlook(model, Pinball(0.8), X[25:], n=12, costs=8.0, decisions=50, labelled=(X[:25], y[:25]))
print(found.advice)

# %%
# Savings over fifty decisions, beside what the labels cost.
counts = np.array([offer.size for offer in found.offers])
saved = 50 * np.array([offer.worth for offer in found.offers])
error = 50 * np.array([offer.error for offer in found.offers])
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
axis.fill_between(counts, np.maximum(saved - error, 0), saved + error, color="0.88", label="one standard error")
axis.plot(counts, saved, "o-", color="#30638e", label="expected savings of 50 decisions")
axis.plot(counts, 8.0 * counts, "--", color="#d1495b", label="price of the labels")
axis.set(xlabel="labels bought together", ylabel="units of the loss", xlim=(counts[0], counts[-1]), ylim=(0, None))
axis.legend(frameon=False, loc="upper left")
plt.show()
