"""A campaign's own record of promised and delivered."""

import copy
import time

import numpy as np
import pytest

from stakes import Campaign
from stakes.campaign import Journal, promises, rankings
from stakes.campaign.kept import PROMISE, RANKING
from stakes.campaign.promises import KeptPromise, is_due, promise_kept
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.ranking import Amount, PromisedRound
from stakes.tabular import ModelSpec

ROWS = 60


def truth(row):
    """Of a line with noise."""
    place = int(row[1:])
    return round(2.0 * place / ROWS + 0.3 * np.sin(37.0 * place), 4)


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    write_csv(
        path,
        ["id", "x", "y"],
        [(f"r{i}", i, truth(f"r{i}") if i in (10, 12, 14, 16, 18) else None) for i in range(ROWS)],
    )
    return path


@pytest.fixture
def campaign(path, table):
    settings = {"id_column": "id", "model": ModelSpec("bayesian-ridge"), "decisions": 100, "label_cost": 0.01}
    with Campaign.create(path, table, "y", "squared-error", **settings) as made:
        yield made


def buy(campaign, n=4, rounds=1):
    for _ in range(rounds):
        rows = campaign.ask(n).row_ids
        campaign.tell_many([(row, truth(row)) for row in rows])


def test_rounds_are_judged_by_labels_that_neither_model_knew(campaign):
    assert campaign.promises() == ()
    buy(campaign, rounds=4)
    found = campaign.promises()
    assert [(each.labels, each.bought, each.judged, each.audited) for each in found] == [
        (5, 4, 12, False),
        (9, 4, 8, False),
        (13, 4, 4, False),
    ]
    kept = [promise_kept(campaign.path, record) for record in campaign.journal.records(PROMISE)]
    rankings = campaign.journal.records(RANKING)
    for each, promise, ranking in zip(found, kept[:-1], rankings[:-1], strict=True):
        offers = {offer["size"]: offer for offer in ranking.payload["outlook"]["offers"]}
        assert each.promised == Amount(offers[4]["worth"], offers[4]["error"])  # as nothing was shrunk yet
        assert each.raw == offers[4]["worth"] == promise.offers[3][1]
        assert each.delivered.error > 0.0


def test_what_came_is_the_change_of_the_loss_by_hand(campaign):
    buy(campaign, rounds=3)
    before, after = [promise_kept(campaign.path, record) for record in campaign.journal.records(PROMISE)][:2]
    labels = {
        i: truth(f"r{i}") for i, state in enumerate(campaign.journal.states().values()) if state.label is not None
    }
    rows = [row for row in sorted(labels) if row in before.rows and row in after.rows]
    assert len(rows) == 8
    saved = [
        (labels[row] - before.answers[before.rows.index(row)]) ** 2
        - (labels[row] - after.answers[after.rows.index(row)]) ** 2
        for row in rows
    ]
    common = sorted(set(before.rows).intersection(after.rows))
    nearest = [min(rows, key=lambda row, other=other: abs(row - other)) for other in set(common).difference(rows)]
    weights = [1 + nearest.count(row) for row in rows]
    gains = {
        row: (before.answers[before.rows.index(row)] - after.answers[after.rows.index(row)]) ** 2 for row in common
    }  # that the later model expects, as the loss is squared error
    kept = dict(zip(after.rows, after.expected, strict=True))
    assert [kept[row] for row in common] == pytest.approx([gains[row] for row in common], rel=1e-3, abs=1e-6)
    came = np.average(saved, weights=weights) / np.average([gains[row] for row in rows], weights=weights)
    found, _ = campaign.promises()
    assert found.delivered.value == pytest.approx(came * np.mean(list(gains.values())), rel=0.05)  # ties of distance


def test_bought_rows_do_not_flatter_what_came(folder):
    """In a world that the model is right about, rows are bought at its edges, where labels change most."""
    came, true, naive = [], [], []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(100, 3))
        y = (x @ generator.normal(size=3) + 0.5 * generator.normal(size=100)).round(5)
        rows = [(f"r{i}", *x[i].round(5), y[i] if i < 8 else None) for i in range(100)]
        write_csv(folder / f"t{seed}.csv", ["id", "a", "b", "c", "y"], rows)
        settings = {"id_column": "id", "model": ModelSpec("bayesian-ridge")}
        table = folder / f"t{seed}.csv"
        with Campaign.create(folder / f"{seed}.stakes", table, "y", "squared-error", **settings) as campaign:
            for _ in range(5):
                asked = campaign.ask(4).row_ids
                campaign.tell_many([(row, float(y[int(row[1:])])) for row in asked])
            first, second = (promise_kept(campaign.path, each) for each in campaign.journal.records(PROMISE)[:2])
            states = list(campaign.journal.states().values())
            losses = {
                row: (y[row] - first.answers[first.rows.index(row)]) ** 2
                - (y[row] - second.answers[second.rows.index(row)]) ** 2
                for row in set(first.rows).intersection(second.rows)
            }
            came.append(campaign.promises()[0].delivered.value)
            true.append(np.mean(list(losses.values())))
            naive.append(np.mean([saved for row, saved in losses.items() if states[row].label is not None]))
    assert np.mean(naive) > 1.4 * np.mean(true)
    assert np.mean(came) == pytest.approx(np.mean(true), rel=0.25)


def test_what_nobody_was_asked_for_was_not_promised(campaign):
    campaign.ask(1)
    campaign.tell_many([(row, truth(row)) for row in ("r1", "r30", "r50", "r55")])
    buy(campaign)
    buy(campaign)
    assert [each.labels for each in campaign.promises()] == [9]


def test_a_label_that_is_withdrawn_judges_nothing(campaign):
    buy(campaign, rounds=4)
    last = [event.row for event in campaign.history() if event.kind == "label"][-1]
    before = [each.judged for each in campaign.promises()]
    campaign.withdraw([last])
    assert [each.judged for each in campaign.promises()] == [count - 1 for count in before]


def test_an_audit_judges_alone(campaign):
    buy(campaign, rounds=1)
    rows = campaign.audit(10)
    campaign.tell_many([(row, truth(row)) for row in rows])
    buy(campaign, rounds=3)
    first, *_ = campaign.promises()
    assert (first.judged, first.audited) == (10, True)


def test_audit_weights_are_those_of_the_estimate(campaign):
    """The weighted mean of losses is what the audit itself says, but for its control variate."""
    from stakes.campaign.audits import last_audit
    from stakes.campaign.promises import _audit_weights

    campaign.audit(12)
    kept = last_audit(campaign._project)
    weights = _audit_weights(campaign.sheet, [kept])
    place = {row: i for i, row in enumerate(campaign.sheet.ids)}
    each = np.asarray([weights[place[row]] for row in kept.rows])
    plain = kept.draw.__class__(**{**vars(kept.draw), "expected": (0.0,) * 12, "mean_expected": 0.0})
    losses = np.random.default_rng(0).exponential(size=12)
    assert float(each @ losses) / kept.draw.n_rows == pytest.approx(plain.estimate(losses).mean)


def test_models_are_kept_as_labels_come_and_not_more_often():
    last = KeptPromise(100, (), 1.0, (), (), None, None)
    assert [is_due(last, labels) for labels in (100, 104, 106)] == [False, False, True]
    assert is_due(last._replace(labels=1000), 1008)
    assert not is_due(last._replace(labels=1000), 1007)
    assert is_due(last._replace(labels=10), 11)


def test_a_campaign_that_promises_too_much_is_cut_down(campaign, monkeypatch):
    """Every promise is said to come to a fifth: offers are shrunk, notes and advice say so, the raw are kept."""
    buy(campaign, rounds=2)
    before = campaign.status().outlook
    one = PromisedRound(5, 4, Amount(0.1, 0.01), 0.1, Amount(0.02, 0.001), 30, False)
    monkeypatch.setattr("stakes.campaign.promises.promised_rounds", lambda project: (one,) * 40)
    buy(campaign, rounds=1)
    status = campaign.status()
    last = promise_kept(campaign.path, campaign.journal.last_record(PROMISE))
    share = status.outlook["offers"][0]["worth"] / last.offers[0][1]
    assert share == pytest.approx(0.2, abs=0.02)
    assert last.share == pytest.approx(share)
    assert f"Savings are {share:.0%} of what the model says" in status.advice
    assert "Savings are" not in " ".join(before["sentences"])
    notes = campaign.journal.last_record(RANKING).payload["ranking"]["notes"]
    assert [note["kind"] for note in notes].count("promises kept") == 1
    records = campaign.journal.records(PROMISE)
    assert len(records) == 4


def test_classes_are_judged_too(path, folder):
    rows = [(f"r{i}", i, ("low" if i < 30 else "high") if i % 9 == 0 else None) for i in range(ROWS)]
    write_csv(folder / "t.csv", ["id", "x", "y"], rows)
    model = ModelSpec("extra-trees")
    with Campaign.create(path, folder / "t.csv", "y", "log-loss", id_column="id", model=model) as campaign:
        for _ in range(3):
            asked = campaign.ask(3).row_ids
            campaign.tell_many([(row, "low" if int(row[1:]) < 30 else "high") for row in asked])
        found, _ = campaign.promises()
        assert (found.bought, found.judged) == (3, 6)
        kept = promise_kept(campaign.path, campaign.journal.last_record(PROMISE))
        assert set(kept.losses) == {"low", "high"}
        assert min(each for each in kept.expected if each is not None) > -1e-6  # its own answers are the best it knows
        campaign.check()


FORGED = [
    lambda kept: kept.update(labels=-1),
    lambda kept: kept.update(labels="many"),
    lambda kept: kept.update(share=None),
    lambda kept: kept.update(offers=[[1, 2.0]]),
    lambda kept: kept.update(offers=7),
    lambda kept: kept["rows"].append(kept["rows"][0]),
    lambda kept: kept["answers"].pop(),
    lambda kept: kept["answers"].__setitem__(0, "x"),
    lambda kept: kept.update(answers=None),
    lambda kept: kept.update(answers=None, losses={"a": [1.0]}),
    lambda kept: kept.pop("losses"),
    lambda kept: kept.pop("expected"),
    lambda kept: kept["expected"].pop(),
    lambda kept: kept["expected"].__setitem__(0, "x"),
]


@pytest.mark.parametrize("change", FORGED)
def test_a_forged_record_is_refused(campaign, path, change):
    buy(campaign, rounds=2)
    kept = copy.deepcopy(campaign.journal.last_record(PROMISE).payload)
    change(kept)
    with Journal.open(path) as journal:
        journal.save_record(PROMISE, 0, kept)
    for call in (campaign.promises, campaign.check, campaign.status):
        with pytest.raises(StakesError, match="is damaged, or was changed by another program"):
            call()


def test_a_row_that_is_not_there_is_refused(campaign):
    buy(campaign, rounds=2)
    kept = copy.deepcopy(campaign.journal.last_record(PROMISE).payload)
    kept["rows"][0] = ROWS
    campaign.journal.save_record(PROMISE, 0, kept)
    with pytest.raises(StakesError, match="a row which there is not"):
        campaign.promises()


def test_it_takes_little_of_the_time_of_asking(path, table, monkeypatch):
    """What the record takes is less than a third of what the rest of a ranking does, with the default model."""
    spent = {"record": 0.0}

    def timed(method):
        def run(*rest):
            began = time.process_time()
            try:
                return method(*rest)
            finally:
                spent["record"] += time.process_time() - began

        return run

    for module, name in ((rankings, "_past"), (promises, "keep_promise")):
        monkeypatch.setattr(module, name, timed(getattr(module, name)))
    with Campaign.create(path, table, "y", "squared-error", id_column="id") as campaign:
        began = time.process_time()
        buy(campaign, rounds=4)
    rest = time.process_time() - began - spent["record"]
    assert 0.0 < spent["record"] < rest / 3.0
