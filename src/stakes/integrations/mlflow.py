"""MLflow: campaigns and simulations in a run, step by step.

The extra `stakes[mlflow]` brings `mlflow-skinny`, which is enough to record; the package `mlflow` shows it. Everything
goes into the run that is active; where none is, MLflow starts one.
"""

from __future__ import annotations

try:
    import mlflow
except ImportError as error:
    raise ImportError("this needs MLflow: pip install 'stakes[mlflow]'") from error

from stakes.campaign import Campaign
from stakes.integrations.records import (
    DONE,
    LAST,
    campaign_now,
    campaign_settings,
    campaign_steps,
    simulation_settings,
    simulation_steps,
)
from stakes.simulation import Simulation

__all__ = ["log_campaign", "log_progress", "log_simulation"]


def log_campaign(campaign: Campaign) -> int:
    """Record what a campaign has come to since the last time: call it after labels have come.

    The settings are parameters; the expected loss of a decision, what the next labels save and cost, counts and money
    are metrics, whose step is the number of labels; the advice is a tag. The campaign file has all rankings, so nothing
    is lost if this is called late, or once at the end.

    Args:
        campaign: The campaign, open.

    Returns:
        How many rankings were new to the run.

    Examples:
        >>> import mlflow, pandas as pd
        >>> from stakes import Campaign
        >>> from stakes.integrations.mlflow import log_campaign
        >>> table = pd.DataFrame({"x": range(9), "y": [0.0, 2.0, 4.0, 6.0, *[None] * 5]})
        >>> with Campaign.create(None, table, "y", "squared-error") as campaign, mlflow.start_run():  # doctest: +SKIP
        ...     asked = campaign.ask(1)
        ...     recorded = campaign.tell(asked.row_ids[0], 16.5)
        ...     log_campaign(campaign)
        1
    """
    run = (mlflow.active_run() or mlflow.start_run()).info.run_id
    tags = mlflow.MlflowClient().get_run(run).data.tags
    steps, last = campaign_steps(campaign, int(tags.get(LAST, 0)))
    if LAST not in tags:
        mlflow.log_params(campaign_settings(campaign))
    for step, values in (*steps, campaign_now(campaign)):
        mlflow.log_metrics(values, step=step)
    mlflow.set_tags({LAST: str(last), "stakes/advice": campaign.status(refresh=False).advice})
    return len(steps)


def log_simulation(simulation: Simulation) -> None:
    """Record a simulation: learning curves of every strategy, what decided them, the verdict, and all numbers.

    Args:
        simulation: What `simulate` returned. Its mean losses with 95% intervals are metrics, whose step is the number
            of labels; settings and versions are parameters; the verdict is a tag; losses of each run and the rows
            acquired are the file simulation.json.
    """
    mlflow.log_params(simulation_settings(simulation))
    for step, values in simulation_steps(simulation):
        mlflow.log_metrics(values, step=step)
    mlflow.set_tag("stakes/verdict", simulation.verdict())
    mlflow.log_dict(simulation.to_dict(), "simulation.json")


def log_progress(what: str, share: float | None) -> None:
    """Record how far a long call is: `simulate(..., progress=log_progress)`.

    Args:
        what: What is being done.
        share: The share that is done; None where that is not known.
    """
    if share is not None:
        mlflow.log_metric(DONE, share)
    mlflow.set_tag("stakes/doing", what)
