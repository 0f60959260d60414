"""A labelling project on disk: which rows are labelled, which are handed out, which are open."""

from stakes.campaign.campaign import Campaign, Status
from stakes.campaign.journal import Journal
from stakes.campaign.states import Event, Recorded, RowState

__all__ = ["Campaign", "Event", "Journal", "Recorded", "RowState", "Status"]
