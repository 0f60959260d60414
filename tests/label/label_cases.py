"""Campaigns to label, servers that are started for a test, and browsers that look at them."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stakes import Campaign
from stakes.files import write_csv
from stakes.tabular import ModelSpec

PATIENCE = 120_000  # milliseconds: a machine may be busy with other tests
_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)
NO_BROWSER = (
    "no Chromium is installed, so the page was not tried in a browser: apt-get install chromium (make test does, as "
    "root on Debian), or put one on the PATH"
)


def state_of(x, y):
    return "bad" if x + y > 1.0 else "good"


def classes_campaign(folder, rows=120, labels=12, **settings):
    """A campaign of classes; a row's own state follows from its numbers."""
    table = folder / "parts.csv"
    places = [(x % 11 / 10, x % 7 / 6) for x in range(rows)]
    lines = [
        (f"p{at:03d}", x, y, f"part number {at}", state_of(x, y) if at < labels else None)
        for at, (x, y) in enumerate(places)
    ]
    write_csv(table, ["id", "x", "y", "remark", "state"], lines)
    given = {
        "id_column": "id", "ignore": ("remark",), "classes": ("good", "bad"), "label_cost": 2.0,
        "model": ModelSpec("extra-trees", {"n_estimators": 20}), **settings,
    }  # fmt: skip
    path = folder / "parts.stakes"
    Campaign.create(path, table, "state", "zero-one", **given).close()
    return path


def numbers_campaign(folder, rows=60, **settings):
    """A campaign of numbers."""
    table, path = folder / "flats.csv", folder / "flats.stakes"
    write_csv(table, ["id", "size", "price"], [(f"f{x:03d}", x, 10.0 * x if x < 8 else None) for x in range(rows)])
    given = {"id_column": "id", "model": ModelSpec("bayesian-ridge"), **settings}
    Campaign.create(path, table, "price", "squared-error", **given).close()
    return path


class Served:
    """`stakes label` in a process of its own."""

    def __init__(self, path, folder, *options, port=0):
        self.path, self.folder, self.options, self.port = path, folder, options, port
        self.start()

    def start(self):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder / "config"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "stakes", "label", str(self.path), "--no-browser", "--port", str(self.port)]
        self.output = self.folder / f"server-{time.monotonic_ns()}.txt"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen([*command, *self.options], stdout=out, stderr=out, env=environment)
        limit = time.monotonic() + PATIENCE / 1000
        while not (found := re.search(r"Label at (\S+)", self.output.read_text())):
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < limit
            time.sleep(0.02)
        self.address = found[1]
        self.base = self.address.split("/?")[0]
        self.port = int(self.base.rsplit(":", 1)[1])
        return self

    def kill(self):
        """As a loss of power would, but for the machine."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE / 1000)


def events(path):
    with Campaign.open(path) as campaign:
        return campaign.history()


def row_of(page):
    return page.get_attribute("#card", "data-row")


def enter(page, served, name):
    """Come in by the address, and say who it is."""
    page.set_default_timeout(PATIENCE)
    page.goto(served.address)
    page.wait_for_url("**/name")
    page.fill("#name", name)
    page.keyboard.press("Enter")
    return at_a_card(page)


def at_a_card(page):
    """A page that shows a card and listens to keys."""
    page.wait_for_selector("html[data-ready] #card")
    return page


def after_change(page, act):
    """Do something that brings another card or notice, and wait until the server has acknowledged it."""
    with page.expect_response(lambda response: response.request.method == "POST") as answer:
        act()
    answer.value.finished()
    page.wait_for_function("() => !document.querySelector('#work button.pressed') && !sending")
    return answer.value


def press(page, key):
    return after_change(page, lambda: page.keyboard.press(key))


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=NO_BROWSER)
PICTURES = Path(os.environ.get("STAKES_PICTURES", "")) if os.environ.get("STAKES_PICTURES") else None
