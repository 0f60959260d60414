"""`stakes label`: a page to label on."""

from __future__ import annotations

import socket
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from stakes.campaign import Campaign
from stakes.cli.options import json_option, table_moved, trust_option
from stakes.cli.output import as_json_or
from stakes.exceptions import StakesError

_PORT = 8577
_LOCAL = ("127.0.0.1", "::1", "localhost")
_ANY = ("0.0.0.0", "::")
_DOCUMENTATION = ("192.0.2.1", 9)  # belongs to nobody
_MINUTE = 60.0
_WARNING = (
    "Warning: other machines can reach the page at {}, and what is sent is not encrypted: whoever can listen there can "
    "read it, and label in your name. Use --certificate and --key, or a network that you trust."
)


@click.command("label")
@click.argument("campaign")
@click.option("--media", metavar="FOLDER", help="Images and texts that cells of the table name.")
@click.option("--unit", default="", help="Of a target that is a number, such as EUR.")
@click.option(
    "--opinions", type=click.IntRange(1, 20), default=1, show_default=True, help="People who label some rows."
)
@click.option(
    "--share", type=click.FloatRange(0, 1), default=0.2, show_default=True, help="The share of rows that several label."
)
@click.option(
    "--annotator", "prices", multiple=True, metavar="NAME:PRICE",
    help="What labels of a person cost, as a multiple of what a label costs; can be repeated.",
)  # fmt: skip
@click.option(
    "--annotator-command", "command", metavar="COMMAND",
    help="A program that labels rows, too: JSON lines in and out (see the tutorial). Never taken from a campaign.",
)  # fmt: skip
@click.option("--command-name", default="command", show_default=True, help="What its labels go by.")
@click.option("--command-most", type=click.IntRange(1), default=100, show_default=True, help="How many rows it labels.")
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True,
    help="For how long a person has a row to themselves.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at; others can be reached.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="0 for any that is free.")
@click.option("--name", "names", multiple=True, help="A name that the server is reached by; can be repeated.")
@click.option("--certificate", metavar="FILE", help="A certificate, for https.")
@click.option("--key", "certificate_key", metavar="FILE", help="Its key.")
@click.option("--new-token", is_flag=True, help="Let nobody in who was let in before.")
@click.option("--browser/--no-browser", "browse", default=True, show_default=True, help="Open the page.")
@table_moved
@trust_option
@json_option
def label_command(
    campaign: str, media: str | None, unit: str, opinions: int, share: float, prices: tuple[str, ...], minutes: float,
    command: str | None, command_name: str, command_most: int,
    host: str, port: int, names: tuple[str, ...], certificate: str | None, certificate_key: str | None,
    new_token: bool, browse: bool, table: str | None, trust: bool, as_json: bool,
) -> None:  # fmt: skip
    """Label rows of CAMPAIGN on a page in the browser, alone or with others.

    The rows that are worth most come first, and the model learns from each label while you go on.
    """
    serving = _serving_modules()
    from stakes.label.command import CommandAnnotator
    from stakes.label.flow import Desk, Rules
    from stakes.label.guards import host_names
    from stakes.label.media import Media
    from stakes.label.server import Label
    from stakes.label.session import Secret
    from stakes.label.worker import Worker

    path = Path(campaign)
    with Campaign.open(path, table, trust=trust) as opened:
        opened.check_trust()
        if prices:
            opened.set_annotators(dict(map(_price, prices)))
        place = opened.table
    program = None if command is None else CommandAnnotator(command, command_name, command_most)
    several = max(opinions, 1 if program is None else 2)  # people tell how reliable a program is
    rules = Rules(minutes * _MINUTE, several, share, None if media is None else Media.of(media), unit, program)

    def desk() -> Desk:
        worker = Worker(path, place, trust)
        worker.start()
        return Desk(Campaign.open(path, trust=trust), rules, worker)

    listening = _listening(host, port)
    secret, scheme = Secret.of(path, renew=new_token), "http" if certificate is None else "https"
    hosts = _hosts(host, listening.getsockname()[1], names, scheme)
    label, address = Label(desk, secret, hosts, scheme), f"{scheme}://{hosts[0]}/?token={secret.token}"
    if host not in _LOCAL and certificate is None:
        click.echo(_WARNING.format(host), err=True)
    kept = "Whoever has this address can label. Ctrl+C ends the server; every label is kept."
    printed = [f"Label at {address}", kept]
    if (outside := _address_for_others(host)) is not None:
        reached = host_names(outside, listening.getsockname()[1], scheme)[0]
        printed.insert(1, f"      or {scheme}://{reached}/?token={secret.token}")
    as_json_or(as_json, {"address": address}, printed)
    sys.stdout.flush()
    if browse:
        webbrowser.open(address)
    _serve(serving, label.app, listening, certificate, certificate_key, path)


def _serve(
    serving: Any, app: Any, listening: socket.socket, certificate: str | None, key: str | None, path: Path
) -> None:
    """Answer requests until the process is asked to end."""
    from stakes.label.guards import patient

    config = serving.Config(
        app, http=patient(serving.protocols.http.h11_impl.H11Protocol), ws="none", log_level="warning",
        access_log=False, server_header=False, date_header=False, proxy_headers=False, ssl_certfile=certificate,
        ssl_keyfile=key, lifespan="on", timeout_keep_alive=30, limit_concurrency=200,
        h11_max_incomplete_event_size=16_384,
    )  # fmt: skip
    server = serving.Server(config)
    server.run(sockets=[listening])
    if not server.started:
        raise StakesError(f"{path} could not be opened for labelling; stakes status {path} says more")


def _serving_modules() -> Any:
    """uvicorn, or what to install."""
    try:
        import starlette  # noqa: F401 (is there)
        import uvicorn
        import uvicorn.protocols.http.h11_impl
    except ImportError as error:
        raise ImportError("stakes label needs starlette and uvicorn: pip install 'stakes[label]'") from error
    return uvicorn


def _price(given: str) -> tuple[str, float]:
    """A name and a price, from NAME:PRICE."""
    name, _, price = given.rpartition(":")
    try:
        if name.strip():
            return name.strip(), float(price)
    except ValueError:
        pass
    raise StakesError(f"--annotator takes NAME:PRICE, such as expert:5, not {given!r}")


def _listening(host: str, port: int) -> socket.socket:
    """A socket at the address; where the usual port is taken, at any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port, 0) if port == _PORT else (port,):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, wanted))
            made.listen(128)  # from now on: whoever comes before all is read waits for a moment
        except OSError as error:
            made.close()
            why = error
            continue
        return made
    raise StakesError(f"nothing can listen at {host}, port {port} ({why.strerror or why}); give another --port")


def _hosts(host: str, port: int, names: tuple[str, ...], scheme: str = "http") -> list[str]:
    """The names with ports that the server goes by, the one that is printed first."""
    from stakes.label.guards import host_names

    local = ["127.0.0.1", "localhost", "[::1]"] if host in (*_LOCAL, *_ANY) else []
    own = [f"[{host}]" if ":" in host else host] if host not in (*_ANY, "localhost") else []
    if host in _ANY:
        own = [socket.gethostname()]
    return [name for each in dict.fromkeys([*names, *own, *local]) for name in host_names(each, port, scheme)]


def _address_for_others(host: str) -> str | None:
    """The address of this machine in its network, for a telephone that does not know its name."""
    if host not in _ANY:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(_DOCUMENTATION)  # sends nothing: it only looks up which way it would go
        except OSError:
            return None
        found = str(asked.getsockname()[0])
    return None if found.startswith("127.") else found
