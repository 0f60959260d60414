"""Audits of a campaign: rows that test the model, drawn at random, whose labels tell what it loses today.

Of an audit the answers of the model at the time of the draw are kept, not the model: whatever it learns meanwhile, an
audit is of the model as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes._utils.arguments import Progress, affordable, as_progress
from stakes._utils.text import counted
from stakes.campaign.kept import AUDIT, fits_number, fits_text, fits_whole, kept_list
from stakes.campaign.opinions import trained_on
from stakes.campaign.project import Project
from stakes.campaign.rankings import IN_VAIN
from stakes.campaign.sqlite import damaged, kept_in
from stakes.campaign.standing import Standing, budget_left, standing_of
from stakes.campaign.states import Record
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.evaluation import AuditDraw, AuditedLoss
    from stakes.tabular import Worksheet


def begin_audit(project: Project, n: int, *, who: str | None, progress: bool | Progress) -> tuple[str, ...]:
    """Draw rows to test the model on: their labels tell what it loses today, on all rows that are open."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise StakesError(f"the number of rows to draw must be a whole number, 1 or more; got {n!r}")
    show = as_progress(progress)
    project.refuse_untrusted()
    project.sheet  # noqa: B018 (a table that is gone or changed is refused)
    for _ in range(IN_VAIN):
        now = standing_of(project)
        if under_way := now.those("testing"):
            raise StakesError(
                f"an audit is under way: {len(under_way)} of its rows have no label yet, such as {under_way[0]!r}. "
                "Tell their labels, skip what cannot be labelled, or end it (audit --read). Nothing was drawn."
            )
        show("fitting a model to the labels", None)
        rows, payload = draw_test_rows(project, now, n)
        if project.journal.test(rows, AUDIT, payload, who=who):
            return rows
    raise StakesError(f"others took rows {IN_VAIN} times while they were drawn; repeat the call. Nothing was drawn.")


def end_audit(project: Project, *, use_for_training: bool, who: str | None) -> AuditedLoss:
    """End the last audit, and tell what the model loses by it."""
    kept = last_audit(project)
    if kept is None:
        raise StakesError("there is no audit to read; begin one (audit)")
    found = _audited(project, kept)
    if found is None:
        raise StakesError(
            f"the first row of the audit, {kept.rows[0]!r}, has no label yet, and an audit is read in the order in "
            "which its rows were drawn. Tell it, or skip it if it cannot be labelled. Nothing was recorded."
        )
    project.journal.use_results(release=True, use=use_for_training, who=who)
    return found


def draw_test_rows(project: Project, now: Standing, n: int) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Rows to test the model on, and what is kept of the draw."""
    free, labels = set(now.those("open")), trained_on(project, now)
    pool = [position for position, row in enumerate(project.sheet.ids) if row in free]
    if not pool:
        raise StakesError("no row is open: there is nothing to test the model on. Nothing was drawn.")
    rows, kept = _audit_to_keep(project.sheet, n, labels, pool, len(project.journal.records(AUDIT)))
    left, cost = budget_left(project, now), sum(now.due[row] for row in rows)
    if left is not None and not affordable([(rows, cost)], max(left, 0.0)):
        raise StakesError(
            f"the labels of {len(rows)} rows cost {cost:g}, and {max(left, 0.0):g} of the budget is left: draw "
            "fewer, or raise the budget. Nothing was drawn."
        )
    return rows, kept


def last_audit(project: Project) -> KeptAudit | None:
    """The audit that was begun last."""
    if (record := project.journal.last_record(AUDIT)) is None:
        return None
    kept = audit_kept(project.path, record)
    if unknown := set(kept.rows).difference(project.journal.costs()):
        raise damaged(project.path, f"its last audit has a row {min(unknown)!r:.100}, which there is not")
    return kept


def _audited(project: Project, kept: KeptAudit) -> AuditedLoss | None:
    """What an audit tells by the labels that its rows have; None where the first has none."""
    states = project.journal.states()
    labels = {row: label for row in kept.rows if (label := states[row].label) is not None}
    skipped = {row for row in kept.rows if states[row].status == "skipped"}
    return kept.estimate(labels, skipped, project.loss)


def status_of_audit(project: Project, now: Standing) -> dict[str, Any] | None:
    """What the last audit tells, as `Status.audit` has it."""
    if (kept := last_audit(project)) is None:
        return None
    waiting = sum(now.states[row].status == "testing" for row in kept.rows)
    return _audit_status(kept, waiting, lambda: _audited(project, kept))


class KeptAudit(NamedTuple):
    """Rows that were drawn to test a model, and what it answered there."""

    draw: AuditDraw
    rows: tuple[str, ...]
    """Their ids, in the order in which they were drawn."""
    labels: int
    """How many labels the model was fitted to."""
    answers: tuple[float, ...] | None
    """To a number: what was answered on each row."""
    losses: tuple[dict[str, float], ...] | None
    """Of classes: what the answer on each row loses under each class."""

    def estimate(self, labels: Mapping[str, str], skipped: set[str], loss: Callable[[], Any]) -> AuditedLoss | None:
        """The loss of the pool, from the labels of the first rows; those that were skipped are left out of the pool.

        `loss` builds the loss, which numbers need. None where the first row has no label yet.
        """
        draw, rows = self._without(skipped)
        first = next((place for place, row in enumerate(rows) if row not in labels), len(rows))
        seen = [labels[row] for row in rows[:first]]
        return (
            draw.estimate([self._loss(row, label, loss) for row, label in zip(rows, seen, strict=False)])
            if seen
            else None
        )

    def _without(self, skipped: set[str]) -> tuple[AuditDraw, list[str]]:
        places = [place for place, row in enumerate(self.rows) if row in skipped]
        return self.draw.without(places), [row for row in self.rows if row not in skipped]

    def _loss(self, row: str, label: str, loss: Callable[[], Any]) -> float:
        place = self.rows.index(row)
        if self.losses is None:
            assert self.answers is not None
            return float(loss()(float(label), self.answers[place]))
        if label not in self.losses[place]:
            raise StakesError(
                f"row {row!r} has the class {label!r}, which the model that was audited did not know: what its answer "
                "loses there is not known. Begin another audit."
            )
        return self.losses[place][label]


def audit_kept(path: Path, record: Record) -> KeptAudit:
    """The audit in a record."""
    from stakes.evaluation import AuditDraw  # here, as telling needs no scikit-learn

    with kept_in(path, f"record {record.number}, an audit,"):
        kept = record.payload
        draw = kept["draw"] if "inclusions" in kept["draw"] else _as_inclusions(kept["draw"])
        rows = kept_list(kept["rows"], fits_text)
        lists = [rows, *(kept_list(draw[name], fits_number) for name in ("inclusions", "expected", "least"))]
        kept_list(draw["rows"], fits_whole)
        sizes = ("mean_expected", "squares", "second")
        sound = (
            len({len(each) for each in (*lists, draw["rows"])}) == 1
            and len(set(rows)) == len(rows) > 0
            and all(0 < each <= 1 for each in draw["inclusions"])
            and all(fits_number(draw[name]) for name in sizes)
            and all(draw[name] is None or fits_number(draw[name]) for name in ("mean_least", "mean_most"))
            and fits_whole(draw["n_rows"])
            and draw["n_rows"] >= len(rows)
            and fits_whole(kept["labels"])
        )
        if not sound:
            raise StakesError(f"it is {kept!r:.100}")
        answers = None if kept["answers"] is None else tuple(kept_list(kept["answers"], fits_number))
        losses = None if kept["losses"] is None else tuple(map(_losses_kept, kept["losses"]))
        if len(rows) != len(answers if losses is None else losses):  # type: ignore[arg-type]
            raise StakesError("its parts are of different lengths")
        return KeptAudit(AuditDraw.from_dict(draw), tuple(rows), kept["labels"], answers, losses)


def _as_inclusions(draw: Any) -> dict[str, Any]:
    """A draw of an earlier version, whose rows came one by one, each with a probability among the rows that were left.

    The probability to be drawn at all is about that of one draw from all rows, times how many there were.
    """
    left, found = 1.0, []
    for probability in kept_list(draw["probabilities"], fits_number):
        found.append(min(1.0, len(draw["probabilities"]) * probability * left))
        left -= probability * left
    return {**{name: value for name, value in draw.items() if name != "probabilities"}, "inclusions": found}


def _losses_kept(by_class: Any) -> dict[str, float]:
    if not all(fits_text(name) and (loss is None or fits_number(loss)) for name, loss in by_class.items()):
        raise StakesError(f"losses by class are {by_class!r:.100}")
    return {name: math.inf if loss is None else float(loss) for name, loss in by_class.items()}


def _audit_to_keep(
    sheet: Worksheet, n: int, labels: Mapping[int, str], pool: Sequence[int], count: int
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Rows of a pool, by position in a table, that are drawn to test the model: their ids, and what is kept.

    `count` is how many audits there were before: each has random numbers of its own.
    """
    import numpy as np

    from stakes.evaluation.audit import class_losses
    from stakes.tabular.suggestions import draw_audit

    stream = np.random.default_rng([sheet.brief.random_state, count, len(labels)])
    draw, answers, classes, loss = draw_audit(sheet, n, labels=labels, rows=pool, random_state=stream)
    rows = tuple(sheet.ids[pool[place]] for place in draw.rows)
    kept: dict[str, Any] = {"draw": draw.to_dict(), "rows": list(rows), "labels": len(labels)}
    if classes is None:
        return rows, {**kept, "answers": np.asarray(answers, dtype=float).tolist(), "losses": None}
    by_class = [
        {name: each if math.isfinite(each) else None for name, each in zip(classes, line, strict=True)}
        for line in class_losses(loss, answers, len(rows), len(classes)).tolist()
    ]
    return rows, {**kept, "answers": None, "losses": by_class}


def _audit_status(kept: KeptAudit, waiting: int, read: Callable[[], AuditedLoss | None]) -> dict[str, Any]:
    """What an audit tells, for a status and for JSON; nothing but counts while labels are awaited."""
    about = {"rows": len(kept.rows), "waiting": waiting, "model_labels": kept.labels}
    by = f"of the model with {counted(kept.labels, 'label')}"
    if waiting:
        done = f"{len(kept.rows) - waiting} of {counted(len(kept.rows), 'row')} are done"
        return {**about, "text": f"An audit {by} is under way: {done}."}
    try:
        found = read()
    except (StakesError, FloatingPointError) as error:
        return {**about, "text": f"The audit {by} cannot be read: {error}"}
    if found is None:
        return {**about, "text": f"The audit {by} was given up."}
    limits = {name: getattr(found, name) for name in ("mean", "low", "high")}
    values = {name: value if math.isfinite(value) else None for name, value in limits.items()}
    return {**about, **values, "labels": found.labels, "text": f"Your loss is {found} ({by})."}
