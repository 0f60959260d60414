"""Stores and processes with trials: known by the function, what it closes over, and what the first run drew."""

import functools
import json

import numpy as np
import pytest

from stakes.simulation import Trial
from stakes.simulation.store import description
from tests.simulation.simulation_cases import COSTS, Committee, breaks_on_demand, same
from tests.simulation.trial_cases import noisy_line, per_class, trials

SHIFT = {"by": 0.0}


def shifted(rng, by):
    found = noisy_line(rng)
    return Trial(found.X, found.y + by, found.initial, found.pool, found.contexts, found.test)


def shifting(by):
    return lambda rng: shifted(rng, by)


def shifted_by_a_global(rng):
    return shifted(rng, SHIFT["by"])


class Shifted:
    """A trial that is a method."""

    def __init__(self, by):
        self.by = by

    def __repr__(self):
        return f"Shifted({self.by})"

    def draw(self, rng):
        return shifted(rng, self.by)


def test_two_processes_give_the_same_bits():
    arguments = {"loss": COSTS, "model": Committee(classes=("a", "b", "c")), "runs": 3}
    assert same(trials(per_class, **arguments), trials(per_class, **arguments, n_jobs=2))
    assert same(trials(shifting(1.0)), trials(shifting(1.0), n_jobs=2))


def test_a_store_of_trials_goes_on_after_an_error_and_adds_runs(tmp_path, monkeypatch):
    mine = ["loss", ("mine", breaks_on_demand)]
    monkeypatch.setenv("STAKES_TEST_BREAK", "1")
    with pytest.raises(RuntimeError, match="killed"):
        trials(strategies=mine, runs=6, store=tmp_path)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    assert 0 < len(kept) < 12
    monkeypatch.delenv("STAKES_TEST_BREAK")
    whole = trials(strategies=mine, runs=7)
    again = trials(strategies=mine, runs=7, store=tmp_path)
    assert same(again, whole)
    assert (again.bought == whole.bought).all()
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (shifting(0.0), shifting(1.0)),
        (functools.partial(shifted, by=0.0), functools.partial(shifted, by=1.0)),
        (Shifted(0.0).draw, Shifted(1.0).draw),
        (noisy_line, shifting(0.0)),
    ],
)
def test_another_function_is_refused(tmp_path, first, other):
    kept = trials(first, runs=1, store=tmp_path)
    assert same(trials(first, runs=1, store=tmp_path), kept)
    with pytest.raises(ValueError, match=r"(?s)belongs to another simulation; what differs:.*trial: "):
        trials(other, runs=1, store=tmp_path)


def test_other_data_of_the_same_function_are_refused(tmp_path, monkeypatch):
    trials(shifted_by_a_global, runs=1, store=tmp_path)
    monkeypatch.setitem(SHIFT, "by", 2.0)
    with pytest.raises(ValueError, match=r"what differs:\n  y: "):
        trials(shifted_by_a_global, runs=1, store=tmp_path)


def test_other_parts_of_the_same_data_are_refused(tmp_path):
    swap = [False]

    def turned(rng):
        found = noisy_line(rng)
        first = found.initial[::-1] if swap[0] else found.initial
        return Trial(found.X, found.y, first, found.pool, found.contexts, found.test)

    before = description(turned)
    trials(turned, runs=1, store=tmp_path)
    swap[0] = True
    assert description(turned) != before  # a closure is part of the function
    with pytest.raises(ValueError, match=r"(?s)what differs:.*parts: "):
        trials(turned, runs=1, store=tmp_path)


def test_kept_seeds_are_another_simulation(tmp_path):
    trials(runs=1, store=tmp_path)
    with pytest.raises(ValueError, match="reseed: True in the store, False now"):
        trials(runs=1, store=tmp_path, reseed=False)


def test_methods_and_partial_functions_are_described_by_what_they_hold():
    assert description(Shifted(1).draw) == description(Shifted(1).draw) != description(Shifted(2).draw)
    parts = [functools.partial(shifted, by=np.arange(each)) for each in (2, 2, 3)]
    assert description(parts[0]) == description(parts[1]) != description(parts[2])
    assert " at 0x" not in description(parts[0])


def test_the_rows_of_each_part_are_kept(tmp_path):
    found = trials(runs=2, store=tmp_path)
    for run, trial in enumerate(found.trials):
        kept = json.loads((tmp_path / "splits" / f"run{run:05d}.json").read_text())
        assert sorted(kept) == ["contexts", "initial", "pool", "test"]
        assert all(rows == getattr(trial, name).tolist() for name, rows in kept.items())
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "splits").iterdir()}
    trials(runs=3, store=tmp_path)
    assert all(path.stat().st_mtime_ns == at for path, at in written.items())
    assert len(list((tmp_path / "splits").iterdir())) == 3
