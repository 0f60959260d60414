"""A process that averages over its hyperparameters: what it predicts, how it goes on, what it believes."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from stakes import (
    BayesianProcess,
    ExponentialWeight,
    GaussianBelief,
    GaussianMixtureBelief,
    Linex,
    Pinball,
    SoftplusWarp,
    SquaredError,
    ThresholdDecision,
    WarpedGaussianBelief,
    rank,
    score,
    select,
)
from stakes.beliefs.warped import warped_moments
from stakes.exceptions import StakesError
from stakes.models import belief_of
from stakes.models.gp_posterior import prepare_averaged
from stakes.models.process_hyperparameters import leave_one_out, of_labels_left_out, predicted, seen_through, solved_for
from tests.table_kinds import FrameLike


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((160, 4))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(160)


@pytest.fixture(scope="module")
def model(table):
    X, y = table
    return BayesianProcess().fit(X[:40], y[:40], pool=X)


def log_density(model, X, y):
    """Of a label at each row, by its mixture."""
    rows = model.standard_rows(X)
    parts = []
    for s, solved in enumerate(model._solved):
        mean, variance = predicted(model.draws_, s, solved, model.train_, rows)
        gap = (y - model.offset_) / model.unit_ - mean
        parts.append(-0.5 * gap**2 / variance - 0.5 * np.log(2 * np.pi * variance) - np.log(model.unit_))
    return logsumexp(parts, axis=0) - np.log(len(parts))


def test_it_predicts_and_knows_how_well(table, model):
    X, y = table
    mean, sd = model.predict(X[40:], return_std=True)
    assert np.mean((mean - y[40:]) ** 2) < 0.1 * y.var()
    assert 0.8 < np.mean(np.abs(mean - y[40:]) < 1.64 * sd) < 0.99
    np.testing.assert_array_equal(model.predict(X[40:]), mean)


def test_columns_that_do_not_matter_get_long_lengths(model):
    lengths = np.median(model.draws_.lengths, axis=0)
    assert lengths[0] < 0.5 * min(lengths[2], lengths[3])


def test_chains_agree(model):
    assert max(model.r_hat_) < 1.1
    assert model.report_[0].startswith("16 draws of the hyperparameters")
    assert f"R-hat {model.r_hat_[0]:.2f} of means" in model.report_[0]


def test_the_same_call_gives_the_same_model(table, model):
    X, y = table
    again = clone(model).fit(X[:40], y[:40], pool=X)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    other = BayesianProcess(random_state=1).fit(X[:40], y[:40], pool=X)
    assert not np.array_equal(other.predict(X), model.predict(X))
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=0.15)


def test_units_of_the_labels_and_columns_do_not_matter(table, model):
    X, y = table
    other = BayesianProcess().fit(X[:40] * 1e3 - 5.0, 1e6 + 250.0 * y[:40], pool=X * 1e3 - 5.0)
    np.testing.assert_allclose((other.predict(X * 1e3 - 5.0) - 1e6) / 250.0, model.predict(X), atol=1e-5)


def test_more_labels_may_come_one_by_one(table):
    """Weighing the draws by new labels gives what drawing anew gives, up to the noise of draws."""
    X, y = table
    model = BayesianProcess().fit(X[:30], y[:30], pool=X)
    for i in range(30, 45):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert any("Drawn with" in each for each in model.report_) or model._sampled == 45
    anew = BayesianProcess().fit(X[:45], y[:45], pool=X)
    np.testing.assert_allclose(model.predict(X), anew.predict(X), atol=0.25)
    gap = np.mean(log_density(model, X[45:], y[45:])) - np.mean(log_density(anew, X[45:], y[45:]))
    assert abs(gap) < 0.15


def test_labels_that_change_everything_are_drawn_for_anew(table):
    X, y = table
    model = BayesianProcess().fit(X[:20], y[:20], pool=X)
    model.partial_fit(X[20:25], 50.0 + y[20:25])
    assert model._sampled == 25
    assert model.unit_ == pytest.approx(np.std(np.append(y[:20], 50.0 + y[20:25])))


def test_partial_fit_alone_is_a_fit(table):
    X, y = table
    one, other = BayesianProcess().partial_fit(X[:12], y[:12]), BayesianProcess().fit(X[:12], y[:12])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_very_few_labels(table, count):
    X, y = table
    mean, sd = BayesianProcess().fit(X[:count], y[:count], pool=X).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0).all()


def test_labels_that_are_all_alike(table):
    mean, sd = BayesianProcess().fit(table[0][:10], np.full(10, 3.0)).predict(table[0], return_std=True)
    np.testing.assert_allclose(mean, 3.0, atol=1e-6)
    assert (sd > 0).all()


def test_many_labels_keep_fewer_draws_and_say_so():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(700, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(700)
    model = BayesianProcess(max_rows=60).fit(X[:690], y[:690])
    assert len(model.draws_.noise) == 3
    assert "Hyperparameters were drawn with 60 of 690 labels." in model.report_
    assert "With 690 labels 3 draws are kept, not 16, to save time." in model.report_
    assert np.mean((model.predict(X) - np.sin(2 * X[:, 0])) ** 2) < 0.002
    model.partial_fit(X[690:], y[690:])
    assert len(model.labels_) == 700


def test_a_table_with_text_and_gaps(table):
    X, y = table
    first = X[:, 0].copy()
    first[3] = np.nan
    frame = FrameLike({"x": first, "town": np.where(X[:, 1] > 0, "a", "b"), "one": np.ones(160)})
    model = BayesianProcess().fit(frame.iloc[:40], y[:40], pool=frame)
    assert model.draws_.lengths.shape == (16, 4)  # x, its gap, two towns
    assert np.isfinite(model.predict(frame)).all()


def test_an_outlier_in_a_column_is_cut_off(table):
    X, y = table
    far = X.copy()
    far[0, 0] = 1e6
    assert np.abs(BayesianProcess().fit(X[:40], y[:40], pool=far).standard_rows(far)).max() == 3.0


@pytest.fixture(scope="module")
def mixed(table):
    X, y = table
    return BayesianProcess(belief="mixture").fit(X[:40], y[:40], pool=X)


def test_its_belief_may_be_a_mixture_of_its_draws(table, mixed):
    X, _ = table
    model = mixed
    belief = belief_of(model, X[40:60], X[60:100])
    assert isinstance(belief, GaussianMixtureBelief)
    assert belief.mean.shape == (16, 40)
    mean, sd = model.predict(X[60:100], return_std=True)
    np.testing.assert_allclose(belief.mean.mean(axis=0), mean, rtol=1e-9, atol=1e-9)
    spread = (belief.variance + (belief.mean - mean) ** 2).mean(axis=0)
    np.testing.assert_allclose(np.sqrt(spread), sd, rtol=1e-6)
    latent = belief_of(model, X[40:60], X[60:100], target="latent")
    noise = model.unit_**2 * model.draws_.noise[:, None]
    np.testing.assert_allclose(belief.variance - latent.variance, np.broadcast_to(noise, (16, 40)), rtol=1e-6)


def test_one_gaussian_has_the_moments_of_the_mixture(table, model, mixed):
    X, _ = table
    for target in ("label", "latent"):
        one, many = (belief_of(each, X[40:60], X[55:100], target=target) for each in (model, mixed))
        assert isinstance(one, GaussianBelief)
        rng = np.random.default_rng(0)
        s = rng.integers(0, 16, 400_000)
        for n, m in ((0, 3), (7, 30), (16, 1)):  # the last: the same row on both sides
            share = many.covariance[s, n, m] / many.candidate_variance[s, n]
            y = many.candidate_mean[s, n] + np.sqrt(many.candidate_variance[s, n]) * rng.standard_normal(len(s))
            left = many.variance[s, m] - share * many.covariance[s, n, m]
            z = many.mean[s, m] + share * (y - many.candidate_mean[s, n]) + np.sqrt(left) * rng.standard_normal(len(s))
            drawn = np.cov(y, z)
            assert one.mean[m] == pytest.approx(z.mean(), abs=0.01)
            np.testing.assert_allclose(
                [one.candidate_variance[n], one.variance[m], one.covariance[n, m]],
                [drawn[0, 0], drawn[1, 1], drawn[0, 1]],
                rtol=0.02,
                atol=0.01 * np.sqrt(drawn[0, 0] * drawn[1, 1]),
            )


def test_batches_of_one_gaussian_are_joint(table, model):
    X, _ = table
    joint = belief_of(model, X[40:60], X[60:100], joint=True)
    same = belief_of(model, X[40:60], X[40:60], target="latent")
    matrix = np.stack([joint.candidate_covariance(i) for i in range(20)])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12)
    off = ~np.eye(20, dtype=bool)
    np.testing.assert_allclose(matrix[off], same.covariance[off], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.diag(matrix), joint.candidate_variance)
    assert len(set(select(SquaredError(), joint, n=4).indices)) == 4


def test_covariances_between_candidates_are_those_of_candidates_as_contexts(table, mixed):
    X, _ = table
    model = mixed
    joint = belief_of(model, X[40:45], X[50:53], joint=True)
    there = belief_of(model, X[40:45], X[40:45], target="latent")
    for i in range(5):
        row = joint.candidate_covariance(i)  # [S, N]
        wanted = there.covariance[:, i, :].copy()
        wanted[:, i] = joint.candidate_variance[:, i]
        np.testing.assert_allclose(row, wanted, rtol=1e-6, atol=1e-9)


def test_rank_takes_it(table, model):
    X, _ = table
    ranking = rank(model, SquaredError(), X[40:], n=3)
    worth = score(SquaredError(), belief_of(model, X[40:], X[40:]))
    assert ranking.indices[0] == int(np.argmax(worth))


BAD = [
    ({"n_draws": 0}, "n_draws must be a whole number, 1 or more; got 0"),
    ({"n_draws": True}, "n_draws must be a whole number"),
    ({"max_rows": 2}, "max_rows must be a whole number, 3 or more; got 2"),
    ({"limit": 0.0}, "limit must be a positive number"),
    ({"warp": "log"}, "warp must be 'auto', 'softplus' or None; got 'log'"),
    ({"belief": "both"}, "belief must be 'gaussian' or 'mixture'; got 'both'"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_parameters_are_refused(table, wrong, message):
    with pytest.raises(StakesError, match=message):
        BayesianProcess(**wrong).fit(table[0][:5], table[1][:5])


def test_bad_labels_are_refused(table):
    X, y = table
    with pytest.raises(StakesError, match="a label for each of 5 rows"):
        BayesianProcess().fit(X[:5], y[:4])
    with pytest.raises(StakesError, match="finite numbers"):
        BayesianProcess().fit(X[:2], [1.0, np.nan])
    with pytest.raises(NotFittedError):
        BayesianProcess().predict(X)


def test_a_refused_label_changes_nothing(table):
    X, y = table
    model = BayesianProcess().fit(X[:12], y[:12])
    before = model.predict(X)
    with pytest.raises(StakesError, match="finite numbers"):
        model.partial_fit(X[12:13], [np.inf])
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.fixture(scope="module")
def amounts():
    """Positive labels whose effects multiply."""
    rng = np.random.default_rng(11)
    X = rng.standard_normal((240, 3))
    return X, np.exp(1.2 * np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(240))


@pytest.fixture(scope="module")
def warped(amounts):
    X, y = amounts
    return BayesianProcess().fit(X[:40], y[:40], pool=X)


def test_leave_one_out_is_what_leaving_one_out_gives(table):
    X, y = table
    model = BayesianProcess(n_draws=1).fit(X[:12], y[:12])
    rows, labels, found = model.train_, (y[:12] - model.offset_) / model.unit_, 0.0
    for i in range(12):
        others = np.delete(np.arange(12), i)
        solved = solved_for(model.draws_, 0, rows[others], labels[others])
        mean, variance = predicted(model.draws_, 0, solved, rows[others], rows[i : i + 1])
        found += float(-0.5 * (labels[i] - mean[0]) ** 2 / variance[0] - 0.5 * np.log(2 * np.pi * variance[0]))
    assert leave_one_out(model.draws_, rows, labels) == pytest.approx(found, rel=1e-6)


def test_labels_are_seen_through_the_warp():
    labels = np.array([1e-6, 0.3, 2.0, 80.0])
    found, log_slope = seen_through(labels, 2.0)
    np.testing.assert_allclose(SoftplusWarp(2.0).forward(found), labels, rtol=1e-9)
    above, below = (seen_through(labels * (1.0 + step), 2.0)[0] for step in (1e-6, -1e-6))
    np.testing.assert_allclose(np.exp(log_slope), (above - below) / (2e-6 * labels), rtol=1e-5)


def test_a_warp_is_taken_where_leave_one_out_says_so(table, amounts, warped):
    X, y = amounts
    assert warped.warp_ == SoftplusWarp(float(y[:40].mean()))
    assert any("Labels are seen through a warp, exponential below" in each for each in warped.report_)
    additive = BayesianProcess().fit(table[0][:40], table[1][:40] + 6.0)
    assert additive.warp_ is None
    assert not any("warp" in each for each in additive.report_)
    assert BayesianProcess(warp=None).fit(X[:40], y[:40]).warp_ is None
    assert BayesianProcess(warp="softplus").fit(table[0][:40], table[1][:40] + 6.0).warp_ is not None


def test_a_warp_pays_where_effects_multiply(amounts):
    X, y = amounts
    for start in (0, 60):
        some, rest = slice(start, start + 30), slice(120, 240)
        seen, plain = (BayesianProcess(warp=warp).fit(X[some], y[some], pool=X) for warp in ("auto", None))
        errors = [np.mean((model.predict(X[rest]) - y[rest]) ** 2) for model in (seen, plain)]
        assert errors[0] < 0.8 * errors[1]


def test_the_belief_of_a_warped_process_is_in_units_of_labels(amounts, warped):
    """Means and variances by draws of f; correlations are those of f."""
    X, _ = amounts
    belief = belief_of(warped, X[40:60], X[55:100])
    assert isinstance(belief, GaussianBelief)
    mean, sd = warped.predict(X[55:100], return_std=True)
    np.testing.assert_allclose([belief.mean, belief.variance], [mean, sd**2], rtol=1e-5)  # the jitter
    latent = prepare_averaged(warped.posteriors(), warped.standard_rows(X[55:100]), target="label", joint=False)(
        warped.standard_rows(X[40:60])
    )
    np.testing.assert_allclose(belief.rho, latent.rho, rtol=1e-9)
    drawn = np.random.default_rng(0).standard_normal(400_000)
    for m in (0, 9, 40):
        z = warped.warp_.forward(latent.mean[m] + np.sqrt(latent.variance[m]) * drawn)
        assert belief.mean[m] == pytest.approx(z.mean(), rel=0.01)
        assert belief.variance[m] == pytest.approx(z.var(), rel=0.05)


def test_batches_of_a_warped_process_are_joint(amounts, warped):
    X, _ = amounts
    joint = belief_of(warped, X[40:60], X[60:100], joint=True)
    matrix = np.stack([joint.candidate_covariance(i) for i in range(20)])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.diag(matrix), joint.candidate_variance)
    assert np.linalg.eigvalsh(matrix).min() > 0.0
    found = select(SquaredError(), joint, n=4)
    assert (np.diff(found.joint_reduction) > 0.0).all()


def test_every_loss_that_a_gaussian_belief_serves_is_served(amounts, warped):
    X, y = amounts
    belief = belief_of(warped, X[40:60], X[60:100])
    for loss in (SquaredError(ExponentialWeight(1.0 / y.std())), Pinball(0.9), Linex(0.5), ThresholdDecision(2.0)):
        assert np.isfinite(score(loss, belief)).all()


def test_a_mixture_of_a_warped_process_is_warped(amounts):
    X, y = amounts
    model = BayesianProcess(n_draws=4, belief="mixture").fit(X[:40], y[:40])
    belief = belief_of(model, X[40:50], X[60:80])
    assert isinstance(belief, WarpedGaussianBelief)
    assert isinstance(belief.latent, GaussianMixtureBelief)
    assert (score(SquaredError(), belief) > 0.0).all()


def test_labels_that_no_warp_reaches(amounts):
    X, y = amounts
    low = np.append(y[:39], 0.0)
    assert BayesianProcess().fit(X[:40], low).warp_ is None
    with pytest.raises(StakesError, match="warp='softplus' needs positive labels; the least is 0"):
        BayesianProcess(warp="softplus").fit(X[:40], low)
    model = BayesianProcess().fit(X[:40], y[:40])
    assert model.partial_fit(X[40:41], [-1.0]).warp_ is None
    assert len(model.labels_) == 41
    always = BayesianProcess(warp="softplus").fit(X[:40], y[:40])
    with pytest.raises(StakesError, match="positive labels"):
        always.partial_fit(X[40:41], [-1.0])
    assert len(always.labels_) == 40


def test_a_warped_process_goes_on_label_by_label(amounts):
    X, y = amounts
    model = BayesianProcess().fit(X[:30], y[:30], pool=X)
    for i in range(30, 40):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    anew = BayesianProcess().fit(X[:40], y[:40], pool=X)
    ratio = np.log(model.predict(X[40:]) / anew.predict(X[40:]))
    assert np.abs(ratio).mean() < 0.1


@pytest.mark.parametrize("warp", [None, "softplus"])
def test_labels_left_out_are_those_of_fits_without_them(warp):
    """Under one draw, the closed form is what the other labels say of the one that is left out."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 2))
    y = np.exp(X[:, 0]) + 0.1 * rng.random(12)
    model = BayesianProcess(n_draws=1, warp=warp).fit(X, y)
    found = model.left_out()
    assert found.labels.tolist() == y.tolist()
    for place in (0, 5, 11):
        others = np.delete(np.arange(12), place)
        solved = solved_for(model.draws_, 0, model.train_[others], model._targets()[others])
        mean, variance = predicted(model.draws_, 0, solved, model.train_[others], model.train_[[place]])
        mean, variance = model.offset_ + model.unit_ * mean, model.unit_**2 * variance
        if warp is not None:
            mean, variance = warped_moments(model.warp_, mean, variance)
        assert found.mean[place] == pytest.approx(mean[0], rel=1e-6)
        assert found.variance[place] == pytest.approx(variance[0], rel=1e-6)


def test_draws_that_saw_a_label_count_less_for_it():
    """Draws under which a label left out is improbable had seen it: they are weighed up, within limits."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 1))
    y = np.append(0.1 * rng.normal(size=19), 6.0)
    model = BayesianProcess(n_draws=16).fit(X, y)
    found = model.left_out()
    alone = [of_labels_left_out([solved]) for solved in model._solved]
    gaps = np.stack([gap for gap, _ in alone])
    density = [-0.5 * np.log(variance[19]) - 0.5 * gap[19] ** 2 / variance[19] for gap, variance in alone]
    weights = np.minimum(np.exp(-np.asarray(density)) / np.exp(-np.asarray(density)).sum(), 0.25)
    wanted = y[19] - model.unit_ * np.average(gaps[:, 19], weights=weights)
    assert found.mean[19] == pytest.approx(wanted)
