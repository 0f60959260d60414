"""`stakes label` by https and at an address that others can reach: real requests with a certificate made here."""

import re
import shutil
import socket
import ssl
import subprocess
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection

import pytest

from tests.label.label_cases import Served, classes_campaign


@pytest.fixture
def certificate(tmp_path):
    """A certificate for 127.0.0.1 that nobody else has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl is installed, which makes a certificate for the test: apt-get install openssl")
    made, key = str(tmp_path / "label.pem"), str(tmp_path / "label.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made, "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


@pytest.fixture
def serve(tmp_path):
    """A function that starts a server, which is stopped at the end."""
    running = []

    def start(*options):
        running.append(Served(classes_campaign(tmp_path), tmp_path, *options))
        return running[-1]

    yield start
    for served in running:
        served.kill()


def test_the_page_is_served_by_https_and_its_cookie_goes_by_https_alone(serve, certificate):
    served = serve("--certificate", certificate[0], "--key", certificate[1])
    assert served.base.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=certificate[0])
    with closing(HTTPSConnection("127.0.0.1", served.port, context=trusting, timeout=60)) as line:
        line.request("GET", served.address.removeprefix(served.base))
        answer = line.getresponse()
        cookie = answer.getheader("set-cookie")
        answer.read()
        assert answer.status == 200
        assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=strict"))
        given = {"Cookie": cookie.partition(";")[0], "Content-Type": "application/x-www-form-urlencoded"}
        line.request("GET", "/name", headers=given)
        mark = re.search(r'name="mark" value="([^"]+)"', line.getresponse().read().decode())[1]
        for origin, status in ((served.base.replace("https", "http"), 403), (served.base, 303)):
            line.request("POST", "/name", f"mark={mark}&name=Anna", {**given, "Origin": origin})
            answer = line.getresponse()
            answer.read()
            assert answer.status == status
    with closing(HTTPConnection("127.0.0.1", served.port, timeout=60)) as plain:
        plain.request("GET", "/")
        with pytest.raises((HTTPException, OSError)):
            plain.getresponse()


def test_an_address_that_others_reach_is_warned_of_and_answers_to_its_own_names_alone(serve):
    served = serve("--host", "0.0.0.0", "--name", "lab.example")
    printed = served.output.read_text()
    assert "Warning: other machines can reach the page at 0.0.0.0, and what is sent is not encrypted" in printed
    token = served.address.partition("/?")[2]
    for host, status in (("lab.example", 200), (socket.gethostname(), 200), ("evil.example", 421)):
        with closing(HTTPConnection("127.0.0.1", served.port, timeout=60)) as line:
            line.request("GET", f"/?{token}", headers={"Host": f"{host}:{served.port}"})
            answer = line.getresponse()
            answer.read()
            assert answer.status == status, host
