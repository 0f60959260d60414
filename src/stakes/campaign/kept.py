"""What a campaign keeps as records, read back: a ranking with what labels are worth, why a model failed, an audit.

Of an audit the answers of the model at the time of the draw are kept, not the model: whatever it learns meanwhile, an
audit is of the model as it was.

A file may come from anyone, so that nothing is used before it is known to be of the right kind.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes._utils.text import counted
from stakes.campaign.journal import kept_in
from stakes.campaign.states import Event, Opinion, Record, checked_id, checked_positive, checked_text
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.evaluation import AuditDraw, AuditedLoss
    from stakes.ranking import Ranking
    from stakes.tabular import Worksheet


def ranking_kept(path: Path, record: Record) -> Ranking:
    """The ranking in a record."""
    from stakes.ranking import Ranking

    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)
        ranking = Ranking.from_dict(record.payload["ranking"])
        [str(each) for each in (*ranking.notes, *ranking.reasons)]  # sentences are made of what was kept
    return ranking


def failure_kept(path: Path, record: Record) -> str:
    """Why a model could not be fitted, as a record has it."""
    with kept_in(path, f"record {record.number}, a failure,"):
        return checked_text(record.payload["error"], "the error")


MONEY = ("decisions", "label_cost", "budget")
"""Settings of a brief that can be changed while a campaign runs; each is kept on its own: others may be set at once."""


def money_changes(records: Sequence[Record]) -> list[tuple[Record, dict[str, Any]]]:
    """The records of settings that changed any of `MONEY`, with what it is since."""
    found = [(record, {name: record.payload[name] for name in MONEY if name in record.payload}) for record in records]
    return [(record, changed) for record, changed in found if changed]


def label_prices(first: float | None, changes: Sequence[tuple[Record, dict[str, Any]]]) -> Callable[[int], float]:
    """A function from the number of an event to what a label cost then, where all rows cost the same.

    Where that was not known yet, it is what was said first; 1 where it was never said.
    """
    steps = [(0, first), *((record.version, new["label_cost"]) for record, new in changes if "label_cost" in new)]
    known = next((cost for _, cost in steps if cost is not None), 1.0)

    def price(number: int) -> float:
        cost = [cost for version, cost in steps if version < number][-1]
        return float(known if cost is None else cost)

    return price


def purchases(events: Sequence[Event]) -> dict[tuple[str, str | None], Event]:
    """The events that were paid for, by row and None for its first label, and by row and annotator for opinions.

    A row whose label was withdrawn has been paid for, and is paid for once; so is an opinion, and how it was settled.
    """
    bought: dict[tuple[str, str | None], Event] = {}
    for event in events:
        if event.kind in ("label", "result", "settle"):
            first = bought.setdefault((event.row, None), event)
            if event.kind == "settle" and first is not event:
                bought.setdefault((event.row, event.who), event)
        elif event.kind == "opinion" and ((event.row, None) not in bought or bought[event.row, None].who != event.who):
            bought.setdefault((event.row, event.who), event)
    return bought


def annotators_kept(kept: Any) -> dict[str, float]:
    """Prices of annotators by name, as a setting has them."""
    return {checked_id(name): checked_positive(price, "a price") for name, price in (kept or {}).items()}


def annotator_factors(records: Sequence[Record]) -> Callable[[Event], float]:
    """A function from an event to how many times what a label costs its annotator takes."""
    steps = [(each.version, annotators_kept(each.payload["annotators"])) for each in records if _has_prices(each)]

    def times(event: Event) -> float:
        known = [prices for version, prices in steps if version < event.number]
        return (known or [prices for _, prices in steps[:1]] or [{}])[-1].get(event.who or "", 1.0)

    return times


def _has_prices(record: Record) -> bool:
    return "annotators" in record.payload


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
        draw = kept["draw"]
        rows = kept_list(kept["rows"], fits_text)
        lists = [rows, *(kept_list(draw[name], fits_number) for name in ("probabilities", "expected", "least"))]
        kept_list(draw["rows"], fits_whole)
        sizes = ("mean_expected", "squares", "second")
        sound = (
            len({len(each) for each in (*lists, draw["rows"])}) == 1
            and len(set(rows)) == len(rows) > 0
            and all(0 < each <= 1 for each in draw["probabilities"])
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


def _losses_kept(by_class: Any) -> dict[str, float]:
    if not all(fits_text(name) and (loss is None or fits_number(loss)) for name, loss in by_class.items()):
        raise StakesError(f"losses by class are {by_class!r:.100}")
    return {name: math.inf if loss is None else float(loss) for name, loss in by_class.items()}


def audit_to_keep(
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


def audit_status(kept: KeptAudit, waiting: int, read: Callable[[], AuditedLoss | None]) -> dict[str, Any]:
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


def check_ranking_kept(path: Path, record: Record) -> None:
    """Refuse a record of a ranking that does not hold what one must."""
    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)


def _check_ranking(kept: Any) -> None:
    ranking, outlook = kept["ranking"], kept["outlook"]
    lists = [kept_list(ranking[name], fits) for name, fits in _RANKING.items()]
    if len({len(each) for each in lists}) != 1:
        raise StakesError("its parts are of different lengths")
    if not fits_whole(kept["labels"]):
        raise StakesError(f"the number of labels is {kept['labels']!r:.100}")
    if outlook is not None:
        _check_outlook(outlook)


def _check_outlook(outlook: Any) -> None:
    kept_list(outlook["sentences"], fits_text)
    amounts = [outlook["today"], outlook["most"]]
    if not (outlook["advice"] is None or fits_text(outlook["advice"])):
        raise StakesError(f"the advice is {outlook['advice']!r:.100}")
    for each in amounts:
        if set(each) != {"value", "error"} or not all(map(fits_number, each.values())):
            raise StakesError(f"an amount is {each!r:.100}")
    for offer in kept_list(outlook["offers"], lambda offer: isinstance(offer, dict)):
        if not (fits_whole(offer["size"]) and fits_number(offer["worth"]) and fits_number(offer["error"])):
            raise StakesError(f"an offer is {offer!r:.100}")
        amounts = [offer[name] for name in ("cost", "decisions", "net", "break_even")]
        if not all(
            each is None or fits_number(each) for each in (*amounts, offer.get("joint"))
        ):  # which old files lack
            raise StakesError(f"an offer is {offer!r:.100}")


def kept_list(values: Any, fits: Callable[[Any], bool]) -> list[Any]:
    """A list that was kept, refused where one of its values does not fit."""
    if not isinstance(values, list) or not all(map(fits, values)):
        raise StakesError(f"a list is {values!r:.100}")
    return values


def fits_text(value: object) -> bool:
    """Whether a value that was kept is a text."""
    return isinstance(value, str) and checked_text(value, "a text of the file") == value


def fits_number(value: object) -> bool:
    """Whether a value that was kept is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def fits_whole(value: object) -> bool:
    """Whether a value that was kept is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_RANKING: dict[str, Callable[[Any], bool]] = {
    "indices": fits_whole,
    "row_ids": fits_text,
    "scores": _or_none(fits_number),
    "reasons": lambda value: isinstance(value, dict),
}


def kept_path(table: str | os.PathLike[str], campaign: Path) -> str:
    """How the path of a table is kept: so that both can be moved together, where they are in one folder or below it."""
    named, folder = Path(table), campaign.resolve().parent
    path = named.parent.resolve() / named.name  # a link to a table stays a link: it may be pointed elsewhere
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def reliability(
    opinions: Sequence[Opinion], known: Mapping[str, str], classes: Sequence[str], *, numbers: bool
) -> tuple[str, ...]:
    """A sentence on each annotator and one on their agreement; nothing where no row has two opinions.

    Args:
        opinions: What each annotator says of each row.
        known: By row: labels that are beyond doubt, as they were settled or came with the table.
        classes: All classes; none for numbers.
        numbers: Whether labels are numbers.

    Returns:
        The sentences.
    """
    named = [(each.row, each.annotator, each.label) for each in opinions if each.annotator is not None]
    several = Counter(row for row, _, _ in named)
    twice = any(count > 1 for count in several.values())
    if not twice and (numbers or not any(row in known for row in several)):
        return ()
    from stakes.evaluation import agreement, estimate_annotators  # with NumPy and scikit-learn

    found: list[str] = []
    if numbers:
        values = [(row, name, float(label)) for row, name, label in named]
        found += str(estimate_annotators(values, task="real")).splitlines()
        return (*found, f"{agreement(values, level='interval')}.")
    names = sorted({*classes, *known.values(), *(label for _, _, label in named)})
    sure: dict[Any, list[float]] = {row: [float(name == label) for name in names] for row, label in known.items()}
    found += str(estimate_annotators(named, classes=names, task="classes", row_probabilities=sure)).splitlines()
    if twice:
        found.append(f"{agreement(named, level='nominal')}.")
    return tuple(found)
