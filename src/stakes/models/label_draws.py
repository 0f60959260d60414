"""A classifier fitted to labels that may be wrong: each copy of it to other draws of what the labels may be.

What opinions say of row i is a likelihood L_i[y], the probability of what was said if the class is y. What copies that
were not fitted to the row say of it, q_i[y], is the prior. Labels are drawn from the posterior, q_i L_i up to a factor,
for each copy anew: copies then differ in what they hold of a doubtful label, and so do their answers near that row.
Asking again is worth what it tells about which copies are right: no special rule is needed for it.

The mean of copies that were fitted to wrong labels, too, says less of a row than they know: it is drawn to the rate of
errors. So it is raised to a power, and a share of its mass is given to class frequencies, as in
`stakes.models.default_model`; both are those that make the opinions on rows that copies have not seen most probable.
Where an annotator's reliability is itself in doubt, likelihoods differ by copy, too.
Sizes: n labelled rows, N rows, p columns, C classes, K copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags, _safe_indexing
from sklearn.utils.validation import check_is_fitted

from stakes._utils.arguments import RandomState, as_seed
from stakes._utils.tables import Host, n_rows
from stakes.beliefs import CategoricalEnsemble
from stakes.exceptions import StakesError
from stakes.models.base import RowsToBelief, adapts
from stakes.models.calibration import normalised, sharpened
from stakes.models.encoding import TableEncoder

_FOLDS = 5  # each copy is fitted without one of them, so that the others say what is known of a row without its label
_POWERS = (1.0, 1.5, 2.0)  # of the mean of what copies say of a row
_SHARES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.7, 0.85)  # of mass, given to class frequencies


class LabelDraws(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Copies of a classifier, each fitted to labels drawn from what is believed of them, without a fifth of the rows.

    Args:
        estimator: A classifier with `predict_proba`; None: an extremely randomised tree, on columns of any kind
            (`TableEncoder`).
        copies: The number K of them.
        rounds: How often labels are drawn and copies fitted, each time from what the copies before said of the rows
            that they did not see.
        random_state: A whole number or a generator.

    Attributes:
        posterior_: [n, C]: the class of each labelled row, given what was said of it and of all others.
        prior_: [n, C]: what copies that were not fitted to a row say of it.
        power_: The power to which the mean of what copies say is raised.
        smoothing_: The share that is then given to class frequencies.

    Examples:
        Two groups of rows. One label of the second is in doubt, and all around it speak against it:

        >>> import numpy as np
        >>> X = np.r_[np.linspace(0.0, 1.0, 10), np.linspace(5.0, 6.0, 10)][:, None]
        >>> likelihoods = np.repeat([[0.95, 0.05], [0.05, 0.95]], 10, axis=0)  # if the class is 0, and if it is 1
        >>> likelihoods[15] = [0.8, 0.2]
        >>> model = LabelDraws().fit(X, likelihoods)
        >>> bool(model.posterior_[15, 1] > 0.7)
        True
    """

    def __init__(
        self, estimator: Any = None, *, copies: int = 200, rounds: int = 6, random_state: RandomState = 0
    ) -> None:
        self.estimator = estimator
        self.copies = copies
        self.rounds = rounds
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803
        likelihoods: Any,
        *,
        classes: Sequence[Any] | None = None,
        start: Any = None,
        pool: Any = None,
    ) -> LabelDraws:
        """Fit the copies.

        Args:
            X: Rows [n, p] of which something was said.
            likelihoods: [n, C]: the probability of what was said of a row for each class that it may have, up to a
                factor; 1 for one class and 0 for the others where the class is known. [K, n, C] where they differ by
                copy, with the same factor for all copies of a row.
            classes: Names of the C classes; None: 0, 1, ..
            start: [n, C]: what was known of rows beforehand, such as what a model said of them before they were
                labelled; None: nothing.
            pool: Rows [N, p] beside them by which columns are encoded, too, where no estimator is given; None: none.

        Returns:
            The model itself.

        Raises:
            StakesError: If likelihoods or `start` have a wrong shape, are negative, or leave no class to a row.
        """
        given = np.asarray(likelihoods, dtype=float)
        if given.ndim == 3 and len(given) != self.copies:
            raise StakesError(f"likelihoods must be [n, C] or one for each of {self.copies} copies; got {len(given)}")
        parts = given if given.ndim == 3 else given[None]
        own = np.stack([_checked("likelihoods", each, (n_rows(X), None)) for each in parts])  # [K or 1, n, C]
        count = own.shape[2]
        names = np.arange(count) if classes is None else np.asarray(classes)
        if len(names) != count:
            raise StakesError(f"classes must name the {count} columns of likelihoods; got {len(names)} names")
        for name, least in (("copies", _FOLDS), ("rounds", 1)):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < least:
                raise StakesError(f"{name} must be a whole number, {least} or more; got {getattr(self, name)!r}")
        self.classes_, self.likelihoods_ = names, own
        self.encoder_ = TableEncoder().fit(X, pool=pool) if self.estimator is None else None
        rows, generator = self._encoded(X), np.random.default_rng(as_seed(self.random_state))
        shape = own.shape[1:]
        prior = _checked("start", start, shape) if start is not None else np.ones(shape)
        likelihoods = own.mean(axis=0)
        posterior = normalised(prior * likelihoods)
        for _ in range(self.rounds):
            self._fit_copies(rows, prior, generator)
            self._believe(self._unseen(rows, posterior), posterior, likelihoods)
            prior, posterior = self.prior_, self.posterior_
        return self

    def _believe(self, unseen: Host, posterior: Host, likelihoods: Host) -> None:
        """The posterior of each row, of what copies that have not seen it say; by the posterior so far."""
        self.shares_ = (posterior.sum(axis=0) + 1.0) / (len(posterior) + posterior.shape[1])
        sharper = [normalised(unseen**power) for power in _POWERS]
        found = [_best_share(each, self.shares_, likelihoods) for each in sharper]
        best = int(np.argmax([likelihood for _, likelihood in found]))
        self.power_, self.smoothing_ = _POWERS[best], found[best][0]
        self.prior_ = (1.0 - self.smoothing_) * sharper[best] + self.smoothing_ * self.shares_
        self.posterior_ = normalised(self.prior_ * likelihoods)

    def _encoded(self, X: Any) -> Any:  # noqa: N803
        """Rows as the copies take them."""
        if self.encoder_ is None:
            return X
        features = self.encoder_.transform(X)
        return features.astype(np.float32) if isinstance(features, np.ndarray) else features

    def _fit_copies(self, rows: Any, prior: Host, generator: np.random.Generator) -> None:
        """Each copy to drawn labels of all rows but those of its fold."""
        size = len(prior)
        folds = generator.permutation(size) % _FOLDS if size >= 2 * _FOLDS else np.full(size, -1)
        edges = np.cumsum(normalised(prior * self.likelihoods_), axis=-1)[..., :-1]  # [K or 1, n, C - 1]
        self.drawn_ = np.sum(generator.random((self.copies, size, 1)) > edges, axis=2)  # [K, n]
        self.left_out_ = folds == np.arange(self.copies)[:, None] % _FOLDS  # [K, n]
        grow = self._tree if self.estimator is None else self._copy
        random_state = np.random.RandomState(generator.integers(2**31))  # one for all: seeding takes as long as a tree
        with config_context(skip_parameter_validation=self.estimator is None):  # so does validation
            self.estimators_ = [
                grow(_taken(rows, seen := np.flatnonzero(~out)), drawn[seen], random_state)
                for drawn, out in zip(self.drawn_, self.left_out_, strict=True)
            ]

    def _tree(self, rows: Any, drawn: Host, random_state: np.random.RandomState) -> Any:
        """A tree on indicators of classes: squared error is then Gini's impurity, and a leaf has all classes."""
        from sklearn.tree import ExtraTreeRegressor

        tree = ExtraTreeRegressor(max_features="sqrt", random_state=random_state)
        return tree.fit(rows, np.eye(len(self.classes_))[drawn], **_unchecked(rows))

    def _copy(self, rows: Any, drawn: Host, random_state: np.random.RandomState) -> Any:
        """A copy of the estimator, with a seed of its own wherever it takes one."""
        copy = clone(self.estimator)
        names = [name for name in copy.get_params() if name.rpartition("__")[2] == "random_state"]
        return copy.set_params(**{name: random_state.randint(2**31 - 1) for name in names}).fit(rows, drawn)

    def _unseen(self, rows: Any, posterior: Host) -> Host:
        """[n, C]: the mean of what copies say of the rows that they were not fitted to, or class shares."""
        out = self.left_out_.T[..., None]  # [n, K, 1]
        times = out.sum(axis=1)
        total = np.sum(self._predicted(rows), axis=1, where=out)
        return np.asarray(np.where(times > 0, total / np.maximum(times, 1), posterior.mean(axis=0)))

    def _predicted(self, rows: Any) -> Host:
        """[N, K, C]: what each copy says of rows."""
        found = np.zeros((n_rows(rows), self.copies, len(self.classes_)), dtype=np.float32)
        for k, copy in enumerate(self.estimators_):
            if self.estimator is None:
                found[:, k, :] = copy.predict(rows, **_unchecked(rows)).reshape(len(found), -1)
            else:
                found[:, k, copy.classes_] = copy.predict_proba(rows)
        return found

    def members(self, X: Any) -> Host:  # noqa: N803
        """What each copy says of rows.

        Args:
            X: Rows [N, p].

        Returns:
            [N, K, C]: with the share that each gives to class frequencies. Their mean is the power of the mean of
            what copies predict: what they give to classes that lose by that goes to those that gain.
        """
        check_is_fitted(self)
        share = np.float32(self.smoothing_)
        found = sharpened(self._predicted(self._encoded(X)), self.power_)
        return np.asarray((1 - share) * found + share * self.shares_.astype(np.float32))

    def labelled_members(self, X: Any, positions: Any) -> Host:  # noqa: N803
        """What each copy holds of rows that the model was fitted to: the label that was drawn for it.

        Of rows that a copy was not fitted to, what it predicts and what was said of them together.

        Args:
            X: [m, p]: some of the rows of `fit`.
            positions: [m]: where they were among them.

        Returns:
            [m, K, C].
        """
        found = self.members(X) * self.likelihoods_[:, positions, :].transpose(1, 0, 2)
        found /= found.sum(axis=2, keepdims=True)
        drawn = np.eye(len(self.classes_))[self.drawn_[:, positions].T]  # [m, K, C]
        return np.asarray(np.where(self.left_out_[:, positions].T[..., None], found, drawn), dtype=np.float32)

    def predict_proba(self, X: Any) -> Host:  # noqa: N803
        """Class probabilities.

        Args:
            X: Rows [N, p].

        Returns:
            [N, C]: the mean of all copies, in the order of `classes_`.
        """
        return np.asarray(self.members(X).mean(axis=1, dtype=float))

    def predict(self, X: Any) -> Host:  # noqa: N803
        """The most probable class.

        Args:
            X: Rows [N, p].

        Returns:
            [N].
        """
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    @property
    def report_(self) -> tuple[str, ...]:
        """A sentence on what the copies are."""
        check_is_fitted(self)
        name = "an extremely randomised tree" if self.estimator is None else type(self.estimator).__name__
        return (
            f"The belief is what {self.copies} copies of {name} say, each fitted to labels drawn from what is believed "
            f"of the {len(self.posterior_)} rows that have labels, which may be wrong.",
        )

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        tags.input_tags.allow_nan = tags.input_tags.string = self.estimator is None
        return tags


def _taken(rows: Any, places: Host) -> Any:
    """Some rows; of arrays at once, as to find out what a table is takes longer than to grow a tree."""
    return rows[places] if isinstance(rows, np.ndarray) else _safe_indexing(rows, places)


def _unchecked(rows: Any) -> dict[str, bool]:
    """What tells a tree that rows are checked already, as that takes as long as to grow it."""
    return {"check_input": False} if isinstance(rows, np.ndarray) else {}


def _checked(name: str, values: Any, shape: tuple[Any, ...]) -> Host:
    found = np.asarray(values, dtype=float)
    wanted = f"[{shape[0]}, {'C' if shape[1] is None else shape[1]}]"
    if found.ndim != 2 or found.shape[0] != shape[0] or shape[1] not in (None, found.shape[1]):
        raise StakesError(f"{name} must have shape {wanted}; got {list(found.shape)}")
    if not np.isfinite(found).all() or (found < 0).any() or (found.sum(axis=1) <= 0).any():
        raise StakesError(f"{name} must be at least 0, and leave each row a class; some are not")
    return found


def _best_share(unseen: Host, shares: Host, likelihoods: Host) -> tuple[float, float]:
    """The share of class frequencies under which opinions are most probable, and the logarithm of how probable."""
    own, common = np.sum(unseen * likelihoods, axis=1), likelihoods @ shares
    with np.errstate(divide="ignore"):
        found = [float(np.log((1.0 - share) * own + share * common).sum()) for share in _SHARES]
    best = int(np.argmax(found))
    return _SHARES[best], found[best]


@adapts(LabelDraws)
def _label_draws(model: LabelDraws, contexts: Any, *, classes: Sequence[Any] | None, **_: Any) -> RowsToBelief:
    """Copies as members."""
    check_is_fitted(model)
    if classes is not None and list(classes) != model.classes_.tolist():
        raise StakesError(f"classes must be those of the model, {model.classes_.tolist()}; got {list(classes)}")
    there = model.members(contexts)
    return lambda rows: CategoricalEnsemble(model.members(rows), there)
