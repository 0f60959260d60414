"""Where rows and money stand: what was paid, what is promised, what the budget still covers."""

import time

import pytest

from stakes import Campaign
from stakes.campaign import rankings
from stakes.campaign.rankings import NO_MORE
from stakes.campaign.standing import within_budget
from stakes.exceptions import StakesError

FIELDS = {"id_column": "id"}


def note(ranking, kind):
    """The values of a note of a kind, None where there is none."""
    return next((each.values for each in ranking.notes if each.kind == kind), None)


def fails(*_):
    raise StakesError("the model is ill")


def test_a_label_is_paid_for_once_and_the_first_ones_are_free(campaign):
    campaign.tell("r8", 1.0)
    campaign.withdraw(["r8", "r0"])
    campaign.tell_many([("r8", 2.0), ("r0", 3.0)])
    assert campaign.status(refresh=False).spent == 2.0


def test_a_lease_that_ended_gives_the_row_back(campaign):
    (row,) = campaign.ask(1, lease=0.001).row_ids
    time.sleep(0.01)
    assert campaign.status(refresh=False).asked == 0
    with pytest.raises(StakesError, match="is open"):
        campaign.release([row])


def test_two_askers_do_not_promise_more_than_the_budget(path, table, monkeypatch):
    with (
        Campaign.create(path, table, "y", "squared-error", id_column="id", budget=3) as mine,
        Campaign.open(path) as other,
    ):
        ranked = rankings.rank_open_rows

        def while_another_asks(*arguments):
            monkeypatch.setattr(rankings, "rank_open_rows", ranked)
            other.ask(2, who="other")
            return ranked(*arguments)

        monkeypatch.setattr(rankings, "rank_open_rows", while_another_asks)
        asked = mine.ask(3, who="me")
        assert len(asked) == 1
        assert "the budget is spent" in note(asked, NO_MORE)["why"]
        status = mine.status()
        assert (status.asked, status.pending, status.budget_left) == (3, 3.0, 0.0)
        holders = sorted(state.who for state in mine.journal.states().values() if state.status == "asked")
        assert holders == ["me", "other", "other"]


def priced(folder, costs):
    """A table of as many rows without a label, after six with one."""
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},1,{i / 2 + i % 3}" for i in range(6)]
    rows += [f"p{i},{3 + i * 0.7},{(i * 3) % 5},{cost}," for i, cost in enumerate(costs)]
    (folder / "priced.csv").write_text("\n".join(["id,x,z,cost,y", *rows]) + "\n")
    return folder / "priced.csv"


def test_three_labels_at_a_tenth_fit_into_three_tenths(path, table):
    with Campaign.create(path, table, "y", "squared-error", label_cost=0.1, budget=0.3, **FIELDS) as campaign:
        assert len(campaign.ask(3)) == 3
        assert "the budget is spent" in note(campaign.ask(1), NO_MORE)["why"]
    two = path.with_name("two")
    with Campaign.create(two, table, "y", "squared-error", label_cost=0.1, budget=0.3, **FIELDS) as campaign:
        assert [len(campaign.ask(1)) for _ in range(4)] == [1, 1, 1, 0]


@pytest.mark.parametrize("stale", [False, True])
def test_an_expensive_row_is_passed_over_and_does_not_end_the_list(path, folder, monkeypatch, stale):
    costs = dict(cost_column="cost", budget=3, **FIELDS)
    with Campaign.create(path, priced(folder, [1] * 8), "y", "squared-error", **FIELDS, cost_column="cost") as free:
        second = free.ask(2).row_ids[1]
    prices = [50 if f"p{i}" == second else 1 for i in range(8)]
    with Campaign.create(path.with_name("b"), priced(folder, prices), "y", "squared-error", **costs) as campaign:
        if stale:
            campaign.status()
            monkeypatch.setattr(rankings, "suggest_rows", fails)
        asked = campaign.ask(3)
        assert len(asked) == 3
        assert second not in asked.row_ids


def test_an_expensive_row_goes_back_when_another_asker_was_quicker(path, folder):
    prices = [1, 1, 4, 1, 1, 1, 1, 1]
    settings = dict(cost_column="cost", budget=4, **FIELDS)
    with Campaign.create(path, priced(folder, prices), "y", "squared-error", **settings) as campaign:
        leased = campaign.journal.lease(["p0", "p2", "p3"], 3)
        assert within_budget(campaign._project, leased, None) == ["p0", "p3"]
        assert campaign.journal.states()["p2"].status == "open"


def test_rows_of_an_ended_lease_are_paid_for_once_within_a_call(path, folder):
    settings = dict(cost_column="cost", budget=4, **FIELDS)
    with Campaign.create(path, priced(folder, [1, 1, 4, 1, 1]), "y", "squared-error", **settings) as campaign:
        leased = campaign.journal.lease(["p0", "p1", "p3", "p4"], 4, seconds=1e-4)
        time.sleep(0.01)
        more = campaign.journal.lease(["p2"], 1, seconds=1e-4)
        time.sleep(0.01)
        assert within_budget(campaign._project, more, None, leased) == []
        assert campaign.journal.states()["p2"].status == "open"
