"""The most probable hyperparameters of a Gaussian process, under priors that a few labels cannot run away from.

With ten labels the likelihood alone often says that there is nothing but noise, and then that no label is worth
anything. Sizes: t hyperparameters, as logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from stakes.models.tables import Host


@dataclass(frozen=True)
class MostProbable:
    """An optimiser for scikit-learn's Gaussian processes: the likelihood times a log-normal prior of each."""

    centres: tuple[float, ...]
    """[t]: logarithms of the medians"""
    spreads: tuple[float, ...]
    """[t]: standard deviations of the logarithms"""

    def __call__(
        self, objective: Callable[[Host], tuple[float, Host]], initial_theta: Host, bounds: Host
    ) -> tuple[Host, float]:
        """The logarithms [t] at which minus log likelihood plus half of each squared distance is least, and that."""
        centres, spreads = np.asarray(self.centres), np.asarray(self.spreads)

        def penalised(theta: Host) -> tuple[float, Host]:
            value, gradient = objective(theta)
            distance = (theta - centres) / spreads
            return value + 0.5 * float(distance @ distance), gradient + distance / spreads

        found: Any = minimize(penalised, initial_theta, jac=True, bounds=bounds, method="L-BFGS-B")
        return np.asarray(found.x), float(found.fun)
