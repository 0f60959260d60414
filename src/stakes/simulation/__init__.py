"""Does it help? Repeated loops on labelled data: the loss-driven choice beside random, plain and other choices."""

from stakes.simulation.result import Comparison, Estimate, Reached, Simulation
from stakes.simulation.runner import simulate, simulate_trials
from stakes.simulation.trial import Trial

__all__ = ["Comparison", "Estimate", "Reached", "Simulation", "Trial", "simulate", "simulate_trials"]
