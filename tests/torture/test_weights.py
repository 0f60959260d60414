"""The reference of rough weights and costs against mpmath, on random cases whose features are 1/50 wide or more.

Under pytest one case of each loss; `python -m tests.torture.test_weights` takes five of each, some minutes. Both
integrals are mpmath's, but for the cdfs of CRPS, which are summed cell by cell.
"""

import sys
from functools import partial
from itertools import product

import numpy as np
import pytest

pytest.importorskip("mpmath", reason="mpmath is not installed, and the checks are its")
from mpmath import mp, mpf

from tests.torture import weights

SHARES = (0.02, 0.5, 0.9, 0.995)


def cuts(places, low, high, rest=0.0):
    """Where a rough function of a variable, smoothed by `rest`, is split."""
    found = {low, high, *(low + (high - low) * k / 8 for k in range(1, 8))}
    for place, width in places:
        scale = max(width, rest)
        found |= {place + scale * step for step in (0, *(s * k for s in (-1, 1) for k in (1, 2, 4, 8, 16, 32)))}
    return sorted(point for point in found if low <= point <= high)


def integral(function, points):
    """By mpmath's Gauss-Legendre rule on each interval, of a degree that leaves 1e-9 or so."""
    return mp.quad(function, points, method="gauss-legendre", maxdegree=2)


class Belief:
    """A standard normal u, the label's share of it, and integrals given root eta = centre."""

    def __init__(self, places, share):
        self.places, self.rest, self.root = places, float(np.sqrt(1.0 - share)), float(np.sqrt(share))

    def given(self, centre, function):
        low, high = centre - 9.0 * self.rest, centre + 9.0 * self.rest
        return integral(
            lambda u: mp.npdf(u, centre, self.rest) * mpf(float(function(float(u)))), cuts(self.places, low, high)
        )

    def today(self, function):
        return integral(lambda u: mp.npdf(u) * mpf(float(function(float(u)))), cuts(self.places, -9.0, 9.0))

    def over_labels(self, worth, more=()):
        low, high = -8.0 * self.root, 8.0 * self.root
        points = sorted({*cuts(self.places, low, high, self.rest), *(x for x in more if low < x < high)})
        return integral(lambda centre: mp.npdf(centre / self.root) / self.root * worth(float(centre)), points)


def squared(belief, weight, target):
    answer = belief.today(lambda u: weight(u) * target(u)) / belief.today(weight)

    def worth(centre):
        mass = belief.given(centre, weight)
        return (belief.given(centre, lambda u: weight(u) * (target(u) - float(answer)))) ** 2 / mass

    return belief.over_labels(worth)


def exponential(belief, weight, target):
    """Linex(1): W_y (r - log r - 1) with r what exp(-z) is expected to be, over today's."""
    t = lambda u: float(np.exp(-target(u)))  # noqa: E731
    answer = belief.today(lambda u: weight(u) * t(u)) / belief.today(weight)

    def worth(centre):
        mass = belief.given(centre, weight)
        r = belief.given(centre, lambda u: weight(u) * t(u)) / mass / answer
        return mass * (r - mp.log(r) - 1)

    return belief.over_labels(worth)


def crps(belief, weight, target, slope):
    """W_y times the integral of (F_y - F)^2 dz, on cells of u between which F is summed up."""
    del target
    edges = np.asarray(cuts(belief.places, -9.0, 9.0, 0.0))
    edges = np.unique(np.concatenate([edges, np.arange(-9.0, 9.0, 0.25)]))
    x, w = np.polynomial.legendre.leggauss(20)

    def shares(density):
        """[P, 20], and the total: masses below nodes of cells, by a rule of their own from each cell's left edge."""
        half = np.diff(edges)[:, None] / 2.0
        u = edges[:-1, None] + half * (1.0 + x)
        inner = (u - edges[:-1, None])[..., None] / 2.0
        v = edges[:-1, None, None] + inner * (1.0 + x)
        parts = (inner * w * weight(v) * density(v)).sum(-1)
        cells = (half * w * weight(u) * density(u)).sum(-1)
        return u, half * w, (np.cumsum(cells) - cells)[:, None] + parts, cells.sum()

    u, lengths, before, total = shares(lambda v: np.exp(-0.5 * v * v) / np.sqrt(2.0 * np.pi))

    def worth(centre):
        scale = belief.rest
        narrow = lambda v: np.exp(-0.5 * ((v - centre) / scale) ** 2) / scale / np.sqrt(2.0 * np.pi)  # noqa: E731
        _, _, after, mass = shares(narrow)
        return mpf(float(mass * ((after / mass - before / total) ** 2 * lengths * slope(u)).sum()))

    return belief.over_labels(worth)


def pinball(belief, weight, target, tau):
    """E[w (l(z, a) - l(z, a_y)) | y], quantiles by mpmath's root finder."""

    def quantile(mass_below, low, high):
        total = mass_below(high)
        excess = lambda x: mass_below(float(x)) - tau * total  # noqa: E731
        return float(mp.findroot(excess, (low, high), solver="anderson", tol=1e-18, maxsteps=60, verify=False))

    def below(point, centre, rest):
        low = centre - 9.0 * rest
        points = [*(x for x in cuts(belief.places, low, centre + 9.0 * rest) if x < point), point]
        return integral(lambda u: mp.npdf(u, centre, rest) * mpf(float(weight(float(u)))), points)

    answer = quantile(lambda x: below(x, 0.0, 1.0), -9.0, 9.0)

    def worth(centre):
        rest = belief.rest
        own = quantile(lambda x: below(x, centre, rest), centre - 9.0 * rest, centre + 9.0 * rest)

        def gap(u):
            first, second = (target(u) - target(end) for end in (answer, own))
            return max(tau * first, (tau - 1.0) * first) - max(tau * second, (tau - 1.0) * second)

        points = sorted({*cuts(belief.places, centre - 9.0 * rest, centre + 9.0 * rest), own, answer})
        points = [x for x in points if abs(x - centre) <= 9.0 * rest]
        return integral(lambda u: mp.npdf(u, centre, rest) * mpf(float(weight(float(u)) * gap(float(u)))), points)

    return belief.over_labels(worth, [answer])


def decision(belief, costs):
    """E[max over actions of what they save], split where the cheapest changes."""

    def saved(centre):
        return [belief.given(centre, cost) for cost in costs]

    first = int(np.argmin([belief.today(cost) for cost in costs]))
    grid = np.linspace(-8.0 * belief.root, 8.0 * belief.root, 65)
    best = [int(np.argmin(saved(float(x)))) for x in grid]
    switches = []
    for low, high, before, after in zip(grid[:-1], grid[1:], best[:-1], best[1:], strict=True):
        for _ in range(40 if before != after else 0):
            middle = (low + high) / 2.0
            row = saved(float(middle))
            low, high = (middle, high) if row[before] < row[after] else (low, middle)
        switches += [float(low)] if before != after else []

    def worth(centre):
        row = saved(centre)
        return row[first] - min(row)

    return belief.over_labels(worth, switches)


def gentle(rng):
    """One of the family whose features are no narrower than 1/50: mpmath would take minutes for others."""
    while True:
        found = weights.random_rough(rng)
        if all(width == 0 or width > 0.02 for _, width in found.places) and len(found.places) <= 3:
            return found


def both(kind, seed):
    """What the reference and mpmath make of a random case."""
    rng = np.random.default_rng(seed)
    share, warped, sd = SHARES[seed % 4], bool(seed % 2), 0.4
    target = (lambda u: np.exp(sd * u)) if warped else (lambda u: sd * u)
    slope = (lambda u: sd * np.exp(sd * u)) if warped else (lambda u: sd + 0.0 * u)
    if kind == "decision":
        costs = [gentle(rng), gentle(rng)]
        places = [place for cost in costs for place in cost.places]
        return weights.finite_worth(costs, share)[0], float(decision(Belief(places, share), costs))
    weight, tau = gentle(rng), 0.3
    belief = Belief(weight.places, share)
    made, check, level = {
        "squared": (weights.moment_regret(target, weights.square), squared, None),
        "exponential": (
            weights.moment_regret(lambda u: np.exp(-target(u)), weights.linex_divergence), exponential, None
        ),
        "crps": (weights.crps_regret(slope), partial(crps, slope=slope), None),
        "pinball": (weights.pinball_regret(tau, target), partial(pinball, tau=tau), tau),
    }[kind]  # fmt: skip
    found = weights.gaussian_worth(weight, made, share, kind == "crps", level)
    return found, float(check(belief, weight, target))


KINDS = ("squared", "exponential", "crps", "pinball", "decision")


@pytest.mark.parametrize("kind", KINDS[:3])
def test_the_reference_against_mpmath(kind):
    found, wanted = both(kind, 1)
    assert found == pytest.approx(wanted, rel=2e-7)


def test_the_reference_of_decisions_reaches_far_out():
    """z / 16 against 1 turns 16 standard deviations out: root (pdf(a) - a Q(a)) / 16 with a = 16 / root."""
    line = weights.Rough(lambda u: u / 16.0 + 100.0, ())
    level = weights.Rough(lambda u: 101.0 + 0.0 * u, ())
    with mp.workdps(80):
        root = mp.sqrt(mpf(0.9))
        a = 16 / root
        wanted = float(root / 16 * (mp.npdf(a) - a * mp.ncdf(-a)))
    assert weights.finite_worth([line, level], 0.9)[0] == pytest.approx(wanted, rel=1e-6)


if __name__ == "__main__":
    for kind, seed in product(KINDS, range(1, 6)):
        found, wanted = both(kind, seed)
        gap = abs(found - wanted) / max(wanted, 1e-12)
        sys.stdout.write(f"{kind} {seed} {found:.12g} {wanted:.12g} {gap:.1e}\n")
        sys.stdout.flush()
