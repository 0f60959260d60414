"""The pictures and the table of docs/reproduction.md, from the summaries in experiments/results; nothing is run again.

Run: python tools/reproduction_page.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.paper.figures import draw
from experiments.paper.over_the_run import put_in
from experiments.paper.results import read

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
FIGURES = ROOT / "docs" / "figures"


def shown() -> list[str]:
    """The names of the pictures on the page."""
    return re.findall(r"\(figures/([\w.-]+)\.svg\)", PAGE.read_text(encoding="utf-8"))


def main() -> None:
    """Draw all, and keep what the page shows."""
    summaries = read(ROOT / "experiments" / "results")
    put_in(PAGE, summaries)
    FIGURES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        for path in draw(summaries, Path(folder)):
            if path.stem in shown():
                text = re.sub(
                    r"(\d\.\d\d)\d+(?=[ \"])", r"\1", path.read_text(encoding="utf-8")
                )  # hundredths of a point
                lines = [line.rstrip() for line in text.splitlines()]
                (FIGURES / path.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
                print(f"wrote docs/figures/{path.name}")


if __name__ == "__main__":
    main()
