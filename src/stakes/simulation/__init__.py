"""Does it help? Repeated loops of active learning on labelled data: choices by the loss, at random, by other rules."""

from stakes.simulation.metrics import MetricLike
from stakes.simulation.result import Comparison, Estimate, PromiseRecord, Reached, Simulation
from stakes.simulation.runner import simulate, simulate_trials
from stakes.simulation.strategies import StrategyLike
from stakes.simulation.trial import Trial

__all__ = [
    "Comparison",
    "Estimate",
    "MetricLike",
    "PromiseRecord",
    "Reached",
    "Simulation",
    "StrategyLike",
    "Trial",
    "simulate",
    "simulate_trials",
]
