"""A model fitted anew, with chance in the caller's hands."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone


def refitted(model: Any, features: Any, labels: Any, rng: np.random.Generator) -> Any:
    """A clone of `model` fitted to `features` [n, p] and `labels` [n].

    Every parameter `random_state`, at any depth that `get_params` reaches, is drawn from `rng` in the order of names:
    models that share a generator's state share their chance.
    """
    fresh = clone(model)
    names = sorted(name for name in fresh.get_params(deep=True) if name.split("__")[-1] == "random_state")
    if names:
        fresh.set_params(**{name: int(rng.integers(2**31 - 1)) for name in names})
    fresh.fit(features, labels)
    return fresh
