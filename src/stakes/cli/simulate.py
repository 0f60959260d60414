"""`stakes simulate`: would it have helped?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stakes.cli.options import (
    brief_from,
    files_read,
    force_option,
    json_option,
    loss_options,
    model_options,
    table_options,
)
from stakes.cli.output import as_json_or, wrapped
from stakes.cli.questions import complete
from stakes.tabular import Worksheet, read_worksheet

if TYPE_CHECKING:
    from stakes.simulation import Simulation


@click.command("simulate")
@click.argument("table")
@table_options
@loss_options
@model_options
@click.option("-n", "n", type=click.IntRange(min=1), default=30, show_default=True, help="Labels to buy in a run.")
@click.option(
    "--runs", type=click.IntRange(min=1), default=10, show_default=True, help="How many runs, each with its own split."
)
@click.option(
    "--initial", type=click.IntRange(min=1), help="Labels to begin with; 10, or 2 for each class, if not given."
)
@click.option("--strategy", multiple=True, help="Instead of random, plain and loss; can be repeated.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 for one a core.")
@click.option("--store", help="A folder that keeps finished loops, so that a run can be taken up again.")
@click.option("--plot", help="Draw the learning curves, and what was bought, into this PNG, SVG or PDF.")
@force_option
@json_option
def simulate_command(
    table: str,
    n: int,
    runs: int,
    initial: int | None,
    strategy: tuple[str, ...],
    jobs: int,
    store: str | None,
    plot: str | None,
    force: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Whether choosing labels by your loss helps on the rows of TABLE that have a label, in repeated loops.

    Compared with choosing at random and by the plain loss; differences are paired, with 95% intervals.
    """
    if plot is not None:
        _check_plot(Path(plot), files_read(table, given), force)
    complete(table, given, as_json=as_json, gaps=False)
    brief, notes = brief_from(given, table)
    sheet = read_worksheet(table, brief)
    shown = sys.stderr.isatty() or not as_json
    chosen = {"n": n, "runs": runs, "n_initial": initial, "strategies": strategy or None}
    found = simulated(sheet, n_jobs=jobs, store=store, progress=shown, **chosen)
    if plot is not None:
        found.save_plots(plot, overwrite=force)
    lines = [*str(found).splitlines()[:-1], "", *wrapped(found.verdict())]
    lines += [line for sentence in notes for line in wrapped(sentence)]
    lines += [f"Wrote {plot}."] if plot else []
    as_json_or(as_json, {"verdict": found.verdict(), **found.to_dict(), "notes": list(notes)}, lines)


def _check_plot(path: Path, inputs: list[str], force: bool) -> None:
    """Refuse before the work what would be refused after it."""
    from stakes.report.figures import check_canvas
    from stakes.simulation.plots import check_picture

    check_canvas()
    check_picture(path, inputs=inputs, overwrite=force)


def simulated(sheet: Worksheet, **settings: Any) -> Simulation:
    """The simulation on the rows that have a label."""
    from stakes.simulation import simulate
    from stakes.tabular import build_problem
    from stakes.tabular.suggestions import explained

    model, loss, features, targets, classes = build_problem(sheet)
    given = {name: value for name, value in settings.items() if value is not None}
    with explained(sheet, len(targets)):
        return simulate(model, loss, features, targets, classes=classes, random_state=sheet.brief.random_state, **given)
