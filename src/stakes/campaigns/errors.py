"""What is said when something is refused."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Sequence

_COMPARED = 1000  # ids that a wrong one is compared with: difflib takes some 20 microseconds for each


class CampaignError(Exception):
    """A request that a campaign refuses, or a file that it cannot use."""


def unknown_row(row: str, ids: Sequence[str]) -> CampaignError:
    """The refusal of an id that the campaign does not have, with the ids that look like it."""
    near = _same_but_for_writing(row, ids) or difflib.get_close_matches(row, _same_beginning(row, ids))
    meant = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else ""
    return CampaignError(f"the campaign has no row {row!r} among its {len(ids):,} rows.{meant} Nothing was recorded.")


def _same_but_for_writing(row: str, ids: Sequence[str]) -> list[str]:
    """The ids that differ in case, outer spaces and leading zeros only: what spreadsheets change on their own."""
    return [other for other in ids if _plain(other) == _plain(row)]


def _plain(row: str) -> str:
    return row.strip().lstrip("0").casefold()


def _same_beginning(row: str, ids: Sequence[str]) -> list[str]:
    """The ids that share most letters at the beginning."""
    return heapq.nlargest(_COMPARED, ids, key=lambda other: _shared(row, other))


def _shared(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
