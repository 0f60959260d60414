"""The one error of data sets."""

from __future__ import annotations


class DatasetError(ValueError):
    """A data set that cannot be had, or that is not what was published: what is wrong, and what to do."""
