"""`stakes losses`, `models` and `completion`: what there is."""

from __future__ import annotations

from dataclasses import asdict

import click
from click.shell_completion import get_completion_class

from stakes.cli.options import json_option
from stakes.cli.output import as_json_or, wrapped
from stakes.tabular import LOSSES, MODELS
from stakes.tabular.loss_specs import refuse_unknown


@click.command("losses")
@click.argument("name", required=False)
@json_option
def losses_command(name: str | None, as_json: bool) -> None:
    """The losses by name, what each is for, and its options; or one of them by NAME."""
    refuse_unknown("loss", [] if name is None else [name], LOSSES)
    chosen = [entry for entry in LOSSES.values() if name in (None, entry.name)]
    lines: list[str] = []
    for entry in chosen:
        lines += [f"{entry.name}  ({entry.target})", *wrapped(entry.purpose, "    ")]
        for option in entry.options:
            default = "must be given" if option.default is None else f"{option.default:g} if not given"
            text = f"--{option.name.replace('_', '-')}: {option.kind}, {default}. {option.purpose}"
            lines += wrapped(text, "      ", "    ")
        if entry.takes is not None:
            lines.append(f"    takes --{entry.takes.replace(' ', '-')}")
    own = "A loss of your own: --loss module:Name, with --loss-option NAME=VALUE."
    as_json_or(as_json, [asdict(entry) for entry in chosen], [*lines, "", own] if name is None else lines)


@click.command("models")
@json_option
def models_command(as_json: bool) -> None:
    """The models by name, and what each is good for."""
    lines: list[str] = []
    for entry in MODELS.values():
        targets = " and ".join({"real": "numbers", "classes": "classes"}[task] for task in entry.recipes)
        lines += [f"{entry.name}  ({targets})", *wrapped(entry.purpose, "    ")]
    own = "Any scikit-learn estimator: --model module:Name, with --model-option NAME=VALUE."
    as_json_or(as_json, [asdict(entry) for entry in MODELS.values()], [*lines, "", own])


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion_command(shell: str, as_json: bool) -> None:
    """Print the script that completes commands in SHELL; in bash: eval "$(stakes completion bash)"."""
    from stakes.cli.commands import cli

    kind = get_completion_class(shell)
    assert kind is not None  # click knows the three
    script = kind(cli, {}, "stakes", "_STAKES_COMPLETE").source()
    as_json_or(as_json, {"shell": shell, "script": script}, script.split("\n"))
