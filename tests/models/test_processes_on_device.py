"""Many processes at once against one process at a time, with the same hyperparameters."""

import math

import numpy as np
import pytest

from stakes.models.bayesian_process import BayesianProcess
from stakes.models.process_hyperparameters import (
    LogPosterior,
    covariance_of,
    label_covariance,
    leave_one_out,
    most_probable_point,
    of_labels_left_out,
    predicted,
    scales_of,
    seen_through,
    solved_for,
)

torch = pytest.importorskip("torch", reason="torch is an extra")
on_device = pytest.importorskip("stakes.models.processes_on_device")
ProcessesOnDevice = on_device.ProcessesOnDevice

DRAWS = 4


@pytest.fixture(scope="module")
def tables():
    generator = np.random.default_rng(0)
    return [generator.normal(size=(40, 3)), 1.5 * generator.normal(size=(40, 3))]


@pytest.fixture(scope="module")
def labels(tables):
    noise = 0.1 * np.random.default_rng(1).normal(size=(2, 40))
    return np.stack([np.sin(2.0 * rows[:, 0]) + 0.3 * rows[:, 1] for rows in tables]) + noise


@pytest.fixture(scope="module")
def fits(tables, labels):
    labelled = np.stack([np.arange(20), np.arange(10, 30)])
    processes = ProcessesOnDevice(tables, DRAWS, 0, "cpu", warp=None)
    return processes.fitted(np.arange(2), labelled, labels[np.arange(2)[:, None], labelled])


def one_by_one(fits, place):
    """The draws of a data set as `BayesianProcess` has them, its rows, and its labels in standard units."""
    posterior = LogPosterior.of(
        fits.data.rows[place].numpy(), fits.data.targets[place].numpy(), math.exp(fits.data.log_median[place])
    )
    return posterior, posterior.draws(fits.chains[place].numpy()), posterior.labels


def test_the_density_of_hyperparameters_and_its_gradient(fits):
    for place in range(2):
        posterior, _, _ = one_by_one(fits, place)
        u = np.random.default_rng(place).normal(size=(5, posterior.size))
        of = torch.full((5,), place)
        values, gradients = fits.processes.log_posterior(fits.data, torch.as_tensor(u), of)
        for each, value, gradient in zip(u, values, gradients, strict=True):
            expected = posterior(each)
            assert float(value) == pytest.approx(expected[0], abs=1e-9)
            assert gradient.numpy() == pytest.approx(expected[1], abs=1e-7)


def test_far_out_there_is_nothing(fits):
    u = torch.full((1, 8), 13.0, dtype=torch.float64)
    value, gradient = fits.processes.log_posterior(fits.data, u, torch.zeros(1, dtype=torch.int64))
    assert float(value) < -1e20
    assert not gradient.any()


def test_predictions_are_those_of_single_processes(fits, tables):
    asked = np.stack([np.arange(30, 40), np.arange(10)])
    mean, variance = fits.predicted(asked)
    for place in range(2):
        _, draws, targets = one_by_one(fits, place)
        rows = fits.data.rows[place].numpy()
        found = [
            predicted(draws, s, solved_for(draws, s, rows, targets), rows, tables[place][asked[place]])
            for s in range(DRAWS)
        ]
        means, variances = (np.stack(each) for each in zip(*found, strict=True))
        unit, offset = float(fits.data.unit[place]), float(fits.data.offset[place])
        spread = (variances + (means - means.mean(0)) ** 2).mean(0)
        assert mean[place].numpy() == pytest.approx(offset + unit * means.mean(0), abs=1e-8)
        assert variance[place].numpy() == pytest.approx(unit**2 * spread, rel=1e-5)


def test_moments_are_those_of_the_mixture_of_draws(fits, tables):
    here, there = np.stack([np.arange(30, 36), np.arange(6)]), np.stack([np.arange(36, 40), np.arange(6, 10)])
    moments = fits.moments(here, there)
    place, unit = 1, float(fits.data.unit[1])
    _, draws, targets = one_by_one(fits, place)
    rows = fits.data.rows[place].numpy()
    within, means = [], []
    for s in range(DRAWS):
        factor, solved = solved_for(draws, s, rows, targets)
        roots = [
            np.linalg.solve(factor, covariance_of(draws, s, rows, tables[place][each[place]])) for each in (here, there)
        ]
        prior = covariance_of(draws, s, tables[place][here[place]], tables[place][there[place]])
        within.append(prior - roots[0].T @ roots[1])
        means.append((solved @ roots[0], solved @ roots[1]))
    label_means, target_means = (np.stack(each) for each in zip(*means, strict=True))
    between = (label_means - label_means.mean(0)).T @ (target_means - target_means.mean(0)) / DRAWS
    assert moments.covariance[place].numpy() == pytest.approx(unit**2 * (np.mean(within, axis=0) + between), abs=1e-8)
    pairs = fits.pair_covariances(here[:, :4], there)
    assert pairs[place].numpy() == pytest.approx(np.diagonal(moments.covariance[place, :4].numpy()), abs=1e-8)
    assert moments.mean.numpy() == pytest.approx(fits.predicted(there)[0].numpy())
    assert moments.label_variance.numpy() == pytest.approx(fits.predicted(here)[1].numpy(), rel=1e-6)


def test_chains_agree_with_those_of_one_process(tables, labels):
    processes = ProcessesOnDevice(tables[:1], 32, 0, "cpu", warp=None)
    fits = None
    for count in range(15, 31):
        fits = processes.fitted(np.zeros(1, dtype=int), np.arange(count)[None], labels[:1, :count], fits)
    mean, variance = (each[0].numpy() for each in fits.predicted(np.arange(30, 40)[None]))
    model = BayesianProcess(n_draws=32, warp=None).fit(tables[0][:30], labels[0, :30], pool=tables[0][30:])
    expected, sd = model.predict(tables[0][30:], return_std=True)
    assert np.abs((mean - expected) / sd).max() < 0.5
    assert np.abs(np.log(np.sqrt(variance) / sd)).max() < 0.5


def test_a_warp_is_chosen_as_one_process_chooses_it(tables):
    generator = np.random.default_rng(3)
    positive = np.exp(2.0 * tables[0][:, 0] + 0.1 * generator.normal(size=40))
    labels = np.stack([positive, 5.0 + 0.2 * tables[1][:, 0]])
    processes = ProcessesOnDevice(tables, DRAWS, 0, "cpu")
    fits = processes.fitted(np.arange(2), np.tile(np.arange(30), (2, 1)), labels[:, :30])
    assert fits.data.scale.tolist() == pytest.approx([positive[:30].mean(), 0.0])
    model = BayesianProcess().fit(tables[0][:30], positive[:30])
    assert model.warp_ is not None
    mean, variance = fits.predicted(np.tile(np.arange(30, 40), (2, 1)))
    assert bool((mean[0] > 0).all())
    assert bool((variance > 0).all())


def test_leave_one_out_is_that_of_one_process(tables, labels):
    positive = np.exp(labels[:1, :20])
    assert scales_of(positive[0], "auto") == [None, pytest.approx(positive.mean())]
    processes = ProcessesOnDevice(tables[:1], DRAWS, 0, "cpu")
    where = torch.zeros(1, dtype=torch.int64)
    rows = processes.rows[where[:, None], torch.arange(20)[None]]
    for scale in (0.0, float(positive.mean())):
        data = processes._data(where, rows, positive, np.asarray([scale]))
        latent, log_slope = seen_through(positive[0], scale or None)
        posterior = LogPosterior.of(tables[0][:20], data.targets[0].numpy(), math.exp(processes.log_median[0]))
        point = most_probable_point(posterior)
        expected = leave_one_out(posterior.draws(point[None]), tables[0][:20], posterior.labels)
        expected += log_slope.sum() - 20 * np.log(latent.std())
        assert float(processes._leave_one_out(data, torch.as_tensor(point[None]))[0]) == pytest.approx(
            expected, abs=1e-6
        )


def test_many_columns_share_a_length():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(30, 70))
    labels = rows[:, 0] + 0.1 * generator.normal(size=30)
    fits = ProcessesOnDevice([rows], DRAWS, 0, "cpu").fitted(
        np.zeros(1, dtype=int), np.arange(20)[None], labels[None, :20]
    )
    assert int(fits.data.own.sum()) == 60
    posterior = LogPosterior.of(rows[:20], labels[:20], 1.0)
    assert np.flatnonzero(fits.data.own[0].numpy()).tolist() == posterior.own.tolist()
    assert bool(torch.isfinite(fits.predicted(np.arange(20, 30)[None])[0]).all())


def test_the_covariance_of_labels_has_noise(fits):
    posterior, draws, _ = one_by_one(fits, 0)
    u = fits.chains[0, :1]
    factor, failed, _ = fits.processes._root(
        fits.processes.hyperparameters(fits.data, u, torch.zeros(1, dtype=torch.int64)), fits.data.rows[:1]
    )
    assert not int(failed)
    expected = label_covariance(draws, 0, fits.data.rows[0].numpy())
    assert (factor[0] @ factor[0].T).numpy() == pytest.approx(expected, abs=1e-8)
    assert posterior.size == u.shape[1]


def test_labels_left_out_are_those_of_one_process_at_a_time(fits):
    mean, variance = (each.numpy() for each in fits.left_out())
    for place in range(2):
        _, draws, targets = one_by_one(fits, place)
        rows = fits.data.rows[place].numpy()
        gap, wanted = of_labels_left_out([solved_for(draws, s, rows, targets) for s in range(DRAWS)])
        unit, offset = float(fits.data.unit[place]), float(fits.data.offset[place])
        np.testing.assert_allclose(mean[place], offset + unit * (targets - gap), rtol=1e-8)
        np.testing.assert_allclose(variance[place], unit**2 * wanted, rtol=1e-8)
