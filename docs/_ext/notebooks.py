"""Notebooks as pages: their cells and stored outputs, turned into Markdown. Nothing is run; the tests do that."""

from __future__ import annotations

import json
import re
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser


def _text(part: str | list[str]) -> str:
    return part if isinstance(part, str) else "".join(part)


def _fenced(kind: str, text: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}"


def _output(output: dict[str, Any]) -> str:
    """One output of a cell: a picture, a table in HTML, or text."""
    if output["output_type"] == "stream":
        return _fenced("text", _text(output["text"]))
    if output["output_type"] == "error":
        return _fenced("text", f"{output['ename']}: {output['evalue']}")
    data = output.get("data", {})
    if "image/png" in data:
        picture = "".join(_text(data["image/png"]).split())
        return f'<img alt="output of the cell above" src="data:image/png;base64,{picture}">'
    if "image/svg+xml" in data:
        return _fenced("{raw} html", _text(data["image/svg+xml"]))
    if "text/html" in data:
        return _fenced("{raw} html", f'<div class="notebook-html">{_text(data["text/html"])}</div>')
    return _fenced("text", _text(data["text/plain"])) if "text/plain" in data else ""


def markdown(notebook: dict[str, Any]) -> str:
    """The notebook as a Markdown page."""
    parts = []
    for cell in notebook["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code" and source.strip():
            parts.append(_fenced("python", source))
            parts.extend(_output(output) for output in cell.get("outputs", ()))
    return "\n\n".join(part for part in parts if part) + "\n"


class NotebookParser(MystParser):
    """MyST, for files that end in .ipynb."""

    supported = ("ipynb",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Parse the notebook's Markdown."""
        MystParser.parse(self, markdown(json.loads(inputstring)), document)


def setup(app: Any) -> dict[str, Any]:
    """Register the parser."""
    app.add_source_suffix(".ipynb", "ipynb")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
