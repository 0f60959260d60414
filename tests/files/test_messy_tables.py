"""Forty tables as people have them: read without a flag where they tell enough, and without one wrong number."""

import json
from pathlib import Path

import numpy as np
import pytest

from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, read_worksheet
from tests.cli.cli_cases import run
from tests.files.messy_tables import messy_tables, truth

pytest.importorskip("pandas")
pytest.importorskip("odf")
OPTIONS = {"--decimal": "decimal", "--date": "date", "--encoding": "encoding", "--missing": "missing"}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return messy_tables(tmp_path_factory.mktemp("messy"))


def read(case, flags=()):
    options = {OPTIONS[flags[0]]: flags[1]} if flags else {}
    return read_worksheet(case.path, Brief(case.target, LossSpec(case.loss), **options))


def test_forty_tables_of_which_four_need_a_flag(cases):
    assert len(cases) == 40
    assert sum(not case.flags for case in cases) == 36


def test_no_number_is_wrong(cases):
    """Every cell of every column, and every label, beside the table that the files were made from."""
    compared, known = 0, truth()
    for case in cases:
        sheet = read(case, case.flags)
        found = dict(zip(sheet.features.names, sheet.features.arrays, strict=True))
        for name, values in case.numbers.items():
            wanted = np.asarray([np.nan if value is None else value for value in values], dtype=float)
            np.testing.assert_array_equal(found[name], wanted, err_msg=f"{case.path.name}, {name}")
            compared += len(wanted)
        for name in found.keys() - case.numbers.keys():  # then it is text: no column is left out
            assert found[name].tolist() in (known.ids, known.piece, *case.texts), f"{case.path.name}, {name}"
            compared += len(found[name])
        if case.loss == "log-loss":
            assert sheet.labels == case.labels, case.path.name
        else:
            assert {row: float(label) for row, label in sheet.labels.items()} == {
                row: float(label) for row, label in case.labels.items()
            }, case.path.name
        compared += len(case.labels)
        notes = " ".join(sheet.notes)
        assert all(part in notes for part in case.notes), (case.path.name, notes)
    assert compared == 13_920


def test_what_is_open_is_refused_with_the_flag_that_mends_it(cases):
    for case in cases:
        if case.flags:
            with pytest.raises(StakesError) as caught:
                read(case)
            assert f"{case.flags[0]} " in str(caught.value), case.path.name


def test_rows_are_suggested_for_all(cases):
    for case in cases:
        arguments = ["suggest", str(case.path), "--target", case.target, "--loss", case.loss, "--json"]
        answer = run([*arguments, *case.flags])
        assert answer.code == 0, (case.path.name, answer.err)
        assert len(json.loads(answer.out)["rows"]) == 5, case.path.name


def test_the_page_names_them_all(cases):
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `") and line.count(" | ") == 2]
    listed = {row[0].strip("| `"): tuple(row[2].strip("| `").split()) for row in rows if "_" in row[0]}
    assert listed == {case.path.name: case.flags for case in cases}
    assert f"{sum(not case.flags for case in cases)} of them get rows" in page
