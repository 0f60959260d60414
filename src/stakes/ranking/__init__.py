"""One call from a fitted model and a loss to the rows worth labelling, and why."""

from stakes.ranking.choose import TrainedWeightWarning, rank
from stakes.ranking.cold import cold_start
from stakes.ranking.result import HelpedContext, Ranking, Reason

__all__ = ["HelpedContext", "Ranking", "Reason", "TrainedWeightWarning", "cold_start", "rank"]
