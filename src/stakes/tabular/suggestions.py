"""Which rows of a table to label next, what their labels are worth, and why: one call for tables of any size.

A model is fitted to the labels, and the rows without one are the pool, of which the rows are chosen that `stakes.rank`
chooses. Without labels, or with labels of one class, rows are spread over the pool instead.

Sizes: N rows, n rows chosen.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from stakes._utils.arguments import Progress, affords, as_progress
from stakes._utils.array import constant, on_host
from stakes._utils.tables import Host
from stakes.beliefs import Belief, Distribution
from stakes.evaluation import AuditDraw, audit, bayes_prediction
from stakes.evaluation.audit import class_losses, moments_of
from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.losses import AnyLoss, CostMatrix, LogLoss
from stakes.models import DefaultModel, belief_of
from stakes.models.inspection import trained_weights
from stakes.ranking import (
    HelpedContext,
    Note,
    Offer,
    Outlook,
    Ranking,
    Reason,
    TrainedWeightWarning,
    cold_start,
    outlook,
    rank,
)
from stakes.ranking.cold_start import DISTANCE
from stakes.ranking.promises import Past, with_past
from stakes.ranking.query import at_least_one
from stakes.ranking.rank import WORTH
from stakes.tabular.loss_specs import LOSSES, build_loss, decisions_of, is_of_stakes, is_own
from stakes.tabular.model_specs import ModelSpec, build_model
from stakes.tabular.streamed import StreamedRows
from stakes.tabular.worksheet import Worksheet, as_targets

_OFFERS = 8  # labels that an outlook looks ahead, where fewer are asked for
_TOGETHER = _OFFERS  # rows at the head of an order that are chosen together, as for `suggest`
_ORDERED = 5000  # rows that an order goes by their worth; nobody labels as many before the next one
_APART = 200  # the same without a model: rows are looked for that are far from each other
_POSITIVE, _COUNTS = ModelSpec("log-gaussian-process"), ModelSpec("count-process")
_OF_COUNTS = "poisson-deviance"  # the loss that allows 0
_MOST_LABELS = 1000  # that a Gaussian process is fitted to within seconds, as `DefaultModel(max_gp_labels=)` has it
SPREAD = "spread over the rows that are left"
"""What rows are ranked by that follow the last of an old ranking."""


def suggest(
    sheet: Worksheet,
    n: int = 5,
    *,
    labels: Mapping[int, str] | None = None,
    pending: Collection[int] = (),
    excluded: Collection[int] = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
) -> tuple[Ranking, Outlook | None]:
    """The `n` rows of a table to label next, and what labels are worth.

    Args:
        sheet: The table.
        n: How many rows.
        labels: By row, those that are known; those of the table without.
        pending: Rows whose labels are on their way: they are not chosen, and count as known to come.
        excluded: Rows that are not to be chosen.
        budget: What is left to spend; rows that it does not pay for are passed over.
        n_jobs: Workers that score rows, as in `stakes.rank`.
        progress: True, or a function that is called with what is being done and the share that is done.

    Returns:
        The rows, by id and by position in the table, with notes on what was assumed; and what the next labels save
        (its ranking looks further ahead), None in a cold start.

    Raises:
        StakesError: If there is no row to choose, or the model cannot be fitted to the labels.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> from stakes.tabular import Brief, LossSpec, ModelSpec, read_worksheet, suggest
        >>> rows = [(f"r{x}", x, 2.0 * x if x < 4 else None) for x in range(9)]
        >>> brief = Brief("y", LossSpec("squared-error"), ModelSpec("bayesian-ridge"), id_column="id")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["id", "x", "y"], rows)
        ...     ranking, outlook = suggest(read_worksheet(f"{folder}/t.csv", brief), 2)
        >>> ranking.row_ids[0], outlook.advice
        ('r8', None)
    """
    found = suggest_with_model(
        sheet, n, labels=labels, pending=pending, excluded=excluded, budget=budget, n_jobs=n_jobs, progress=progress
    )
    return found.ranking, found.outlook


class Suggested(NamedTuple):
    """What `suggest` returns, and the model that it is from; None in a cold start."""

    ranking: Ranking
    outlook: Outlook | None
    fit: tuple[Any, AnyLoss, tuple[str, ...] | None] | None
    """The model, fitted, the loss, and all classes (None for numbers)."""
    raw: tuple[Offer, ...]
    """Offers by the model alone, whatever came of earlier ones."""


def suggest_with_model(
    sheet: Worksheet,
    n: int,
    *,
    labels: Mapping[int, str] | None = None,
    pending: Collection[int] = (),
    excluded: Collection[int] = (),
    budget: float | None = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
    past: Past | None = None,
) -> Suggested:
    """As `suggest`, in the light of what a campaign knows from the `past`."""
    at_least_one("n", n)
    known, show = sheet.labels if labels is None else labels, as_progress(progress)
    out, waiting = {*known, *excluded}, set(pending)
    rows = [row for row in range(len(sheet.ids)) if row not in out]
    if waiting.issuperset(rows):
        raise StakesError("every row has a label, is on its way to one, or is left out: there is none to choose")
    if why := _why_cold(sheet, known):
        return Suggested(_spread(sheet, rows, {*waiting, *known}, n, budget, why), None, None, ())
    show(f"fitting a model to {len(known)} labels", None)
    model, loss, classes, notes = fitted(sheet, known, rows)
    pool: Frame | StreamedRows
    costs: Host | float | None
    if sheet.stream is None:
        seen, pool, costs = rows, sheet.features.take(rows), None if sheet.costs is None else sheet.costs[rows]
    else:
        seen, pool, costs = [], sheet.stream, sheet.stream.costs
    pending_places = [place for place, row in enumerate(seen) if row in waiting]
    with explained(sheet, len(known)):
        found = outlook(
            model,
            loss,
            pool,
            n=max(n, _OFFERS),
            decisions=sheet.brief.decisions,
            costs=costs,
            budget=budget,
            pending=pending_places,
            classes=classes,
            random_state=sheet.brief.random_state,
            n_jobs=n_jobs,
            progress=show,
        )
    raw = found.offers
    if past is not None:
        free = np.delete(costs, pending_places) if isinstance(costs, np.ndarray) else None
        found = with_past(found, past, free)
    ranking = _renamed(found.ranking, sheet, seen, loss, classes)
    before, after = (
        (*_notes("table", sheet.notes), *notes, *_sampled(sheet, len(rows))),
        _fewer(n, len(ranking)),
    )
    ranking = replace(ranking, notes=(*before, *ranking.notes, *after))
    first = {name: getattr(ranking, name)[:n] for name in ("indices", "row_ids", "scores", "reasons")}
    return Suggested(replace(ranking, **first), replace(found, ranking=ranking), (model, loss, classes), raw)


def order_rows(
    sheet: Worksheet,
    *,
    labels: Mapping[int, str],
    pending: Collection[int] = (),
    excluded: Collection[int] = (),
    guess: bool = False,
    progress: bool | Progress = False,
) -> tuple[tuple[int, ...], dict[int, str]]:
    """All rows of a table that could be labelled, in the order in which to label them.

    The first are chosen for what they are worth together, as `suggest` does, the others each for what it is worth
    alone. Rows beyond the first 5000 follow as they stand in the table, and beyond the first 200 where there is no
    model yet.

    Args:
        sheet: The table, in memory.
        labels: By row, those that are known.
        pending: Rows whose labels are on their way: they are left out, and count as known to come.
        excluded: Rows that are left out.
        guess: Whether to say what the model would answer.
        progress: True, or a function that is called with what is being done and the share that is done.

    Returns:
        Positions in the table, and by position the model's guess, none where that was not asked for or in a cold start.

    Raises:
        StakesError: If the model cannot be fitted to the labels, or tells no guess.
    """
    show, out, waiting = as_progress(progress), {*labels, *excluded}, set(pending)
    rows = [row for row in range(len(sheet.ids)) if row not in out]
    free = [row for row in rows if row not in waiting]
    if not free:
        return (), {}
    if why := _why_cold(sheet, labels):
        found = _spread(sheet, rows, {*waiting, *labels}, min(_APART, len(free)), None, why)
        return _followed(found.indices, free), {}
    show(f"fitting a model to {len(labels)} labels", None)
    model, loss, classes, _ = fitted(sheet, labels, rows)
    asked: dict[str, Any] = {
        "costs": None if sheet.costs is None else sheet.costs[rows],
        "pending": [place for place, row in enumerate(rows) if row in waiting],
        "classes": classes,
        "random_state": sheet.brief.random_state,
        "progress": show,
    }
    pool = sheet.features.take(rows)
    with explained(sheet, len(labels)), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainedWeightWarning)  # `ask` and `suggest` say so
        first = rank(model, loss, pool, n=min(_TOGETHER, len(free)), **asked).indices
        others = rank(model, loss, pool, n=min(_ORDERED, len(free)), batch=False, **asked).indices
        order = _followed([rows[place] for place in dict.fromkeys([*first, *others])], free)
        return order, _guesses(sheet, model, order) if guess else {}


def _followed(first: Sequence[int], rows: Sequence[int]) -> tuple[int, ...]:
    """The first rows, and after them all others."""
    return tuple(dict.fromkeys([*first, *rows]))


def _guesses(sheet: Worksheet, model: Any, rows: Sequence[int]) -> dict[int, str]:
    """What a model answers for each row: a class, or a number of six digits."""
    if not hasattr(model, "predict"):
        raise StakesError(f"{chosen_model(sheet)[0].name} has no predict: it tells no guess. Leave the guess out")
    answers = on_host(model.predict(sheet.features.take(list(rows))))
    texts = (f"{float(each):.6g}" if sheet.task == "real" else str(each) for each in answers)
    return dict(zip(rows, texts, strict=True))


def draw_audit(
    sheet: Worksheet, n: int, *, labels: Mapping[int, str], rows: Sequence[int], random_state: np.random.Generator
) -> tuple[AuditDraw, Any, tuple[str, ...] | None, AnyLoss]:
    """Rows of a table that are drawn to test the model that its labels make.

    Args:
        sheet: The table.
        n: How many rows.
        labels: By row, those that the model is fitted to.
        rows: Which rows the loss is asked of: those that the draw counts by position.
        random_state: A generator.

    Returns:
        The draw, the answers on the rows drawn, all classes (None for numbers), and the loss.

    Raises:
        StakesError: If there is no model to test, or its answers are whole distributions.
    """
    if why := _why_cold(sheet, labels):
        raise StakesError(f"{why}: there is no model to test. Label some rows first (ask)")
    model, loss, classes, _ = fitted(sheet, labels, rows)
    with explained(sheet, len(labels)):
        found = audit(model, loss, sheet.features.take(list(rows)), n, classes=classes, random_state=random_state)
    if isinstance(found.answers, Distribution):
        raise StakesError(
            f"the answer to {sheet.brief.loss.name} is a whole distribution, which a campaign does not keep: draw the "
            "rows in Python, by stakes.audit"
        )
    return found.draw, on_host(found.answers)[list(found.draw.rows)], classes, loss


class Answers(NamedTuple):
    """What a model answers at rows of a table, and what it expects answers to lose there."""

    answers: Host
    """[M]"""
    losses: Host | None
    """[M, C]: of classes, what each answer loses under each class"""
    expected: Callable[[Host], Host]
    """of other answers [M], or of their losses [M, C] under each class: how much more they lose than its own [M]"""


def answers_at(
    sheet: Worksheet, fit: tuple[Any, AnyLoss, tuple[str, ...] | None], rows: Sequence[int]
) -> Answers | None:
    """The answers of a model at rows of a table; None where they are whole distributions, which are not kept."""
    model, loss, classes = fit
    table = sheet.features.take(list(rows))
    with explained(sheet, len(rows)):
        belief = belief_of(model, table.take([0]), table, classes=classes, random_state=sheet.brief.random_state)
        answers = bayes_prediction(loss, belief)
        if isinstance(answers, Distribution):
            return None
        found = np.asarray(on_host(answers), dtype=float)
        if classes is None:
            return Answers(found, None, partial(_expected_beyond, loss, belief, answers))
        losses = class_losses(loss, answers, len(rows), len(classes))
        likely = np.asarray(on_host(bayes_prediction(LogLoss(), belief)), dtype=float)
        own = _mean_losses(likely, losses)
        return Answers(found, losses, lambda others: _mean_losses(likely, others) - own)


def _mean_losses(likely: Host, losses: Host) -> Host:
    """[M]: what is impossible loses nothing, not even where it would be infinite."""
    return np.asarray(np.sum(likely * np.where(likely > 0.0, losses, 0.0), axis=1))


def _expected_beyond(loss: AnyLoss, belief: Belief, answers: Any, others: Host) -> Host:
    """[M]: how much more other answers to a number are expected to lose."""
    given = constant(others, belief.like)
    own = moments_of(loss, belief, answers).expected
    return np.asarray(moments_of(loss, belief, given).expected - own, dtype=float)


def whys(ranking: Ranking) -> tuple[str, ...]:
    """For each row of a ranking, the contexts at which its label helps most; its score says what it is worth."""
    return tuple(_why(reason, score) for reason, score in zip(ranking.reasons, ranking.scores, strict=True))


def _why(reason: Reason, score: float) -> str:
    if reason.ranked_by == DISTANCE:
        return "far from the rows above" if math.isfinite(score) else "drawn at random"
    if reason.ranked_by == SPREAD:
        return SPREAD
    parts = [] if reason.ranked_by == WORTH else [f"ranked by {reason.ranked_by}"]
    if reason.contexts:
        parts.append(f"tells most about {', '.join(map(_helped, reason.contexts))}")
    parts += [f"{reason.as_good} other rows are as good"] if reason.as_good else []
    return "; ".join(parts)


def _helped(context: HelpedContext) -> str:
    """S015 (16% of its worth; today 2.4)."""
    share = f"{context.share:.0%}" if context.share >= 0.01 else "<1%"
    return f"{context.row_id} ({share} of its worth; today {context.answer})"


def build_problem(
    sheet: Worksheet, labels: Mapping[int, str] | None = None
) -> tuple[Any, AnyLoss, Frame, Host, tuple[str, ...] | None]:
    """A model, a loss and data, from the rows of a table that have a label: what `stakes.simulate` takes.

    Args:
        sheet: The table.
        labels: By row; those of the table without.

    Returns:
        The model, not fitted yet, the loss, features [n, p], targets [n], and all classes (None for numbers).

    Raises:
        StakesError: If the loss or the model cannot be built for the labels.

    Examples:
        >>> import tempfile
        >>> from stakes.files import write_csv
        >>> from stakes.tabular import Brief, LossSpec, build_problem, read_worksheet
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/t.csv", ["x", "y"], [(1, 2.5), (2, 3.5), (3, None)])
        ...     sheet = read_worksheet(f"{folder}/t.csv", Brief("y", LossSpec("squared-error")))
        >>> model, loss, features, targets, classes = build_problem(sheet)
        >>> features.shape, targets.tolist(), classes
        ((2, 1), [2.5, 3.5], None)
    """
    known = sheet.labels if labels is None else labels
    classes, (spec, _) = sheet.classes(known), chosen_model(sheet)
    _refuse_zeros(spec, sheet.brief.loss.name, known)
    model = build_model(spec, sheet.task, classes, random_state=sheet.brief.random_state)
    rows = sorted(known)
    targets = as_targets([known[row] for row in rows], sheet.task)
    return model, build_loss(sheet.brief.loss, classes), sheet.features.take(rows), targets, classes


def fitted(
    sheet: Worksheet, labels: Mapping[int, str], others: Collection[int]
) -> tuple[Any, AnyLoss, tuple[str, ...] | None, tuple[Note, ...]]:
    """The model, fitted to labels by row (columns are encoded by the `others`, too), the loss, classes, and notes."""
    (spec, why), pool = chosen_model(sheet), sheet.features.take(sorted(others))
    _refuse_zeros(spec, sheet.brief.loss.name, labels)  # all of them, whichever are drawn
    used = _as_many_as_seconds_allow(sheet, spec, labels)
    if len(used) < len(labels):
        why = (
            *why,
            f"It is fitted to {len(used)} of the {len(labels)} labels, drawn with random_state "
            f"{sheet.brief.random_state}: its time grows with their cube. Any other model (--model) takes them all.",
        )
    model, loss, features, targets, classes = build_problem(sheet, used)
    known = {"pool": pool} if isinstance(model, DefaultModel) else {"columns__pool": pool}
    with explained(sheet, len(labels)), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(features, targets, **(known if len(pool) else {}))
    while_fitting = dict.fromkeys(f"While fitting: {each.message}" for each in caught)
    report = model.report if isinstance(model, DefaultModel) else _report(spec.name, model)
    notes = (*_notes("model", (*why, *report)), *_notes("fit warning", tuple(while_fitting)))
    return model, loss, classes, (*notes, *_notes("trained weights", _weighed_twice(sheet, model)))


def _report(name: str, model: Any) -> tuple[str, ...]:
    """What was done to columns, and what the model says of itself."""
    last = model[-1]
    while isinstance(last, Pipeline):
        last = last[-1]
    return (f"The model is {name}.", *model[0].report_, *getattr(last, "report_", ()))


def _as_many_as_seconds_allow(sheet: Worksheet, spec: ModelSpec, labels: Mapping[int, str]) -> Mapping[int, str]:
    """The labels that a model is fitted to: all, but for the Gaussian process that nobody asked for by name."""
    if spec == sheet.brief.model or len(labels) <= _MOST_LABELS:
        return labels
    rows = np.random.default_rng(sheet.brief.random_state).choice(sorted(labels), _MOST_LABELS, replace=False)
    return {row: labels[row] for row in sorted(rows.tolist())}


def chosen_model(sheet: Worksheet) -> tuple[ModelSpec, tuple[str, ...]]:
    """The model of the brief, and notes; for a positive target the default is one that knows that."""
    brief = sheet.brief
    positive = brief.loss.name in LOSSES and LOSSES[brief.loss.name].target == "positive target"
    if not positive or brief.model != ModelSpec():
        return brief.model, ()
    if brief.loss.name == _OF_COUNTS:
        return _COUNTS, (f"{brief.loss.name} is about counts, which may be 0, so the model is {_COUNTS.name}.",)
    return _POSITIVE, (f"{brief.loss.name} is about positive numbers, so the model is {_POSITIVE.name}.",)


@contextmanager
def explained(sheet: Worksheet, n_labels: int) -> Iterator[None]:
    """A block in which what a user's own class raises, or a library refuses, is named as that."""
    try:
        yield
    except StakesError:
        raise
    except Exception as error:
        name, what = chosen_model(sheet)[0].name, f"{type(error).__name__}: {error}"
        for kind, path in (("model", name), ("loss", sheet.brief.loss.name)):
            if is_own(error, path):
                raise StakesError(f"your {kind} {path} raised {what}") from error
        refused = isinstance(error, ValueError | TypeError | ArithmeticError) and not is_of_stakes(error)
        if refused or isinstance(error, FloatingPointError):
            called = "the default model" if name == "default" else f"the model {name}"
            raise StakesError(f"{called} cannot be used with {n_labels} labels: {error}") from error
        raise


def _refuse_zeros(spec: ModelSpec, loss: str, labels: Mapping[int, str]) -> None:
    """Some losses allow 0, whose logarithm no model can learn from."""
    zeros = sum(float(label) == 0.0 for label in labels.values()) if spec == _POSITIVE else 0
    if zeros:
        raise StakesError(
            f"{zeros} of {len(labels)} labels are 0, and {spec.name}, the model for {loss}, learns logarithms. Take "
            f"the model {_COUNTS.name} (--model {_COUNTS.name}), which allows 0"
        )


def _weighed_twice(sheet: Worksheet, model: Any) -> tuple[str, ...]:
    """A caution where classes are weighed in training, and again in the loss."""
    weighs = sheet.brief.loss.class_weights or sheet.brief.loss.cost_matrix
    found = trained_weights(model) if weighs else None
    return () if found is None else (found[0].upper() + found[1:],)


def _sampled(sheet: Worksheet, count: int) -> tuple[Note, ...]:
    """A note where some rows in memory stand for all in the file."""
    if sheet.stream is None or count == sheet.stream.n_rows:
        return ()
    text = (
        f"The table stays in its file: {count} of its {sheet.stream.n_rows} rows without a label, drawn with "
        f"random_state {sheet.brief.random_state}, tell what its columns hold, and ids are looked up for the rows "
        "named only."
    )
    return (_note("sample of the file", text),)


def _note(kind: str, text: str) -> Note:
    return Note(kind, {"text": text})


def _notes(kind: str, sentences: Sequence[str]) -> tuple[Note, ...]:
    return tuple(_note(kind, sentence) for sentence in sentences)


def _why_cold(sheet: Worksheet, labels: Mapping[int, str]) -> str | None:
    """Why no model can tell what a label is worth; None where one can."""
    if not labels:
        return "There is no label yet"
    if sheet.task == "classes" and len(set(labels.values())) == 1:
        return f"All {len(labels)} labels are of one class, {next(iter(labels.values()))!r}"
    return None


def _spread(sheet: Worksheet, pool: list[int], known: set[int], n: int, budget: float | None, why: str) -> Ranking:
    """Rows spread over those of the pool that the budget pays for, away from rows that are known or asked for."""
    cost = np.ones(len(sheet.ids)) if sheet.costs is None else sheet.costs
    free = [row for row in pool if row not in known and affords(budget, 0.0, float(cost[row]))]
    notes = (*_notes("table", sheet.notes), _note("no model", f"{why}: no model can tell what a label is worth."))
    if not free:
        reason = _note("nothing within the budget", "The budget covers no label.")
        return Ranking((), (), (), False, DISTANCE, (), (*notes, reason))
    found = cold_start(
        sheet.features.take(free),
        n=n,
        known=sheet.features.take(sorted(known)) if known else None,
        costs=None if sheet.costs is None else sheet.costs[free],
        budget=budget,
        random_state=sheet.brief.random_state,
    )
    ranking = _renamed(found, sheet, free, None, None)
    return replace(ranking, notes=(*notes, *ranking.notes, *_sampled(sheet, len(pool))))


def _fewer(n: int, count: int) -> tuple[Note, ...]:
    """A note where fewer rows were chosen than were asked for."""
    text = f"{n} rows were asked for; {count} could be chosen."
    return () if count >= n else (Note("fewer rows", {"n": n, "count": count, "text": text}),)


def _renamed(
    ranking: Ranking, sheet: Worksheet, seen: Sequence[int], loss: AnyLoss | None, classes: Sequence[str] | None
) -> Ranking:
    """The ranking with positions in the table and ids, in place of positions in what was looked at (`seen`)."""
    places = {*ranking.indices, *(each.index for reason in ranking.reasons for each in reason.contexts)}
    named = _named(sheet, seen, sorted(places))
    decisions = decisions_of(sheet.brief.loss, classes or ()) if isinstance(loss, CostMatrix) else ()
    by_name = decisions if sheet.brief.loss.cost_matrix is not None else ()
    reasons = tuple(
        replace(reason, contexts=tuple(_context(each, named, by_name) for each in reason.contexts))
        for reason in ranking.reasons
    )
    rows, ids = zip(*(named[place] for place in ranking.indices), strict=True) if len(ranking) else ((), ())
    return replace(ranking, indices=tuple(rows), row_ids=tuple(ids), reasons=reasons)


def _named(sheet: Worksheet, seen: Sequence[int], places: list[int]) -> dict[int, tuple[int, str]]:
    """For places in what was looked at the position in the table, and the id."""
    if sheet.stream is None or seen:
        return {place: (sheet.source.number(seen[place]) - 1, sheet.ids[seen[place]]) for place in places}
    rows = sheet.stream.rows(np.asarray(places, dtype=np.intp))
    ids = sheet.stream.worksheet(rows).ids if len(rows) else ()
    return dict(zip(places, zip(rows.tolist(), ids, strict=True), strict=True))


def _context(context: HelpedContext, named: Mapping[int, tuple[int, str]], decisions: Sequence[str]) -> HelpedContext:
    """A context by its id, with the decision there by its name."""
    row, name = named[context.index]
    known = replace(context, index=row, row_id=name)
    if not decisions:
        return known
    decision = decisions[int(context.prediction)]
    return replace(known, prediction=decision, answer=f"decision {decision!r}")
