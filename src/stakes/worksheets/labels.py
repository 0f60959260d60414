"""Labels as people write them: the name of a class, or a number that the loss can judge.

Sizes: n labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from stakes.files.cells import kind_of
from stakes.files.errors import did_you_mean
from stakes.files.frame import Host
from stakes.specs import LOSSES, LossSpec, SpecError, build_loss

Task = Literal["classes", "real"]


class LabelError(ValueError):
    """A label that cannot be one; it says which would do."""


def task_of(loss: LossSpec) -> Task:
    """Whether the loss is about classes or numbers; losses are imported only where the catalogue does not tell."""
    if loss.name in LOSSES:
        return "classes" if LOSSES[loss.name].target == "classes" else "real"
    from stakes.domains import Classes, Interval

    named = [*(loss.class_weights or ()), *(loss.cost_matrix or ())]
    domain = build_loss(loss, named or None).domain
    if isinstance(domain, Classes):
        return "classes"
    if isinstance(domain, Interval):
        return "real"
    raise SpecError(f"{loss.name} is about {domain}; a column holds numbers or classes")


def classes_of(given: Sequence[str] | None, loss: LossSpec, labels: Iterable[str]) -> tuple[str, ...]:
    """All classes: those given; else those of a cost matrix; else those of the labels, in the order of the alphabet."""
    seen = sorted(set(labels))
    known = tuple(given or loss.cost_matrix or seen)
    if len(set(known)) != len(known) or "" in known:
        raise SpecError(f"each class must be named once, by some letters; got {list(known)}")
    for label in seen:
        checked_class(label, known)
    for name in loss.class_weights or ():
        if name not in known:
            more = "" if given else " If no label has had it yet, name all classes (--classes)."
            raise SpecError(
                f"there is no class {name!r} to weigh; {_there_are(known)}.{did_you_mean(name, known)}{more}"
            )
    return known


def checked_class(label: str, classes: Sequence[str]) -> str:
    """A class by name; any name will do where no class is known."""
    if not label:
        raise LabelError("a label must not be empty; leave a row without one, or skip it.")
    if classes and label not in classes:
        raise LabelError(f"{label!r} is no class; {_there_are(classes)}.{did_you_mean(label, classes)}")
    return label


def domain_of(loss: LossSpec) -> Any:
    """The interval that numbers must be in; None where any will do."""
    if loss.name in LOSSES and LOSSES[loss.name].target != "positive target":
        return None
    return build_loss(loss).domain


def checked_number(label: str, loss: LossSpec, domain: Any) -> str:
    """A number that the loss can judge, as it was written; `domain` is that of the loss, None for all numbers."""
    if kind_of(label) != "number":
        point = " Write it with a decimal point." if "," in label else ""
        raise LabelError(f"{label!r} is no number, and {loss.name} is about numbers.{point}")
    if domain is not None and not _holds(domain, float(label)):
        raise LabelError(f"{label} is not among {domain}, what {loss.name} is about.")
    return label


def as_targets(labels: Sequence[str], task: Task) -> Host:
    """[n]: what a model is fitted to."""
    return np.asarray([float(label) for label in labels]) if task == "real" else np.asarray(labels, dtype=object)


def _holds(domain: Any, value: float) -> bool:
    above: bool = value >= domain.low if domain.closed_low else value > domain.low
    return above and bool(value < domain.high)


def _there_are(classes: Sequence[Any]) -> str:
    names = ", ".join(repr(name) for name in classes[:10])
    more = f" and {len(classes) - 10} more" if len(classes) > 10 else ""
    return f"there are {names}{more}" if classes else "none is known yet"
