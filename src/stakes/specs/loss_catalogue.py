"""The losses by name, and what each is for: a table without the losses themselves, so that it is there at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Target = Literal["real target", "positive target", "classes"]
Takes = Literal["weight", "class weights", "cost matrix"]


@dataclass(frozen=True)
class Option:
    """A number that a loss is told."""

    name: str
    kind: str
    purpose: str
    default: float | None = None
    """None where it must be given."""


@dataclass(frozen=True)
class LossEntry:
    """A loss by name."""

    name: str
    kind: str
    """Its class in `stakes.losses`."""
    target: Target
    purpose: str
    options: tuple[Option, ...] = ()
    takes: Takes | None = "weight"
    """What, beside its options, says which errors count more; None where nothing can."""


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
        "Answers a quantile, such as the level that 9 in 10 samples stay below.",
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
"""By the name that the command line takes."""
