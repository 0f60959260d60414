"""`stakes demo` and `stakes sample`: tables to try things on, and a whole example on one of them.

Two tables are of real patients, which scikit-learn ships, and one is of prices that are made up. The demo suggests the
next labels, runs a campaign, simulates whether it helps, and writes a report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from stakes._utils.text import number
from stakes.campaign import Campaign
from stakes.cli.options import json_option
from stakes.cli.output import as_json_or
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.files.write import checked_output
from stakes.report import write_report
from stakes.report.figures import check_canvas
from stakes.tabular import Brief, LossSpec, ModelSpec, read_worksheet

Columns = dict[str, list[Any]]
Say = Callable[[str], None]

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


@dataclass(frozen=True)
class Sample:
    """A table by name."""

    name: str
    what: str
    id: str
    target: str
    labelled: int
    """Rows whose label is in the table; the others are in the answers."""
    columns: Callable[[], Columns]


def write_sample(name: str, folder: str | Path = ".") -> tuple[Path, Path]:
    """Write NAME.csv, most of its labels left empty, and NAME-answers.csv, the same with all; neither may be there."""
    if name not in SAMPLES:
        raise StakesError(f"there is no sample {name!r}; there are {', '.join(SAMPLES)}")
    sample, where = SAMPLES[name], Path(folder)
    table, answers = where / f"{name}.csv", where / f"{name}-answers.csv"
    for path in (table, answers):
        checked_output(path)
    columns = sample.columns()
    labels = columns[sample.target]
    shown = {**columns, sample.target: labels[: sample.labelled] + [None] * (len(labels) - sample.labelled)}
    write_csv(table, list(shown), zip(*shown.values(), strict=True))
    write_csv(answers, list(columns), zip(*columns.values(), strict=True))
    return table, answers


def _prices() -> Columns:
    """300 flats, their prices in thousands; made up, with more noise where prices are high."""
    rng = np.random.default_rng(7)
    size = 300
    area = rng.gamma(9.0, 8.0, size) + 18.0
    year = rng.integers(1900, 2024, size)
    district = rng.choice(["harbour", "hill", "market", "station"], size, p=[0.15, 0.2, 0.35, 0.3])
    floor, balcony = rng.integers(0, 8, size), rng.random(size) < 0.4
    level = {"harbour": 0.35, "hill": 0.2, "market": 0.0, "station": -0.15}
    quality = np.array([level[each] for each in district]) + 0.002 * (year - 1960) + 0.08 * balcony + 0.015 * floor
    price = 3.1 * area * np.exp(quality + 0.12 * rng.standard_normal(size))
    return {
        "flat": [f"flat-{place:03d}" for place in range(1, size + 1)],
        "area": [round(float(each), 1) for each in area],
        "year": year.tolist(),
        "district": district.tolist(),
        "floor": floor.tolist(),
        "balcony": ["yes" if each else "no" for each in balcony],
        "price": [round(float(each), 1) for each in price],
    }


def _tumours() -> Columns:
    """Breast cancer in Wisconsin, with 40 of its malignant tumours, so that they are rare."""
    from sklearn.datasets import load_breast_cancer

    data, rng = load_breast_cancer(), np.random.default_rng(1)
    malignant, benign = (np.flatnonzero(data.target == each) for each in (0, 1))
    rows = rng.permutation(np.concatenate([rng.choice(malignant, 40, replace=False), benign]))
    names = [name.replace(" ", "_") for name in data.feature_names]
    features = {name: data.data[rows, place].tolist() for place, name in enumerate(names)}
    diagnosis = [str(data.target_names[data.target[row]]) for row in rows]
    return {"patient": [f"P{row:04d}" for row in rows], **features, "diagnosis": diagnosis}


def _progression() -> Columns:
    """Diabetes: how far the disease has gone a year later, in the units of the study."""
    from sklearn.datasets import load_diabetes

    data, rng = load_diabetes(scaled=False), np.random.default_rng(2)
    rows = rng.permutation(len(data.target))
    features = {name: data.data[rows, place].tolist() for place, name in enumerate(data.feature_names)}
    patients = [f"D{place:03d}" for place in range(1, len(rows) + 1)]
    return {"patient": patients, **features, "progression": data.target[rows].tolist()}


SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("prices", "300 flats and what they sold for (made up)", "flat", "price", 25, _prices),
        Sample("tumours", "397 tumours, 40 of them malignant (real)", "patient", "diagnosis", 40, _tumours),
        Sample("progression", "442 patients with diabetes (real)", "patient", "progression", 30, _progression),
    )
}


@dataclass(frozen=True)
class DemoFiles:
    """What the demo leaves in its folder."""

    table: Path
    answers: Path
    """The same table with every label, as if all patients had been followed up."""
    campaign: Path
    curve: Path
    report: Path


@dataclass(frozen=True)
class DemoSize:
    """How much the demo does."""

    rounds: int = 4
    batch: int = 5
    runs: int = 24
    labels: int = 10


def run_demo(
    folder: str | os.PathLike[str], *, say: Say, random_state: int = 0, size: DemoSize | None = None
) -> DemoFiles:
    """Run the example of a clinic in a folder that is new or empty; each step names the command that does the same."""
    check_canvas()
    sizes, files = size or DemoSize(), _files(_new_folder(Path(folder)))
    say(f"{_STORY}\n\n$ stakes sample progression")
    write_sample("progression", files.table.parent)
    brief = Brief(TARGET, LOSS, id_column=IDS, random_state=random_state, **MONEY)
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
        raise StakesError(f"{folder} is there and is not empty; nothing in it was touched. Give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _files(folder: Path) -> DemoFiles:
    names = ("progression.csv", "progression-answers.csv", "campaign.stakes", "curve.png", "report.html")
    return DemoFiles(*(folder / name for name in names))


def _suggest(files: DemoFiles, brief: Brief, say: Say) -> None:
    from stakes.tabular import suggest

    say(f"\n$ stakes suggest progression.csv {_ASKED} {_MONEY} -n 3")
    ranking, outlook = suggest(read_worksheet(files.table, brief), 3)
    for row, reason in zip(ranking.row_ids, ranking.reasons, strict=True):
        say(f"  {row}: worth {number(reason.worth or 0.0)} a decision")
    say(str(outlook))


def _begin(files: DemoFiles, brief: Brief, say: Say) -> Campaign:
    say(f"\n$ stakes init campaign.stakes progression.csv {_ASKED} {_MONEY}")
    rest = {"id_column": IDS, "random_state": brief.random_state, **MONEY}
    return Campaign.create(files.campaign, files.table, TARGET, LOSS, **rest)


def _ask_and_tell(campaign: Campaign, truths: Mapping[str, str], batch: int, say: Say) -> None:
    asked = campaign.ask(batch, who="clinic")
    say(f"\n$ stakes ask campaign.stakes -n {batch}\n  {', '.join(asked.row_ids)}")
    for row in asked.row_ids:
        campaign.tell(row, truths[row], who="clinic")
        say(f"$ stakes tell campaign.stakes {row} {truths[row]}")


def _simulate(files: DemoFiles, brief: Brief, sizes: DemoSize, say: Say) -> None:
    """Whether the loss-driven choice would have helped, now that all answers are known."""
    from stakes.cli.simulate import simulated

    options = f"--model bayesian-ridge -n {sizes.labels} --runs {sizes.runs} --plot curve.png"
    say("\nWould a random choice have done as well? In a demo all answers are known, so it can be tried.")
    say(f"$ stakes simulate progression-answers.csv {_ASKED} {options}")
    found = simulated(read_worksheet(files.answers, brief), n=sizes.labels, runs=sizes.runs)
    found.save_plots(files.curve)
    say(str(found))
    say("One table and one setting prove little; try your own with stakes simulate.")


def _report(campaign: Campaign, files: DemoFiles, say: Say) -> None:
    say(f"\n$ stakes report campaign.stakes -o report.html\n{campaign.status().advice}")
    write_report(campaign, files.report)
    say(f"\nOpen {files.report} in a browser.")


@click.command("demo")
@click.argument("folder", default="stakes-demo")
@json_option
def demo_command(folder: str, as_json: bool) -> None:
    """Run the whole example on real data in FOLDER, which must be new or empty; needs no network."""
    files = run_demo(folder, say=(lambda text: None) if as_json else click.echo)
    as_json_or(as_json, {name: str(path) for name, path in vars(files).items()}, [])


@click.command("sample")
@click.argument("name", type=click.Choice(list(SAMPLES)))
@click.argument("folder", default=".")
@json_option
def sample_command(name: str, folder: str, as_json: bool) -> None:
    """Write NAME.csv, a table in which most labels are still to be bought, and NAME-answers.csv with all of them."""
    table, answers = write_sample(name, folder)
    text = (
        f"{SAMPLES[name].what}: {table}, of which {SAMPLES[name].labelled} have a label; all labels are in {answers}."
    )
    as_json_or(as_json, {"table": str(table), "answers": str(answers)}, [text])
