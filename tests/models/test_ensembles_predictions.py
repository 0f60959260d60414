"""Tables of members' predictions, of any array library, as beliefs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stakes
from stakes.models.ensembles import prepare_table
from stakes.testing import check_belief

RNG = np.random.default_rng(0)
POOL, CONTEXTS = RNG.dirichlet(np.ones(3), size=(5, 4)), RNG.dirichlet(np.ones(3), size=(6, 4))  # [n, K, C]


@given(st.permutations(["a", "b", "c", "new", "other"]), st.sampled_from([3, 4, 5]))
def test_columns_are_known_by_their_classes_in_any_order(names, count):
    asked = [name for name in names if name in "abc" or name in names[:count]]
    belief = prepare_table(CONTEXTS, classes=asked, known=["a", "b", "c"])(POOL)
    places = [asked.index(name) for name in "abc"]
    np.testing.assert_array_equal(belief.candidates[..., places], POOL)
    assert not np.delete(belief.contexts, places, axis=2).any()
    assert belief.n_classes == len(asked)


def test_every_library_keeps_its_arrays(xp, host):
    pool, contexts = xp.asarray(POOL), xp.asarray(CONTEXTS)
    belief = prepare_table(contexts, known=range(3), weights=np.array([1.0, 1.0, 2.0, 0.0]))(pool)
    assert type(belief.candidates) is type(pool)
    np.testing.assert_array_equal(host(belief.member_weights), [0.25, 0.25, 0.5, 0.0])
    check_belief(belief)
    more = prepare_table(contexts, classes=[2, 9, 1, 0], known=range(3))(pool)
    np.testing.assert_array_equal(host(more.candidates)[..., [3, 2, 0]], POOL)


def test_whole_numbers_are_means_with_noise_that_is_none(xp):
    table = xp.asarray(np.arange(12).reshape(3, 4))
    belief = prepare_table(table, noise_sd=0.3)(table)
    assert isinstance(belief, stakes.NormalEnsemble)
    assert float(belief.context_sd[0, 0]) == 0.3
    latent = prepare_table(table, target="latent", noise_sd=0.3)(table)
    assert float(latent.context_sd[0, 0]) == 0.0


def test_members_that_are_sure_are_votes(xp):
    sure = xp.asarray(np.eye(3)[np.array([[0, 1], [2, 2]])])
    assert isinstance(prepare_table(sure, known=range(3))(sure), stakes.VoteEnsemble)
    soft = xp.asarray(CONTEXTS[:, :2])
    assert isinstance(prepare_table(soft, known=range(3))(sure), stakes.CategoricalEnsemble)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"known": range(2)}, "a column for each of its classes"),
        ({"known": range(3), "noise_sd": 1.0}, "noise_sd is for real targets"),
        ({"known": range(3), "target": "latent"}, "no latent target"),
        ({"known": range(3), "classes": [0, 1]}, r"not among the classes given: \[2\]"),
        ({"noise_sd": 1.0, "classes": [0, 1]}, "the members predict numbers"),
        ({}, "the noise of a label has to come from elsewhere"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        prepare_table(CONTEXTS, **options)(POOL)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_half_precision_of_predictions_does_not_round_weights_or_scores(kind):
    torch = pytest.importorskip("torch", reason="torch is an extra")
    half = torch.full((2, 3, 2), 0.5, dtype=getattr(torch, kind))
    belief = prepare_table(half, known=range(2), weights=[0.1, 0.3, 0.6])(half)
    np.testing.assert_allclose(belief.member_weights, [0.1, 0.3, 0.6], rtol=1e-6)
    means = torch.asarray(POOL[..., 0]).to(half.dtype)
    of_means = prepare_table(means, noise_sd=0.1)(means)
    assert stakes.score(stakes.SquaredError(), of_means).dtype == torch.float32
