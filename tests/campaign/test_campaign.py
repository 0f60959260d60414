"""Campaigns from Python: what is kept, what is stale, what is never loaded."""

import json
import math
import pickle
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import Campaign
from stakes.campaign.campaign import LEASE, NO_MORE, STALE
from stakes.exceptions import StakesError
from stakes.ranking import Ranking
from stakes.tabular import LossSpec, ModelSpec
from stakes.tabular.suggestions import whys

FIELDS = {"id_column": "id"}


@pytest.fixture
def table(folder):
    path = folder / "t.csv"
    rows = [f"r{i},{i * 0.5},{(i * 7) % 5},{i / 2 + i % 3 if i < 6 else ''}" for i in range(12)]
    path.write_text("\n".join(["id,x,z,y", *rows]) + "\n")
    return path


@pytest.fixture
def campaign(path, table):
    with Campaign.create(path, table, "y", "squared-error", **FIELDS) as made:
        yield made


def note(ranking, kind):
    """The values of a note of a kind, None where there is none."""
    return next((each.values for each in ranking.notes if each.kind == kind), None)


def fails(*_):
    raise StakesError("the model is ill")


def test_what_it_was_made_with_is_kept_in_words(path, table):
    loss, model = LossSpec("linex", {"alpha": 0.5}), ModelSpec("bayesian-ridge")
    Campaign.create(path, table, "y", loss, model=model, budget=3, **FIELDS).close()
    with Campaign.open(path) as again:
        assert (again.brief.loss, again.brief.model) == (loss, model)
        assert json.loads(json.dumps(again.journal.settings))["brief"]["loss"]["name"] == "linex"


@pytest.mark.usefixtures("campaign")
def test_no_pickle_is_ever_loaded(path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a pickle was loaded")

    monkeypatch.setenv("STAKES_JIT", "0")  # numba keeps compiled code as pickles, beside the code and not in a campaign
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    with Campaign.open(path) as again:
        assert len(again.ask(2)) == 2
    assert not list(path.parent.glob("*.pkl"))


def test_a_loss_that_is_no_words_is_refused(path, table):
    with pytest.raises(StakesError, match="the loss of a table is a name, such as 'linex', a LossSpec, or a loss"):
        Campaign.create(path, table, "y", object(), **FIELDS)
    assert not path.exists()


def test_a_failed_fit_keeps_the_last_ranking_and_says_so(campaign, monkeypatch):
    first = campaign.ask(1)
    campaign.tell(first.row_ids[0], 1.0)
    kept = campaign.journal.last_record("ranking").payload
    monkeypatch.setattr(Campaign, "_suggested", fails)
    asked = campaign.ask(2)
    why = "the ranking is that of 6 labels, as the model failed since: the model is ill"
    assert note(asked, STALE)["why"] == why
    old = Ranking.from_dict(kept["ranking"])
    for row, score, reason in zip(asked.row_ids, asked.scores, asked.reasons, strict=True):
        assert score == old.scores[old.row_ids.index(row)]
        assert reason == old.reasons[old.row_ids.index(row)]
    status = campaign.status()
    assert "The last attempt failed: the model is ill" in status.stale
    assert status.outlook == kept["outlook"]


def test_a_stale_ranking_that_runs_out_is_filled_with_spread_rows(campaign, monkeypatch):
    campaign.ask(1)
    kept = campaign.journal.last_record("ranking").payload
    names = ("indices", "row_ids", "scores", "reasons")
    short = {**kept["ranking"], **{name: kept["ranking"][name][:2] for name in names}}
    campaign.journal.save_record("ranking", campaign.journal.version(), {**kept, "ranking": short})
    monkeypatch.setattr(Campaign, "_suggested", fails)
    asked = campaign.ask(4)
    assert [math.isnan(score) for score in asked.scores] == [False, True, True, True]
    assert whys(asked)[-1] == "spread over the rows that are left"


def test_a_stale_ranking_keeps_within_the_budget(path, table, monkeypatch):
    with Campaign.create(path, table, "y", "squared-error", budget=3, **FIELDS) as campaign:
        campaign.ask(1)
        monkeypatch.setattr(Campaign, "_suggested", fails)
        assert len(campaign.ask(5)) == 2


def test_a_model_that_fails_at_once_is_an_error(campaign, monkeypatch):
    monkeypatch.setattr(Campaign, "_suggested", fails)
    with pytest.raises(StakesError, match="there is no ranking to go by: the model is ill"):
        campaign.ask(1)
    assert campaign.status(refresh=False).asked == 0


def test_the_status_is_fresh_only_where_labels_have_come(campaign):
    campaign.status()
    first = campaign.journal.last_record("ranking").number
    campaign.skip(["r11"])
    campaign.status()
    assert campaign.journal.last_record("ranking").number == first
    campaign.tell("r10", 3.0)
    assert "older than the last 1 change" in campaign.status(refresh=False).stale
    assert campaign.status().stale is None


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


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_asking_for_no_number_of_rows_is_refused(campaign, n):
    with pytest.raises(StakesError, match="1 or more"):
        campaign.ask(n)


def test_labels_are_all_recorded_or_none(campaign):
    with pytest.raises(StakesError, match="row 'r9': 'x' is no number"):
        campaign.tell_many([("r8", 1.0), ("r9", "x")])
    assert campaign.status(refresh=False).labelled == 6


def test_rows_by_number_where_no_column_names_them(path, table, folder):
    with Campaign.create(path, table, "y", "squared-error", ignore=("id",)) as campaign:
        campaign.export(folder / "e.csv")
        text = (
            (folder / "e.csv")
            .read_text(encoding="utf-8-sig")
            .replace('"7","r6","3.0","2",""', '"7","r6","3.0","2","5"')
        )
        (folder / "e.csv").write_text(text)
        assert campaign.import_labels(folder / "e.csv").new == ("7",)


@given(
    value=st.floats(allow_nan=False, allow_infinity=False), form=st.sampled_from(["{!r}", "{:.17e}", " {!r} ", "{:+}"])
)
def test_a_number_told_in_another_form_is_known(value, form, tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    (folder / "t.csv").write_text("id,x,y\na,1,\nb,2,\n")
    with Campaign.create(folder / "c.stakes", folder / "t.csv", "y", "squared-error", **FIELDS) as campaign:
        campaign.tell("a", value)
        assert campaign.tell("a", form.format(value)).known == ("a",)


def test_two_askers_do_not_promise_more_than_the_budget(path, table, monkeypatch):
    with (
        Campaign.create(path, table, "y", "squared-error", id_column="id", budget=3) as mine,
        Campaign.open(path) as other,
    ):
        ranked = Campaign._ranked

        def while_another_asks(*arguments):
            monkeypatch.setattr(Campaign, "_ranked", ranked)
            other.ask(2, who="other")
            return ranked(*arguments)

        monkeypatch.setattr(Campaign, "_ranked", while_another_asks)
        asked = mine.ask(3, who="me")
        assert len(asked) == 1
        assert "the budget is spent" in note(asked, NO_MORE)["why"]
        status = mine.status()
        assert (status.asked, status.pending, status.budget_left) == (3, 3.0, 0.0)
        holders = sorted(state.who for state in mine.journal.states().values() if state.status == "asked")
        assert holders == ["me", "other", "other"]


def test_rows_come_with_the_end_of_their_lease(campaign):
    asked = campaign.ask(2, lease=100.0)
    assert note(asked, LEASE)["until"] == campaign.history(asked.row_ids[0])[-1].until
    assert note(asked, STALE) is note(asked, NO_MORE) is None


def broken(*_):
    raise RuntimeError("not foreseen")


def test_a_bug_is_no_failure_of_the_model(campaign, monkeypatch):
    suggested = Campaign._suggested
    monkeypatch.setattr(Campaign, "_suggested", broken)
    with pytest.raises(RuntimeError, match="not foreseen"):
        campaign.ask(1)
    monkeypatch.setattr(Campaign, "_suggested", suggested)
    campaign.ask(1)
    monkeypatch.setattr(Campaign, "_suggested", broken)
    assert "RuntimeError: not foreseen (a bug of stakes; please report it)" in note(campaign.ask(1), STALE)["why"]


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
            monkeypatch.setattr(Campaign, "_suggested", fails)
        asked = campaign.ask(3)
        assert len(asked) == 3
        assert second not in asked.row_ids


def test_an_expensive_row_goes_back_when_another_asker_was_quicker(path, folder):
    prices = [1, 1, 4, 1, 1, 1, 1, 1]
    settings = dict(cost_column="cost", budget=4, **FIELDS)
    with Campaign.create(path, priced(folder, prices), "y", "squared-error", **settings) as campaign:
        leased = campaign.journal.lease(["p0", "p2", "p3"], 3)
        assert campaign._within_budget(leased, None) == ["p0", "p3"]
        assert campaign.journal.states()["p2"].status == "open"


@pytest.mark.parametrize("budget", [None, 100.0])
@pytest.mark.parametrize("lease", [1e-4, 0.02])
def test_a_lease_shorter_than_a_fit_hands_out_each_row_once_and_ends(path, table, monkeypatch, lease, budget):
    with Campaign.create(path, table, "y", "squared-error", budget=budget, **FIELDS) as campaign:
        campaign.skip(["r6", "r7", "r8", "r9"])
        suggested, fits = Campaign._suggested, []

        def slow(*rest):
            fits.append(1)
            assert len(fits) < 10, "asked for ever"
            time.sleep(2.0 * lease)
            found = suggested(*rest)
            ranking = found.outlook.ranking
            one = {name: getattr(ranking, name)[:1] for name in ("indices", "row_ids", "scores", "reasons")}
            first = replace(found.outlook, ranking=replace(ranking, **one))
            return found._replace(outlook=first)  # so that a second ranking is needed, when the lease has ended

        monkeypatch.setattr(Campaign, "_suggested", slow)
        asked = campaign.ask(5, lease=lease)
        assert sorted(asked.row_ids) == ["r10", "r11"]
        assert note(asked, NO_MORE)["why"] == "no row is open; 2 are asked for"
        assert note(asked, LEASE)["until"] == campaign.history(asked.row_ids[0])[-1].until


def test_rows_of_an_ended_lease_are_paid_for_once_within_a_call(path, folder):
    settings = dict(cost_column="cost", budget=4, **FIELDS)
    with Campaign.create(path, priced(folder, [1, 1, 4, 1, 1]), "y", "squared-error", **settings) as campaign:
        leased = campaign.journal.lease(["p0", "p1", "p3", "p4"], 4, seconds=1e-4)
        time.sleep(0.01)
        more = campaign.journal.lease(["p2"], 1, seconds=1e-4)
        time.sleep(0.01)
        assert campaign._within_budget(more, None, leased) == []
        assert campaign.journal.states()["p2"].status == "open"


def test_an_asker_whose_rows_others_always_take_is_told_so(campaign, monkeypatch):
    lease = type(campaign.journal).lease
    monkeypatch.setattr(type(campaign.journal), "lease", lambda *_, **__: ())
    asked = campaign.ask(2)
    assert len(asked) == 0
    assert "others took the rows 5 times" in note(asked, NO_MORE)["why"]
    monkeypatch.setattr(type(campaign.journal), "lease", lease)
    assert len(campaign.ask(2)) == 2


@pytest.mark.parametrize("lease", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e-12, 1e12, "7", True])
def test_a_lease_that_no_clock_can_tell_is_refused_before_a_model_is_fitted(campaign, monkeypatch, lease):
    monkeypatch.setattr(Campaign, "_suggested", broken)
    with pytest.raises(StakesError, match="lease"):
        campaign.ask(1, lease=lease)
    assert len(campaign.history()) == 6


CALLS = {
    "ask": lambda campaign: campaign.ask(1),
    "tell": lambda campaign: campaign.tell("r8", 1.0),
    "skip": lambda campaign: campaign.skip(["r8"]),
    "status": lambda campaign: campaign.status(),
    "settings": lambda campaign: campaign.journal.update_settings(table="t.csv"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("seconds", [-11644473600.0, -1.0, 0.0, 253402300800.0, 1.0e12, math.inf])
def test_a_clock_without_a_date_is_named_and_nothing_is_recorded(campaign, path, monkeypatch, call, seconds):
    before = path.read_bytes()
    monkeypatch.setattr(time, "time", lambda: seconds)
    with pytest.raises(StakesError, match="the clock of this machine is wrong"):
        CALLS[call](campaign)
    assert path.read_bytes() == before


@pytest.mark.parametrize("jump", [-1e9, -3600.0, 3600.0, 1e9])
def test_a_clock_that_jumps_while_rows_are_asked_for_loses_nothing(campaign, monkeypatch, jump):
    suggested, real = Campaign._suggested, time.time

    def jumping(*rest):
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        return suggested(*rest)

    monkeypatch.setattr(Campaign, "_suggested", jumping)
    asked = campaign.ask(3, lease=60.0)
    monkeypatch.setattr(Campaign, "_suggested", suggested)
    assert len(set(asked.row_ids)) == 3
    monkeypatch.setattr(time, "time", real)
    assert campaign.tell(asked.row_ids[0], 1.5).new == (asked.row_ids[0],)
    campaign.journal.check()
