"""A campaign's own record of what was promised and what came: what is kept of each model, and how rounds are judged.

When rows are ranked, what labels to come are promised to save is kept, and what the model answers at rows that it was
not fitted to. Once some of these rows have labels, so that a later model may be compared with it, two models are judged
by the same labels, of which neither knew any. Nothing is fitted for that. The rows that judge are mostly those that
were bought later, and not like the others. So what came is the mean that the later model expects over all rows, times
the share of it that came at the rows that judge (`stakes.ranking.promises.change`). Where an audit drew 8 or more of
them, it judges alone: its draws have known probabilities. Otherwise rows are weighed by how many rows they are nearest
to (`stakes.ranking.promises.nearest_share`). What is weak about it: where regions that were never bought from gain in
another proportion to what is expected than the others do, nothing tells.

Sizes: N rows that are kept, m labels that judge a round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stakes._utils.tables import Host
from stakes.campaign.audits import KeptAudit, audit_kept
from stakes.campaign.kept import AUDIT, PROMISE, fits_number, fits_text, fits_whole, kept_list
from stakes.campaign.project import Project
from stakes.campaign.sqlite import damaged, kept_in
from stakes.campaign.standing import Standing
from stakes.campaign.states import Record
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.ranking import Offer, PromisedRound
    from stakes.tabular import Worksheet
    from stakes.tabular.suggestions import Answers, Suggested

_NUMBERS = 4000  # that are kept of a model: rows, times classes
_DIGITS = 6
_NEW = 0.05  # of all labels, after which another model is kept; a batch of 8 is enough in any case
_BATCH = 8
_AUDITED = 8  # labels of audits that judge alone
_LAST = 60  # models that are looked at


class KeptPromise(NamedTuple):
    """What a model promised, and what it answered."""

    labels: int
    """that it was fitted to"""
    offers: tuple[tuple[int, float, float], ...]
    """sizes, worths and errors, by the model alone"""
    share: float
    """of these, which the campaign reported as expected"""
    rows: tuple[int, ...]
    """[N]: positions in the table of rows that it was not fitted to"""
    answers: tuple[float, ...] | None
    """[N]: to a number"""
    losses: dict[str, tuple[float | None, ...]] | None
    """of classes: for each, what the answers [N] lose under it; None where that is infinite"""
    expected: tuple[float | None, ...] | None
    """[N]: how much more it expects the answers of the model kept before it to lose; None where these are not there"""

    def losses_at(self, rows: Collection[int], labels: Mapping[int, str], loss: Callable[[], Any]) -> list[float]:
        """What the answers at rows lost, by their labels; not finite where that is not known."""
        places = {row: place for place, row in enumerate(self.rows)}
        if self.losses is None:
            assert self.answers is not None
            targets = np.asarray([float(labels[row]) for row in rows])
            answers = np.asarray([self.answers[places[row]] for row in rows])
            return [float(each) for each in np.asarray(loss()(targets, answers))]
        known = [self.losses[labels[row]][places[row]] if labels[row] in self.losses else None for row in rows]
        return [math.inf if each is None else each for each in known]


def is_due(last: KeptPromise, labels: int) -> bool:
    """Whether another model is to be kept after the last that was, when there are so many labels."""
    return labels - last.labels >= max(1.0, min(_NEW * labels, _BATCH))


def promise_to_keep(
    sheet: Worksheet, found: Suggested, share: float, labels: int, unseen: Sequence[int], last: KeptPromise | None
) -> dict[str, Any] | None:
    """What is kept of a model: its promises, and its answers at some of the rows that it was not fitted to.

    Beside them: what it expects of the answers of the `last` model that was kept.

    None where it promises nothing yet, or its answers are whole distributions, or have no finite loss.
    """
    from stakes.tabular.suggestions import answers_at

    if found.fit is None or not found.raw:
        return None
    classes = found.fit[2]
    drawn = np.random.default_rng(sheet.brief.random_state).permutation(len(sheet.ids)).tolist()  # always the same
    free = set(unseen)
    rows = [row for row in drawn if row in free][: _NUMBERS // len(classes or (1,))]
    try:
        answered = answers_at(sheet, found.fit, rows) if rows else None
        if answered is None or (classes is None and not (answered[0].ndim == 1 and np.isfinite(answered[0]).all())):
            return None
        expected = None if last is None else _expected(answered, last, rows, classes)
    except (StakesError, FloatingPointError):  # a record is no reason to hand out nothing
        return None
    answers, losses, _ = answered
    by_class = None if losses is None or classes is None else dict(zip(classes, losses.T.tolist(), strict=True))
    return {
        "labels": labels,
        "offers": [[each.size, each.worth, each.error] for each in _shown(found.raw)],
        "share": share,
        "rows": rows,
        "answers": [_rounded(each) for each in answers.tolist()] if by_class is None else None,
        "losses": None if by_class is None else {name: list(map(_rounded, line)) for name, line in by_class.items()},
        "expected": expected,
    }


def _expected(
    answered: Answers, last: KeptPromise, rows: Sequence[int], classes: Sequence[str] | None
) -> list[float | None] | None:
    """[N]: how much more a model expects the answers of the last one to lose; None where these are not there."""
    places = {row: place for place, row in enumerate(last.rows)}
    there = np.asarray([row in places for row in rows])
    if answered.losses is None or classes is None:
        if last.answers is None:
            return None
        known = last.answers
        pairs = zip(rows, answered.answers, strict=True)
        others = np.asarray([known[places[row]] if row in places else own for row, own in pairs])
    elif last.losses is None or any(name not in last.losses for name in classes):  # a class that is new since
        return None
    else:
        by_class = [[math.inf if each is None else each for each in last.losses[name]] for name in classes]
        losses = np.asarray(by_class).T  # [N of the last, C]
        lines = zip(rows, answered.losses, strict=True)
        others = np.asarray([losses[places[row]] if row in places else own for row, own in lines])
    more = answered.expected(others)
    return [_rounded(each) if known else None for each, known in zip(more.tolist(), there.tolist(), strict=True)]


def _shown(offers: Sequence[Offer]) -> list[Offer]:
    return [offer for offer in offers if math.isfinite(offer.worth) and math.isfinite(offer.error)]


def _rounded(value: float) -> float | None:
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None


def promise_kept(path: Path, record: Record) -> KeptPromise:
    """The promise in a record."""
    with kept_in(path, f"record {record.number}, a promise,"):
        kept = record.payload
        rows = kept_list(kept["rows"], fits_whole)
        offers = [
            kept_list(each, fits_number) for each in kept_list(kept["offers"], lambda value: isinstance(value, list))
        ]
        answers = None if kept["answers"] is None else kept_list(kept["answers"], fits_number)
        losses = None if kept["losses"] is None else {name: _losses(line) for name, line in kept["losses"].items()}
        expected = None if kept["expected"] is None else _losses(kept["expected"])
        parts = [answers] if losses is None else [*losses.values()]
        parts += [] if expected is None else [expected]
        sound = (
            fits_whole(kept["labels"])
            and fits_number(kept["share"])
            and len(set(rows)) == len(rows)
            and all(len(each) == 3 and fits_whole(each[0]) for each in offers)
            and all(part is not None and len(part) == len(rows) for part in parts)
            and all(map(fits_text, losses or ()))
        )
        if not sound:
            raise StakesError(f"it is {kept!r:.100}")
        pairs = tuple((each[0], float(each[1]), float(each[2])) for each in offers)
        return KeptPromise(
            kept["labels"],
            pairs,
            float(kept["share"]),
            tuple(rows),
            None if answers is None else tuple(answers),
            None if losses is None else {name: tuple(line) for name, line in losses.items()},
            None if expected is None else tuple(expected),
        )


def _losses(line: Any) -> list[float | None]:
    return kept_list(line, lambda value: value is None or fits_number(value))


def judged_rounds(
    sheet: Worksheet,
    kept: Sequence[KeptPromise],
    labels: Mapping[int, str],
    asked: Collection[int],
    audits: Sequence[KeptAudit],
    loss: Callable[[], Any],
) -> tuple[PromisedRound, ...]:
    """The rounds between models that were kept, as far as labels judge them.

    Args:
        sheet: The table.
        kept: In their order.
        labels: By row, all that are known, those of tests too.
        asked: Rows that were ever handed out: labels of others were not promised.
        audits: Those that the campaign had.
        loss: Builds the loss, which numbers need.

    Returns:
        A round for each two models that follow each other, of which the second had more labels, most of them handed
        out, no more than were promised, and that two labels or more can judge.
    """
    weights, columns = _audit_weights(sheet, audits), _Columns(sheet)
    found = []
    for before, after in pairwise(kept[-_LAST:]):
        bought = after.labels - before.labels
        offer = next((each for each in before.offers if each[0] >= bought), None)
        new = [row for row in set(before.rows).difference(after.rows) if row in labels]
        if bought < 1 or offer is None or 2 * sum(row in asked for row in new) < len(new):
            continue
        made = _judged(before, after, labels, weights, columns, loss)
        if made is not None:
            found.append(_round(before, bought, offer, *made))
    return tuple(found)


def _round(
    before: KeptPromise, bought: int, offer: tuple[int, float, float], delivered: Any, judged: int, audited: bool
) -> PromisedRound:
    from stakes.ranking import Amount, PromisedRound

    _, worth, error = offer
    promised = Amount(before.share * worth, before.share * error)
    return PromisedRound(before.labels, bought, promised, worth, delivered, judged, audited)


def _judged(
    before: KeptPromise,
    after: KeptPromise,
    labels: Mapping[int, str],
    audited: Mapping[int, float],
    columns: _Columns,
    loss: Callable[[], Any],
) -> tuple[Any, int, bool] | None:
    """What came, how many labels tell it, and whether they were drawn by audits; None for fewer than two."""
    from stakes.ranking.promises import change, nearest_share

    common = set(before.rows).intersection(after.rows)
    rows = sorted(row for row in common if row in labels)
    if not rows:
        return None
    each = zip(before.losses_at(rows, labels, loss), after.losses_at(rows, labels, loss), strict=True)
    pairs = dict(zip(rows, each, strict=True))
    rows = [row for row in rows if all(map(math.isfinite, pairs[row]))]
    drawn = [row for row in rows if row in audited]
    by_audit = len(drawn) >= _AUDITED
    rows = drawn if by_audit else rows
    if len(rows) < 2:
        return None
    if by_audit:
        weights = np.asarray([audited[row] for row in rows])
    else:
        weights = nearest_share(columns.at(rows), columns.at(sorted(common.difference(rows))))
    losses = np.asarray([pairs[row] for row in rows])  # [m, 2]
    return change(losses[:, 0], losses[:, 1], weights, _expected_of(after, rows)), len(rows), by_audit


def _expected_of(after: KeptPromise, rows: Sequence[int]) -> tuple[Host, float] | None:
    """[m] and the mean over all rows: what a model expects to have gained; None where that is not known."""
    if after.expected is None:
        return None
    gains = {row: each for row, each in zip(after.rows, after.expected, strict=True) if each is not None}
    if any(row not in gains for row in rows):
        return None
    return np.asarray([gains[row] for row in rows]), float(np.mean(list(gains.values())))


def _audit_weights(sheet: Worksheet, audits: Sequence[KeptAudit]) -> dict[int, float]:
    """By row: how many rows of the pool a row that was drawn stands for."""
    place = {row: position for position, row in enumerate(sheet.ids)}
    found: dict[int, float] = {}
    for audit in audits:
        each = 1.0 / np.asarray(audit.draw.inclusions)
        found |= dict(zip((place[row] for row in audit.rows), each.tolist(), strict=True))
    return found


class _Columns:
    """Rows of a table in like units, encoded when they are first asked for."""

    def __init__(self, sheet: Worksheet) -> None:
        self._sheet = sheet
        self._encoder: Any = None

    def at(self, rows: Sequence[int]) -> Host:
        """[N, p]."""
        from stakes.models.encoding import TableEncoder

        table = self._sheet.features
        if self._encoder is None:
            step = max(1, table.shape[0] // _NUMBERS)
            self._encoder = TableEncoder().fit(table.take(list(range(0, table.shape[0], step))))
        if not rows:
            return np.zeros((0, 1))
        return np.asarray(self._encoder.transform(table.take(list(rows))), dtype=float)


def kept_promises(project: Project) -> list[KeptPromise]:
    """All promises of a campaign."""
    return [promise_kept(project.path, record) for record in project.journal.records(PROMISE)]


def keep_promise(project: Project, now: Standing, found: Suggested, labels: Mapping[int, str], share: float) -> None:
    """Keep what the model promises and answers, where enough labels are new."""
    record = project.journal.last_record(PROMISE)
    last = None if record is None else promise_kept(project.path, record)
    if last is not None and not is_due(last, len(labels)):
        return
    unseen = [place for place, row in enumerate(project.sheet.ids) if now.states[row].status != "labelled"]
    if (kept := promise_to_keep(project.sheet, found, share, len(labels), unseen, last)) is not None:
        project.journal.save_record(PROMISE, now.version, kept)


def promised_rounds(project: Project) -> tuple[PromisedRound, ...]:
    """What rounds of labels were promised to save, beside what they saved."""
    if len(kept := kept_promises(project)) < 2:
        return ()
    ids, states = project.sheet.ids, project.journal.states()
    if any(max(each.rows, default=0) >= len(ids) for each in kept):
        raise damaged(project.path, "a promise of its model is about a row which there is not")
    labels = {place: label for place, row in enumerate(ids) if (label := states[row].label) is not None}
    handed_out = {event.row for event in project.journal.history() if event.kind == "ask"}
    asked = {place for place, row in enumerate(ids) if row in handed_out}
    audits = [audit_kept(project.path, record) for record in project.journal.records(AUDIT)]
    return judged_rounds(project.sheet, kept, labels, asked, audits, cache(project.loss))
