"""Rows of any shape, dicts of tensors, data sets and loaders: the same answer as from one tensor."""

import subprocess
import sys

import numpy as np
import pytest

import stakes
from stakes._utils.tables import check_same_columns, check_table, first_gap, n_rows, take_rows
from stakes.models import belief_of
from stakes.ranking import Pool

torch = pytest.importorskip("torch", reason="networks need torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402

from stakes.models.networks import DatasetPool, Dropout  # noqa: E402


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Dropout(nn.Sequential(nn.Conv2d(1, 3, 3), nn.Flatten(), nn.Dropout(0.5), nn.Linear(12, 3)).double(), draws=8)


@pytest.fixture(scope="module")
def images():
    return torch.as_tensor(np.random.default_rng(4).standard_normal((50, 1, 4, 4)))


@pytest.fixture(scope="module")
def wanted(model, images):
    return stakes.rank(model, stakes.LogLoss(), images, contexts=images[:30], n=6)


def readonly(images):
    array = images.numpy().copy()
    array.flags.writeable = False
    return array


def saved(images, folder):
    array = np.lib.format.open_memmap(folder / "a.npy", "w+", dtype=float, shape=tuple(images.shape))
    array[:] = images.numpy()
    return array


def in_file(images, folder):
    np.save(folder / "b.npy", images.numpy())
    return folder / "b.npy"


KINDS = {
    "file": in_file,
    "tensor": lambda images, folder: images,
    "array": lambda images, folder: readonly(images),
    "list": lambda images, folder: images.tolist(),
    "mapped": saved,
    "items": lambda images, folder: DatasetPool(list(images)),
    "pairs": lambda images, folder: DatasetPool(TensorDataset(images, torch.arange(50)), inputs=0),
    "dicts": lambda images, folder: DatasetPool([{"x": each, "y": 1} for each in images], inputs="x"),
    "loader": lambda images, folder: DatasetPool(DataLoader(TensorDataset(images), batch_size=3), inputs=0),
    "collated": lambda images, folder: DatasetPool(list(images), collate=torch.stack),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [9, 4096])
def test_the_same_answer_from_every_kind_of_pool(kind, chunk, model, images, wanted, tmp_path):
    found = stakes.rank(model, stakes.LogLoss(), KINDS[kind](images, tmp_path), contexts=images[:30], n=6, chunk=chunk)
    assert found.indices == wanted.indices
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-9)


def test_a_data_set_is_a_pool(model, images):
    pool = DatasetPool(TensorDataset(images, torch.arange(50)), inputs=0)
    assert isinstance(pool, Pool)
    assert [start for start, _ in pool.chunks(20)] == [0, 20, 40]
    assert torch.equal(torch.cat([rows for _, rows in pool.chunks(20)]), images)
    assert torch.equal(pool.take(np.array([3, 1])), images[[3, 1]])
    found = belief_of(model, pool, images[:5])
    torch.testing.assert_close(found.candidates, belief_of(model, images, images[:5]).candidates)
    ranking = stakes.rank(model, stakes.LogLoss(), pool, n=3, batch=True, max_contexts=20)
    assert ranking == stakes.rank(model, stakes.LogLoss(), images, n=3, batch=True, max_contexts=20)


def test_reading_a_data_set_draws_no_random_number(images):
    before = torch.random.get_rng_state()
    assert len(list(DatasetPool(list(images)).chunks(20))) == 3
    assert torch.equal(torch.random.get_rng_state(), before)


class Two(nn.Module):
    """Of two parts of a row, by name."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(16, 3).double()

    def forward(self, x, scale):
        return self.last(x.flatten(1)) * scale


def test_dicts_of_tensors(images):
    torch.manual_seed(0)
    models, rows = [Two() for _ in range(4)], {"x": images, "scale": torch.linspace(0, 2, 50).double()[:, None]}
    whole = stakes.rank(models, stakes.LogLoss(), rows, n=6, batch=False)
    items = [{"x": x, "scale": s, "label": 0} for x, s in zip(rows["x"], rows["scale"], strict=True)]
    pool = DatasetPool(items, inputs=["x", "scale"])
    for each in (stakes.rank(models, stakes.LogLoss(), given, n=6, chunk=7, batch=False) for given in (rows, pool)):
        assert each.indices == whole.indices
    assert n_rows(rows) == 50
    assert torch.equal(take_rows(rows, [4, 2])["x"], images[[4, 2]])
    with pytest.raises(ValueError, match=r"as many rows in each.*'x': 50, 'scale': 49"):
        stakes.rank(models, stakes.LogLoss(), {"x": images, "scale": rows["scale"][1:]}, batch=False)
    with pytest.raises(ValueError, match=r"one part at least; got \{\}"):
        stakes.rank(models, stakes.LogLoss(), {}, batch=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_is_none_is_named_by_its_row_and_place(kind, model, images, tmp_path):
    bad = images.clone()
    bad[17, 0, 2, 1] = bad[40, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"pool must hold finite numbers.*nan at row 17, at \[0, 2, 1\] there"):
        stakes.rank(model, stakes.LogLoss(), KINDS[kind](bad, tmp_path))
    assert first_gap({"ids": torch.zeros(50, 2, dtype=torch.int64), "x": bad}) == "row 17, at [0, 2, 1] there"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_tables_of_tensors_name_columns(dtype):
    table = torch.zeros(9, 3, dtype=dtype)
    table[5, 2] = torch.inf
    with pytest.raises(ValueError, match="inf at row 5, column 2"):
        check_table("pool", table, allow_nan=True)
    table[2, 1] = torch.nan
    with pytest.raises(ValueError, match="nan at row 2, column 1"):
        check_table("pool", table)


def test_contexts_have_the_shape_of_the_pool(model, images):
    with pytest.raises(ValueError, match=r"contexts must have rows of the shape \[1, 4, 4\] of the pool; got \[16\]"):
        stakes.rank(model, stakes.LogLoss(), images, contexts=images.flatten(1))
    check_same_columns(images, images[:3])


def test_models_of_columns_refuse_other_shapes(images, tmp_path):
    from sklearn.linear_model import LogisticRegression

    forest = [LogisticRegression().fit(np.eye(4), [0, 1, 0, 1])]
    for pool in (images, in_file(images, tmp_path), DatasetPool(list(images))):
        with pytest.raises(ValueError, match="must have rows and columns"):
            stakes.rank(forest, stakes.LogLoss(), pool)
    with pytest.raises(ValueError, match="must have rows and columns"):
        stakes.cold_start(images)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DatasetPool(DataLoader(list(range(9)), shuffle=True)), ValueError, "a RandomSampler mixes them"),
        (lambda: DatasetPool(Stream()), TypeError, "asked for by position.*got Stream"),
        (lambda: DatasetPool(DataLoader(Stream())), TypeError, "asked for by position.*got Stream"),
        (lambda: check_table("pool", TensorDataset(torch.zeros(2, 2))), ValueError, "a pool by .*DatasetPool"),
        (lambda: DatasetPool([(1.0, 2)]).take([0]), ValueError, "2 parts: say which is the input"),
    ],
)
def test_what_is_no_pool_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_ranking_without_networks_does_not_import_torch():
    code = (
        "import sys, numpy, stakes.models, stakes.ranking; from sklearn.linear_model import BayesianRidge;"
        "X = numpy.eye(4); model = BayesianRidge().fit(X, X[0]); stakes.rank(model, stakes.SquaredError(), X, n=1);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
