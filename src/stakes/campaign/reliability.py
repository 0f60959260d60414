"""How reliable the annotators of a campaign are, and how far they agree, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from stakes.campaign.states import Opinion


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
