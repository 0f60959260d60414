"""Campaigns and simulations in an offline run of Weights & Biases, read back from its file."""

import json
import time

import pytest

pytest.importorskip("wandb", reason="wandb is not installed; make integrations has it")

import wandb

from stakes.exceptions import StakesError
from stakes.integrations.wandb import log_campaign, log_progress, log_simulation
from tests.integrations.test_records import label, made, simulated


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(project="stakes", mode="offline", dir=str(tmp_path)) as active:
        yield active


def history(run, tmp_path):
    """What the file of an offline run holds, a dict for each call of log."""
    run.finish()
    limit = time.monotonic() + 60.0
    while not any(record.WhichOneof("record_type") == "exit" for record in stored(tmp_path)):
        assert time.monotonic() < limit, "the file of the run does not end"
        time.sleep(0.1)  # a process of wandb's own writes it, and on a busy machine it is late
    return [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in stored(tmp_path)
        if record.WhichOneof("record_type") == "history"
    ]


def stored(tmp_path):
    """The records in the file of a run."""
    from wandb.proto import wandb_internal_pb2

    found = []
    for data in records(next(tmp_path.rglob("*.wandb")).read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        found.append(record)
    return found


def records(data, block=2**15, head=7):
    """The records of a log of LevelDB: blocks of parts, each with a checksum, a length and a kind (1 whole, 4 last)."""
    at, parts = head, b""
    while at + head <= len(data):
        left = block - at % block
        if left < head:
            at += left
            continue
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        parts += data[at + head : at + head + length]
        at += head + length
        if kind in (1, 4):
            yield parts
            parts = b""


def test_a_campaign_is_recorded_as_it_goes_and_each_ranking_once(run, tmp_path):
    with made() as campaign:
        label(campaign, 1)
        assert log_campaign(campaign) == 1
        label(campaign, 2)
        assert log_campaign(campaign, run) == 1
        assert log_campaign(campaign) == 0
        losses = [each.payload["outlook"]["today"]["value"] for each in campaign.journal.records("ranking")]
        assert run.summary["stakes/advice"] == campaign.status(refresh=False).advice
    assert run.config["stakes/target"] == "y"
    rows = [row for row in history(run, tmp_path) if "stakes/expected_loss" in row]
    assert [(row["stakes/labels"], row["stakes/expected_loss"]) for row in rows] == [(4, losses[0]), (5, losses[1])]


def test_a_simulation_is_recorded_with_its_curves(run, tmp_path):
    found = simulated(progress=log_progress)
    log_simulation(found)
    assert run.summary["stakes/verdict"] == found.verdict()
    rows = history(run, tmp_path)
    assert [row["stakes/share_done"] for row in rows if "stakes/share_done" in row] == [0.5, 1.0]
    curve = [row["stakes/loss/random"] for row in rows if "stakes/loss/random" in row]
    assert curve == pytest.approx(found.curves("random").mean(axis=0).tolist())


def test_without_a_run_it_says_so():
    with pytest.raises(StakesError, match="there is no run of Weights & Biases; begin one"):
        log_simulation(None)
