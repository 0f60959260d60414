"""The paper's problem with one input, which its text and its published numbers read differently.

Sizes: N points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from experiments.datasets.dataset import DatasetError, Host

_ENDS = (-8.0, 8.0)


@dataclass(frozen=True)
class Bump:
    """height exp(-(x - centre)^2 / (2 width^2))."""

    height: float
    centre: float
    width: float

    def __call__(self, x: Host) -> Host:
        """What it adds at each x."""
        return np.asarray(self.height * np.exp(-0.5 * ((x - self.centre) / self.width) ** 2))


@dataclass(frozen=True)
class Synthetic:
    """y = f(x) + noise on [-8, 8], f(x) = 2 sin(2x) + bumps, under a Gaussian process of unit scale and length.

    Its kernel is exp(-(x - x')^2 / 2) and its mean is 0. Tests are on f itself, without noise.
    """

    reading: str
    """published or text"""
    bumps: tuple[Bump, ...]
    noise_sd: float
    """Of the noise that labels have"""
    gp_noise_variance: float
    """Of the noise that the Gaussian process takes them to have"""
    n_start: int
    """Points that are labelled before the first acquisition"""
    fixed_start: tuple[float, ...] | None
    """Those points, the same in every run; None where they are drawn"""

    def f(self, x: Any) -> Host:
        """The true function at each x, whatever the shape of x."""
        points = np.asarray(x, dtype=float)
        return np.asarray(2.0 * np.sin(2.0 * points) + sum(bump(points) for bump in self.bumps))

    def labels(self, x: Any, random_state: np.random.Generator) -> Host:
        """A noisy label at each x."""
        truth = self.f(x)
        return truth + self.noise_sd * random_state.standard_normal(truth.shape)

    def start(self, random_state: np.random.Generator) -> Host:
        """[n_start]: the points labelled at first, candidates all; drawn without repeats unless they are fixed."""
        if self.fixed_start is not None:
            return np.asarray(self.fixed_start)
        return random_state.choice(self.candidates, self.n_start, replace=False)

    @property
    def candidates(self) -> Host:
        """[65]: the points that can be labelled."""
        return np.linspace(*_ENDS, 65)

    @property
    def contexts(self) -> Host:
        """[49]: the points that predictions are wanted at."""
        return np.linspace(*_ENDS, 49)

    @property
    def tests(self) -> Host:
        """[97]: the points that the loss is measured at."""
        return np.linspace(*_ENDS, 97)


def synthetic(reading: Literal["published", "text"] = "published") -> Synthetic:
    """The problem that the printed numbers come from, or the one that the paper's text describes.

    The text has densities for bumps, one more of them (at 7.5), noise of variance 0.04 in labels and model alike, and
    starts from 3 points without saying which: they are drawn. The published numbers come from bumps given by their
    heights, labels with a noise sd of 0.1 under a model that takes it for 0.2, and a start at -1 and 1.
    """
    if reading not in _READINGS:
        raise DatasetError(f"reading must be one of {', '.join(_READINGS)}; got {reading!r}")
    return _READINGS[reading]


def _density(mass: float, centre: float, sd: float) -> Bump:
    """The normal density times a mass."""
    return Bump(mass / (sd * math.sqrt(2.0 * math.pi)), centre, sd)


_READINGS: Mapping[str, Synthetic] = {
    "published": Synthetic(
        reading="published",
        bumps=(Bump(10.0, 2.5, 0.5), Bump(-8.0, -4.5, 0.5)),
        noise_sd=0.1,
        gp_noise_variance=0.04,
        n_start=2,
        fixed_start=(-1.0, 1.0),
    ),
    "text": Synthetic(
        reading="text",
        bumps=(_density(8.0, 2.5, 0.5), _density(10.0, 7.5, 0.25), _density(-6.0, -4.5, 0.5)),
        noise_sd=0.2,
        gp_noise_variance=0.04,
        n_start=3,
        fixed_start=None,
    ),
}
