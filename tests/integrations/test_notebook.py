"""The card in a notebook: what is done in the cell is in the campaign, what is shown is the page of `stakes label`."""

import time

import pytest

pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'stakes[notebook]'")

from stakes import Campaign
from stakes.exceptions import StakesError
from stakes.integrations.notebook import label
from stakes.label.worker import Ranked, Worker, ranked
from tests.integrations.pages import run_page
from tests.label.label_cases import CHROMIUM, NO_BROWSER, PATIENCE, classes_campaign, numbers_campaign, state_of

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)


class Here(Worker):
    """Ranks in this process, at once: starting another takes seconds."""

    def ask(self):
        with Campaign.open(self.path, trust=self.trusted) as campaign:
            self.found, self.busy = ranked(campaign), True

    def answer(self) -> Ranked | None:
        found, self.busy = (self.found, False) if self.busy else (None, False)
        return found


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr("stakes.integrations.notebook.Worker", Here)


@pytest.fixture
def card(tmp_path, at_once):  # noqa: ARG001
    with Campaign.open(classes_campaign(tmp_path, rows=30)) as campaign:
        made = label(campaign, "anna")
        made.campaign = campaign
        yield made
        made.close()


def do(card, act, /, **form):
    """Do something as the script in the cell does, and see what it shows."""
    card.sent = {"number": card.sent.get("number", 0) + 1, "act": act, "form": form}
    assert card.shown["answers"] == card.sent["number"]
    return card.shown


def row_in(shown):
    return shown["work"].split('data-row="')[1].split('"')[0]


def test_a_label_is_in_the_campaign_and_the_next_row_comes(card):
    do(card, "look")
    first = row_in(card.shown)
    shown = do(card, "answer", row=first, label="bad")
    assert shown["good"]
    assert shown["notice"].startswith(f"{first}: bad is saved. The model's guess was ")
    assert row_in(shown) != first
    assert card.campaign.journal.state(first).label == "bad"
    assert [event.who for event in card.campaign.history(first)] == ["anna", "anna"]  # asked, labelled
    assert "This label saves about" in shown["panel"]
    assert "Spent" in shown["panel"]


def test_later_not_sure_skip_and_undo(card):
    do(card, "look")
    for act, status in (("later", "open"), ("unsure", "unsure"), ("skip", "skipped")):
        row = row_in(card.shown)
        assert do(card, "off", row=row, act=act)["good"]
        assert card.campaign.journal.state(row).status == status
    number = card.shown["work"].split('name="act" value="')[-1].split('"')[0]
    shown = do(card, "undo", act=number, back="/")
    assert shown["notice"] == f"Undone: {row} was skipped for good."
    assert row_in(shown) == row
    assert do(card, "undo", act="999999")["notice"] == "There is nothing to undo, or it was undone already."
    assert "Settle" in card.shown["head"]  # of the one that was not sure
    assert "To be settled; 1 row left" in do(card, "to settle")["work"]
    row = row_in(card.shown)
    assert do(card, "settle", row=row, label="good")["notice"] == f"{row} is settled: good."
    assert card.campaign.journal.state(row).label == "good"


def test_what_is_no_label_changes_nothing(card):
    do(card, "look")
    row, before = row_in(card.shown), card.campaign.journal.version()
    for act, form in [("answer", {"row": row, "label": "ugly"}), ("off", {"row": row, "act": "x"}), ("drop", {})]:
        shown = do(card, act, **form)
        assert not shown["good"]
        assert shown["notice"]
        assert "work" not in shown  # the row stays in the cell, with what was typed
    assert card.campaign.journal.version() == before
    assert row_in(do(card, "look")) == row


def test_a_guess_is_shown_when_asked_for(card):
    do(card, "look")
    assert do(card, "guess", row=row_in(card.shown))["notice"].startswith("The model's guess: ")


def test_a_card_that_is_closed_says_so_and_lets_go(card):
    card.close()
    card.close()
    assert "is closed" in do(card, "look")["notice"]
    assert card.campaign.status(refresh=False).rows == 30  # the campaign itself stays open


@pytest.mark.usefixtures("at_once")
def test_numbers_units_keys_and_names(tmp_path):
    with Campaign.open(numbers_campaign(tmp_path)) as campaign:
        for wrong in ("", "\n", "x" * 61):
            with pytest.raises(StakesError, match="a name has 1 to 60 letters"):
                label(campaign, wrong)
        with pytest.raises(StakesError, match="there is no folder"):
            label(campaign, "anna", media=str(tmp_path / "none"))
        card = label(campaign, "anna", unit="<EUR>", keys={"later": "n"})
        shown = do(card, "look")
        assert 'id="number"' in shown["work"]
        assert "&lt;EUR&gt;" in shown["work"]
        assert 'data-key="n"' in shown["work"]
        row = row_in(shown)
        assert not do(card, "answer", row=row, label="many")["good"]
        assert do(card, "answer", row=row, label="12.5")["good"]
        assert campaign.journal.state(row).label == "12.5"
        card.close()


@pytest.mark.usefixtures("at_once")
def test_images_are_within_the_cell(tmp_path):
    from stakes.files import write_csv
    from stakes.tabular import ModelSpec

    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "a b.png").write_bytes(PIXEL)
    rows = [
        (x, 'src="/media/x"' if x % 2 else "a b.png", "good" if x < 3 else "bad" if x < 6 else None) for x in range(9)
    ]
    write_csv(tmp_path / "t.csv", ["x", "picture", "state"], rows)
    settings = {"ignore": ("picture",), "model": ModelSpec("extra-trees", {"n_estimators": 5})}
    with Campaign.create(tmp_path / "c.stakes", tmp_path / "t.csv", "state", "zero-one", **settings) as campaign:
        card = label(campaign, "anna", media=str(tmp_path / "media"))
        pages = ""
        for _ in range(3):
            pages += do(card, "look")["work"]
            do(card, "answer", row=row_in(card.shown), label="good")
        card.close()
    assert 'src="data:image/png;base64,iVBORw0KGgo' in pages
    assert 'src="/media/' not in pages
    assert "src=&quot;/media/x&quot;" in pages.replace("<wbr>", "")  # a text, as it is


def test_the_style_is_for_the_cell_alone(card):
    for outside in (":root", "prefers-color-scheme", "\nbody"):
        assert outside not in card.style_sheet
    for inside in (":host {", ":host([data-dark]) {", "\n.body {", "@container (max-width: 700px)"):
        assert inside in card.style_sheet


def test_rows_are_ranked_in_a_process_of_its_own(tmp_path):
    with Campaign.open(classes_campaign(tmp_path, rows=30)) as campaign:
        card = label(campaign, "anna")
        assert "Ranking the rows" in card.shown["work"]
        limit = time.monotonic() + PATIENCE / 1000
        while do(card, "look")["waiting"]:
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert row_in(card.shown)
        card.close()


@pytest.mark.usefixtures("at_once")
def test_the_page_runs(tmp_path):
    run_page("notebooks", tmp_path)


PAGE = """<!doctype html><meta charset="utf-8"><body style="background: %s; margin: 2rem"><h1>A notebook</h1>
<div id="cell"></div><script type="module">
const heard = {};
const state = { style_sheet: %s, shown: %s, sent: {} };
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; },
  save_changes: async () => {
    state.shown = await kernel(JSON.parse(JSON.stringify(state.sent)));
    for (const each of heard["change:shown"] || []) each();
  },
  on: (name, call) => (heard[name] ||= []).push(call),
  off: (name, call) => { heard[name] = (heard[name] || []).filter((each) => each !== call); },
};
window.keys = [];
document.addEventListener("keydown", (event) => window.keys.push(event.key));
const widget = await import("data:text/javascript;base64," + btoa(%s));
window.end = widget.default.render({ model, el: document.getElementById("cell") });
</script>"""


def in_browser(card, page, tmp_path, background="#ffffff"):
    """The script of the card in a page, with the real widget as its kernel."""
    import json

    def kernel(sent):
        card.sent = sent
        return card.shown

    esm = card._esm.encode().decode("latin-1")
    quoted = [json.dumps(each).replace("</", "<\\/") for each in (card.style_sheet, card.shown, esm)]
    (tmp_path / "cell.html").write_text(PAGE % (background, *quoted))
    page.expose_function("kernel", kernel)
    page.goto((tmp_path / "cell.html").as_uri())
    page.wait_for_selector("#card")
    return page


@pytest.fixture
def page():
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 1000, "height": 900})
        found.set_default_timeout(PATIENCE)
        yield found
        browser.close()


def test_in_a_browser_by_keys(card, page, tmp_path):
    do(card, "look")
    in_browser(card, page, tmp_path)
    assert page.locator("#cell > div").get_attribute("data-dark") is None
    page.click("#row-title")
    for _ in range(3):
        row = page.get_attribute("#card", "data-row")
        x, y = (float(page.locator(f"dt:text-is('{name}') + dd").inner_text()) for name in "xy")
        page.keyboard.press("2" if state_of(x, y) == "bad" else "1")
        page.wait_for_function("row => document.querySelector('#cell > div').shadowRoot.getElementById('card')"
                               ".dataset.row !== row", arg=row)  # fmt: skip
        assert card.campaign.journal.state(row).label == state_of(x, y)
    page.keyboard.press("Control+z")
    page.wait_for_selector("text=Undone: ")
    assert page.get_attribute("#card", "data-row") == row
    page.keyboard.press("l")
    page.wait_for_selector(f"text={row} is put off until later.")
    page.click("text=Show the model's guess")
    page.wait_for_selector("text=The model's guess: ")
    assert page.evaluate("window.keys") == []  # no key of the card reaches the notebook
    assert page.locator("body").evaluate("each => getComputedStyle(each).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("background", "dark"), [("oklch(1 0 0)", None), ("lab(8 0 0)", ""), ("color(srgb 1 1 1)", None)]
)
def test_in_a_browser_a_background_in_another_notation(card, page, tmp_path, background, dark):
    """marimo writes colours so."""
    do(card, "look")
    in_browser(card, page, tmp_path, background=background)
    assert page.locator("#cell > div").get_attribute("data-dark") == dark


@pytest.mark.usefixtures("at_once")
def test_in_a_browser_a_number_that_is_none_stays_in_the_box(tmp_path, page):
    with Campaign.open(numbers_campaign(tmp_path)) as campaign:
        card = label(campaign, "anna", unit="EUR")
        do(card, "look")
        in_browser(card, page, tmp_path, background="#111111")
        assert page.locator("#cell > div").get_attribute("data-dark") == ""
        row = page.get_attribute("#card", "data-row")
        page.fill("#number", "many")
        page.keyboard.press("Enter")
        page.wait_for_selector(".notice.wrong")
        assert page.input_value("#number") == "many"
        page.fill("#number", "250")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"text={row}: 250 is saved.")
        assert campaign.journal.state(row).label == "250"
        assert page.locator("#number").evaluate("each => each.getRootNode().activeElement === each")
        card.close()
