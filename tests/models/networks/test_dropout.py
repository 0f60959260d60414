"""MC dropout: a member is one function, the same for every row, batch and call."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stakes
from stakes.models import belief_of

torch = pytest.importorskip("torch", reason="networks need torch")
from torch import nn  # noqa: E402

from stakes.models.networks import Dropout, NetworkEnsemble  # noqa: E402


def network(drop=None):
    torch.manual_seed(0)
    drop = nn.Dropout(0.4) if drop is None else drop
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.Dropout2d(0.3),
        nn.BatchNorm2d(4),
        nn.SELU(),
        nn.Flatten(),
        nn.Linear(16, 8),
        drop,
        nn.Linear(8, 3),
    ).double()


@pytest.fixture(scope="module")
def images():
    return torch.as_tensor(np.random.default_rng(5).standard_normal((30, 1, 4, 4)))


@given(st.lists(st.integers(0, 29), min_size=1, max_size=12), st.integers(1, 13), st.integers(0, 5))
def test_a_row_has_the_same_members_wherever_it_comes(places, size, seed):
    images = torch.as_tensor(np.random.default_rng(5).standard_normal((30, 1, 4, 4)))
    module = network()
    alone = belief_of(Dropout(module, draws=3, random_state=seed), images, images[:1])
    model = NetworkEnsemble(Dropout(module, draws=3, random_state=seed), batch_size=size)
    belief = belief_of(model, images[places], images[places[::-1]])
    torch.testing.assert_close(belief.candidates, alone.candidates[places], rtol=1e-12, atol=0)
    torch.testing.assert_close(belief.contexts, alone.candidates[places[::-1]], rtol=1e-12, atol=0)


def test_members_are_the_network_under_its_masks(images):
    """By hand: weights of what is dropped are 0, all others larger by 1 / (1 - p)."""
    module = network().eval()
    belief = belief_of(Dropout(module, draws=4, random_state=7), images[:9], images[9:12])
    for draw in range(4):
        channels, units = (
            torch.as_tensor(np.random.default_rng([7, draw, place, 0]).random(shape) >= p).double() / (1 - p)
            for place, shape, p in ((0, (4, 1, 1, 1), 0.3), (1, (8, 1), 0.4))
        )
        member = copy.deepcopy(module)
        with torch.no_grad():
            member[0].weight *= channels
            member[0].bias *= channels.flatten()
            member[5].weight *= units
            member[5].bias *= units.flatten()
            wanted = torch.softmax(member(images[:9]), dim=1)
        torch.testing.assert_close(belief.candidates[:, draw], wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_a_number_becomes_what_it_becomes_in_training(kind):
    """Kept or dropped, each with its value and its chance; and whole channels where the layer drops those."""
    rows = torch.full((5, 400, 4) if kind is nn.Dropout1d else (5, 400, 2, 2), 0.7, dtype=torch.float64)
    torch.manual_seed(0)
    wanted = kind(0.3)(rows[:1]).reshape(1, 1, 400, 4)
    model = NetworkEnsemble(Dropout(nn.Sequential(kind(0.3), nn.Flatten()), draws=2), noise_sd=1.0)
    found = belief_of(model, rows, rows).candidate_mean.reshape(5, 2, 400, 4)
    torch.testing.assert_close(found.unique(), wanted.unique(), rtol=1e-9, atol=1e-12)
    share = [float((each == each.max()).double().mean()) for each in (found, wanted)]
    assert share == pytest.approx([0.7, 0.7], abs=0.06)
    alike = [bool((each[..., :1] == each).all()) for each in (found, wanted)]
    assert alike[0] == alike[1] == (kind not in (nn.Dropout, nn.AlphaDropout))


def test_draws_differ_and_the_seed_decides(images):
    module = network()
    one, same, other = (
        belief_of(Dropout(module, random_state=seed), images[:9], images[9:]).candidates for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert float(one.std(dim=1).min()) > 1e-4
    assert one.shape == (9, 30, 3)


class Shared(nn.Module):
    """One dropout layer at two places, of the same shape; and rows of any length."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.drop, self.embedded, self.last = nn.Dropout(0.5), nn.Embedding(9, 6), nn.Linear(6, 2)

    def forward(self, ids):
        embedded = self.drop(self.embedded(ids)) * (ids > 0)[..., None]  # 0 is padding
        return self.last(self.drop(self.drop(embedded.sum(dim=1))))


def test_a_layer_that_is_called_twice_has_two_masks():
    kept = 0.5**2 * 6  # of 6 units, those that both masks keep
    ones = nn.Sequential(drop := nn.Dropout(0.5), drop)
    belief = belief_of(NetworkEnsemble(Dropout(ones, draws=2000), noise_sd=1.0), torch.ones(3, 6), torch.ones(1, 6))
    assert float((belief.candidate_mean > 0).double().sum(dim=2).mean()) == pytest.approx(kept, abs=0.1)


def test_longer_texts_have_the_masks_of_shorter_ones():
    module = Shared()
    short = torch.tensor([[1, 2, 3], [4, 5, 0]])
    long = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [1, 2, 3, 4, 5]])
    model = Dropout(module, draws=6)
    torch.testing.assert_close(
        belief_of(model, short, long).candidates, belief_of(model, long[:2], short).candidates, rtol=1e-6, atol=1e-7
    )


def test_the_ranking_is_the_same_for_any_chunk(images):
    model = Dropout(network(), draws=8)
    wanted = stakes.rank(model, stakes.LogLoss(), images, n=5)
    assert stakes.rank(model, stakes.LogLoss(), images, n=5, chunk=4).indices == wanted.indices


def test_the_network_is_left_as_it_was(images):
    module = network()
    module[2].eval()
    before = [(part.training, len(part._forward_hooks)) for part in module.modules()]
    belief_of(Dropout(module), images[:9], images[9:])
    with pytest.raises(RuntimeError):
        belief_of(Dropout(module), images[:9, :, :3], images[9:])
    assert before == [(part.training, len(part._forward_hooks)) for part in module.modules()]
    assert int(module[2].num_batches_tracked) == 0


class Hidden(nn.Module):
    """Has a dropout layer, but does not call it."""

    def __init__(self):
        super().__init__()
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(4, 2).double()

    def forward(self, rows):
        return self.last(rows)


class Called(nn.Module):
    """Calls dropout as a function."""

    def __init__(self, function=nn.functional.dropout, p=0.5, layer=None):
        super().__init__()
        self.function, self.p, self.last = function, p, nn.Linear(4, 2).double()
        self.layer = layer or nn.Identity()

    def forward(self, rows):
        dropout = self.function
        return self.last(self.layer(dropout(rows, self.p, self.training)))


def test_dropout_that_is_called_as_a_function(images):
    """As a layer: the same masks for all rows and calls, each draw another."""
    rows = images[:, 0, 0]
    module = Called().eval()
    belief = belief_of(Dropout(module, draws=12, random_state=3), rows[:9], rows[9:])
    assert belief.candidates.std(dim=1).min() > 0
    again = belief_of(Dropout(module, draws=12, random_state=3), rows[:4], rows[9:])
    torch.testing.assert_close(again.candidates, belief.candidates[:4])
    layered = nn.Sequential(nn.Dropout(0.5), module.last)
    masks = [np.random.default_rng([3, k, 2**16, 0]).random(4) >= 0.5 for k in range(12)]
    kept = torch.as_tensor(np.stack(masks))
    with torch.no_grad():
        logits = torch.stack([module.last(rows[:9] * each / 0.5) for each in kept], dim=1)
    torch.testing.assert_close(belief.candidates, torch.softmax(logits, dim=2))
    spread = belief_of(Dropout(layered, draws=300), rows[:9], rows[9:]).candidates.std(dim=1)
    called = belief_of(Dropout(module, draws=300), rows[:9], rows[9:]).candidates.std(dim=1)
    torch.testing.assert_close(called, spread, rtol=0.15, atol=0.01)
    assert not nn.functional.dropout(rows, 0.5, False).isnan().any()  # outside all is as it was
    torch.testing.assert_close(module(rows), module.last(rows))


def test_layers_and_functions_together(images):
    rows = images[:, 0, 0]
    module = Called(layer=nn.Dropout(0.5))
    both = belief_of(Dropout(module, draws=400), rows[:9], rows[9:]).candidates.std(dim=1)
    one = belief_of(Dropout(Called(p=0.0, layer=nn.Dropout(0.5)), draws=400), rows[:9], rows[9:])
    assert one.candidates.std(dim=1).min() > 0
    assert both.mean() > 0


@pytest.mark.parametrize("function", [nn.functional.alpha_dropout, nn.functional.dropout1d])
def test_kin_of_dropout_as_functions(function, images):
    rows = images[:, 0, 0]

    class Kin(Called):
        def forward(self, rows):
            dropout = self.function
            shaped = rows[:, :, None] if dropout is nn.functional.dropout1d else rows
            return self.last(dropout(shaped, self.p, self.training).reshape(rows.shape))

    belief = belief_of(Dropout(Kin(function), draws=20), rows[:9], rows[9:])
    assert belief.candidates.std(dim=1).min() > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dropout(nn.Linear(4, 2)), "Linear has no dropout layer"),
        (lambda: Dropout(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.0))), "Sequential has no dropout layer"),
        (lambda: Dropout(Hidden()), "no dropout of Hidden is called"),
        (lambda: Dropout(Called(p=0.0)), "no dropout of Called is called"),
        (lambda: Dropout(Hidden(), draws=0), "draws must be a whole number, 1 or more; got 0"),
        (lambda: Dropout(Hidden(), random_state=-1), "random_state must be 0 or more; got -1"),
        (lambda: Dropout(nn.Sequential(nn.Flatten(0), nn.Dropout(0.5))), r"given \[84\] for 21 rows: the rows must be"),
    ],
)
def test_what_does_not_vary_is_refused(make, message, images):
    with pytest.raises(ValueError, match=message):
        belief_of(make(), images[:9, 0, 0], images[9:, 0, 0])


def test_what_is_no_network_has_no_dropout():
    with pytest.raises(TypeError, match="got int"):
        Dropout(3)
