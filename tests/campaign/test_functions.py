"""A Python function as an annotator: which rows it gets, what it costs, what becomes of what it does not know."""

import pytest

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.files import write_csv
from stakes.tabular import ModelSpec


@pytest.fixture
def campaign(folder):
    rows = [(f"r{x}", x, "blue", "cat" if x < 3 else "dog" if 10 < x < 14 else None) for x in range(16)]
    write_csv(folder / "t.csv", ["id", "x", "colour", "kind"], rows)
    settings = {"id_column": "id", "model": ModelSpec("random-forest"), "label_cost": 2.0}
    with Campaign.create(folder / "c.stakes", folder / "t.csv", "kind", "zero-one", **settings) as made:
        yield made


def test_it_sees_cells_and_classes_and_its_labels_are_priced_opinions(campaign):
    seen = []

    def rule(row, cells, classes):
        seen.append((row, dict(cells), tuple(classes)))
        return "cat" if float(cells["x"]) < 7 else "dog"

    recorded = campaign.label_with(rule, 3, name="rule", price=0.5)
    assert len(recorded.new) == 3
    assert all(set(cells) == {"x", "colour"} and classes == ("cat", "dog") for _, cells, classes in seen)
    assert campaign.status(refresh=False).spent == 3.0
    assert campaign.annotators() == {"rule": 0.5}
    assert {each.annotator for each in campaign.opinions()} == {None, "rule"}


def test_what_it_does_not_know_is_for_people(campaign):
    assert not any(campaign.label_with(lambda *_: None, 2, name="rule"))
    assert campaign.status(refresh=False).unsure == 2


@pytest.mark.parametrize(("answer", "message"), [("owl", "owl"), (1 / 2, "0.5"), ([], r"\[\]")])
def test_what_is_no_label_is_refused_and_the_rows_go_back(campaign, answer, message):
    answers = iter(["cat", answer])
    with pytest.raises(StakesError, match=f"'rule' failed on row .*{message}.*1 of 3 rows, is recorded"):
        campaign.label_with(lambda *_: next(answers), 3, name="rule")
    states = campaign.journal.states().values()
    assert sum(state.status == "asked" for state in states) == 0
    assert sum(each.annotator == "rule" for each in campaign.opinions()) == 1


def test_people_tell_how_reliable_it_is(campaign):
    def rule(*_):
        return "cat"

    for row in ("r4", "r5", "r6", "r8", "r9", "r10"):
        campaign.tell(row, "cat" if row < "r8" and row != "r10" else "dog", annotator="anna")
    recorded = campaign.label_with(rule, 8, name="rule")
    assert recorded.opinions  # beside what Anna says
    assert any(line.startswith("rule: ") and "right" in line for line in campaign.reliability())


def test_before_any_label_rows_are_spread(folder):
    write_csv(folder / "t.csv", ["id", "x", "kind"], [(f"r{x}", x, None) for x in range(9)])
    with Campaign.create(
        folder / "d.stakes", folder / "t.csv", "kind", "zero-one", id_column="id", classes=("cat", "dog")
    ) as campaign:
        recorded = campaign.label_with(lambda row, cells, classes: classes[int(cells["x"]) > 4], 4, name="rule")
    assert len(recorded.new) == 4
