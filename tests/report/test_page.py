"""A report is written for every campaign, however little it knows, and says what it does not know."""

import re
import shutil
import subprocess
import sys

import pytest

from stakes.exceptions import StakesError
from stakes.report import write_report
from stakes.report.estimates import checkpoints
from stakes.report.evidence import FEWEST, FOLDS
from stakes.tabular import ModelSpec
from tests.report.report_cases import ROWS, Page, create, truths

pytest.importorskip("matplotlib", reason="matplotlib is not installed, and reports have pictures")
HEADINGS = ("Next rows", "Pictures", "What was assumed", "History", "How this was made")


def reported(campaign, folder, progress=None):
    with campaign:
        write_report(campaign, folder / "report.html", progress=progress)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert len(text) < 1_500_000
    page = Page(text)
    assert page.open == []
    assert not page.all("script")
    assert all(heading in page.text for heading in HEADINGS)
    assert all(each["src"].startswith("data:image/png;base64,") and each["alt"] for each in page.all("img"))
    return page


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A campaign of numbers in full swing: bought, asked, skipped."""
    folder = tmp_path_factory.mktemp("numbers")
    campaign = create(folder, "numbers", 10, label_cost=2.0, decisions=500, budget=30)
    known = dict(zip(campaign.sheet.ids, truths("numbers"), strict=True))
    campaign.tell_many([(row, known[row]) for row in campaign.ask(4, who="anna").row_ids], who="anna")
    campaign.ask(2)
    campaign.skip([next(row for row, state in campaign.journal.states().items() if state.status == "open")])
    progress = []
    return reported(campaign, folder, lambda phrase, share: progress.append((phrase, share))), progress, folder


def test_the_page_tells_where_the_campaign_stands(numbers):
    page, _, _ = numbers
    assert "yield of table.csv" in page.text
    assert "squared-error" in page.text
    for name, count in (("labelled", 14), ("asked", 2), ("skipped", 1), ("open", ROWS - 17), ("spent", 8)):
        assert f"{name} {count}" in page.text
    assert "budget left 18 of 30" in page.text
    assert "anna" in page.text
    assert "random_state 0" in page.text
    assert page.all("html")[0]["lang"] == "en"


def test_the_page_has_four_pictures_and_the_advice_with_its_error(numbers):
    page, _, _ = numbers
    assert len(page.all("img")) == 4
    assert "±" in page.text
    assert any(verdict in page.text for verdict in ("Go on:", "Stop:", "Too close to call:"))
    assert "4 bought labels" in " ".join(each["alt"] for each in page.all("img"))


def test_progress_rises_from_nothing_to_all(numbers):
    _, progress, _ = numbers
    shares = [share for _, share in progress]
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares == sorted(shares)
    assert all(phrase for phrase, _ in progress)


def test_progress_says_which_fit_of_the_learning_curve_it_waits_for(numbers):
    _, progress, _ = numbers
    curve = [phrase for phrase, _ in progress if phrase.startswith("learning curve: ")]
    counts = checkpoints(10, 14)
    folds = (None, *range(1, FOLDS + 1))
    assert curve == [
        f"learning curve: the model at {count} labels" + (f", fold {fold} of {FOLDS}" if fold else "")
        for count in counts
        for fold in (folds if count >= FEWEST else folds[:1])
    ]


def test_names_that_look_like_markup_are_text(tmp_path):
    ids = ["<script>alert(1)</script>", *(f"$x${row}\u4e2d" for row in range(ROWS - 1))]
    campaign = create(tmp_path, "classes", 12, ids=ids, target='a "b" <u>')
    campaign.ask(1, who="<b>anna</b>")
    page = reported(campaign, tmp_path)
    assert {"u", "b", "i"}.isdisjoint(name for name, _ in page.elements)
    for name in ("<script>alert(1)</script>", "a&b", "<i>no</i>", "<b>anna</b>", 'a "b" <u> of table.csv'):
        assert name in page.text


@pytest.mark.parametrize(
    ("kind", "labelled", "pictures", "message"),
    [
        ("numbers", 0, 0, "There is no label yet"),
        ("numbers", 1, 4, "cross-validation takes 8 labels"),
        ("classes", 1, 1, "all are of one class"),
        ("numbers", ROWS, 2, "Done: no row is open."),
        ("classes", ROWS, 2, "No row is open."),
    ],
)
def test_a_campaign_that_knows_little_or_all_says_so(tmp_path, kind, labelled, pictures, message):
    page = reported(create(tmp_path, kind, labelled), tmp_path)
    assert message in page.text
    assert len(page.all("img")) == pictures


def test_a_model_that_cannot_be_fitted_is_reported(tmp_path):
    page = reported(create(tmp_path, "numbers", 10, model=ModelSpec("tests.report.report_cases:Stubborn")), tmp_path)
    assert "could not be ranked" in page.text
    why = "your model tests.report.report_cases:Stubborn raised RuntimeError: I do not <b>want</b> to"
    assert f"No picture: {why}." in page.text
    assert len(page.all("img")) == 1


def test_bad_places_are_refused_and_left_as_they_are(tmp_path):
    with create(tmp_path, "numbers", 0) as campaign:
        (tmp_path / "mine.html").write_text("<!doctype html>\n<title>mine</title>")
        files = ("table.csv", "it.stakes", "mine.html")
        before = {name: (tmp_path / name).read_bytes() for name in files}
        for path, message in (
            ("table.csv", "which is read here"),
            ("it.stakes", "which is read here"),
            ("mine.html", "is there already and is left as it is"),
            (".", "is a folder or a device"),
            ("no/where.html", "there is no folder"),
        ):
            with pytest.raises(StakesError, match=message):
                write_report(campaign, tmp_path / path)
        assert {name: (tmp_path / name).read_bytes() for name in files} == before
        write_report(campaign, tmp_path / "report.html")
        write_report(campaign, tmp_path / "report.html")  # our own is replaced
        write_report(campaign, tmp_path / "mine.html", overwrite=True)
        assert (tmp_path / "mine.html").read_bytes()[:300] == (tmp_path / "report.html").read_bytes()[:300]
    assert not list(tmp_path.glob(".*part"))


def test_without_matplotlib_the_extra_is_named_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with create(tmp_path, "numbers", 0) as campaign, pytest.raises(ImportError, match=r"pip install 'stakes\[plot\]'"):
        write_report(campaign, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


MEASURED = """<!doctype html><title>waiting</title><iframe src="report.html" width="400" height="900"></iframe>
<iframe src="report.html" width="1200" height="900"></iframe><script>addEventListener("load", () => {
  document.title = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement, images = [...page.images];
    const fetched = frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name);
    return [root.scrollWidth <= root.clientWidth, images.length, images.every(each => each.naturalWidth > 0),
      fetched.every(name => name.startsWith("data:"))].join(" ");
  }).join(", ");
})</script>"""


def test_a_browser_shows_it_on_a_phone_and_on_a_desk(numbers, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    _, _, folder = numbers
    (folder / "measured.html").write_text(MEASURED, encoding="utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"]
    flags += ["--enable-logging=stderr", f"--user-data-dir={tmp_path}", (folder / "measured.html").as_uri()]
    done = subprocess.run([browser, *flags], capture_output=True, text=True, timeout=120, check=True)
    assert "<title>true 4 true true, true 4 true true</title>" in done.stdout
    assert ":CONSOLE" not in done.stderr


def test_next_rows_are_shown_with_what_sets_them_apart(numbers):
    page, _, _ = numbers
    assert "what sets it apart" in page.text
    assert "In brackets: the middle half of the labelled rows, or how many have the same." in page.text
    assert re.search(r"[uv] -?\d\.\d+ \(-?\d\.\d+ to -?\d\.\d+\)", page.text)
