"""The pictures of docs/tutorials/labelling.md, from a page that is labelled on: `python tools/label_pictures.py`.

It runs the first block of the tutorial, starts `stakes label`, and labels as two people in Chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorials" / "labelling.md"
PATIENCE = 60_000  # milliseconds
DESK = {"viewport": {"width": 1180, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 760}, "is_mobile": True, "has_touch": True}


def main() -> None:
    """Draw them."""
    from playwright.sync_api import sync_playwright

    blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([sys.executable, "-c", blocks[0][1]], cwd=folder, check=True)
        init = blocks[1][1].replace("stakes ", f"{sys.executable} -m stakes ", 1)
        subprocess.run(init, cwd=folder, shell=True, check=True)
        server, address = _serve(Path(folder))
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            _desk(browser, address)
            _settle(browser, address)
            _phone(browser, address)
            browser.close()
        finally:
            server.kill()
            server.wait()


def _serve(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    options = ["messages.stakes", "--no-browser", "--port", "0", "--opinions", "2", "--share", "0.5"]
    output = folder / "server.txt"
    with output.open("wb") as out:
        environment = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
        command = [sys.executable, "-m", "stakes", "label", *options]
        server = subprocess.Popen(command, stdout=out, cwd=folder, env=environment)
    while (found := re.search(r"Label at (\S+)", output.read_text())) is None:
        time.sleep(0.05)
    return server, found[1]


def _enter(browser: Any, address: str, name: str, size: dict[str, Any]) -> Any:
    page = browser.new_context(**size).new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.wait_for_url("**/name")
    page.fill("#name", name)
    page.keyboard.press("Enter")
    page.wait_for_selector("html[data-ready] #card")
    return page


def _press(page: Any, key: str) -> None:
    with page.expect_response(lambda response: response.request.method == "POST"):
        page.keyboard.press(key)
    page.wait_for_function("() => !sending")


def _answer(page: Any) -> str:
    """What a reader of the message would say."""
    urgent = re.search("pump|down|gas|nobody", page.inner_text("#card"))
    return "2" if urgent else "1"


def _desk(browser: Any, address: str) -> None:
    page = _enter(browser, address, "Anna", DESK)
    for _ in range(12):
        _press(page, _answer(page))
    page.wait_for_function("() => document.querySelectorAll('#panel svg').length === 2")
    page.wait_for_function("() => !document.getElementById('ranked').textContent.includes('with 25')")
    page.screenshot(path=ROOT / "docs" / "tutorials" / "labelling_desk.png")
    page.context.close()


def _settle(browser: Any, address: str) -> None:
    page = _enter(browser, address, "Ben", DESK)
    for _ in range(6):
        _press(page, "12"[_answer(page) == "1"])  # Ben says the contrary
    page.goto(f"{address.split('?')[0]}settle")
    page.wait_for_selector("html[data-ready] #card")
    page.screenshot(path=ROOT / "docs" / "tutorials" / "labelling_settle.png")
    page.context.close()


def _phone(browser: Any, address: str) -> None:
    page = _enter(browser, address, "Cleo", PHONE)
    page.screenshot(path=ROOT / "docs" / "tutorials" / "labelling_phone.png")
    page.context.close()


if __name__ == "__main__":
    main()
