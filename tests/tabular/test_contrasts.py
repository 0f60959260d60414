"""What sets rows apart from those with a label."""

import pytest

from stakes.tabular import Brief, LossSpec, read_worksheet
from stakes.tabular.contrasts import contrasts

LABELLED = 20


@pytest.fixture
def sheet(tmp_path):
    """Labelled rows with x from 0 to 19, z nearly always 0 and kind mostly red; then the rows given."""

    def made(*rows, labelled=LABELLED):
        lines = [f"n{i},{i},{0 if i else 1},{'red' if i % 4 else 'blue'},{i}" for i in range(LABELLED)]
        if not labelled:
            lines = [line.rpartition(",")[0] + "," for line in lines]
        more = [f"new{i},{row}," for i, row in enumerate(rows)]
        (tmp_path / "t.csv").write_text("\n".join(["name,x,z,kind,y", *lines, *more]) + "\n")
        return read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec("squared-error")))

    return made


def sentences(sheet, known=None):
    rows = range(LABELLED, len(sheet.ids))
    return [[str(each) for each in one] for one in contrasts(sheet, rows, sheet.labels if known is None else known)]


def test_the_columns_that_differ_most_come_first(sheet):
    far, plain, rare, gap = sentences(sheet("100,0,red", "9,0,red", "9,7,green", ",0,red"))
    assert far == ["x 100 (5 to 14)"]
    assert plain == []
    assert set(rare) == {"z 7 (0 of 20)", "kind green (0 of 20)"}
    assert gap == ["x empty (0 of 20)"]


def test_the_strength_of_a_number_is_its_distance(sheet):
    (both,) = sentences(sheet("40,3,green"))
    assert both[0] == "x 40 (5 to 14)"  # 4 usual deviations; what no row has is 2.3 off
    assert len(both) == 3


def test_a_column_of_names_sets_no_row_apart(sheet):
    assert not any("name" in text for each in sentences(sheet("100,0,red", "9,7,green")) for text in each)


def test_without_labels_rows_are_compared_with_all(sheet):
    made = sheet("100,0,red", labelled=0)
    assert sentences(made, known=()) == [["x 100 (5 to 15)"]]


def test_cells_are_shown_as_they_are_written_and_not_too_long(sheet):
    (found,) = sentences(sheet(f"1e2,0,{'very ' * 20}long"))
    assert found[0].startswith("x 1e2 (")
    assert found[1] == "kind very very very very ver… (0 of 20)"


def test_the_usual_range_is_written_as_the_cells_are(tmp_path):
    """Per cent beside per cent, and dates as the table has them; of a date only its day is compared."""
    lines = [f"{10 + i},5 %;{i + 1:02d}.03.2021;{'ja' if i else 'nein'};{i}" for i in range(LABELLED)]
    (tmp_path / "t.csv").write_text("\n".join(["anteil;tag;neu;y", *lines, "99,5 %;05.05.2023;nein;"]) + "\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec("squared-error")))
    assert sentences(sheet) == [
        ["tag 05.05.2023 (06.03.2021 to 15.03.2021)", "anteil 99,5 % (15,5 % to 24,5 %)", "neu nein (1 of 20)"]
    ]


def test_a_number_within_the_middle_half_sets_no_row_apart(tmp_path):
    """Also where the median is at one end of it."""
    lines = [f"{x},{x}" for x in [1] * 12 + [50, 60, 70, 80, 90, 95, 97, 99]]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *lines, "69,", "100,"]) + "\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec("squared-error")))
    assert sentences(sheet) == [[], ["x 100 (1 to 70)"]]
