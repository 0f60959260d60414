"""A loss in words that JSON keeps, and the loss that they say.

Sizes: C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from stakes.specs.errors import SpecError, as_fields, as_json, refuse_unknown
from stakes.specs.importing import called, class_with, is_path
from stakes.specs.loss_catalogue import LOSSES, LossEntry
from stakes.specs.words import Points, checked_class_weights, checked_costs, checked_weight, exponential_rate

if TYPE_CHECKING:
    from stakes.losses import AnyLoss

_TAKEN = {"weight": "weight", "class_weights": "class weights", "cost_matrix": "cost matrix"}


@dataclass(frozen=True)
class LossSpec:
    """A loss by name, or by "module:Name", with its options, its weight, or its costs; all by the names of classes.

    Building one by "module:Name" imports that module, which runs it: build what comes from people you trust.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: str | Points | None = None
    class_weights: Mapping[str, float] | None = None
    cost_matrix: Mapping[str, Mapping[str, float]] | None = None

    def __post_init__(self) -> None:
        given = as_json(f"options of {self.name!r}", self.options)
        options = {name.replace("-", "_"): value for name, value in given.items()}
        object.__setattr__(self, "options", options)
        for name, check in (
            ("weight", checked_weight),
            ("class_weights", checked_class_weights),
            ("cost_matrix", checked_costs),
        ):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(getattr(self, name)))
        if not is_path(self.name):
            _check_entry(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_json("a loss", {each.name: getattr(self, each.name) for each in fields(self)})

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> LossSpec:
        """From JSON."""
        return LossSpec(**as_fields("a loss", kept, [each.name for each in fields(LossSpec)]))


def build_loss(spec: LossSpec, classes: Sequence[str] | None = None) -> AnyLoss:
    """The loss; class weights and costs are matched to the `classes` [C] by name, classes without a weight get 1."""
    from stakes.losses import DistributionLoss, Loss

    arguments = {**spec.options, **_concerns(spec, classes)}
    path = spec.name if is_path(spec.name) else f"stakes.losses:{LOSSES[spec.name].kind}"
    loss = called(spec.name, class_with(path, ("statistics", "regret"), "loss"), arguments)
    if not isinstance(loss, Loss | DistributionLoss):
        raise SpecError(f"{spec.name} is no loss: {loss!r} lacks methods of stakes.losses.Loss")
    return loss


def decisions_of(spec: LossSpec, classes: Sequence[str]) -> tuple[str, ...]:
    """The decisions of a cost matrix in the order of its columns: that of the classes where they are the classes."""
    named = tuple(next(iter((spec.cost_matrix or {"": {}}).values())))
    return tuple(classes) if set(named) == set(classes) else named


def _check_entry(spec: LossSpec) -> None:
    """Refuse what the loss of that name does not take, and what it lacks."""
    refuse_unknown("loss", [spec.name], LOSSES, ", or module:Name for one of your own")
    entry = LOSSES[spec.name]
    refuse_unknown(f"option of {spec.name}", spec.options, [option.name for option in entry.options])
    for option in entry.options:
        value = spec.options.get(option.name, option.default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            came = "none was given" if value is None else f"got {value!r}"
            raise SpecError(f"{spec.name} needs {option.name}, {option.kind}; {came}. {option.purpose}")
    _check_taken(spec, entry)


def _check_taken(spec: LossSpec, entry: LossEntry) -> None:
    for name, words in _TAKEN.items():
        if getattr(spec, name) is not None and words != entry.takes:
            takers = ", ".join(each.name for each in LOSSES.values() if each.takes == words)
            raise SpecError(f"{spec.name} takes no {words}; those that do are {takers}")
    if entry.takes == "cost matrix" and spec.cost_matrix is None:
        raise SpecError(f"{spec.name} needs a cost matrix: what each decision costs for each class")


def _concerns(spec: LossSpec, classes: Sequence[str] | None) -> dict[str, Any]:
    """What says which errors count more, as the classes of losses call it."""
    concerns: dict[str, Any] = {}
    if spec.weight is not None:
        concerns["weight"] = _weight(spec.weight)
    if spec.class_weights is not None:
        concerns["class_weights"] = _class_weights(spec.class_weights, classes)
    if spec.cost_matrix is not None:
        concerns["costs"] = _costs(spec, classes)
    return concerns


def _weight(weight: str | Points) -> Any:
    from stakes.losses import ExponentialWeight, InterpolatedWeight

    if isinstance(weight, str):
        return ExponentialWeight(exponential_rate(weight))
    values, weights = zip(*weight, strict=True)
    return InterpolatedWeight(values, weights)


def _class_weights(weights: Mapping[str, float], classes: Sequence[str] | None) -> tuple[float, ...]:
    known = _known("class weights", classes)
    refuse_unknown("class", weights, known)
    found = tuple(weights.get(name, 1.0) for name in known)
    if not any(found):
        raise SpecError(f"class weights must not all be 0; got {dict(weights)}")
    return found


def _costs(spec: LossSpec, classes: Sequence[str] | None) -> list[list[float]]:
    """Rows in the order of classes, columns in that of decisions."""
    known, costs = _known("a cost matrix", classes), spec.cost_matrix or {}
    refuse_unknown("class", costs, known)
    if lacking := [name for name in known if name not in costs]:
        raise SpecError(f"the cost matrix must have a row for every class; there is none for {', '.join(lacking)}")
    return [[costs[truth][decision] for decision in decisions_of(spec, known)] for truth in known]


def _known(what: str, classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        raise SpecError(f"{what} go by the names of the classes; give all classes")
    return list(classes)
