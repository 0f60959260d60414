"""`stakes serve-label-studio` as a process: what it says, what it takes, and that kill -9 loses nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from stakes.campaign import Campaign
from stakes.cli.serve_label_studio import _serve
from tests.cli.cli_cases import CLASSES, run

uvicorn = pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'stakes[label]'")
guards = pytest.importorskip("stakes.label.guards", reason="starlette is not installed: pip install 'stakes[label]'")


@pytest.fixture
def served(here):  # noqa: ARG001 (a folder of its own)
    """A campaign of classes, and what starts a server of it."""
    assert run("init k.stakes classes.csv", CLASSES, "--model extra-trees --model-option n_estimators=20").code == 0
    running = []

    def start(*more, **variables):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "stakes", "serve-label-studio", "k.stakes", "--port", str(port), *more]
        environment = {**os.environ, **variables}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        running.append(process)
        return process, f"http://127.0.0.1:{port}"

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ask(address, body=None, token=None):
    """The status and the answer, once the server is there."""
    head = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Token {token}"})
    data = None if body is None else json.dumps(body).encode()
    for _ in range(600):
        try:
            with urllib.request.urlopen(urllib.request.Request(address, data, head), timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("the server did not start")


def annotated(row, label, number=1):
    result = [{"from_name": "label", "to_name": "row", "type": "choices", "value": {"choices": [label]}}]
    return {
        "action": "ANNOTATION_CREATED",
        "annotation": {"id": number, "result": result, "was_cancelled": False, "completed_by": 1},
        "task": {"id": number, "data": {"stakes_id": row}},
        "project": {"id": 1},
    }


def test_requests_that_never_end_their_head_are_cut_off(monkeypatch):
    given = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **settings: given.update(settings, app=app))
    monkeypatch.setattr(guards, "PATIENCE", 0.3)
    _serve(None, "127.0.0.1", 0, None, None)
    server = uvicorn.Server(uvicorn.Config(**given, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        for sent in (b"", b"POST /webhook HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "):
            with socket.create_connection(server.servers[0].sockets[0].getsockname(), timeout=60) as connection:
                connection.sendall(sent)
                assert connection.recv(1000) == b""
    finally:
        server.should_exit = True
        thread.join()


def test_labels_that_were_acknowledged_survive_a_kill(served):
    process, address = served()
    assert ask(f"{address}/health")[0] == 200
    assert ask(f"{address}/webhook", annotated("r8", "bus"))[1]["recorded"] == 1
    process.kill()
    with Campaign.open("k.stakes") as opened:
        assert opened.journal.state("r8").label == "bus"
        opened.check()
    process, address = served()
    assert ask(f"{address}/webhook", annotated("r8", "bus"))[1]["known"] == 1
    deleted = {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1}], "project": {"id": 1}}
    assert ask(f"{address}/webhook", deleted)[1]["withdrawn"] == 1
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"k.stakes is a model for Label Studio at {address}" in out


def test_the_token_is_not_shown_and_is_asked_for_and_refusals_are_printed(served):
    process, address = served("--json", STAKES_LABEL_STUDIO_TOKEN="sesame")
    assert ask(f"{address}/health")[0] == 401
    assert ask(f"{address}/health", token="sesame")[0] == 200
    status, answer = ask(f"{address}/webhook", annotated("r8", "tram"), token="sesame")
    assert (status, "'tram' is no class" in answer["error"]) == (422, True)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "sesame" not in out + err
    printed, refused = [[json.loads(line) for line in text.splitlines()] for text in (out, err)]
    assert "stakes:TOKEN@127.0.0.1" in printed[0]["message"]
    assert any("'tram'" in each["error"] for each in refused)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ("--host 0.0.0.0", 1, "STAKES_LABEL_STUDIO_TOKEN"),
        ("--label-studio http://127.0.0.1:9 --project 1", 1, "LABEL_STUDIO_API_KEY"),
        ("--label-studio http://127.0.0.1:9", 2, "--project"),
        ("--certificate k.stakes", 2, "--key"),
    ],
)
def test_what_is_missing_is_reported_before_anything_is_served(served, monkeypatch, options, code, message):  # noqa: ARG001
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    monkeypatch.delenv("STAKES_LABEL_STUDIO_TOKEN", raising=False)
    answer = run("serve-label-studio k.stakes", options)
    assert answer.code == code
    assert message in answer.err


def test_a_label_studio_that_is_not_there_is_named(served, monkeypatch):  # noqa: ARG001
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "key")
    answer = run("serve-label-studio k.stakes --label-studio http://127.0.0.1:9 --project 1")
    assert answer.code == 1
    assert "Label Studio at http://127.0.0.1:9 did not answer" in answer.err
