"""The server that Label Studio speaks to: what it answers, and whom it refuses."""

import base64
import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("starlette", reason="starlette is not installed: pip install 'stakes[label]'")
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx
import uvicorn

from stakes.campaign import Campaign
from stakes.exceptions import StakesError
from stakes.exchange import label_studio_server
from stakes.exchange.label_studio_server import is_local, label_studio_app
from stakes.exchange.live import LiveCampaign
from tests.exchange.conftest import create, golden

CREATED = golden("annotation_created-1.json")


@pytest.fixture
def path(tmp_path):
    create(tmp_path, "classes").close()
    return tmp_path / "classes.stakes"


@pytest.fixture
def live(path):
    opened = LiveCampaign(path)
    yield opened
    opened.close()


@pytest.fixture
def reports():
    return []


@contextmanager
def served(live, **options):
    """A client of the application behind a real server."""
    config = uvicorn.Config(label_studio_app(live, **options), host="127.0.0.1", port=0, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def raw(client, head, body=b""):
    """The first line that comes back, whatever is sent."""
    with socket.create_connection(("127.0.0.1", client.base_url.port), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + body)
        return connection.recv(1000).split(b"\r\n")[0].decode()


@pytest.fixture
def client(live, reports):
    with served(live, report=reports.append) as opened:
        yield opened


def labels(path):
    with Campaign.open(path) as opened:
        return sum(state.label is not None for state in opened.journal.states().values())


def test_label_studio_gets_what_it_documents(client, path, reports):
    assert client.get("/health").json() == {"status": "UP", "model_class": "stakes"}
    assert client.get("/").status_code == 200
    assert client.post("/setup", json=golden("setup-1.json")).json() == {"model_version": "stakes-8"}
    answer = client.post("/predict", json=golden("predict-1.json")).json()
    assert len(answer["results"]) == len(golden("predict-1.json")["tasks"])
    assert all({"score", "result", "model_version"} <= each.keys() for each in answer["results"])
    assert client.post("/webhook", json=CREATED).json()["recorded"] == 1
    assert labels(path) == 9
    assert reports == []


def test_unknown_classes_are_refused_with_a_message_that_is_shown(client, path, reports):
    answer = client.post("/webhook", json=golden("annotation_created-6.json"))
    assert answer.status_code == 422
    assert "'no such class' is no class; there are '$5', 'bus'" in answer.json()["error"]
    assert reports == [f"POST /webhook was refused (422): {answer.json()['error']}"]
    config = {"schema": golden("setup-1.json")["schema"].replace('"bus"', '"buss"')}
    assert client.post("/setup", json=config).status_code == 422
    assert labels(path) == 8


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example:9090"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9090"}, 403),
        ({"origin": "null"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_pages_and_foreign_names_are_refused(client, path, headers, status):
    head = {"content-type": "application/json", **headers}
    answer = client.post("/webhook", content=json.dumps(CREATED), headers=head)
    assert answer.status_code == status, answer.text
    assert labels(path) == 8


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:9090", "[::1]", "LOCALHOST"])
def test_names_of_this_machine_are_taken(client, host):
    assert client.get("/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b"[" * 100_000])
def test_bodies_that_are_no_object_are_refused(client, body):
    answer = client.post("/webhook", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400


def test_a_body_of_100_megabytes_is_refused_before_it_comes(client, path):
    for path_ in ("/webhook", "/predict", "/setup"):
        head = f"POST {path_} HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: 100000000\n\n"
        assert raw(client, head).split()[1] == "413"
    assert labels(path) == 8


def test_bodies_are_bounded_whatever_they_say_of_their_length(client, path):
    def parts():
        for _ in range(20):
            yield b" " * 2**20

    try:
        answer = client.post("/webhook", content=parts(), headers={"content-type": "application/json"})
        assert answer.status_code == 413
    except httpx.TransportError:  # the connection was closed while parts were on their way
        pass
    assert labels(path) == 8


def basic(name, password):
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        ("", 401),
        ("Basic", 401),
        ("Basic ???", 401),
        ("Basic /w==", 401),
        (basic("stakes", "wrong"), 401),
        (basic("sesame öffne", ""), 401),
        ("Digest sesame öffne", 401),
        ("sesame öffne", 401),
        (basic("anybody", "sesame öffne"), 200),
    ],
)
def test_a_token_is_asked_for_everywhere(live, path, given, status):
    headers = {} if given is None else {"authorization": given.encode()}
    with served(live, token="sesame öffne") as client:
        for answer in (client.get("/health", headers=headers), client.post("/webhook", json=CREATED, headers=headers)):
            assert answer.status_code == status
    assert labels(path) == (9 if status == 200 else 8)


@pytest.mark.parametrize("kind", ["Token", "Bearer", "bearer"])
def test_other_kinds_of_tokens(live, kind):
    with served(live, token="sesame") as client:
        assert client.get("/health", headers={"authorization": f"{kind} sesame"}).status_code == 200
        assert client.get("/health", headers={"authorization": f"{kind} sesam"}).status_code == 401


def test_a_server_that_others_can_reach_needs_a_token(live):
    with pytest.raises(StakesError, match="STAKES_LABEL_STUDIO_TOKEN"):
        label_studio_app(live, local=False)
    with served(live, local=False, token="sesame") as client:
        head = {"authorization": "Token sesame", "host": "stakes.example"}
        assert client.get("/health", headers=head).status_code == 200
    assert [is_local(each) for each in ("localhost", "::1", "127.0.0.2", "0.0.0.0", "example.org", "10.0.0.1")] == [
        *[True] * 3,
        *[False] * 3,
    ]


def test_a_bug_is_called_one_and_reported(live, reports, monkeypatch):
    def broken(_):
        raise RuntimeError("oops")

    monkeypatch.setattr(live, "setup", broken)
    with served(live, report=reports.append) as client:
        answer = client.post("/setup", json={})
    assert answer.status_code == 500
    assert "bug in stakes" in answer.json()["error"]
    assert reports


def test_a_body_that_never_comes_is_given_up(client, monkeypatch):
    monkeypatch.setattr(label_studio_server, "_SECONDS", 0.2)
    head = "POST /webhook HTTP/1.1\nHost: 127.0.0.1\nContent-Type: application/json\nContent-Length: 10\n\n"
    assert raw(client, head, b"{").split()[1] == "408"
