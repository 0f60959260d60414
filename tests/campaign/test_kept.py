"""What a forged file may hold as settings, labels and rankings: refused in plain words, with true hashes too."""

import copy

import pytest

from stakes import Campaign
from stakes.campaign import Journal
from stakes.exceptions import StakesError
from stakes.tabular import ModelSpec

DAMAGED = "is damaged, or was changed by another program"


@pytest.fixture
def made(path, table):
    model = ModelSpec("bayesian-ridge")
    with Campaign.create(path, table, "y", "squared-error", id_column="id", model=model) as campaign:
        campaign.ask(1)
    return path


def rewritten(path, change):
    """The file with its settings changed by a function, and all hashes made anew."""
    with Journal.open(path) as journal:
        settings = copy.deepcopy(journal.settings)
    change(settings)
    with Journal.open(path) as journal:
        journal.update_settings(**settings)


SETTINGS = [
    lambda s: s.update(brief=None),
    lambda s: s.update(brief=[]),
    lambda s: s["brief"].pop("loss"),
    lambda s: s["brief"].update(loss={"name": 5}),
    lambda s: s["brief"].update(loss={}),
    lambda s: s["brief"].update(loss={"name": "squared-error", "options": 7}),
    lambda s: s["brief"].update(loss={"name": "squared-error", "options": {"alpha": []}}),
    lambda s: s["brief"].update(loss="squared-error"),
    lambda s: s["brief"].update(model={"name": "default", "parameters": [1]}),
    lambda s: s["brief"].update(target=["y"]),
    lambda s: s["brief"].update(ignore="ab"),
    lambda s: s["brief"].update(missing=[5]),
    lambda s: s["brief"].update(classes={"a": 1}),
    lambda s: s["brief"].update(budget="much"),
    lambda s: s["brief"].update(budget=True),
    lambda s: s["brief"].update(decisions=-1),
    lambda s: s["brief"].update(random_state=-1),
    lambda s: s["brief"].update(random_state="x"),
    lambda s: s["brief"].update(more=1),
    lambda s: s.update(table=5),
    lambda s: s.update(table="a\0b"),
    lambda s: s.update(initial="x"),
    lambda s: s.update(initial=-1),
    lambda s: s.update(initial=7),
    lambda s: s.update(initial=10**30),
    lambda s: s.update(fingerprint=None),
    lambda s: s.update(fingerprint={"rows": 11, "columns": {}}),
    lambda s: s.update(fingerprint={"rows": "x", "columns": {}}),
]


@pytest.mark.parametrize("change", SETTINGS)
def test_settings_that_cannot_be_are_refused_when_a_campaign_is_opened(made, change):
    rewritten(made, change)
    with pytest.raises(StakesError, match=DAMAGED):
        Campaign.open(made)


@pytest.mark.parametrize(
    ("loss", "label", "message"),
    [
        ("squared-error", "high", "'high' is no number, and squared-error is about numbers"),
        ("squared-error", "", "'' is no number"),
        ("squared-error", "nan", "'nan' is no number"),
        ("itakura-saito", "-3", "-3 is not among"),
    ],
)
def test_a_label_that_the_loss_cannot_judge_is_found_when_a_campaign_is_opened(path, folder, loss, label, message):
    rows = [f"r{i},{i * 0.5},{1 + i / 2 if i < 6 else ''}" for i in range(12)]
    (folder / "p.csv").write_text("\n".join(["id,x,y", *rows]) + "\n")
    Campaign.create(path, folder / "p.csv", "y", loss, id_column="id").close()
    with Journal.open(path) as journal:
        journal.tell_many([("r9", label)])
    with pytest.raises(StakesError, match=DAMAGED) as caught:
        Campaign.open(path)
    assert message in str(caught.value)


RANKINGS = [
    lambda kept: None,
    lambda kept: [],
    lambda kept: {},
    lambda kept: {**kept, "labels": "six"},
    lambda kept: {**kept, "outlook": 5},
    lambda kept: {**kept, "outlook": {}},
    lambda kept: {**kept, "outlook": {**kept["outlook"], "offers": [5]}},
    lambda kept: {**kept, "outlook": {**kept["outlook"], "sentences": "ab"}},
    lambda kept: {**kept, "outlook": {**kept["outlook"], "today": {"value": "x", "error": 0.0}}},
    lambda kept: {**kept, "ranking": {**kept["ranking"], "scores": []}},
    lambda kept: {**kept, "ranking": {**kept["ranking"], "row_ids": [7] * len(kept["ranking"]["row_ids"])}},
]


@pytest.mark.parametrize("change", RANKINGS)
def test_a_ranking_that_cannot_be_one_is_refused_where_it_is_used(made, change):
    with Journal.open(made) as journal:
        journal.save_record("ranking", journal.version(), change(journal.last_record("ranking").payload))
    with Campaign.open(made) as campaign:
        for use in (lambda: campaign.status(refresh=False), campaign.check):
            with pytest.raises(StakesError, match=DAMAGED):
                use()


@pytest.mark.parametrize("change", [{"reasons": [{}]}, {"notes": [{"kind": "ties", "values": {}}]}, {"per_cost": None}])
def test_a_ranking_with_parts_that_say_nothing_is_found_by_check(made, change):
    with Journal.open(made) as journal:
        kept = journal.last_record("ranking").payload
        if "per_cost" in change:
            del kept["ranking"]["per_cost"]
        else:
            kept["ranking"].update(change)
        journal.save_record("ranking", journal.version(), kept)
    with Campaign.open(made) as campaign, pytest.raises(StakesError, match=DAMAGED):
        campaign.check()


def test_rows_that_are_not_those_of_the_table_are_refused(made, table, folder):
    with Journal.open(made) as journal:
        settings, labels = journal.settings, {f"r{i}": "1" for i in range(6)}
    forged = folder / "forged.stakes"
    Journal.create(forged, [(f"{'r' if i < 6 else 's'}{i}", None) for i in range(12)], settings, labels).close()
    with Campaign.open(forged) as campaign, pytest.raises(StakesError, match="its rows are not those of its table"):
        campaign.ask(1)
    assert table.exists()
