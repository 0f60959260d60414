"""Two tables of patients and of credit as a user would bring them: 20 labels, the rest open, a miss costs 10.

    python -m experiments promises --write FOLDER

writes TABLE.csv with an empty `outcome` for rows without a label, TABLE_answers.csv with all of them, and costs.csv.
What the commands say of them is in docs/promises.md.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from experiments.labels_saved.problems import RARE_COST, rarest
from experiments.labels_saved.tables import Table, load
from experiments.promises.rounds import Bench

TABLES = ("saheart", "australian")
_TARGET = "outcome"


def write(folder: Path, run: int = 0) -> list[Path]:
    """The files of both tables; the rows that have labels are those that a campaign of the study starts from."""
    folder.mkdir(parents=True, exist_ok=True)
    return [path for name in TABLES for path in _write(load(name), folder, run)]


def _write(table: Table, folder: Path, run: int) -> list[Path]:
    bench, rare = Bench(table, run), rarest(table)
    first = set(bench.first.tolist())
    rows = sorted(np.concatenate([bench.trial.initial, bench.trial.pool]).tolist())
    names = [f"x{place}" for place in range(1, table.X.shape[1] + 1)]
    labels = ["rare" if label == rare else "common" for label in table.y]
    table_path, answers = folder / f"{table.name}.csv", folder / f"{table.name}_answers.csv"
    for path, known in ((table_path, first), (answers, set(rows))):
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *names, _TARGET])
            for row in rows:
                writer.writerow([row, *table.X[row].tolist(), labels[row] if row in known else ""])
    costs = folder / "costs.csv"
    costs.write_text(f"truth,common,rare\ncommon,0,1\nrare,{RARE_COST:g},0\n")
    return [table_path, answers, costs]
