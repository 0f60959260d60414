"""The one error of words that say no loss and no model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from stakes.files.errors import did_you_mean


class SpecError(ValueError):
    """Words that say no loss, weight or model: what was wanted, what came, what to do."""


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str], advice: str = "") -> None:
    """Refuse the first word that is not among those known, with the one that was perhaps meant."""
    known = list(known)
    for word in given:
        if word not in known:
            there = f"there are {', '.join(known)}" if known else "there are none"
            raise SpecError(f"there is no {what} {word!r}; {there}{advice}.{did_you_mean(word, known)}")


def as_json(what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of our own, as JSON would give it back."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SpecError(
            f"{what} must be texts and finite numbers that JSON can keep; got {value!r} ({error})"
        ) from error
    return copy


def as_fields(what: str, kept: Any, known: Iterable[str]) -> dict[str, Any]:
    """What was kept of a spec, with no field that it does not have."""
    if not isinstance(kept, Mapping) or "name" not in kept:
        raise SpecError(f'{what} must be kept as {{"name": ..., ...}}; got {kept!r}')
    refuse_unknown(f"field of {what}", map(str, kept), known)
    return dict(kept)
