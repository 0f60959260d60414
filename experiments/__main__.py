"""The paper's experiments, and a report that puts what was printed beside them: `python -m experiments` in a checkout.

A run that was stopped goes on where it was, from its store. Summaries go to the folder of results, from which
`python -m experiments report` makes the report again without running anything. `python -m experiments labels_saved` is
a study of its own, with options of its own: how many labels beliefs and strategies save on real tables; so is
`python -m experiments audits`: whether audits tell what a model loses, `python -m experiments promises`: whether
what `outlook` promises comes, `python -m experiments stopping`: what following its advice costs, `python -m experiments
choices`: other ways to choose and to believe beside the default, `python -m experiments annotators`: what it costs
to reach a loss with annotators who err, `python -m experiments continuous`: candidates anywhere in a cube,
`python -m experiments stream`: rows that come one by one against a pool, `python -m experiments densities`: how
probable what came was under the default for numbers, and `python -m experiments ordinal`: whether a model that knows
the order of classes saves labels.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments import annotators, audits, choices, densities, ordinal, stopping, stream
from experiments.datasets import DatasetError
from experiments.labels_saved import command as labels_saved
from experiments.paper import classification, linex, regression, table2
from experiments.paper.blocks import html
from experiments.paper.classification import Classification
from experiments.paper.figures import draw, drawn
from experiments.paper.forests import Forest, extra_versions, forest
from experiments.paper.report import content, report
from experiments.paper.results import read, write
from experiments.paper.study import Place, Study
from experiments.paper.summary import summarised
from experiments.promises import command as promises

STUDIES: dict[str, tuple[Study, ...]] = {
    "table2": table2.STUDIES,
    "regression": regression.STUDIES,
    "linex": linex.STUDIES,
    "classification": classification.STUDIES,
}
_QUICK_RUNS = 2


def main(arguments: Sequence[str] | None = None) -> None:
    given_arguments = list(sys.argv[1:] if arguments is None else arguments)
    if given_arguments[:1] == ["labels_saved"]:
        labels_saved.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["audits"]:
        audits.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["annotators"]:
        annotators.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["choices"]:
        choices.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["promises"]:
        promises.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["continuous"]:
        from experiments import continuous  # wants BoTorch

        continuous.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["stopping"]:
        stopping.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["densities"]:
        densities.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["stream"]:
        stream.main(given_arguments[1:])
        return
    if given_arguments[:1] == ["ordinal"]:
        ordinal.main(given_arguments[1:])
        return
    given = _parser().parse_args(given_arguments)
    command = shlex.join(["python", "-m", "experiments", *given_arguments])
    results = given.results or given.store / "results"
    for study in _asked_for(given):
        try:
            _carry_out(study, given, command, results)
        except DatasetError as absent:
            print(f"left out: {study.name}: {absent}", file=sys.stderr)
    if given.what == "figures":
        print(*draw(read(results), given.store / "figures"), sep="\n")
        return
    if results.is_dir():
        _write_report(results)
    print(report(read(results)))


def _write_report(results: Path) -> None:
    """Beside the summaries: Markdown, and a page with the pictures, which go without saying where none can be drawn."""
    summaries = read(results)
    (results / "report.md").write_text(report(summaries))
    try:
        pictures = drawn(summaries)
    except ImportError:
        print("report.html has no pictures: they need matplotlib, pip install 'stakes[plot]'", file=sys.stderr)
        pictures = {}
    (results / "report.html").write_text(html(content(summaries), pictures))


def chosen(what: str, preset: str | None, grower: Forest = "scikit-learn") -> list[Study]:
    """The studies of one part of the paper, or of all, or a single one; in one preset or both."""
    everything = [study for each in STUDIES.values() for study in each]
    asked = [s for s in everything if what in ("all", s.study, s.name) and preset in (None, s.preset)]
    return [replace(s, forest=grower) if isinstance(s, Classification) else s for s in asked]


def _asked_for(given: argparse.Namespace) -> list[Study]:
    """The studies that the arguments say; refused where they ask for a forest that is not there, or for no use."""
    studies = chosen(given.what, given.preset, given.forest)
    if given.forest == "scikit-learn":
        return studies
    if not any(isinstance(each, Classification) for each in studies):
        sys.exit(f"--forest is for classification, the studies with a forest; {given.what} has none. Leave it out.")
    try:
        forest(given.forest, 1)
    except ImportError as absent:
        sys.exit(str(absent))
    return studies


def _carry_out(study: Study, given: argparse.Namespace, command: str, results: Path) -> None:
    """Run one study, and keep its summary."""
    store = given.store / ("quick" if given.quick else "full")
    runs = given.runs or (_QUICK_RUNS if given.quick else study.runs)
    study = study.shortened() if given.quick else study
    print(f"{study.name}: {runs} runs", file=sys.stderr)
    start = time.perf_counter()
    found = study.simulate(runs, Place(given.data, store, given.jobs, progress=True))
    about = {
        "command": command,
        "runs": runs,
        "labels": found.n,
        "seconds": round(time.perf_counter() - start, 1),
        "fit_seconds": round(float(found.fit_seconds.sum()), 1),
        "score_seconds": round(float(found.score_seconds.sum()), 1),
        "jobs": given.jobs,
        "settings": repr(study),
        "data": {name: found.settings[name] for name in ("X", "y", "n_initial", "n_contexts", "n_test")},
        "versions": {**found.versions, **extra_versions(given.forest)},
    }
    write(summarised(study, found, about), results)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    folder = os.environ.get("STAKES_DATA")
    names = [study.name for each in STUDIES.values() for study in each]
    parser.add_argument(
        "what",
        choices=[*STUDIES, "all", "figures", "report", *names],
        metavar="what",
        help=f"{', '.join(STUDIES)}, all, figures, report, or one study: {', '.join(names)}",
    )
    parser.add_argument("--runs", type=int, help="runs of each study; by default as many as the paper has")
    parser.add_argument("--preset", choices=["published", "text"], help="whose settings; by default both")
    parser.add_argument(
        "--forest",
        choices=["scikit-learn", "intelex", "compiled"],
        default="scikit-learn",
        help="who grows the trees of classification studies; intelex is several times quicker, compiled loops more",
    )
    parser.add_argument("--quick", action="store_true", help="2 runs of a few labels, in about two minutes for all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--store", type=Path, default=Path("build/paper"), help="folder of finished runs")
    parser.add_argument("--results", type=Path, help="folder of summaries; by default `results` in the store")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None, help="folder of data files")
    return parser


if __name__ == "__main__":
    main()
