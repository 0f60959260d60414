"""`stakes demo` and `stakes sample`: for those who want to see before they believe."""

from __future__ import annotations

import click

from stakes.cli.options import json_option
from stakes.cli.show import as_json_or
from stakes.samples import SAMPLES, write_sample


@click.command("demo")
@click.argument("folder", default="stakes-demo")
@json_option
def demo_command(folder: str, as_json: bool) -> None:
    """Tell the whole story with real data in FOLDER, which must be new or empty; needs no network."""
    from stakes.demo import run_demo

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
