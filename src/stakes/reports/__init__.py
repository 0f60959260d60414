"""The report of a campaign: one HTML file with pictures, for people who were not there."""

from stakes.reports.errors import ReportError
from stakes.reports.write import write_report

__all__ = ["ReportError", "write_report"]
