"""A labelling project on disk: which rows are labelled, which are handed out, which are open."""

from stakes.campaigns.answers import Asked, AskedRow, Status
from stakes.campaigns.campaign import Campaign
from stakes.campaigns.errors import CampaignError
from stakes.campaigns.events import Event, Outcome
from stakes.campaigns.journal import Journal
from stakes.campaigns.states import RowState

__all__ = [
    "Asked",
    "AskedRow",
    "Campaign",
    "CampaignError",
    "Event",
    "Journal",
    "Outcome",
    "RowState",
    "Status",
]
