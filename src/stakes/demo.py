"""The whole story on real data: a table, the next labels, a campaign, whether it helps, and a report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stakes.campaigns import Campaign
from stakes.files import write_csv
from stakes.reports import write_report
from stakes.specs import LossSpec, build_loss, build_model
from stakes.specs.models import ModelSpec
from stakes.worksheets import Brief, read_worksheet

TARGET, IDS = "diagnosis", "patient"
COSTS = {"malignant": {"operate": 0.0, "wait": 20.0}, "benign": {"operate": 1.0, "wait": 0.0}}
_ASKED = "--target diagnosis --id patient --loss cost-matrix --cost-matrix costs.csv"
_MONEY = "--label-cost 0.5 --decisions 500"
_QUICK = ModelSpec("random-forest", {"n_estimators": 20})  # for the many fits of a simulation

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoFiles:
    """What the demo leaves in its folder."""

    table: Path
    answers: Path
    """The same table with every label: what the laboratory would say."""
    costs: Path
    campaign: Path
    curve: Path
    report: Path


@dataclass(frozen=True)
class DemoSize:
    """How much the demo does."""

    labelled: int = 20
    rounds: int = 3
    batch: int = 5
    runs: int = 8
    budget: int = 25


class DemoError(ValueError):
    """A folder that the demo does not touch."""


def run_demo(folder: str | os.PathLike[str], *, say: Say, seed: int = 0, size: DemoSize | None = None) -> DemoFiles:
    """Tell the story of a hospital in a folder that is new or empty; each step names the command that does the same."""
    sizes, files = size or DemoSize(), _files(_new_folder(Path(folder)))
    truths = _write_tables(files, sizes.labelled, seed)
    say(
        f"A hospital has measured {len(truths)} tumours; the laboratory has told of {sizes.labelled} what they are, "
        "and each further answer costs 0.5. To wait with a malignant one costs 20, to operate on a benign one costs 1. "
        f"Which should the laboratory look at next? The files are in {files.table.parent}."
    )
    brief = Brief(TARGET, _loss(), id_column=IDS, label_cost=0.5, decisions=500, seed=seed)
    _suggest(files, brief, say)
    with _begin(files, brief, say) as campaign:
        for _ in range(sizes.rounds):
            _ask_and_tell(campaign, truths, sizes.batch, say)
        _simulate(files, sizes, seed, say)
        _report(campaign, files, say)
    return files


def _new_folder(folder: Path) -> Path:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DemoError(f"{folder} is there and is not empty; nothing in it was touched. Give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(folder: Path) -> DemoFiles:
    names = ("table.csv", "answers.csv", "costs.csv", "campaign.stakes", "curve.png", "report.html")
    return DemoFiles(*(folder / name for name in names))


def _loss() -> LossSpec:
    return LossSpec("cost-matrix", cost_matrix=COSTS)


def _write_tables(files: DemoFiles, labelled: int, seed: int) -> dict[str, str]:
    """The tables of tumours in a random order, the first few with labels; the truth by patient."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    order = np.random.default_rng(seed).permutation(len(data.target))
    kinds = [str(data.target_names[data.target[row]]) for row in order]
    names = [f"P{place:03d}" for place in range(1, len(order) + 1)]
    numbers = data.data[order].tolist()
    head = [IDS, *map(str, data.feature_names), TARGET]
    rows = [(name, *each, kind) for name, each, kind in zip(names, numbers, kinds, strict=True)]
    write_csv(files.answers, head, rows)
    write_csv(files.table, head, [row if place < labelled else (*row[:-1], "") for place, row in enumerate(rows)])
    write_csv(files.costs, ["truth", *COSTS["benign"]], [[truth, *costs.values()] for truth, costs in COSTS.items()])
    return dict(zip(names, kinds, strict=True))


def _suggest(files: DemoFiles, brief: Brief, say: Say) -> None:
    from stakes.worksheets.appraise import appraise

    say(f"\n$ stakes suggest table.csv {_ASKED} {_MONEY} -n 3")
    sheet = read_worksheet(files.table, brief)
    found = appraise(sheet, sheet.labels, 3)
    for row, reason in zip(found.ranking.labels, found.ranking.reasons, strict=True):
        say(f"  {row}: worth {reason.worth:.4g} a decision")
    say(str(found.outlook))


def _begin(files: DemoFiles, brief: Brief, say: Say) -> Campaign:
    say(f"\n$ stakes init campaign.stakes table.csv {_ASKED} {_MONEY}")
    given = {name: getattr(brief, name) for name in ("id_column", "label_cost", "decisions", "seed")}
    return Campaign.create(files.campaign, files.table, brief.target, brief.loss, **given)


def _ask_and_tell(campaign: Campaign, truths: Mapping[str, str], batch: int, say: Say) -> None:
    asked = campaign.ask(batch, who="laboratory")
    say(f"\n$ stakes ask campaign.stakes -n {batch}\n  {', '.join(row.id for row in asked.rows)}")
    for row in asked.rows:
        campaign.tell(row.id, truths[row.id], who="laboratory")
        say(f"$ stakes tell campaign.stakes {row.id} {truths[row.id]}")


def _simulate(files: DemoFiles, sizes: DemoSize, seed: int, say: Say) -> None:
    """Whether the loss-driven choice would have helped, now that all answers are known."""
    from stakes.simulation import simulate

    options = f"--model random-forest --model-option n_estimators=20 --budget {sizes.budget} --runs {sizes.runs}"
    say(f"\n$ stakes simulate answers.csv {_ASKED} {options} --plot curve.png")
    sheet = read_worksheet(files.answers, Brief(TARGET, _loss(), model=_QUICK, id_column=IDS, seed=seed))
    classes: Any = sheet.classes(sheet.labels)
    labels = np.asarray([sheet.labels[row] for row in range(len(sheet.ids))], dtype=object)
    found = simulate(
        sheet.features,
        labels,
        build_loss(_loss(), classes),
        build_model(_QUICK, "classes", classes, seed),
        classes=classes,
        budget=sizes.budget,
        runs=sizes.runs,
        seed=seed,
        metrics={},
        progress=False,
    )
    found.plot().figure.savefig(files.curve, dpi=150, bbox_inches="tight")
    say(str(found))


def _report(campaign: Campaign, files: DemoFiles, say: Say) -> None:
    say(f"\n$ stakes report campaign.stakes -o report.html\n{campaign.status().advice}")
    write_report(campaign, files.report)
    say(f"\nOpen {files.report} in a browser.")
