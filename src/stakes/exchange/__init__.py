"""Rows to other labelling tools, in our order, and labels back from them."""

from stakes.exchange.argilla import argilla_records, argilla_settings
from stakes.exchange.doccano import doccano_labels, doccano_lines
from stakes.exchange.formats import FORMATS, Exported, export_tasks, import_answers
from stakes.exchange.label_studio import label_studio_config, label_studio_tasks
from stakes.exchange.tasks import Task, TaskList, open_tasks

__all__ = [
    "FORMATS",
    "Exported",
    "Task",
    "TaskList",
    "argilla_records",
    "argilla_settings",
    "doccano_labels",
    "doccano_lines",
    "export_tasks",
    "import_answers",
    "label_studio_config",
    "label_studio_tasks",
    "open_tasks",
]
