"""Fitted models as beliefs: what a model you already have says of labels and targets, jointly."""

from stakes.models import latent_classes as _latent_classes  # noqa: F401 (registers its adapters)
from stakes.models import sklearn_gaussian as _sklearn_gaussian  # noqa: F401
from stakes.models.base import Adapter, belief_of, prepare_belief, register_model
from stakes.models.bayesian_process import BayesianProcess
from stakes.models.bootstrap import Bootstrap
from stakes.models.count_process import CountProcess
from stakes.models.default_model import DefaultModel, default
from stakes.models.encoding import TableEncoder
from stakes.models.ensembles import EnsembleOf, out_of_bag_noise
from stakes.models.gaussian_process import FollowedProcess, GaussianProcess, Hyperparameters, follow
from stakes.models.label_draws import LabelDraws
from stakes.models.on_device import OnDevice
from stakes.models.ordered_probit import OrderedProbit

__all__ = [
    "Adapter",
    "BayesianProcess",
    "Bootstrap",
    "CountProcess",
    "DefaultModel",
    "EnsembleOf",
    "FollowedProcess",
    "GaussianProcess",
    "Hyperparameters",
    "LabelDraws",
    "OnDevice",
    "OrderedProbit",
    "TableEncoder",
    "belief_of",
    "default",
    "follow",
    "out_of_bag_noise",
    "prepare_belief",
    "register_model",
]
