"""Does it help? Repeated loops on labelled data: the loss-driven choice beside random, plain and other choices."""

from stakes.simulation.intervals import Estimate
from stakes.simulation.result import Comparison, Reached, Simulation
from stakes.simulation.runs import simulate, simulate_trials
from stakes.simulation.trial import Trial

__all__ = ["Comparison", "Estimate", "Reached", "Simulation", "Trial", "simulate", "simulate_trials"]
