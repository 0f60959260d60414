"""Foundation models for tables (TabICL, TabPFN) as beliefs: classifiers that learn in context.

Such a model gives the marginals p(y | x) and nothing joint. What a label would tell comes from asking again: append the
row with a hypothetical label and predict the contexts ("conditioned", which needs a pass for each class of a row), or
draw labels of some rows one after another and take what is predicted given them as a member ("drawn"). Weights are
loaded by the packages themselves; here are `fit` and `predict_proba` alone, so any classifier with these will do.
Sizes: n labels so far, N candidates, M contexts, C classes, K draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from stakes.beliefs import Belief, CategoricalEnsemble, Integrand, Reference
from stakes.exceptions import StakesError
from stakes.losses import Classes

__all__ = ["ConditionedClasses", "InContext"]


@dataclass(frozen=True, eq=False)
class ConditionedClasses:
    """Joint probabilities of the label of each candidate and the class at each context.

    Args:
        joint: [N, M, C, C]: p(y, z | x, c), the label first.
        target: [M, C]: p(z | c), the sum of `joint` over labels, whatever the candidate.

    Examples:
        A label that tells the class, and one that tells nothing of it:

        >>> import numpy as np
        >>> from stakes import ZeroOne, score
        >>> from stakes.integrations.foundation_models import ConditionedClasses
        >>> joint = np.array([[[[0.5, 0.0], [0.0, 0.5]]], [[[0.25, 0.25], [0.25, 0.25]]]])
        >>> print(score(ZeroOne(), ConditionedClasses(joint, np.array([[0.5, 0.5]]))))
        [0.5 0. ]
    """

    joint: Any
    target: Any

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return int(self.joint.shape[0])

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return int(self.joint.shape[1])

    @property
    def domain(self) -> Classes:
        """The classes."""
        return Classes(int(self.target.shape[1]))

    @property
    def like(self) -> Any:
        """The probabilities at contexts."""
        return self.target

    def n_cells(self, integrand: Integrand) -> int:
        """C: a cell for each label."""
        return int(self.joint.shape[2])

    def reference(self, integrand: Integrand) -> Reference:
        """Statistics of classes are taken as they are."""
        return Reference(None, np.zeros(self.n_contexts))

    def moments(self, integrand: Integrand, reference: Reference) -> Any:
        """[M, D]: sum_z p(z | c) S(z)."""
        return (self.target[:, None, :] @ self._table(integrand, reference))[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Any:
        """[N, M, C, D]: sum_z p(y, z | x, c) S(z)."""
        return self.joint @ self._table(integrand, reference)

    def take(self, candidates: slice, contexts: slice) -> ConditionedClasses:
        """A block of candidates and contexts."""
        return ConditionedClasses(self.joint[candidates, contexts], self.target[contexts])

    def _table(self, integrand: Integrand, reference: Reference) -> Any:
        return integrand.statistics(np.eye(self.target.shape[1])[None, :, :], reference.point)


class InContext:
    """A classifier that learns in context, with the labels so far, as a model that `rank` and `score` take.

    Args:
        model: A `TabICLClassifier`, a `TabPFNClassifier`, or whatever has `fit` and `predict_proba`. It is fitted again
            for every question, which is what makes this affordable: such a model does not train.
        X: [n, p]: rows with labels.
        y: [n]: their labels; classes are those among them, in order.
        joint: "conditioned": append each candidate with each label and predict the contexts again. "drawn": draw labels
            of `n_rows` rows one after another, `n_draws` times; what is predicted given them is a member of an
            ensemble, which also values batches.
        max_candidates: Of a block of candidates, those of largest predictive entropy are conditioned on, at most so
            many; the others are taken to tell nothing.
        n_draws: Members, where labels are drawn.
        n_rows: Rows whose labels are drawn for each.
        random_state: Seeds the draws.

    Raises:
        StakesError: If arguments do not fit.
        TypeError: If the model has no `predict_proba`.

    Examples:
        >>> import numpy as np
        >>> from sklearn.naive_bayes import GaussianNB  # stands for TabICLClassifier()
        >>> from stakes import LogLoss, rank
        >>> from stakes.integrations.foundation_models import InContext
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(60, 2))
        >>> model = InContext(GaussianNB(), X[:20], (X[:20, 0] > 0).astype(int))
        >>> len(rank(model, LogLoss(), X[20:], n=3).indices)
        3
    """

    def __init__(
        self,
        model: Any,
        X: Any,  # noqa: N803 (scikit-learn's name)
        y: Any,
        *,
        joint: Literal["conditioned", "drawn"] = "conditioned",
        max_candidates: int = 64,
        n_draws: int = 16,
        n_rows: int = 8,
        random_state: int = 0,
    ) -> None:
        if not hasattr(model, "fit") or not hasattr(model, "predict_proba"):
            raise TypeError(
                f"a {type(model).__name__} has no fit and predict_proba: InContext wants a classifier, such as "
                "TabICLClassifier or TabPFNClassifier. Regressors are not served."
            )
        rows, labels = np.asarray(X), np.asarray(y)
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or len(np.unique(labels)) < 2:
            raise StakesError(
                f"X must be [n, p] and y [n], with two classes at least; got {list(rows.shape)}, {list(labels.shape)} "
                f"and {len(np.unique(labels))} classes"
            )
        if joint not in ("conditioned", "drawn") or min(max_candidates, n_draws, n_rows) < 1:
            raise StakesError(
                'joint must be "conditioned" or "drawn", and max_candidates, n_draws and n_rows at least 1; got '
                f"{joint!r}, {max_candidates}, {n_draws} and {n_rows}"
            )
        self.model, self.rows, self.labels, self.joint = model, rows, labels, joint
        self.classes_ = np.unique(labels)
        self.max_candidates, self.n_draws, self.n_rows, self.random_state = (
            max_candidates,
            n_draws,
            n_rows,
            random_state,
        )

    def predict_proba(self, X: Any) -> Any:  # noqa: N803 (scikit-learn's name)
        """Marginals by one pass.

        Args:
            X: [N, p]: rows.

        Returns:
            [N, C]: probabilities of the classes.
        """
        return self._given(self.rows[:0], self.labels[:0], np.asarray(X))

    def belief(self, pool: Any, contexts: Any) -> Belief:
        """What is believed of the labels of `pool` and the classes at `contexts`, jointly.

        Args:
            pool: [N, p]: candidates.
            contexts: [M, p]: where answers will be needed.

        Returns:
            The belief.
        """
        rows, there = np.asarray(pool), np.asarray(contexts)
        return self._drawn(rows, there) if self.joint == "drawn" else self._conditioned(rows, there)

    def _given(self, rows: Any, labels: Any, asked: Any) -> Any:
        """[B, C]: probabilities at rows that are asked for, once more rows have labels."""
        self.model.fit(np.concatenate([self.rows, rows]), np.concatenate([self.labels, labels]))
        found = np.asarray(self.model.predict_proba(asked), dtype=np.float64)
        return found / found.sum(axis=1, keepdims=True)

    def _conditioned(self, pool: Any, contexts: Any) -> ConditionedClasses:
        """p(y | x) p(z | c, x, y), with p(z | c) kept as it is today.

        Networks are not coherent: p(z | c, x, y), averaged over y, is not quite p(z | c). Each class of the target is
        scaled to that, so that a label is worth nothing for merely having been asked about.
        """
        now = self._given(self.rows[:0], self.labels[:0], np.concatenate([pool, contexts]))
        own, target = now[: len(pool)], now[len(pool) :]
        joint = own[:, None, :, None] * target[None, :, None, :]  # [N, M, C, C]: labels that tell nothing
        entropy = -(own * np.log(np.maximum(own, 1e-300))).sum(axis=1)
        for n in np.argsort(-entropy, kind="stable")[: self.max_candidates]:
            for k, label in enumerate(self.classes_):
                joint[n, :, k, :] = own[n, k] * self._given(pool[n : n + 1], label[None], contexts)
            total = joint[n].sum(axis=1)  # [M, C]
            joint[n] *= (target / np.maximum(total, 1e-300))[:, None, :]
        return ConditionedClasses(joint, target)

    def _drawn(self, pool: Any, contexts: Any) -> CategoricalEnsemble:
        """Members: what is predicted once labels of some rows are drawn, each given those before it."""
        rng, both = np.random.default_rng(self.random_state), np.concatenate([pool, contexts])
        members = []
        for _ in range(self.n_draws):
            rows, labels = both[rng.integers(len(both), size=self.n_rows)], self.labels[:0]
            for i in range(self.n_rows):
                odds = self._given(rows[:i], labels, rows[i : i + 1])[0]
                labels = np.append(labels, self.classes_[rng.choice(len(odds), p=odds)])
            members.append(self._given(rows, labels, both))
        table = np.stack(members, axis=1)  # [N + M, K, C]
        return CategoricalEnsemble(table[: len(pool)], table[len(pool) :])
