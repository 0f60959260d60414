"""From labels to a model that is fitted, and the loss that goes with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from stakes.losses import AnyLoss
from stakes.models import DefaultModel
from stakes.specs import LOSSES, ModelSpec, build_loss, build_model
from stakes.worksheets.labels import as_targets
from stakes.worksheets.sheet import Worksheet

_POSITIVE = ModelSpec("log-gaussian-process")


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, the loss, and what there is to say about them."""

    model: Any
    loss: AnyLoss
    classes: tuple[str, ...] | None
    said: tuple[str, ...]


def fitted(sheet: Worksheet, labels: Mapping[int, str], others: Collection[int]) -> Fitted:
    """The model of the brief, fitted to labels by row; columns are encoded by the `others`, too."""
    brief, classes = sheet.brief, sheet.classes(dict(labels))
    spec, why = chosen_model(sheet)
    model = build_model(spec, sheet.task, classes, brief.seed)
    rows, pool = sorted(labels), sheet.features.take(sorted(others))
    targets = as_targets([labels[row] for row in rows], sheet.task)
    known = {"pool": pool} if isinstance(model, DefaultModel) else {"columns__pool": pool}
    model.fit(sheet.features.take(rows), targets, **(known if len(pool) else {}))
    return Fitted(model, build_loss(brief.loss, classes), classes, (*why, *_report(spec, model)))


def chosen_model(sheet: Worksheet) -> tuple[ModelSpec, tuple[str, ...]]:
    """The model of the brief; for a positive target the default is one that knows that."""
    brief = sheet.brief
    positive = brief.loss.name in LOSSES and LOSSES[brief.loss.name].target == "positive target"
    if positive and brief.model == ModelSpec():
        return _POSITIVE, (f"{brief.loss.name} is about positive numbers, so the model is {_POSITIVE.name}.",)
    return brief.model, ()


def _report(spec: ModelSpec, model: Any) -> tuple[str, ...]:
    """What the model did to the table."""
    if isinstance(model, DefaultModel):
        return model.report
    return (f"The model is {spec.name}.", *model[0].report_)
