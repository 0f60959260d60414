"""`stakes report`: one HTML file with pictures."""

from __future__ import annotations

import click

from stakes.campaign import Campaign
from stakes.cli.options import force_option, json_option, table_moved, trust_option
from stakes.cli.output import as_json_or, waiting


@click.command("report")
@click.argument("campaign")
@click.option("-o", "--output", default="report.html", show_default=True, help="The file to write.")
@force_option
@table_moved
@trust_option
@json_option
def report_command(campaign: str, output: str, force: bool, table: str | None, trust: bool, as_json: bool) -> None:
    """Write a report on CAMPAIGN: one HTML file with pictures, that needs no network.

    The learning curve fits the model up to 48 times, with 8 numbers of labels and five folds of each: half a minute or
    more. A terminal shows how far it is. A report that was written before is replaced; any other file that is there is
    left as it is without --force.
    """
    from stakes.report import write_report

    with Campaign.open(campaign, table, trust=trust) as opened, waiting("reading the table") as progress:
        write_report(opened, output, overwrite=force, progress=progress)
    as_json_or(as_json, {"report": output}, [f"Wrote {output}; open it in a browser."])
