"""From a fitted model to a belief: which adapter serves which model.

Sizes: N candidates (the pool), M contexts, p features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from stakes.beliefs import Belief
from stakes.exceptions import StakesError


@dataclass(frozen=True)
class Request:
    """What a belief is wanted of, beside the model: the same for every adapter."""

    target: Literal["label", "latent"] = "label"
    """Whether z is the label that will be realised at a context, noise included, or the function behind it."""
    classes: Sequence[Any] | None = None
    """All classes in the order of columns, also those that no label has had yet; None: those of the model."""
    joint: bool = False
    """Whether covariances between candidates are wanted, which joint batches need."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    """For models that are known by draws only."""
    keep: dict[Any, Any] | None = None
    """Where adapters keep what the contexts need from one part of a pool to the next; None: nowhere."""

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once for all requests that keep in the same place."""
        if self.keep is None:
            return make()
        if name not in self.keep:
            self.keep[name] = make()
        return self.keep[name]

    def of(self, model: Any) -> Request:
        """The same request, with a place of its own for a part of a model."""
        if self.keep is None:
            return self
        _, place = self.keep.setdefault(id(model), (model, {}))  # the model too, so that its id stays its own
        return replace(self, keep=place)


class Adapter(Protocol):
    """Turns fitted models of one type into beliefs."""

    def __call__(self, model: Any, pool: Any, contexts: Any, request: Request) -> Belief:
        """The belief of `model` about the labels of `pool` [N, p] and the targets at `contexts` [M, p]."""


_ADAPTERS: dict[type, Adapter] = {}
_LISTED: dict[type, Adapter] = {}
_EXTRAS = {
    "torch": "stakes.models.networks",
    "gpytorch": "stakes.models.gpytorch",
    "botorch": "stakes.models.botorch",
}
"""What registers the adapters for models of a package: imported when the first such model comes."""


def register_model(kind: type, adapter: Adapter) -> None:
    """Let `adapter` serve models of type `kind` and its subclasses, unless a subclass has its own."""
    if kind in _ADAPTERS:
        raise StakesError(f"an adapter for {kind.__name__} is registered already")
    _ADAPTERS[kind] = adapter


def register_list(kind: type, adapter: Adapter) -> None:
    """Let `adapter` serve lists of models whose first is of type `kind`."""
    if kind in _LISTED:
        raise StakesError(f"an adapter for lists of {kind.__name__} is registered already")
    _LISTED[kind] = adapter


def adapts(kind: type) -> Callable[[Adapter], Adapter]:
    """Register the function below as the adapter of `kind`."""

    def decorate(adapter: Adapter) -> Adapter:
        register_model(kind, adapter)
        return adapter

    return decorate


def belief_of(
    model: Any,
    pool: Any,
    contexts: Any,
    *,
    target: Literal["label", "latent"] = "label",
    classes: Sequence[Any] | None = None,
    joint: bool = False,
    rng: np.random.Generator | None = None,
    keep: dict[Any, Any] | None = None,
) -> Belief:
    """What a fitted `model` believes of the labels of `pool` and the targets at `contexts`.

    A model of your own has a method `belief(pool, contexts)`, or an adapter given to `register_model`. For pools that
    come in parts, give the same dict as `keep` each time: what the contexts need is then computed once.
    """
    if target not in ("label", "latent"):
        raise StakesError(f"target must be 'label' or 'latent'; got {target!r}")
    return adapt(model, pool, contexts, Request(target, classes, joint, rng or np.random.default_rng(0), keep))


def has_belief(model: Any) -> bool:
    """Whether `belief_of` knows models of this type."""
    return adapter_of(model) is not None or callable(getattr(model, "belief", None))


def adapt(model: Any, pool: Any, contexts: Any, request: Request) -> Belief:
    """The belief by the adapter of the first type, in the order of inheritance, that has one."""
    if (adapter := adapter_of(model)) is not None:
        return adapter(model, pool, contexts, request.of(model))
    if callable(own := getattr(model, "belief", None)):
        belief = own(pool, contexts)
        if not isinstance(belief, Belief):
            raise TypeError(f"{type(model).__name__}.belief must return a belief; got {type(belief).__name__}")
        return belief
    raise TypeError(
        f"no adapter knows a {type(model).__name__}. Give Bootstrap(model) for an ensemble of any estimator, a list of "
        "fitted estimators, EnsembleOf(a function of the rows), a model with a method belief(pool, contexts), or "
        "register_model(type, adapter)."
    )


@adapts(Pipeline)
def _pipeline(model: Pipeline, pool: Any, contexts: Any, request: Request) -> Belief:
    """The belief of the last step, on what the steps before make of the features."""
    before = model[:-1]
    if len(model.steps) > 1:
        pool, contexts = before.transform(pool), before.transform(contexts)
    return adapt(model.steps[-1][1], pool, contexts, request)


@adapts(BaseSearchCV)
def _search(model: BaseSearchCV, pool: Any, contexts: Any, request: Request) -> Belief:
    """The belief of the best estimator that was found."""
    return adapt(best_of(model), pool, contexts, request)


def best_of(search: BaseSearchCV) -> Any:
    """The estimator that a search has fitted last; refused where it has none."""
    if hasattr(search, "cv_results_") and not hasattr(search, "best_estimator_"):
        raise StakesError(
            f"this {type(search).__name__} was fitted with refit=False and holds no fitted estimator: fit it with "
            "refit=True, or give the estimator of your choice, fitted"
        )
    check_is_fitted(search)
    return search.best_estimator_


def adapter_of(model: Any) -> Adapter | None:
    """That of the model's type, of one that it inherits from, or of one that it passes itself off as (an ABC).

    For a list: that of lists of the type of its first model, where there is one.
    """
    first = model[0] if isinstance(model, list | tuple) and model else model
    _load_extras(first)
    kinds = [(_LISTED, kind) for kind in type(first).__mro__ if first is not model]
    for table, kind in [*kinds, *((_ADAPTERS, kind) for kind in type(model).__mro__)]:
        if kind in table:
            return table[kind]
    return next((adapter for kind, adapter in _ADAPTERS.items() if isinstance(model, kind)), None)


def _load_extras(model: Any) -> None:
    """Import what knows models of the packages that the model's type, or one it inherits from, comes from."""
    packages = [kind.__module__.partition(".")[0] for kind in type(model).__mro__]
    for package in dict.fromkeys(packages):
        if package in _EXTRAS:
            import_module(_EXTRAS[package])
