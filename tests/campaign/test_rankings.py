"""Rows that are ranked and handed out: what is stale, what fails, clocks and leases."""

import math
import time
from dataclasses import replace

import pytest

from stakes import Campaign
from stakes.campaign import rankings
from stakes.campaign.rankings import LEASE, NO_MORE, STALE
from stakes.exceptions import StakesError
from stakes.ranking import Ranking
from stakes.tabular.suggestions import whys

FIELDS = {"id_column": "id"}


def note(ranking, kind):
    """The values of a note of a kind, None where there is none."""
    return next((each.values for each in ranking.notes if each.kind == kind), None)


def fails(*_):
    raise StakesError("the model is ill")


def test_a_failed_fit_keeps_the_last_ranking_and_says_so(campaign, monkeypatch):
    first = campaign.ask(1)
    campaign.tell(first.row_ids[0], 1.0)
    kept = campaign.journal.last_record("ranking").payload
    monkeypatch.setattr(rankings, "suggest_rows", fails)
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
    monkeypatch.setattr(rankings, "suggest_rows", fails)
    asked = campaign.ask(4)
    assert [math.isnan(score) for score in asked.scores] == [False, True, True, True]
    assert whys(asked)[-1] == "spread over the rows that are left"


def test_a_stale_ranking_keeps_within_the_budget(path, table, monkeypatch):
    with Campaign.create(path, table, "y", "squared-error", budget=3, **FIELDS) as campaign:
        campaign.ask(1)
        monkeypatch.setattr(rankings, "suggest_rows", fails)
        assert len(campaign.ask(5)) == 2


def test_a_model_that_fails_at_once_is_an_error(campaign, monkeypatch):
    monkeypatch.setattr(rankings, "suggest_rows", fails)
    with pytest.raises(StakesError, match="there is no ranking to go by: the model is ill"):
        campaign.ask(1)
    assert campaign.status(refresh=False).asked == 0


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_asking_for_no_number_of_rows_is_refused(campaign, n):
    with pytest.raises(StakesError, match="1 or more"):
        campaign.ask(n)


def test_a_ranking_has_as_many_rows_as_are_asked_for_and_more_are_kept(campaign):
    found = campaign.rank(2)
    kept = Ranking.from_dict(campaign.journal.last_record("ranking").payload["ranking"])
    assert len(found) == 2 < len(kept)
    assert found.row_ids == kept.row_ids[:2]
    assert found.reasons == kept.reasons[:2]


def test_rows_come_with_the_end_of_their_lease(campaign):
    asked = campaign.ask(2, lease=100.0)
    assert note(asked, LEASE)["until"] == campaign.history(asked.row_ids[0])[-1].until
    assert note(asked, STALE) is note(asked, NO_MORE) is None


def broken(*_):
    raise RuntimeError("not foreseen")


def test_a_bug_is_no_failure_of_the_model(campaign, monkeypatch):
    suggested = rankings.suggest_rows
    monkeypatch.setattr(rankings, "suggest_rows", broken)
    with pytest.raises(RuntimeError, match="not foreseen"):
        campaign.ask(1)
    monkeypatch.setattr(rankings, "suggest_rows", suggested)
    campaign.ask(1)
    monkeypatch.setattr(rankings, "suggest_rows", broken)
    assert "RuntimeError: not foreseen (a bug of stakes; please report it)" in note(campaign.ask(1), STALE)["why"]


@pytest.mark.parametrize("budget", [None, 100.0])
@pytest.mark.parametrize("lease", [1e-4, 0.02])
def test_a_lease_shorter_than_a_fit_hands_out_each_row_once_and_ends(path, table, monkeypatch, lease, budget):
    with Campaign.create(path, table, "y", "squared-error", budget=budget, **FIELDS) as campaign:
        campaign.skip(["r6", "r7", "r8", "r9"])
        suggested, fits = rankings.suggest_rows, []

        def slow(*rest):
            fits.append(1)
            assert len(fits) < 10, "asked for ever"
            time.sleep(2.0 * lease)
            found = suggested(*rest)
            ranking = found.outlook.ranking
            one = {name: getattr(ranking, name)[:1] for name in ("indices", "row_ids", "scores", "reasons")}
            first = replace(found.outlook, ranking=replace(ranking, **one))
            return found._replace(outlook=first)  # so that a second ranking is needed, when the lease has ended

        monkeypatch.setattr(rankings, "suggest_rows", slow)
        asked = campaign.ask(5, lease=lease)
        assert sorted(asked.row_ids) == ["r10", "r11"]
        assert note(asked, NO_MORE)["why"] == "no row is open; 2 are asked for"
        assert note(asked, LEASE)["until"] == campaign.history(asked.row_ids[0])[-1].until


def test_an_asker_whose_rows_others_always_take_is_warned(campaign, monkeypatch):
    lease = type(campaign.journal).lease
    monkeypatch.setattr(type(campaign.journal), "lease", lambda *_, **__: ())
    asked = campaign.ask(2)
    assert len(asked) == 0
    assert "others took the rows 5 times" in note(asked, NO_MORE)["why"]
    monkeypatch.setattr(type(campaign.journal), "lease", lease)
    assert len(campaign.ask(2)) == 2


@pytest.mark.parametrize("lease", [0.0, -1.0, math.nan, math.inf, 1e-300, 1e-12, 1e12, "7", True])
def test_a_lease_that_no_clock_can_tell_is_refused_before_a_model_is_fitted(campaign, monkeypatch, lease):
    monkeypatch.setattr(rankings, "suggest_rows", broken)
    with pytest.raises(StakesError, match="lease"):
        campaign.ask(1, lease=lease)
    assert len(campaign.history()) == 6


@pytest.mark.parametrize("jump", [-1e9, -3600.0, 3600.0, 1e9])
def test_a_clock_that_jumps_while_rows_are_asked_for_loses_nothing(campaign, monkeypatch, jump):
    suggested, real = rankings.suggest_rows, time.time

    def jumping(*rest):
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        return suggested(*rest)

    monkeypatch.setattr(rankings, "suggest_rows", jumping)
    asked = campaign.ask(3, lease=60.0)
    monkeypatch.setattr(rankings, "suggest_rows", suggested)
    assert len(set(asked.row_ids)) == 3
    monkeypatch.setattr(time, "time", real)
    assert campaign.tell(asked.row_ids[0], 1.5).new == (asked.row_ids[0],)
    campaign.journal.check()
