"""`rank` and `stakes suggest` choose the same rows of the same table, and promises are made of the same worths."""

import csv

import numpy as np
import pytest

from stakes import rank
from stakes.ranking.outlook import GAUSSIAN_SHARE
from stakes.tabular import Brief, LossSpec, ModelSpec, read_worksheet, suggest
from stakes.tabular.suggestions import fitted


def numbers(rng):
    rows = rng.standard_normal((300, 3))
    return rows, np.sin(2.0 * rows[:, 0]) + rows[:, 1] + 0.1 * rng.standard_normal(300), 30


def classes(rng):
    rows = rng.standard_normal((420, 3))
    return rows, [("low", "middle", "high")[place] for place in np.digitize(rows[:, 0] + rows[:, 1], [-0.7, 0.7])], 40


TABLES = {
    "numbers": (numbers, {"loss": LossSpec("squared-error")}),
    "classes": (classes, {"loss": LossSpec("zero-one"), "model": ModelSpec("random-forest", {"n_estimators": 20})}),
    "costs and a budget": (numbers, {"loss": LossSpec("absolute-error"), "cost_column": "cost", "budget": 9.0}),
}


@pytest.fixture
def sheet(request, tmp_path):
    made, brief = TABLES[request.param]
    rng = np.random.default_rng(3)
    rows, labels, known = made(rng)
    costs = rng.uniform(1.0, 4.0, len(rows)).round(2)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "cost", "y"])
        for place, (row, cost, label) in enumerate(zip(rows.tolist(), costs, labels, strict=True)):
            writer.writerow([*row, cost, label if place < known else ""])
    ignored = () if "cost_column" in brief else ("cost",)
    return read_worksheet(tmp_path / "t.csv", Brief("y", ignore=ignored, random_state=5, **brief))


@pytest.mark.parametrize("sheet", TABLES, indirect=True)
@pytest.mark.parametrize("n", [1, 5])
def test_rank_chooses_what_suggest_chooses(sheet, n):
    pool = [row for row in range(len(sheet.ids)) if row not in sheet.labels]
    model, loss, names, _ = fitted(sheet, sheet.labels, pool)
    costs = None if sheet.costs is None else sheet.costs[pool]
    options = {"n": n, "costs": costs, "budget": sheet.brief.budget, "classes": names, "random_state": 5}
    ranking = rank(model, loss, sheet.features.take(pool), **options)
    suggested, outlook = suggest(sheet, n, budget=sheet.brief.budget)
    assert [pool[row] for row in ranking.indices] == list(suggested.indices)
    assert ranking.ranked_by == "gain"
    if suggested.ranked_by == "together":  # of a model that is known by members, whose joint worths stand beside
        np.testing.assert_allclose(np.cumsum(ranking.scores), [offer.joint for offer in outlook.offers[:n]], rtol=1e-9)
        assert suggested.scores == tuple(offer.worth for offer in outlook.offers[:n])
    else:
        (factor,) = (note.values["factor"] for note in suggested.notes if note.kind == "labels left out")
        np.testing.assert_allclose(factor * GAUSSIAN_SHARE * np.asarray(ranking.scores), suggested.scores, rtol=1e-9)
        assert suggested.ranked_by == "gain"
