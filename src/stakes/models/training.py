"""Weights that were trained into a model, which acquisition must know of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stakes.models.ensembles import EnsembleOf

_NAMES = ("class_weight", "scale_pos_weight")  # the second is that of gradient boosting libraries


def trained_weights(model: Any) -> str | None:
    """What to warn of where `model` was fitted with class weights, also inside pipelines and ensembles; else None.

    A loss trained into the model is not the loss in the acquisition: such a model expects labels that will not come,
    and a weight in the loss counts twice. Sample weights that were given to `fit` leave no trace and are not found.
    """
    found = next(_weights(model), None)
    if found is None:
        return None
    return (
        f"the model was fitted with {found}: a loss trained into the model is not the loss in the acquisition. The "
        "model then expects labels that will not come, and a weight in the loss counts twice. Fit it without weights, "
        "and give them to the loss."
    )


def _weights(model: Any) -> Iterator[str]:
    """Each weight that is set, as it would be written, in `model` and all that it is made of."""
    if isinstance(model, EnsembleOf):
        model = model.members
    for each in model if isinstance(model, list | tuple) else [model]:
        parameters = each.get_params(deep=True) if callable(getattr(each, "get_params", None)) else {}
        for name, value in parameters.items():
            if name.rpartition("__")[2] in _NAMES and _weighs(value):
                yield f"{name}={value!r}"
        for found in (each, *parameters.values()):
            if hasattr(found, "best_estimator_"):  # a search may have chosen weights
                yield from _weights(found.best_estimator_)


def _weighs(value: Any) -> bool:
    """Whether classes count differently."""
    if isinstance(value, Mapping):
        return len({*value.values(), 1}) > 1  # a class that is not named counts 1
    return value is not None and not (np.isscalar(value) and value == 1)
