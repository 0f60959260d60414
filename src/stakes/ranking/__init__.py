"""One call from a fitted model and a loss to the rows worth labelling, and why."""

from stakes.ranking.annotators import OpinionFit, OpinionOffer, fit_to_opinions, rank_opinions
from stakes.ranking.cold_start import cold_start
from stakes.ranking.outlook import Outlook, outlook
from stakes.ranking.pools import Pool
from stakes.ranking.promises import PromisedRound
from stakes.ranking.rank import TrainedWeightWarning, rank
from stakes.ranking.result import HelpedContext, Note, Ranking, Reason
from stakes.ranking.stopping import Amount, Offer

__all__ = [
    "Amount",
    "HelpedContext",
    "Note",
    "Offer",
    "OpinionFit",
    "OpinionOffer",
    "Outlook",
    "Pool",
    "PromisedRound",
    "Ranking",
    "Reason",
    "TrainedWeightWarning",
    "cold_start",
    "fit_to_opinions",
    "outlook",
    "rank",
    "rank_opinions",
]
