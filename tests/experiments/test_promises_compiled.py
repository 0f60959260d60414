"""The study of promises with compiled forests: the same campaigns as the product's, but for the draws of trees."""

import numpy as np
import pytest

from experiments.labels_saved.problems import problems
from experiments.labels_saved.tables import NUMBERS, load
from experiments.promises.command import main
from experiments.promises.compiled import CompiledBench
from experiments.promises.rounds import BATCHES, Bench, campaign, load_rounds
from stakes.models import belief_of


@pytest.fixture(scope="module")
def benches():
    table = load("wine")
    return table, CompiledBench(table, 0), Bench(table, 0)


def test_beliefs_are_those_of_the_product(benches):
    """The same rows, and what trees say of them up to their draws: on average, and in how far they differ."""
    table, *each = benches
    (compiled, product), rows = each, each[1].first.tolist()
    assert compiled.first.tolist() == rows
    places = each[1].trial.test, each[1].trial.contexts
    beliefs = [
        belief_of(bench.fitted(rows), *(table.standardised[which] for which in places), classes=bench.classes)
        for bench in (compiled, product)
    ]
    assert type(beliefs[0]) is type(beliefs[1])
    assert beliefs[0].contexts.shape == beliefs[1].contexts.shape
    means = [np.asarray(belief.contexts).mean(axis=1) for belief in beliefs]  # [M, C]
    assert np.abs(means[0] - means[1]).mean() < 0.05
    for side, within in (("candidates", 0.1), ("contexts", 0.4)):  # answers are calibrated by folds, which are drawn
        spreads = [np.asarray(getattr(belief, side)).std(axis=1).mean() for belief in beliefs]
        assert spreads[0] == pytest.approx(spreads[1], rel=within)
    assert compiled.fitted(rows).labels_.tolist() == table.y[rows].tolist()


def test_offers_are_those_of_the_product(benches):
    table, compiled, product = benches
    for problem in problems(table).values():
        found, wanted = (bench.outlook(problem, bench.first.tolist(), 8)[1] for bench in (compiled, product))
        assert found.today.value == pytest.approx(wanted.today.value, rel=0.4)  # other trees, and other folds
        assert found.most.value == pytest.approx(wanted.most.value, rel=0.4)
        assert [offer.size for offer in found.offers] == [offer.size for offer in wanted.offers]
        assert found.offers[-1].worth == pytest.approx(wanted.offers[-1].worth, rel=0.4)
        losses = [bench.losses(problem, bench.first.tolist()).mean() for bench in (compiled, product)]
        assert losses[0] == pytest.approx(losses[1], abs=0.06)  # a row of 59 that is missed is 0.017


def test_the_command_leaves_out_numbers(tmp_path):
    given = ["--compiled", "--losses", "cost of a miss", "--runs", "1", "--rounds", "20", "--store", str(tmp_path)]
    main(["--tables", NUMBERS[0], "wine", *given])
    (done,) = load_rounds(tmp_path)
    assert (done.table, done.loss, len(done.rounds)) == ("wine", "cost of a miss", 1)
    assert sorted(done.rounds[0].after) == list(BATCHES)


def test_a_campaign_goes_on_with_the_rows_that_it_ranked(benches):
    table, compiled, _ = benches
    first, second = campaign(compiled, problems(table)["cost of a miss"], (20, 24)).rounds
    assert second.rows == [*first.rows, *first.ranked[:4]]
    assert first.after[4][0] == pytest.approx(first.loss - second.loss)
    assert first.promised
    assert first.classes == len(table.classes)
