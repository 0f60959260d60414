"""Ensembles of regressors as beliefs, and where their noise comes from."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_friedman2
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from stakes import Mahalanobis, NormalEnsemble, SquaredError, VectorNormalEnsemble, rank, score
from stakes.models import Bootstrap, EnsembleOf, belief_of, out_of_bag_noise
from stakes.models.ensembles import label_share_of, moment_noise
from stakes.testing import check_belief

RNG = np.random.default_rng(0)
INPUTS = RNG.uniform(-3, 3, size=(600, 2))
TRUTH = np.sin(INPUTS[:, 0]) + 0.5 * INPUTS[:, 1]
LABELS = TRUTH + 0.4 * RNG.normal(size=600)
TRAIN, POOL, CONTEXTS = slice(0, 400), slice(400, 500), slice(500, 600)

MODELS = {
    "forest": RandomForestRegressor(60, min_samples_leaf=8, oob_score=True, random_state=0),
    "extra trees": ExtraTreesRegressor(60, min_samples_leaf=8, bootstrap=True, oob_score=True, random_state=0),
    "bagging": BaggingRegressor(DecisionTreeRegressor(min_samples_leaf=8), 60, oob_score=True, random_state=0),
    "bootstrap": Bootstrap(DecisionTreeRegressor(min_samples_leaf=8), 60, random_state=0),
}


def of_rows(model, count=400):
    return model.fit(INPUTS[:count], LABELS[:count])


@pytest.mark.parametrize("name", MODELS)
def test_members_average_to_what_the_model_says_and_noise_is_found(name):
    model = of_rows(MODELS[name])
    belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
    assert isinstance(belief, NormalEnsemble)
    np.testing.assert_allclose(belief.context_mean.mean(axis=1), model.predict(INPUTS[CONTEXTS]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(belief.candidate_sd, belief.candidate_sd[0, 0])
    np.testing.assert_allclose(belief.context_sd, belief.candidate_sd[0, 0])
    least = 0.2 if name == "extra trees" else 0.33  # random splits spread more than they err, which hides noise
    assert least < belief.candidate_sd[0, 0] < 0.45  # made with 0.4
    np.testing.assert_allclose(
        belief.candidate_sd[0, 0], out_of_bag_noise(model, INPUTS[TRAIN], LABELS[TRAIN]), rtol=0.15
    )
    latent = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS], target="latent")
    np.testing.assert_array_equal(latent.context_sd, 0.0)
    check_belief(belief.take(slice(0, 2), slice(0, 3)))


@pytest.mark.parametrize("name", MODELS)
def test_spread_and_noise_add_up_to_what_is_seen_on_new_rows(name):
    belief = belief_of(of_rows(MODELS[name], 80), INPUTS[POOL], INPUTS[CONTEXTS])
    believed = belief.context_mean.var(axis=1) + belief.context_sd[:, 0] ** 2
    seen = np.mean((LABELS[CONTEXTS] - belief.context_mean.mean(axis=1)) ** 2)
    assert 0.6 < believed.mean() / seen < 1.5


def test_members_that_have_not_seen_a_row_are_counted():
    train, labels = INPUTS[TRAIN], LABELS[TRAIN]
    forest = RandomForestRegressor(20, min_samples_leaf=8, max_samples=40, oob_score=True, random_state=0)
    belief = belief_of(forest.fit(train, labels), INPUTS[POOL], INPUTS[CONTEXTS])
    samples = forest.estimators_samples_
    unseen = [sum(row not in rows for rows in samples) for row in range(len(train))]
    assert np.mean(unseen) > 1.5 * 20 / np.e  # more than samples of all rows would leave out
    variance = np.mean([np.var(labels[rows], ddof=1) for rows in samples])
    spread = belief.context_mean.var(axis=1, ddof=1).mean() * np.mean(1.0 + 1.0 / np.array(unseen))
    leaves = [tree.get_n_leaves() / len(np.unique(rows)) for tree, rows in zip(forest, samples, strict=True)]
    share = np.mean(leaves)  # of a label in a prediction, as leaves have eight rows
    assert 0.05 < share < 0.2
    wanted = np.sqrt(((1.0 - forest.oob_score_) * variance - (1.0 - 0.75 * share) * spread) / (1.0 + 0.2 * share))
    np.testing.assert_allclose(belief.candidate_sd, wanted, rtol=1e-9)


def simulated(kind, n, seed):
    """A table with labels whose noise has sd 0.5, about functions of sd 1 or so."""
    rng = np.random.default_rng(seed)
    makers = {"friedman 1": (make_friedman1, 5.0), "friedman 2": (make_friedman2, 375.0)}
    if kind in makers:
        make, unit = makers[kind]
        rows, values = make(n + 50, noise=0.0, random_state=seed)
        values = values / unit
    else:
        rows = rng.uniform(-1.0, 1.0, size=(n + 50, 2))
        values = {
            "wave": np.sin(4.0 * rows[:, 0]),
            "step": 2.0 * (rows[:, 0] > 0) * (rows[:, 1] > 0),
            "nothing": 0.0 * rows[:, 0],
        }[kind]
    return rows, values + 0.5 * rng.normal(size=n + 50)


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestRegressor(60, oob_score=True, random_state=0),
        ExtraTreesRegressor(60, bootstrap=True, oob_score=True, random_state=0),
        BaggingRegressor(n_estimators=60, oob_score=True, random_state=0),
        Bootstrap(DecisionTreeRegressor(), 30, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_the_noise_of_grown_trees_is_about_right_over_twenty_tables(estimator):
    found = []
    for seed, kind in enumerate(["friedman 1", "friedman 2", "wave", "step", "nothing"] * 4):
        n = (40, 80, 140, 200)[seed // 5]
        rows, labels = simulated(kind, n, seed)
        model = clone(estimator).fit(rows[:n], labels[:n])
        found.append(float(np.ravel(belief_of(model, rows[n:], rows[n:]).candidate_sd)[0]) / 0.5)
    assert 0.85 < np.median(found) < 1.15  # it was half of it, and less
    assert min(found) > 0.6
    assert max(found) < 1.8


def test_a_members_share_of_a_single_label():
    samples = [np.arange(100)] * 2
    trees = [DecisionTreeRegressor(min_samples_leaf=leaf).fit(INPUTS[:100], LABELS[:100]) for leaf in (1, 1)]
    assert label_share_of(trees, samples) == 1.0
    near = make_pipeline(StandardScaler(), KNeighborsRegressor(4)).fit(INPUTS[:100], LABELS[:100])
    assert label_share_of([near, near], samples) == 0.25
    assert label_share_of([Ridge(), Ridge()], samples) == 0.0


def test_rankings_say_how_the_noise_was_found():
    rows, labels = INPUTS[TRAIN], LABELS[TRAIN]
    forest = RandomForestRegressor(30, oob_score=True, random_state=0).fit(rows, labels)
    for model in (forest, make_pipeline(StandardScaler(), forest).fit(rows, labels)):
        assert any("out of bag" in str(note) for note in rank(model, SquaredError(), INPUTS[POOL][:20], n=1).notes)
    model = Bootstrap(Ridge(), 5, noise_sd=0.3, random_state=0).fit(rows, labels)
    assert not any("out of bag" in str(note) for note in rank(model, SquaredError(), INPUTS[POOL][:20], n=1).notes)


def test_moments_by_hand():
    # Row 0 was left out by members 0 and 1 (means 1 and 3), row 1 by member 2 alone, row 2 by none.
    means = np.array([[1.0, 3.0, 9.0], [5.0, 5.0, 4.0], [7.0, 7.0, 7.0]])
    samples = [np.array([1, 2, 2]), np.array([1, 1, 2]), np.array([0, 2, 2])]
    noise = moment_noise([7.0, 0.0, 0.0], means, samples)
    # Residual 7 - 2, variance of (1, 3) is 2, so that 25 - 2 (1 + 1/2) = 22; row 1 shows no spread and is not used.
    np.testing.assert_allclose(noise**2, 22.0)
    noise = moment_noise([2.1, 0.0, 0.0], means, samples)
    np.testing.assert_allclose(noise**2, 0.1 * 0.1**2)  # a tenth of the mean square at the least
    one = moment_noise([0.0, 1.0], np.array([[3.0], [4.0]]), [np.array([1, 1])])
    np.testing.assert_allclose(one, 3.0)  # one member alone: all is noise
    assert np.isnan(moment_noise([0.0], np.array([[3.0]]), [np.array([0])]))
    both = moment_noise(np.array([[7.0, 2.1], [0.0, 0.0], [0.0, 0.0]]), np.stack([means, means], axis=2), samples)
    np.testing.assert_allclose(both**2, [22.0, 0.001])


def test_vectors_of_targets():
    both = np.stack([LABELS, 10.0 * LABELS], axis=1)
    forest = RandomForestRegressor(40, min_samples_leaf=8, random_state=0).fit(INPUTS[TRAIN], both[TRAIN])
    noise = out_of_bag_noise(forest, INPUTS[TRAIN], both[TRAIN])
    np.testing.assert_allclose(noise[1], 10.0 * noise[0])
    for model in (
        EnsembleOf(forest, noise_sd=noise),
        Bootstrap(Ridge(), 8, random_state=0).fit(INPUTS[TRAIN], both[TRAIN]),
    ):
        belief = belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
        assert isinstance(belief, VectorNormalEnsemble)
        assert belief.context_mean.shape[::2] == (100, 2)
        assert np.all(score(Mahalanobis(np.eye(2)), belief.take(slice(0, 3), slice(0, 5))) > 0)
    with pytest.raises(ValueError, match="only of one output"):
        belief_of(RandomForestRegressor(40, oob_score=True).fit(INPUTS[TRAIN], both[TRAIN]), INPUTS[POOL], INPUTS[POOL])


def test_lists_and_voting_take_the_noise_from_the_user():
    named = [("a", LinearRegression()), ("b", "drop"), ("c", DecisionTreeRegressor(max_depth=3))]
    model = of_rows(VotingRegressor(named, weights=[1.0, 9.0, 3.0]))
    belief = belief_of(EnsembleOf(model, noise_sd=0.4), INPUTS[POOL], INPUTS[CONTEXTS])
    np.testing.assert_allclose(belief.context_mean @ belief.member_weights, model.predict(INPUTS[CONTEXTS]), atol=1e-12)
    listed = belief_of(EnsembleOf(model.estimators_, noise_sd=0.4), INPUTS[POOL], INPUTS[CONTEXTS])
    np.testing.assert_array_equal(listed.context_mean, belief.context_mean)
    for each in (model, model.estimators_):
        with pytest.raises(ValueError, match=r"EnsembleOf\(model, noise_sd=...\)"):
            belief_of(each, INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(ValueError, match="nothing out of bag"):
        out_of_bag_noise(model, INPUTS[TRAIN], LABELS[TRAIN])


def test_pipelines():
    inner = RandomForestRegressor(30, oob_score=True, random_state=0)
    model = of_rows(make_pipeline(StandardScaler(), inner))
    scaled = model[:-1].transform(INPUTS)
    piped, plain = (
        belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS]),
        belief_of(model[-1], scaled[POOL], scaled[CONTEXTS]),
    )
    np.testing.assert_array_equal(score(SquaredError(), piped), score(SquaredError(), plain))
    noise = out_of_bag_noise(model, INPUTS[TRAIN], LABELS[TRAIN])
    np.testing.assert_array_equal(noise, out_of_bag_noise(model[-1], scaled[TRAIN], LABELS[TRAIN]))


def test_noise_that_cannot_be_known_is_asked_for():
    rows = INPUTS[POOL], INPUTS[CONTEXTS]
    with pytest.raises(ValueError, match=r"bootstrap=False.* leaves none out"):
        belief_of(of_rows(ExtraTreesRegressor(5)), *rows)
    with pytest.raises(ValueError, match="nothing out of bag"):
        out_of_bag_noise(of_rows(ExtraTreesRegressor(5)), INPUTS[TRAIN], LABELS[TRAIN])
    for model in (RandomForestRegressor(5), BaggingRegressor(n_estimators=5)):
        with pytest.raises(ValueError, match="oob_score=True"):
            belief_of(of_rows(model), *rows)
    for model in (
        BaggingRegressor(Ridge(), 60, oob_score=True, random_state=0),
        RandomForestRegressor(60, criterion="poisson", oob_score=True, random_state=0),
    ):
        model.fit(INPUTS[TRAIN], np.exp(LABELS[TRAIN]))
        with pytest.raises(ValueError, match="trees split by squared error"):
            belief_of(model, *rows)
        assert out_of_bag_noise(model, INPUTS[TRAIN], np.exp(LABELS[TRAIN])) > 0
    few = RandomForestRegressor(4, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="OOB"):
        of_rows(few, 50)
    with pytest.raises(ValueError, match="in the sample of every member"):
        belief_of(few, *rows)
    with pytest.raises(ValueError, match="positive and finite"):
        belief_of(EnsembleOf(few, noise_sd=0.0), *rows)
    with pytest.raises(ValueError, match=r"classes .* were given, but the members predict numbers"):
        belief_of(EnsembleOf(few, noise_sd=1.0), *rows, classes=[0, 1])


def test_a_constant_label_has_no_noise_to_find():
    model = Bootstrap(Ridge(), 5, random_state=0).fit(INPUTS[:20], np.ones(20))
    with pytest.raises(ValueError, match="positive and finite"):
        belief_of(model, INPUTS[POOL], INPUTS[CONTEXTS])
    with pytest.raises(ValueError, match="give noise_sd yourself"):
        out_of_bag_noise(Bootstrap(DecisionTreeRegressor(), 2).fit(INPUTS[:1], [1.0]), INPUTS[:1], [1.0])
