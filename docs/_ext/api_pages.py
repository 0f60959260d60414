"""Pages of the reference: one for each public module with a table of its names, one for each name.

What is public is what a module lists in `__all__`. A name that `import stakes` has, too, is described there, and
the table of its module leads to that page.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from pathlib import Path
from typing import Any

MODULES = {  # in the order of the sidebar; a line for each, as the reference has it
    "stakes": "Losses, beliefs, models and what is asked of them",
    "stakes.losses": "What being wrong costs",
    "stakes.beliefs": "What is believed of labels and targets",
    "stakes.models": "From a fitted model to a belief",
    "stakes.models.networks": "Networks of PyTorch",
    "stakes.acquisition": "What labels are worth",
    "stakes.ranking": "From a fitted model to rows, reasons and advice",
    "stakes.stream": "Rows that come one by one",
    "stakes.tabular": "A table with a target",
    "stakes.files": "Files of tables",
    "stakes.campaign": "Ask and tell, kept in one file",
    "stakes.exchange": "Label Studio, Argilla and doccano",
    "stakes.report": "The report of a campaign",
    "stakes.simulation": "Replays of labelled tables",
    "stakes.evaluation": "Best answers, realised losses, calibration, audits, annotators",
    "stakes.baselines": "Rules that know no loss",
    "stakes.testing": "Laws for losses and beliefs of your own",
}


_SKLEARN = "set_fit_request, set_predict_request, set_score_request, set_partial_fit_request"  # made by scikit-learn


def modules() -> dict[str, str]:
    """The public modules; adapters to other packages, one by one, after the rest."""
    from stakes import integrations

    folder = Path(integrations.__file__).parent
    names = sorted(f"stakes.integrations.{path.stem}" for path in folder.glob("[!_]*.py"))
    found = {name: module for name in names if getattr(module := _imported(name), "__all__", None)}
    return MODULES | {name: _summary(module) for name, module in found.items()}


def _summary(module: Any) -> str:
    """The first line of a module's docstring, without its full stop."""
    return (inspect.getdoc(module) or "").splitlines()[0].rstrip(".")


def _imported(module: str) -> Any:
    """The module, or None where the library that it adapts is not installed."""
    try:
        with warnings.catch_warnings():  # of the libraries that are adapted
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        if (error.name or "stakes").split(".")[0] == "stakes" and error.name is not None:
            raise
        return None


def home(module: str, name: str) -> str:
    """The module at which a name is described."""
    import stakes

    value = getattr(importlib.import_module(module), name)
    return "stakes" if getattr(stakes, name, None) is value else module


def first_sentence(value: Any) -> str:
    """What the docstring begins with, on one line, fit for a table."""
    if not (inspect.isclass(value) or callable(value)):
        return ""
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def anchor(module: str, name: str) -> str:
    """The file of a name, without its ending; letters that differ in case only are distinguished."""
    return f"{home(module, name)}.{name}" + ("-function" if name[0].islower() else "")


def _described(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    full = f"{module}.{name}"
    if inspect.isclass(value):
        others = ", ".join(base.__name__ for base in value.__mro__ if not base.__module__.startswith("stakes"))
        lines = [
            f".. autoclass:: {full}",
            "   :members:",
            f"   :inherited-members: {others}",
            f"   :exclude-members: {_SKLEARN}",
        ]
    elif inspect.isroutine(value):
        lines = [f".. autofunction:: {full}"]
    elif isinstance(value, dict):
        lines = [
            f".. py:data:: {full}",
            "",
            "   A table with the keys " + ", ".join(f"``{key}``" for key in value) + ".",
        ]
    else:
        lines = [f".. py:data:: {full}", "", f"   ``{re.sub(r' at 0x[0-9a-f]+', '', str(value))}``"]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def pages() -> dict[str, str]:
    """The text of every page of the reference by its path below docs/api."""
    found: dict[str, str] = {}
    listed = modules()
    for module, line in listed.items():
        package = importlib.import_module(module)
        names = sorted(package.__all__, key=str.lower)
        rows = [
            f"| [`{name}`]({anchor(module, name)}.md) | {first_sentence(getattr(package, name))} |" for name in names
        ]
        own = [anchor(module, name) for name in names if home(module, name) == module]
        found[f"{module}-module.md"] = _list(module, [f"{line}."], "name", rows, own)
        for name in names:
            if home(module, name) == module:
                found[f"{anchor(module, name)}.md"] = f"# {name}\n\n{_described(module, name)}\n"
    table = [f"| [`{module}`]({module}-module.md) | {line} |" for module, line in listed.items()]
    about = [
        "Every public name, with its arguments and an example that the tests run. Most people need",
        "[`rank`](stakes.rank-function.md), a loss such as [`CostMatrix`](stakes.CostMatrix.md), and",
        "[`outlook`](stakes.outlook-function.md).",
    ]
    found["index.md"] = _list("API reference", about, "module", table, [f"{module}-module" for module in listed])
    return found


def _list(title: str, about: list[str], head: str, rows: list[str], below: list[str]) -> str:
    """A page with a table of links, and the pages below it."""
    table = [f"| {head} | |", "|---|---|", *rows]
    return "\n".join([f"# {title}", "", *about, "", *table, "", "```{toctree}", ":hidden:", "", *below, "```", ""])


def write(app: Any) -> None:
    """Write the pages below docs/api; those that are as they were stay untouched, others are removed."""
    from sphinx.ext.autodoc.mock import mock  # the tests read this module without Sphinx

    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    with mock(app.config.autodoc_mock_imports):
        wanted = pages()
    for old in folder.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Register the pages."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
