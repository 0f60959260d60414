"""What a campaign keeps as records, read back: a ranking with what labels are worth, and why a model failed.

A file may come from anyone, so that nothing is used before it is known to be of the right kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stakes.campaign.journal import kept_in
from stakes.campaign.states import Record, checked_text
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


def failure_kept(path: Path, record: Record) -> str:
    """Why a model could not be fitted, as a record has it."""
    with kept_in(path, f"record {record.number}, a failure,"):
        return checked_text(record.payload["error"], "the error")


def check_ranking_kept(path: Path, record: Record) -> None:
    """Refuse a record of a ranking that does not hold what one must."""
    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)


def _check_ranking(kept: Any) -> None:
    ranking, outlook = kept["ranking"], kept["outlook"]
    lists = [_listed(ranking[name], fits) for name, fits in _RANKING.items()]
    if len({len(each) for each in lists}) != 1:
        raise StakesError("its parts are of different lengths")
    if not _whole(kept["labels"]):
        raise StakesError(f"the number of labels is {kept['labels']!r:.100}")
    if outlook is not None:
        _check_outlook(outlook)


def _check_outlook(outlook: Any) -> None:
    _listed(outlook["sentences"], _text)
    amounts = [outlook["today"], outlook["most"]]
    if not (outlook["advice"] is None or _text(outlook["advice"])):
        raise StakesError(f"the advice is {outlook['advice']!r:.100}")
    for each in amounts:
        if set(each) != {"value", "error"} or not all(map(_number, each.values())):
            raise StakesError(f"an amount is {each!r:.100}")
    for offer in _listed(outlook["offers"], lambda offer: isinstance(offer, dict)):
        if not (_whole(offer["size"]) and _number(offer["worth"]) and _number(offer["error"])):
            raise StakesError(f"an offer is {offer!r:.100}")
        if not all(offer[name] is None or _number(offer[name]) for name in ("cost", "decisions", "net", "break_even")):
            raise StakesError(f"an offer is {offer!r:.100}")


def _listed(values: Any, fits: Callable[[Any], bool]) -> list[Any]:
    if not isinstance(values, list) or not all(map(fits, values)):
        raise StakesError(f"a list is {values!r:.100}")
    return values


def _text(value: object) -> bool:
    return isinstance(value, str) and checked_text(value, "a text of the file") == value


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_RANKING: dict[str, Callable[[Any], bool]] = {
    "indices": _whole,
    "row_ids": _text,
    "scores": _or_none(_number),
    "reasons": lambda value: isinstance(value, dict),
}
