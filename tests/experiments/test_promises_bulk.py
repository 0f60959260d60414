"""The study of promises in bulk: the same campaigns as one by one, but for the draws of hyperparameters."""

import numpy as np
import pytest

pytest.importorskip("torch")

from experiments.labels_saved.problems import problems
from experiments.labels_saved.tables import load
from experiments.promises.bulk import KnownRows, campaigns_in_bulk
from experiments.promises.rounds import BATCHES, Bench, left_out_of
from stakes.models import prepare_belief
from stakes.models.base import LabelsLeftOut
from stakes.models.inspection import labels_left_out


@pytest.fixture(scope="module")
def diabetes():
    table = load("diabetes")
    return table, problems(table)["squared error"]


def test_campaigns_are_those_of_one_by_one(diabetes):
    table, problem = diabetes
    (found,) = campaigns_in_bulk(table, {problem.name: problem}, [3], "cpu", (20, 24))
    first, second = found.rounds
    bench = Bench(table, 3)
    _, alone = bench.outlook(problem, bench.first.tolist(), 16)
    assert (found.table, found.loss, found.run) == ("diabetes", "squared error", 3)
    assert first.rows == bench.first.tolist()
    assert second.rows == [*first.rows, *first.ranked[:4]]
    assert [each["size"] for each in first.offers] == [1, 2, 4, 8, 16]
    assert sorted(first.after) == list(BATCHES)
    assert first.left_out == pytest.approx(left_out_of(alone), rel=0.3)
    assert first.today[0] == pytest.approx(alone.today.value, rel=0.4)  # other draws from the same posterior
    assert first.most[0] == pytest.approx(alone.most.value, rel=0.5)
    assert first.offer(16)["worth"] == pytest.approx(alone.offers[-1].worth, rel=0.5)
    assert first.loss == pytest.approx(bench.losses(problem, bench.first.tolist()).mean(), rel=0.1)
    assert second.loss != first.loss


def test_rows_that_are_known_jointly_are_a_model():
    root = np.random.default_rng(0).normal(size=(4, 4))
    covariance, noise = root @ root.T, np.full(4, 0.5)
    known = KnownRows(
        np.asarray([2, 3, 5, 9]),
        np.arange(4.0),
        np.diag(covariance) + noise,
        noise,
        covariance,
        np.zeros(20),
        LabelsLeftOut(np.zeros(20), np.ones(20), np.zeros(20)),
    )
    assert labels_left_out(known).variance.tolist() == [1.0] * 20
    rows, contexts = np.asarray([[9.0], [2.0]]), np.asarray([[3.0], [9.0]])
    asked = {"classes": None, "joint": True, "random_state": 0}
    label, latent = (prepare_belief(known, contexts, target=each, **asked)(rows) for each in ("label", "latent"))
    assert label.mean.tolist() == [1.0, 3.0]
    np.testing.assert_allclose(label.variance - latent.variance, 0.5)
    np.testing.assert_allclose(label.covariance, covariance[np.ix_([3, 0], [1, 3])])
    np.testing.assert_allclose(label.candidate_covariance[0, 1], covariance[3, 0])
    np.testing.assert_allclose(np.diagonal(label.candidate_covariance), known.variance[[3, 0]])
