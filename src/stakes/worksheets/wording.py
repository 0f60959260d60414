"""Why rows were chosen, in a few words."""

from __future__ import annotations

import math

from stakes.ranking import HelpedContext, Ranking, Reason
from stakes.ranking.cold import DISTANCE
from stakes.ranking.worths import WORTH


def whys(ranking: Ranking) -> tuple[str, ...]:
    """For each row of a ranking what its label tells most about; what it is worth is said by its score."""
    return tuple(_why(reason, score) for reason, score in zip(ranking.reasons, ranking.scores, strict=True))


def _why(reason: Reason, score: float) -> str:
    if reason.ranked_by == DISTANCE:
        return "far from the rows above" if math.isfinite(score) else "drawn with the seed"
    parts = [] if reason.ranked_by == WORTH else [f"ranked by {reason.ranked_by}"]
    if reason.contexts:
        parts.append(f"tells most about {', '.join(map(_told, reason.contexts))}")
    parts += [f"{reason.as_good} other rows are as good"] if reason.as_good else []
    return "; ".join(parts)


def _told(context: HelpedContext) -> str:
    """S015 (16% of its worth; today 2.4)."""
    share = f"{context.share:.0%}" if context.share >= 0.01 else "<1%"
    return f"{context.label} ({share} of its worth; today {context.answer})"
