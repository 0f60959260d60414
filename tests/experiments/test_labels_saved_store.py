"""Finished runs on disk: put together, never half written, never mixed."""

import numpy as np
import pytest

from experiments.labels_saved import store as module
from experiments.labels_saved.store import Key, Record, Store, joined
from stakes.exceptions import StakesError

KEY = Key("real estate", "reference", "loss", "weighted log loss")
SETTINGS = {"sizes": {"bought": 3}, "counted": (1, 3)}


def record(*runs, bought=3, losses=("a", "b")):
    """Of some runs, each number of which shows its run."""
    numbers = np.asarray(runs, dtype=float)
    return Record(
        runs=np.asarray(runs),
        losses={name: numbers[:, None] + np.zeros(bought + 1) for name in losses},
        acquired=np.tile(np.asarray(runs)[:, None], (1, bought)),
        counted=np.asarray([1, bought]),
        log_density=numbers[:, None] + np.zeros(2),
        joint_log_density=numbers[:, None] + np.zeros(2),
        promised=np.full((len(runs), bought), np.nan),
        seconds=numbers,
    )


def test_what_was_kept_comes_back(tmp_path):
    store = Store(tmp_path)
    assert store.load(KEY) is None
    store.add(KEY, record(0, 1), SETTINGS)
    back = store.load(KEY, SETTINGS)
    assert back.runs.tolist() == [0, 1]
    assert set(back.losses) == {"a", "b"}
    assert np.isnan(back.promised).all()
    assert (tmp_path / "real-estate" / "reference" / "loss-by-weighted-log-loss.npz").is_file()


def test_runs_are_added_in_their_order_and_those_that_are_there_stay(tmp_path):
    store = Store(tmp_path)
    store.add(KEY, record(3, 5), SETTINGS)
    changed = record(4, 3)
    changed.losses["a"][:] = -1.0
    whole = store.add(KEY, changed, SETTINGS)
    assert whole.runs.tolist() == store.load(KEY).runs.tolist() == [3, 4, 5]
    assert whole.losses["a"][:, 0].tolist() == [3.0, -1.0, 5.0]
    assert whole.acquired[:, 0].tolist() == [3, 4, 5]


def test_other_settings_are_refused_and_nothing_is_changed(tmp_path):
    store = Store(tmp_path)
    store.add(KEY, record(0), SETTINGS)
    with pytest.raises(StakesError, match="has runs made by other settings"):
        store.add(KEY, record(1), {**SETTINGS, "yardstick": 2})
    assert store.load(KEY, SETTINGS).runs.tolist() == [0]


def test_runs_of_other_sizes_or_losses_are_not_put_together():
    for other in (record(1, bought=4), record(1, losses=("a",))):
        with pytest.raises(StakesError, match="only if they measured the same losses and bought as many labels"):
            joined([record(0), other])


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.add(KEY, record(0), SETTINGS)

    def killed(file, **_):
        file.write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(module.np, "savez_compressed", killed)
    with pytest.raises(KeyboardInterrupt):
        store.add(KEY, record(1), SETTINGS)
    monkeypatch.undo()
    assert store.load(KEY, SETTINGS).runs.tolist() == [0]


def test_a_damaged_file_is_refused_with_what_to_do(tmp_path):
    store = Store(tmp_path)
    store.add(KEY, record(0), SETTINGS)
    path = tmp_path / KEY.path
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StakesError, match=r"holds no finished runs .* Delete it"):
        store.load(KEY)


def test_all_records_of_a_table_are_found_by_their_keys(tmp_path):
    store = Store(tmp_path)
    keys = [KEY, Key("real estate", "of another engine", "random"), Key("yacht", "reference", "random")]
    for key in keys:
        store.add(key, record(0), SETTINGS)
    assert set(store.records("real estate", SETTINGS)) == set(keys[:2])
    assert store.records("nothing") == {}
    with pytest.raises(StakesError, match="has runs made by other settings"):
        store.records("yacht", {})


def test_keys_have_files_of_their_own():
    keys = [Key("t", "b", "loss", "a"), Key("t", "b", "loss", "b"), Key("t", "b", "random"), Key("t", "c", "random")]
    assert len({key.path for key in keys}) == len(keys)
    assert [str(key) for key in keys[1:3]] == ["loss (b)", "random"]
