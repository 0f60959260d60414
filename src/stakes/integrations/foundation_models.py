"""Foundation models for tables (TabICL, TabPFN) as beliefs: classifiers and regressors that learn in context.

Such a model gives the marginals p(y | x) and nothing joint. What a label would tell comes from asking again: append the
row with a hypothetical label and predict the contexts ("conditioned", which needs a pass for each class of a row, or
for each of a few numbers), or draw labels of some rows one after another and take what is predicted given them as a
member ("drawn"). Weights are loaded by the packages themselves; here are `fit` and `predict_proba`, or `predict` with
quantiles, alone, so any model with these will do.

A predictive distribution of numbers is known by its quantiles at the levels of a standard normal t = -3.5, -3.25, ..,
3.5. Today's are the edges of cells of each context, and whatever is predicted later is the mass in these cells.

Sizes: n labels so far, B hypothetical sets of r rows each, N candidates, A of them that are asked about, M contexts, C
classes, J labels of a candidate, I of them asked about, G classes or cells of a target, L levels, K draws, P panels, D
statistics, F marks.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from stakes._utils.array import replaced, slices
from stakes._utils.tables import is_gap, take_rows
from stakes.beliefs import Belief, CategoricalEnsemble, Integrand, NormalEnsemble, Reference
from stakes.beliefs.base import Regret, reference_at
from stakes.exceptions import StakesError
from stakes.losses import REAL, Classes
from stakes.losses.distributions import NODES_PER_PANEL, Distribution, panel_nodes

__all__ = ["ConditionedBelief", "InContext"]

_STEP, _FURTHEST = 0.25, 3.5  # of t: cells are a quarter of a standard deviation wide, which costs 0.1% of a variance
_T = np.arange(-_FURTHEST, _FURTHEST + 0.5 * _STEP, _STEP)  # [L]
_LEVELS = ndtr(_T)
_MASSES = np.diff(np.concatenate([[0.0], _LEVELS[1:-1], [1.0]]))  # [G]: what is beyond is in the first and last cell
_SHARES = np.exp(-0.5 * _T**2) / np.exp(-0.5 * _T**2).sum()  # [L]: of each quantile in a mean
_SPREAD = float(_SHARES @ _T**2)  # what that rule makes of the variance 1
_LABELS = np.arange(-4.0, 4.1, 0.5)  # [J]: of a candidate, in standard units ..
_OWN = np.exp(-0.5 * _LABELS**2) / np.exp(-0.5 * _LABELS**2).sum()  # [J]: .. and their probabilities
_FURTHEST_ASKED = 2.5  # of the labels that are asked about
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class ConditionedBelief:
    """Joint probabilities of the label of a candidate and the target at each context, for candidates asked about.

    Args:
        joint: [A, M, J, G]: p(y, z | x, c), the label first, with the target in one of C classes or G cells.
        target: [M, G]: p(z | c), the sum of `joint` over labels, whatever the candidate.
        place: [N]: which of the A each candidate is; -1: it was not asked about and is taken to tell nothing.
        edges: [M, G + 1]: between the cells of numbers, within which the target is even; None: classes.

    Examples:
        A label that tells the class, and one that tells nothing of it:

        >>> import numpy as np
        >>> from stakes import ZeroOne, score
        >>> from stakes.integrations.foundation_models import ConditionedBelief
        >>> joint = np.array([[[[0.5, 0.0], [0.0, 0.5]]]])
        >>> print(score(ZeroOne(), ConditionedBelief(joint, np.array([[0.5, 0.5]]), np.array([0, -1]))))
        [0.5 0. ]
    """

    joint: Any
    target: Any
    place: Any
    edges: Any = None

    @property
    def n_candidates(self) -> int:
        """How many candidates there are, N."""
        return len(self.place)

    @property
    def n_contexts(self) -> int:
        """How many contexts there are, M."""
        return len(self.target)

    @property
    def domain(self) -> Any:
        """The classes, or the reals."""
        return Classes(int(self.target.shape[1])) if self.edges is None else REAL

    @property
    def like(self) -> Any:
        """The probabilities at contexts."""
        return self.target

    def n_cells(self, integrand: Integrand) -> int:
        """J: a cell for each label."""
        return int(self.joint.shape[2])

    def reference(self, integrand: Integrand) -> Reference:
        """Statistics of classes are taken as they are, those of numbers about the weighted mean."""
        if self.edges is None:
            return Reference(None, np.zeros(self.n_contexts))
        middle = 0.5 * (self.edges[:, 1:] + self.edges[:, :-1])  # [M, G]
        with np.errstate(divide="ignore"):
            logs = np.log(self.target) + integrand.log_magnitudes(middle)[..., 0]
        heavy = np.exp(logs - logs.max(axis=1, keepdims=True))
        return reference_at((heavy * middle).sum(axis=1) / heavy.sum(axis=1), integrand)

    def moments(self, integrand: Integrand, reference: Reference) -> Any:
        """[M, D]: sum_z p(z | c) S(z)."""
        return (self.target[:, None, :] @ self._table(integrand, reference))[:, 0, :]

    def split_moments(self, integrand: Integrand, reference: Reference) -> Any:
        """[N, M, J, D]: sum_z p(y, z | x, c) S(z); all in the first cell for candidates not asked about."""
        table, asked = self._table(integrand, reference), self.place >= 0
        found = np.zeros((self.n_candidates, *self.joint.shape[1:3], table.shape[2]))
        found[~asked, :, 0] = (self.target[:, None, :] @ table)[:, 0, :]
        found[asked] = self.joint[self.place[asked]] @ table
        return found

    def distribution(self, integrand: Integrand, reference: Reference, marks: Any) -> Distribution:
        """[M]: of numbers, even within each cell."""
        return self._panels(integrand, reference, marks)[0]

    def regret_over_cells(self, regret: Regret, integrand: Integrand, reference: Reference, marks: Any) -> Any:
        """[N, M]: the regret for each label, summed."""
        now, cells = self._panels(integrand, reference, marks)
        asked, found = self.place >= 0, np.empty((self.n_candidates, self.n_contexts))
        found[~asked] = regret(now, now, marks)
        for m in range(self.n_contexts) if asked.any() else ():
            here = replaced(
                now, **{name: getattr(now, name)[m] for name in ("origin", "edges", "nodes", "step", "mass")}
            )
            shares = self.joint[self.place[asked], m] / np.maximum(self.target[m], _TINY)  # [A, J, G]
            split = replaced(here, mass=shares[..., cells[m], None] * here.mass)
            found[asked, m] = regret(split, here, marks[m]).sum(axis=1)
        return found

    def n_nodes(self, integrand: Integrand) -> int:
        """Those of all cells, for each label, of which one context is held at a time."""
        return -(-NODES_PER_PANEL * int(self.target.shape[1] + 2) * int(self.joint.shape[2]) // self.n_contexts)

    def take(self, candidates: slice, contexts: slice) -> ConditionedBelief:
        """A block of candidates and contexts."""
        edges = None if self.edges is None else self.edges[contexts]
        return ConditionedBelief(self.joint[:, contexts], self.target[contexts], self.place[candidates], edges)

    def _table(self, integrand: Integrand, reference: Reference) -> Any:
        """[M | 1, G, D]: S(z) of each class, or its mean over each cell, over the scale of the reference."""
        if self.edges is None:
            return integrand.statistics(np.eye(self.target.shape[1])[None, :, :], reference.point)
        point = np.asarray(reference.point)
        panels = self._split(point, np.asarray(integrand.breakpoints) - point[:, None])
        each = integrand.statistics(point[:, None, None] + panels.nodes, point[:, None, None])  # [M, P, 16, D]
        each = (each * panels.shares[..., None]).sum(axis=2)  # [M, P, D]
        return (panels.cells[:, None, :] == np.arange(self.target.shape[1])[:, None]) @ each  # [M, G, P] @ [M, P, D]

    def _panels(self, integrand: Integrand, reference: Reference, marks: Any) -> tuple[Distribution, Any]:
        """Today's distribution, and which cell each of its panels is in, [M, P]."""
        point = np.asarray(reference.point)
        panels = self._split(point, marks)
        weight = integrand.statistics(point[:, None, None] + panels.nodes, point[:, None, None])[..., 0]
        mass = np.take_along_axis(self.target, panels.cells, axis=1)[..., None] * panels.shares * weight
        density = self._log_density(integrand, reference)
        return Distribution(point, panels.edges, panels.nodes, panels.step, mass, None, density), panels.cells

    def _split(self, point: Any, marks: Any) -> _Panels:
        """Cells, counted from a point [M], split where marks [M, F] lie."""
        ends = self.edges - point[:, None]
        places = np.concatenate([ends, np.clip(marks, ends[:, :1], ends[:, -1:])], axis=1)
        order = np.argsort(places, axis=1, kind="stable")  # marks come after ends at the same place
        edges = np.take_along_axis(places, order, axis=1)  # [M, P + 1]
        cells = np.minimum(np.cumsum(order < ends.shape[1], axis=1)[:, :-1], ends.shape[1] - 1) - 1
        nodes, step = panel_nodes(edges)
        width = np.take_along_axis(np.diff(ends, axis=1), cells, axis=1)[..., None]  # [M, P, 1]
        panels = (cells[:, None, :] == cells[..., None]).sum(axis=2)[..., None]  # of the same cell
        shares = np.where(width > 0.0, step / np.where(width > 0.0, width, 1.0), 1.0 / (panels * NODES_PER_PANEL))
        return _Panels(edges, cells, nodes, step, shares)

    def _log_density(self, integrand: Integrand, reference: Reference) -> Any:
        """Log w(z) p(z | c) over the scale, of targets [M, ...]."""

        def log_density(z: Any) -> Any:
            flat = np.reshape(z, (len(z), -1))
            cells = (self.edges[:, None, 1:-1] <= flat[..., None]).sum(axis=2)
            inside = (flat >= self.edges[:, :1]) & (flat <= self.edges[:, -1:])
            with np.errstate(divide="ignore", invalid="ignore"):
                height = np.take_along_axis(self.target / np.diff(self.edges, axis=1), cells, axis=1)
                logs = np.log(np.where(inside, height, 0.0)) + integrand.log_magnitudes(flat)[..., 0]
            return np.reshape(logs - reference.log_scale[:, None], np.shape(z))

        return log_density


class _Panels(NamedTuple):
    """Cells of targets, split further, with nodes of a rule."""

    edges: Any
    """[M, P + 1]"""
    cells: Any
    """[M, P]: which cell each is in"""
    nodes: Any
    """[M, P, 16]"""
    step: Any
    """[M, P, 16]: the length each stands for"""
    shares: Any
    """[M, P, 16]: of the mass of the cell"""


class _Answers(Protocol):
    """What a model says of rows, [N, C] probabilities of classes or [N, L] quantiles, and what follows from it."""

    @property
    def batched(self) -> str:
        """The method of the model that takes several sets of labels at once, where it has one."""

    def one(self, rows: Any) -> Any:
        """[N, C | L]: what is predicted of rows by the model as it was fitted."""

    def several(self, X: list[Any], y: list[Any], asked: list[Any]) -> Any:  # noqa: N803
        """[B, N, C | L]: given each of B sets of rows and labels."""

    def labels(self, predicted: Any) -> tuple[Any, Any, Any]:
        """[N, I]: labels to ask about; [N, J]: probabilities of all labels; [N]: how uncertain they are."""

    def cells(self, predicted: Any) -> tuple[Any, Any]:
        """[M, G]: the mass of each class or cell; [M, G + 1]: the edges of cells."""

    def masses(self, predicted: Any, edges: Any) -> Any:
        """[J, M, G]: masses of the same classes or cells given each label, by what is predicted, [I, M, C | L]."""

    def drawn(self, predicted: Any, rng: np.random.Generator) -> Any:
        """[N]: a label of each."""

    def ensemble(self, predicted: Any, count: int) -> Belief:
        """The belief whose members are what is predicted, [K, N + M, C | L], the first N rows being candidates."""


@dataclass(frozen=True)
class _OfClasses:
    """What a classifier says."""

    model: Any
    classes: Any
    batched: str = "predict_proba_batched"

    def one(self, rows: Any) -> Any:
        return self._normalised(self.model.predict_proba(rows))

    def several(self, X: list[Any], y: list[Any], asked: list[Any]) -> Any:  # noqa: N803
        return self._normalised(self.model.predict_proba_batched(X, y, asked))

    def labels(self, predicted: Any) -> tuple[Any, Any, Any]:
        entropy = -(predicted * np.log(np.maximum(predicted, _TINY))).sum(axis=1)
        return np.broadcast_to(self.classes, predicted.shape), predicted, entropy

    def cells(self, predicted: Any) -> tuple[Any, Any]:
        return predicted, None

    def masses(self, predicted: Any, edges: Any) -> Any:
        return predicted

    def drawn(self, predicted: Any, rng: np.random.Generator) -> Any:
        return np.array([self.classes[rng.choice(len(odds), p=odds)] for odds in predicted])

    def ensemble(self, predicted: Any, count: int) -> Belief:
        table = predicted.swapaxes(0, 1)  # [N + M, K, C]
        return CategoricalEnsemble(table[:count], table[count:])

    @staticmethod
    def _normalised(predicted: Any) -> Any:
        found = np.asarray(predicted, dtype=np.float64)
        return found / found.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class _OfNumbers:
    """What a regressor says."""

    model: Any
    levels: str
    """the argument of `predict` that takes levels of quantiles"""
    n_labels: int
    batched: str = "predict_batched"

    def one(self, rows: Any) -> Any:
        return self._rows_first(self.model.predict(rows, **self._asking()))

    def several(self, X: list[Any], y: list[Any], asked: list[Any]) -> Any:  # noqa: N803
        return np.stack([self._rows_first(each) for each in self.model.predict_batched(X, y, asked, **self._asking())])

    def labels(self, predicted: Any) -> tuple[Any, Any, Any]:
        places = np.stack([np.interp(self._asked, _T, each) for each in predicted])
        return places, np.broadcast_to(_OWN, (len(predicted), len(_OWN))), _mean_and_sd(predicted)[1]

    def cells(self, predicted: Any) -> tuple[Any, Any]:
        return np.broadcast_to(_MASSES, (len(predicted), len(_MASSES))), predicted

    def masses(self, predicted: Any, edges: Any) -> Any:
        predicted = self._between(predicted)
        far = _FURTHEST / _STEP  # beyond the levels as a normal distribution goes on
        low, high = predicted[..., :1], predicted[..., -1:]
        before, after = low - far * (predicted[..., 1:2] - low), high + far * (high - predicted[..., -2:-1])
        knots, t = np.concatenate([before, predicted, after], axis=-1), np.r_[-2.0 * _FURTHEST, _T, 2.0 * _FURTHEST]
        inner, found = edges[:, 1:-1], np.empty((*predicted.shape[:2], len(_MASSES)))
        for b, m in np.ndindex(*predicted.shape[:2]):
            below = ndtr(np.interp(inner[m], knots[b, m], t))
            found[b, m] = np.diff(below, prepend=0.0, append=1.0)
        return found

    def drawn(self, predicted: Any, rng: np.random.Generator) -> Any:
        return np.array([np.interp(rng.normal(), _T, each) for each in predicted])

    def ensemble(self, predicted: Any, count: int) -> Belief:
        mean, sd = (each.T for each in _mean_and_sd(predicted))  # [N + M, K]
        return NormalEnsemble(mean[:count], np.maximum(sd[:count], _TINY), mean[count:], sd[count:])

    @property
    def _asked(self) -> Any:
        """[n_labels]: of a candidate, in standard units."""
        return np.linspace(-_FURTHEST_ASKED, _FURTHEST_ASKED, self.n_labels)

    def _between(self, predicted: Any) -> Any:
        """[J, M, L]: quantiles given each label, which move along lines from one that was asked for to the next."""
        right = np.clip(np.searchsorted(self._asked, _LABELS), 1, self.n_labels - 1)
        start, end = self._asked[right - 1], self._asked[right]
        share = ((_LABELS - start) / (end - start))[:, None, None]  # outside of 0 to 1 beyond the furthest
        return np.maximum.accumulate((1.0 - share) * predicted[right - 1] + share * predicted[right], axis=-1)

    def _asking(self) -> dict[str, Any]:
        return {"output_type": "quantiles", self.levels: _LEVELS.tolist()}

    def _rows_first(self, predicted: Any) -> Any:
        """[N, L], increasing: TabPFN gives a list with an array for each level."""
        found = np.asarray(np.stack(predicted, axis=1) if isinstance(predicted, list) else predicted, dtype=np.float64)
        if not np.isfinite(found).all():
            raise StakesError(f"quantiles of {type(self.model).__name__} must be finite; some are NaN or infinite")
        return np.maximum.accumulate(found, axis=-1)


def _mean_and_sd(predicted: Any) -> tuple[Any, Any]:
    """[...] each, of quantiles [..., L]."""
    mean = predicted @ _SHARES
    return mean, np.sqrt((predicted - mean[..., None]) ** 2 @ _SHARES / _SPREAD)


def _level_argument(model: Any) -> str | None:
    """The argument of `predict` by which quantiles are asked for, of a regressor that has them."""
    taken = inspect.signature(model.predict).parameters if hasattr(model, "predict") else {}
    return next((each for each in ("quantiles", "alphas") if each in taken), None) if "output_type" in taken else None


class InContext:
    """A model that learns in context, with the labels so far, as a model that `rank` and `score` take.

    Args:
        model: A `TabICLClassifier`, a `TabPFNClassifier`, or whatever has `fit` and `predict_proba`; or a
            `TabICLRegressor`, a `TabPFNRegressor`, or whatever has `fit` and a `predict` that takes
            `output_type="quantiles"` with `quantiles` or `alphas`. It is fitted again for every question, which is what
            makes this affordable: such a model does not train.
        X: [n, p]: rows with labels, an array or a data frame of pandas, whose columns the model sees as they are.
        y: [n]: their labels; classes are those among them, in order.
        joint: "conditioned": append each candidate with each label and predict the contexts again. "drawn": draw labels
            of `n_rows` rows one after another, `n_draws` times; what is predicted given them is a member of an
            ensemble, which also values batches. Of a regressor's predictions a member keeps mean and sd.
        max_candidates: Of a block of candidates, those of largest predictive entropy, or sd, are conditioned on, at
            most so many; the others are taken to tell nothing.
        n_labels: Of a regressor, how many labels of a candidate are asked about, from 2.5 standard deviations below
            to as many above; what is predicted given others is taken to lie between.
        n_draws: Members, where labels are drawn.
        n_rows: Rows whose labels are drawn for each.
        batch_size: How many hypothetical sets of labels a model takes at once that has `predict_proba_batched` or
            `predict_batched`, as TabPFN has; 1: one at a time.
        random_state: Seeds the draws.

    Raises:
        StakesError: If arguments do not fit.
        TypeError: If the model has neither `predict_proba` nor quantiles.

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
        n_labels: int = 5,
        n_draws: int = 16,
        n_rows: int = 8,
        batch_size: int = 16,
        random_state: int = 0,
    ) -> None:
        levels = _level_argument(model)
        if not hasattr(model, "fit") or not (hasattr(model, "predict_proba") or levels):
            raise TypeError(
                f"a {type(model).__name__} has no fit and predict_proba, nor a predict with quantiles: InContext wants "
                "a classifier or a regressor such as those of TabICL and TabPFN"
            )
        rows, labels = X if hasattr(X, "iloc") else np.asarray(X), np.asarray(y)
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or len(np.unique(labels)) < 2:
            raise StakesError(
                f"X must be [n, p] and y [n], with two different labels at least; got {list(rows.shape)}, "
                f"{list(labels.shape)} and {len(np.unique(labels))} of them"
            )
        if (gaps := np.flatnonzero(is_gap(labels))).size:
            raise StakesError(f"y must hold a label for each row; it is missing in row {gaps[0]}")
        counts = {"max_candidates": max_candidates, "n_labels": n_labels, "n_draws": n_draws, "n_rows": n_rows}
        counts |= {"batch_size": batch_size}
        if joint not in ("conditioned", "drawn") or min(counts.values()) < 1 or n_labels < 2:
            raise StakesError(
                f'joint must be "conditioned" or "drawn", and {", ".join(counts)} at least 1 (n_labels 2); got '
                f"{joint!r} and {list(counts.values())}"
            )
        self.model, self.rows, self.joint, self.max_candidates = model, rows, joint, max_candidates
        self.n_draws, self.n_rows, self.batch_size, self.random_state = n_draws, n_rows, batch_size, random_state
        if hasattr(model, "predict_proba"):
            self.labels, self.classes_ = labels, np.unique(labels)
            self._answers: _Answers = _OfClasses(model, self.classes_)
        else:
            self.labels = labels.astype(np.float64)
            self._answers = _OfNumbers(model, str(levels), n_labels)

    def predict_proba(self, X: Any) -> Any:  # noqa: N803 (scikit-learn's name)
        """Marginals of a classifier by one pass.

        Args:
            X: [N, p]: rows.

        Returns:
            [N, C]: probabilities of the classes.

        Raises:
            TypeError: If the model is a regressor.
        """
        if not hasattr(self, "classes_"):
            raise TypeError(f"a {type(self.model).__name__} has no classes: predict_quantiles says what it predicts")
        return self._today(self._as_rows(X))

    def predict_quantiles(self, X: Any, levels: Any) -> Any:  # noqa: N803 (scikit-learn's name)
        """Marginals of a regressor by one pass.

        Args:
            X: [N, p]: rows.
            levels: [L]: probabilities from 0.00024 to 0.99976, beyond which those of the nearest are given.

        Returns:
            [N, L]: quantiles.

        Raises:
            TypeError: If the model is a classifier.
        """
        if hasattr(self, "classes_"):
            raise TypeError(f"a {type(self.model).__name__} has no quantiles: predict_proba says what it predicts")
        return np.stack([np.interp(ndtri(levels), _T, each) for each in self._today(self._as_rows(X))])

    def belief(self, pool: Any, contexts: Any) -> Belief:
        """What is believed of the labels of `pool` and the targets at `contexts`, jointly.

        Args:
            pool: [N, p]: candidates, a data frame if `X` was one.
            contexts: [M, p]: where answers will be needed.

        Returns:
            The belief.

        Raises:
            StakesError: If `X` was a data frame, and these are none with its columns.
        """
        rows, there = self._as_rows(pool), self._as_rows(contexts)
        make = self._drawn if self.joint == "drawn" else self._conditioned
        return make(_together([rows, there]), len(rows))

    def _as_rows(self, table: Any) -> Any:
        """Rows as the model is given them: a data frame with the columns of `X` in their order, or an array."""
        frame: Any = self.rows
        if not hasattr(frame, "iloc"):
            return np.asarray(table)
        wanted = list(frame.columns)
        if not hasattr(table, "iloc") or set(wanted) - set(table.columns):
            got = list(table.columns) if hasattr(table, "iloc") else type(table).__name__
            raise StakesError(f"rows must be a data frame with the columns {wanted}, as X was; got {got}")
        return table[wanted]

    def _today(self, asked: Any) -> Any:
        """[N, C | L]: what is predicted of rows given the labels so far."""
        self.model.fit(self.rows, self.labels)
        return self._answers.one(asked)

    def _given(self, both: Any, places: Any, labels: Any, asked: Any) -> Any:
        """[B, N, C | L]: what is predicted of rows at [B, N] of `both` once those at [B, r] have labels [B, r], too."""
        found = []
        several = self.batch_size > 1 and hasattr(self.model, self._answers.batched)
        for part in slices(len(places), self.batch_size if several else 1):
            X = [_together([self.rows, take_rows(both, each)]) for each in places[part]]  # noqa: N806
            y = [np.concatenate([self.labels, each]) for each in labels[part]]
            there = [take_rows(both, each) for each in asked[part]]
            if several:
                found.append(self._answers.several(X, y, there))
            else:
                self.model.fit(X[0], y[0])
                found.append(self._answers.one(there[0])[None])
        return np.concatenate(found)

    def _conditioned(self, both: Any, size: int) -> ConditionedBelief:
        """p(y | x) p(z | c, x, y), with p(z | c) kept as it is today.

        Networks are not coherent: p(z | c, x, y), averaged over y, is not quite p(z | c). Each class or cell of the
        target is scaled to that, so that a label is worth nothing for merely having been asked about.
        """
        answers, now, contexts = self._answers, self._today(both), np.arange(size, len(both))
        labels, own, doubt = answers.labels(now[:size])
        target, edges = answers.cells(now[size:])
        chosen = np.argsort(-doubt, kind="stable")[: self.max_candidates]
        place = np.full(size, -1)
        place[chosen] = np.arange(len(chosen))
        joint, count = np.empty((len(chosen), len(contexts), own.shape[1], target.shape[1])), labels.shape[1]
        for a, n in enumerate(chosen):
            asked = np.broadcast_to(contexts, (count, len(contexts)))
            predicted = self._given(both, np.full((count, 1), n), labels[n][:, None], asked)
            split = own[n][:, None, None] * answers.masses(predicted, edges)  # [J, M, G]
            total = split.sum(axis=0)
            known = np.where(total > 0.0, target / np.maximum(total, _TINY), 0.0)
            joint[a] = np.where(total > 0.0, split * known, own[n][:, None, None] * target).swapaxes(0, 1)
        return ConditionedBelief(joint, target, place, edges)

    def _drawn(self, both: Any, size: int) -> Belief:
        """Members: what is predicted once labels of some rows are drawn, each given those before it."""
        rng = np.random.default_rng(self.random_state)
        places = rng.integers(len(both), size=(self.n_draws, self.n_rows))  # [K, r]
        labels = np.empty((self.n_draws, 0), dtype=self.labels.dtype)
        for i in range(self.n_rows):
            predicted = self._given(both, places[:, :i], labels, places[:, i : i + 1])[:, 0]
            labels = np.concatenate([labels, self._answers.drawn(predicted, rng)[:, None]], axis=1)
        everywhere = np.broadcast_to(np.arange(len(both)), (self.n_draws, len(both)))
        return self._answers.ensemble(self._given(both, places, labels, everywhere), size)


def _together(tables: list[Any]) -> Any:
    """Rows of one table after those of another; types of columns are those of the first."""
    first = tables[0]
    if not hasattr(first, "iloc"):
        return np.concatenate(tables)
    columns = {name: np.concatenate([each[name].to_numpy() for each in tables]) for name in first.columns}
    return type(first)(columns).astype(dict(first.dtypes))
