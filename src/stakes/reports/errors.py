"""What a report refuses, and what it goes on without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class ReportError(ValueError):
    """A report that cannot be written; it says why and what to do."""


def attempted(compute: Callable[[], T]) -> tuple[T | None, str]:
    """What was computed, or None and why not: models are those of users, and a report outlives what they raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit warns of is told once, where rows are ranked
        try:
            return compute(), ""
        except Exception as error:
            return None, f"the model could not be used ({type(error).__name__}: {str(error).rstrip('.')})"
