"""Rows that are written to be filled in, and the labels that come back, as people write them."""

import openpyxl
import pytest

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, read_worksheet
from stakes.tabular.worksheet import Brief

REAL = LossSpec("squared-error")


@pytest.fixture
def german(tmp_path):
    """A table with decimal commas, and a campaign of it."""
    rows = [f"r{row};{row},5;{f'1.0{row}0,25' if row < 5 else ''}" for row in range(10)]
    path = tmp_path / "preise.csv"
    path.write_text("id;fläche;preis\n" + "\n".join(rows) + "\n", encoding="cp1252")
    with Campaign.create(
        tmp_path / "c.stakes", path, "preis", REAL, id_column="id", model="bayesian-ridge"
    ) as campaign:
        yield campaign


@pytest.fixture
def classes(tmp_path):
    """A spreadsheet of classes, and a campaign of it."""
    book = openpyxl.Workbook()
    book.active.title = "Proben"
    book.active.append(["id", "x", "kind"])
    for row in range(12):
        book.active.append([row, row / 4, ("good", "bad, very")[row % 2] if row < 6 else None])
    book.save(tmp_path / "proben.xlsx")
    with Campaign.create(
        tmp_path / "c.stakes", tmp_path / "proben.xlsx", "kind", "log-loss", id_column="id", model="random-forest"
    ) as campaign:
        yield campaign


def fill(path, labels, name=None):
    """Write labels into the cells of a spreadsheet, in order."""
    book = openpyxl.load_workbook(path)
    sheet = book[name] if name else book.active
    column = next(cell.column for cell in sheet[2] if cell.value in ("kind", "preis"))
    for place, label in enumerate(labels):
        sheet.cell(3 + place, column).value = label
    book.save(path)


def test_what_the_table_tells_is_kept_with_the_campaign(german):
    assert german.brief.decimal == ","
    assert german.journal.state("r0").label == "1000.25"
    with Campaign.open(german.path) as again:
        assert again.sheet.features.column(0).tolist() == [row + 0.5 for row in range(10)]


def test_a_label_is_read_as_those_of_the_table(german):
    german.tell("r5", "1.234,5")
    german.tell("r6", "1,234")
    german.tell("r7", 1.234)  # a number, no text
    german.tell("r8", "2 €")
    assert [german.journal.state(f"r{row}").label for row in range(5, 9)] == ["1234.5", "1.234", "1.234", "2"]
    with pytest.raises(StakesError, match=r"'1.234' may be 1.234 or 1234: write 1,234 or 1234"):
        german.tell("r9", "1.234")


def test_a_filled_in_spreadsheet_is_imported(german, tmp_path):
    german.export(tmp_path / "rows.xlsx", rows=["r7", "r0", "r9"])
    sheet = openpyxl.load_workbook(tmp_path / "rows.xlsx").active
    assert "Fill in 'preis', the yellow column: a number." in sheet["A1"].value
    assert "stakes import CAMPAIGN rows.xlsx" in sheet["A1"].value
    assert [cell.value for cell in sheet[4]][:3] == ["r0", "0,5", 1000.25]
    fill(tmp_path / "rows.xlsx", [1234.5, 1000.25, "3.456,75"])
    assert german.import_labels(tmp_path / "rows.xlsx").new == ("r7", "r9")
    assert [german.journal.state(row).label for row in ("r7", "r9")] == ["1234.5", "3456.75"]


def test_a_csv_has_labels_as_the_table_has_them(german, tmp_path):
    german.tell("r5", "1,234")
    german.export(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8-sig")
    assert '"r5","5,5","1,234"' in text
    (tmp_path / "rows.csv").write_text(
        text.replace('"r6","6,5",""', '"r6","6,5","5.678"').replace('"r7","7,5",""', '"r7","7,5","9,5"')
    )
    assert german.import_labels(tmp_path / "rows.csv").new == ("r6", "r7")
    assert german.journal.state("r6").label == "5678"


def test_classes_are_chosen_from_a_list(classes, tmp_path):
    assert classes.brief.sheet == "Proben"
    classes.export(tmp_path / "rows.xlsx", rows=["7", "8"])
    book = openpyxl.load_workbook(tmp_path / "rows.xlsx")
    assert book.sheetnames == ["Proben", "classes"]
    (allowed,) = book.active.data_validations.dataValidation
    assert (allowed.type, allowed.formula1) == ("list", "'classes'!$A$1:$A$2")
    assert [row[0].value for row in book["classes"].rows] == ["bad, very", "good"]
    fill(tmp_path / "rows.xlsx", ["good"])
    assert classes.import_labels(tmp_path / "rows.xlsx").new == ("7",)
    fill(tmp_path / "rows.xlsx", ["god"])
    with pytest.raises(
        StakesError, match=r"'god' is no class|'god' is a class that no row has had|Did you mean 'good'"
    ):
        classes.import_labels(tmp_path / "rows.xlsx", replace=True)


def test_the_filled_in_table_itself_is_imported(classes, tmp_path):
    book = openpyxl.load_workbook(tmp_path / "proben.xlsx")
    book.active["C10"] = "bad, very"
    book.save(tmp_path / "filled.xlsx")
    assert classes.import_labels(tmp_path / "filled.xlsx").new == ("8",)


def test_spreadsheets_of_other_kinds_are_not_written(classes, tmp_path):
    with pytest.raises(StakesError, match=r"spreadsheets are written as .xlsx"):
        classes.export(tmp_path / "rows.ods")


def test_options_for_the_file_that_is_imported(german, tmp_path):
    (tmp_path / "there.csv").write_bytes("id;preis\nr8;5.678\nжизнь;\n".encode("cp1251"))
    with pytest.raises(StakesError, match="--encoding"):
        german.import_labels(tmp_path / "there.csv")
    german.import_labels(tmp_path / "there.csv", encoding="cp1251", decimal=".")
    assert german.journal.state("r8").label == "5.678"


def test_a_table_with_a_delimiter_of_its_own_takes_its_own_export_back(tmp_path):
    """The file that is written has commas, whatever the table has."""
    (tmp_path / "t.txt").write_text(
        "id/x/y\n" + "".join(f"r{row}/{row}/{row if row < 4 else ''}\n" for row in range(8))
    )
    with Campaign.create(
        tmp_path / "c.stakes", tmp_path / "t.txt", "y", REAL, id_column="id", delimiter="/", model="bayesian-ridge"
    ) as campaign:
        campaign.export(tmp_path / "rows.csv")
        text = (tmp_path / "rows.csv").read_text(encoding="utf-8-sig").replace('"r5","5",""', '"r5","5","50"')
        (tmp_path / "rows.csv").write_text(text)
        assert campaign.import_labels(tmp_path / "rows.csv").new == ("r5",)


@pytest.mark.parametrize("missing", [(), ("NA",)])
@pytest.mark.parametrize("loss", ["squared-error", "log-loss"])
def test_marks_for_gaps_reach_the_target(tmp_path, loss, missing):
    """A table of R: every row had a label, or NA was no number."""
    (tmp_path / "t.csv").write_text("x,y\n1,3\n2,NA\n3,4\n4,NA\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec(loss), missing=missing))
    assert (sheet.labels, sheet.n_open) == ({0: "3", 2: "4"}, 2)


def test_a_class_may_be_called_na(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,DE\n2,NA\n3,\n4,NA\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", LossSpec("log-loss")))
    assert sheet.labels == {0: "DE", 1: "NA", 3: "NA"}
    assert "'NA' in 'y' is taken for a class; if it stands for a gap: --missing NA." in sheet.notes
    given = Brief("y", LossSpec("log-loss"), missing=("NA",))
    assert read_worksheet(tmp_path / "t.csv", given).labels == {0: "DE"}
    named = Brief("y", LossSpec("log-loss"), classes=("DE", "NA"), missing=("NA",))
    assert read_worksheet(tmp_path / "t.csv", named).labels == {0: "DE", 1: "NA", 3: "NA"}


def test_an_index_without_a_name_is_the_id(tmp_path):
    (tmp_path / "t.csv").write_text(",x,y\n10,1,3\n20,2,\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", REAL))
    assert (sheet.ids, sheet.features.names, sheet.brief.id_column) == (("10", "20"), ("x",), "index")
    (tmp_path / "t.csv").write_text(",x,y\n10,1,3\n10,2,\n")
    sheet = read_worksheet(tmp_path / "t.csv", Brief("y", REAL))
    assert (sheet.ids, sheet.features.names) == (("1", "2"), ("x",))


def test_a_column_that_tells_rows_apart_is_proposed_as_the_id(tmp_path):
    note = "No two rows have the same {0!r}: --id {0} calls rows by it, and keeps it from the model."
    for name, written in (("sample_id", "{}"), ("probe", "P-{:03d}")):  # called so, or texts that all differ
        rows = "".join(f"{written.format(row)},{row % 3},{row}\n" for row in range(12))
        (tmp_path / "t.csv").write_text(f"{name},x,y\n{rows}")
        sheet = read_worksheet(tmp_path / "t.csv", Brief("y", REAL))
        assert sheet.likely_id == name
        assert sheet.notes == (note.format(name),)
        assert read_worksheet(tmp_path / "t.csv", Brief("y", REAL, id_column=name)).notes == ()
    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{row},{row}\n" for row in range(12)))
    assert read_worksheet(tmp_path / "t.csv", Brief("y", REAL)).likely_id is None  # numbers may well be measured


PERCENT = "id;x;anteil\n" + "".join(f"r{row};{row};{f'{10 + row},5 %' if row < 6 else ''}\n" for row in range(12))


@pytest.fixture
def percents(tmp_path):
    (tmp_path / "t.csv").write_text(PERCENT)
    model = {"id_column": "id", "model": "bayesian-ridge"}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "anteil", REAL, **model) as campaign:
        yield campaign


def test_a_label_is_written_as_those_of_the_table(percents):
    """13 among per cents could be 13 % or 1300 %."""
    assert percents.brief.unit == "%"
    with pytest.raises(StakesError, match="the labels in 'anteil' are per cents, and '13' is none: write 13 %"):
        percents.tell("r8", "13")
    percents.tell("r8", "13,5 %")
    percents.tell("r9", 0.14)  # a number is what it is
    assert [percents.journal.state(row).label for row in ("r8", "r9")] == ["0.135", "0.14"]


def test_per_cents_go_out_and_come_back(percents, tmp_path):
    percents.tell("r8", "13,5 %")
    percents.export(tmp_path / "all.csv")
    text = (tmp_path / "all.csv").read_text(encoding="utf-8-sig")
    assert '"r8","8","13,5 %"' in text
    (tmp_path / "all.csv").write_text(text.replace('"r9","9",""', '"r9","9","14,25 %"'))
    assert percents.import_labels(tmp_path / "all.csv").new == ("r9",)
    assert percents.journal.state("r9").label == "0.1425"
    (tmp_path / "plain.csv").write_text("id;anteil\nr10;15\n")
    with pytest.raises(StakesError, match=r"plain.csv, line 2: the labels in 'anteil' are per cents.*Nothing was"):
        percents.import_labels(tmp_path / "plain.csv")


def test_a_sheet_for_per_cents_shows_them(percents, tmp_path):
    """12, typed into a cell that shows per cents, is stored as 0.12."""
    percents.export(tmp_path / "rows.xlsx", rows=["r8", "r9"])
    book = openpyxl.load_workbook(tmp_path / "rows.xlsx")
    sheet = book.active
    assert "a per cent, such as 12%" in sheet["A1"].value
    assert [sheet["C3"].number_format, sheet["B3"].number_format] == ["0.0##%", "General"]
    sheet["C3"] = 0.12
    book.save(tmp_path / "rows.xlsx")
    percents.import_labels(tmp_path / "rows.xlsx")
    assert percents.journal.state("r8").label == "0.12"


def test_signs_that_the_table_does_not_have(tmp_path):
    cells = [f'"${1000 + row:,}.50"' if row < 6 else "" for row in range(12)]
    (tmp_path / "t.csv").write_text("x,price,share\n" + "".join(f"{r},{c},{r / 10}\n" for r, c in enumerate(cells)))
    model = {"model": "bayesian-ridge"}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "price", REAL, **model) as campaign:
        with pytest.raises(StakesError, match=r"the labels in 'price' are in \$; got '€500'"):
            campaign.tell("8", "€500")
        campaign.tell("8", "1,500")  # as thousands are written in the table
        campaign.tell("9", "$1,500.25")
        assert [campaign.journal.state(row).label for row in "89"] == ["1500", "1500.25"]
        with pytest.raises(StakesError, match=r"no per cents, so '12 %' may be 0.12 or 12: write the one"):
            campaign.tell("10", "12 %")


def test_a_sheet_that_another_program_has_renamed(tmp_path):
    rows = [["id", "x", "y"], *([f"r{row}", row, row if row < 6 else None] for row in range(10))]
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    model = {"id_column": "id", "model": "bayesian-ridge"}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.xlsx", "y", REAL, **model) as campaign:
        book.active.title = "Sheet1"
        book.active["C9"] = 7.5
        book.save(tmp_path / "back.xlsx")
        assert campaign.import_labels(tmp_path / "back.xlsx").new == ("r7",)
        book.active["C1"] = "z"
        book.save(tmp_path / "back.xlsx")
        with pytest.raises(StakesError, match="has no column 'y'"):
            campaign.import_labels(tmp_path / "back.xlsx")
