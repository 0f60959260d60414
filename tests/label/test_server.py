"""What the server answers to whom, by raw requests: tokens, cookies, marks of forms, files, and what is only text."""

import os
import re
import time

import pytest
from starlette.testclient import TestClient

from stakes import Campaign
from stakes.files import write_csv
from stakes.label.flow import Desk, Rules
from stakes.label.media import Media
from stakes.label.server import Label
from stakes.label.session import Browser, Secret
from stakes.tabular import ModelSpec
from tests.label.label_cases import classes_campaign, numbers_campaign
from tests.label.test_flow import AtOnce

OURS = "127.0.0.1:8577"
ORIGIN = {"Origin": f"http://{OURS}"}
SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def opened():
    """A function that makes a client of a server for a campaign."""
    clients = []

    def make(path, **rules):
        secret = Secret.of(path)
        label = Label(lambda: Desk(Campaign.open(path), Rules(**rules), AtOnce(path)), secret, [OURS])
        client = TestClient(label.app, base_url=f"http://{OURS}", follow_redirects=False)
        client.__enter__()
        client.secret = secret
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.__exit__(None, None, None)


def come_in(client, name="Anna"):
    assert client.get(f"/?token={client.secret.token}").status_code == 200
    mark = re.search(r'name="mark" value="([^"]+)"', client.get("/name").text)[1]
    assert client.post("/name", data={"mark": mark, "name": name}, headers=ORIGIN).status_code == 303
    return mark


def row_of(page):
    return re.search(r'data-row="([^"]+)"', page.text)[1]


def version(path):
    with Campaign.open(path) as campaign:
        return campaign.journal.version()


def test_a_token_lets_in_and_leaves_the_address(opened, tmp_path):
    client = opened(classes_campaign(tmp_path))
    answer = client.get(f"/?token={client.secret.token}")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.secret.token not in answer.text
    assert 'content="0;url=/"' in answer.text


def test_label_put_off_undo_without_script(opened, tmp_path):
    path = classes_campaign(tmp_path)
    client = opened(path)
    mark = come_in(client)
    client.get("/panel")
    row = row_of(client.get("/"))
    assert client.post("/answer", data={"mark": mark, "row": row, "label": "good"}, headers=ORIGIN).status_code == 303
    page = client.get("/")
    assert row_of(page) != row
    undo = re.search(r'name="act" value="(\d+)"', page.text)[1]
    client.post("/undo", data={"mark": mark, "act": undo}, headers=ORIGIN)
    assert row_of(client.get("/")) == row
    client.post("/off", data={"mark": mark, "row": row, "act": "skip"}, headers=ORIGIN)
    with Campaign.open(path) as campaign:
        assert campaign.journal.state(row).status == "skipped"


@pytest.mark.parametrize("address", ["/", "/name", "/settle", "/keys", "/panel", "/guess?row=p020", "/media/a.png"])
def test_without_a_cookie_nothing_is_shown(opened, tmp_path, address):
    client = opened(classes_campaign(tmp_path))
    for cookies in ({}, {client.secret.cookie: "x.y"}, {client.secret.cookie: f"{'A' * 9000}.y"}):
        client.cookies.clear()
        client.cookies.update(cookies)
        answer = client.get(address)
        assert answer.status_code == 401
        assert "p0" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "\u20ac", "A" * 5000])
def test_a_wrong_token_is_refused_and_gets_no_cookie(opened, tmp_path, token):
    client = opened(classes_campaign(tmp_path))
    answer = client.get("/", params={"token": token})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_forged_changes_are_refused_and_change_nothing(opened, tmp_path):
    path = classes_campaign(tmp_path)
    client = opened(path)
    mark = come_in(client)
    row = row_of(client.get("/"))
    before = version(path)
    other = client.secret.form_mark(Browser("another"))
    good = {"row": row, "label": "good", "act": "skip", "name": "Eve"}
    for address in ("/answer", "/off", "/undo", "/settle", "/keys", "/name"):
        for form in ({}, {"mark": ""}, {"mark": other}, {"mark": "\udcff"}):
            body = "&".join(f"{name}={value}" for name, value in {**good, **form}.items()).encode(
                "utf-8", "surrogateescape"
            )
            sent = client.post(
                address, content=body, headers={**ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
            )
            assert sent.status_code in (400, 403), (address, form)
        for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert client.post(address, data={**good, "mark": mark}, headers=headers).status_code == 403
        assert client.post(address, json={**good, "mark": mark}, headers=ORIGIN).status_code == 415
        assert client.get(f"{address}?row={row}&label=good&mark={mark}").status_code in (200, 405)
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert version(path) == before


def test_what_is_no_label_is_refused_with_a_message(opened, tmp_path):
    path = numbers_campaign(tmp_path)
    client = opened(path, unit="EUR")
    mark = come_in(client)
    page = client.get("/")
    assert "EUR" in page.text
    before = version(path)
    form = {"mark": mark, "row": row_of(page), "label": "<b>much</b>"}
    answer = client.post("/answer", data=form, headers={**ORIGIN, "X-Part": "1"})
    assert answer.status_code == 422
    assert "Nothing was recorded" in answer.json()["notice"]
    assert "<b>" not in answer.json()["work"]
    for wrong in ({"row": "nobody", "label": "3"}, {"row": "", "label": "3"}, {"label": "3"}):
        assert (
            client.post("/answer", data={"mark": mark, **wrong}, headers={**ORIGIN, "X-Part": "1"}).status_code == 422
        )
    assert (
        client.post("/off", data={"mark": mark, "row": row_of(page), "act": "burn"}, headers=ORIGIN).status_code == 422
    )
    assert version(path) == before
    assert client.post("/answer", data={**form, "label": "3,5"}, headers={**ORIGIN, "X-Part": "1"}).status_code in (
        200,
        422,
    )


def test_whatever_is_in_a_table_is_text(opened, tmp_path):
    table, path = tmp_path / "t.csv", tmp_path / "c.stakes"
    labels = [SCRIPT, "good", SCRIPT, "good"] + [None] * 6
    write_csv(
        table, ["id", SCRIPT, "x", "state"], [(f"{SCRIPT}{at}", SCRIPT, at, label) for at, label in enumerate(labels)]
    )
    model = ModelSpec("extra-trees", {"n_estimators": 20})
    Campaign.create(path, table, "state", "zero-one", id_column="id", ignore=(SCRIPT,), model=model).close()
    client = opened(path, unit=SCRIPT)
    mark = come_in(client, "<i>Anna</i>"[:60])
    page = client.get("/")
    form = {"mark": mark, "row": f"{SCRIPT}5", "label": SCRIPT}
    answer = client.post("/answer", data=form, headers={**ORIGIN, "X-Part": "1"})
    assert answer.status_code == 200
    shown = [page.text, client.get("/keys").text, client.get("/settle").text, answer.json()["work"]]
    shown.append(client.get("/panel", params={"row": f"{SCRIPT}4"}).json()["panel"])
    for text in shown:
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<i>Anna" not in text
    assert "&lt;script&gt;alert(1)" in page.text


def test_media_stay_in_their_folder(opened, tmp_path):
    folder = tmp_path / "media"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"png")
    (folder / "a.txt").write_text("text")
    (tmp_path / "b.png").write_bytes(b"secret")
    (folder / "link").symlink_to(tmp_path)
    (folder / "link.png").symlink_to(tmp_path / "b.png")
    (folder / "round.png").symlink_to(folder / "round.png")
    os.mkfifo(folder / "pipe.png")  # whoever opened it would wait for ever
    client = opened(classes_campaign(tmp_path), media=Media.of(str(folder)))
    come_in(client)
    assert client.get("/media/a.png").content == b"png"
    for name in (
        "../b.png",
        "..%2fb.png",
        "%2e%2e/b.png",
        "a.txt",
        "..\\b.png",
        "%00",
        str(tmp_path / "b.png"),
        "a.png/../../b.png",
        "%2e%2e%2fb.png",
        "%252e%252e%252fb.png",
        "%c0%ae%c0%ae/b.png",
        f"/{tmp_path}/b.png",
        "link/b.png",
        "link.png",
        "pipe.png",
        "round.png",
        "a/" * 900 + "b.png",
    ):
        answer = client.get(f"/media/{name}")
        assert answer.status_code == 404, name
        assert b"secret" not in answer.content
    for name in ("label.py", "../server.py", "..%2f__init__.py"):
        assert client.get(f"/static/{name}").status_code == 404


def test_keys_are_chosen_for_a_browser(opened, tmp_path):
    client = opened(classes_campaign(tmp_path))
    mark = come_in(client)
    chosen = {"mark": mark, "class:good": "g", "class:bad": "b", "later": "", "unsure": "u", "skip": "x"}
    assert client.post("/keys", data={**chosen, "skip": "g"}, headers=ORIGIN).status_code == 422
    assert client.post("/keys", data=chosen, headers=ORIGIN).status_code == 303
    page = client.get("/").text
    assert 'data-key="g"' in page
    assert 'data-key="l"' not in page
    assert 'data-key="1"' not in page


def test_more_keys_than_a_browser_keeps_are_refused_and_the_browser_stays_in(opened, tmp_path):
    table, path = tmp_path / "t.csv", tmp_path / "c.stakes"
    names = [f"a class with a name of some length, number {at} of them" for at in range(60)]
    write_csv(table, ["id", "x", "state"], [(f"r{at}", at, names[at % 2] if at < 6 else None) for at in range(20)])
    model = ModelSpec("extra-trees", {"n_estimators": 20})
    Campaign.create(path, table, "state", "zero-one", id_column="id", classes=tuple(names), model=model).close()
    client = opened(path)
    mark = come_in(client)
    letters = [chr(at) for at in range(0x3B1, 0x3C2)] + [chr(at) for at in range(0x430, 0x450)]
    chosen = {"mark": mark, **{f"class:{name}": key for name, key in zip(names, letters, strict=False)}}
    refused = client.post("/keys", data=chosen, headers=ORIGIN)
    assert refused.status_code == 422
    assert "more than a browser keeps" in refused.text
    usual = {name: str(place) for place, name in enumerate(names[:9], 1)}
    few = {"mark": mark, **{f"class:{name}": usual.get(name, "") for name in names}, f"class:{names[40]}": "q"}
    assert client.post("/keys", data={**few, "class:of somebody else": "x"}, headers=ORIGIN).status_code == 303
    browser = client.secret.opened(client.cookies[client.secret.cookie].strip('"'))
    assert (browser.name, browser.keys) == ("Anna", {f"class:{names[40]}": "q"})
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("left", ["a.\xe9", "\xe9.\xe9", "x", "."])
def test_a_cookie_that_another_server_of_this_machine_left_is_none(opened, tmp_path, left):
    client = opened(classes_campaign(tmp_path))
    header = {"Cookie": f"{client.secret.cookie}={left}".encode("latin-1")}
    assert client.get("/", headers=header).status_code == 401
    answer = client.get(f"/?token={client.secret.token}", headers=header)
    assert answer.status_code == 200  # nobody is shut out by it
    assert client.secret.cookie in answer.headers["set-cookie"]


def test_enter_in_the_box_for_another_class_presses_no_class(opened, tmp_path):
    """A browser takes the first submit button of the form for Enter; where it is disabled, nothing is sent."""
    client = opened(classes_campaign(tmp_path, classes=None))
    come_in(client)
    page = client.get("/").text
    form = page[page.index('id="card"') :]
    first = re.search(r"<button([^>]*)>", form)[1]
    assert 'disabled="disabled"' in first
    assert 'hidden="hidden"' in first
    assert 'name="other"' in form


def test_settling_offers_no_class_that_it_would_refuse(opened, tmp_path):
    path = classes_campaign(tmp_path, classes=None)
    with Campaign.open(path) as campaign:
        campaign.tell("p020", "good", annotator="Ben")
        campaign.tell("p020", "ugly", annotator="Cleo", new_class=True)
    client = opened(path)
    mark = come_in(client)
    page = client.get("/settle").text
    assert 'name="other"' not in page
    assert 'value="ugly"' in page
    form = {"mark": mark, "row": "p020", "label": "ugly"}
    assert client.post("/settle", data=form, headers={**ORIGIN, "X-Part": "1"}).status_code == 200


def test_a_disagreement_is_settled(opened, tmp_path):
    path = classes_campaign(tmp_path)
    with Campaign.open(path) as campaign:
        campaign.tell("p020", "good", annotator="Ben")
        campaign.tell("p020", "bad", annotator="Cleo")
    client = opened(path)
    mark = come_in(client)
    page = client.get("/settle").text
    assert "Ben" in page
    assert "Cleo" in page
    answer = client.post(
        "/settle", data={"mark": mark, "row": "p020", "label": "bad"}, headers={**ORIGIN, "X-Part": "1"}
    )
    assert "Nothing to settle" in answer.json()["work"]
    with Campaign.open(path) as campaign:
        assert campaign.disagreements() == ()
        assert campaign.journal.state("p020").label == "bad"


def test_a_guess_is_shown_when_asked_for(opened, tmp_path):
    client = opened(classes_campaign(tmp_path))
    come_in(client)
    client.get("/panel")
    page = client.get("/")
    assert "%)" not in page.text
    assert re.search(r"(good|bad) \(\d+%\)", client.get("/guess", params={"row": row_of(page)}).json()["guess"])
    assert "no guess" in client.get("/guess", params={"row": "nobody"}).json()["guess"]


def test_an_audit_is_labelled_on_the_page_and_tells_the_loss_today(opened, tmp_path):
    path = classes_campaign(tmp_path)
    with Campaign.open(path) as campaign:
        rows = campaign.audit(3)
    client = opened(path)
    mark = come_in(client)
    for row in rows:
        page = client.get("/")
        assert row_of(page) == row
        assert "Row of an audit" in page.text
        assert "Not sure" not in page.text
        assert client.get(f"/panel?row={row}").json()["panel"].count("nothing: it tests the model") == 1
        sent = {"mark": mark, "row": row, "label": "good"}
        assert client.post("/answer", data=sent, headers=ORIGIN).status_code == 303
    page = client.get("/")
    assert "Row of an audit" not in page.text
    assert "measured by an audit" in page.text
    with Campaign.open(path) as campaign:
        assert [campaign.journal.state(row).status for row in rows] == ["tested"] * 3
        assert not set(rows) & set(campaign.training_labels())


def test_a_card_that_is_open_in_a_browser_stays_with_it(opened, tmp_path, monkeypatch):
    path = classes_campaign(tmp_path)
    client = opened(path, lease=100.0)
    come_in(client)
    row, start = row_of(client.get("/")), time.time()
    for after in (60.0, 120.0, 180.0):
        monkeypatch.setattr(time, "time", lambda after=after: start + after)
        assert client.get(f"/panel?row={row}").status_code == 200
    with Campaign.open(path) as campaign:
        assert campaign.journal.state(row).who == "Anna"
        assert campaign.journal.state(row).until > start + 200.0
