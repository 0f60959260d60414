"""Ranking in a process of its own, and what becomes of one that ends."""

import time

import pytest

from stakes import Campaign
from stakes.label.worker import Worker, ranked
from tests.label.label_cases import classes_campaign, numbers_campaign


def wait_for(worker):
    limit = time.monotonic() + 120
    while (found := worker.answer()) is None:
        assert time.monotonic() < limit
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("make", [classes_campaign, numbers_campaign])
def test_rows_are_ranked_and_guessed(tmp_path, make):
    with Campaign.open(make(tmp_path)) as campaign:
        found = ranked(campaign)
        record = campaign.journal.last_record("ranking")
    assert found.error is None
    assert set(found.guesses) == set(record.payload["ranking"]["row_ids"])


def test_without_labels_rows_are_spread_and_nothing_is_guessed(tmp_path):
    with Campaign.open(classes_campaign(tmp_path, labels=0)) as campaign:
        found = ranked(campaign)
    assert found == found._replace(error=None, guesses={})


def test_what_cannot_be_ranked_is_reported(tmp_path):
    with Campaign.open(classes_campaign(tmp_path, rows=14)) as campaign:
        for row in ("p012", "p013"):
            campaign.tell(row, "good")
        assert "no row is open" in ranked(campaign).error


def test_a_process_ranks_is_found_dead_and_begins_again(tmp_path):
    path = classes_campaign(tmp_path)
    worker = Worker(path, tmp_path / "parts.csv", False)
    try:
        worker.ask()
        assert worker.busy
        worker.ask()  # is under way
        assert wait_for(worker).error is None
        assert worker.answer() is None
        worker.ask()
        worker._process.kill()
        worker._process.join()
        assert "ended unexpectedly" in wait_for(worker).error
        assert not worker.busy
    finally:
        worker.stop()
    assert worker._process is None
