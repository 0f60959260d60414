"""Tables of every kind with the same rows: real ones where their library is installed, else what they offer of it."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from scipy import sparse


class FrameLike:
    """What pandas offers that is used: position, index, columns, conversion."""

    def __init__(self, columns, index=None):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.index = np.asarray(index if index is not None else range(self.shape[0]))

    @property
    def shape(self):
        return len(next(iter(self._columns.values()))), len(self._columns)

    @property
    def iloc(self):
        return _Places(self)

    def __array__(self, dtype=None, copy=None):
        return np.stack([self._columns[name] for name in self.columns], axis=1).astype(dtype or float)


class _Places:
    def __init__(self, frame):
        self.frame = frame

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return self.frame._columns[self.frame.columns[key[1]]][key[0]]
        columns = {name: values[key] for name, values in self.frame._columns.items()}
        return FrameLike(columns, self.frame.index[key])


class PolarsLike:
    """What polars offers that is used."""

    def __init__(self, columns):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.columns = list(columns)

    shape, __array__ = FrameLike.shape, FrameLike.__array__

    def to_series(self, position):
        return self._columns[self.columns[position]]

    def __getitem__(self, key):
        return PolarsLike({name: values[key] for name, values in self._columns.items()})


class ArrowLike:
    """What an Arrow table offers that is used: its `columns` are the columns themselves."""

    def __init__(self, columns):
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        self.column_names = list(columns)

    @property
    def shape(self):
        return len(next(iter(self._columns.values()))), len(self._columns)

    @property
    def columns(self):
        return list(self._columns.values())

    def column(self, position):
        return self.columns[position]

    def take(self, positions):
        assert isinstance(positions, list | tuple | np.ndarray)  # all that Arrow takes
        return ArrowLike({name: values[np.asarray(positions)] for name, values in self._columns.items()})

    def __array__(self, dtype=None, copy=None):
        return np.stack(self.columns, axis=1).astype(dtype or float)


def _library(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not installed")


def as_columns(array):
    return {"abcdefgh"[j]: array[:, j] for j in range(array.shape[1])}


KINDS = {
    "array": lambda array: array,
    "float32": lambda array: array.astype(np.float32),
    "list": lambda array: array.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "frame-like": lambda array: FrameLike(as_columns(array)),
    "polars-like": lambda array: PolarsLike(as_columns(array)),
    "arrow-like": lambda array: ArrowLike(as_columns(array)),
    "pandas": lambda array: _library("pandas").DataFrame(as_columns(array)),
    "polars": lambda array: _library("polars").DataFrame(as_columns(array)),
    "pyarrow": lambda array: _library("pyarrow").table(as_columns(array)),
}


def dense(table):
    return np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=float)
