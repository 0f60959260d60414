"""Audits in a campaign: labels that test the model, kept apart until they are used on purpose."""

import hashlib
import json

import numpy as np
import pytest

from stakes import Campaign
from stakes.campaign import Journal, audits
from stakes.campaign.standing import standing_of
from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, ModelSpec
from tests.campaign.journal_processes import create, start

ROWS = 40


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},{truth(i) if i < 8 else ''}" for i in range(ROWS)]
    path.write_text("\n".join(["id,x,z,y", *rows]) + "\n")
    return path


def truth(i):
    return i / 2 + i % 3


@pytest.fixture
def campaign(path, table):
    model = ModelSpec("bayesian-ridge")
    with Campaign.create(path, table, "y", "squared-error", id_column="id", model=model) as made:
        yield made


def tell_truth(campaign, rows):
    return campaign.tell_many([(row, truth(int(row[1:]))) for row in rows])


def unchanged(path, refused, match, *arguments, **options):
    """A refusal that leaves the file as it was."""
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(StakesError, match=match):
        refused(*arguments, **options)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_the_life_of_an_audit(campaign):
    rows = campaign.audit(10, who="ann")
    assert len(set(rows)) == 10
    status = campaign.status(refresh=False)
    assert (status.testing, status.tested, status.open, status.labelled, status.pending) == (10, 0, 22, 8, 10.0)
    assert status.audit["text"] == "An audit of the model with 8 labels is under way: 0 of 10 rows are done."
    others = campaign.ask(22).row_ids
    assert not set(others) & set(rows)
    campaign.release(others)
    assert tell_truth(campaign, rows).new == rows
    status = campaign.status()
    assert (status.testing, status.tested, status.labelled, status.outlook_labels) == (0, 10, 8, 8)
    assert status.audit["text"].startswith("Your loss is ")
    assert status.audit["text"].endswith("audited with 10 labels (of the model with 8 labels).")
    found = campaign.read_audit()
    assert f"Your loss is {found} (of the model with 8 labels)." == status.audit["text"]
    assert found.low <= found.mean <= found.high
    assert campaign.status().tested == 10
    assert campaign.read_audit(use_for_training=True) == found
    assert (campaign.status().labelled, campaign.status().tested, campaign.status().outlook_labels) == (18, 0, 18)
    assert campaign.read_audit() == found  # of the model as it was, whatever it has learnt since
    campaign.check()


def test_all_rows_leave_nothing_open(campaign):
    rows = campaign.audit(1000)
    assert len(rows) == ROWS - 8
    tell_truth(campaign, rows)
    kept = campaign.journal.last_record("audit").payload
    losses = [(truth(int(row[1:])) - answer) ** 2 for row, answer in zip(kept["rows"], kept["answers"], strict=True)]
    found = campaign.read_audit()
    assert found.low == found.high == pytest.approx(np.mean(losses))


def test_the_model_does_not_learn_from_tests(campaign, path, table):
    """The ranking with tested rows is that of a campaign in which they are skipped."""
    rows = campaign.audit(5)
    tell_truth(campaign, rows)
    with Campaign.create(path.with_name("other"), table, "y", "squared-error", id_column="id",
                         model=ModelSpec("bayesian-ridge")) as other:  # fmt: skip
        other.skip(rows)
        assert other.ask(3).row_ids == campaign.ask(3).row_ids


def test_one_audit_at_a_time(campaign, path):
    rows = campaign.audit(5)
    unchanged(path, campaign.audit, "an audit is under way: 5 of its rows", 3)
    tell_truth(campaign, rows[:3])
    campaign.skip(rows[3:])
    assert not set(campaign.audit(3)) & set(rows)


def test_two_at_once_draw_one_audit(campaign, path):
    """The second finds the rows of the first in the way, whichever rows it has drawn."""
    with Campaign.open(path) as other:
        drawn = audits.draw_test_rows(other._project, standing_of(other._project), 4)
        campaign.audit(4)
        assert not other.journal.test(drawn[0], "audit", drawn[1])
        assert len(other.journal.records("audit")) == 1


def test_rows_that_others_take_meanwhile_are_drawn_anew(campaign, path, monkeypatch):
    drawn = []

    def slowly(project, now, n, original=audits.draw_test_rows):
        found = original(project, now, n)
        if not drawn:
            with Campaign.open(path) as other:
                other.tell(found[0][0], 1.0)
        drawn.append(found[0])
        return found

    monkeypatch.setattr(audits, "draw_test_rows", slowly)
    rows = campaign.audit(4)
    assert len(drawn) == 2
    assert drawn[0][0] not in rows


def test_it_is_read_in_the_order_of_the_draw(campaign, path):
    rows = campaign.audit(6)
    unchanged(path, campaign.read_audit, f"the first row of the audit, {rows[0]!r}, has no label yet")
    tell_truth(campaign, [rows[0], rows[1], rows[3]])
    assert campaign.read_audit().labels == 2
    states = campaign.journal.states()
    assert [states[row].status for row in rows] == ["tested", "tested", "open", "tested", "open", "open"]
    assert campaign.read_audit().labels == 2


def test_a_row_that_cannot_be_labelled_is_left_out(campaign):
    rows = campaign.audit(6)
    campaign.skip([rows[2]])
    tell_truth(campaign, [row for row in rows if row != rows[2]])
    found = campaign.read_audit()
    assert (found.labels, found.rows) == (5, ROWS - 8 - 1)


def test_labels_are_replaced_and_withdrawn_as_others(campaign, path):
    rows = campaign.audit(3)
    tell_truth(campaign, rows)
    first = campaign.read_audit()
    assert tell_truth(campaign, rows).known == rows
    unchanged(path, campaign.tell, "has the label .* and .* was reported", rows[0], 999.0)
    assert campaign.tell(rows[0], 999.0, replace=True).replaced == (rows[0],)
    assert campaign.read_audit().mean > first.mean
    campaign.withdraw([rows[0]])
    assert campaign.journal.state(rows[0]).status == "open"


def test_a_label_that_cannot_be_one_loses_nothing(campaign, path):
    rows = campaign.audit(3)
    unchanged(path, campaign.tell_many, "Nothing was recorded", [(rows[0], 1.0), (rows[1], "much")])
    assert campaign.status(refresh=False).testing == 3


@pytest.mark.parametrize("n", [0, -1, True, 2.5, "3"])
def test_refused_numbers(campaign, path, n):
    unchanged(path, campaign.audit, "number of rows to draw", n)


def test_there_must_be_something_to_read_and_to_test(campaign, path):
    unchanged(path, campaign.read_audit, "there is no audit to read")
    campaign.skip([f"r{i}" for i in range(8, ROWS)])
    unchanged(path, campaign.audit, "no row is open")


def test_a_model_is_needed(folder):
    (folder / "t.csv").write_text("id,x,y\n" + "".join(f"r{i},{i},\n" for i in range(9)))
    with Campaign.create(folder / "c", folder / "t.csv", "y", "squared-error", id_column="id") as campaign:
        unchanged(folder / "c", campaign.audit, "no model to test")


def test_the_budget_pays_for_tests(path, table):
    with Campaign.create(path, table, "y", "squared-error", id_column="id", budget=6) as campaign:
        unchanged(path, campaign.audit, "cost 7, and 6 of the budget is left", 7)
        rows = campaign.audit(4)
        assert campaign.status(refresh=False).budget_left == 2
        tell_truth(campaign, rows)
        assert campaign.status(refresh=False).spent == 4
        campaign.read_audit(use_for_training=True)
        assert campaign.status(refresh=False).spent == 4  # once


@pytest.fixture
def of_classes(folder):
    kinds = ["bus", "van"]
    lines = [f"r{i},{i * 0.5},{(i * 7) % 5},{kinds[i % 2] if i < 12 else ''}" for i in range(ROWS)]
    (folder / "k.csv").write_text("\n".join(["id,x,z,kind", *lines]) + "\n")
    costs = LossSpec("cost-matrix", cost_matrix={"bus": {"bus": 0.0, "van": 10.0}, "van": {"bus": 1.0, "van": 0.0}})
    with Campaign.create(folder / "k", folder / "k.csv", "kind", costs, id_column="id") as made:
        yield made


def test_classes_lose_by_their_costs(of_classes):
    rows = of_classes.audit(1000)
    kept = of_classes.journal.last_record("audit").payload
    labels = {row: ["bus", "van"][int(row[1:]) % 2] for row in rows}
    of_classes.tell_many(labels.items())
    losses = [kept["losses"][place][labels[row]] for place, row in enumerate(kept["rows"])]
    assert set(losses) <= {0.0, 1.0, 10.0}
    assert of_classes.read_audit().mean == pytest.approx(np.mean(losses))


def test_a_class_that_the_model_did_not_know(folder):
    lines = [f"r{i},{i * 0.5},{['bus', 'van'][i % 2] if i < 12 else ''}" for i in range(ROWS)]
    (folder / "k.csv").write_text("\n".join(["id,x,kind", *lines]) + "\n")
    with Campaign.create(folder / "k", folder / "k.csv", "kind", "zero-one", id_column="id") as campaign:
        rows = campaign.audit(2)
        campaign.tell(rows[0], "bus")
        campaign.tell(rows[1], "tram", new_class=True)
        with pytest.raises(StakesError, match="did not know"):
            campaign.read_audit()
        assert "cannot be read" in campaign.status(refresh=False).audit["text"]


def test_an_infinite_loss_is_kept(folder):
    """A forest of the user's own gives probability 0, whose log loss is infinite."""
    lines = [f"r{i},{i},{['a', 'b'][i >= 6] if i < 12 else ''}" for i in range(30)]
    (folder / "k.csv").write_text("\n".join(["id,x,kind", *lines]) + "\n")
    model = ModelSpec("sklearn.ensemble:RandomForestClassifier", {"n_estimators": 10, "random_state": 0})
    with Campaign.create(folder / "k", folder / "k.csv", "kind", "log-loss", id_column="id", model=model) as campaign:
        rows = campaign.audit(3)
        campaign.tell_many([(row, "a") for row in rows])  # all are far on the side of b
        assert campaign.read_audit().mean == float("inf")
        status = campaign.status(refresh=False).audit
        assert status["mean"] is None
        json.dumps(status, allow_nan=False)


def test_answers_that_are_distributions_are_not_kept(path, table):
    with Campaign.create(path, table, "y", "crps", id_column="id", model=ModelSpec("bayesian-ridge")) as campaign:
        unchanged(path, campaign.audit, "by stakes.audit", 3)


FORGED = [
    lambda kept: kept.pop("draw"),
    lambda kept: kept.update(rows=["r20", "r20", "r21"]),
    lambda kept: kept.update(rows=kept["rows"][:2]),
    lambda kept: kept.update(answers=["a", "b", "c"]),
    lambda kept: kept.update(answers=None),
    lambda kept: kept.update(labels=-1),
    lambda kept: kept["draw"].update(probabilities=[0.0, 0.5, 0.5]),
    lambda kept: kept["draw"].update(n_rows=2),
    lambda kept: kept["draw"].update(second="much"),
    lambda kept: kept["draw"].update(more=1),
    lambda kept: kept.update(rows=["r20", "r21", "nobody"]),
]


@pytest.mark.parametrize("change", FORGED)
def test_a_forged_audit_is_refused(campaign, path, change):
    campaign.audit(3)
    kept = campaign.journal.last_record("audit").payload
    change(kept)
    campaign.journal.save_record("audit", campaign.journal.version(), kept)
    campaign.close()
    with Campaign.open(path) as again:
        for refused in (again.read_audit, again.status):
            with pytest.raises(StakesError, match="is damaged"):
                refused()


TEST = """
import itertools
for number in itertools.count(int(arguments[0])):
    rows = [f"{3 * number + each}" for each in range(3)]
    assert journal.test(rows, "audit", {"rows": rows})
    journal.tell_many([(row, f"label of {row}") for row in rows])
    say(number)
"""


def test_a_kill_leaves_a_draw_whole_or_not_there(path):
    """The rows of a draw and its record come together, whenever the process is killed."""
    create(path, 3000)
    done = 0
    for wait in range(8):
        with start(TEST, path, done) as process:
            for _ in range(wait + 1):
                process.stdout.readline()
            process.kill()
        with Journal.open(path) as journal:
            journal.check()
            records = [set(record.payload["rows"]) for record in journal.records("audit")]
            drawn = {row for row, state in journal.states().items() if state.status in ("testing", "tested")}
            assert drawn == set().union(*records)
            assert sum(map(len, records)) == len(drawn)
            waiting = [row for row, state in journal.states().items() if state.status == "testing"]
            if waiting:
                journal.tell_many([(row, f"label of {row}") for row in waiting])
            assert len(records) >= done
            done = len(records)
    assert done >= 8
