"""Tables in files: read with errors that name the line, typed for a model, written safely for spreadsheets."""

from stakes.files.frame import Frame
from stakes.files.pools import open_pool
from stakes.files.read import Fingerprint, Source, changes, fingerprint, ids, read_table
from stakes.files.write import escape, unescape, write_csv

__all__ = [
    "Fingerprint",
    "Frame",
    "Source",
    "changes",
    "escape",
    "fingerprint",
    "ids",
    "open_pool",
    "read_table",
    "unescape",
    "write_csv",
]
