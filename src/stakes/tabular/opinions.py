"""Which rows of a table one annotator is to be asked about, where labels of others may be wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from stakes.exceptions import StakesError
from stakes.ranking import OpinionOffer, fit_to_opinions, rank_opinions
from stakes.tabular.suggestions import build_problem
from stakes.tabular.worksheet import Worksheet


def rank_for_annotator(
    sheet: Worksheet,
    name: str,
    n: int,
    *,
    opinions: Sequence[tuple[int, str, str]],
    known: Mapping[int, str],
    excluded: Collection[int] = (),
    price: float = 1.0,
) -> list[OpinionOffer]:
    """The rows on which the opinion of an annotator is worth most, also those that others have labelled.

    Args:
        sheet: The table, in memory.
        name: Who is to be asked.
        n: How many rows, at most.
        opinions: Triples (position of a row, annotator, label).
        known: By position: labels that are beyond doubt.
        excluded: Positions of rows that are not to be asked about.
        price: What an opinion costs.

    Returns:
        The opinions to ask for, best first.

    Raises:
        StakesError: If there is no label yet, the table is read in parts, or no row is left.
    """
    if sheet.stream is not None:
        raise StakesError("opinions are ranked for tables that fit into memory; this one is read in parts")
    labels = {row: label for row, _, label in opinions} | dict(known)
    if not labels:
        raise StakesError("there is no label yet, and so nothing to rank by: ask for the first rows without a name")
    _, loss, _, _, classes = build_problem(sheet, labels)
    given: list[tuple[int, str, str | float]] = [
        (row, who, label if classes is not None else float(label)) for row, who, label in opinions
    ]
    sure = {row: label if classes is not None else float(label) for row, label in known.items()}
    seed = sheet.brief.random_state
    fit = fit_to_opinions(sheet.features, given, known=sure, classes=classes, random_state=seed)
    return rank_opinions(fit, loss, prices={name: price}, n=n, choice="best", excluded=excluded, random_state=seed)
