"""A labelling project on disk: which rows are labelled, which are handed out, which are open."""

from stakes.campaign.campaign import Campaign
from stakes.campaign.journal import Journal
from stakes.campaign.states import Event, Recorded, RowState, Status

__all__ = ["Campaign", "Event", "Journal", "Recorded", "RowState", "Status"]
