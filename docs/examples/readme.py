import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from stakes import ExponentialWeight, GaussianBelief, SquaredError, effective_context_weights, find_form, score

# Four experiments so far: a setting x, a measured yield y with noise of variance 0.04.
x, y, noise = np.array([-4.0, -1.0, 1.0, 2.2]), np.array([-2.1, -1.8, 1.7, 6.1]), 0.04
pool = np.linspace(-8, 8, 65)  # settings we could try next
contexts = np.linspace(-8, 8, 49)  # settings at which we will have to predict the yield

# Any model that gives means and covariances will do.
model = GaussianProcessRegressor(RBF(1.0), alpha=noise, optimizer=None).fit(x[:, None], y)
mean, covariance = model.predict(np.concatenate([pool, contexts])[:, None], return_cov=True)
belief = GaussianBelief(
    mean=mean[65:],
    variance=np.diag(covariance)[65:] + noise,
    candidate_variance=np.diag(covariance)[:65] + noise,
    covariance=covariance[:65, 65:],
)

# What being wrong costs: the same everywhere, or e-fold more for every unit of yield.
plain, high_yields = SquaredError(), SquaredError(weight=ExponentialWeight(1.0))
for name, loss in [("plain", plain), ("high yields", high_yields)]:
    worth = score(loss, belief)  # what the label of each candidate is worth for one prediction, in units of the loss
    best, usual = np.argmax(worth), np.argmax(score(plain, belief))
    share = effective_context_weights(loss, belief)[belief.mean > 3].sum()  # where the loss looks
    print(f"{name}: try x = {pool[best]:.2f}, worth {worth[best]:.3f} (the plain choice: {worth[usual]:.3f})")
    print(f"    {share:.0%} of its weight is on yields above 3; computed by {find_form(loss, belief).name}")

# ---- the picture
try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("For the picture, install matplotlib: pip install 'stakes[plot]'") from None

figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
band = 2 * np.sqrt(belief.variance)
above.fill_between(contexts, belief.mean - band, belief.mean + band, color="0.88", label="prediction, 2 sd")
above.plot(contexts, belief.mean, color="0.3")
above.plot(x, y, "ko", label="labels so far")
above.set_ylabel("yield")
above.legend(loc="upper left", frameon=False)
for name, loss, colour in [("squared error", plain, "#30638e"), ("weight exp(yield)", high_yields, "#d1495b")]:
    worth = score(loss, belief)
    below.plot(pool, worth / worth.max(), color=colour, label=name)
    below.axvline(pool[np.argmax(worth)], color=colour, linestyle=":")
below.set_xlabel("setting x (dotted: try next)")
below.set_ylabel("worth of a label,\nbest = 1")
below.legend(loc=(0.33, 0.72), frameon=False)
figure.savefig("readme.png", dpi=150)
print("picture: readme.png")
