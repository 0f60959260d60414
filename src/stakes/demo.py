"""The whole story on real data: a table, the next labels, a campaign, whether it helps, and a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stakes._words import number
from stakes.campaigns import Campaign
from stakes.reports import write_report
from stakes.reports.canvas import check_canvas
from stakes.samples import write_sample
from stakes.specs import LossSpec, ModelSpec, build_loss, build_model
from stakes.worksheets import Brief, read_worksheet
from stakes.worksheets.labels import as_targets

TARGET, IDS = "progression", "patient"
LOSS = LossSpec("squared-error", weight="exp:0.01")
MONEY: dict[str, Any] = {"label_cost": 2000.0, "decisions": 100}
_ASKED = "--target progression --id patient --loss squared-error --weight exp:0.01"
_MONEY = "--label-cost 2000 --decisions 100"
_QUICK = ModelSpec("bayesian-ridge")  # for the many fits of a simulation
_STORY = """A clinic has examined 442 people with diabetes. How far the disease has gone a year later, in points, is
known of 30; to follow up another costs 2,000. The prediction guides 100 decisions. A miss twice as far costs
four times as much, and a miss about someone who gets far worse costs more still: e times as much with every 100 points.
Whom should the clinic follow up next? (The data are real and come with scikit-learn.)"""

if TYPE_CHECKING:
    pass

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoFiles:
    """What the demo leaves in its folder."""

    table: Path
    answers: Path
    """The same table with every label: what following up all would tell."""
    campaign: Path
    curve: Path
    report: Path


@dataclass(frozen=True)
class DemoSize:
    """How much the demo does."""

    rounds: int = 4
    batch: int = 5
    runs: int = 24
    budget: int = 10


class DemoError(ValueError):
    """A folder that the demo does not touch."""


def run_demo(folder: str | os.PathLike[str], *, say: Say, seed: int = 0, size: DemoSize | None = None) -> DemoFiles:
    """Tell the story of a clinic in a folder that is new or empty; each step names the command that does the same."""
    check_canvas()
    sizes, files = size or DemoSize(), _files(_new_folder(Path(folder)))
    say(f"{_STORY}\n\n$ stakes sample progression")
    write_sample("progression", files.table.parent)
    brief = Brief(TARGET, LOSS, id_column=IDS, seed=seed, **MONEY)
    answers = read_worksheet(files.answers, brief)
    truths = {answers.ids[row]: label for row, label in answers.labels.items()}
    _suggest(files, brief, say)
    with _begin(files, brief, say) as campaign:
        for _ in range(sizes.rounds):
            _ask_and_tell(campaign, truths, sizes.batch, say)
        _simulate(files, replace(brief, model=_QUICK), sizes, say)
        _report(campaign, files, say)
    return files


def _new_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DemoError(f"{folder} is there and is not empty; nothing in it was touched. Give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(folder: Path) -> DemoFiles:
    names = ("progression.csv", "progression-answers.csv", "campaign.stakes", "curve.png", "report.html")
    return DemoFiles(*(folder / name for name in names))


def _suggest(files: DemoFiles, brief: Brief, say: Say) -> None:
    from stakes.worksheets.appraisal import appraise

    say(f"\n$ stakes suggest progression.csv {_ASKED} {_MONEY} -n 3")
    sheet = read_worksheet(files.table, brief)
    found = appraise(sheet, sheet.labels, 3)
    for row, reason in zip(found.ranking.labels, found.ranking.reasons, strict=True):
        say(f"  {row}: worth {number(reason.worth or 0.0)} a decision")
    say(str(found.outlook))


def _begin(files: DemoFiles, brief: Brief, say: Say) -> Campaign:
    say(f"\n$ stakes init campaign.stakes progression.csv {_ASKED} {_MONEY}")
    return Campaign.create(files.campaign, files.table, TARGET, LOSS, id_column=IDS, seed=brief.seed, **MONEY)


def _ask_and_tell(campaign: Campaign, truths: Mapping[str, str], batch: int, say: Say) -> None:
    asked = campaign.ask(batch, who="clinic")
    say(f"\n$ stakes ask campaign.stakes -n {batch}\n  {', '.join(row.id for row in asked.rows)}")
    for row in asked.rows:
        campaign.tell(row.id, truths[row.id], who="clinic")
        say(f"$ stakes tell campaign.stakes {row.id} {truths[row.id]}")


def _simulate(files: DemoFiles, brief: Brief, sizes: DemoSize, say: Say) -> None:
    """Whether the loss-driven choice would have helped, now that all answers are known."""
    from stakes.simulation import simulate

    options = f"--model bayesian-ridge --budget {sizes.budget} --runs {sizes.runs} --plot curve.png"
    say("\nWould a choice by chance have done as well? In a demo all answers are known, so it can be tried.")
    say(f"$ stakes simulate progression-answers.csv {_ASKED} {options}")
    sheet = read_worksheet(files.answers, brief)
    labels = as_targets([sheet.labels[row] for row in range(len(sheet.ids))], sheet.task)
    model = build_model(brief.model, sheet.task, None, brief.seed)
    found = simulate(
        sheet.features,
        labels,
        build_loss(LOSS),
        model,
        budget=sizes.budget,
        runs=sizes.runs,
        seed=brief.seed,
        progress=False,
    )
    found.save_plots(files.curve)
    say(str(found))
    say("One table and one setting prove little; try your own with stakes simulate.")


def _report(campaign: Campaign, files: DemoFiles, say: Say) -> None:
    say(f"\n$ stakes report campaign.stakes -o report.html\n{campaign.status().advice}")
    write_report(campaign, files.report)
    say(f"\nOpen {files.report} in a browser.")
