"""Campaigns from Python: what is kept, and what is never loaded."""

import json
import math
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.tabular import LossSpec, ModelSpec

FIELDS = {"id_column": "id"}


def test_what_it_was_made_with_is_kept_as_text(path, table):
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


def test_a_loss_that_is_no_loss_is_refused(path, table):
    with pytest.raises(StakesError, match="the loss of a table is a name, such as 'linex', a LossSpec, or a loss"):
        Campaign.create(path, table, "y", object(), **FIELDS)
    assert not path.exists()


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
def test_a_number_recorded_in_another_form_is_known(value, form, tmp_path_factory):
    folder = tmp_path_factory.mktemp("law")
    (folder / "t.csv").write_text("id,x,y\na,1,\nb,2,\n")
    with Campaign.create(folder / "c.stakes", folder / "t.csv", "y", "squared-error", **FIELDS) as campaign:
        campaign.tell("a", value)
        assert campaign.tell("a", form.format(value)).known == ("a",)


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


def test_the_status_is_fresh_only_where_labels_have_come(campaign):
    campaign.status()
    first = campaign.journal.last_record("ranking").number
    campaign.skip(["r11"])
    campaign.status()
    assert campaign.journal.last_record("ranking").number == first
    campaign.tell("r10", 3.0)
    assert "older than the last 1 change" in campaign.status(refresh=False).stale
    assert campaign.status().stale is None
