"""Try stakes against a real Label Studio, and keep what it said for tests/exchange.

Label Studio is installed elsewhere, as it brings some 150 packages, and listens on this machine only:

    python -m venv /tmp/ls && /tmp/ls/bin/pip install label-studio
    export ML_BLOCK_LOCAL_IP=false SSRF_PROTECTION_ENABLED=false COLLECT_ANALYTICS=false
    LABEL_STUDIO_BASE_DATA_DIR=/tmp/ls-data /tmp/ls/bin/label-studio start --no-browser --port 8089 \
        --internal-host 127.0.0.1 --enable-legacy-api-token \
        --username me@example.com --password a-password --user-token 0123456789abcdef0123456789abcdef01234567

    python tools/label_studio.py http://127.0.0.1:8089 0123456789abcdef0123456789abcdef01234567 [--keep]

Two projects are made there, of classes and of numbers, with names that need quoting; their tasks are imported in
another order than ours. Then people label by its API. Each line that is printed is something that was seen to be so.
With --keep what was sent by Label Studio is written to tests/exchange/golden, without tokens and names of machines.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.exchange import export_tasks, import_answers
from stakes.exchange.label_studio_api import LabelStudioProject
from stakes.exchange.label_studio_server import label_studio_app
from stakes.exchange.live import LiveCampaign
from stakes.exchange.tasks import open_tasks
from stakes.tabular import ModelSpec

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "exchange" / "golden"
PORT, TOKEN = 9092, "a token"
CLASSES = ("bus", 'van & <"co">', "$5")
SECRETS = {"token", "access_token", "hostname", "url"}


def table(path: Path, classes: bool) -> None:
    """Twenty rows, eight of them with a label, with ids and cells that need quoting everywhere."""
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "x", "<b>z</b>", "remark", "target"])
        for i in range(20):
            label = CLASSES[i % 3] if classes else f"{i / 2 + i % 3}"
            remark = "<script>alert(1)</script> " + "long " * 60 if i == 9 else "$x"
            lines.writerow([f'r{i} <&"$', i * 0.5, (i * 7) % 5, remark, label if i < 8 else ""])


def campaign(folder: Path, classes: bool) -> Path:
    """A campaign about that table."""
    kind = "classes" if classes else "numbers"
    table(folder / f"{kind}.csv", classes)
    loss, model = ("zero-one", ModelSpec()) if classes else ("squared-error", ModelSpec("bayesian-ridge"))
    Campaign.create(
        folder / f"{kind}.stakes", folder / f"{kind}.csv", "target", loss, id_column="id", model=model
    ).close()
    return folder / f"{kind}.stakes"


class Server:
    """Label Studio, by its API."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url, key

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """What it answers: JSON, or text."""
        head = {"Authorization": f"Token {self.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=head)
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read().decode()
        return json.loads(text) if text[:1] in ("{", "[") else text

    def project(self, title: str, folder: Path) -> int:
        """A project of what `stakes export --format label-studio` wrote, its tasks in another order."""
        config, tasks = (folder / "config.xml").read_text(), json.loads((folder / "tasks.json").read_text())
        made = {"title": title, "label_config": config, "sampling": "Uncertainty sampling"}
        number = self("POST", "/api/projects", {**made, "show_collab_predictions": True})["id"]
        random.Random(0).shuffle(tasks)
        self("POST", f"/api/projects/{number}/import", tasks)
        return int(number)

    def next_task(self, project: int) -> tuple[int, str]:
        """The task that somebody who labels is given, and its row."""
        found = self("GET", f"/api/projects/{project}/next")
        return found["id"], found["data"]["stakes_id"]

    def annotate(self, task: int, label: str | float, **more: Any) -> dict[str, Any]:
        """An annotation, as the page makes it."""
        kind, value = ("number", label) if isinstance(label, float) else ("choices", [label])
        result = {"from_name": "label", "to_name": "row", "type": kind, "value": {kind: value}}
        made: dict[str, Any] = self("POST", f"/api/tasks/{task}/annotations", {"result": [result], **more})
        return made

    def update(self, annotation: int, label: str) -> None:
        """Another choice."""
        result = {"from_name": "label", "to_name": "row", "type": "choices", "value": {"choices": [label]}}
        self("PATCH", f"/api/annotations/{annotation}", {"result": [result]})


@contextmanager
def served(path: Path, heard: list[tuple[str, Any]]) -> Iterator[list[str]]:
    """A campaign behind the address that projects are connected to; what was refused, as it comes."""
    refused: list[str] = []
    live = LiveCampaign(path, report=refused.append)
    app = label_studio_app(live, token=TOKEN, report=refused.append)

    async def listening(scope: Any, receive: Any, send: Any) -> None:
        body = bytearray()

        async def receive_and_keep() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            if body and not message.get("more_body"):
                heard.append((scope["path"], json.loads(bytes(body))))
            return message

        await app(scope, receive_and_keep if scope["type"] == "http" else receive, send)

    server = uvicorn.Server(uvicorn.Config(listening, host="127.0.0.1", port=PORT, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        yield refused
    finally:
        server.should_exit = True
        thread.join()
        live.close()


def order(path: Path) -> list[str]:
    """Our order."""
    with tempfile.TemporaryDirectory() as folder, Campaign.open(path) as opened:
        export_tasks(opened, Path(folder, "now"), "label-studio")
        return [task["data"]["stakes_id"] for task in json.loads(Path(folder, "now", "tasks.json").read_text())]


def label(path: Path, row: str) -> str | None:
    """What the campaign has."""
    with Campaign.open(path) as opened:
        return opened.journal.state(row).label


def import_refused(path: Path, export: Path) -> tuple[str, bool]:
    """Why an export was refused, and whether the campaign is as it was."""
    with Campaign.open(path) as opened:
        before = opened.journal.version()
        try:
            import_answers(opened, export)
        except StakesError as error:
            return str(error), opened.journal.version() == before
    return "", False


def see(what: str, so: bool) -> None:
    """Print what was seen to be so; the end otherwise."""
    if not so:
        sys.exit(f"NOT SO: {what}")
    print(f"ok  {what}", flush=True)


def keep(name: str, content: Any) -> None:
    """A golden file."""
    text = content if isinstance(content, str) else json.dumps(_scrubbed(content), indent=1, ensure_ascii=False) + "\n"
    (GOLDEN / name).write_text(text, newline="")


def _scrubbed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: "" if name in SECRETS else _scrubbed(each) for name, each in value.items()}
    return [_scrubbed(each) for each in value] if isinstance(value, list) else value


def try_classes(studio: Server, folder: Path) -> dict[str, Any]:
    """The whole way with classes; what is worth keeping."""
    path = campaign(folder, classes=True)
    with Campaign.open(path) as opened:
        export_tasks(opened, folder / "classes", "label-studio")
    number = studio.project("stakes: classes", folder / "classes")
    ours, heard = order(path), []
    view = studio("POST", "/api/dm/views", {"project": number, "data": {"ordering": ["tasks:predictions_score"]}})
    shown = studio("GET", f"/api/tasks?project={number}&view={view['id']}&page_size=100")["tasks"]
    see("sorted by score, the tasks stand in our order", [task["data"]["stakes_id"] for task in shown] == ours)
    task, row = studio.next_task(number)
    see("the first task is the first of ours", row == ours[0])
    with served(path, heard) as refused:
        model = {"url": f"http://stakes:{TOKEN.replace(' ', '%20')}@127.0.0.1:{PORT}", "project": number}
        studio("POST", "/api/ml", {**model, "title": "stakes"})
        given = []
        for place in range(4):
            task, row = studio.next_task(number)
            given.append(row)
            made = studio.annotate(task, CLASSES[place % 3], was_cancelled=place == 3)
        see("sampling by prediction score gives our order", given == ours[:4])
        see("labels came back", [label(path, row) for row in given] == [*CLASSES, None])
        task, row = studio.next_task(number)
        made = studio.annotate(task, CLASSES[0])
        studio.update(made["id"], CLASSES[2])
        see("a label that was changed there is changed here", label(path, row) == CLASSES[2])
        studio("DELETE", f"/api/annotations/{made['id']}")
        see("one that was deleted there is withdrawn here", label(path, row) is None)
        made = studio.annotate(task, "no such class")
        see("a class that nobody knows is refused", label(path, row) is None and "'no such class'" in refused[-1])
        print(f"      {refused[-1]}")
        exported = studio("GET", f"/api/projects/{number}/export?exportType=JSON")
        (folder / "unknown.json").write_text(json.dumps(exported))
        why, kept = import_refused(path, folder / "unknown.json")
        see("an export that has it is refused, and nothing of it is recorded", "'no such class'" in why and kept)
        print(f"      {why}")
        studio("DELETE", f"/api/annotations/{made['id']}")
        action = f"/api/dm/actions?id=retrieve_tasks_predictions&project={number}"
        studio("POST", action, {"selectedItems": {"all": True, "excluded": []}})
        versions = studio("GET", f"/api/projects/{number}/model-versions")
        see("predictions are retrieved for every task", 12 in versions.values() and len(versions) == 2)
        with Campaign.open(path) as opened:
            now = open_tasks(opened)
        LabelStudioProject(studio.url, number, studio.key).push(now)
        first = next(each.row for each in now.tasks if each.row != given[3])  # which this person has skipped
        see("a new order is written to the project", studio.next_task(number)[1] == first)
        task = next(each["id"] for each in shown if each["data"]["stakes_id"] == given[0])
        name = f"second-{time.time():.0f}"
        person = studio("POST", "/api/users", {"email": f"{name}@example.com", "username": name, "password": name})
        studio.annotate(task, CLASSES[1], completed_by=person["id"])
        with Campaign.open(path) as opened:
            people = [each.annotator for each in opened.opinions() if each.row == given[0]]
            see("who differs has an opinion", people == ["label-studio:1", f"label-studio:{person['id']}"])
    exports = {kind: studio("GET", f"/api/projects/{number}/export?exportType={kind}") for kind in ("JSON_MIN", "CSV")}
    exports["JSON"] = studio("GET", f"/api/projects/{number}/export?exportType=JSON&download_all_tasks=true")
    return {"heard": heard, "given": given, **exports}


def try_numbers(studio: Server, folder: Path) -> dict[str, Any]:
    """Numbers, by exports alone."""
    path = campaign(folder, classes=False)
    with Campaign.open(path) as opened:
        export_tasks(opened, folder / "numbers", "label-studio", guess=True)
    number = studio.project("stakes: numbers", folder / "numbers")
    ours, given = order(path), []
    for place in range(3):
        task, row = studio.next_task(number)
        given.append(row)
        studio.annotate(task, 1.5 * place)
    see("numbers with guesses: sampling gives our order", given == ours[:3])
    kinds = ("JSON", "JSON_MIN", "CSV")
    exports = {kind: studio("GET", f"/api/projects/{number}/export?exportType={kind}") for kind in kinds}
    file = folder / "export.json"
    file.write_text(json.dumps(exports["JSON"]))
    with Campaign.open(path) as opened:
        imported = import_answers(opened, file)
    see(
        "the export is imported",
        imported is not None and imported.new == tuple(sorted(given, key=ours_first(exports["JSON"]))),
    )
    see("with its numbers", [float(label(path, row) or "nan") for row in given] == [0.0, 1.5, 3.0])
    return exports


def ours_first(tasks: list[Any]) -> Any:
    """The place of a row in an export."""
    places = {task["data"]["stakes_id"]: place for place, task in enumerate(tasks)}
    return places.__getitem__


def main(url: str, key: str, *more: str) -> None:
    """Try it all."""
    studio = Server(url, key)
    version = studio("GET", "/api/version")["label-studio-os-package"]["version"]
    print(f"Label Studio {version}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes, numbers = try_classes(studio, folder), try_numbers(studio, folder)
        if "--keep" not in more:
            return
        GOLDEN.mkdir(parents=True, exist_ok=True)
        for kind, found in (("classes", classes), ("numbers", numbers)):
            keep(f"{kind}.csv", (folder / f"{kind}.csv").read_text())
            keep(f"{kind}-export.json", found["JSON"])
            keep(f"{kind}-export-min.json", found["JSON_MIN"])
            keep(f"{kind}-export.csv", found["CSV"])
        actions: dict[str, int] = {}
        for path, body in classes["heard"]:
            what = body.get("action", path.strip("/")).lower()
            actions[what] = actions.get(what, 0) + 1
            if path == "/webhook" or actions[what] == 1:
                keep(f"{what}-{actions[what]}.json", body)
        keep("about.json", {"version": version, "given": classes["given"]})


if __name__ == "__main__":
    main(*sys.argv[1:])
