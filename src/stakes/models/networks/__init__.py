"""Networks of PyTorch as beliefs: lists of modules, stacked parameters, dropout, a Gaussian over the last layer.

Needs torch (`pip install 'stakes[torch]'`). `belief_of` and `rank` import this when they are given a network.
"""

from stakes.models.networks.dropout import Dropout
from stakes.models.networks.ensemble import NetworkEnsemble
from stakes.models.networks.laplace import LastLayer, last_layer_laplace
from stakes.models.networks.members import DatasetPool, NetworkMembers, StackedNetworks

__all__ = [
    "DatasetPool",
    "Dropout",
    "LastLayer",
    "NetworkEnsemble",
    "NetworkMembers",
    "StackedNetworks",
    "last_layer_laplace",
]
