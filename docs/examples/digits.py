"""Digits whose mistakes cost: a small convolutional ensemble, choosing labels by the loss, by EPIG and at random.

Run: python digits.py [number of seeds, 3 unless told].
"""

import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from stakes import CostMatrix, LogLoss, rank
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.models import belief_of
from stakes.models.networks import StackedNetworks

MEMBERS, STEPS, START, ROUNDS, EACH = 8, 50, 20, 5, 8

# Parcels with an 8 or a 9 go to another hall. To send one to the wrong hall costs 1, to misread it otherwise 0.05.
images, labels = load_digits(return_X_y=True)
images, labels = torch.tensor(images / 16, dtype=torch.float32).reshape(-1, 1, 8, 8), torch.tensor(labels)
other_hall = np.isin(np.arange(10), [8, 9])
costs = np.where(other_hall[:, None] != other_hall, 1.0, 0.05) * (1 - np.eye(10))
ours, epig = CostMatrix(costs), LogLoss()


def network():
    """Two convolutions and a linear layer: 1,898 weights."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10)
    )


def train(rows, seed):
    """An ensemble from as many starts, all members trained at once by torch.vmap."""
    torch.manual_seed(seed)
    networks = [network() for _ in range(MEMBERS)]
    parameters, buffers = torch.func.stack_module_state(networks)

    def loss(parameters, x, y):
        return nn.functional.cross_entropy(torch.func.functional_call(networks[0], parameters, (x,)), y)

    losses = torch.vmap(loss, in_dims=(0, None, None))
    optimizer = torch.optim.Adam(parameters.values(), lr=0.01, weight_decay=1e-3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        losses(parameters, images[rows], labels[rows]).sum().backward()
        optimizer.step()
    return StackedNetworks(networks[0], parameters, buffers)


def campaign(seed, loss):
    """[ROUNDS + 1]: the realised cost of a test image before and after each batch of labels; None: at random."""
    test, contexts, rest = np.split(np.random.default_rng(seed).permutation(len(labels)), [600, 750])
    rng, known, realised = np.random.default_rng([seed, 1]), list(rest[:START]), []
    for turn in range(ROUNDS + 1):
        model = train(known, 100 * seed + turn)
        belief = belief_of(model, images[known], images[test])
        realised.append(float(realised_loss(ours, bayes_prediction(ours, belief), labels[test]).mean))
        if turn == ROUNDS:
            break
        pool = rng.choice(np.setdiff1d(rest, known), 400, replace=False)
        if loss is None:
            known += list(pool[:EACH])
        else:
            ranking = rank(model, loss, images[pool], contexts=images[contexts], n=EACH, batch=False)
            known += list(pool[list(ranking.indices)])
    return realised


torch.set_num_threads(1)
seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
strategies = {"random": None, "EPIG": epig, "the loss": ours}
results = {name: np.array([campaign(seed, loss) for seed in range(seeds)]) for name, loss in strategies.items()}

counts = START + EACH * np.arange(ROUNDS + 1)
print(f"Cost of 1000 test images, mean over {seeds} seeds (and its standard error)")
print("labels", *(f"{name:>15}" for name in strategies))
for turn, count in enumerate(counts):
    cells = [1000 * each[:, turn] for each in results.values()]
    print(f"{count:6}", *(f"{cell.mean():8.1f} ({cell.std(ddof=1) / len(cell) ** 0.5:4.1f})" for cell in cells))
for name in ("random", "EPIG"):
    saved = 1000 * (results[name] - results["the loss"])[:, 1:].mean(axis=1)  # of each seed, all rounds
    error = saved.std(ddof=1) / seeds**0.5
    print(f"The loss saves {saved.mean():.1f} (± {2 * error:.1f}) against {name}, mean over rounds.")

# ---- the picture
try:
    import matplotlib.pyplot as plt
except ImportError:
    raise SystemExit("For the picture, install matplotlib: pip install 'stakes[plot]'") from None

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, each), colour in zip(results.items(), ("0.5", "#30638e", "#d1495b"), strict=True):
    mean, error = 1000 * each.mean(axis=0), 1000 * each.std(axis=0, ddof=1) / seeds**0.5
    axis.fill_between(counts, mean - error, mean + error, color=colour, alpha=0.2, lw=0)
    axis.plot(counts, mean, "o-", color=colour, label=name)
axis.set(xlabel="labels", ylabel="cost of 1000 test images", ylim=(0, None))
axis.legend(frameon=False)
figure.savefig("digits.png", dpi=110)
print("picture: digits.png")
