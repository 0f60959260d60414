"""Bayes answers, realised losses, what of them could be saved, and whether the belief was calibrated."""

from stakes.acquisition.scores import bayes_prediction
from stakes.evaluation.calibration import Calibration, ClassCalibration, calibration
from stakes.evaluation.decomposition import BiasVariance, Decomposition, bias_variance, decompose
from stakes.evaluation.realised import RealisedLoss, realised_loss

__all__ = [
    "BiasVariance",
    "Calibration",
    "ClassCalibration",
    "Decomposition",
    "RealisedLoss",
    "bayes_prediction",
    "bias_variance",
    "calibration",
    "decompose",
    "realised_loss",
]
