"""Weights & Biases: campaigns and simulations in a run, step by step.

The extra `stakes[wandb]` brings the package. Everything goes into the run that is given, or else the one that
`wandb.init` began; its mode (online, offline, disabled) is up to that.
"""

from __future__ import annotations

from typing import Any

try:
    import wandb
except ImportError as error:
    raise ImportError("this needs Weights & Biases: pip install 'stakes[wandb]'") from error

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
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

_LABELS = "stakes/labels"  # the axis of all curves


def log_campaign(campaign: Campaign, run: Any = None) -> int:
    """Record what a campaign has come to since the last time: call it after labels have come.

    The settings go into the configuration of the run; the expected loss of a decision, what the next labels save and
    cost, counts and money are curves over the number of labels; the advice is in the summary. The campaign file has all
    rankings, so nothing is lost if this is called late, or once at the end.

    Args:
        campaign: The campaign, open.
        run: A run of `wandb.init`; the one that is active by default.

    Returns:
        How many rankings were new to the run.

    Raises:
        StakesError: If there is no run.
    """
    run = _active(run)
    steps, last = campaign_steps(campaign, int(run.config.get(LAST, 0)))
    if LAST not in run.config:
        run.config.update(campaign_settings(campaign))
    for step, values in (*steps, campaign_now(campaign)):
        run.log({**values, _LABELS: step})
    run.config.update({LAST: last}, allow_val_change=True)
    run.summary["stakes/advice"] = campaign.status(refresh=False).advice
    return len(steps)


def log_simulation(simulation: Simulation, run: Any = None) -> None:
    """Record a simulation: learning curves of every strategy, what decided them, and the verdict.

    Args:
        simulation: What `simulate` returned. Its mean losses with 95% intervals are curves over the number of labels;
            settings and versions go into the configuration of the run, the verdict into its summary.
        run: A run of `wandb.init`; the one that is active by default.

    Raises:
        StakesError: If there is no run.
    """
    run = _active(run)
    run.config.update(simulation_settings(simulation))
    for step, values in simulation_steps(simulation):
        run.log({**values, _LABELS: step})
    run.summary["stakes/verdict"] = simulation.verdict()


def log_progress(what: str, share: float | None) -> None:
    """Record how far a long call is: `simulate(..., progress=log_progress)`.

    Args:
        what: What is being done.
        share: The share that is done; None where that is not known.

    Raises:
        StakesError: If there is no run.
    """
    _active(None).log({DONE: share, "stakes/doing": what} if share is not None else {"stakes/doing": what})


def _active(run: Any) -> Any:
    run = wandb.run if run is None else run
    if run is None:
        raise StakesError("there is no run of Weights & Biases; begin one (wandb.init), or give it (run=)")
    run.define_metric(_LABELS, hidden=True)
    run.define_metric("stakes/*", step_metric=_LABELS)
    return run
