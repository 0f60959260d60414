"""The commands of `stakes`, and exit codes. Commands are imported when they are called, so that help is there at once.

0    Done, also where there is nothing to do.
1    Refused: the input cannot be used (`StakesError`), and nothing was changed; a class of your own raised an exception
     (the message names it); a file cannot be read or written (`OSError`), or memory is short (`MemoryError`); an extra
     is not installed (`ImportError`).
2    The command line was wrong.
3    A bug in stakes: any other exception.
130  Interrupted, 143 terminated, and 129 where the terminal is gone; what was recorded is kept. See `stakes.cli.main`.

With STAKES_DEBUG=1 the traceback is printed before the message.
"""

from __future__ import annotations

import io
import os
import traceback
from importlib import import_module

import click

from stakes import __version__
from stakes._utils.text import printable
from stakes.cli.output import json_text
from stakes.exceptions import StakesError

_COMMANDS = {
    "suggest": ("suggest", "Which rows of a table to label next. Keeps nothing."),
    "init": ("init", "Begin a campaign: a file that remembers rows, labels and who is at work on what."),
    "ask": ("ask", "Hand out the rows to label next, to nobody else for a while."),
    "label": ("label", "Label on a page in the browser, alone or with others."),
    "tell": ("tell", "Record the label of a row."),
    "import": ("tell", "Record the labels of a filled-in CSV."),
    "skip": ("rows", "Never ask for rows again, until they are released."),
    "release": ("rows", "Give rows that are asked for, or skipped, back to the pool."),
    "withdraw": ("rows", "Take labels back; their history is kept."),
    "status": ("status", "Where a campaign stands, what the next labels are worth, and whether to go on."),
    "set": ("set", "Change decisions, the cost of a label or the budget of a campaign that runs."),
    "audit": ("audit", "Draw rows to test the model on: what does it lose today?"),
    "report": ("report", "Write a report with pictures, one HTML file."),
    "export": ("export", "Write a campaign as a CSV, or its rows for Label Studio, Argilla or doccano."),
    "serve-label-studio": ("serve_label_studio", "Keep a project of Label Studio in our order; labels come back live."),
    "simulate": ("simulate", "Try on labelled rows whether choosing by your loss helps."),
    "elicit": ("elicit", "Which loss is mine? A few questions in plain words."),
    "losses": ("catalogue", "The losses by name, what each is for, and its options."),
    "models": ("catalogue", "The models by name, and what each is good for."),
    "doctor": ("doctor", "Check the installation, and a campaign file."),
    "demo": ("demo", "A whole example on data of real patients, in a folder of its own, in a minute."),
    "sample": ("demo", "Write a table to try things on."),
    "completion": ("catalogue", "Print the script that completes commands in your shell."),
}
_EPILOG = (
    "Exit codes: 0 done, 1 refused (nothing was changed), 2 wrong usage, 3 a bug in stakes, 130 interrupted, 143 "
    "terminated. Every command has --help and --json."
)


class Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are met."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = import_module(f"stakes.cli.{_COMMANDS[cmd_name][0]}"), cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A line for each, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, what) for name, (_, what) in _COMMANDS.items()])


@click.command(cls=Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="stakes")
def cli() -> None:
    """Which label to buy next so that your own loss falls fastest, what it is worth, and when to stop.

    Begin with `stakes suggest TABLE`: it looks at the table, and asks for what it does not say. Rows whose target is
    empty are the pool, the others are the labels.
    """


def run(arguments: list[str]) -> int:
    """Run a command line; its exit code."""
    as_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        code = cli.main(arguments, prog_name="stakes", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.ClickException as error:
        return _usage(error, as_json)
    except (KeyboardInterrupt, click.Abort) as error:
        message = str(error) or str(error.__cause__ or "")  # click puts an Abort in place of an interrupt
        _complain(message or "interrupted; what was recorded is kept", as_json)
        return 130
    except Exception as error:
        if os.environ.get("STAKES_DEBUG"):
            traceback.print_exc()
        message, code = explained_error(error)
        _complain(message, as_json)
        return code


def _usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        _complain(error.format_message(), as_json)
    else:
        shown = io.StringIO()
        error.show(shown)
        click.echo("\n".join(map(printable, shown.getvalue().split("\n"))), err=True, nl=False)
    return error.exit_code


def explained_error(error: Exception) -> tuple[str, int]:
    """What to say of an exception, and the exit code."""
    lacking = isinstance(error, ImportError) and "pip install" in str(error)  # an extra, and how to get it
    if isinstance(error, StakesError | FloatingPointError) or lacking:
        return str(error), 1
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror or error} ({type(error).__name__}, from the system)", 1
    if isinstance(error, MemoryError):
        more = f" ({error})" if str(error) else ""
        return f"out of memory{more}; take fewer rows, or a machine with more memory", 1
    return (
        f"this is a bug in stakes, not in what you did: {type(error).__name__}: {error}. Please report it, with the "
        "command, what `stakes doctor` prints, and the traceback, which STAKES_DEBUG=1 shows.",
        3,
    )


def _complain(message: str, as_json: bool) -> None:
    shown = json_text({"error": message}) if as_json else "\n".join(map(printable, f"stakes: {message}".split("\n")))
    click.echo(shown, err=True)
