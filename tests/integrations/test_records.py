"""What trackers record is what the campaign and the simulation say, each thing once."""

import numpy as np
import pytest

pytest.importorskip("pandas", reason="pandas is not installed, and the campaign is made from a data frame")

import pandas as pd
from sklearn.linear_model import BayesianRidge

from stakes import Campaign, SquaredError, simulate
from stakes.integrations.records import (
    campaign_now,
    campaign_settings,
    campaign_steps,
    simulation_settings,
    simulation_steps,
)
from tests.integrations.pages import run_page


def made():
    """A campaign with labels to come: y = 2 x."""
    table = pd.DataFrame({"x": range(12), "y": [0.0, 2.0, 4.0, 6.5, *[None] * 8]})
    return Campaign.create(
        None, table, "y", SquaredError(), model=BayesianRidge(), label_cost=0.5, decisions=20, budget=6.0
    )


def label(campaign, n):
    campaign.tell_many([(row, 2.0 * int(row)) for row in campaign.ask(n).row_ids])


def simulated(**more):
    X = np.random.default_rng(0).normal(size=(50, 2))
    named = ["random", ("odd: name", lambda belief, loss, random_state: random_state.random(belief.n_candidates))]
    return simulate(BayesianRidge(), SquaredError(), X, X[:, 0], strategies=named, n=2, runs=2, **more)


def test_steps_of_a_campaign_are_its_rankings():
    with made() as campaign:
        assert campaign_steps(campaign) == ([], 0)
        label(campaign, 1)
        label(campaign, 2)
        steps, last = campaign_steps(campaign)
        assert [step for step, _ in steps] == [4, 5]
        outlook = campaign.status(refresh=False).outlook
        assert steps[-1].values["stakes/expected_loss"] == outlook["today"]["value"]
        assert steps[-1].values["stakes/next_1_saved"] == outlook["offers"][0]["worth"]
        assert steps[-1].values["stakes/next_1_cost"] == 0.5
        assert campaign_steps(campaign, last) == ([], last)
        first = campaign.journal.records("ranking")[0].number
        assert campaign_steps(campaign, first)[0] == steps[1:]
        now = campaign_now(campaign)
        assert now.step == 7
        assert now.values["stakes/spent"] == 1.5
        assert now.values["stakes/budget_left"] == 4.5
        settings = campaign_settings(campaign)
        assert settings["stakes/loss"] == "squared-error"
        assert settings["stakes/decisions"] == "20"


def test_steps_of_a_simulation_are_its_curves():
    found = simulated()
    steps = simulation_steps(found)
    assert [step for step, _ in steps] == [0, 1, 2]
    for step, values in steps:
        assert values["stakes/loss/random"] == pytest.approx(found.curves("random")[:, step].mean())
        assert values["stakes/loss/random_low"] < values["stakes/loss/random"] < values["stakes/loss/random_high"]
        assert "stakes/loss/odd_ name" in values
    settings = simulation_settings(found)
    assert settings["stakes/n"] == "2"
    assert settings["stakes/version_numpy"] == np.__version__
    assert max(map(len, settings.values())) <= 500


def test_the_page_runs(tmp_path, monkeypatch):
    for package in ("mlflow", "wandb"):
        pytest.importorskip(package, reason=f"{package} is not installed; make integrations has it")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("WANDB_SILENT", "true")
    run_page("records", tmp_path)
    assert any((tmp_path / "mlruns").rglob("simulation.json"))
    assert any((tmp_path / "wandb").rglob("*.wandb"))
