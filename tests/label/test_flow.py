"""Who gets which row, and what becomes of it: without a browser, and with a worker that ranks at once."""

import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise

import pytest

from stakes import Campaign
from stakes.campaign.kept import ranking_kept, rows_kept
from stakes.exceptions import StakesError
from stakes.label.flow import Desk, Rules, label_worths
from stakes.label.media import Media
from stakes.label.worker import ranked
from stakes.ranking import Ranking
from tests.label.label_cases import classes_campaign, numbers_campaign


@dataclass
class AtOnce:
    """A worker that ranks when it is asked to, in this process."""

    path: object
    busy: bool = False
    found: object = None
    asked: int = 0

    def ask(self):
        self.asked += 1
        with Campaign.open(self.path) as campaign:
            self.found, self.busy = ranked(campaign), True

    def answer(self):
        found, self.found, self.busy = self.found, None, False
        return found

    def stop(self):
        pass


@pytest.fixture
def desk_of():
    opened = []

    def make(path, **rules):
        desk = Desk(Campaign.open(path), Rules(**rules), AtOnce(path))
        desk.open()
        desk.look()
        opened.append(desk)
        return desk

    yield make
    for desk in opened:
        desk.close()


def test_the_best_row_comes_first_and_the_same_one_until_it_is_done(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path))
    with Campaign.open(desk.campaign.path) as campaign:
        best = campaign.journal.last_record("ranking").payload["ranking"]["row_ids"][0]
    card = desk.card("anna")
    assert card.row == best
    assert card.worth is not None
    assert desk.card("anna") == card
    assert [cell.column for cell in card.values] == ["x", "y", "remark"]


def test_two_people_get_two_rows(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path))
    given = {name: desk.card(name).row for name in ("anna", "ben", "cleo")}
    assert len(set(given.values())) == 3


def test_a_label_brings_the_next_row_and_a_newer_ranking(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path))
    first = desk.card("anna").row
    assert desk.ranked_with == 12
    desk.tell("anna", first, "good")
    desk.tell("anna", first, "good")  # once more, as after a lost answer
    assert desk.card("anna").row != first
    desk.look()
    assert desk.refitting
    desk.look()
    assert desk.ranked_with == 13
    assert [labels for labels, _, _ in desk.curve] == [12, 13]
    assert desk.people() == {"anna": 1}


def test_later_is_for_later_unsure_is_for_others_and_skipped_is_for_nobody(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path, rows=16))
    acts = {}
    for act in ("later", "unsure", "skip"):
        row = desk.card("anna").row
        desk.put_off("anna", row, act)
        desk.put_off("anna", row, act)  # once more, as after a lost answer
        acts[act] = row
    last = desk.card("anna").row
    assert last not in acts.values()
    assert desk.disputes() == [acts["unsure"]]
    assert desk.dispute(acts["unsure"], "ben").unsure == ("anna",)
    desk.tell("anna", last, "bad")
    assert desk.card("anna").row == acts["later"]  # nothing else is left
    desk.tell("anna", acts["later"], "bad")
    assert desk.card("anna") is None
    desk.settle("ben", acts["unsure"], "good")
    assert desk.disputes() == []
    assert desk.campaign.journal.state(acts["skip"]).status == "skipped"


def test_what_was_put_off_comes_again_after_ten_others(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path))
    row = desk.card("anna").row
    desk.put_off("anna", row, "later")
    seen = []
    for _ in range(12):
        seen.append(desk.card("anna").row)
        desk.tell("anna", seen[-1], "good")
    assert row not in seen[:9]
    assert row in seen


def test_undo_is_for_the_event_that_is_meant(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path))
    row = desk.card("anna").row
    assert desk.card("anna").undo is None
    desk.tell("anna", row, "good")
    number = desk.card("anna").undo
    assert desk.undo("anna", number + 99) is None
    assert desk.undo("anna", number).row == row
    assert desk.undo("anna", number) is None  # once more, as after a lost answer
    assert desk.card("anna").row == row


def test_a_second_opinion_is_asked_of_another_who_is_not_shown_the_first(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path), opinions=2, share=1.0)
    row = desk.card("anna").row
    desk.tell("anna", row, "good")
    card = desk.card("ben")
    assert card.row == row
    assert "good" not in [cell.text for cell in card.values]
    assert desk.card("anna").row != row
    desk.tell("ben", row, "bad")
    assert desk.disputes() == [row]
    assert desk.dispute(row, "cleo").opinions == (("anna", "good"), ("ben", "bad"))
    assert desk.card("cleo").row != row


def test_a_share_of_rows_gets_a_second_opinion_and_never_two_in_a_row(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path, rows=80), opinions=2, share=0.5)
    for _ in range(30):
        desk.tell("anna", desk.card("anna").row, "good")
    labelled = {opinion.row for opinion in desk.campaign.opinions() if opinion.annotator == "anna"}
    second = []
    for _ in range(20):
        row = desk.card("ben").row
        second.append(row in labelled)
        desk.tell("ben", row, "bad")
    assert 5 <= sum(second) <= 10
    assert not any(one and other for one, other in pairwise(second))


def test_nothing_is_handed_out_beyond_the_budget(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path, budget=5.0))
    for _ in range(2):
        desk.tell("anna", desk.card("anna").row, "good")
    assert desk.card("anna") is None
    assert desk.why_none() == "What is left of the budget, 1, pays for no other row."


def test_numbers_are_recorded_and_wrong_ones_refused(desk_of, tmp_path):
    desk = desk_of(numbers_campaign(tmp_path))
    row = desk.card("anna").row
    with pytest.raises(StakesError, match="Nothing was recorded"):
        desk.tell("anna", row, "much")
    desk.tell("anna", row, "12.5")
    assert desk.campaign.journal.state(row).label == "12.5"
    assert desk.numbers
    labels, initial = desk.acquired()
    assert (labels[-1], len(labels), initial) == ("12.5", 9, 8)


def test_classes_that_were_not_named_are_those_seen_so_far(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path, classes=None))
    assert desk.classes() == ("bad", "good")
    assert not desk.classes_named
    row = desk.card("anna").row
    with pytest.raises(StakesError, match="'odd'"):
        desk.tell("anna", row, "odd")
    desk.tell("anna", row, "odd", new_class=True)
    assert desk.classes() == ("bad", "good", "odd")


def test_files_that_cells_name_are_shown(desk_of, tmp_path):
    (tmp_path / "media").mkdir()
    path = classes_campaign(tmp_path, rows=14, labels=12)
    for at in (12, 13):
        (tmp_path / "media" / f"part number {at}").write_text("no known kind")
    assert all(not cell.image for cell in desk_of(path, media=Media.of(str(tmp_path / "media"))).card("anna").values)


def ranking(ranked_by, scores):
    rows = tuple(f"r{place}" for place in range(len(scores)))
    places = tuple(range(len(scores)))
    return Ranking(places, rows, tuple(scores), per_cost=False, ranked_by=ranked_by, reasons=(), notes=())


def test_a_label_is_worth_what_is_promised_of_it():
    alone = label_worths(ranking("worth", [0.4, 0.2]), {}, [0.1, 0.15])
    assert alone == pytest.approx({"r0": 0.1, "r1": 0.05})  # shares of the first
    assert label_worths(ranking("worth", [0.4]), {}, [0.9]) == pytest.approx({"r0": 0.4})  # never more than the score
    assert label_worths(ranking("gain", [0.4]), {"r0": 2.0}, []) == pytest.approx({"r0": 0.8})
    assert label_worths(ranking("together", [0.1, 0.3]), {}, [0.1, 0.3]) == pytest.approx({"r0": 0.1, "r1": 0.15})
    assert label_worths(ranking("predictive entropy", [2.0]), {}, []) == {}


FIRST_CARD = """
import sys
from stakes import Campaign
from stakes._utils.markup import text
from stakes.label.flow import Desk, Rules
from stakes.label.server import Label
from stakes.label.visit import Visit
from stakes.label.worker import Worker

campaign = Campaign.open(sys.argv[1])
desk = Desk(campaign, Rules(), Worker(campaign.path, campaign.table, False))
desk.open()
visit = Visit(desk, "anna")
view, card = visit.view(), desk.card("anna")
assert card is not None and not desk.refitting
shown = text(visit.work(view, card)) + text(visit.panel(view, card))
assert card.row in shown and "Ranked with 12 labels" in shown
print([name for name in ("sklearn", "scipy", "pandas", "stakes.ranking") if name in sys.modules])
"""


def test_the_first_card_of_a_warm_campaign_waits_for_no_library_that_fits_or_ranks(tmp_path):
    path = classes_campaign(tmp_path)
    with Campaign.open(path) as campaign:
        campaign.rank(8)
    found = subprocess.run([sys.executable, "-c", FIRST_CARD, str(path)], capture_output=True, text=True, check=False)
    assert found.stderr == ""
    assert found.stdout.strip() == "[]"


def test_rows_of_a_ranking_are_read_as_the_whole_of_it_is(tmp_path):
    path = classes_campaign(tmp_path)
    with Campaign.open(path) as campaign:
        ranking = campaign.rank(8)
        record = campaign.journal.last_record("ranking")
    rows, whole = rows_kept(path, record), ranking_kept(path, record)
    assert rows == (whole.row_ids, whole.scores, whole.per_cost, whole.ranked_by, whole.log_scale)
    assert rows.row_ids == ranking.row_ids
    for name, value in (("log_scale", "1"), ("ranked_by", 3), ("scores", [None])):
        broken = record._replace(payload={**record.payload, "ranking": {**record.payload["ranking"], name: value}})
        with pytest.raises(StakesError, match="a ranking"):
            rows_kept(path, broken)


def test_several_opinions_are_reckoned_with_where_they_are_asked_for_or_have_prices(desk_of, tmp_path):
    path = classes_campaign(tmp_path)
    assert not desk_of(path).several_opinions()
    assert desk_of(path, opinions=2).several_opinions()
    with Campaign.open(path) as campaign:
        campaign.set_annotators({"expert": 5.0})
    assert desk_of(path).several_opinions()


def test_with_prices_asking_again_competes_with_asking_anew(desk_of, tmp_path):
    """One who is wrong in half of the cases has labelled all rows but six: an expert is asked again about theirs."""
    path = classes_campaign(tmp_path, rows=40)
    with Campaign.open(path) as campaign:
        campaign.set_annotators({"expert": 5.0, "student": 1.0})
        free = [row for row, state in campaign.journal.states().items() if state.status == "open"]
        for at, row in enumerate(free[:-6]):
            campaign.tell(row, ("good", "bad")[at % 2], annotator="student")
    desk = desk_of(path)
    before = []
    for _ in range(6):
        card = desk.card("expert")
        before.append(len(desk.campaign.journal.replay.opinions.get(card.row, {})))
        desk.tell("expert", card.row, "good")
    assert {0, 1} >= set(before)
    assert 1 in before
    assert any("An opinion of expert saves about" in each and "for 10 (" in each for each in desk.agreement())
    assert desk.card("student").row in free[-6:]  # what they have labelled is not for them


def test_without_prices_a_share_decides(desk_of, tmp_path):
    desk = desk_of(classes_campaign(tmp_path), opinions=2, share=1.0)
    card = desk.card("anna")
    desk.tell("anna", card.row, "good")
    desk.look()
    assert desk.card("ben").row == card.row
    assert not desk.values_for_price()


def test_rows_of_an_audit_come_first_in_their_order_and_train_nothing(desk_of, tmp_path):
    path = classes_campaign(tmp_path)
    with Campaign.open(path) as campaign:
        rows = campaign.audit(5)
    desk = desk_of(path)
    first, second = desk.card("anna"), desk.card("ben")
    assert (first.row, second.row) == rows[:2]
    assert first.audit
    assert first.worth is None
    with pytest.raises(StakesError, match="in the hands of 'anna'"):
        desk.tell("ben", first.row, "good")
    for row in rows[:2]:
        desk.tell("anna" if row == first.row else "ben", row, "good")
    assert desk.card("anna").row == rows[2]
    undone = desk.undo("anna", desk.last_act("anna"))
    assert (undone.row, undone.kind) == (rows[0], "result")
    assert desk.card("anna").row == rows[0]
    desk.tell("anna", rows[0], "bad")
    assert desk.card("anna").row == rows[2]
    desk.put_off("anna", rows[2], "later")
    for row in rows[3:]:
        assert desk.card("anna").row == row
        desk.tell("anna", row, "good")
    assert desk.card("anna").row == rows[2]
    desk.put_off("anna", rows[2], "skip")
    last = desk.card("anna")
    assert not last.audit
    audit = desk.status().audit
    assert (audit["waiting"], audit["labels"]) == (0, 4)
    assert not set(rows) & set(desk.campaign.training_labels())
    desk.undo("anna", desk.last_act("anna"))
    assert desk.card("anna").row == last.row  # which they had in hand; the row of the audit comes after it
    assert desk.campaign.journal.state(rows[2]).status == "testing"


def test_a_row_that_somebody_looks_at_stays_theirs(desk_of, tmp_path, monkeypatch):
    desk = desk_of(classes_campaign(tmp_path), lease=100.0, opinions=2, share=1.0)
    start = time.time()
    row = desk.card("anna").row
    desk.renew("anna", row)  # half of the time is not over
    assert len(desk.campaign.history(row)) == 1
    monkeypatch.setattr(time, "time", lambda: start + 80.0)
    desk.renew("ben", row)  # who does not have it
    desk.renew("anna", row)
    monkeypatch.setattr(time, "time", lambda: start + 150.0)
    assert desk.card("anna").row == row
    assert desk.card("ben").row != row
    desk.tell("anna", row, "good")
    assert desk.campaign.journal.state(row).label == "good"
    desk.put_off("ben", desk.card("ben").row, "later")
    assert desk.card("ben").row == row  # for a second opinion
    monkeypatch.setattr(time, "time", lambda: start + 240.0)
    desk.renew("ben", row)
    monkeypatch.setattr(time, "time", lambda: start + 300.0)
    assert desk.card("ben").row == row
