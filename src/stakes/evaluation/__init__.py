"""Bayes answers, realised losses, what of them could be saved, whether beliefs are calibrated, and audits."""

from stakes.acquisition.scores import bayes_prediction
from stakes.evaluation.agreement import Agreement, agreement
from stakes.evaluation.annotators import Annotators, ClassAnnotator, NumberAnnotator, estimate_annotators
from stakes.evaluation.audit import Audit, AuditDraw, AuditedLoss, audit
from stakes.evaluation.calibration import Calibration, ClassCalibration, calibration
from stakes.evaluation.decomposition import BiasVariance, Decomposition, bias_variance, decompose
from stakes.evaluation.realised import RealisedLoss, realised_loss

__all__ = [
    "Agreement",
    "Annotators",
    "Audit",
    "AuditDraw",
    "AuditedLoss",
    "BiasVariance",
    "Calibration",
    "ClassAnnotator",
    "ClassCalibration",
    "Decomposition",
    "NumberAnnotator",
    "RealisedLoss",
    "agreement",
    "audit",
    "bayes_prediction",
    "bias_variance",
    "calibration",
    "decompose",
    "estimate_annotators",
    "realised_loss",
]
