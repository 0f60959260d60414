"""`stakes demo`: the whole story in a minute."""

from __future__ import annotations

import click

from stakes.cli.options import json_option
from stakes.cli.show import as_json_or


@click.command("demo")
@click.argument("folder", default="stakes-demo")
@json_option
def demo_command(folder: str, as_json: bool) -> None:
    """Tell the whole story with real data in FOLDER, which must be new or empty; needs no network."""
    from stakes.demo import run_demo

    files = run_demo(folder, say=(lambda text: None) if as_json else click.echo)
    as_json_or(as_json, {name: str(path) for name, path in vars(files).items()}, [])
