"""The pages of docs/integrations are run against the package that they are about, by the test of that package."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "integrations"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str, folder: Path) -> None:
    """Run the Python blocks of docs/integrations/NAME.md in order, as one script, in a folder.

    What a block prints must be the `text` block that follows it, where there is one.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for kind, content in BLOCK.findall((PAGES / f"{name}.md").read_text()):
        if kind == "text":
            assert printed == content, f"{name}.md shows another output; got\n{printed}"
            continue
        out = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stdout(out), warnings.catch_warnings():
            exec(compile(content, f"{name}.md", "exec"), names)
        printed = out.getvalue()
