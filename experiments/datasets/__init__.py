"""The paper's data: six sets of the UCI repository, verified after reading, and a problem with one input."""

from experiments.datasets.dataset import Dataset, DatasetError
from experiments.datasets.load import load
from experiments.datasets.synthetic import Synthetic, synthetic

__all__ = ["Dataset", "DatasetError", "Synthetic", "load", "synthetic"]
