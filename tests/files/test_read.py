"""Tables from files: what is read, and what is refused with the place and a way out."""

import os
import re
import time

import numpy as np
import pytest

from stakes.exceptions import StakesError
from stakes.files import open_pool, read_table, row_ids


@pytest.fixture
def csv(tmp_path):
    """A function that writes a file and reads it as a table."""

    def read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, **options)

    return read


def test_raw_texts_and_typed_features(csv):
    source = csv("id,class,heat,site\n007,NA,1.5,A\n9007199254740993,,-2e3,B\n")
    assert (len(source), source.names, source.notes) == (2, ("id", "class", "heat", "site"), ())
    assert source.texts("id") == ["007", "9007199254740993"]
    assert source.texts("class") == ["NA", None]
    frame = source.features(["heat", "site"])
    np.testing.assert_array_equal(frame.column(0), [1.5, -2000.0])
    assert frame.column(1).tolist() == ["A", "B"]
    assert [source.line(row) for row in range(2)] == [2, 3]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("tail", ["", "\n", "\n\n \n"])
def test_line_ends_marks_and_blank_lines_at_the_end(csv, mark, end, tail):
    source = csv(mark + ("a,b\n1,x\n,ü" + tail).replace("\n", end).encode())
    assert source.names == ("a", "b")
    assert source.texts("b") == ["x", "ü"]
    np.testing.assert_array_equal(source.features(["a"]).column(0), [1.0, np.nan])


def test_quoted_cells_hold_anything(csv):
    source = csv('a,b\n"1,5 ""inch""\nlong",2\nx,3\n', text=("a",))
    assert source.texts("a") == ['1,5 "inch"\nlong', "x"]
    assert [source.line(0), source.line(1)] == [2, 4]


@pytest.mark.parametrize(("between", "called"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_header_without_commas(csv, between, called):
    source = csv(f'"a,b"{between}c\n1{between}2\n')
    assert source.names == ("a,b", "c")
    assert called in source.notes[0].lower()


def test_delimiters_that_are_known(csv):
    assert csv("a\tb,c\n1\t2\n", "t.tsv").names == ("a", "b,c")
    assert csv("a|b\n1|2\n", delimiter="|").names == ("a", "b")
    assert csv("a\n1\n\n2\n".replace("\n\n", '\n""\n')).texts("a") == ["1", None, "2"]
    with pytest.raises(StakesError, match="one character"):
        csv("a,b\n", delimiter=";;")


def test_no_rows_is_a_table(csv):
    source = csv("a,b\n")
    assert (len(source), source.features().shape) == (0, (0, 2))
    assert row_ids(source) == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; a line of column names was expected"),
        ("\n\n", "is empty"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 cells, the header has 2.*in quotes"),
        ("a,b\n1\n", "line 2 has 1 cell, the header has 2"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is blank"),
        ('a,b\n1,2\n1,"x\n2,3\n', "quote that opens in the row at line 3 is never closed"),
        ('a,b\n1,"' + "x" * 140_000, "line 2 has more than 131072 characters.*never closed"),
        ('a,b\n"5" pipe,2\n', "text follows a closing quote at line 2.*write a quote twice"),
        ("a,b,a\n1,2,3\n", "'a' names 2 columns, 1, 3"),
        ("a, a\n1,2\n", "'a' names 2 columns"),
        ("a,b,\n1,2,3\n", "column 3 has no name"),
        ("a,,b\n1,2,3\n", "column 2 has no name.*index=False"),
        (b"a,b\n1,\0\n", "NUL character at line 2"),
        ("a,b\n1,x\n2,привет\n".encode("cp1251"), "not UTF-8: line 3 holds the byte 0xef.*--encoding cp1252"),
        ("a,b\n1,Wrocław\n".encode("cp1250"), "not UTF-8: line 2 holds the byte 0xb3.*--encoding"),
    ],
)
def test_files_that_are_no_table(csv, content, message):
    with pytest.raises(StakesError, match=message):
        csv(content)


def test_paths_that_are_no_file(tmp_path):
    (tmp_path / "prices.csv").write_text("a\n1\n")
    with pytest.raises(StakesError, match=r"there is no file .*pricse.csv. Did you mean 'prices.csv'\?"):
        read_table(tmp_path / "pricse.csv")
    with pytest.raises(StakesError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(StakesError, match=r"ends in '.pdf'. Save it as CSV UTF-8"):
        read_table(tmp_path / "prices.pdf")
    with pytest.raises(StakesError, match="there is no file"):
        read_table(tmp_path / "none" / "x.csv")


def test_a_column_is_numbers_or_text_throughout(csv):
    with pytest.raises(StakesError) as caught:
        csv("ph,x\n7,1\nbad,2\n8,3\n").features()
    for part in ("column 'ph'", "2 of its cells are numbers and 1 is text", "'bad' at line 3", "--missing bad"):
        assert part in str(caught.value)
    with pytest.raises(StakesError, match=r"2 of its cells are text and 1 is a number: '7' at line 2.*--text"):
        csv("ph\n7\na\nb\n").features()
    with pytest.raises(
        StakesError, match=r"1 is text: '<5' at line 4. A limit such as that is no number.*--missing '<5'"
    ):
        csv("ph\n7\nn/a\n<5\n8\n").features()
    with pytest.raises(
        StakesError, match=r"3 are text: such as 'a' at line 5 and 'b' at line 6.*\(--missing a --missing b\)"
    ):
        csv("ph\n7\n8\n9\na\nb\nc\n").features()
    assert csv("ph\n7\nbad\n", missing=("bad",)).features().column(0).tolist()[0] == 7.0
    assert csv("ph\n7\nbad\n", text=("ph",)).features().column(0).tolist() == ["7", "bad"]
    with pytest.raises(StakesError, match="'1_000' at line 3"):
        csv("n\n1\n1_000\n").features()


def test_hints_can_be_typed_as_they_are(csv):
    with pytest.raises(StakesError, match=r"--missing '<0.5'.*--text 'lead level'"):
        csv("lead level\n<0.5\n7\n").features()


def test_marks_of_missing_values_leave_raw_texts_alone(csv):
    source = csv("class\nNA\nb\n", missing=("NA",))
    assert source.texts("class") == ["NA", "b"]
    assert source.features().column(0).tolist() == [None, "b"]


@pytest.mark.parametrize("cell", ["inf", "-Inf", "Infinity", "1e999"])
def test_numbers_that_are_not_finite(csv, cell):
    content = f"temperature,ph\n1,1\n2,{cell}\n{cell},3\n{cell},4\n"
    message = re.escape("NaN or infinite values in 2 columns: temperature (2), ph (1); first at line 3")
    with pytest.raises(StakesError, match=message):
        csv(content).features()
    assert np.isnan(csv(content, missing=(cell,)).features().column(1)[1])


def test_a_text_may_be_called_inf(csv):
    assert csv("name\nAnn\nNan\ninf\n").features().column(0).tolist() == ["Ann", "Nan", "inf"]


def test_remarks_on_columns_that_are_likely_no_features(csv):
    rows = [f"sample {day},{'ab'[day % 2]},{day},A{day % 3}" for day in range(1, 21)]
    source = csv("note,site,heat,code\n" + "\n".join(rows) + "\n")
    (remark,) = source.remarks()
    assert "Column 'note' has a different text in nearly every row" in remark
    assert "--ignore note" in remark
    assert "--id note" in remark
    assert source.remarks(["site", "heat"]) == ()
    assert source.tells_apart("note")
    assert source.tells_apart("heat")
    assert not source.tells_apart("site")


def test_many_columns_of_names_take_one_sentence(csv):
    rows = [",".join(f"{name}{row} x" for name in "pqrs") for row in range(20)]
    (remark,) = csv("a,b,c,d\n" + "\n".join(rows) + "\n").remarks()
    assert "Columns 'a', 'b', 'c', 'd' have" in remark


def test_remarks_on_numbers_with_a_unit(csv):
    (remark,) = csv("dose,x\n5 mg,1\n60mg,2\n").remarks()
    assert "take 'mg' out" in remark
    assert csv("dose,x\n5 mg,1\n6 g,2\n").remarks() == ()
    assert csv("dose,x\n1 2 3,1\n").remarks() == ()


def test_codes_are_codes(csv):
    """The columns of the German credit table, A11 to A14 and so on, took thirteen lines of advice."""
    rows = [",".join(f"A{column}{row % 4}" for column in range(13)) for row in range(50)]
    source = csv(",".join(f"c{column}" for column in range(13)) + "\n" + "\n".join(rows) + "\n")
    assert source.remarks() == ()
    assert source.sentences(source.names) == ()
    assert source.features().column(0).tolist()[:2] == ["A00", "A01"]


def test_rows_without_any_value_are_reported(csv):
    assert "2 rows have no value in any column, the first at line 3" in csv("a,b\n1,2\n,\n,\n3,4\n").notes[0]


def test_options_are_checked(csv):
    with pytest.raises(StakesError, match=r"no column 'hat'.*Did you mean 'heat'"):
        csv("heat\n1\n", text=("hat",))
    assert csv("heat\n1\nNA\n", missing="NA").features().column(0)[0] == 1.0  # a list of one
    assert csv("heat\n1\n", text="heat").features("heat").column(0).tolist() == ["1"]
    for given in (3, ["NA", 3], [None]):
        with pytest.raises(StakesError, match="missing must be a text or a list of texts; got"):
            csv("heat\n1\n", missing=given)
    with pytest.raises(StakesError, match="no column 'x'"):
        csv("heat\n1\n").texts("x")


def test_ids(csv):
    source = csv("id,other,gap\n007,x,1\n7,x,\n")
    assert row_ids(source, "id") == ("007", "7")
    assert row_ids(source) == ("1", "2")
    with pytest.raises(StakesError, match="the id 'x' stands at line 2 and at line 3 of column 'other'"):
        row_ids(source, "other")
    with pytest.raises(StakesError, match="the id at line 3, column 'gap', is empty"):
        row_ids(source, "gap")


def test_a_header_of_a_million_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",".join(f"c{i}" for i in range(10**6)) + "\n" + ",".join(["1"] * 10**6) + "\n")
    begin = time.process_time()
    with pytest.raises(StakesError, match=r"has 1,000,000 columns; at most 20,000 are read. Leave some out"):
        read_table(path)
    assert time.process_time() - begin < 20.0  # each name compared with all others would take hours


def test_a_table_of_twenty_thousand_columns_is_read_in_linear_time(tmp_path):
    path, n = tmp_path / "t.csv", 20_000
    path.write_text(",".join(f"c{i}" for i in range(n)) + "\n" + (",".join(["1"] * n) + "\n") * 3)
    begin = time.process_time()
    source = read_table(path)
    frame = source.features().drop([f"c{i}" for i in range(0, n, 2)])
    assert frame.shape == (3, n // 2)
    assert source.remarks() == ()
    with pytest.raises(StakesError, match="there is no column 'c30000'"):
        source.texts("c30000")
    assert time.process_time() - begin < 10.0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_what_never_ends_is_not_read(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe.{ending}")
    (tmp_path / f"zero.{ending}").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        for look in (read_table, open_pool):
            with pytest.raises(StakesError, match="is a pipe or a device, which may never end"):
                look(tmp_path / f"{name}.{ending}")


def test_a_pool_of_numbers_from_a_csv_gives_arrays_where_that_is_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,x\n3,,y\n5,6,z\n")
    plain = open_pool(tmp_path / "t.csv", ["b", "a"], plain=True)
    assert [start for start, _ in plain.chunks(2)] == [0, 2]
    assert plain.take(np.asarray([2, 0])).tolist() == [[6.0, 5.0], [2.0, 1.0]]
    assert open_pool(tmp_path / "t.csv", plain=True).names == ("a", "b", "c")  # there is text among them
