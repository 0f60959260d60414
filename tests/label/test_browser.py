"""The page in a real browser: keys, undo, several people, a server that is killed, a phone, no mouse, and attacks.

Two servers do for all of it. One has script in ids, cells and names of classes; the other is killed.
"""

import os
from pathlib import Path

import pytest

from stakes import Campaign
from stakes._utils.text import number
from stakes.cli.commands import run
from stakes.files import write_csv
from stakes.tabular import ModelSpec
from tests.label.label_cases import (
    Served,
    after_change,
    at_a_card,
    classes_campaign,
    enter,
    events,
    numbers_campaign,
    press,
    row_of,
)

pytestmark = pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
SCRIPT = '<script>attacked=1</script><img src=x onerror="attacked=1">'
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
AXE = next(
    (
        path
        for root in (os.environ.get("STAKES_AXE", ""), str(Path(__file__).parents[2] / ".venv" / "axe"))
        if root and (path := Path(root, "node_modules", "axe-core", "axe.min.js")).exists()
    ),
    None,
)
NO_AXE = (
    "axe-core is not installed, so accessibility was not checked: npm install --no-save --prefix .venv/axe axe-core"
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A server whose table tries to run script wherever it can; every row gets two opinions."""
    folder = tmp_path_factory.mktemp("odd")
    table, path = folder / "odd.csv", folder / "odd.stakes"
    labels = [(SCRIPT, "good")[at % 2] if at < 12 else None for at in range(160)]
    remark = f"{SCRIPT} {'long text ' * 12}"
    lines = [(f"r{at:03d}{SCRIPT}", at % 13, at % 7, remark, label) for at, label in enumerate(labels)]
    write_csv(table, ["id", "a", SCRIPT, "remark", "state"], lines)
    Campaign.create(
        path, table, "state", "zero-one", id_column="id", ignore=("remark",), classes=("good", SCRIPT), label_cost=2.0,
        decisions=100.0, model=ModelSpec("extra-trees", {"n_estimators": 20}),
    ).close()  # fmt: skip
    served = Served(path, folder, "--opinions", "2", "--share", "0.3", "--unit", SCRIPT)
    yield served
    served.kill()


def states(path):
    with Campaign.open(path) as campaign:
        return campaign.journal.states()


def test_fifty_rows_by_keyboard_with_undo_and_every_way_to_put_off(chromium, odd):
    page = enter(chromium.new_page(), odd, "Anna")
    given = {}
    for at in range(50):
        row, key = row_of(page), "12"[at % 2]
        assert press(page, key).status == 200
        given[row] = {"1": "good", "2": SCRIPT}[key]
    assert len(given) == 50
    undone = []
    for _ in range(5):
        press(page, "Control+z")
        undone.append(row_of(page))
    assert undone == list(given)[-1:-6:-1]
    for row in reversed(undone):  # they come again in the order in which they came first
        assert row_of(page) == row
        press(page, "2")
        given[row] = SCRIPT
    acts = {}
    for key, act in (("l", "open"), ("u", "unsure"), ("s", "skipped")):
        acts[row_of(page)] = act
        press(page, key)
    later, unsure, skipped = acts
    press(page, "Control+z")  # a skip is undone as a label is
    assert row_of(page) == skipped
    press(page, "1")
    found = states(odd.path)
    assert {row: found[row].label for row in given} == given
    assert (found[later].status, found[unsure].status, found[skipped].label) == ("open", "unsure", "good")
    assert sum(state.who == "Anna" and state.status == "labelled" for state in found.values()) == 51
    assert page.evaluate("typeof attacked") == "undefined"
    page.close()


def test_a_second_opinion_is_blind_and_a_disagreement_is_settled(chromium, odd):
    with Campaign.open(odd.path) as campaign:  # somebody else labels meanwhile, in another process
        for row in [row for row, state in campaign.journal.states().items() if state.status == "open"][:20]:
            campaign.tell(row, "good", annotator="Zoe")
    before = {row for row, state in states(odd.path).items() if state.who in ("Anna", "Zoe")}
    page = enter(chromium.new_page(), odd, "Ben")
    row = row_of(page)
    assert row in before
    assert states(odd.path)[row].label not in page.inner_text("#work .notice, #card h1, .row")
    other = "2" if states(odd.path)[row].label == "good" else "1"
    press(page, other)
    link = 'nav a[href="/settle"]'
    left = int(page.inner_text(link).removeprefix("Settle"))  # among others a row of which somebody was not sure
    page.goto(f"{odd.base}/settle")
    page.wait_for_selector("html[data-ready] #card")
    assert row_of(page) == row
    text = page.inner_text(".opinions")
    assert "Anna says" in text or "Zoe says" in text
    assert "Ben says" in text
    assert page.inner_text(link) == f"Settle {left}"
    press(page, "1")
    assert states(odd.path)[row].label == "good"
    assert page.inner_text(link) == (f"Settle {left - 1}" if left > 1 else "Settle")
    press(page, "Control+z")
    assert page.inner_text(link) == f"Settle {left}"
    assert row_of(page) == row
    press(page, "1")
    with Campaign.open(odd.path) as campaign:
        assert campaign.disagreements() == ()
    assert page.evaluate("typeof attacked") == "undefined"
    page.close()


def test_a_phone_has_one_column_and_large_targets(chromium, odd):
    context = chromium.new_context(**PHONE)
    page = enter(context.new_page(), odd, "Cleo")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for button in page.query_selector_all("#card button"):
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    row = row_of(page)
    after_change(page, lambda: page.tap(".choice >> nth=0"))
    with Campaign.open(odd.path) as campaign:
        assert (row, "Cleo", "good") in [opinion[:3] for opinion in campaign.opinions()]
    context.close()


@pytest.mark.parametrize("size", [{"viewport": {"width": 1180, "height": 800}}, PHONE])
def test_the_buttons_are_in_sight_however_long_the_row_is(chromium, serve, tmp_path, size):
    names = [f"mean_fractal_dimension_{at}" for at in range(60)]
    states = ["bad" if at % 2 else "good" for at in range(8)]
    lines = [(f"w{at}", at, *range(59), state) for at, state in enumerate([*states, None, None])]
    write_csv(tmp_path / "wide.csv", ["id", *names, "state"], lines)
    made = {"id_column": "id", "model": ModelSpec("extra-trees", {"n_estimators": 20})}
    Campaign.create(tmp_path / "wide.stakes", tmp_path / "wide.csv", "state", "zero-one", **made).close()
    context = chromium.new_context(**size)
    page = enter(context.new_page(), serve(tmp_path / "wide.stakes"), "Anna")
    seen = "box => box.top >= 0 && box.bottom <= innerHeight"
    assert page.evaluate("document.getElementById('card').offsetHeight > 1.2 * innerHeight")
    for _ in range(2):
        for button in page.query_selector_all(".choice"):
            assert button.evaluate(f"node => ({seen})(node.getBoundingClientRect())")
        page.evaluate("scrollTo(0, 300)")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()


def test_the_page_is_worked_by_keyboard_alone_and_says_what_happens(chromium, odd):
    page = enter(chromium.new_page(), odd, "Dora")
    assert page.evaluate("document.activeElement.id") == "row-title"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.classList.contains('choice')")
    row = row_of(page)
    press(page, "Enter")
    assert states(odd.path)[row].status == "labelled"
    assert "is saved" in page.inner_text("#live")
    assert page.get_attribute("#live", "aria-live") == "polite"
    names = [button.inner_text() for button in page.query_selector_all(".acts button")]
    assert [name.split("\n")[-1] for name in names] == ["Later", "Not sure", "Skip for good"]
    page.close()


@pytest.mark.skipif(AXE is None, reason=NO_AXE)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_automated_check_of_accessibility_finds_nothing(chromium, odd, scheme):
    context = chromium.new_context(color_scheme=scheme)
    page = enter(context.new_page(), odd, "Emil")
    for address in ("", "settle", "keys", "name"):
        page.goto(f"{odd.base}/{address}")
        page.wait_for_load_state("networkidle" if address in ("keys", "name") else "load")
        page.evaluate(AXE.read_text())
        found = page.evaluate("axe.run().then(found => found.violations.map(v => [v.id, v.nodes.map(n => n.html)]))")
        assert found == [], address
    context.close()


def test_another_page_changes_nothing_and_cannot_frame_this_one(chromium, odd):
    page = enter(chromium.new_context().new_page(), odd, "Fay")
    row, before = row_of(page), len(events(odd.path))
    inputs = '<input name="row"><input name="label" value="good">'
    evil = f'<h1>evil</h1><form method="post" action="{odd.base}/answer">{inputs}</form>'
    attacker = page.context.new_page()
    attacker.route("http://evil.example/**", lambda route: route.fulfill(body=evil, content_type="text/html"))
    attacker.goto("http://evil.example/")
    with attacker.expect_navigation() as sent:
        attacker.evaluate("row => { document.forms[0].row.value = row; document.forms[0].submit(); }", row)
    assert sent.value.status == 403
    attacker.goto("http://evil.example/")
    sending = "fetch(base + '/answer', {method: 'POST', body: 'x', credentials: 'include'})"
    reached = attacker.evaluate(f"base => {sending}.then(answer => answer.status, () => 'no')", odd.base)
    assert reached == "no"  # not even an answer is read
    framing = "const made = document.createElement('iframe'); made.src = base; document.body.append(made);"
    attacker.evaluate(f"base => {{ {framing} }}", odd.base)
    attacker.wait_for_function("() => frames.length === 1")
    assert all(frame.query_selector("#card") is None for frame in attacker.frames[1:])
    assert len(events(odd.path)) == before
    page.context.close()


def test_a_number_that_is_typed_outlives_a_reload_and_one_that_is_none_is_refused_in_place(chromium, serve, tmp_path):
    path = numbers_campaign(tmp_path)
    page = enter(chromium.new_page(), serve(path, "--unit", "EUR"), "Anna")
    assert page.inner_text(".unit") == "EUR"
    assert page.evaluate("document.activeElement.id") == "number"
    row = row_of(page)
    page.keyboard.type("12.5")
    page.reload()
    at_a_card(page)
    assert page.input_value("#number") == "12.5"
    page.fill("#number", "much")
    assert press(page, "Enter").status == 422
    assert "Nothing was recorded" in page.inner_text("#notice")
    assert (row_of(page), page.input_value("#number")) == (row, "much")
    page.fill("#number", "12.5")
    assert press(page, "Enter").status == 200
    assert states(path)[row].label == "12.5"
    assert page.input_value("#number") == ""
    page.close()


def test_rows_of_an_audit_are_answered_by_keys_and_the_measured_loss_appears(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    assert run(["audit", str(path), "-n", "4"]) == 0
    page = enter(chromium.new_page(), serve(path), "Anna")
    answered = []
    for key in "1121":
        assert page.inner_text("#card .eyebrow").lower() == "row of an audit"
        assert page.is_visible("#audit")
        answered.append(row_of(page))
        assert press(page, key).status == 200
    assert page.query_selector("#audit") is None
    page.wait_for_function("() => document.getElementById('panel').innerText.includes('measured by an audit')")
    with Campaign.open(path) as campaign:
        audit = campaign.status().audit
        assert [campaign.journal.state(row).status for row in answered] == ["tested"] * 4
    assert (audit["waiting"], audit["labels"]) == (0, 4)
    shown = page.locator(".money div", has_text="Loss of a decision today").locator("dd").inner_text()
    low, high = number(audit["low"]), number(audit["high"])
    assert " ".join(shown.split()) == f"{number(audit['mean'])} {low} to {high}, measured by an audit"
    page.close()


def test_another_class_is_typed_and_saved_by_enter(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path, classes=None)
    page = enter(chromium.new_page(), serve(path), "Anna")
    row = row_of(page)
    page.click("summary")
    page.fill("#other", "ugly")
    assert press(page, "Enter").status == 200
    assert states(path)[row].label == "ugly"
    assert "ugly is saved" in page.inner_text("#notice")
    assert "ugly" in page.inner_text(".choices")  # from now on it has a button
    page.close()


def test_who_is_shut_out_and_comes_back_has_lost_nothing(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    served = serve(path)
    page = enter(chromium.new_context().new_page(), served, "Anna")
    row = row_of(page)
    page.context.clear_cookies()
    with page.expect_navigation():
        page.keyboard.press("2")
    assert "open the address with the token" in page.inner_text("main").lower()
    assert states(path)[row].label is None
    enter(page, served, "Anna")
    page.wait_for_function("row => document.getElementById('card').dataset.row !== row", arg=row)
    assert states(path)[row].label == "bad"
    page.context.clear_cookies()
    row = row_of(at_a_card(page))
    with page.expect_navigation():
        page.keyboard.press("2")
    enter(page, served, "Ben")  # what Anna pressed is no label of his
    assert page.evaluate("sessionStorage.getItem('stakes:sending')") is None
    assert states(path)[row].label is None
    page.context.close()


def test_two_browsers_and_a_server_that_is_killed_lose_nothing_and_share_no_row(chromium, serve, tmp_path):
    path = classes_campaign(tmp_path)
    served = serve(path)
    pages = {name: enter(chromium.new_context().new_page(), served, name) for name in ("Anna", "Ben")}
    labels, seen = {}, {name: set() for name in pages}

    def label(name, key):
        page = pages[name]
        row = row_of(page)
        seen[name].add(row)
        assert press(page, key).status == 200
        labels[row] = (name, {"1": "good", "2": "bad"}[key])

    for at in range(10):
        for name in pages:
            label(name, "12"[at % 2])
    anna = pages["Anna"]
    current = row_of(anna)
    anna.reload()
    assert row_of(at_a_card(anna)) == current
    served.kill()
    anna.keyboard.press("1")
    anna.wait_for_selector("#lost:not([hidden])")
    assert row_of(anna) == current
    after_change(anna, served.start)  # what was pressed is sent again by itself
    anna.wait_for_selector("#lost", state="hidden")
    labels[current] = ("Anna", "good")
    seen["Anna"].add(current)
    assert row_of(anna) != current
    for name in pages:
        label(name, "2")
    assert not seen["Anna"] & seen["Ben"]
    recorded = [event for event in events(path) if event.who and event.kind in ("label", "opinion")]
    assert {event.row: (event.who, event.label) for event in recorded} == labels
    assert len(recorded) == len(labels) == 23
    asked = [event for event in events(path) if event.kind == "ask"]
    assert len({event.row for event in asked}) == len(asked)
    for page in pages.values():
        page.context.close()
