"""What trackers of experiments record of a campaign and of a simulation: settings once, and numbers step by step.

The step is a number of labels. A campaign keeps every ranking in its file, so all of its past can be recorded at any
time, whoever labelled and in whichever process; what a tracker has already is left out by the number of the last one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from stakes.campaign import Campaign
from stakes.campaign.kept import RANKING
from stakes.simulation import Simulation
from stakes.simulation.result import mean_of

LAST = "stakes/last_ranking"
"""Under which a tracker keeps the number of the last ranking that it has."""
DONE = "stakes/share_done"
"""The share of a simulation, or of a ranking, that is done."""
_LONGEST = 500  # letters of a setting
_STRANGE = re.compile(r"[^\w\-./ ]")  # what not every tracker takes in a name


class StepValues(NamedTuple):
    """The numbers at one step."""

    step: int
    """How many labels there are."""
    values: dict[str, float]


def campaign_settings(campaign: Campaign) -> dict[str, str]:
    """What a campaign is about, by name."""
    brief = campaign.brief
    given = {
        "campaign": campaign.path.name,
        "target": brief.target,
        "loss": brief.loss.name,
        "loss_options": brief.loss.options,
        "model": "default" if brief.model is None else brief.model.name,
        "decisions": brief.decisions,
        "label_cost": brief.label_cost,
        "budget": brief.budget,
        "random_state": brief.random_state,
        "rows": len(campaign.journal.ids()),
    }
    return _texts(given)


def campaign_steps(campaign: Campaign, after: int = 0) -> tuple[list[StepValues], int]:
    """What each ranking of a campaign said, and the number of the last.

    Args:
        campaign: The campaign, open.
        after: The number of the last ranking that is known already.

    Returns:
        A step for each later ranking: the expected loss of a decision, what labels can save of it, what the next 1 and
        8 labels save and cost; and the number of the last ranking.
    """
    steps, last = list[StepValues](), after
    for record in campaign.journal.records(RANKING):
        if record.number <= after:
            continue
        last, outlook = record.number, record.payload["outlook"] or {}
        values = {
            "expected_loss": (outlook.get("today") or {}).get("value"),
            "expected_loss_error": (outlook.get("today") or {}).get("error"),
            "most_saved": (outlook.get("most") or {}).get("value"),
        }
        for offer in outlook.get("offers") or []:
            if offer["size"] in (1, 8):
                values[f"next_{offer['size']}_saved"] = offer["worth"]
                values[f"next_{offer['size']}_cost"] = offer["cost"]
        steps.append(StepValues(record.payload["labels"], _finite(values)))
    return steps, last


def campaign_now(campaign: Campaign) -> StepValues:
    """Where a campaign stands: counts and money."""
    status = campaign.status(refresh=False)
    values = {
        "labelled": status.labelled,
        "asked": status.asked,
        "skipped": status.skipped,
        "open": status.open,
        "spent": status.spent,
        "budget_left": status.budget_left,
        "audited_loss": (status.audit or {}).get("mean"),
    }
    return StepValues(status.labelled, _finite(values))


def simulation_settings(simulation: Simulation) -> dict[str, str]:
    """What decided the numbers of a simulation, by name; hashes of the data among them."""
    kept = {name: value for name, value in simulation.settings.items() if value is not None}
    return _texts({**kept, **{f"version_{name}": value for name, value in simulation.versions.items()}})


def simulation_steps(simulation: Simulation) -> list[StepValues]:
    """Mean losses over runs after 0, 1, .. labels, with the ends of their 95% intervals where there are any."""
    steps = []
    for labels in range(simulation.n + 1):
        values: dict[str, Any] = {}
        for metric in simulation.losses:
            for strategy in simulation.strategies:
                mean = mean_of(simulation.curves(strategy, metric)[:, labels])
                name = f"{metric}/{strategy}"
                values |= {name: mean.value, f"{name}_low": mean.low, f"{name}_high": mean.high}
        steps.append(StepValues(labels, _finite(values)))
    return steps


def _finite(values: Mapping[str, Any]) -> dict[str, float]:
    """Those that are numbers, under names that every tracker takes."""
    known = {name: float(value) for name, value in values.items() if value is not None}
    return {f"stakes/{_STRANGE.sub('_', name)}": value for name, value in known.items() if math.isfinite(value)}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Settings that are set, as texts of a length that every tracker takes."""
    texts = {name: str(value) for name, value in values.items() if value is not None and value != {}}
    return {
        f"stakes/{_STRANGE.sub('_', name)}": text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
        for name, text in texts.items()
    }
