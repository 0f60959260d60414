"""The paper's data: six sets of the UCI repository, verified after reading, and a problem with one input."""

from stakes.datasets.dataset import Dataset
from stakes.datasets.errors import DatasetError
from stakes.datasets.load import load
from stakes.datasets.synthetic import Synthetic, synthetic

__all__ = ["Dataset", "DatasetError", "Synthetic", "load", "synthetic"]
