"""A labelling project on disk: which rows are labelled, which are handed out, which are open."""

from stakes.campaign.campaign import Campaign
from stakes.campaign.journal import Journal
from stakes.campaign.states import Event, Opinion, Recorded, RowState, Status, Undone

__all__ = ["Campaign", "Event", "Journal", "Opinion", "Recorded", "RowState", "Status", "Undone"]
