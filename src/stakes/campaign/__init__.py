"""A labelling project on disk: which rows are labelled, which are handed out, which are open."""

from stakes.campaign.campaign import Campaign
from stakes.campaign.journal import Journal
from stakes.campaign.results import Asked, AskedRow, Status
from stakes.campaign.states import Event, Outcome, RowState

__all__ = [
    "Asked",
    "AskedRow",
    "Campaign",
    "Event",
    "Journal",
    "Outcome",
    "RowState",
    "Status",
]
