"""Which library grows the trees of a forest. Sizes: n labels so far, p features."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Literal, TypeAlias

from sklearn.ensemble import RandomForestClassifier

Forest: TypeAlias = Literal["scikit-learn", "intelex"]
"""The paper's, or scikit-learn-intelex: other random numbers and the same statistics, several times quicker."""

_GROWN = ("estimators_", "classes_", "n_classes_", "n_outputs_", "n_features_in_")


class IntelexForest(RandomForestClassifier):  # type: ignore[misc]
    """A forest whose trees scikit-learn-intelex grows, on one thread, as several runs may go on at once.

    The trees are scikit-learn's, and so is all that is done with them: `stakes` takes this for any other forest.
    """

    def fit(self, X: Any, y: Any) -> IntelexForest:  # noqa: N803 (as everyone writes it)
        """Grow trees on labels `y` [n] of rows `X` [n, p]."""
        grown = _intelex()(**{**self.get_params(), "n_jobs": 1}).fit(X, y)
        for name in _GROWN:
            setattr(self, name, getattr(grown, name))
        return self


def forest(kind: Forest, trees: int) -> RandomForestClassifier:
    """A forest of so many trees, all else by default; refused where the library that grows them is absent."""
    if kind == "scikit-learn":
        return RandomForestClassifier(trees)
    _intelex()
    return IntelexForest(trees)


def extra_versions(kind: Forest) -> dict[str, str]:
    """Of the libraries that numbers come from besides those of any simulation."""
    return {} if kind == "scikit-learn" else {"scikit-learn-intelex": metadata.version("scikit-learn-intelex")}


def _intelex() -> Any:
    try:
        from sklearnex.ensemble import RandomForestClassifier as Grower
    except ImportError as error:
        raise ImportError(
            "forests by intelex need scikit-learn-intelex: pip install 'stakes[fast]', or leave --forest out"
        ) from error
    return Grower
