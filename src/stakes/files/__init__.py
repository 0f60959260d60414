"""Tables in files: read with errors that name the line, typed for a model, written safely for spreadsheets."""

from stakes.files.errors import TableError
from stakes.files.fingerprint import Fingerprint, changes, fingerprint
from stakes.files.frame import Frame
from stakes.files.pools import open_pool
from stakes.files.read import read_table
from stakes.files.row_ids import ids
from stakes.files.safe_cells import escape, unescape, write_csv
from stakes.files.source import Source

__all__ = [
    "Fingerprint",
    "Frame",
    "Source",
    "TableError",
    "changes",
    "escape",
    "fingerprint",
    "ids",
    "open_pool",
    "read_table",
    "unescape",
    "write_csv",
]
