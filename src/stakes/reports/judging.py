"""What a model fitted to some of the labels expects to lose, and what it loses on labels that it has not seen.

Sizes: n labels, M contexts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stakes._array import constant
from stakes.evaluation import bayes_prediction, realised_loss
from stakes.models import belief_of
from stakes.models.tables import Host, on_host
from stakes.ranking.prospects import expected_loss
from stakes.ranking.question import Question, ask
from stakes.worksheets import Worksheet
from stakes.worksheets.fitting import Fitted, fitted
from stakes.worksheets.labels import as_targets

FOLDS = 5
FEWEST = 8  # labels for which folds tell anything
_MOST = 500  # contexts: a picture needs no more


@dataclass(frozen=True)
class Point:
    """A loss after a number of labels."""

    labels: int
    loss: float
    error: float
    """Its standard error."""


def question_of(sheet: Worksheet, found: Fitted, pool: Sequence[int]) -> Question:
    """What is asked of a fitted model: the rows of the pool, some of which stand for the future."""
    loss: Any = found.loss
    features = sheet.features.take(pool)
    return ask(found.model, loss, features, None, None, "label", found.classes, sheet.brief.seed, _MOST, None)[0]


def expected(sheet: Worksheet, labels: Mapping[int, str], pool: Sequence[int]) -> Point:
    """The loss of a decision at rows of the pool, as the model that knows these labels expects it."""
    amount = expected_loss(question_of(sheet, fitted(sheet, labels, pool), pool))
    return Point(len(labels), amount.value, amount.error)


def realised(sheet: Worksheet, labels: Mapping[int, str], pool: Sequence[int]) -> Point:
    """The loss on the labels themselves, each judged by a model that has not seen it (five folds)."""
    rows = np.asarray(sorted(labels))
    fold = folds([labels[row] for row in rows], sheet.task == "classes", sheet.brief.seed)
    each = [_unseen(sheet, labels, rows[fold != part], rows[fold == part], pool) for part in range(FOLDS)]
    losses = np.concatenate(each)  # [n]
    return Point(len(rows), float(losses.mean()), float(losses.std(ddof=1) / np.sqrt(len(losses))))


def folds(labels: Sequence[str], classes: bool, seed: int) -> Host:
    """[n]: the fold of each label, dealt out in turn, class by class: two of a class are never in one fold alone."""
    luck = np.random.default_rng(seed).permutation(len(labels))
    order = sorted(range(len(labels)), key=lambda place: (labels[place] if classes else "", luck[place]))
    dealt = np.empty(len(labels), dtype=int)
    dealt[order] = np.arange(len(labels)) % FOLDS
    return dealt


def no_folds(labels: Sequence[str], classes: bool) -> str | None:
    """Why labels cannot be judged by folds; None where they can."""
    if len(labels) < FEWEST:
        return f"cross-validation takes {FEWEST} labels"
    rare = [name for name in sorted(set(labels)) if labels.count(name) < 2] if classes else []
    return f"class {rare[0]!r} has one label only, and cross-validation takes two" if rare else None


def _unseen(sheet: Worksheet, labels: Mapping[int, str], seen: Host, unseen: Host, pool: Sequence[int]) -> Host:
    """[n]: losses on `unseen` rows of the model that knows the labels of the `seen`."""
    found = fitted(sheet, {row: labels[row] for row in seen.tolist()}, [*pool, *unseen.tolist()])
    table = sheet.features.take(unseen)
    rng = np.random.default_rng(sheet.brief.seed)
    belief = belief_of(found.model, table.take([0]), table, classes=found.classes, rng=rng)
    targets = _targets([labels[row] for row in unseen.tolist()], found.classes)
    return on_host(realised_loss(found.loss, bayes_prediction(found.loss, belief), constant(targets, belief.like)).each)


def _targets(labels: Sequence[str], classes: Sequence[str] | None) -> Host:
    """[n]: as losses count them."""
    return as_targets(labels, "real") if classes is None else np.asarray([classes.index(label) for label in labels])
