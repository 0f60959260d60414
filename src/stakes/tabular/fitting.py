"""From labels to a model that is fitted, and the loss that goes with it."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stakes.exceptions import StakesError
from stakes.losses import AnyLoss
from stakes.models import DefaultModel
from stakes.models.inspection import trained_weights
from stakes.tabular.loss_specs import LOSSES, build_loss
from stakes.tabular.model_specs import ModelSpec, build_model
from stakes.tabular.worksheet import Worksheet, as_targets

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
    _refuse_zeros(spec, brief.loss.name, labels)
    model, loss = build_model(spec, sheet.task, classes, brief.seed), build_loss(brief.loss, classes)
    rows, pool = sorted(labels), sheet.features.take(sorted(others))
    targets = as_targets([labels[row] for row in rows], sheet.task)
    known = {"pool": pool} if isinstance(model, DefaultModel) else {"columns__pool": pool}
    with explained(sheet, len(rows)), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(sheet.features.take(rows), targets, **(known if len(pool) else {}))
    while_fitting = dict.fromkeys(f"While fitting: {each.message}" for each in caught)
    return Fitted(model, loss, classes, (*why, *_report(spec, model), *while_fitting, *_weighed_twice(sheet, model)))


def chosen_model(sheet: Worksheet) -> tuple[ModelSpec, tuple[str, ...]]:
    """The model of the brief; for a positive target the default is one that knows that."""
    brief = sheet.brief
    positive = brief.loss.name in LOSSES and LOSSES[brief.loss.name].target == "positive target"
    if positive and brief.model == ModelSpec():
        return _POSITIVE, (f"{brief.loss.name} is about positive numbers, so the model is {_POSITIVE.name}.",)
    return brief.model, ()


def refuse_unusable(sheet: Worksheet) -> None:
    """Refuse a loss or a model that cannot be built for the table, before anything is kept of it."""
    classes, (spec, _) = sheet.classes(sheet.labels), chosen_model(sheet)
    build_loss(sheet.brief.loss, classes)
    build_model(spec, sheet.task, classes, sheet.brief.seed)
    _refuse_zeros(spec, sheet.brief.loss.name, sheet.labels)


@contextmanager
def explained(sheet: Worksheet, n_labels: int) -> Iterator[None]:
    """A block in which what a model refuses is said to be that."""
    try:
        yield
    except StakesError:
        raise
    except (ValueError, TypeError, ArithmeticError) as error:
        name = chosen_model(sheet)[0].name
        called = "the default model" if name == "default" else f"the model {name}"
        raise StakesError(f"{called} cannot be used with {n_labels} labels: {error}") from error


def _refuse_zeros(spec: ModelSpec, loss: str, labels: Mapping[int, str]) -> None:
    """Some losses allow 0, whose logarithm no model can learn from."""
    zeros = sum(float(label) == 0.0 for label in labels.values()) if spec == _POSITIVE else 0
    if zeros:
        raise StakesError(
            f"{zeros} of {len(labels)} labels are 0, and {spec.name}, the model for {loss}, learns logarithms. Add "
            "a small number, such as 0.5, to all labels, or take a loss for all numbers, such as squared-error"
        )


def _weighed_twice(sheet: Worksheet, model: Any) -> tuple[str, ...]:
    """A caution where classes are weighed in training, and again in the loss."""
    weighs = sheet.brief.loss.class_weights or sheet.brief.loss.cost_matrix
    found = trained_weights(model) if weighs else None
    return () if found is None else (found[0].upper() + found[1:],)


def _report(spec: ModelSpec, model: Any) -> tuple[str, ...]:
    """What the model did to the table."""
    if isinstance(model, DefaultModel):
        return model.report
    return (f"The model is {spec.name}.", *model[0].report_)
