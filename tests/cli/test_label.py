"""`stakes label`: what is refused before anything is served, and the names that a server goes by."""

import ipaddress
import socket
import sys

import pytest

from stakes.cli.label import _address_for_others, _hosts, _listening, _price, _serving_modules
from stakes.exceptions import StakesError
from tests.in_process import run_command
from tests.label.label_cases import classes_campaign


def test_prices_are_names_and_numbers():
    assert _price("expert:5") == ("expert", 5.0)
    assert _price("dr: house:2.5") == ("dr: house", 2.5)
    with pytest.raises(StakesError, match="NAME:PRICE, such as expert:5"):
        _price("expert:much")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--annotator", "expert"], "NAME:PRICE"),
        (["--annotator", "expert:0"], "price"),
        (["--media", "nowhere"], "there is no folder nowhere"),
        (["--port", "1", "--host", "203.0.113.1"], "nothing can listen at 203.0.113.1"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, options, message):
    classes_campaign(tmp_path)
    code, output = run_command(["label", "parts.stakes", "--no-browser", *options], tmp_path)
    assert code == 1
    assert message in output


def test_there_is_no_page_without_a_campaign(tmp_path):
    code, output = run_command(["label", "nothing.stakes", "--no-browser"], tmp_path)
    assert code == 1
    assert "there is no campaign at" in output


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"pip install 'stakes\[label\]'"):
        _serving_modules()


def test_a_server_goes_by_the_names_that_it_is_reached_by():
    assert _hosts("127.0.0.1", 81, ())[0] == "127.0.0.1:81"
    assert set(_hosts("127.0.0.1", 81, ())) == {"127.0.0.1:81", "localhost:81", "[::1]:81"}
    assert _hosts("192.0.2.7", 81, ("desk.example",)) == ["desk.example:81", "192.0.2.7:81"]
    assert f"{socket.gethostname()}:81" in _hosts("0.0.0.0", 81, ())
    assert _hosts("2001:db8::1", 81, ()) == ["[2001:db8::1]:81"]


def test_the_address_that_is_printed_first_is_one_at_which_it_serves():
    assert _hosts("::1", 81, ())[0] == "[::1]:81"
    assert _hosts("localhost", 81, ())[0] == "127.0.0.1:81"


def test_browsers_leave_out_the_usual_port():
    assert _hosts("192.0.2.7", 80, ()) == ["192.0.2.7", "192.0.2.7:80"]
    assert _hosts("192.0.2.7", 443, (), "https") == ["192.0.2.7", "192.0.2.7:443"]
    assert _hosts("192.0.2.7", 443, (), "http") == ["192.0.2.7:443"]


def test_whoever_does_not_know_the_name_of_the_machine_has_its_address():
    assert _address_for_others("127.0.0.1") is None
    found = _address_for_others("0.0.0.0")
    assert found is None or not ipaddress.ip_address(found).is_loopback


def test_where_a_port_is_taken_it_says_so():
    with _listening("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(StakesError, match=f"nothing can listen at 127.0.0.1, port {port}"):
            _listening("127.0.0.1", port)
