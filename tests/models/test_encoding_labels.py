"""Labels as they come, sets of labels among them."""

import numpy as np
import pytest

from stakes.exceptions import StakesError
from stakes.models.encoding import as_label_sets, as_labels, check_classes, positions_of


def test_labels_are_a_column_without_gaps():
    assert as_labels(np.array([[1], [2]]), 2).tolist() == [1, 2]
    with pytest.raises(StakesError, match="rows 1"):
        as_labels([1.0, np.nan], 2)
    with pytest.raises(StakesError, match="for each of the 3 rows"):
        as_labels([1, 2], 3)


def test_classes_are_those_given_or_those_of_the_labels_sorted():
    labels = np.array(["b", "a", "b"])
    assert check_classes(labels, None).tolist() == ["a", "b"]
    assert positions_of(labels, check_classes(labels, ["b", "c", "a"])).tolist() == [0, 2, 0]
    with pytest.raises(StakesError, match="rows 0, 2"):
        check_classes(labels, ["a"])


def test_label_sets_have_names():
    assert as_label_sets([[0, 1], [0, 0], [1, 1]], ["x", "y"]).tolist() == ["y", "none", "x+y"]
    assert as_label_sets(np.array(["y", "none"]), ["x", "y"]).tolist() == ["y", "none"]
    assert as_label_sets([1, 0], ["x"]).tolist() == ["x", "none"]
    for wrong in ([[0, 2]], [[0, 1, 1]], [["a", "b"]]):
        with pytest.raises(StakesError, match="of 0 and 1"):
            as_label_sets(wrong, ["x", "y"])
