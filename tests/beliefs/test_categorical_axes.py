"""Rows first, then members, then classes or outputs: the other order is recognised where sizes tell."""

import re

import numpy as np
import pytest

from stakes import CategoricalEnsemble, GaussianBelief, NormalEnsemble, VectorNormalEnsemble, VoteEnsemble
from stakes.exceptions import StakesError
from stakes.models import EnsembleOf, belief_of

RNG = np.random.default_rng(0)
N, M, K, C = 7, 5, 4, 3


def _probabilities(*shape):
    values = RNG.random(shape)
    return values / values.sum(axis=-1, keepdims=True)


HERE, THERE = _probabilities(K, N, C), _probabilities(K, M, C)  # members first
MEANS, TARGETS = HERE[..., 0], THERE[..., 0]
MADE = {
    "classes": lambda a, b: CategoricalEnsemble(a, b),
    "votes": lambda a, b: VoteEnsemble(np.argmax(a, axis=2), np.argmax(b, axis=2), C),
    "numbers": lambda a, b: NormalEnsemble(a[..., 0], 0.1, b[..., 0], 0.1),
    "vectors": lambda a, b: VectorNormalEnsemble(a, 0.1, b, 0.1),
}


@pytest.mark.parametrize("kind", MADE)
def test_members_first_are_refused_with_the_line_that_mends_it(kind):
    made = MADE[kind]
    line = r"give \w+\.T and" if kind in ("votes", "numbers") else r"give np\.swapaxes\(\w+, 0, 1\) and np\.swapaxes"
    with pytest.raises(StakesError, match="Rows come first") as refused:
        made(HERE, THERE)
    assert re.search(line, str(refused.value))
    belief = made(np.swapaxes(HERE, 0, 1), np.swapaxes(THERE, 0, 1))
    assert (belief.n_candidates, belief.n_contexts) == (N, M)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_one_side_alone(made):
    with pytest.raises(StakesError, match=r"axes are swapped, by their sizes: give (np\.swapaxes|\w+\.T)"):
        made(np.swapaxes(HERE, 0, 1), THERE)
    with pytest.raises(StakesError, match=r"candidate\w+ must .* axes are swapped, by their sizes: give"):
        made(HERE, np.swapaxes(THERE, 0, 1))


def test_weights_of_members_tell_where_the_pool_is_the_future():
    """[K, N, C] twice is as good a belief about K rows: the weights say which axis is which."""
    assert CategoricalEnsemble(HERE, HERE).n_candidates == K
    with pytest.raises(StakesError, match=r"the 4 on the first axis.*give np\.swapaxes\(candidates, 0, 1\)"):
        CategoricalEnsemble(HERE, HERE, member_weights=[0.1, 0.2, 0.3, 0.4])
    with pytest.raises(StakesError, match=r"give candidate_mean\.T and context_mean\.T"):
        NormalEnsemble(MEANS, 0.1, MEANS, 0.1, member_weights=np.ones(K))


def test_classes_before_members():
    rows = np.swapaxes(HERE, 0, 1)
    with pytest.raises(StakesError, match=r"give np\.swapaxes\(candidates, 1, 2\)"):
        CategoricalEnsemble(np.swapaxes(rows, 1, 2), np.swapaxes(np.swapaxes(THERE, 0, 1), 1, 2))


def test_covariances_with_the_contexts_first():
    covariance = np.zeros((N, M))
    with pytest.raises(StakesError, match=r"give covariance\.T"):
        GaussianBelief(np.zeros(M), np.ones(M), np.ones(N), covariance.T)


def test_a_function_that_gives_rows_first():
    table = np.swapaxes(HERE, 0, 1)

    def members(rows):
        return table[: len(rows)]

    with pytest.raises(StakesError, match=r"give np\.swapaxes\(x, 0, 1\)"):
        belief_of(EnsembleOf(members), np.zeros((N, 1)), np.zeros((M, 1)))
    with pytest.raises(StakesError, match=r"give x\.T"):
        belief_of(EnsembleOf(lambda rows: members(rows)[..., 0], noise_sd=0.1), np.zeros((N, 1)), np.zeros((M, 1)))


def test_a_network_that_gives_rows_first():
    torch = pytest.importorskip("torch", reason="networks need torch")
    from stakes.models.networks import NetworkEnsemble

    table = torch.as_tensor(np.swapaxes(HERE, 0, 1))
    with pytest.raises(StakesError, match=r"torch\.swapaxes\(x, 0, 1\)"):
        belief_of(NetworkEnsemble(lambda rows: table[: len(rows)]), torch.zeros(N, 1), torch.zeros(M, 1))
