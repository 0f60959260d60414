"""Campaigns and simulations in a file store of MLflow, read back by its own client."""

import pytest

pytest.importorskip("mlflow", reason="MLflow is not installed; make integrations has it")

import mlflow

from stakes.integrations.mlflow import log_campaign, log_progress, log_simulation
from tests.integrations.test_records import label, made, simulated


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as active:
        yield active.info.run_id


def kept(run, metric):
    return [(each.step, each.value) for each in mlflow.MlflowClient().get_metric_history(run, metric)]


def test_a_campaign_is_recorded_as_it_goes_and_each_ranking_once(run):
    with made() as campaign:
        label(campaign, 1)
        assert log_campaign(campaign) == 1
        label(campaign, 2)
        assert log_campaign(campaign) == 1
        assert log_campaign(campaign) == 0
        losses = [each.payload["outlook"]["today"]["value"] for each in campaign.journal.records("ranking")]
        advice = campaign.status(refresh=False).advice
    assert kept(run, "stakes/expected_loss") == [(4, losses[0]), (5, losses[1])]
    assert kept(run, "stakes/spent") == [(5, 0.5), (7, 1.5), (7, 1.5)]
    data = mlflow.MlflowClient().get_run(run).data
    assert data.params["stakes/target"] == "y"
    assert data.tags["stakes/advice"] == advice


def test_another_run_gets_the_whole_past(run):
    with made() as campaign:
        label(campaign, 1)
        log_campaign(campaign)
        with mlflow.start_run(nested=True) as other:
            assert log_campaign(campaign) == 1
    assert kept(other.info.run_id, "stakes/expected_loss") == kept(run, "stakes/expected_loss")


def test_a_simulation_is_recorded_with_its_curves(run):
    found = simulated(progress=log_progress)
    log_simulation(found)
    curve = kept(run, "stakes/loss/random")
    assert curve == [(step, pytest.approx(found.curves("random")[:, step].mean())) for step in range(3)]
    assert [value for _, value in kept(run, "stakes/share_done")] == [0.5, 1.0]
    data = mlflow.MlflowClient().get_run(run).data
    assert data.tags["stakes/verdict"] == found.verdict()
    assert mlflow.artifacts.load_dict(f"runs:/{run}/simulation.json")["strategies"] == ["random", "odd: name"]
