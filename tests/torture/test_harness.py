"""The harness counts what goes wrong: an answer, a hang, a crash."""

import os
import signal
import time

import pytest

from tests.torture.harness import Area, areas, load, run, run_case


def _case(number, folder):
    assert list(folder.iterdir()) == []
    (folder / "left").write_text("x")
    if number == 1:
        raise KeyError("lost")
    if number == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 3:
        time.sleep(600)
    if number == 4:
        raise SystemExit(3)


AREA = Area("test_harness", _case, quick=6, seconds=2.0)


def _up_to(count):
    return lambda module, tally: tally.cases < count


def test_each_failure_is_counted_by_its_kind_and_the_other_cases_run():
    tally = run([__name__], _up_to(6), jobs=2)[__name__]
    assert tally.cases == 6
    assert {failure.number: failure.kind for failure in tally.failures} == {
        1: "wrong",
        2: "crash",
        3: "hang",
        4: "wrong",
    }
    shown = {failure.number: str(failure) for failure in tally.failures}
    assert "KeyError: 'lost'" in shown[1]
    assert "SIGSEGV" in shown[2]
    assert "--area test_harness --case 3" in shown[3]


def test_an_area_that_keeps_failing_is_given_up():
    tally = run([__name__], lambda module, tally: tally.cases < 1000, first=4, most_failures=1)[__name__]
    assert tally.cases < 5


@pytest.mark.parametrize("module", areas())
def test_quick_cases(module):
    area = load(module)
    assert module == f"tests.torture.{area.name}"
    assert area.quick > 0
    tally = run([module], _up_to(area.quick))[module]
    assert tally.cases == area.quick
    assert not tally.failures, "\n\n".join(map(str, tally.failures))


def test_a_single_case_runs_in_this_process():
    with pytest.raises(KeyError, match="lost"):
        run_case(AREA, 1)
