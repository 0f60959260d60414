"""What `load` promises of each set, and that nothing but the published values passes for it."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from experiments.datasets import DatasetError, load
from experiments.datasets.catalogue import CATALOGUE
from experiments.datasets.dataset import checksum
from experiments.datasets.load import verified
from tests.experiments.datasets.dataset_cases import NAMES, csv_cells, data_folder

SHAPES = {
    "slump": (103, 7),
    "yacht": (308, 6),
    "estate": (414, 6),
    "vehicle": (846, 18),
    "landsat": (6435, 36),
    "vowel": (990, 10),
}
FIRST = {  # the first row, as the repository prints it
    "slump": ([273, 82, 105, 210, 9, 904, 680], 23),
    "yacht": ([-2.3, 0.568, 4.78, 3.99, 3.17, 0.125], 0.11),
    "estate": ([2012.9166667, 32, 84.87882, 10, 24.98298, 121.54024], 37.9),
    "vehicle": ([95, 48, 83, 178, 72, 10, 162, 42, 20, 159, 176, 379, 184, 70, 6, 16, 187, 197], "van"),
    "vowel": ([-3.639, 0.418, -0.67, 1.779, -0.168, 1.627, -0.388, 0.529, -0.874, -0.814], "hid"),
}


@pytest.fixture(scope="module")
def sets():
    return {name: load(name, folder=data_folder()) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_set_has_its_size_its_names_and_its_papers(sets, name):
    data = sets[name]
    assert data.features.shape == SHAPES[name] == (len(data), len(data.feature_names))
    assert data.features.dtype == np.float64
    assert np.isfinite(data.features).all()
    assert data.target.shape == (len(data),)
    assert data.target.dtype == (np.float64 if data.classes is None else np.intp)
    assert data.source.endswith(f"{name}.csv")
    assert "doi.org/10.24432/" in data.citation
    assert "CC BY 4.0" in data.licence
    assert (data.name, data.part) == (name, "all")


@pytest.mark.parametrize("name", FIRST)
def test_the_first_row_is_as_printed(sets, name):
    data, (features, label) = sets[name], FIRST[name]
    assert data.features[0].tolist() == features
    assert (data.target[0] if data.classes is None else data.classes[data.target[0]]) == label


@pytest.mark.parametrize(
    ("name", "classes", "counts"),
    [
        ("vehicle", ("bus", "opel", "saab", "van"), [218, 212, 217, 199]),
        ("landsat", None, [1533, 703, 1358, 626, 707, 1508]),
        ("vowel", ("hid", "hId", "hEd", "hAd", "hYd", "had", "hOd", "hod", "hUd", "hud", "hed"), [90] * 11),
    ],
)
def test_classes_are_in_the_order_of_their_codes(sets, name, classes, counts):
    assert classes in (None, sets[name].classes)
    assert np.bincount(sets[name].target).tolist() == counts


def test_the_classes_of_landsat_that_the_paper_weighs_are_codes_5_and_7(sets):
    assert sets["landsat"].classes[4:] == ("soil with vegetation stubble", "very damp grey soil")
    codes = np.asarray([row[-1] for row in csv_cells("landsat")])
    for code, position in zip(("1", "2", "3", "4", "5", "7"), range(6), strict=True):
        assert np.array_equal(codes == code, sets["landsat"].target == position)


@pytest.mark.parametrize(("name", "rows"), [("vowel", (528, 462)), ("landsat", (4435, 2000))])
def test_the_parts_make_up_the_whole(sets, name, rows):
    parts = [load(name, folder=data_folder(), part=part) for part in ("train", "test")]
    assert tuple(map(len, parts)) == rows
    assert [each.part for each in parts] == ["train", "test"]
    joined = np.concatenate([each.features for each in parts])
    assert np.array_equal(np.sort(joined, axis=0), np.sort(sets[name].features, axis=0))
    assert len({sets[name].sha256, *(each.sha256 for each in parts)}) == 3


def test_the_training_part_of_vowel_is_balanced():
    assert np.bincount(load("vowel", folder=data_folder(), part="train").target).tolist() == [48] * 11


def test_slump_has_three_outputs_and_none_is_a_feature(sets):
    strength = load("slump", folder=data_folder(), target="compressive_strength_28d_mpa")
    assert sets["slump"].target_name == "slump_cm"
    assert strength.target[0] == 34.99
    assert np.array_equal(strength.features, sets["slump"].features)
    assert not set(strength.feature_names) & set(CATALOGUE["slump"].outputs)
    assert strength.sha256 != sets["slump"].sha256


def test_estate_keeps_the_rows_that_repeat_inputs(sets):
    data = sets["estate"]
    assert len(data) - len(np.unique(data.features, axis=0)) == 20
    assert len(np.unique(np.column_stack([data.features, data.target]), axis=0)) == len(data)


def test_nothing_can_write_to_a_set(sets):
    for array in (sets["yacht"].features, sets["yacht"].target):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@given(order=st.permutations(("bus", "opel", "saab", "van")))
def test_another_order_of_classes_keeps_each_label(order):
    data = load("vehicle", folder=data_folder())
    other = data.with_classes(order)
    assert other.classes == tuple(order)
    assert [other.classes[place] for place in other.target] == [data.classes[place] for place in data.target]
    assert other.with_classes(data.classes).sha256 == data.sha256


def test_vowels_sorted_as_text_put_had_and_hed_at_the_weights(sets):
    assert sets["vowel"].with_classes(sorted(sets["vowel"].classes)).classes[6:8] == ("had", "hed")
    assert sets["vowel"].classes[6:8] == ("hOd", "hod")


@pytest.mark.parametrize("order", [("bus", "opel", "saab"), ("bus", "opel", "saab", "saab"), "bus", ()])
def test_an_order_that_is_none_is_refused(sets, order):
    with pytest.raises(DatasetError, match="order must name each of"):
        sets["vehicle"].with_classes(order)
    with pytest.raises(DatasetError, match="real target"):
        sets["yacht"].with_classes(order)


@settings(max_examples=25)
@given(row=st.integers(0, 307), column=st.integers(0, 6), value=st.floats(-10, 10).map(str))
def test_one_other_value_is_found_out(row, column, value):
    cells = csv_cells("yacht")
    if float(value) == float(cells[row][column]):
        return
    cells[row][column] = value
    with pytest.raises(DatasetError, match="must hold the published values"):
        verified(CATALOGUE["yacht"], cells, "here")


def test_the_damaged_slump_that_goes_about_is_found_out():
    cells = csv_cells("slump")
    assert cells[94][2] == "239.5"
    cells[94][2] = ".5"
    with pytest.raises(DatasetError, match="slump from here must hold the published values"):
        verified(CATALOGUE["slump"], cells, "here")


def test_rows_in_another_order_are_found_out():
    with pytest.raises(DatasetError, match="published values"):
        verified(CATALOGUE["estate"], csv_cells("estate")[::-1], "here")


def test_rows_columns_texts_and_classes_are_found_out_by_name():
    facts, cells = CATALOGUE["vehicle"], csv_cells("vehicle")
    cases = {
        "must have 846 rows; it has 845": cells[1:],
        "must have 19 columns; row 1 has 18": [cells[0][1:], *cells[1:]],
        "one of bus, opel, saab, van in column class, row 1; got '204'": [[*cells[0][:-1], "204"], *cells[1:]],
        "a number in column compactness, row 1; got None": [[None, *cells[0][1:]], *cells[1:]],
        "it has bus 219, opel 212, saab 217, van 198": [[*cells[0][:-1], "bus"], *cells[1:]],
    }
    for message, rows in cases.items():
        with pytest.raises(DatasetError, match=message):
            verified(facts, rows, "here")


def test_the_checksum_is_of_values_not_of_their_signs_at_zero():
    assert checksum(np.asarray([[-0.0, 1.0]])) == checksum(np.asarray([[0.0, 1.0]]))
    assert checksum(np.asarray([[0.0, 1.0]])) != checksum(np.asarray([[1.0, 0.0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "vowels"}, "there is no data set 'vowels'; .* Did you mean 'vowel'"),
        ({"name": "slump", "target": "cement"}, "target must be an output of slump, slump_cm, flow_cm"),
        ({"name": "vowel", "part": "valid"}, "part must be 'all', 'train' or 'test'; got 'valid'"),
        ({"name": "yacht", "part": "train"}, "yacht was published in one part"),
        ({"name": "yacht", "folder": "no such folder"}, "there is no folder no such folder"),
    ],
)
def test_arguments_are_refused_before_anything_is_read(arguments, message):
    with pytest.raises(DatasetError, match=message):
        load(arguments.pop("name"), **arguments)
