"""Settings that are changed in a campaign that runs: kept, refused, seen by others, paid at what labels cost then."""

import hashlib

import pytest

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.tabular import ModelSpec


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    rows = [f"r{i},{i * 0.5},{1 + i % 3},{i / 2 + i % 3 if i < 6 else ''}" for i in range(20)]
    path.write_text("\n".join(["id,x,z,y", *rows]) + "\n")
    return path


def made(path, table, **more):
    return Campaign.create(path, table, "y", "squared-error", id_column="id", model=ModelSpec("bayesian-ridge"), **more)


def test_settings_are_kept_with_what_they_were(path, table):
    with made(path, table, decisions=100, label_cost=1.0) as campaign:
        campaign.change_settings(decisions=500, budget=12)
        campaign.change_settings(label_cost=2)
    with Campaign.open(path) as again:
        assert (again.brief.decisions, again.brief.label_cost, again.brief.budget) == (500, 2, 12)
        assert [new for _, new in again.settings_changes()] == [{"decisions": 500, "budget": 12}, {"label_cost": 2}]
        assert again.journal.settings["brief"]["decisions"] == 100  # what it began with
        again.change_settings(budget=None)
        assert again.status(refresh=False).budget is None
        again.check()


def test_labels_cost_what_they_cost_then(path, table):
    with made(path, table, label_cost=1.0, budget=20) as campaign:
        campaign.tell_many([("r6", 1.0), ("r7", 2.0)])
        campaign.change_settings(label_cost=3)
        campaign.tell("r8", 3.0)
        campaign.journal.lease(["r9"], 1)
        status = campaign.status(refresh=False)
        assert (status.spent, status.pending, status.budget_left) == (5.0, 3.0, 12.0)


def test_a_cost_that_was_not_known_holds_for_all_labels(path, table):
    with made(path, table) as campaign:
        campaign.tell_many([("r6", 1.0), ("r7", 2.0)])
        assert campaign.status(refresh=False).spent == 2.0  # labels
        campaign.change_settings(label_cost=2.5)
        assert campaign.status(refresh=False).spent == 5.0


def test_advice_follows_the_settings(path, table):
    """What is worth its cost for a million decisions is not for one, and a ranking from before is known to be old."""
    with made(path, table) as campaign:
        assert "is not known" in campaign.status().advice
        campaign.change_settings(decisions=1e6, label_cost=0.001)
        assert "older than the last change of settings" in campaign.status(refresh=False).stale
        before = campaign.status()
        assert before.stale is None
        assert before.outlook["offers"][0]["decisions"] == 1e6
        campaign.change_settings(decisions=1, label_cost=1e6)
        after = campaign.status()
        assert after.outlook["offers"][0]["cost"] == 1e6
        assert before.advice != after.advice


def test_others_see_it_at_once(path, table):
    with made(path, table, budget=100) as ours, Campaign.open(path) as theirs:
        assert theirs.brief.budget == 100
        ours.change_settings(budget=1)
        assert len(theirs.ask(5)) == 1
        theirs.change_settings(decisions=7)
        ours.change_settings(label_cost=2)  # both are kept
        assert ours.status(refresh=False).budget == 1
        assert (ours.brief.decisions, ours.brief.label_cost) == (7, 2)


def test_the_same_once_more_changes_nothing(path, table):
    with made(path, table, budget=100) as campaign:
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        campaign.change_settings(budget=100)
        campaign.change_settings()
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"budget": -1}, "budget must be a positive number"),
        ({"decisions": 0}, "decisions must be a positive number"),
        ({"decisions": True}, "decisions must be a positive number"),
        ({"label_cost": float("inf")}, "label_cost must be a positive number"),
        ({"label_cost": "much"}, "label_cost must be a positive number"),
        ({"loss": 3}, "'loss' cannot be set"),
        ({"budget": 5, "model": 1}, "'model' cannot be set"),
    ],
)
def test_refused_and_nothing_recorded(path, table, changes, match):
    with made(path, table, budget=100) as campaign:
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        with pytest.raises(StakesError, match=match):
            campaign.change_settings(**changes)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before
        assert campaign.brief.budget == 100


def test_rows_with_costs_of_their_own_keep_them(path, table):
    with made(path, table, cost_column="z", budget=50) as campaign:
        campaign.tell("r7", 2.0)
        assert campaign.status(refresh=False).spent == 2.0  # 1 + 7 % 3
        with pytest.raises(StakesError):
            campaign.change_settings(label_cost=2)


@pytest.mark.parametrize("forged", [{"budget": "much"}, {"decisions": -1}, {"label_cost": True}])
def test_forged_settings_are_damage(path, table, forged):
    with made(path, table) as campaign:
        campaign.journal.update_settings(**forged)
    with pytest.raises(StakesError, match="is damaged"):
        Campaign.open(path)
