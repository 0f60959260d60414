"""A table with a target: its rows with labels, its rows without, and what the next labels are worth."""

from stakes.worksheets.appraise import Appraisal, appraise
from stakes.worksheets.brief import Brief
from stakes.worksheets.labels import LabelError
from stakes.worksheets.sheet import Worksheet, read_worksheet

__all__ = ["Appraisal", "Brief", "LabelError", "Worksheet", "appraise", "read_worksheet"]
