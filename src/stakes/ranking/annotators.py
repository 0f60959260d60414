"""Whom to ask about which row: pairs of a row and an annotator, by what the opinion is worth for its price.

A model is fitted to opinions that may be wrong, together with how reliable each annotator is. A row that has an opinion
is a candidate like any other: what a second one is worth is what it tells of the first and of the rows around it. So
asking again competes with asking anew, and a cheap annotator with an expensive one.

Sizes: N rows of the table, n rows with a label or an opinion, C classes, P pairs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from stakes._utils.arguments import DRAWS, ROWS, SUBSAMPLE, RandomState, affords, as_seed, check_budget, generator
from stakes._utils.tables import Host, n_rows, take_rows
from stakes._utils.text import counted, number
from stakes.acquisition import score, select
from stakes.acquisition.batch_states import obstacle
from stakes.beliefs import Belief, CategoricalEnsemble, noisy_labels
from stakes.evaluation import Annotators, estimate_annotators
from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.models import DefaultModel, LabelDraws, prepare_belief

_USUAL = 0.8  # accuracy of an annotator of whom no opinion is known
_SHORTLIST = 40  # pairs that are looked at together
_SAMPLED = 256  # configurations of the labels of a batch under an ensemble
_LEAST = 1e-6  # of a probability, so that no opinion is impossible
_STRENGTH = 5.0  # labels that what is taken of each row of a confusion matrix beforehand counts for
_COLDNESS = 2.0  # the power of what an opinion is worth for its price, in proportion to which money is spent


@dataclass(frozen=True, eq=False)
class OpinionFit:
    """A model that was fitted to opinions, and the annotators who gave them.

    Attributes:
        model: A `LabelDraws` for classes; for numbers the model that was given, or a `DefaultModel`.
        believed: How reliable each annotator is as the model takes them, by which opinions are ranked; None while there
            is no opinion, or none of a number on a row that has two.
        table: [N, p]: all rows, with an opinion or without.
        rows: [n]: positions of the rows with a known label or an opinion, in the order in which the model has them.
        known: Positions of rows whose label is beyond doubt.
        opinions: Triples (row, annotator, label).
        classes: All classes in the order of columns; none for numbers.

    Examples:
        >>> import numpy as np
        >>> from stakes.ranking import fit_to_opinions
        >>> X = np.r_[np.linspace(0.0, 1.0, 20), np.linspace(5.0, 6.0, 20)][:, None]
        >>> opinions = [(row, who, int(row >= 20)) for row in range(0, 40, 4) for who in ("ann", "bob")]
        >>> fit = fit_to_opinions(X, opinions, classes=[0, 1])
        >>> len(fit.rows), list(fit.annotators.by_name)
        (10, ['ann', 'bob'])
    """

    model: Any
    believed: Annotators | None
    table: Any
    rows: Host
    known: frozenset[int]
    opinions: tuple[tuple[int, str, Any], ...]
    classes: tuple[Any, ...]

    @cached_property
    def annotators(self) -> Annotators | None:
        """How reliable each is, with what the model says of rows recalibrated, as it learned from the same opinions."""
        if self.believed is None or not self.classes:
            return self.believed
        certain = np.asarray([row in self.known for row in self.rows.tolist()])[:, None]
        before = dict(zip(self.rows.tolist(), np.where(certain, self.model.posterior_, self.model.prior_), strict=True))
        return estimate_annotators(
            self.opinions, classes=self.classes, task="classes", row_probabilities=before, recalibrate=True
        )


@dataclass(frozen=True)
class OpinionOffer:
    """An opinion that could be asked for.

    Attributes:
        row: The position of the row.
        annotator: Whom to ask.
        worth: What it is expected to save for one decision, in units of the loss, alone.
        price: What it costs.
        before: How many opinions there are on the row already.

    Examples:
        >>> from stakes.ranking import OpinionOffer
        >>> print(OpinionOffer(row=3, annotator="ann", worth=0.02, price=5.0, before=1))
        row 3 by ann (opinion 2 on it): worth 0.02 for 5
    """

    row: int
    annotator: str
    worth: float
    price: float
    before: int

    def __str__(self) -> str:
        again = f" (opinion {self.before + 1} on it)" if self.before else ""
        return f"row {self.row} by {self.annotator}{again}: worth {number(self.worth)} for {number(self.price)}"


def fit_to_opinions(
    table: Any,
    opinions: Iterable[tuple[int, str, Any]],
    *,
    known: Mapping[int, Any] | None = None,
    classes: Sequence[Any] | None = None,
    model: Any = None,
    random_state: RandomState = 0,
) -> OpinionFit:
    """Fit a model to labels that may be wrong, and estimate how reliable those are who gave them.

    Classes: annotators are estimated with what the model says of each row without its own label, the model is fitted to
    what they say, and so on, from the start at every call: a fit that goes on from an earlier one keeps its errors.
    What the model says is recalibrated in the end, as it learned from the same opinions. Each copy of the classifier
    takes annotators for as reliable as a draw from what is known of that. Numbers: opinions less the bias of their
    annotators are averaged, weighted by precision.

    Args:
        table: [N, p]: all rows, those without an opinion too.
        opinions: Triples (position of a row, annotator, label).
        known: By position: labels that are beyond doubt. Opinions on these rows tell most of how reliable annotators
            are: ask each about ten of them first.
        classes: All classes in the order of the loss; None where labels are numbers.
        model: For classes a `LabelDraws`, or a classifier with `predict_proba` for one, None for extremely randomised
            trees; for numbers an estimator, None for the default one.
        random_state: A whole number or a generator.

    Returns:
        The model and the annotators.

    Raises:
        StakesError: If there is no label at all, a position is beyond the table, or a label is no class.

    Examples:
        >>> import numpy as np
        >>> X = np.r_[np.linspace(0.0, 1.0, 20), np.linspace(5.0, 6.0, 20)][:, None]
        >>> opinions = [(row, "ann", "low" if row < 20 else "high") for row in range(1, 40, 2)]
        >>> fit = fit_to_opinions(X, [*opinions, (7, "bob", "high")], known={0: "low"}, classes=["low", "high"])
        >>> fit.model.predict(X[[2, 30]]).tolist()
        ['low', 'high']
    """
    given = tuple((int(row), str(name), label) for row, name, label in opinions)
    sure = dict(known or {})
    rows = np.asarray(list(dict.fromkeys([*sure, *(row for row, _, _ in given)])), dtype=int)
    count = n_rows(table)
    if len(rows) == 0:
        raise StakesError("there is no label to fit a model to: stakes.cold_start(table) says which rows to ask first")
    if rows.min() < 0 or rows.max() >= count:
        raise StakesError(f"opinions must be on rows 0 to {count - 1} of the table; got one on row {rows.max()}")
    seed = as_seed(random_state)
    parts = (model, table, rows, sure, given)
    fitted, annotators = _fit_numbers(*parts, seed) if classes is None else _fit_classes(*parts, list(classes), seed)
    return OpinionFit(fitted, annotators, table, rows, frozenset(sure), given, tuple(classes or ()))


def rank_opinions(
    fit: OpinionFit,
    loss: AnyLoss,
    *,
    prices: Mapping[str, float],
    contexts: Any = None,
    n: int = 10,
    budget: float | None = None,
    max_contexts: int = 250,
    max_rows: int = 2000,
    choice: Literal["together", "drawn", "best"] = "together",
    noise: Mapping[str, Any] | None = None,
    repeat: bool = False,
    excluded: Collection[int] = (),
    random_state: RandomState = 0,
) -> list[OpinionOffer]:
    """The opinions that are worth most for their price: which rows to ask whom about, again or for the first time.

    Args:
        fit: What `fit_to_opinions` gives.
        loss: What being wrong costs.
        prices: By annotator: what an opinion costs. Only these are asked; one who gave no opinion yet is taken to be
            right in 80% of cases, or as noisy as the others.
        contexts: [M, p]: rows at which answers will be needed; None: those of the table, `max_contexts` of them.
        n: How many opinions.
        budget: What they may cost together.
        max_contexts: The most rows of the table that stand for the future.
        max_rows: The most rows without an opinion that are looked at.
        choice: "together" for what opinions add to those before them, of the 40 best alone; "best" for what each is
            worth alone, one on a row; "drawn" for a large batch at little cost: rows are drawn so that money is spent
            in proportion to the square of what their best opinion is worth for its price, and not all are of one kind.
        noise: By annotator: a confusion matrix [C, C] or a noise variance, where it is known better than from opinions.
        repeat: Whether somebody may be asked twice about a row, as where a name stands for a crowd: one person would
            say the same again.
        excluded: Positions of rows that are not to be asked about.
        random_state: A whole number or a generator.

    Returns:
        Opinions in the order in which they were chosen.

    Raises:
        StakesError: If no annotator is given, or a price is not above 0.

    Examples:
        Two groups of rows; a student is right in most cases and an expert, who costs five times as much, in nearly all:

        >>> import numpy as np
        >>> from stakes import ZeroOne
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(80, 2)) + np.repeat([[-1.5], [1.5]], 40, axis=0)
        >>> truth = np.repeat([0, 1], 40)
        >>> opinions = [(i, "student", int(truth[i] ^ (rng.random() < 0.2))) for i in range(0, 80, 2)]
        >>> opinions += [(i, "expert", int(truth[i])) for i in range(0, 80, 4)]
        >>> fit = fit_to_opinions(X, opinions, classes=[0, 1])
        >>> ranked = rank_opinions(fit, ZeroOne(), prices={"student": 1.0, "expert": 5.0}, n=3)
        >>> [each.annotator for each in ranked]
        ['expert', 'student', 'expert']
    """
    names = list(prices)
    if not names or not all(np.isfinite(prices[name]) and prices[name] > 0 for name in names):
        raise StakesError(f"prices must hold a number above 0 for each annotator to ask; got {dict(prices)!r}")
    check_budget(budget)
    seed = as_seed(random_state)
    if choice not in ("together", "drawn", "best"):
        raise StakesError(f"choice must be 'together', 'drawn' or 'best'; got {choice!r}")
    rows = _candidates(fit, max_rows, set(excluded), seed)
    there = contexts if contexts is not None else _drawn_contexts(fit, max_contexts, seed)
    belief = opinion_belief(fit, rows, there, joint=choice == "together")
    noises = {name: annotator_noise(fit, name) if name not in (noise or {}) else (noise or {})[name] for name in names}
    worths = np.stack([np.asarray(score(loss, noisy_labels(belief, noises[name]))) for name in names])  # [A, N]
    costs = np.asarray([prices[name] for name in names], dtype=float)
    before = dict(zip(*np.unique([row for row, _, _ in fit.opinions], return_counts=True), strict=True))

    def opinion(place: int, who: int) -> OpinionOffer:
        row = int(rows[place])
        return OpinionOffer(row, names[who], float(worths[who, place]), float(costs[who]), int(before.get(row, 0)))

    value = worths / costs[:, None]  # [A, N]
    given = set() if repeat else {(row, name) for row, name, _ in fit.opinions}
    value[[[(row, name) in given for row in rows.tolist()] for name in names]] = -np.inf
    if not np.isfinite(value).any():
        raise StakesError(f"{', '.join(names)} labelled all rows that are not beyond doubt: there is nothing to ask")
    if choice == "drawn":
        spread = generator(seed, DRAWS).gumbel(size=len(rows))  # the largest of log p + Gumbel noise is a draw from p
        best = value.argmax(axis=0)  # [N]
        with np.errstate(divide="ignore"):
            log_weights = _COLDNESS * np.log(np.maximum(value.max(axis=0), 0.0)) - np.log(costs[best])  # logarithms
        order = np.argsort(-(log_weights + spread), kind="stable")
        drawn = [(int(place), int(best[place])) for place in order if np.isfinite(value[best[place], place])]
        return _affordable(drawn, opinion, n, budget)
    order = np.argsort(-value, axis=None, kind="stable")[: int(np.isfinite(value).sum())]
    pairs = [(int(place), int(who)) for who, place in zip(*np.unravel_index(order, value.shape), strict=True)]
    if choice == "best" or obstacle(belief) is not None:
        return _affordable(pairs, opinion, n, budget)
    pairs = pairs[: max(_SHORTLIST, 2 * n)]
    places, people = (list(side) for side in zip(*pairs, strict=True))
    asked = noisy_labels(belief, np.stack([np.asarray(noises[names[who]]) for who in people]), places)
    size, price = min(n, len(pairs)), costs[people]
    chosen = select(loss, asked, n=size, costs=price, budget=budget, random_state=seed, max_configurations=_SAMPLED)
    return [opinion(*pairs[index]) for index in chosen.indices]


def _affordable(pairs: Sequence[tuple[int, int]], opinion: Any, n: int, budget: float | None) -> list[OpinionOffer]:
    """The first pairs, one on a row, as far as the budget reaches."""
    found: dict[int, OpinionOffer] = {}
    spent = 0.0
    for place, who in pairs:
        if len(found) == n:
            break
        if place in found or not affords(budget, spent, (each := opinion(place, who)).price):
            continue
        found[place] = each
        spent += each.price
    return list(found.values())


def opinion_belief(fit: OpinionFit, rows: Host, contexts: Any, *, joint: bool = False) -> Belief:
    """What is believed of the true labels of some rows of the table, and of targets at the contexts.

    Args:
        fit: What `fit_to_opinions` gives.
        rows: [P]: positions, of rows with an opinion too.
        contexts: [M, p].
        joint: Whether covariances between rows are wanted.

    Returns:
        The belief; of classes, its members hold of a row with an opinion what they were fitted to.
    """
    if not fit.classes:
        return prepare_belief(fit.model, contexts, joint=joint)(take_rows(fit.table, rows))
    model: LabelDraws = fit.model
    members = model.members(take_rows(fit.table, rows))
    place = {int(row): at for at, row in enumerate(fit.rows)}
    labelled = np.flatnonzero([int(row) in place for row in rows])
    if len(labelled):
        positions = np.asarray([place[int(row)] for row in rows[labelled]])
        members[labelled] = model.labelled_members(take_rows(fit.table, rows[labelled]), positions)
    return CategoricalEnsemble(members, model.members(contexts))


def annotator_noise(fit: OpinionFit, name: str) -> Any:
    """The confusion matrix [C, C] of an annotator, or the variance of their noise.

    Args:
        fit: What `fit_to_opinions` gives.
        name: The annotator; one without opinions is taken to be right in 80% of cases, or as noisy as the others.

    Returns:
        What `noisy_labels` takes.
    """
    if fit.believed is not None and name in fit.believed.by_name:
        found = fit.believed[name]
        return found.confusion if fit.classes else np.asarray(found.sd**2)
    if fit.classes:
        return _usual(len(fit.classes))
    others = [] if fit.believed is None else [each.sd**2 for each in fit.believed.by_name.values()]
    return np.asarray(np.median(others) if others else 0.0)


def _usual(count: int) -> Host:
    return np.where(np.eye(count, dtype=bool), _USUAL if count > 1 else 1.0, (1.0 - _USUAL) / max(1, count - 1))


def _candidates(fit: OpinionFit, most: int, excluded: set[int], seed: int) -> Host:
    """Positions of rows that are not beyond doubt: all that have an opinion, and others."""
    size = n_rows(fit.table)
    open_rows = np.setdiff1d(np.arange(size), [*fit.rows.tolist(), *excluded])
    if len(open_rows) > most:
        open_rows = np.sort(generator(seed, ROWS).choice(open_rows, most, replace=False))
    again = np.asarray([row for row in fit.rows.tolist() if row not in fit.known | excluded], dtype=int)
    if len(open_rows) + len(again) == 0:
        raise StakesError(f"all {counted(size, 'row')} have a label that is beyond doubt, or are left out: none to ask")
    return np.concatenate([open_rows, again])


def _drawn_contexts(fit: OpinionFit, most: int, seed: int) -> Any:
    size = n_rows(fit.table)
    if size <= most:
        return fit.table
    return take_rows(fit.table, np.sort(generator(seed, SUBSAMPLE).choice(size, most, replace=False)))


def _fit_classes(
    model: Any,
    table: Any,
    rows: Host,
    sure: Mapping[int, Any],
    opinions: Sequence[tuple[int, str, Any]],
    classes: list[Any],
    seed: int,
) -> tuple[LabelDraws, Annotators | None]:
    place, here = {name: at for at, name in enumerate(classes)}, take_rows(table, rows)
    if unknown := [label for label in (*sure.values(), *(each[2] for each in opinions)) if label not in place]:
        raise StakesError(f"labels must be among the classes {classes}; got {unknown[0]!r}")
    certain = {row: np.eye(len(classes))[place[label]] for row, label in sure.items()}
    annotators: Annotators | None = None
    fitted = clone(model) if isinstance(model, LabelDraws) else LabelDraws(model)
    rounds = fitted.rounds if opinions else 1
    fitted.set_params(rounds=1, random_state=seed)
    at, rng = {row: i for i, row in enumerate(rows.tolist())}, generator(seed, DRAWS)
    start = np.ones((len(rows), len(classes))) / len(classes)

    def estimated() -> Annotators:
        before = {**dict(zip(rows.tolist(), start, strict=True)), **certain}
        return estimate_annotators(opinions, classes=classes, task="classes", row_probabilities=before)

    for _ in range(rounds):
        likelihoods = np.ones((fitted.copies, len(rows), len(classes)))
        drawn: dict[str, Host] = {}
        if opinions:
            annotators = estimated()
            labels = _labels_by_class(annotators, opinions)
            drawn = {
                name: _drawn_confusions(each.confusion, _STRENGTH + labels[name], fitted.copies, rng)
                for name, each in annotators.by_name.items()
            }
        for row, name, label in opinions:
            likelihoods[:, at[row]] *= drawn[name][:, :, place[label]]
        for row, known in certain.items():
            likelihoods[:, at[row]] = known
        fitted.fit(here, likelihoods, classes=classes, start=start, pool=table)
        start = fitted.prior_
    return fitted, estimated() if opinions else None


def _labels_by_class(annotators: Annotators, opinions: Sequence[tuple[int, str, Any]]) -> dict[str, Host]:
    """[C] of each annotator: how many rows of each class they are expected to have labelled."""
    truth = dict(zip(annotators.rows, annotators.truth, strict=True))
    found = {name: np.zeros(len(annotators.classes)) for name in annotators.by_name}
    for row, name, _ in opinions:
        found[name] += truth[row]
    return found


def _drawn_confusions(confusion: Host, labels: Host, size: int, rng: np.random.Generator) -> Host:
    """[K, C, C]: matrices that may be an annotator's: each row as so many labels [C] of its class leave it open."""
    drawn = rng.standard_gamma(labels[:, None] * confusion, size=(size, *confusion.shape)) + _LEAST
    return np.asarray(drawn / drawn.sum(axis=2, keepdims=True))


def _fit_numbers(
    model: Any,
    table: Any,
    rows: Host,
    sure: Mapping[int, Any],
    opinions: Sequence[tuple[int, str, Any]],
    seed: int,
) -> tuple[Any, Annotators | None]:
    counts = np.unique([row for row, _, _ in opinions], return_counts=True)[1]
    annotators = estimate_annotators(opinions, task="real") if (counts > 1).any() else None
    labels: dict[int, float] = {}
    if annotators is not None:
        labels = dict(zip(annotators.rows, annotators.truth.tolist(), strict=True))
    else:
        labels = {row: float(label) for row, _, label in opinions}
    labels.update({row: float(label) for row, label in sure.items()})
    fitted = DefaultModel("real", random_state=seed) if model is None else clone(model)
    extra = {"pool": table} if isinstance(fitted, DefaultModel) else {}
    return fitted.fit(take_rows(table, rows), np.asarray([labels[row] for row in rows.tolist()]), **extra), annotators
