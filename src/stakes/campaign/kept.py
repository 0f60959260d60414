"""What a campaign keeps as JSON, read back: the brief, a ranking, and what labels are worth.

A file may come from anyone, so that nothing is used before it is known to be of the right kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stakes.campaign.sqlite import damaged
from stakes.campaign.states import Record, checked_text
from stakes.exceptions import StakesError
from stakes.tabular import Brief
from stakes.tabular.loss_specs import is_path

if TYPE_CHECKING:
    from stakes.ranking import Ranking


@contextmanager
def kept_in(path: Path, what: str) -> Iterator[None]:
    """A block that reads what was kept; whatever it stumbles over is damage of the file."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
        lacking = f"{error} is missing" if isinstance(error, KeyError) else error
        raise damaged(path, f"{what} cannot be used ({lacking})") from error


def brief_kept(kept: Any) -> Brief:
    """The brief of a campaign, if every field is of its kind."""
    for name, fits in _BRIEF.items():
        if not fits(kept[name]):
            raise StakesError(f"{name} of the brief is {kept[name]!r:.100}")
    return Brief.from_dict(kept)


def ranking_kept(path: Path, record: Record) -> Ranking:
    """The ranking in a record."""
    from stakes.ranking import Ranking

    with kept_in(path, f"record {record.number}, a ranking,"):
        _check_ranking(record.payload)
        ranking = Ranking.from_dict(record.payload["ranking"])
        [str(each) for each in (*ranking.notes, *ranking.reasons)]  # sentences are made of what was kept
    return ranking


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


def imports_of(brief: Brief, *, model: bool = True) -> tuple[str, ...]:
    """What a brief names by "module:Name": its loss, and its model with what is in that."""
    loss = [brief.loss.name] if is_path(brief.loss.name) else []
    named = _named(brief.model.to_dict()) if model else []
    return tuple(dict.fromkeys([*loss, *named]))


def _named(spec: Any) -> list[str]:
    """Every import path in the parameters of a model, however deep."""
    if isinstance(spec, Mapping):
        here = [spec[name] for name in ("name", "model") if isinstance(spec.get(name), str) and ":" in spec[name]]
        return here + [each for value in spec.values() for each in _named(value)]
    return [each for value in spec for each in _named(value)] if isinstance(spec, list | tuple) else []


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


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_BRIEF: dict[str, Callable[[Any], bool]] = {
    "target": _text,
    **dict.fromkeys(("id_column", "cost_column", "delimiter"), _or_none(_text)),
    **dict.fromkeys(("label_cost", "decisions", "budget"), _or_none(_number)),
    **dict.fromkeys(("ignore", "missing", "text"), _texts),
    "classes": _or_none(_texts),
    "random_state": _whole,
    **dict.fromkeys(("loss", "model"), lambda value: isinstance(value, dict)),
}
_RANKING: dict[str, Callable[[Any], bool]] = {
    "indices": _whole,
    "row_ids": _text,
    "scores": _or_none(_number),
    "reasons": lambda value: isinstance(value, dict),
}
