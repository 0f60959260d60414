"""A dozen losses on one Gaussian process: what a label is worth by how much it tells, and by where it is bought."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from stakes import (
    CRPS,
    AbsoluteError,
    ExponentialWeight,
    FiniteActions,
    GaussianBelief,
    ItakuraSaito,
    Linex,
    LogScore,
    LogWarp,
    Pinball,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    Weight,
    expected_reduction,
    find_form,
    score,
)

# One model: six labels of a function of x, with noise of variance 0.04.
x, y, noise = np.array([-4.0, -3.0, -1.0, 1.0, 2.2, 5.0]), np.array([-0.7, -0.9, 0.1, 0.6, 1.5, 0.4]), 0.04
pool, contexts = np.linspace(-8, 8, 129), np.linspace(-8, 8, 49)
model = GaussianProcessRegressor(RBF(1.2), alpha=noise, optimizer=None).fit(x[:, None], y)
mean, covariance = model.predict(np.concatenate([pool, contexts])[:, None], return_cov=True)
n = len(pool)
belief = GaussianBelief(
    mean=mean[n:],
    variance=np.diag(covariance)[n:] + noise,
    candidate_variance=np.diag(covariance)[:n] + noise,
    covariance=covariance[:n, n:],
)

orders = np.array([-1.0, 0.0, 1.0, 2.0])  # how much to stock: a unit too few costs 4, a unit too many 1


def stock(z):
    return np.maximum(4.0 * (z[..., None] - orders), orders - z[..., None])


def logistic(z):
    return 1.0 / (1.0 + np.exp(-6.0 * (z - 1.0)))


LOSSES = {
    "squared error": SquaredError(),
    "squared error, weight exp(2 z)": SquaredError(ExponentialWeight(2.0)),
    "Linex(1)": Linex(1.0),
    "absolute error": AbsoluteError(),
    "pinball(0.9)": Pinball(0.9),
    "CRPS": CRPS(),
    "log score": LogScore(),
    "log score, weight logistic at 1": LogScore(Weight(logistic)),
    "act above 1, miss = 5": ThresholdDecision(1.0, miss=5.0),
    "stock -1, 0, 1 or 2": FiniteActions(stock, breakpoints=orders),
    "squared error of exp(f)": SquaredError(),
    "Itakura-Saito of exp(f)": ItakuraSaito(),
}


def belief_for(name, latent):
    """The same model, of the target or of its logarithm."""
    return WarpedGaussianBelief(latent, LogWarp()) if "exp(f)" in name else latent


scores = {name: score(loss, belief_for(name, belief)) for name, loss in LOSSES.items()}
for name, loss in LOSSES.items():
    worth = scores[name]
    best, form = np.argmax(worth), find_form(loss, belief_for(name, belief)).name
    print(f"{name:32} buy x = {pool[best]:5.2f}, worth {worth[best]:.4f}   {form}")

# The best label of each part of the axis: left of all labels, among the first five, in the widest gap, right of all.
PARTS = {"left": (-8.0, -4.0), "among": (-4.0, 2.2), "gap": (2.2, 5.0), "right": (5.0, 8.0)}
print(f"\n{'of the best label, the best one':31} " + " ".join(f"{part:>5}" for part in PARTS))
for name, worth in scores.items():
    shares = (worth[(pool >= low) & (pool <= high)].max() / worth.max() for low, high in PARTS.values())
    print(f"{name:32}" + " ".join(f"{share:5.0%}" for share in shares))

# ---- the pictures
try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("For the pictures, install matplotlib: pip install 'stakes[plot]'") from None

# What a label is worth that removes the fraction rho of the variance of one target N(m, 1).
rho = np.linspace(0.0, 0.99, 200)
means = {"m = -1": -1.0, "m = 0.3": 0.3, "m = 1": 1.0}
one = GaussianBelief(list(means.values()), np.ones(3), np.ones(len(rho)), np.sqrt(rho)[:, None] * np.ones(3))
figure, axes = plt.subplots(3, 4, sharex=True, sharey=True, figsize=(11, 7.5), layout="constrained")
for axis, (name, loss) in zip(axes.flat, LOSSES.items(), strict=True):
    curves = expected_reduction(loss, belief_for(name, one))
    for m, (label, colour) in enumerate(zip(means, ("#30638e", "#edae49", "#d1495b"), strict=True)):
        axis.plot(rho, curves[:, m] / curves[-1, m], color=colour, label=label, linestyle=("-", "--", ":")[m], lw=2)
    axis.set_title(name, fontsize=10)
axes[0, 0].legend(frameon=False)
figure.supxlabel("rho, the fraction of the variance of the target that the label removes")
figure.supylabel("expected reduction EUR_c(rho), of that at rho = 0.99")
figure.savefig("gallery_curves.png", dpi=110)

figure = plt.figure(figsize=(11, 8.5), layout="constrained")
grid, band = figure.add_gridspec(4, 4), 2 * np.sqrt(belief.variance)
above = figure.add_subplot(grid[0, :])
above.fill_between(contexts, belief.mean - band, belief.mean + band, color="0.88", label="prediction, 2 sd")
above.plot(contexts, belief.mean, color="0.3")
above.plot(x, y, "ko", label="labels so far")
above.axhline(1.0, color="0.5", lw=0.8, ls=":")
above.legend(loc="lower right", frameon=False, ncols=2)
above.set_xlim(-8, 8)
for place, (name, worth) in enumerate(scores.items()):
    axis = figure.add_subplot(grid[1 + place // 4, place % 4])
    axis.fill_between(pool, worth / worth.max(), color="#30638e", alpha=0.35, lw=0)
    axis.plot(x, 0 * x, "k.", ms=4, clip_on=False)
    axis.axvline(pool[np.argmax(worth)], color="#d1495b", lw=1.5)
    axis.set_title(name, fontsize=10)
    axis.set(xlim=(-8, 8), ylim=(0, 1.05), yticks=[], xticks=[-5, 0, 5] if place > 7 else [])
figure.supxlabel("x (dots: labels so far; line: buy next)")
figure.supylabel("worth of a label at x, best = 1")
figure.savefig("gallery_scores.png", dpi=110)
print("pictures: gallery_curves.png, gallery_scores.png")
