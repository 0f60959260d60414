"""Cells come out of raw files as they were put in, and files of another kind are refused."""

import hashlib

import hypothesis.strategies as st
import pytest
from hypothesis import given

from experiments.datasets import DatasetError
from experiments.datasets.catalogue import CATALOGUE
from experiments.datasets.parsing import (
    lines,
    numbered_lines,
    numbered_sheet,
    sheet_rows,
    text_rows,
    training_then_test,
)
from tests.experiments.datasets.dataset_cases import raw_contents, spreadsheet

CELLS = st.decimals(-1000, 1000, places=3).map(str) | st.sampled_from(["bus", "opel", "saab", "van"])
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=5), max_size=6)


@given(
    rows=ROWS,
    between=st.sampled_from([" ", "  ", ",", ", ", "\t"]),
    after=st.sampled_from(["", " "]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_lines_give_their_cells_whatever_stands_between_them(rows, between, after, end):
    assert text_rows("".join(between.join(row) + after + end for row in rows).encode()) == rows


@given(rows=ROWS)
def test_a_spreadsheet_gives_its_cells(rows):
    assert sheet_rows(spreadsheet(rows)) == rows


def test_a_header_of_keel_is_left_out():
    assert text_rows(b"@relation vowel\r\n@data\r\n0,-3.639\r\n") == [["0", "-3.639"]]


def test_files_follow_each_other():
    assert lines([b"1 2\n", b"3 4\n"]) == [["1", "2"], ["3", "4"]]


def test_the_numbers_of_rows_and_the_header_are_left_out():
    assert numbered_lines([b"No,Fly ash\r\n1,273\r\n2,163\r\n"]) == [["273"], ["163"]]
    assert numbered_sheet([spreadsheet([["0", "1"], ["1", "2012.9166667"]])]) == [["2012.9166667"]]


def test_rows_say_which_file_they_are_from():
    assert training_then_test([b"92 3\n", b"80 4\n"]) == [["train", "92", "3"], ["test", "80", "4"]]


@pytest.mark.parametrize("content", [b"no archive", spreadsheet([])[:40]], ids=["text", "cut"])
def test_a_spreadsheet_that_is_none_is_refused(content):
    with pytest.raises(DatasetError, match=r"must be a spreadsheet of the kind \.xlsx"):
        sheet_rows(content)


def test_a_text_that_is_none_is_refused():
    with pytest.raises(DatasetError, match="must be text"):
        text_rows(b"\xff\xfe\x00")


@pytest.mark.parametrize("name", ["slump", "vehicle", "landsat", "vowel"])
def test_the_known_checksums_of_raw_files_are_those_of_the_values_in_that_form(name):
    sums = [hashlib.sha256(content).hexdigest() for content in raw_contents(name)]
    assert sums == list(CATALOGUE[name].raw.files.values())
