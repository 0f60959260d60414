"""Losses by name, or by "module:Name", with options, weights and costs: what JSON keeps and the command line takes.

The catalogue `LOSSES` names the losses without importing them, so that it is there at once. A weight is "exp:RATE", or
points (y, weight); class weights and cost matrices go by the names of classes. A class of your own is imported, and
checked to be what it should be before anything of it is called; what it raises is named as its own.

Sizes: C classes.
"""

from __future__ import annotations

import csv
import inspect
import json
import math
import os
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from stakes._utils.text import did_you_mean, number, short
from stakes.exceptions import StakesError
from stakes.files.frame import cell_kind
from stakes.files.read import read_table
from stakes.tabular.costs import CostTable, checked_cost_matrix, finite

if TYPE_CHECKING:
    from stakes.losses import AnyLoss

Points: TypeAlias = tuple[tuple[float, float], ...]
Target = Literal["real target", "positive target", "classes"]
Takes = Literal["weight", "class weights", "cost matrix"]

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_WEIGHT = "a weight is exp:RATE, such as exp:-1, or a CSV file with the columns y and weight"
_TAKEN = {"weight": "weight", "class_weights": "class weights", "cost_matrix": "cost matrix"}


def refuse_unknown(
    what: str, given: Iterable[str], known: Iterable[str], advice: str = "", *, before: str = ""
) -> None:
    """Refuse the first word that is not among those known, with the one that was perhaps meant."""
    known = list(known)
    for word in given:
        if word not in known:
            there = f"there are {', '.join(known)}" if known else "there are none"
            raise StakesError(f"{before}there is no {what} {word!r}; {there}{advice}.{did_you_mean(word, known)}")


def as_json(what: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of our own, as JSON would give it back."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise StakesError(
            f"{what} must be texts and finite numbers that JSON can keep; got {value!r} ({error})"
        ) from error
    return copy


def as_fields(what: str, kept: Any, known: Iterable[str]) -> dict[str, Any]:
    """What was kept of a spec, with no field that it does not have."""
    if not isinstance(kept, Mapping) or "name" not in kept:
        raise StakesError(f'{what} must be kept as {{"name": ..., ...}}; got {kept!r}')
    refuse_unknown(f"field of {what}", map(str, kept), known)
    return dict(kept)


def is_path(name: str) -> bool:
    """Whether a name is an import path rather than one of a catalogue; what is nearly one is refused, not imported."""
    if not isinstance(name, str):
        raise StakesError(f"a name must be text; got {name!r}")
    if ":" in name and not _PATH.fullmatch(name):
        raise StakesError(f"an import path must be module:Name, such as sklearn.linear_model:Ridge; got {name!r}")
    return ":" in name


def imported(path: str) -> Any:
    """What "module:Name" stands for; its module is run by importing it, as by any import."""
    module_name, _, name = path.partition(":")
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise StakesError(
            f"{path!r} must name a module that can be imported; {module_name!r} cannot ({error})"
        ) from error
    except Exception as error:
        raise StakesError(f"your module {module_name} raised {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise StakesError(f"the module {module_name} has no {name!r}.{did_you_mean(name, dir(module))}")
    return getattr(module, name)


def class_with(path: str, methods: tuple[str, ...], what: str) -> type:
    """The class at `path`, which has these methods: whatever else a file may name is not called."""
    kind = imported(path)
    if not isinstance(kind, type) or not all(callable(getattr(kind, method, None)) for method in methods):
        raise StakesError(f"{path} is no {what}: a class with {', '.join(methods)} was expected; got {kind!r}")
    return kind


def constructed(path: str, kind: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """The class called with arguments that it knows, its own refusals included."""
    known = inspect.signature(kind).parameters
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values()):
        refuse_unknown(f"option of {path}", arguments, known)
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise StakesError(f"{path}: {error}") from error
    except Exception as error:
        if is_own(error, path):
            raise StakesError(f"{path} raised {type(error).__name__}: {error}") from error
        raise


def is_own(error: BaseException, path: str) -> bool:
    """Whether an exception passed through the code of the package of "module:Name", one that is not stakes itself."""
    package = path.partition(":")[0].partition(".")[0]
    if ":" not in path or package == "stakes":
        return False
    if f"{os.sep}{package}" in str(error.__cause__ or ""):  # the traceback of another process is a text
        return True
    return any(name == package for name in _packages(error))


def is_of_stakes(error: BaseException) -> bool:
    """Whether an exception was raised by the code of stakes itself, not by a library that it called."""
    return _packages(error)[-1:] == ["stakes"]


def _packages(error: BaseException) -> list[str]:
    """The top packages of the functions that an exception passed through, the one that raised it last."""
    frames = traceback.walk_tb(error.__traceback__)
    return [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in frames]


def parse_weight(text: str) -> str | Points:
    """Read the weight of a loss from the command line.

    Args:
        text: "exp:RATE", or the path of a CSV file with the columns y and weight, which is read now.

    Returns:
        "exp:RATE", or points (y, weight).

    Raises:
        StakesError: If it is neither, or weights are negative or all zero.

    Examples:
        >>> parse_weight("exp:-1")
        'exp:-1.0'
    """
    if text.lower().endswith((".csv", ".tsv", ".txt")):
        return checked_weight(_points(text))
    return checked_weight(text)


def checked_weight(weight: Any) -> str | Points:
    """A weight as it is kept: "exp:RATE", or points of increasing y."""
    if isinstance(weight, str):
        return f"exp:{exponential_rate(weight)!r}"
    try:
        points = tuple(sorted((float(y), float(w)) for y, w in weight))
    except (TypeError, ValueError) as error:
        raise StakesError(f"{_WEIGHT}; got {weight!r}") from error
    _check_weights("the weight", [w for _, w in points])
    values = [y for y, _ in points]
    if not all(map(math.isfinite, values)) or len(set(values)) != len(values):
        raise StakesError(f"the points of a weight need finite values of y, each once; got {values}")
    return points


def exponential_rate(text: str) -> float:
    """The rate of "exp:RATE"."""
    name, _, rate = text.partition(":")
    if name.strip() != "exp" or cell_kind(rate) != "number":
        raise StakesError(f"{_WEIGHT}; got {text!r}")
    return float(rate)


def parse_class_weights(text: str) -> dict[str, float]:
    """Read weights of classes from the command line.

    The last = of an item stands before its weight, so that a name may hold others; an item with a comma or a quote in
    it is quoted as in CSV: '"red, dark=3",blue=1'.

    Args:
        text: Such as "bus=50,van=50".

    Returns:
        The weights by class.

    Raises:
        StakesError: If it is something else, or a weight is negative.

    Examples:
        >>> parse_class_weights("bus=50,van=20")
        {'bus': 50.0, 'van': 20.0}
    """
    try:
        (items,) = csv.reader([text], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise StakesError(f"class weights are CLASS=WEIGHT,CLASS=WEIGHT,...; got {text!r} ({error})") from error
    pairs = [item.rpartition("=") for item in items]
    bad = [item for item, (name, _, w) in zip(items, pairs, strict=True) if not name or cell_kind(w) != "number"]
    if bad or not items:
        raise StakesError(f"class weights are CLASS=WEIGHT,CLASS=WEIGHT,...; got {(bad or [''])[0]!r} in {text!r}")
    names = [name for name, _, _ in pairs]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise StakesError(f"each class has one weight; {twice[0]!r} is given twice in {text!r}")
    return checked_class_weights({name: float(weight) for name, _, weight in pairs})


def checked_class_weights(weights: Mapping[str, Any]) -> dict[str, float]:
    """Weights by class, finite and at least 0."""
    if not isinstance(weights, Mapping) or not weights:
        raise StakesError(f"class weights must be numbers by class, such as {{'bus': 50}}; got {weights!r}")
    numbers = {str(name): finite(f"the weight of class {name!r}", weight) for name, weight in weights.items()}
    if negative := [name for name, weight in numbers.items() if weight < 0]:
        raise StakesError(f"class weights must be at least 0; that of {negative[0]!r} is {numbers[negative[0]]}")
    return numbers


def parse_options(items: Iterable[str]) -> dict[str, Any]:
    """Read options from the command line; a value is what JSON makes of it, else text.

    Args:
        items: Such as "alpha=0.5".

    Returns:
        The values by name.

    Raises:
        StakesError: If an item is no NAME=VALUE.

    Examples:
        >>> parse_options(["alpha=0.5", "kernel=rbf"])
        {'alpha': 0.5, 'kernel': 'rbf'}
    """
    pairs = [item.partition("=") for item in items]
    if bad := ["".join(pair) for pair in pairs if not pair[0] or not pair[1]]:
        raise StakesError(f"an option is NAME=VALUE, such as alpha=0.5; got {bad[0]!r}")
    return {name: _value(text) for name, _, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _points(path: str) -> list[tuple[float, float]]:
    source = read_table(path)
    if len(source.names) != 2 or any(cell_kind(name) == "number" for name in source.names):
        raise StakesError(
            f"{path} must have two columns, named in its first line, y and weight; got {list(source.names)}"
        )
    y, weight = source.features().arrays
    gaps = [row for row in range(len(source)) if None in (source.cells[0][row], source.cells[1][row])]
    if gaps or "O" in (y.dtype.kind, weight.dtype.kind):
        where = source.place(gaps[0]) if gaps else "line 2"
        raise StakesError(f"{path} must hold a number in every cell; look at {where}")
    return list(zip(y.tolist(), weight.tolist(), strict=True))


def _check_weights(what: str, weights: Sequence[float]) -> None:
    if not weights or not all(map(math.isfinite, weights)) or min(weights) < 0 or max(weights) == 0:
        raise StakesError(f"{what} must be finite, at least 0 and not all 0; got {list(weights)}")


@dataclass(frozen=True)
class Option:
    """A number that a loss takes.

    Args:
        name: Of the argument.
        kind: What numbers it may be.
        purpose: What it does.
        default: Its value where it is not given; None where it must be given.

    Examples:
        >>> LOSSES["pinball"].options[0].name
        'tau'
    """

    name: str
    kind: str
    purpose: str
    default: float | None = None


@dataclass(frozen=True)
class LossEntry:
    """A loss of the catalogue.

    Args:
        name: As the command line takes it.
        kind: Its class in `stakes.losses`.
        target: What labels are: real numbers, positive ones, or classes.
        purpose: What it is for.
        options: The numbers that it takes.
        takes: What, beside its options, says which errors count more; None where nothing can.

    Examples:
        >>> LOSSES["log-loss"].takes
        'class weights'
    """

    name: str
    kind: str
    target: Target
    purpose: str
    options: tuple[Option, ...] = ()
    takes: Takes | None = "weight"


_REALS = (
    LossEntry("squared-error", "SquaredError", "real target", "A miss twice as far costs four times as much."),
    LossEntry("absolute-error", "AbsoluteError", "real target", "A miss twice as far costs twice as much."),
    LossEntry(
        "linex",
        "Linex",
        "real target",
        "Too high hurts far more than too low, or the other way round: the cost grows exponentially on one side.",
        (Option("alpha", "a number other than 0", "Above 0: too high hurts more; below 0: too low.", 1.0),),
    ),
    LossEntry(
        "pinball",
        "Pinball",
        "real target",
        "Answers a quantile: the level that a share tau of the samples stays below.",
        (Option("tau", "a number between 0 and 1", "The level of the quantile, such as 0.9."),),
    ),
    LossEntry("crps", "CRPS", "real target", "Scores the whole forecast, in the units of the target."),
    LossEntry("log-score", "LogScore", "real target", "Scores how likely the forecast held what came: surprise."),
    LossEntry(
        "threshold-decision",
        "ThresholdDecision",
        "real target",
        "Act or wait: acting is right when the target is above a threshold.",
        (
            Option("threshold", "a number", "Above it, acting is right."),
            Option("miss", "a positive number", "What it costs to wait when acting was right.", 1.0),
            Option("false_alarm", "a positive number", "What it costs to act when waiting was right.", 1.0),
        ),
        None,
    ),
)
_POSITIVE = (
    LossEntry("poisson-deviance", "PoissonDeviance", "positive target", "Counts and rates; 0 is allowed."),
    LossEntry(
        "itakura-saito",
        "ItakuraSaito",
        "positive target",
        "Errors count as ratios, and too low hurts more than too high.",
    ),
    LossEntry(
        "box-cox",
        "BoxCox",
        "positive target",
        "Squared error after a power of the target: between counting differences and counting ratios.",
        (Option("lam", "a number", "1 counts differences, 0 counts ratios (the logarithm), 0.5 is half way."),),
    ),
)
_CLASSES = (
    LossEntry(
        "log-loss",
        "LogLoss",
        "classes",
        "Surprise at the true class; being sure and wrong is very bad.",
        (),
        "class weights",
    ),
    LossEntry("brier", "BrierLoss", "classes", "Squared error of the class probabilities.", (), "class weights"),
    LossEntry(
        "spherical",
        "SphericalLoss",
        "classes",
        "Like brier, but only the direction of the probabilities counts.",
        (),
        "class weights",
    ),
    LossEntry("zero-one", "ZeroOne", "classes", "The share of wrong answers; every mistake costs the same.", (), None),
    LossEntry(
        "cost-matrix",
        "CostMatrix",
        "classes",
        "A table says what each decision costs for each true class.",
        (),
        "cost matrix",
    ),
)

LOSSES: dict[str, LossEntry] = {entry.name: entry for entry in (*_REALS, *_POSITIVE, *_CLASSES)}
"""The losses by name."""


def _pinball(tau: float) -> str:
    worse, better, times = ("low", "high", tau / (1 - tau)) if tau >= 0.5 else ("high", "low", (1 - tau) / tau)
    ratio = "as much as" if times == 1.0 else f"{number(times, 3)} times as much as"
    return (
        f"Answers the level that {_share(tau)} samples stay below: too {worse} an answer costs {ratio} one that is too "
        f"{better}."
    )


def _share(level: float) -> str:
    """9 in 10, 1 in 4, 33.3 in 100."""
    whole = next((size for size in (2, 4, 10, 20, 100) if abs(level * size - round(level * size)) < 1e-9), None)
    return f"{number(level * 100, 3)} in 100" if whole is None else f"{round(level * whole)} in {whole}"


def _linex(alpha: float = 1.0) -> str:
    worse, better = ("high", "low") if alpha > 0 else ("low", "high")
    return f"Too {worse} hurts far more than too {better}: its cost grows exponentially."


def _threshold(threshold: float, miss: float = 1.0, false_alarm: float = 1.0) -> str:
    return (
        f"Act or wait: acting is right when the target is above {short(threshold)}. To wait when acting was right "
        f"costs {short(miss)}, to act when waiting was right {short(false_alarm)}."
    )


def _box_cox(lam: float) -> str:
    counts = {1.0: "differences count", 0.0: "ratios count"}.get(
        lam, "between counting differences and counting ratios"
    )
    return f"Squared error after the power {short(lam)} of the target: {counts}."


_WITH_OPTIONS: dict[str, Callable[..., str]] = {
    "pinball": _pinball,
    "linex": _linex,
    "threshold-decision": _threshold,
    "box-cox": _box_cox,
}


@dataclass(frozen=True)
class LossSpec:
    """A loss by name, as JSON keeps it.

    Args:
        name: One of `LOSSES`, or "module:Name" for a class of your own. Building that imports the module, which runs
            it: build what comes from people you trust.
        options: The numbers that it takes.
        weight: "exp:RATE", or points (y, weight): which targets count more.
        class_weights: Which classes count more, by name; others count 1.
        cost_matrix: Costs by true class and decision.

    Raises:
        StakesError: If there is no such loss, or it does not take what is given.

    Examples:
        >>> spec = LossSpec("linex", {"alpha": 0.5})
        >>> LossSpec.from_dict(spec.to_dict()) == spec
        True
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
            ("cost_matrix", checked_cost_matrix),
        ):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(getattr(self, name)))
        if not is_path(self.name):
            _check_entry(self)

    def to_dict(self) -> dict[str, Any]:
        """All fields, as JSON keeps them."""
        return as_json("a loss", {each.name: getattr(self, each.name) for each in fields(self)})

    @staticmethod
    def from_dict(kept: Mapping[str, Any]) -> LossSpec:
        """From JSON.

        Args:
            kept: What `to_dict` gave.

        Returns:
            The spec.

        Raises:
            StakesError: If it is something else.
        """
        return LossSpec(**as_fields("a loss", kept, [each.name for each in fields(LossSpec)]))


def purpose_of(spec: LossSpec) -> str:
    """What a loss of the catalogue is for, with the options that it was given; nothing for one of your own."""
    if spec.name not in LOSSES:
        return ""
    return _WITH_OPTIONS[spec.name](**spec.options) if spec.name in _WITH_OPTIONS else LOSSES[spec.name].purpose


def build_loss(spec: LossSpec, classes: Sequence[str] | None = None) -> AnyLoss:
    """Build the loss of a spec.

    Args:
        spec: The loss by name.
        classes: All C classes in their order; class weights and costs are matched to them by name.

    Returns:
        A loss of `stakes.losses`, or of your own.

    Raises:
        StakesError: If it cannot be built: an option out of range, a class that is not there, no such class.

    Examples:
        >>> build_loss(LossSpec("linex", {"alpha": 0.5}))
        Linex(alpha=0.5, weight=None)
    """
    from stakes.losses import DistributionLoss, Loss

    arguments = {**spec.options, **_concerns(spec, classes)}
    path = spec.name if is_path(spec.name) else f"stakes.losses:{LOSSES[spec.name].kind}"
    loss = constructed(spec.name, class_with(path, ("statistics", "regret"), "loss"), arguments)
    readable = hasattr(loss, "domain")  # a property that raises counts as there, from Python 3.12 on
    if not isinstance(loss, Loss | DistributionLoss) or not readable:
        raise StakesError(f"{spec.name} is no loss: {loss!r} lacks methods of stakes.losses.Loss")
    return loss


def decisions_of(spec: LossSpec, classes: Sequence[str]) -> tuple[str, ...]:
    """The decisions of a cost matrix in the order of its columns: that of the classes where they are the classes.

    Args:
        spec: A loss with a cost matrix.
        classes: All classes in their order.

    Returns:
        The names of the decisions.

    Examples:
        >>> decisions_of(LossSpec("cost-matrix", cost_matrix={"ill": {"treat": 1, "wait": 20}}), ["ill"])
        ('treat', 'wait')
    """
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
            raise StakesError(f"{spec.name} needs {option.name}, {option.kind}; {came}. {option.purpose}")
    _check_taken(spec, entry)


def _check_taken(spec: LossSpec, entry: LossEntry) -> None:
    for name, what in _TAKEN.items():
        if getattr(spec, name) is not None and what != entry.takes:
            takers = ", ".join(each.name for each in LOSSES.values() if each.takes == what)
            raise StakesError(f"{spec.name} takes no {what}; those that do are {takers}")
    if entry.takes == "cost matrix" and spec.cost_matrix is None:
        raise StakesError(f"{spec.name} needs a cost matrix: what each decision costs for each class")


def _concerns(spec: LossSpec, classes: Sequence[str] | None) -> dict[str, Any]:
    """The arguments of a loss that say which errors count more."""
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
        raise StakesError(f"class weights must not all be 0; got {dict(weights)}")
    return found


def _costs(spec: LossSpec, classes: Sequence[str] | None) -> list[list[float]]:
    """Rows in the order of classes, columns in that of decisions."""
    known, costs = _known("a cost matrix", classes), spec.cost_matrix or {}
    table = costs if isinstance(costs, CostTable) else CostTable({})
    for name in costs:
        where = f"{table.places[name]}: " if name in table.places else ""
        refuse_unknown("class", [name], known, before=where)
    if lacking := [name for name in known if name not in costs]:
        raise StakesError(
            f"{table.file}the cost matrix must have a row for every class; there is none for {', '.join(lacking)}"
        )
    return [[costs[truth][decision] for decision in decisions_of(spec, known)] for truth in known]


def _known(what: str, classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        raise StakesError(f"{what} go by the names of the classes; give all classes")
    return list(classes)


def loss_sentences(loss: LossSpec) -> str:
    """Its name, its options, what it is for, and what counts more."""
    options = ", ".join(
        f"{name} {short(value)}" for name, value in loss.options.items() if isinstance(value, int | float)
    )
    name = f"{loss.name} ({options})" if options else loss.name
    return f"The loss is {name}. {purpose_of(loss)}".rstrip() + _counts_more(loss)


def _counts_more(loss: LossSpec) -> str:
    """A sentence on which errors count more; nothing where none do."""
    if loss.class_weights:
        times = ", ".join(f"{short(weight)} times for {name}" for name, weight in loss.class_weights.items())
        return f" Errors count {times}."
    if isinstance(loss.weight, str):
        return f" Errors count exp({exponential_rate(loss.weight):g} y) times, where y is the true value."
    return " Errors count more or less by the true value." if loss.weight else ""
