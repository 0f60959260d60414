"""The page in a real browser: keys, undo, several people, a server that is killed, a phone, and no mouse."""

import pytest

from stakes import Campaign
from tests.label.label_cases import (
    after_change,
    at_a_card,
    classes_campaign,
    enter,
    events,
    press,
    row_of,
)

pytestmark = pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")


def test_open_press_a_key_and_it_is_on_the_disk(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    page = enter(chromium.new_page(), serve(path), "Anna")
    first = row_of(page)
    press(page, "1")
    assert row_of(page) != first
    with Campaign.open(path) as campaign:
        assert campaign.journal.state(first).label == "good"
        assert campaign.journal.state(first).who == "Anna"
        assert campaign.journal.state(row_of(page)).who == "Anna"
    page.close()


def labels_of(path):
    with Campaign.open(path) as campaign:
        return {row: state for row, state in campaign.journal.states().items() if state.who is not None}


def test_fifty_rows_by_keyboard_with_undo_and_every_way_to_put_off(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    page = enter(chromium.new_page(), serve(path), "Anna")
    given = {}
    for at in range(50):
        row, key = row_of(page), "12"[at % 2]
        press(page, key)
        given[row] = {"1": "good", "2": "bad"}[key]
    assert len(given) == 50
    undone = []
    for _ in range(5):
        press(page, "Control+z")
        undone.append(row_of(page))
    assert undone == list(given)[-1:-6:-1]
    for row in reversed(undone):  # they come again in the order in which they came first
        assert row_of(page) == row
        press(page, "2")
        given[row] = "bad"
    acts = {}
    for key, act in (("l", "open"), ("u", "unsure"), ("s", "skipped")):
        acts[row_of(page)] = act
        press(page, key)
    skipped = list(acts)[-1]
    press(page, "Control+z")  # a skip is undone as a label is
    assert row_of(page) == skipped
    press(page, "1")
    given[skipped] = "good"
    states = labels_of(path)
    with Campaign.open(path) as campaign:
        found = campaign.journal.states()
    assert {row: found[row].label for row in given} == given
    assert {row: found[row].status for row in list(acts)[:2]} == {row: acts[row] for row in list(acts)[:2]}
    assert sum(state.status == "labelled" for state in states.values()) == 51
    page.close()


def test_what_is_typed_and_what_was_said_outlive_a_reload_and_a_killed_server(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    served = serve(path)
    page = enter(chromium.new_page(), served, "Anna")
    rows = []
    for at in range(4):
        rows.append(row_of(page))
        press(page, "12"[at % 2])
    current = row_of(page)
    page.reload()
    at_a_card(page)
    assert row_of(page) == current
    served.kill()
    page.keyboard.press("1")
    page.wait_for_selector("#lost:not([hidden])")
    assert row_of(page) == current
    after_change(page, served.start)  # the answer that was pressed is sent again by itself
    page.wait_for_selector("#lost", state="hidden")
    assert row_of(page) != current
    told = [event for event in events(path) if event.kind == "label" and event.who == "Anna"]
    assert [event.row for event in told] == [*rows, current]
    page.close()
