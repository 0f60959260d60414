"""Requests that are refused before anything is done: from elsewhere, too large, too slow; what every answer says."""

import socket
import threading
import time

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from uvicorn.protocols.http.h11_impl import H11Protocol

from stakes.label import guards
from stakes.label.guards import MOST_BYTES, Guards, patient

OURS = "127.0.0.1:8577"


async def echo(request):
    return PlainTextResponse(await request.body())


APP = Guards(Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]), {OURS, "localhost:8577"})


@pytest.fixture
def client():
    with TestClient(APP, base_url=f"http://{OURS}") as made:
        yield made


def post(client, origin=f"http://{OURS}", **more):
    return client.post("/", headers={"Origin": origin}, **more)


def test_what_is_ours_passes(client):
    assert client.get("/").status_code == 200
    assert post(client, content=b"hello").content == b"hello"
    assert post(client, origin="http://localhost:8577").status_code == 200
    assert post(client, content=b"x" * MOST_BYTES).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8577", "127.0.0.1", "127.0.0.1:", "127.0.0.1:8578", "127.0.0.1:8577.evil.example",
     "", "127.0.0.1.:8577", "localhost.:8577", "127.1:8577", "2130706433:8577", "0.0.0.0:8577", "evil@127.0.0.1:8577",
     "127.0.0.1:8577, evil.example", "[::1", "192.0.2.7:8577"],
)  # fmt: skip
def test_a_name_that_is_not_ours_is_refused(client, host):
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "", "https://127.0.0.1:8577", "http://127.0.0.1", "http://127.0.0.1:8577/x",
     "http://evil@127.0.0.1:8577", "http://127.0.0.1:8577?x", "http://127.0.0.1:8577#", "http://127.0.0.1:8577/",
     "http://127.0.0.1:8577 http://evil.example", "//127.0.0.1:8577", "http://127.0.0.1:9999", "http://[", "http://[::1"],
)  # fmt: skip
def test_a_change_from_another_page_is_refused(client, origin):
    assert post(client, origin=origin).status_code == 403


@pytest.mark.parametrize(
    ("server", "host"),
    [
        (("192.0.2.7", 8577), "192.0.2.7:8577"),
        (("192.0.2.7", 80), "192.0.2.7"),
        (("::ffff:192.0.2.7", 8577), "192.0.2.7:8577"),  # of a socket that takes both kinds of addresses
        (("2001:db8::1", 8577), "[2001:db8::1]:8577"),
    ],
)
def test_the_address_that_a_connection_came_to_is_ours_but_no_name_is(server, host):
    def asked(host, origin):
        scope = {"type": "http", "method": "POST", "server": server, "headers": [(b"host", host.encode())]}
        scope["headers"] += [(b"origin", origin.encode())]
        APP._check(scope)

    asked(host, f"http://{host}")
    for name, origin in (
        ("evil.example:8577", f"http://{host}"),
        (host, "http://evil.example:8577"),
        (host.replace("2", "3"), f"http://{host}"),
        (host, f"https://{host}"),
    ):
        with pytest.raises(guards.Refused):
            asked(name, origin)


def test_a_server_without_an_address_goes_by_its_names_alone():
    scope = {"type": "http", "method": "GET", "headers": [(b"host", b"/run/label.sock")]}
    for server in (None, ("/run/label.sock", None)):
        with pytest.raises(guards.Refused):
            APP._check({**scope, "server": server})


def test_a_change_that_does_not_say_where_it_comes_from_is_refused(client):
    assert client.post("/").status_code == 403


def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(client):
    assert post(client, content=b"x" * (MOST_BYTES + 1)).status_code == 413
    parts = (b"x" * 10_000 for _ in range(10_000))  # 100 MB, without a length
    assert post(client, content=parts).status_code == 413


def test_a_browser_is_shown_why_on_a_page(client):
    refused = client.get("/", headers={"Host": "evil.example", "Accept": "text/html"})
    assert "does not go by that name" in refused.text
    assert refused.text.startswith("<!doctype html>")


def test_every_answer_forbids_what_a_page_does_not_need(client):
    for answer in (client.get("/"), client.get("/", headers={"Host": "x"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


@pytest.fixture
def listening(monkeypatch):
    """The same behind a real socket, with little patience."""
    monkeypatch.setattr(guards, "PATIENCE", 0.3)
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    port = found.getsockname()[1]
    app = Guards(Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]), {f"127.0.0.1:{port}"})
    config = uvicorn.Config(app, http=patient(H11Protocol), ws="none", lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [found]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join()


def all_of(connection):
    """Everything until the other side closes."""
    connection.settimeout(60)
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "])
def test_a_request_that_never_ends_its_head_is_cut_off(listening, sent):
    with socket.create_connection(("127.0.0.1", listening)) as connection:
        connection.sendall(sent)
        assert all_of(connection) == b""


def test_a_second_request_that_never_ends_its_head_is_cut_off(listening):
    host = f"Host: 127.0.0.1:{listening}\r\n".encode()
    with socket.create_connection(("127.0.0.1", listening)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
        connection.settimeout(60)
        assert b"200 OK" in connection.recv(65_536)
        connection.sendall(b"GET / HTTP/1.1\r\nX")
        all_of(connection)


def test_a_body_that_never_ends_is_cut_off(listening):
    head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{listening}\r\nOrigin: http://127.0.0.1:{listening}\r\n"
    with socket.create_connection(("127.0.0.1", listening)) as connection:
        connection.sendall(f"{head}Content-Length: 100\r\n\r\nabc".encode())
        assert b"408" in all_of(connection)


def test_others_are_answered_while_somebody_is_slow(listening):
    slow = [socket.create_connection(("127.0.0.1", listening)) for _ in range(20)]
    with socket.create_connection(("127.0.0.1", listening)) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{listening}\r\nConnection: close\r\n\r\n".encode())
        assert b"200 OK" in all_of(connection)
    for each in slow:
        each.close()
