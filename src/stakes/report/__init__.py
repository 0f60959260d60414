"""The report of a campaign: one HTML file with pictures, for people who were not there."""

from stakes.report.page import write_report

__all__ = ["write_report"]
