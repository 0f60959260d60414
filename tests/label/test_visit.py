"""What a person at a desk sees and does, whoever carries it there."""

import pytest

from stakes import Campaign
from stakes._utils.markup import text
from stakes.exceptions import StakesError
from stakes.label.flow import Desk, Rules
from stakes.label.visit import Visit
from stakes.label.worker import Worker
from tests.label.label_cases import classes_campaign


class NoWorker(Worker):
    def ask(self):
        self.busy = False


@pytest.fixture
def visit(tmp_path):
    path = classes_campaign(tmp_path, rows=30)
    with Campaign.open(path) as campaign:
        campaign.rank(8)
        desk = Desk(campaign, Rules(), NoWorker(path, campaign.table, trusted=False))
        desk.open()
        yield Visit(desk, "anna", {"later": "n"})


def test_keys_of_ones_own_are_in_the_view(visit):
    assert visit.view().keys == {"class:good": "1", "class:bad": "2", "later": "n", "unsure": "u", "skip": "s"}


def test_a_change_is_made_when_it_is_called(visit):
    card = visit.desk.card("anna")
    change = visit.change("answer", {"row": card.row, "label": "good"})
    assert visit.desk.campaign.journal.state(card.row).label is None
    assert change() == f"{card.row}: good is saved."
    assert visit.desk.campaign.journal.state(card.row).label == "good"
    number = str(visit.desk.last_act("anna"))
    assert visit.change("undo", {"act": number})() == f"Undone: {card.row} was good."
    assert visit.change("undo", {"act": "x"})() == "There is nothing to undo."


def test_what_was_done_with_a_row_is_reported_in_a_sentence(visit):
    done = {"later": "put off until later", "unsure": "left to be settled", "skip": "skipped for good"}
    for act, phrase in done.items():
        row = visit.desk.card("anna").row
        assert visit.change("off", {"row": row, "act": act})() == f"{row} is {phrase}."
        number = str(visit.desk.last_act("anna"))
        assert visit.change("undo", {"act": number})() == f"Undone: {row} was {phrase}."


def test_a_first_fit_is_not_called_another_one(visit):
    visit.desk.worker.busy = True
    assert "Ranked with 12 labels, refitting" in text(visit.panel(visit.view(), None))
    visit.desk.ranked_with = None
    assert "Not ranked yet; fitting the model" in text(visit.panel(visit.view(), None))


def test_work_and_panel_are_of_the_row(visit):
    view, card = visit.view(), visit.desk.card("anna")
    assert f'data-row="{card.row}"' in text(visit.work(view, card, "<b>"))
    assert "&lt;b&gt;" in text(visit.work(view, card, "<b>"))
    assert "Ranked with 12 labels" in text(visit.panel(view, card))
    assert "No row for you now" in text(visit.work(view, None))
    assert "Nothing to settle" in text(visit.to_settle(view))


def test_why_there_is_no_ranking_is_shown_where_a_row_would_be(visit):
    visit.desk.ranked_with, visit.desk.problem = None, "all columns are constant"
    shown = text(visit.work(visit.view(), None))
    assert "The rows cannot be ranked" in shown
    assert "all columns are constant" in shown


def test_what_is_no_act_is_refused(visit):
    with pytest.raises(StakesError, match="a change is one of answer, off, undo, settle; got 'burn'"):
        visit.change("burn", {})
    with pytest.raises(StakesError, match="a row is put off by later, unsure, skip, not by 'burn'"):
        visit.change("off", {"act": "burn"})()
