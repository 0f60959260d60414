"""`stakes serve-label-studio`: a campaign as a machine-learning backend of Label Studio."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

import click

from stakes._utils.text import counted, printable
from stakes.cli.options import json_option, table_moved, trust_option
from stakes.cli.output import json_text
from stakes.exceptions import StakesError

_TOKEN, _KEY = "STAKES_LABEL_STUDIO_TOKEN", "LABEL_STUDIO_API_KEY"  # variables


@click.command("serve-label-studio")
@click.argument("campaign")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; others than this need a token.")
@click.option("--port", type=click.IntRange(0, 65535), default=9090, show_default=True, help="Where to listen.")
@click.option("--guess", is_flag=True, help="Show people what the model would answer.")
@click.option("--label-studio", "url", help=f"Its address: every new order is written there, with the key in {_KEY}.")
@click.option("--project", type=click.IntRange(min=1), help="With --label-studio: the number of the project.")
@click.option("--certificate", type=click.Path(exists=True, dir_okay=False), help="Of TLS, a PEM file.")
@click.option("--key", "private_key", type=click.Path(exists=True, dir_okay=False), help="Of TLS, a PEM file.")
@table_moved
@trust_option
@json_option
def serve_label_studio_command(
    campaign: str,
    host: str,
    port: int,
    guess: bool,
    url: str | None,
    project: int | None,
    certificate: str | None,
    private_key: str | None,
    table: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Keep a project of Label Studio in the order of CAMPAIGN, and take its labels the moment they are made.

    Connect it in the project under Settings, Model. Each prediction has the rank of its task as score, 0 for the first.
    An annotation that is made, changed or deleted there is a label that is recorded, replaced or withdrawn here.

    With --label-studio and --project every new order is written to the project; without, Label Studio asks for it by
    its action "Retrieve predictions". Requests need the token in STAKES_LABEL_STUDIO_TOKEN, if it is set.
    """
    if (url is None) != (project is None) or (certificate is None) != (private_key is None):
        raise click.UsageError("--label-studio goes with --project, and --certificate with --key.")
    say, complain = _teller(as_json, err=False), _teller(as_json, err=True)
    token, key = os.environ.get(_TOKEN) or None, os.environ.get(_KEY) or None
    if url is not None and not key:
        raise StakesError(f"--label-studio needs an access token of Label Studio, in the environment variable {_KEY}")

    from stakes.exchange.label_studio_api import LabelStudioProject
    from stakes.exchange.label_studio_server import check_token, is_local, label_studio_app
    from stakes.exchange.live import LiveCampaign
    from stakes.exchange.tasks import TaskList

    local = is_local(host)
    check_token(token, local)
    there = None if url is None or project is None else LabelStudioProject(url, project, key or "")
    if there is not None:
        say(f"Orders are written to project {project}, {there.check()!r}.")

    def ranked(found: TaskList) -> None:
        say(f"{found.version}: {counted(len(found.tasks), 'row')} to label.")
        try:
            if there is not None:
                say(f"{found.version}: {counted(there.push(found), 'task')} of the project in this order.")
        except StakesError as error:
            complain(f"The order was not written to the project: {error}")

    live = LiveCampaign(campaign, table=table, trust=trust, guess=guess, report=complain, ranked=ranked)
    try:
        app = label_studio_app(live, token=token, local=local, report=complain)
        say(f"{campaign} is a model for Label Studio at {_address(host, port, token, certificate)}: connect it there")
        say("under Settings, Model. Ctrl-C ends it; what it has answered is on the disk.")
        if not local and certificate is None:
            complain("LABELS AND THE TOKEN GO OVER THE NETWORK UNENCRYPTED: give --certificate and --key.")
        _serve(app, host, port, certificate, private_key)
    finally:
        live.close()


def _serve(app: object, host: str, port: int, certificate: str | None, private_key: str | None) -> None:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from stakes.label.guards import patient

    uvicorn.run(
        app,  # type: ignore[arg-type]
        http=patient(H11Protocol),  # type: ignore[arg-type]
        ws="none",
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=100,
        timeout_keep_alive=5,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
    )


def _address(host: str, port: int, token: str | None, certificate: str | None) -> str:
    return f"http{'s' * (certificate is not None)}://{'stakes:TOKEN@' * (token is not None)}{host}:{port}"


def _teller(as_json: bool, *, err: bool) -> Callable[[str], None]:
    """What prints a sentence: a line, or an object of JSON in a line."""

    def tell(sentence: str) -> None:
        line = f"{datetime.now():%H:%M:%S} {printable(sentence)}" if err else printable(sentence)
        click.echo(json_text({"error" if err else "message": sentence}) if as_json else line, err=err)

    return tell
