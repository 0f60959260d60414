"""scikit-activeml: the worth of a label under your own loss as one of its query strategies.

Needs scikit-activeml: pip install stakes[skactiveml]. Sizes: n rows of X, N candidates, M contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier, SkactivemlRegressor
from skactiveml.utils import MISSING_LABEL, check_type, is_labeled, rand_argmax
from sklearn.base import clone
from sklearn.utils.validation import check_array

from stakes.acquisition import score
from stakes.acquisition.batch_states import obstacle, start_batch
from stakes.acquisition.forms import check_pair
from stakes.beliefs import Belief
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss, align_classes
from stakes.losses.domains import Classes
from stakes.models import belief_of
from stakes.models.labelled import with_belief

__all__ = ["LossDriven"]

Host = NDArray[Any]
_CONFIGURATIONS = 256  # of labels of a batch, as `rank` has them


class LossDriven(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """Query the candidates whose labels lower your own expected loss most: the choice of `stakes.rank`.

    The utility of a candidate is what its label is worth, in units of the loss, averaged over the contexts `X_eval`. Of
    a batch, each row of utilities is what a label adds to those chosen before it.

    Args:
        loss: What being wrong costs, such as `stakes.CostMatrix` or `stakes.SquaredError()`. Classes without names are
            in the order of `clf.classes_`.
        max_contexts: If `X_eval` has more rows, so many are drawn.
        missing_label: Value to represent a missing label.
        random_state: An int or `numpy.random.RandomState`; it decides between equals, and draws contexts.

    Examples:
        >>> import numpy as np
        >>> from skactiveml.classifier import SklearnClassifier
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from stakes import CostMatrix
        >>> from stakes.integrations.skactiveml import LossDriven
        >>> X = np.random.default_rng(0).normal(size=(60, 2))
        >>> y = np.where(np.arange(60) < 20, (X[:, 0] > 0).astype(float), np.nan)
        >>> clf = SklearnClassifier(RandomForestClassifier(50, random_state=0), classes=[0, 1])
        >>> strategy = LossDriven(CostMatrix([[0, 1], [5, 0]]), random_state=0)
        >>> len(strategy.query(X, y, clf=clf, batch_size=3))
        3
    """

    def __init__(
        self,
        loss: AnyLoss | None = None,
        max_contexts: int = 1000,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        SingleAnnotatorPoolQueryStrategy.__init__(self, missing_label=missing_label, random_state=random_state)
        self.loss = loss
        self.max_contexts = max_contexts

    def query(
        self,
        X: Any,  # noqa: N803 (the name that all strategies of the package have)
        y: Any,
        clf: Any = None,
        reg: Any = None,
        fit_clf: bool = True,
        fit_reg: bool = True,
        sample_weight: Any = None,
        candidates: Any = None,
        X_eval: Any = None,  # noqa: N803
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Any:
        """Determine for which candidates labels are to be queried.

        Args:
            X: [n, p], all rows, with and without a label.
            y: [n], labels, or `missing_label`.
            clf: A classifier of the package, such as `SklearnClassifier(RandomForestClassifier())`; or
            reg: a regressor, such as `SklearnRegressor(GaussianProcessRegressor())`. Of an estimator that says nothing
                of how sure it is, copies are fitted to rows drawn anew (`stakes.Bootstrap`).
            fit_clf: Whether the classifier is to be fitted here; False for one that was.
            fit_reg: The same for the regressor.
            sample_weight: [n], weights of rows in fitting. Copies that are fitted to rows drawn anew go without.
            candidates: None for all rows without a label, positions in X, or rows [N, p].
            X_eval: [M, p], rows for which answers will be needed; None: X.
            batch_size: How many candidates to choose; together, where the belief allows for it.
            return_utilities: Whether to return utilities, too.

        Returns:
            Positions [batch_size] in X (in `candidates`, if those are rows), and utilities [batch_size, n] (or [.., N])
            that are NaN where nothing can be chosen. As long as nothing can be known they are 0, and rows are drawn:
            without any label, where the package says that the model cannot be fitted yet, and where labels that are all
            alike do not show their noise.

        Raises:
            TypeError: If neither or both of `clf` and `reg` are given, or they are none of the package's, or the loss
                is none for what they predict.
            StakesError: If the loss is missing, `max_contexts` is no whole number of 1 or more, or no belief can be had
                of the model.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(  # noqa: N806
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        model, fit = self._checked_model(clf, reg, fit_clf, fit_reg)
        rows, mapping = self._transform_candidates(candidates, X, y)
        contexts = X if X_eval is None else check_array(X_eval)
        if len(contexts) > self.max_contexts:
            drawn = self.random_state_.choice(len(contexts), self.max_contexts, replace=False)
            contexts = contexts[np.sort(drawn)]
        seen, found = is_labeled(y, missing_label=self.missing_label_), None
        if seen.any():
            if fit:
                model = clone(model).fit(X, y, *(() if sample_weight is None else (sample_weight,)))
            labels = np.asarray(y[seen].tolist())  # of their own type, which beside a None is object
            found = self._belief(model, (X[seen], labels), rows, contexts, batch_size)
        if found is None:
            utilities, chosen = _drawn(len(rows), batch_size, self.random_state_)
        else:
            utilities, chosen = _batch(*found, batch_size, self.random_state_)
        if mapping is not None:
            wide = np.full((batch_size, len(X)), np.nan)
            wide[:, mapping] = utilities
            utilities, chosen = wide, np.asarray(mapping)[chosen]
        return (chosen, utilities) if return_utilities else chosen

    def _checked_model(self, clf: Any, reg: Any, fit_clf: Any, fit_reg: Any) -> tuple[Any, bool]:
        """The classifier or regressor of the package, and whether it is to be fitted."""
        if (clf is None) == (reg is None):
            raise TypeError("query needs a model: give one of clf=.. (classes) and reg=.. (numbers)")
        name, model, fit, kind = ("clf", clf, fit_clf, SkactivemlClassifier)
        if clf is None:
            name, model, fit, kind = ("reg", reg, fit_reg, SkactivemlRegressor)
        check_type(model, name, kind)
        check_type(fit, f"fit_{name}", bool)
        if self.loss is None:
            raise StakesError("LossDriven needs the loss that being wrong costs: LossDriven(loss=SquaredError())")
        if isinstance(self.loss, type) or not hasattr(self.loss, "domain"):
            raise TypeError(f"loss must be a loss such as SquaredError() or CostMatrix(costs); got {self.loss!r}")
        if not isinstance(self.max_contexts, int | np.integer) or self.max_contexts < 1:
            raise StakesError(f"max_contexts must be a whole number, 1 or more; got {self.max_contexts!r}")
        return model, fit

    def _belief(
        self, model: Any, labelled: tuple[Host, Host], rows: Host, contexts: Host, size: int
    ) -> tuple[AnyLoss, Belief] | None:
        """The loss in the order of the model's classes, and the belief of what the package's model wraps, if any."""
        assert self.loss is not None
        if not getattr(model, "is_fitted_", True):
            return None  # of which the package has warned
        inner = getattr(model, "estimator_", model)
        names: Sequence[Any] | None = None
        if isinstance(model, SkactivemlClassifier):
            names = list(model.classes_)
        loss = align_classes(self.loss, names) if isinstance(self.loss.domain, Classes) else self.loss
        seed = int(self.random_state_.randint(2**31 - 1))
        try:
            inner, _ = with_belief(inner, labelled, random_state=seed)
            belief = belief_of(inner, rows, contexts, classes=names, joint=size > 1, random_state=seed)
        except StakesError:
            if len(np.unique(labelled[1])) > 1:
                raise
            return None  # of labels that are all alike nobody knows how far the next may be from them
        check_pair(loss, belief)
        return loss, belief


def _batch(loss: AnyLoss, belief: Belief, size: int, random_state: Any) -> tuple[Host, Host]:
    """Utilities [size, N] and the candidates [size] that are the best in them, one after the other."""
    if size == 1 or obstacle(belief) is not None:
        utilities = np.tile(np.asarray(score(loss, belief), dtype=float), (size, 1))
        return utilities, _best_each(utilities, random_state)
    batch = start_batch(loss, belief, None, np.random.default_rng(random_state.randint(2**31 - 1)), _CONFIGURATIONS)
    found, chosen = np.full((size, belief.n_candidates), np.nan), np.zeros(size, dtype=int)
    for place in range(size):
        joint, logs = batch.log_joint(), np.asarray(batch.log_reductions(), dtype=float)
        found[place] = np.exp(logs) - np.exp(joint)
        found[place, chosen[:place]] = np.nan
        chosen[place] = rand_argmax(found[place], random_state)[0]
        batch.add(int(chosen[place]))
    return found, chosen


def _best_each(utilities: Host, random_state: Any) -> Host:
    """[size]: the best of each row of utilities, none twice; those chosen before are NaN from there on."""
    chosen = np.zeros(len(utilities), dtype=int)
    for place in range(len(utilities)):
        utilities[place, chosen[:place]] = np.nan
        chosen[place] = rand_argmax(utilities[place], random_state)[0]
    return chosen


def _drawn(count: int, size: int, random_state: Any) -> tuple[Host, Host]:
    utilities = np.zeros((size, count))
    return utilities, _best_each(utilities, random_state)
