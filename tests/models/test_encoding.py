"""Columns by name, for pipelines that choose them so; encoded columns are tested with the models that use them."""

import sys

import numpy as np
import pandas
import pytest
from sklearn.base import clone

from stakes.exceptions import StakesError
from stakes.files.frame import Frame
from stakes.models.encoding import NamedColumns

FRAME = Frame(("age", "sex"), (np.asarray([41.0, np.nan]), np.asarray(["f", None], dtype=object)), 2)


def test_a_table_of_a_file_is_a_data_frame():
    step = clone(NamedColumns()).fit(FRAME)
    found = step.transform(FRAME)
    assert isinstance(found, pandas.DataFrame)
    np.testing.assert_array_equal(found["age"], [41.0, np.nan])
    assert found["sex"].isna().tolist() == [False, True]
    assert step.report_ == ("Columns go to the model by name, as they are in the table.",)


def test_columns_without_names_and_other_columns_are_refused():
    with pytest.raises(StakesError, match="those of the table have none; give a data frame"):
        NamedColumns().fit(np.zeros((3, 2)))
    step = NamedColumns().fit(FRAME)
    with pytest.raises(StakesError, match="those of fit"):
        step.transform(Frame(("age", "town"), FRAME.arrays, 2))


def test_without_pandas(monkeypatch):
    step = NamedColumns().fit(FRAME)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(StakesError, match="needs pandas: pip install pandas"):
        step.transform(FRAME)
