"""A table with a target: its rows with labels, its rows without, and what the next labels are worth.

scikit-learn is imported when something is fitted, not before.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stakes.worksheets.brief import Brief
from stakes.worksheets.labels import LabelError
from stakes.worksheets.sheet import Worksheet, read_worksheet

if TYPE_CHECKING:
    from stakes.worksheets.appraisal import Appraisal, appraise
    from stakes.worksheets.fitting import ModelError

__all__ = ["Appraisal", "Brief", "LabelError", "ModelError", "Worksheet", "appraise", "read_worksheet"]

_HEAVY = {"Appraisal": "appraisal", "appraise": "appraisal", "ModelError": "fitting"}


def __getattr__(name: str) -> Any:
    if name not in _HEAVY:
        raise AttributeError(f"module 'stakes.worksheets' has no attribute {name!r}")
    return getattr(import_module(f"stakes.worksheets.{_HEAVY[name]}"), name)
