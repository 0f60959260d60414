"""Lists of networks, stacked networks and functions of tensors: what they predict is the belief, to the last bit."""

import copy
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import stakes
from stakes.exceptions import StakesError
from stakes.models import EnsembleOf, belief_of
from stakes.testing import check_belief

torch = pytest.importorskip("torch", reason="networks need torch")
from torch import nn  # noqa: E402

from stakes.models.networks import DatasetPool, Dropout, NetworkEnsemble, StackedNetworks  # noqa: E402


def networks(outputs=3, count=4, dtype=torch.float64):
    torch.manual_seed(0)
    return [
        nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, outputs)).to(dtype)
        for _ in range(count)
    ]


@pytest.fixture
def rows():
    return torch.as_tensor(np.random.default_rng(3).standard_normal((40, 3, 4)))


def plain(modules, rows):
    """[n, K, C], module by module and row by row."""
    modules = [copy.deepcopy(each).eval() for each in modules]
    with torch.no_grad():
        return torch.stack([torch.cat([each(row[None]) for row in rows]) for each in modules], dim=1)


def close(got, wanted, tolerance=1e-12):
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_list_of_networks(rows, size):
    modules = networks()
    belief = belief_of(NetworkEnsemble(modules, batch_size=size), rows[:25], rows[25:])
    assert isinstance(belief, stakes.CategoricalEnsemble)
    close(belief.candidates, torch.softmax(plain(modules, rows[:25]), dim=2))
    close(belief.contexts, torch.softmax(plain(modules, rows[25:]), dim=2))
    check_belief(belief)
    torch.testing.assert_close(belief_of(modules, rows[:25], rows[25:]).contexts, belief.contexts)
    torch.testing.assert_close(belief_of(nn.ModuleList(modules), rows[:25], rows[25:]).contexts, belief.contexts)


def test_stacked_networks(rows):
    modules = networks()
    base = copy.deepcopy(modules[0]).to("meta")
    every = StackedNetworks(base, *torch.func.stack_module_state(modules))
    belief = belief_of(NetworkEnsemble(every, batch_size=9), rows[:25], rows[25:])
    close(belief.candidates, torch.softmax(plain(modules, rows[:25]), dim=2))
    with pytest.raises(ValueError, match=r"stacked, \[K, ...\].*got K of \[\]"):
        StackedNetworks(base, {}, {})
    with pytest.raises(ValueError, match=r"got K of \[2, 3\]"):
        StackedNetworks(base, {"a": torch.zeros(2, 1), "b": torch.zeros(3)}, {})


def test_a_function_that_gives_all_members(rows):
    modules = [each.eval() for each in networks()]

    def every(batch):
        return torch.stack([each(batch) for each in modules])  # [K, n, C]

    wanted = belief_of(modules, rows[:25], rows[25:])
    found = belief_of(NetworkEnsemble(every, batch_size=9), rows[:25], rows[25:])
    close(found.candidates, wanted.candidates)
    assert not found.candidates.requires_grad
    soft = NetworkEnsemble(lambda batch: torch.softmax(every(batch), dim=2), output="probabilities")
    close(belief_of(soft, rows[:25], rows[25:]).contexts, wanted.contexts)


def test_a_module_that_gives_all_members(rows):
    class Every(nn.Module):
        def __init__(self, modules):
            super().__init__()
            self.inside = nn.ModuleList(modules)

        def forward(self, batch):
            return torch.stack([each(batch) for each in self.inside])  # [K, n, C]

    module = Every(networks())
    found = belief_of(module, rows[:25], rows[25:])
    close(found.candidates, torch.softmax(plain(networks(), rows[:25]), dim=2))
    assert module.training
    assert module.inside[0][2].training


def test_a_function_of_any_ensemble_keeps_its_tensors(rows):
    modules = [each.eval() for each in networks(dtype=torch.float32)]

    def every(batch):
        return torch.softmax(torch.stack([each(batch.float()) for each in modules]), dim=2)

    belief = belief_of(EnsembleOf(every), rows[:25], rows[25:])
    assert belief.candidates.dtype == torch.float32
    close(belief.candidates, torch.softmax(plain(modules, rows[:25].float()), dim=2), 1e-6)
    assert not belief.candidates.requires_grad
    more = belief_of(EnsembleOf(every, classes="abc"), rows[:25], rows[25:], classes=list("xcba"))
    torch.testing.assert_close(more.contexts[..., [3, 2, 1]], belief.contexts)
    assert float(more.contexts[..., 0].sum()) == 0.0
    half = EnsembleOf(lambda batch: every(batch)[:, :, 0], noise_sd=0.5, member_weights=[1.0, 1.0, 2.0, 0.0])
    assert isinstance(found := belief_of(half, rows[:25], rows[25:]), stakes.NormalEnsemble)
    assert found.context_sd.dtype == torch.float32


def test_means(rows):
    modules = networks(outputs=1)
    belief = belief_of(NetworkEnsemble(modules, noise_sd=0.3), rows[:25], rows[25:])
    assert isinstance(belief, stakes.NormalEnsemble)
    close(belief.candidate_mean, plain(modules, rows[:25])[..., 0])
    assert belief.context_sd.unique().tolist() == [0.3]
    latent = belief_of(NetworkEnsemble(modules, noise_sd=0.3), rows[:25], rows[25:], target="latent")
    assert latent.context_sd.unique().tolist() == [0.0]
    check_belief(belief)
    modules = networks(outputs=2)
    vectors = belief_of(NetworkEnsemble(modules, noise_sd=torch.tensor([0.25, 0.5])), rows[:25], rows[25:])
    assert isinstance(vectors, stakes.VectorNormalEnsemble)
    close(vectors.context_mean, plain(modules, rows[25:]))
    assert vectors.candidate_sd[0, 0].tolist() == [0.25, 0.5]


def test_one_logit_is_that_of_the_second_class(rows):
    modules = networks(outputs=1)
    belief = belief_of(modules, rows[:25], rows[25:])
    close(belief.candidates[..., 1], torch.sigmoid(plain(modules, rows[:25])[..., 0]))
    assert belief.n_classes == 2


def test_classes_by_name_and_weights(rows):
    modules = networks()
    model = NetworkEnsemble(modules, classes=["a", "b", "c"], member_weights=[1, 1, 2, 0])
    belief = belief_of(model, rows[:25], rows[25:], classes=["c", "new", "a", "b"])
    close(belief.contexts[..., [2, 3, 0]], torch.softmax(plain(modules, rows[25:]), dim=2))
    assert belief.member_weights.tolist() == [0.25, 0.25, 0.5, 0.0]
    ranking = stakes.rank(model, stakes.ZeroOne(), rows, n=1)
    assert any(name in str(ranking.reasons[0]) for name in ("class 'a'", "class 'b'", "class 'c'"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_predictions_are_kept_in_the_precision_asked_for(rows, dtype):
    modules = networks()
    belief = belief_of(NetworkEnsemble(modules, dtype=dtype), rows[:25], rows[25:])
    assert belief.candidates.dtype == belief.contexts.dtype == dtype
    wanted = torch.softmax(plain(modules, rows[:25]), dim=2)
    close(belief.candidates.double(), wanted, torch.finfo(dtype).eps)
    ranking = stakes.rank(NetworkEnsemble(modules, dtype=dtype), stakes.LogLoss(), rows, n=3)
    assert ranking.indices[0] == stakes.rank(modules, stakes.LogLoss(), rows, n=1).indices[0]


def test_networks_in_half_precision_are_read_in_single(rows):
    modules = networks(dtype=torch.bfloat16)
    assert belief_of(modules, rows[:25], rows[25:]).candidates.dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", [lambda rows: rows, lambda rows: rows.numpy(), lambda rows: rows.cuda()])
def test_predictions_stay_on_the_device(rows, kind):
    modules = networks()
    wanted = belief_of(modules, rows[:25], rows[25:])
    moved = [copy.deepcopy(each).cuda() for each in modules]
    every = StackedNetworks(moved[0], *torch.func.stack_module_state(moved))
    for model in (moved, every, NetworkEnsemble(moved, device="cuda", batch_size=4)):
        belief = belief_of(model, kind(rows[:25]), kind(rows[25:]))
        assert belief.candidates.is_cuda
        close(belief.candidates.cpu(), wanted.candidates, 1e-9)
    ranked = [stakes.rank(each, stakes.LogLoss(), kind(rows), n=5, chunk=7).indices for each in (moved, modules)]
    assert ranked[0] == ranked[1]
    dropped = Dropout(nn.Sequential(moved[0], nn.Dropout(0.5)), draws=3)
    assert belief_of(dropped, kind(rows[:25]), kind(rows[25:])).contexts.is_cuda


def test_a_device_may_be_named_where_the_networks_are(rows):
    modules = networks()
    found = belief_of(NetworkEnsemble(modules, device="cpu"), rows[:25], rows[25:])
    assert torch.equal(found.candidates, belief_of(modules, rows[:25], rows[25:]).candidates)


def test_networks_are_left_as_they_were(rows):
    modules = networks()
    modules[1].eval()
    modules[2][2].eval()
    before = [(part.training, len(part._forward_hooks)) for each in modules for part in each.modules()]
    state = [copy.deepcopy(each.state_dict()) for each in modules]
    belief_of(modules, rows[:25], rows[25:])
    broken = nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 3))
    for model in (broken, Dropout(broken), [*modules, broken]):
        with pytest.raises(RuntimeError):
            belief_of(model, rows[:25], rows[25:])
    assert before == [(part.training, len(part._forward_hooks)) for each in modules for part in each.modules()]
    assert broken.training
    assert not broken[0]._forward_hooks
    for each, kept in zip(modules, state, strict=True):
        assert all(torch.equal(each.state_dict()[name], kept[name]) for name in kept)


def test_threads_that_share_a_network_do_not_change_its_mode(rows):
    modules = networks()
    wanted = belief_of(modules, rows[:25], rows[25:]).candidates
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(belief_of(modules, rows[:25], rows[25:]).candidates))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(torch.equal(each, wanted) for each in found)
    assert len(found) == 8
    assert modules[0].training


def test_the_answer_is_the_same_for_any_chunk_and_any_number_of_workers(rows):
    modules, loss = networks(), stakes.LogLoss([1.0, 1.0, 5.0])
    wanted = stakes.rank(modules, loss, rows, n=8)
    for options in ({"chunk": 1}, {"chunk": 7}, {"chunk": 7, "n_jobs": 2}):
        found = stakes.rank(modules, loss, rows, n=8, **options)
        assert found.indices == wanted.indices
        np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9)
    batch = stakes.rank(modules, loss, rows, contexts=rows[:20], n=3, batch=True)
    assert batch.indices == stakes.rank(modules, loss, rows, contexts=rows[:20], n=3, batch=True, chunk=7).indices


class Named(nn.Module):
    """Takes two arguments by name, and gives an object."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 3).double()

    def forward(self, ids, mask):
        return SimpleNamespace(logits=(self.embedding(ids) * mask[..., None]).sum(dim=1))


def tokens(texts):
    ids = torch.tensor([[ord(letter) - ord("a") for letter in text.ljust(4, "z")[:4]] for text in texts])
    return {"ids": ids, "mask": (ids != 25).double()}


def test_texts_go_through_a_tokenizer():
    torch.manual_seed(0)
    modules, texts = [Named() for _ in range(3)], ["a", "bc", "def", "ghij", "abc", "da"]
    model = NetworkEnsemble(modules, prepare=tokens, batch_size=2)
    ranking = stakes.rank(model, stakes.LogLoss(), texts, n=3)
    ready = stakes.rank(modules, stakes.LogLoss(), tokens(texts), n=3, chunk=2)
    assert ranking.indices == ready.indices
    np.testing.assert_allclose(ranking.scores, ready.scores, rtol=1e-9)
    pool = DatasetPool(list(zip(texts, range(6), strict=True)), inputs=0)
    assert stakes.rank(model, stakes.LogLoss(), pool, n=3).indices == ranking.indices
    with pytest.raises(TypeError, match="prepare=a function from some rows to tensors"):
        belief_of(modules, texts, texts)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: networks()[0], "One network alone is no ensemble"),
        (lambda: NetworkEnsemble(networks(), noise_sd=0.0), "positive and finite"),
        (lambda: NetworkEnsemble(networks(), classes="ab"), "a column for each of its classes"),
        (lambda: NetworkEnsemble(networks(), classes="abc", noise_sd=1.0), "got both"),
        (lambda: NetworkEnsemble(networks(), output="logit"), "'logits', 'probabilities' or 'normal'"),
        (lambda: NetworkEnsemble(networks(), output="probabilities"), "probabilities, none negative"),
        (lambda: NetworkEnsemble(networks(), batch_size=0), "1 or more"),
        (lambda: NetworkEnsemble(networks(), device="meta"), "on cpu: move them to meta yourself"),
        (lambda: NetworkEnsemble([]), "at least one network"),
        (lambda: [*networks(), *networks(outputs=2)], "same shape"),
        (lambda: [*networks(), copy.deepcopy(networks()[0]).to("meta")], "on one device"),
    ],
)
def test_what_is_wrong_is_reported(model, message, rows):
    with pytest.raises(ValueError, match=message):
        belief_of(model(), rows[:25], rows[25:])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: NetworkEnsemble(3), "list of networks.*got int"),
        (lambda: EnsembleOf(networks(), noise_sd=1.0), "got Sequential. Networks of torch .*NetworkEnsemble"),
        (lambda: NetworkEnsemble(networks(), dtype=np.float32), "a floating dtype of torch"),
        (lambda: NetworkEnsemble(networks(), dtype=torch.float8_e4m3fn), "of 16 bits or more; got torch.float8"),
        (lambda: [networks()[0], "no"], "all be networks.*got str"),
        (lambda: [lambda batch: 1, networks()[0]], "got function"),
        (lambda: NetworkEnsemble(lambda batch: 1), "must give a tensor.*got int"),
    ],
)
def test_what_is_no_network_is_refused(model, message, rows):
    with pytest.raises(TypeError, match=message):
        belief_of(model(), rows[:25], rows[25:])


def test_networks_that_give_no_numbers_are_named_as_the_cause(rows):
    spoilt = networks()
    with torch.no_grad():
        list(spoilt[0].parameters())[-1].fill_(torch.nan)
    with pytest.raises(ValueError, match="the members must give finite numbers; for 30 of 30 rows some give NaN"):
        belief_of(spoilt, rows, rows[:30])


class TwoHeads(nn.Module):
    """A mean and a variance for each row, given in a way that `how` says."""

    def __init__(self, how, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.mean, self.other, self.how = nn.Linear(3, 1), nn.Linear(3, 1), how

    def forward(self, rows):
        mean, log_variance = self.mean(rows), self.other(rows)
        return self.how(mean, log_variance)


HEADS = {
    "variance": lambda mean, log: {"mean": mean, "variance": log.exp()},
    "log variance": lambda mean, log: {"mean": mean[:, 0], "log_variance": log[:, 0]},
    "sd": lambda mean, log: {"mu": mean, "sigma": (log / 2).exp()},
    "distribution": lambda mean, log: torch.distributions.Normal(mean, (log / 2).exp()),
    "pair": lambda mean, log: (mean, log.exp()),
    "tensor": lambda mean, log: torch.cat([mean, log.exp()], dim=1),
}
ROWS = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("how", HEADS)
def test_networks_with_a_mean_and_a_variance(how):
    networks = [TwoHeads(HEADS[how], seed) for seed in range(4)]
    model = NetworkEnsemble(networks, output="normal") if how in ("pair", "tensor") else networks
    belief = belief_of(model, ROWS[:10], ROWS[10:])
    with torch.no_grad():
        mean = torch.stack([each.mean(ROWS)[:, 0] for each in networks], dim=1)
        sd = torch.stack([(each.other(ROWS)[:, 0] / 2).exp() for each in networks], dim=1)
    torch.testing.assert_close(belief.candidate_mean, mean[:10])
    torch.testing.assert_close(belief.candidate_sd, sd[:10])
    torch.testing.assert_close(belief.context_sd, sd[10:])
    latent = belief_of(model, ROWS[:10], ROWS[10:], target="latent")
    assert float(latent.context_sd.abs().max()) == 0.0
    assert len(stakes.rank(model, stakes.SquaredError(), ROWS, n=2)) == 2


def test_stacked_and_dropped_out_networks_with_two_heads():
    networks = [TwoHeads(HEADS["variance"], seed) for seed in range(4)]
    stacked = StackedNetworks(networks[0], *torch.func.stack_module_state(networks))
    wanted = belief_of(networks, ROWS[:10], ROWS[10:])
    torch.testing.assert_close(belief_of(stacked, ROWS[:10], ROWS[10:]).candidate_sd, wanted.candidate_sd)


@pytest.mark.parametrize(
    ("how", "options", "message"),
    [
        ("pair", {}, "output='normal'"),
        ("variance", {"noise_sd": 0.1}, "neither classes nor noise_sd"),
        ("variance", {"classes": ["a", "b"]}, "neither classes nor noise_sd"),
        ("pair", {"output": "normal", "noise_sd": 0.1}, "neither classes nor noise_sd"),
    ],
)
def test_two_heads_that_are_not_meant(how, options, message):
    with pytest.raises((TypeError, StakesError), match=message):
        belief_of(NetworkEnsemble([TwoHeads(HEADS[how], 0)], **options), ROWS, ROWS)


def test_two_heads_of_which_one_is_no_variance():
    networks = [TwoHeads(lambda mean, log: (mean, log), seed) for seed in range(3)]
    with pytest.raises(StakesError, match="If the second head is a logarithm"):
        belief_of(NetworkEnsemble(networks, output="normal"), ROWS, ROWS)
    wide = [TwoHeads(lambda mean, log: {"mean": mean.expand(-1, 2), "variance": log.exp()}, 0)]
    with pytest.raises(StakesError, match="one output at a time"):
        belief_of(wide, ROWS, ROWS)


def test_dicts():
    class Dict(nn.Module):
        def __init__(self, key):
            super().__init__()
            self.key, self.last = key, nn.Linear(3, 2)

        def forward(self, rows):
            return {self.key: self.last(rows), "features": rows}

    found = belief_of([Dict("logits") for _ in range(3)], ROWS[:10], ROWS[10:])
    assert found.candidates.shape == (10, 3, 2)
    with pytest.raises(TypeError, match=r"got a dict of 'scores', 'features'\. Wrap it in a module"):
        belief_of([Dict("scores")], ROWS, ROWS)
