"""The yardstick itself on small tables: losses, splits, beliefs, densities, runs, summaries and the page."""

import json
import math
import sys

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier

from experiments.__main__ import main
from experiments.datasets import DatasetError
from experiments.labels_saved import beliefs, command, loop, rivals
from experiments.labels_saved.beliefs import BELIEFS, DEFAULT, REFERENCE, ReferenceForest, ReferenceProcess, model_of
from experiments.labels_saved.command import write_page
from experiments.labels_saved.densities import log_densities, nearest, pair_log_densities
from experiments.labels_saved.loop import LOSS, RANDOM, carry_out, keys_of, one_run, settings_of
from experiments.labels_saved.page import page
from experiments.labels_saved.problems import DRIVERS, LEAST, UNWEIGHTED, problems, rarest
from experiments.labels_saved.splits import sizes, split
from experiments.labels_saved.store import Key, Store
from experiments.labels_saved.summary import error_counts, read, summarised, write
from experiments.labels_saved.tables import Table, load
from stakes import CategoricalEnsemble, GaussianBelief, LogWarp, NormalEnsemble, VoteEnsemble, WarpedGaussianBelief
from stakes.exceptions import StakesError
from stakes.models import DefaultModel, belief_of, default_model
from stakes.simulation import Trial


def line(rows=90, noise=0.1):
    """A table of numbers that a straight line explains."""
    generator = np.random.default_rng(0)
    features = generator.normal(size=(rows, 2))
    targets = 2.0 * features[:, 0] + noise * generator.normal(size=rows)
    return Table("line", "numbers", features, targets, np.zeros(2, dtype=bool))


def blobs(rows=90, n_classes=3):
    """A table of classes, the last of which is rare."""
    generator = np.random.default_rng(0)
    targets = np.minimum(generator.integers(2 * n_classes - 1, size=rows) // 2, n_classes - 1)
    features = generator.normal(size=(rows, 3)) + 2.0 * targets[:, None]
    return Table("blobs", "classes", features, targets, np.zeros(3, dtype=bool), tuple("abcdefghijkl"[:n_classes]))


# losses


def test_losses_of_numbers_are_in_units_of_the_table():
    table = line()
    found = problems(table)
    assert tuple(found) == DRIVERS["numbers"]
    sd, belief = table.y.std(), GaussianBelief([0.0], [1e-12], [1.0], [[0.0]])  # sure of 0
    assert found["squared error"](belief, np.asarray([3.0])) == pytest.approx(9.0)
    weight = np.exp(3.0 / sd) / np.exp(table.y / sd).mean()
    assert found["exponential weight"](belief, np.asarray([3.0])) == pytest.approx(9.0 * weight)
    assert found["pinball"](belief, np.asarray([3.0])) == pytest.approx(0.9 * 3.0, rel=1e-5)
    high = np.quantile(table.y, 0.8)
    assert found["threshold"](belief, np.asarray([high + 1.0])) == 5.0  # sure to be below: waits
    surely = GaussianBelief([high + 5.0], [1e-6], [1.0], [[0.0]])
    assert found["threshold"](surely, np.asarray([high - 1.0])) == 1.0


def test_losses_of_classes_by_hand():
    table = blobs()
    rare = rarest(table)
    assert rare == np.argmin(np.bincount(table.y)) == 2
    found = problems(table)
    assert set(found) == {*DRIVERS["classes"], UNWEIGHTED["classes"]}
    first = VoteEnsemble([[0]], [[0]], 3)  # one tree that votes for the first class
    assert found["cost of a miss"](first, np.asarray([rare])) == 10.0
    assert found["cost of a miss"](first, np.asarray([1])) == 1.0
    assert found["cost of a miss"](first, np.asarray([0])) == 0.0
    assert found["log loss"](first, np.asarray([1])) == pytest.approx(-math.log(LEAST / 3))  # not infinite
    assert found["log loss"](first, np.asarray([0])) == pytest.approx(-math.log(1 - LEAST + LEAST / 3))
    unit = np.where(np.arange(3) == rare, 20.0, 1.0) @ table.shares
    assert found["weighted log loss"](first, np.asarray([rare])) == pytest.approx(-20.0 / unit * math.log(LEAST / 3))


def test_the_bayes_answer_to_a_weighted_log_loss_is_what_is_measured():
    table = blobs()
    half = CategoricalEnsemble([[[0.5, 0.3, 0.2]]], [[[0.5, 0.3, 0.2]]])
    answer = np.asarray([0.5, 0.3, 4.0]) / 4.8  # the rare class weighs 20
    unit = np.asarray([1.0, 1.0, 20.0]) @ table.shares
    wanted = -math.log((1 - LEAST) * answer[0] + LEAST / 3) / unit
    assert problems(table)["weighted log loss"](half, np.asarray([0])) == pytest.approx(wanted)


# splits


@pytest.mark.parametrize(
    ("rows", "task", "expected"),
    [
        (103, "numbers", (10, 60, 73, 20, 83)),  # slump
        (308, "numbers", (10, 60, 196, 102, 200)),
        (600, "numbers", (10, 60, 390, 200, 200)),
        (1500, "numbers", (10, 60, 400, 500, 200)),
        (178, "classes", (10, 40, 109, 59, 119)),
        (5404, "classes", (10, 40, 400, 500, 200)),
    ],
)
def test_sizes_of_a_run(rows, task, expected):
    found = sizes(line(rows) if task == "numbers" else blobs(rows))
    assert (found.start, found.bought, found.pool, found.test, found.contexts) == expected


def test_a_split_is_a_function_of_the_run_and_uses_a_row_once():
    table = line(120)
    first, again, other = split(table, 0, 20), split(table, 0, 20), split(table, 1, 20)
    for part in ("initial", "pool", "contexts", "test"):
        assert np.array_equal(getattr(first, part), getattr(again, part))
    assert not np.array_equal(first.test, other.test)
    used = np.concatenate([first.initial, first.pool, first.test])
    assert len(np.unique(used)) == len(used)
    assert np.isin(first.contexts, np.concatenate([first.initial, first.pool])).all()


@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_a_run_of_classes_starts_with_one_of_each_and_is_stratified(n_classes):
    table = blobs(400, n_classes)
    for run in range(5):
        trial = split(table, run)
        assert len(trial.initial) == max(10, n_classes)
        assert set(table.y[trial.initial]) == set(range(n_classes))
        shares = np.bincount(table.y[trial.test], minlength=n_classes) / len(trial.test)
        assert np.abs(shares - table.shares).max() < 0.03


def test_a_table_that_is_too_small_is_refused():
    with pytest.raises(StakesError, match="line has 40 rows, which is too few to buy 60 labels of"):
        sizes(line(40))


# beliefs


def test_the_reference_is_what_the_default_was_when_the_yardstick_was_made():
    """Hyperparameters and predictions, as numbers: a change of the product must not move them."""
    table = line(30, noise=0.8)
    fitted = ReferenceProcess().fit(table.standardised[:20], table.y[:20])
    found = belief_of(fitted, table.standardised[20:22], table.standardised[20:23])
    assert np.allclose(fitted.process_.kernel_.theta, FROZEN_THETA, atol=1e-4)
    assert np.allclose(found.mean, FROZEN_MEAN, atol=1e-4)
    assert np.allclose(found.variance, FROZEN_VARIANCE, atol=1e-4)


FROZEN_THETA = [0.7710765, 1.3164168, -1.1123941]
FROZEN_MEAN = [-1.1753135, 2.0838762, 0.2836624]
FROZEN_VARIANCE = [1.8355527, 1.2472190, 1.1080967]


@pytest.mark.parametrize(("rows", "n_classes", "seed"), [(12, 2, 0), (50, 3, 1), (90, 11, 7)])
def test_the_reference_for_classes_is_scikit_learns_forest_of_200_trees(rows, n_classes, seed):
    table = blobs(rows, n_classes)
    features, labels = table.standardised, table.y + 5
    ours = ReferenceForest(seed).fit(features, labels).forest_
    theirs = RandomForestClassifier(200, random_state=seed).fit(features, labels)
    for one, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        for part in ("feature", "threshold", "value", "children_left"):
            assert np.array_equal(getattr(one.tree_, part), getattr(other.tree_, part))
    assert np.array_equal(ours.predict_proba(features), theirs.predict_proba(features))
    assert np.array_equal(ours.predict(features), theirs.predict(features))
    wanted = list(range(4, n_classes + 5))  # one more than there are labels of
    beliefs_of = [belief_of(each, features[:5], features[5:], classes=wanted) for each in (ours, theirs)]
    assert np.array_equal(beliefs_of[0].contexts, beliefs_of[1].contexts)
    assert isinstance(beliefs_of[0], VoteEnsemble)


def test_the_reference_is_another_kind_of_model_for_each_task():
    found = [model_of(REFERENCE, each, split(each, 0, 10)) for each in (line(), blobs())]
    assert [type(each) for each in found] == [ReferenceProcess, ReferenceForest]


@pytest.mark.parametrize("table", [line(), blobs()], ids=["numbers", "classes"])
def test_the_default_is_that_of_the_product_and_knows_the_pool(table):
    trial = split(table, 0, 10)
    model = model_of(DEFAULT, table, trial)
    model.set_params(random_state=3)
    fitted = model.fit(trial.X[trial.initial], trial.y[trial.initial])
    assert isinstance(fitted.model_, DefaultModel)
    assert any(f"the {len(trial.pool) + len(trial.initial)} rows of the pool" in each for each in fitted.model_.report)
    assert fitted.model_.random_state == 3
    classes = list(range(len(table.classes))) or None
    assert belief_of(fitted, trial.X[trial.pool], trial.X[trial.test], classes=classes).n_contexts == len(trial.test)


def test_a_belief_that_is_none_is_refused():
    with pytest.raises(StakesError, match="belief must be one of reference, default; got 'best'"):
        model_of("best", line(), split(line(), 0, 10))


# densities


def test_the_nearest_other_row():
    assert nearest(np.asarray([[0.0], [1.0], [1.1], [5.0]])).tolist() == [1, 2, 1, 2]
    assert nearest(np.asarray([[0.0], [0.0], [9.0]]))[:2].tolist() == [1, 0]  # equal rows are others


def test_densities_of_a_gaussian_belief():
    covariance = np.asarray([[1.0, 0.6, 0.1], [0.6, 2.0, 0.3], [0.1, 0.3, 1.5]])
    mean, targets, partners = np.asarray([0.0, 1.0, -1.0]), np.asarray([0.3, 0.5, -2.0]), np.asarray([1, 0, 1])
    belief = GaussianBelief(mean, np.diag(covariance), np.diag(covariance), covariance)
    single, joint = pair_log_densities(belief, targets, partners)
    assert single == pytest.approx(stats.norm(mean, np.sqrt(np.diag(covariance))).logpdf(targets))
    for row, other in enumerate(partners):
        pair = [row, other]
        law = stats.multivariate_normal(mean[pair], covariance[np.ix_(pair, pair)])
        assert joint[row] == pytest.approx(law.logpdf(targets[pair]))


def test_densities_of_a_process_are_those_of_its_posterior():
    table = line(40)
    fitted = ReferenceProcess().fit(table.standardised[:25], table.y[:25])
    rows, targets = table.standardised[25:], table.y[25:]
    mean, covariance = fitted.process_.predict(rows, return_cov=True)  # scikit-learn's is with noise on the diagonal
    partners = nearest(rows)
    laws = [stats.multivariate_normal(mean[[i, j]], covariance[np.ix_([i, j], [i, j])]) for i, j in enumerate(partners)]
    joint = np.mean([law.logpdf(targets[[i, j]]) for (i, j), law in zip(enumerate(partners), laws, strict=True)])
    single = stats.norm(mean, np.sqrt(np.diag(covariance))).logpdf(targets).mean()
    assert log_densities(fitted, rows, targets) == pytest.approx((single, joint), rel=1e-6)


def test_densities_of_members():
    targets, partners = np.asarray([0, 1]), np.asarray([1, 0])
    members = np.asarray([[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]])  # [T, K, C]
    single, joint = pair_log_densities(CategoricalEnsemble(members, members), targets, partners)
    floor = lambda value, count: math.log((1 - LEAST) * value + LEAST / count)  # noqa: E731
    assert single.tolist() == pytest.approx([floor((0.9 + 0.2) / 2, 2), floor((0.7 + 0.4) / 2, 2)])
    assert joint.tolist() == pytest.approx([floor((0.9 * 0.7 + 0.2 * 0.4) / 2, 4)] * 2)
    votes = np.asarray([[0, 0, 1], [1, 0, 1]])
    single, joint = pair_log_densities(VoteEnsemble(votes, votes, 2), targets, partners)
    assert single.tolist() == pytest.approx([floor(2 / 3, 2)] * 2)
    assert joint.tolist() == pytest.approx([floor(1 / 3, 4)] * 2)
    mean, sd = np.asarray([[0.0, 1.0], [2.0, -1.0]]), np.asarray([[1.0, 2.0], [0.5, 1.0]])
    single, joint = pair_log_densities(NormalEnsemble(mean, sd, mean, sd), np.asarray([0.5, 0.1]), partners)
    each = stats.norm(mean, sd).pdf(np.asarray([[0.5], [0.1]]))
    assert np.exp(single) == pytest.approx(each.mean(axis=1))
    assert np.exp(joint) == pytest.approx([(each[0] * each[1]).mean()] * 2)


def test_densities_behind_a_warp():
    mean, covariance = np.asarray([0.2, -0.1]), np.asarray([[0.5, 0.2], [0.2, 0.3]])
    latent = GaussianBelief(mean, np.diag(covariance), np.diag(covariance), covariance)
    targets, partners = np.asarray([1.3, 0.6]), np.asarray([1, 0])
    single, joint = pair_log_densities(WarpedGaussianBelief(latent, LogWarp()), targets, partners)
    assert single == pytest.approx(stats.lognorm(np.sqrt(np.diag(covariance)), scale=np.exp(mean)).logpdf(targets))
    law = stats.multivariate_normal(mean, covariance)
    assert joint == pytest.approx([law.logpdf(np.log(targets)) - np.log(targets).sum()] * 2)


def test_a_belief_without_a_joint_density_is_refused():
    with pytest.raises(TypeError, match="no joint density of pairs is known for a str: register one"):
        pair_log_densities("belief", np.zeros(1), np.zeros(1, dtype=int))


# rivals


def test_k_centre_goes_for_the_farthest_row():
    rows = np.asarray([[0.0], [1.0], [2.0], [10.0], [-4.0]])
    trial = Trial(rows, np.zeros(5), initial=[0], pool=[1, 2, 3, 4], contexts=[1], test=[1])
    assert rivals.k_centre(trial, 4).tolist() == [3, 4, 2, 1]
    assert rivals.k_centre(trial, 2).tolist() == [3, 4]


def test_a_fixed_order_is_followed_whatever_the_belief():
    rule = rivals.InOrder(np.asarray([2, 5, 7]), np.asarray([7, 2, 5]))
    for left, best in ((3, 2), (2, 0), (1, 0)):
        belief = GaussianBelief([0.0], [1.0], np.ones(left), np.zeros((left, 1)))
        scores = rule(belief, None, np.random.default_rng(0))
        assert len(scores) == left
        assert np.argmax(scores) == best


def without_scikit_activeml(patch):
    """As if it was not installed, also where a test before has imported it."""
    for module in ("skactiveml", "skactiveml.classifier", "skactiveml.pool"):
        patch.setitem(sys.modules, module, None)


def test_a_rival_that_is_not_installed_is_left_out_with_the_reason(monkeypatch):
    without_scikit_activeml(monkeypatch)
    table = blobs()
    key = Key("blobs", REFERENCE, rivals.ERROR_REDUCTION)
    found = one_run(table, 0, [key], 2)
    assert not found.records
    assert "pip install scikit-activeml" in found.left_out["expected error reduction on blobs"]


def test_expected_error_reduction_chooses_from_the_pool_and_stops_in_time():
    pytest.importorskip("skactiveml", reason="scikit-activeml is not installed: one rival is not tested")
    table = blobs(60)
    trial = split(table, 0, 3)
    order = rivals.expected_error_reduction(trial, 3, 3, seconds=600.0, random_state=0)
    assert len(set(order.tolist())) == 3
    assert np.isin(order, trial.pool).all()
    with pytest.raises(rivals.NotFinishedError, match=r"a run would take about \d+ s, more than 0"):
        rivals.expected_error_reduction(trial, 3, 3, seconds=0.0, random_state=0)


# runs


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Two runs of two labels of both beliefs on two tables: the tables, their store, and what was left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beliefs, "TREES", 20)
        without_scikit_activeml(patch)
        patch.setattr(default_model, "_TREES", 20)
        store, left_out = Store(tmp_path_factory.mktemp("store")), {}
        tables = [line(), blobs()]
        for table in tables:
            for belief in BELIEFS:
                left_out |= carry_out(table, belief, store, runs=2, bought=2)
    return tables, store, left_out


def records_of(table, store):
    found = store.records(table.name, settings_of(table, 2))
    assert {*found} == {each for b in BELIEFS for each in keys_of(table, b) if each.strategy != rivals.ERROR_REDUCTION}
    return found


def test_every_strategy_is_measured_by_every_loss_of_the_table(studies):
    tables, store, _ = studies
    for table in tables:
        for key, record in records_of(table, store).items():
            assert set(record.losses) == set(problems(table))
            assert all(values.shape == (2, 3) for values in record.losses.values())
            assert record.acquired.shape == (2, 2)
            assert record.runs.tolist() == [0, 1]
            assert record.counted.tolist() == [2, 2]
            assert np.isfinite(record.log_density).all()
            assert np.isnan(record.promised).all() == (key.strategy != LOSS)
            if key.strategy == LOSS:
                assert (record.promised >= 0).all()
                assert record.promised.max() > 0


def test_all_strategies_of_a_run_start_alike_and_random_choice_is_the_same_under_every_belief(studies):
    tables, store, _ = studies
    for table in tables:
        found = records_of(table, store)
        for loss in problems(table):
            for belief in BELIEFS:
                starts = [record.losses[loss][:, 0] for key, record in found.items() if key.belief == belief]
                assert np.ptp(starts, axis=0).max() == 0.0
        drawn = [record.acquired for key, record in found.items() if key.strategy == RANDOM]
        assert np.array_equal(*drawn)


def test_a_run_alone_is_the_run_of_the_study(studies, monkeypatch):
    monkeypatch.setattr(beliefs, "TREES", 20)
    (table, _), store, _ = studies
    key = Key("line", REFERENCE, LOSS, "threshold")
    alone, whole = one_run(table, 1, [key], 2).records[key], store.load(key)
    assert np.array_equal(alone.acquired[0], whole.acquired[1])
    assert np.array_equal(alone.losses["threshold"][0], whole.losses["threshold"][1])
    assert np.array_equal(alone.joint_log_density[0], whole.joint_log_density[1])


def test_densities_are_of_the_model_that_was_measured(studies):
    (table, _), store, _ = studies
    key = Key("line", REFERENCE, RANDOM)
    trial, record = split(table, 0, 2), store.load(key)
    rows = np.concatenate([trial.initial, record.acquired[0]])
    fitted = ReferenceProcess().fit(trial.X[rows], table.y[rows])
    wanted = log_densities(fitted, trial.X[trial.test], table.y[trial.test])
    assert (record.log_density[0, 1], record.joint_log_density[0, 1]) == pytest.approx(wanted)


def test_a_study_goes_on_where_it_was(studies, monkeypatch):
    (table, _), store, _ = studies
    path = store.folder / Key("line", REFERENCE, RANDOM).path
    written = path.stat().st_mtime_ns
    assert carry_out(table, REFERENCE, store, runs=2, bought=2) == {}
    assert path.stat().st_mtime_ns == written
    asked = []
    monkeypatch.setattr(
        loop, "one_run", lambda table, run, keys, bought: asked.append((run, len(keys))) or loop.Outcome()
    )
    carry_out(table, REFERENCE, store, runs=3, bought=2)
    assert asked == [(2, len(keys_of(table, REFERENCE)))]


def test_runs_in_bulk_have_the_splits_and_the_random_rows_of_the_others(studies, tmp_path):
    bulk = pytest.importorskip("experiments.labels_saved.bulk", reason="torch is an extra")
    (table, _), store, _ = studies
    other, apart = Store(tmp_path), records_of(table, store)
    bulk.carry_out_in_bulk(table, other, runs=2, bought=2, device="cpu")
    together = other.records(table.name, settings_of(table, 2))
    assert {*together} == {key for key in apart if key.belief == DEFAULT}
    for key, record in together.items():
        assert {*record.losses} == {*apart[key].losses}
        assert all(values.shape == (2, 3) and (values >= 0).all() for values in record.losses.values())
        assert np.isfinite(record.log_density).all()
        assert np.isfinite(record.joint_log_density).all()
        if key.strategy in (RANDOM, rivals.K_CENTRE):
            assert record.acquired.tolist() == apart[key].acquired.tolist()
        if key.strategy == LOSS:
            assert (record.promised >= 0).all()
    before = {key: record.seconds.tolist() for key, record in together.items()}
    bulk.carry_out_in_bulk(table, other, runs=2, bought=2, device="cpu")
    assert {key: record.seconds.tolist() for key, record in other.records(table.name).items()} == before


def test_several_processes_give_the_same(studies, tmp_path):
    (table, _), store, _ = studies
    other = Store(tmp_path)
    carry_out(table, REFERENCE, other, runs=2, bought=2, jobs=2, strategies=[RANDOM])
    key = Key("line", REFERENCE, RANDOM)
    assert np.array_equal(other.load(key).acquired, store.load(key).acquired)
    assert np.array_equal(other.load(key).losses["pinball"], store.load(key).losses["pinball"])


def test_runs_of_other_settings_are_refused(studies):
    (table, _), store, _ = studies
    with pytest.raises(StakesError, match="has runs made by other settings"):
        carry_out(table, REFERENCE, store, runs=1, bought=4)


def test_promises_are_in_the_units_of_the_loss(studies):
    """Under a belief that is right, labels bring about what was promised: a line with little noise, squared error."""
    record = studies[1].load(Key("line", REFERENCE, LOSS, "squared error"))
    falls = record.losses["squared error"][:, 0] - record.losses["squared error"][:, -1]
    assert 0.05 < falls.sum() / record.promised.sum() < 20.0


# summaries and the page


def test_a_summary_survives_its_file(studies, tmp_path):
    tables, store, left_out = studies
    for table in tables:
        summary = summarised(table, records_of(table, store), left_out, draws=20)
        path = write(summary, tmp_path)
        json.loads(path.read_text(), parse_constant=pytest.fail)  # no Infinity, which is no JSON
    back = {each.table: each for each in read(tmp_path)}
    assert set(back) == {"line", "blobs"}
    assert back["blobs"].bought == 2
    assert back["line"].runs == 2
    for case in back["line"].cases:
        assert len(case.curve) == 3
        assert len(case.standard_errors) == 2
        assert case.share.value in (0.0, 0.5, 1.0, math.inf)
        own = case.strategy == LOSS and not case.unweighted and case.loss != UNWEIGHTED["numbers"]
        assert (case.against is not None) == own
    reference = next(c for c in back["line"].cases if c.belief == REFERENCE and c.strategy == RANDOM)
    assert reference.ratio.value == 1.0
    assert reference.p_worse == 1.0
    assert back["blobs"].left_out == left_out


def test_the_page_names_every_table_pair_and_loss(studies, tmp_path, capsys):
    tables, store, left_out = studies
    for table in tables:
        write(summarised(table, records_of(table, store), left_out, draws=20), tmp_path)
    write_page(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    for table in tables:
        assert f"({table.name})" in text  # two runs show nothing, so that neither counts
        assert all(loss.capitalize() in text for loss in DRIVERS[table.task])
    for part in ("reference, own loss", "default, unweighted", "reference, k-centre", "default, bald"):
        assert part in text
    assert "a significant fall of 10% at least is needed" in text


def test_medians_count_only_tables_on_which_random_choice_falls():
    table = line()
    flat, steep = (made_up(table, fall) for fall in (0.0, 5.0))
    found = [summarised(each, records, draws=50) for each, records in (flat, steep)]
    assert [each.counts["squared error"] for each in found] == [False, True]
    text = page(found)
    medians = text.partition("### Squared error: over all tables")[2].partition("###")[0]
    assert "| reference, own loss | 1 | 50% (50% to 50%) | 1 of 1 |" in medians
    assert "| reference, random | 1 | 100% (100% to 100%) | 1 of 1 | 1 (1 to 1) | 0 |" in medians
    shares = text.partition("### Squared error: labels needed, of those bought")[2].partition("###")[0]
    assert "| (line 0.0) |" in shares
    assert "| line 5.0 |" in shares
    assert "line 0.0, squared error: (reference, random) fell by 0%" in text


def test_what_is_worse_than_random_is_counted_also_on_flat_tables():
    found = [summarised(*made_up(line(), fall, harm=3.0), draws=50) for fall in (0.0, 5.0)]
    medians = page(found).partition("### Squared error: over all tables")[2].partition("###")[0]
    row = next(each for each in medians.splitlines() if each.startswith("| reference, own loss |"))
    assert row.endswith("| 2 |")
    assert "not reached" in row


def made_up(table, fall, harm=0.0, runs=20, bought=10):
    """A table under another name, with curves that fall by `fall` at random, and twice as fast by the own loss."""
    named = Table(f"line {fall}", table.task, table.X, table.y, table.indicator)
    noise = 1e-3 * np.random.default_rng(0).normal(size=(runs, 1))
    steps = np.arange(bought + 1) / bought

    def record(key, speed, shift):
        curves = 10.0 - fall * np.minimum(1.0, speed * steps) + shift * steps + noise
        return loop.Record(
            runs=np.arange(runs),
            losses=dict.fromkeys(problems(table), curves),
            acquired=np.zeros((runs, bought), dtype=int),
            counted=np.asarray([bought, bought]),
            log_density=np.zeros((runs, 2)),
            joint_log_density=np.zeros((runs, 2)),
            promised=np.full((runs, bought), 0.1 if key.strategy == LOSS else np.nan),
            seconds=np.zeros(runs),
        )

    keys = [Key(named.name, REFERENCE, RANDOM), *(Key(named.name, REFERENCE, LOSS, each) for each in problems(table))]
    return named, {
        key: record(key, 2.0 if key.strategy == LOSS else 1.0, harm * (key.strategy == LOSS)) for key in keys
    }


def test_the_summary_of_a_table_is_small_enough_to_keep(tmp_path):
    """32 tables are to stay below 2 MB: 60 kB each, with three beliefs and full runs."""
    named, records = made_up(line(), 5.0, runs=50, bought=60)
    some = [Key(named.name, REFERENCE, rival) for rival in loop.RIVALS["numbers"]]
    whole = {**records, **dict.fromkeys(some, records[Key(named.name, REFERENCE, RANDOM)])}
    noisy = {
        key: later(record, 0, 0.1 * np.random.default_rng(0).normal(size=(50, 61))) for key, record in whole.items()
    }
    beliefs_of = {
        Key(k.table, f"{b}{k.belief}", k.strategy, k.driver): r for b in ("", "a", "b") for k, r in noisy.items()
    }
    path = write(summarised(named, beliefs_of, draws=50), tmp_path)
    assert path.stat().st_size < 60_000


def test_standard_errors_are_kept_at_every_tenth_label():
    named, records = made_up(line(), 5.0, runs=8, bought=25)
    case = summarised(named, records, draws=10).cases[0]
    values = records[Key(named.name, REFERENCE, RANDOM)].losses[case.loss]
    assert error_counts(25) == [0, 10, 20, 25]
    wanted = values[:, [0, 10, 20, 25]].std(axis=0, ddof=1) / math.sqrt(8)
    assert case.standard_errors == pytest.approx(wanted.tolist())


def test_a_summary_needs_the_reference():
    with pytest.raises(StakesError, match=r"the yardstick of line is \(reference, random\), which has not been run"):
        summarised(line(), {})


def test_strategies_without_a_run_in_common_are_refused():
    named, records = made_up(line(), 5.0)
    moved = {key: record if key.strategy == RANDOM else later(record, 100) for key, record in records.items()}
    with pytest.raises(StakesError, match="these have no run in common"):
        summarised(named, moved, draws=10)


def later(record, by, noise=0.0):
    losses = {name: values + noise for name, values in record.losses.items()}
    return loop.Record(**{**record.__dict__, "runs": record.runs + by, "losses": losses})


# the command


def test_the_command_runs_and_writes_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(beliefs, "TREES", 20)
    monkeypatch.setattr(default_model, "_TREES", 20)
    options = ["--quick", "--runs", "1", "--labels", "2", "--strategies", "random", "loss", "--tables", "wine"]
    main(["labels_saved", *options, "--store", str(tmp_path)])
    shown = capsys.readouterr()
    assert "wine, default: 1 of 1 runs" in shown.err
    assert "| (wine) | 1 |" in shown.out
    results = tmp_path / "results"
    assert {each.name for each in results.glob("*.json")} == {"wine.json"}
    first = (results / "report.md").read_text()
    main(["labels_saved", "--report", "--results", str(results)])
    assert (results / "report.md").read_text() == first


def test_the_command_lists_tables_and_names_those_that_are_none(capsys, tmp_path):
    main(["labels_saved", "--list", "--tables", "wine", "diabetes", "--store", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.splitlines() == [str(load("wine")), str(load("diabetes"))]
    with pytest.raises(SystemExit, match="there is no table yatch; there are yacht"):
        main(["labels_saved", "--tables", "yatch"])


def test_a_page_of_nothing_and_a_table_that_cannot_be_had_are_reported(capsys, tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="there is no summary of a table in"):
        main(["labels_saved", "--report", "--results", str(tmp_path)])

    def absent(name):
        raise DatasetError(f"{name} was not found")

    monkeypatch.setattr(command, "load", absent)
    with pytest.raises(SystemExit, match="there is no summary of a table in"):
        main(["labels_saved", "--tables", "yacht", "--store", str(tmp_path)])
    assert "left out: yacht: yacht was not found" in capsys.readouterr().err


def test_settings_are_those_of_the_table_and_the_sizes():
    table = line()
    assert settings_of(table, 5) == settings_of(line(), 5)
    assert settings_of(table, 5) != settings_of(table, 6)
    assert settings_of(table, 5) != settings_of(line(noise=0.2), 5)
