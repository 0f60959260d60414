"""Tables that stay in their file: the same answer as when they are read whole, and cells that are refused by row."""

import numpy as np
import pytest

from stakes import outlook
from stakes.exceptions import StakesError
from stakes.tabular import Brief, LossSpec, ModelSpec, read_worksheet, streamed, suggest
from stakes.tabular.streamed import read_streamed, stays_in_file

arrow = pytest.importorskip("pyarrow", reason="files of Parquet and Arrow need pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def columns(n=150, labelled=30, classes=False):
    rng = np.random.default_rng(4)
    x, z = rng.standard_normal(n), rng.integers(0, 9, n)
    gaps = [None if i % 17 == 5 else float(value) for i, value in enumerate(x)]
    kinds = [None if i % 23 == 2 else "abc"[i % 3] for i in range(n)]
    known = set(rng.permutation(n)[:labelled].tolist())
    y = [("no", "yes")[int(x[i] > 0)] if classes else float(x[i] + z[i]) for i in range(n)]
    target = [y[i] if i in known else None for i in range(n)]
    return {
        "id": [f"r{i}" for i in range(n)],
        "x": gaps,
        "z": z,
        "kind": kinds,
        "cost": rng.uniform(1, 2, n),
        "y": target,
    }


@pytest.fixture
def saved(tmp_path):
    def save(**options):
        parquet.write_table(arrow.table(columns(**options)), tmp_path / "table.parquet", row_group_size=37)
        return tmp_path / "table.parquet"

    return save


SQUARED, LOG = LossSpec("squared-error"), LossSpec("log-loss", class_weights={"yes": 5.0})
FOREST, PROCESS = ModelSpec("random-forest"), ModelSpec("gaussian-process")  # no chains, which rounding leads elsewhere
CASES = [
    (Brief("y", SQUARED, model=PROCESS, id_column="id", ignore=("cost",)), {}),
    (
        Brief("y", SQUARED, model=PROCESS, cost_column="cost", id_column="id", decisions=100.0, missing=("c",)),
        {"budget": 4.0},
    ),
    (
        Brief(
            "y",
            SQUARED,
            model=PROCESS,
            label_cost=0.5,
            decisions=100.0,
            ignore=("id", "cost"),
            text=("z",),
            random_state=3,
        ),
        {},
    ),
    (Brief("y", LOG, model=FOREST, id_column="id", ignore=("cost",)), {}),
]


@pytest.mark.parametrize(("brief", "options"), CASES)
def test_it_says_what_a_table_in_memory_says(saved, brief, options):
    path = saved(classes=brief.loss == LOG)
    sheet = read_worksheet(path, brief)
    whole = suggest(sheet, 3, **options)
    assert suggest(read_streamed(path, brief), 3, **options) == whole
    assert suggest(read_streamed(path, brief), 3, n_jobs=2, **options)[0].indices == whole[0].indices


def test_a_folder_and_labels_in_every_chunk(tmp_path, monkeypatch):
    cells = columns(n=90, labelled=40)
    for place in range(3):
        part = {name: values[30 * place : 30 * (place + 1)] for name, values in cells.items()}
        parquet.write_table(arrow.table(part, schema=arrow.table(cells).schema), tmp_path / f"{place}.parquet")
    brief = Brief("y", SQUARED, id_column="id", ignore=("cost",))
    monkeypatch.setitem(outlook.__kwdefaults__, "chunk", 7)
    sheet = read_streamed(tmp_path, brief)
    pool = sheet.stream
    places = np.arange(50)
    rows = [row for row, label in enumerate(cells["y"]) if label is None]
    assert pool.rows(places).tolist() == rows
    parts = list(pool.chunks(7))
    assert [start for start, _ in parts] == np.cumsum([0, *(len(part) for _, part in parts)])[:-1].tolist()
    for name in range(3):
        together = np.concatenate([part.column(name) for _, part in parts])
        assert together.tolist() == pytest.approx(pool.take(places).column(name).tolist(), nan_ok=True)
    assert {cells["y"][row] for row in suggest(sheet, 4)[0].indices} == {None}


def test_without_a_label_rows_are_spread_over_a_sample(saved, monkeypatch):
    brief = Brief("y", SQUARED, id_column="id", ignore=("cost",))
    path = saved(labelled=0)
    sheet = read_worksheet(path, brief)
    assert suggest(read_streamed(path, brief), 4) == suggest(sheet, 4)
    monkeypatch.setattr(streamed, "_SAMPLE", 20)
    sheet = read_streamed(path, brief)
    found, _ = suggest(sheet, 4)
    assert sheet.n_open == 150
    assert found.row_ids == tuple(f"r{row}" for row in found.indices)
    assert any("20 of its 150 rows without a label, drawn with random_state 0" in str(note) for note in found.notes)


@pytest.mark.parametrize("bad", [-np.inf, np.inf])
def test_a_number_that_is_none_is_refused_by_its_row(tmp_path, monkeypatch, bad):
    monkeypatch.setattr(streamed, "_SAMPLE", 10)
    cells = columns()
    row = next(row for row in range(100, 150) if cells["y"][row] is None and row % 17 != 5)
    cells["x"][row] = bad
    parquet.write_table(arrow.table(cells), tmp_path / "table.parquet")
    brief = Brief("y", SQUARED, id_column="id", ignore=("cost",))
    with pytest.raises(ValueError, match=rf"NaN or infinite values in 1 column: x \(1\); first at row {row + 1}\."):
        suggest(read_streamed(tmp_path / "table.parquet", brief), 3)


def test_costs_must_be_positive_numbers(tmp_path):
    for bad, came in ((None, "nothing"), (-1.0, "'-1.0'")):
        cells = columns()
        cells["cost"] = [*cells["cost"][:77], bad, *cells["cost"][78:]]
        parquet.write_table(arrow.table(cells), tmp_path / "table.parquet")
        with pytest.raises(StakesError, match=f"column 'cost' holds {came} at row 78"):
            read_streamed(tmp_path / "table.parquet", Brief("y", SQUARED, cost_column="cost"))


def test_what_is_large(saved, tmp_path, monkeypatch):
    path = saved()
    assert not stays_in_file(path)
    assert stays_in_file(tmp_path)
    assert not stays_in_file(tmp_path / "none.parquet")
    monkeypatch.setattr(streamed, "LARGE", 100)
    assert stays_in_file(path)
    (tmp_path / "table.csv").write_text("a,b\n" * 200)
    assert not stays_in_file(tmp_path / "table.csv")
