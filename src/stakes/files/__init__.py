"""Tables in files: read with errors that name the line, typed for a model, written safely for spreadsheets."""

from stakes.files.frame import Frame
from stakes.files.pools import open_pool
from stakes.files.read import Fingerprint, Source, changes, fingerprint, read_table, row_ids
from stakes.files.write import escape, unescape, write_csv

__all__ = [
    "Fingerprint",
    "Frame",
    "Source",
    "changes",
    "escape",
    "fingerprint",
    "open_pool",
    "read_table",
    "row_ids",
    "unescape",
    "write_csv",
]
