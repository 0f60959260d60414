"""The same numbers however many processes, and after a kill; other settings are refused."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

import stakes
from stakes import CostMatrix, SquaredError
from stakes.simulation import simulate
from stakes.simulation.store import description
from tests.simulation.simulation_cases import BayesianLine, breaks_on_demand, committees, line_data, lines, same


@pytest.mark.parametrize("simulation", [lines, committees])
def test_two_processes_give_the_same_bits(simulation):
    assert same(simulation(), simulation(n_jobs=2))


def test_runs_go_where_joblib_is_configured_to_send_them():
    seen = set()

    def mine(belief, _loss, _random_state):
        seen.add(threading.get_ident())
        return belief.candidate_variance

    with joblib.parallel_config(backend="threading"):
        found = lines(strategies=[("mine", mine)], n_jobs=2)
    assert threading.get_ident() not in seen
    assert np.array_equal(found.acquired, lines(strategies=[("mine", mine)]).acquired)


def test_goes_on_after_an_error(tmp_path, monkeypatch):
    mine = ["loss", ("mine", breaks_on_demand)]
    monkeypatch.setenv("STAKES_TEST_BREAK", "1")
    with pytest.raises(RuntimeError, match="killed"):
        lines(strategies=mine, runs=4, store=tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert 0 < len(kept) < 8
    monkeypatch.delenv("STAKES_TEST_BREAK")
    assert same(lines(strategies=mine, runs=4, store=tmp_path), lines(strategies=mine, runs=4))
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())  # none was run again


SCRIPT = """
from tests.simulation.simulation_cases import BayesianLine, lines
lines(model=BayesianLine(pause=0.02), runs=20, store={store!r})
"""


def test_goes_on_after_a_kill(tmp_path):
    path = os.pathsep.join([str(Path(__file__).parents[2]), str(Path(stakes.__file__).parents[1])])
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(store=str(tmp_path))], env={**os.environ, "PYTHONPATH": path}
    )
    until = time.monotonic() + 30.0
    while len(list(tmp_path.glob("run*.npz"))) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert 2 <= len(list(tmp_path.glob("run*.npz"))) < 60
    arguments = {"model": BayesianLine(pause=0.02), "runs": 2}  # fewer runs than were asked for read the same store
    assert same(lines(**arguments, store=tmp_path), lines(**arguments))


def test_more_runs_add_to_a_store(tmp_path):
    few, many = lines(runs=2, store=tmp_path), lines(runs=3, store=tmp_path)
    assert (many.losses["loss"][:, :2] == few.losses["loss"]).all()
    assert len(list(tmp_path.glob("*.npz"))) == 9
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"random_state": 1}, "random_state: 0 in the store, 1 now"),
        ({"n": 2}, "n: 3 in the store, 2 now"),
        ({"loss": SquaredError()}, "metrics: "),
        ({"model": BayesianLine(noise=0.2)}, r"model: BayesianLine\(noise=0.1.* in the store, BayesianLine\(noise=0.2"),
        ({"strategies": ["random"]}, "strategies: "),
    ],
)
def test_other_settings_are_refused(tmp_path, change, what):
    lines(store=tmp_path, runs=1)
    with pytest.raises(ValueError, match=f"(?s)belongs to another simulation; what differs:.*{what}"):
        lines(store=tmp_path, runs=1, **change)


def test_other_data_are_refused(tmp_path):
    X, y = line_data()
    arguments = {"n": 2, "runs": 1, "store": tmp_path}
    simulate(BayesianLine(), SquaredError(), X, y, **arguments)
    simulate(BayesianLine(), SquaredError(), np.asfortranarray(X), y, **arguments)  # the same numbers
    with pytest.raises(ValueError, match=r"y: .* in the store"):
        simulate(BayesianLine(), SquaredError(), X, y + 1.0, **arguments)


def test_a_broken_file_is_named(tmp_path):
    lines(store=tmp_path, runs=1)
    (tmp_path / "run00000-strategy01.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"run00000-strategy01.npz is not a finished run .* Delete it"):
        lines(store=tmp_path, runs=1)


def test_runs_without_settings_are_refused(tmp_path):
    lines(store=tmp_path, runs=1)
    (tmp_path / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"holds runs such as run00000-strategy00.npz but no settings.json"):
        lines(store=tmp_path, runs=1)


def test_descriptions_tell_functions_apart_and_hold_no_address():
    def power(exponent):
        return lambda z: z**exponent if z not in {"a", "b"} else z

    assert description(power(2)) == description(power(2)) != description(power(3))
    assert description(SquaredError(weight=power(2))) != description(SquaredError(weight=power(4)))
    assert description(CostMatrix([[0, 1], [1, 0]])) != description(CostMatrix([[0, 1], [2, 0]]))
    assert " at 0x" not in description([object(), np.random.RandomState(0), {"key": power(2)}, {power(2)}])


def test_descriptions_are_the_same_in_every_process():
    code = "from stakes.simulation.store import description as d; print(d(lambda z: z in {'a', 'b', 'c'}))"
    env = {**os.environ, "PYTHONPATH": str(Path(stakes.__file__).parents[1])}
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1
