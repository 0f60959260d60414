"""The table of docs/estimators.md is what happens: each estimator in it is tried."""

from importlib.util import find_spec

import pytest

from tests.models.estimators import BEGIN, CASES, DIRECTLY, END, LABELLED, PAGE, REFUSED, lines


def _table() -> list[str]:
    return PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip().splitlines()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_page_says_what_happens(case):
    if find_spec(case.library) is None:
        pytest.skip(f"{case.library} is not installed: make integrations tries it")
    *_, line = lines((case,))
    assert line in _table(), f"python -m tests.models.estimators writes the table anew; got {line}"


def test_the_page_has_every_case_and_no_other():
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in _table()[2:]]
    assert [(name, labels) for name, labels, *_ in cells] == [(f"`{case.name}`", case.labels) for case in CASES]
    assert {outcome for _, _, outcome, _ in cells} == {DIRECTLY, LABELLED, REFUSED}
    works = [case for case, (*_, outcome, _) in zip(CASES, cells, strict=True) if outcome != REFUSED]
    assert len({case.path for case in works}) >= 30
    assert {case.library for case in works} == {"sklearn", "lightgbm", "xgboost", "catboost"}
