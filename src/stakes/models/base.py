"""From a fitted model to a belief: which adapter serves which model.

An adapter is a function `prepare(model, contexts, *, target, classes, joint, random_state)` that computes what the
contexts need, once, and gives a function from the rows of candidates to the belief about them: pools come by in chunks.

Sizes: N candidates (the pool), M contexts, p features.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_generator
from stakes.beliefs import Belief
from stakes.exceptions import StakesError

Target: TypeAlias = Literal["label", "latent"]
"""Whether z is the label that will be realised at a context, noise included, or the function behind it."""
RowsToBelief: TypeAlias = Callable[[Any], Belief]
"""From the rows of some candidates [N, p] to the belief about their labels and the targets at the contexts."""


class Adapter(Protocol):
    """A function that turns fitted models of one type into beliefs: the contexts are seen once, rows stream by.

    Examples:
        >>> import numpy as np
        >>> from stakes import CategoricalEnsemble
        >>> def prepare(model, contexts, *, target, classes, joint, random_state):
        ...     there = model(contexts)  # this model is a function from rows to what its members predict, [n, K, C]
        ...     return lambda rows: CategoricalEnsemble(model(rows), there)
        >>> model = lambda rows: np.full((len(rows), 5, 2), 0.5)
        >>> asked = {"target": "label", "classes": None, "joint": False, "random_state": np.random.default_rng(0)}
        >>> belief = prepare(model, np.zeros((6, 1)), **asked)(np.zeros((3, 1)))
        >>> belief.n_candidates, belief.n_contexts
        (3, 6)
    """

    def __call__(
        self,
        model: Any,
        contexts: Any,
        *,
        target: Target,
        classes: Sequence[Any] | None,
        joint: bool,
        random_state: np.random.Generator,
    ) -> RowsToBelief:
        """The function from rows [N, p] to the belief of `model` about their labels and the targets at `contexts`.

        Args:
            model: A fitted model of the type that the adapter is registered for.
            contexts: M rows at which answers will be needed.
            target: "label" or "latent": whether z has the noise of a label.
            classes: All classes in the order of columns, also those that no label has had yet; None: the model's.
            joint: Whether covariances between candidates are wanted, which joint batches need.
            random_state: For models that are known by draws only. The function must give the same answer for the same
                rows whenever it is called, so draw from it before, or from copies of it.

        Returns:
            The function. It may be called from several threads.
        """


_A = TypeVar("_A", bound=Adapter)

_ADAPTERS: dict[type, Adapter] = {}
_LISTED: dict[type, Adapter] = {}
_EXTRAS = {
    "torch": "stakes.models.networks",
    "gpytorch": "stakes.models.gpytorch",
    "botorch": "stakes.models.botorch",
    "catboost": "stakes.models.virtual_ensembles",
    "stochtree": "stakes.models.bart",
    "sklearn.compose": "stakes.models.transformed",
    "sklearn.ensemble": "stakes.models.forests",
    "sklearn.linear_model": "stakes.models.bayesian_linear",
}
"""What registers the adapters for models of a package: imported when the first such model comes."""
BAYESIAN_LINEAR = ("sklearn.linear_model.BayesianRidge", "sklearn.linear_model.ARDRegression")
"""Linear models that have a belief, for `is_one_of`."""
TRANSFORMED_TARGET = "sklearn.compose.TransformedTargetRegressor"
"""For `is_one_of`."""


_MARGINALS = ("pred_dist", "predict_dist", "predict_distribution")
"""Methods of models that predict a distribution for each row by itself, such as NGBoost's."""


def load_adapters(model: Any) -> None:
    """Import what knows models of the packages that the model's type, or one it inherits from, comes from."""
    _load_extras(type(model))


def _load_extras(kind: type) -> None:
    parts = [each.__module__.split(".") for each in kind.__mro__]
    packages = [package for own in parts for package in (own[0], ".".join(own[:2]))]
    for package in dict.fromkeys(packages):
        if package in _EXTRAS:
            import_module(_EXTRAS[package])


def register_model(kind: type, adapter: Adapter) -> None:
    """Let an adapter serve models of a type and of its subclasses, unless a subclass has its own.

    Args:
        kind: The type of the models.
        adapter: A function `prepare(model, contexts, *, target, classes, joint, random_state)` that gives a function
            from rows to their belief; see `Adapter`.

    Raises:
        StakesError: If the type has an adapter already.

    Examples:
        >>> import numpy as np
        >>> from stakes import NormalEnsemble
        >>> class Lines:
        ...     slopes = np.array([0.5, 1.0, 1.5])
        >>> def prepare(model, contexts, *, target, **_):
        ...     there, noise = contexts * model.slopes, 0.1 if target == "label" else 0.0
        ...     return lambda rows: NormalEnsemble(rows * model.slopes, 0.1, there, noise)
        >>> register_model(Lines, prepare)
        >>> belief_of(Lines(), [[1.0], [2.0]] * np.ones(1), np.ones((3, 1))).n_candidates
        2
    """
    _load_extras(kind)
    if kind in _ADAPTERS:
        raise StakesError(f"an adapter for {kind.__name__} is registered already")
    _ADAPTERS[kind] = adapter


def register_list(kind: type, adapter: Adapter) -> None:
    """Let an adapter serve lists of models whose first is of type `kind`."""
    if kind in _LISTED:
        raise StakesError(f"an adapter for lists of {kind.__name__} is registered already")
    _LISTED[kind] = adapter


def adapts(kind: type) -> Callable[[_A], _A]:
    """Register the function below as the adapter of `kind`."""

    def decorate(adapter: _A) -> _A:
        register_model(kind, adapter)
        return adapter

    return decorate


def prepare_belief(
    model: Any,
    contexts: Any,
    *,
    target: Target = "label",
    classes: Sequence[Any] | None = None,
    joint: bool = False,
    random_state: RandomState = None,
) -> RowsToBelief:
    """The belief of a fitted model as a function of the rows, for pools that come in parts.

    What the model says of the contexts is computed here, once.

    Args:
        model: A fitted model that `belief_of` takes.
        contexts: M rows at which answers will be needed.
        target: "label" if z is the label that will be realised at a context, noise included; "latent" if it is the
            function behind it.
        classes: All classes in the order of columns, also those that no label has had yet; None: those of the model.
        joint: Whether covariances between candidates are wanted, which joint batches need.
        random_state: For models that are known by draws only: an int, a generator, or None for 0. All parts of a pool
            are answered with the same random numbers.

    Returns:
        A function from rows [N, p] to the belief about their labels and the targets at the contexts.

    Raises:
        StakesError: If `target` is neither, or the model cannot be asked for what is wanted.
        TypeError: If no adapter knows the model.

    Examples:
        >>> import numpy as np
        >>> from stakes import GaussianProcess, SquaredError, score
        >>> X = np.linspace(0.0, 1.0, 12)[:, None]
        >>> model = GaussianProcess().fit(X[:4], X[:4, 0] ** 2)
        >>> belief = prepare_belief(model, contexts=X)
        >>> [score(SquaredError(), belief(chunk)).shape for chunk in (X[4:10], X[10:])]
        [(6,), (2,)]
    """
    if target not in ("label", "latent"):
        raise StakesError(f"target must be 'label' or 'latent'; got {target!r}")
    if (adapter := adapter_of(model)) is not None:
        generator = as_generator(random_state)
        return adapter(model, contexts, target=target, classes=classes, joint=joint, random_state=generator)
    if callable(getattr(model, "belief", None)):
        return lambda rows: _own_belief(model, rows, contexts)
    raise no_belief(model)


def is_marginal(model: Any) -> bool:
    """Whether a model predicts a distribution for each row by itself, and no joint one is known of it."""
    marginal = any(callable(getattr(model, method, None)) for method in _MARGINALS)
    return marginal and adapter_of(model) is None and not callable(getattr(model, "belief", None))


def no_belief(model: Any) -> TypeError:
    """The refusal of a model that says nothing of how sure it is, with the line that mends it."""
    name = type(model).__name__
    if is_marginal(model):
        return TypeError(
            f"{name} gives no joint belief: labels of one row say nothing of another, as it predicts a distribution "
            "for each row by itself, and no label would be worth anything. Give the rows and labels that it was fitted "
            "to, rank(model, loss, pool, labelled=(X, y)), and copies of it are fitted to rows drawn anew; or fit them "
            "yourself, Bootstrap(model).fit(X, y), and give that."
        )
    if hasattr(model, "fit") and (hasattr(model, "predict") or hasattr(model, "get_params")):
        return TypeError(
            f"no adapter knows a {name}: it says nothing of how sure it is. Give the rows and labels that it was "
            "fitted to, rank(model, loss, pool, labelled=(X, y)), and copies of it are fitted to rows drawn anew; or "
            "fit them yourself, Bootstrap(model).fit(X, y), and give that."
        )
    return TypeError(
        f"no adapter knows a {name}. Give an estimator with fit and predict, a list of fitted estimators, "
        "EnsembleOf(a function of the rows), a model with a method belief(pool, contexts), or register_model(type, "
        "adapter)."
    )


def _own_belief(model: Any, rows: Any, contexts: Any) -> Belief:
    belief = model.belief(rows, contexts)
    if not isinstance(belief, Belief):
        raise TypeError(f"{type(model).__name__}.belief must return a belief; got {type(belief).__name__}")
    return belief


def belief_of(
    model: Any,
    pool: Any,
    contexts: Any,
    *,
    target: Target = "label",
    classes: Sequence[Any] | None = None,
    joint: bool = False,
    random_state: RandomState = None,
) -> Belief:
    """What a fitted model believes of the labels of `pool` and the targets at `contexts`, jointly.

    A model of your own has a method `belief(pool, contexts)`, or an adapter given to `register_model`.

    Args:
        model: A fitted model of scikit-learn, GPyTorch, BoTorch or PyTorch, a list of such, `EnsembleOf`, ..
        pool: N candidates, as the model takes rows.
        contexts: M rows at which answers will be needed.
        target: "label" if z is the label that will be realised at a context, noise included; "latent" if it is the
            function behind it.
        classes: All classes in the order of columns, also those that no label has had yet; None: those of the model.
        joint: Whether covariances between candidates are wanted, which joint batches need.
        random_state: For models that are known by draws only: an int, a generator, or None for 0.

    Returns:
        The belief, which `score` and `select` take.

    Raises:
        StakesError: If `target` is neither, or the model cannot be asked for what is wanted.
        TypeError: If no adapter knows the model.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from stakes import LogLoss, score
        >>> X, y = load_iris(return_X_y=True)
        >>> model = RandomForestClassifier(50, random_state=0).fit(X[::5], y[::5])
        >>> belief = belief_of(model, pool=X[1::5], contexts=X[2::5])
        >>> score(LogLoss(), belief).shape
        (30,)
    """
    prepared = prepare_belief(model, contexts, target=target, classes=classes, joint=joint, random_state=random_state)
    return prepared(pool)


def has_belief(model: Any) -> bool:
    """Whether `belief_of` knows models of this type, and those that it is made of where they give the belief."""
    inside = None
    if isinstance(model, Pipeline):
        inside = model.steps[-1][1]
    elif isinstance(model, BaseSearchCV):
        inside = getattr(model, "best_estimator_", model.estimator)
    elif is_one_of(model, TRANSFORMED_TARGET):
        inside = model.regressor  # None is a LinearRegression
    elif isinstance(model, MultiOutputRegressor):
        inside = model.estimator
    else:
        return adapter_of(model) is not None or callable(getattr(model, "belief", None))
    return has_belief(inside)


class LabelsLeftOut(NamedTuple):
    """What a model says of each of its n labels given all others."""

    mean: Any
    """[n]"""
    variance: Any
    """[n]"""
    labels: Any
    """[n]: which came"""


LABELS_SEEN = "n_samples_seen_"
"""The attribute of a fitted scaler, or of a linear model to which it was added, that holds how many rows were seen."""


@adapts(Pipeline)
def _pipeline(model: Pipeline, contexts: Any, **options: Any) -> RowsToBelief:
    """The belief of the last step, on what the steps before make of the features."""
    before, last = model[:-1], last_step_counted(model)
    if len(model.steps) == 1:
        return prepare_belief(last, contexts, **options)
    prepared = prepare_belief(last, before.transform(contexts), **options)
    return lambda rows: prepared(before.transform(rows))


def last_step_counted(model: Pipeline) -> Any:
    """The last step; a Bayesian linear model, which keeps no count of its labels, with that of a step before it."""
    last = model.steps[-1][1]
    counts = [getattr(step, LABELS_SEEN) for _, step in model.steps[:-1] if hasattr(step, LABELS_SEEN)]
    if counts and is_one_of(last, *BAYESIAN_LINEAR) and not hasattr(last, LABELS_SEEN):
        last = copy.copy(last)
        setattr(last, LABELS_SEEN, counts[0])
    return last


@adapts(BaseSearchCV)
def _search(model: BaseSearchCV, contexts: Any, **options: Any) -> RowsToBelief:
    """The belief of the best estimator that was found."""
    return prepare_belief(best_of(model), contexts, **options)


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
    """The adapter of the model's type, of one that it inherits from, or of one that it passes itself off as (an ABC).

    For a list: that of lists of the type of its first model, where there is one.
    """
    first = model[0] if isinstance(model, list | tuple) and model else model
    load_adapters(first)
    kinds = [(_LISTED, kind) for kind in type(first).__mro__ if first is not model]
    for table, kind in [*kinds, *((_ADAPTERS, kind) for kind in type(model).__mro__)]:
        if kind in table:
            return table[kind]
    return next((adapter for kind, adapter in _ADAPTERS.items() if isinstance(model, kind)), None)


def is_one_of(model: Any, *names: str) -> bool:
    """Whether the model is an instance of one of these classes, by their full names.

    Nothing is imported for that: where the module of a class has not been imported, there is no instance of it.
    """
    for name in names:
        home, _, kind = name.rpartition(".")
        if home in sys.modules and isinstance(model, getattr(sys.modules[home], kind, ())):
            return True
    return False
