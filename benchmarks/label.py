"""The page of `stakes label` in a browser: from a key press to the next card while a refit runs, and the first card.

Seconds are those of the clock, as a person waits: between the key press, as the browser stamped it, and the moment when
the card of another row is in the document, the label on the disk. The first card counts from the start of the command.
Chromium is the one on the PATH, driven by Playwright, and is open before the command is started.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Row, Settings
from stakes import Campaign
from stakes.files import write_csv

WATCH = """() => {
    window.waits = [];
    let pressed = null, before = document.getElementById("card").dataset.row;
    document.addEventListener("keydown", (event) => { pressed = event.timeStamp; }, true);
    new MutationObserver(() => {
        const card = document.getElementById("card");
        if (pressed === null || !card || card.dataset.row === before) return;
        waits.push(performance.now() - pressed);
        pressed = null;
        before = card.dataset.row;
    }).observe(document.getElementById("work"), {childList: true});
}"""


def rows(given: Settings) -> Iterator[Row]:
    """The table."""
    size, presses = (300, 10) if given.quick else (10_000, 100)
    browser = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if browser is None:
        yield Row("no Chromium on the PATH: apt-get install chromium", f"{size:,} rows", None)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = _campaign(Path(folder), size)
        first, waits, refitting = _measured(path, Path(folder), browser, presses)
    sizes, share = f"{size:,} rows", f"{refitting} of {presses} while a refit runs"
    yield Row("first card of a warm campaign, from the start of the command", sizes, first)
    yield Row(f"key press to next card, median, {share}", sizes, statistics.median(waits))
    yield Row("key press to next card, 95% of them", sizes, float(np.quantile(waits, 0.95)))


def _campaign(folder: Path, size: int) -> Path:
    """A campaign of classes that was ranked once."""
    numbers = np.random.default_rng(0).normal(size=(size, 5)).round(3)
    states = np.where(numbers[:, 0] + numbers[:, 1] ** 2 > 1.0, "bad", "good")
    lines = [
        (f"s{at:05d}", *numbers[at].tolist(), states[at] if at < 40 else None) for at in range(size)
    ]  # fmt: skip
    write_csv(folder / "t.csv", ["id", "a", "b", "c", "d", "e", "state"], lines)
    path = folder / "c.stakes"
    with Campaign.create(
        path, folder / "t.csv", "state", "zero-one", id_column="id", classes=("good", "bad")
    ) as campaign:
        campaign.rank(64)
    return path


def _measured(path: Path, folder: Path, browser: str, presses: int) -> tuple[float, list[float], int]:
    """Seconds to the first card, seconds to each next one, and how many of them came while a refit ran."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "stakes", "label", str(path), "--no-browser", "--port", "0"]
    output = folder / "server.txt"
    with sync_playwright() as playwright, output.open("wb") as out:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page()
        began = time.perf_counter()
        server = subprocess.Popen(command, stdout=out, env={**os.environ, "XDG_CONFIG_HOME": str(folder)})
        try:
            while (found := re.search(r"Label at (\S+)", output.read_text())) is None:
                if server.poll() is not None:
                    raise RuntimeError(f"stakes label ended: {output.read_text()}")
                time.sleep(0.01)
            page.goto(found[1], timeout=300_000)
            page.wait_for_url("**/name")
            page.fill("#name", "Anna")
            page.keyboard.press("Enter")
            page.wait_for_selector("html[data-ready] #card", timeout=300_000)
            first = time.perf_counter() - began
            page.evaluate(WATCH)
            refitting = sum(_press(page, at) for at in range(presses))
            waits = [each / 1000 for each in page.evaluate("waits")]
        finally:
            server.kill()
            server.wait()
            chromium.close()
    return first, waits, refitting


def _press(page: Any, at: int) -> bool:
    """Press a key, wait for the next card; whether a refit was running."""
    running = "refitting" in page.inner_text("#ranked")
    page.keyboard.press("12"[at % 2])
    page.wait_for_function(f"() => waits.length > {at} && !sending", timeout=300_000)
    return running
