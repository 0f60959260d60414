"""What a campaign keeps as records, read back: a ranking with what labels are worth, why a model failed, prices.

A file may come from anyone, so that nothing is used before it is known to be of the right kind.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stakes.campaign.sqlite import kept_in
from stakes.campaign.states import Event, Record, checked_id, checked_positive, checked_text
from stakes.exceptions import StakesError

if TYPE_CHECKING:
    from stakes.ranking import Ranking


def ranking_kept(path: Path, record: Record) -> Ranking:
    """The ranking in a record."""
    from stakes.ranking import Ranking

    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)
        ranking = Ranking.from_dict(record.payload["ranking"])
        [str(each) for each in (*ranking.notes, *ranking.reasons)]  # sentences are made of what was kept
    return ranking


class RankedRows(NamedTuple):
    """The rows of a ranking, best first, without why: to be had before the libraries that rank are imported."""

    row_ids: tuple[str, ...]
    scores: tuple[float, ...]
    per_cost: bool
    ranked_by: str
    log_scale: float


def rows_kept(path: Path, record: Record) -> RankedRows:
    """The rows of the ranking in a record."""
    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)
        kept = record.payload["ranking"]
        if not fits_number(kept["log_scale"]):
            raise StakesError(f"the logarithm of its scale is {kept['log_scale']!r:.100}")
        scores = tuple(math.nan if score is None else score for score in kept["scores"])
        ranked_by = checked_text(kept["ranked_by"], "what rows are ranked by")
        return RankedRows(tuple(kept["row_ids"]), scores, bool(kept["per_cost"]), ranked_by, kept["log_scale"])


def failure_kept(path: Path, record: Record) -> str:
    """Why a model could not be fitted, as a record has it."""
    with kept_in(path, f"record {record.number}, a failure,"):
        return checked_text(record.payload["error"], "the error")


RANKING, FAILURE, AUDIT, PROMISE = "ranking", "failure", "audit", "promise"
"""Kinds of records."""

MONEY = ("decisions", "label_cost", "budget")
"""Settings of a brief that can be changed while a campaign runs; each is kept on its own: others may be set at once."""


def money_changes(records: Sequence[Record]) -> list[tuple[Record, dict[str, Any]]]:
    """The records of settings that changed any of `MONEY`, with what it is since."""
    found = [(record, {name: record.payload[name] for name in MONEY if name in record.payload}) for record in records]
    return [(record, changed) for record, changed in found if changed]


def label_prices(first: float | None, changes: Sequence[tuple[Record, dict[str, Any]]]) -> Callable[[int], float]:
    """A function from the number of an event to what a label cost then, where all rows cost the same.

    Where that was not known yet, it is what was set first; 1 where it was never set.
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
