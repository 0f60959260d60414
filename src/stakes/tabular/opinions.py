"""Which rows of a table annotators are to be asked about, where labels may be wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from stakes.exceptions import StakesError
from stakes.ranking import OpinionOffer, fit_to_opinions, rank_opinions
from stakes.tabular.suggestions import build_problem
from stakes.tabular.worksheet import Worksheet


def rank_for_annotators(
    sheet: Worksheet,
    prices: Mapping[str, float],
    n: int,
    *,
    opinions: Sequence[tuple[int, str, str]],
    known: Mapping[int, str],
    excluded: Collection[int] = (),
) -> dict[str, list[OpinionOffer]]:
    """The rows on which the opinion of each annotator is worth most for its price, also those that others labelled.

    Args:
        sheet: The table, in memory; where it has a column of costs, prices are multiples of these.
        prices: By name of who may be asked: what an opinion costs.
        n: How many rows for each, at most.
        opinions: Triples (position of a row, annotator, label).
        known: By position: labels that are beyond doubt.
        excluded: Positions of rows that are not to be asked about.

    Returns:
        By name, the opinions to ask for, best first; nothing for those who have labelled all that is in doubt.

    Raises:
        StakesError: If there is no label yet, or the table is read in parts.
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
    costs, found = sheet.costs, dict[str, list[OpinionOffer]]()
    for name, price in prices.items():
        most = n if costs is None else len(sheet.ids)  # where rows differ in cost, the best for it may be any
        done = {row for row, who, _ in opinions if who == name}.union(known, excluded)
        if len(done) == len(sheet.ids):
            found[name] = []
            continue
        offers = rank_opinions(
            fit, loss, prices={name: price}, n=most, choice="best", excluded=excluded, random_state=seed
        )
        if costs is not None:
            offers = [replace(each, price=each.price * float(costs[each.row])) for each in offers]
            offers.sort(key=lambda each: -each.worth / each.price)
        found[name] = offers[:n]
    return found
