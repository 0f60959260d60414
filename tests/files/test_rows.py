"""What stands around a table: encodings, delimiters, titles, blank rows, an index without a name."""

import pytest

from stakes.exceptions import StakesError
from stakes.files.rows import read_rows


@pytest.fixture
def rows(tmp_path):
    """A function that writes a file and reads its rows."""

    def read(content, name="table.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_rows(path, **options)

    return read


@pytest.mark.parametrize(
    ("text", "encoding", "message"),
    [
        ("Größe,Straße\n1,Köln\n", "cp1252", "Windows-1252"),
        ("prix,nom\n1,été à Orléans\n", "latin-1", "Windows-1252"),
        ("面积,名称\n1,北京市\n", "gbk", "GBK"),
        ("面积,名称\n1,北京市\n", "gb2312", "GBK"),
        ("Größe,b\n1,2\n", "utf-16", None),
        ("Größe,b\n1,2\n", "utf-8-sig", None),
        ("a,b\n1,2\n", "utf-16-le", None),
        ("a,b\n1,2\n", "utf-16-be", None),
    ],
)
def test_encodings_that_the_bytes_tell(rows, text, encoding, message):
    found = rows(text.encode(encoding))
    assert found.header == text.splitlines()[0].split(",")
    assert found.rows == [text.splitlines()[1].split(",")]
    assert any(message in note for note in found.notes) if message else found.notes == ()


@pytest.mark.parametrize(("encoding", "word"), [("cp1251", "квартира"), ("shift_jis", "東京都"), ("mac-roman", "Köln")])
def test_other_encodings_are_asked_for(rows, encoding, word):
    content = f"a,b\n1,{word}\n".encode(encoding)
    with pytest.raises(StakesError, match=r"is not UTF-8: line 2.*--encoding"):
        rows(content)
    assert rows(content, encoding=encoding).rows == [["1", word]]
    with pytest.raises(StakesError, match="there is no encoding 'latin-99'"):
        rows(content, encoding="latin-99")


@pytest.mark.parametrize(
    ("content", "between"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n2,5;3,5\n", ";"),
        ("a;b\n1,5;2\n", ";"),
        ("preis, EUR;m\n1,5;2\n2,5;3\n", ";"),
        ("a|b\n1|2\n", "|"),
        ("a\tb\n1,5\t2\n", "\t"),
        ('"a" "b"\n"1" 2 3\n"2" 3 4\n', " "),
        ("Report of May\n\na;b;c\n1;2;3\n4;5;6\n", ";"),
        ("one column\n1\n2\n", ","),
    ],
)
def test_delimiters(rows, content, between):
    assert rows(content).delimiter == between


@pytest.mark.parametrize(
    ("content", "header", "first", "line"),
    [
        ("Report\na,b\n1,2\n", ["a", "b"], ["1", "2"], 3),
        ("Report,,\n,,\na,b,c\n1,2,x\n", ["a", "b", "c"], ["1", "2", "x"], 4),
        ("\na,b\n1,2\n", ["a", "b"], ["1", "2"], 3),
        ("sep=;\na;b\n1,5;2\n", ["a", "b"], ["1,5", "2"], 3),
        ("Report\nby me\n\na,b\nx,y\n", ["a", "b"], ["x", "y"], 5),
        ("1,2\n3,4\n", ["1", "2"], ["3", "4"], 2),  # names that are numbers are names
        ("a,,\n1,2,3\n", None, None, None),  # numbers are no names: nothing here is a title
    ],
)
def test_titles(rows, content, header, first, line):
    found = rows(content)
    if header is None:
        assert found.header[0] == "a"
        return
    assert (found.header, found.rows[0], found.lines[0]) == (header, first, line)
    assert ("title" in " ".join(found.notes)) == ("Report" in content)


def test_what_is_blank_is_left_out(rows):
    found = rows("a;b;\n1;2;\n3;4;\n;;\n;;\n")
    assert (found.header, found.rows) == (["a", "b"], [["1", "2"], ["3", "4"]])
    assert found.notes[1:] == ("1 column without a name or a value left out.", "2 blank rows at the end left out.")
    assert rows("a,b\n1,2,\n3,4,\n").rows == [["1", "2"], ["3", "4"]]
    assert rows("a,b\n1,2\n,\n", keep_blank=True).rows == [["1", "2"], ["", ""]]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (",a,b\n0,1,2\n1,3,4\n", "index"),
        ('"","a","index"\n"1",1,2\n"2",3,4\n', "index index"),
        ('"a","b"\n"1",1,2\n"2",3,4\n', "index"),  # R, write.table(sep=",")
        ("a\tb\nx\t1\t2\ny\t3\t4\n", "index"),
        ("Unnamed: 0,a,b\n0,1,2\n", "Unnamed: 0"),
        ("a,b,c\n0,1,2\n", None),
    ],
)
def test_an_index_without_a_name(rows, content, name):
    found = rows(content)
    assert found.unnamed == name
    assert len(found.header) == 3
    assert any("has no name" in note or "index" in note for note in found.notes) == (name is not None)


def test_a_decimal_comma_without_quotes_is_no_index(rows):
    """1,5,3 under two names is one and a half and three, or anything: it is refused, not read as 5 and 3."""
    with pytest.raises(StakesError, match="line 2 has 3 cells, the header has 2"):
        rows("a,b\n1,5,3\n2,5,4\n")


def test_a_sheet_of_what_has_none(rows):
    with pytest.raises(StakesError, match=r"is no spreadsheet and has no sheet 'x'; leave the sheet out"):
        rows("a,b\n1,2\n", sheet="x")
