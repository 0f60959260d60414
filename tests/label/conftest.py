import pytest

from tests.label.label_cases import CHROMIUM, NO_BROWSER, Served


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def serve(tmp_path):
    """A function that starts a server for a campaign; all are stopped at the end."""
    running = []

    def start(path, *options, **more):
        running.append(Served(path, tmp_path, *options, **more))
        return running[-1]

    yield start
    for served in running:
        served.kill()
