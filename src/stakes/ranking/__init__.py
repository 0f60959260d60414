"""One call from a fitted model and a loss to the rows worth labelling, and why."""

from stakes.ranking.choose import TrainedWeightWarning, rank
from stakes.ranking.cold import cold_start
from stakes.ranking.outlook import outlook
from stakes.ranking.outlook_result import Amount, Offer, Outlook
from stakes.ranking.pools import Pool
from stakes.ranking.result import HelpedContext, Ranking, Reason

__all__ = [
    "Amount",
    "HelpedContext",
    "Offer",
    "Outlook",
    "Pool",
    "Ranking",
    "Reason",
    "TrainedWeightWarning",
    "cold_start",
    "outlook",
    "rank",
]
