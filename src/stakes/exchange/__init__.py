"""Rows to other labelling tools, in our order, and labels back from them."""

from stakes.exchange.formats import FORMATS, Exported, export_tasks, import_answers

__all__ = ["FORMATS", "Exported", "export_tasks", "import_answers"]
