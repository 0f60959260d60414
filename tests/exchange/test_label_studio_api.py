"""Orders that are written to a project: against a server that answers as Label Studio 1.23.2 did."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stakes.exceptions import StakesError
from stakes.exchange import label_studio_api
from stakes.exchange.label_studio_api import LabelStudioProject
from stakes.exchange.tasks import Task, TaskList

PERSONAL = "head.body.signature"


class Studio:
    """Tasks 1, 2, 3 .. of rows a, b, c .., and what was done to them."""

    def __init__(self, rows="abc", failures=0):
        self.tasks = [{"id": number, "data": {"stakes_id": row}} for number, row in enumerate(rows, start=1)]
        self.predictions = [{"task": 1, "model_version": "stakes-3-1"}, {"task": 1, "model_version": "mine"}]
        self.version, self.failures, self.seen, self.access = "stakes-3-1", failures, [], 0

    def answer(self, method, path, body, authorization):
        self.seen.append((method, path.partition("?")[0]))
        if path == "/api/token/refresh":
            assert body == {"refresh": PERSONAL}
            self.access += 1
            return 200, {"access": f"access-{self.access}"}
        if authorization not in ("Token key", f"Bearer access-{self.access}"):
            return 401, {"detail": "Invalid token"}
        if self.failures:
            self.failures -= 1
            return 500, {"detail": "database is locked"}
        return self.granted(method, path, body)

    def granted(self, method, path, body):
        if path.startswith("/api/tasks?"):
            page = int(path.partition("page=")[2].partition("&")[0])
            return 200, {"tasks": self.tasks[(page - 1) * 2 : page * 2]}
        if path == "/api/projects/7/import/predictions":
            self.predictions += body
            return 201, {"created": len(body)}
        if path == "/api/projects/7/model-versions":
            if method == "DELETE":
                kept = [each for each in self.predictions if each["model_version"] != body["model_version"]]
                self.predictions = kept
            return 200, {each["model_version"]: 1 for each in self.predictions}
        if path == "/api/projects/7":
            if method == "PATCH":
                assert any(each["model_version"] == body["model_version"] for each in self.predictions)
                self.version = body["model_version"]
            return 200, {"title": "Lorries"}
        return 404, {"detail": "Not found."}


@contextmanager
def serving(studio):
    class Handler(BaseHTTPRequestHandler):
        def do(self):
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = studio.answer(
                self.command, self.path, json.loads(text) if text else None, self.headers.get("Authorization")
            )
            self.send_response(found[0])
            for name, value in found[2].items() if len(found) > 2 else ():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(found[1]).encode())

        do_GET = do_POST = do_PATCH = do_DELETE = do  # noqa: N815

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def order(rows, version="stakes-4"):
    tasks = tuple(Task(row, {}, place / max(len(rows) - 1, 1)) for place, row in enumerate(rows))
    return TaskList(tasks, "kind", ("x", "y"), version, 0)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(label_studio_api, "_PAUSE", 0.0)
    monkeypatch.setattr(label_studio_api, "_PAGE", 2)


def test_the_project_has_one_order_and_what_others_predicted_stays():
    studio = Studio()
    with serving(studio) as url:
        project = LabelStudioProject(url + "/", 7, "key")
        assert project.check() == "Lorries"
        assert project.push(order("cab")) == 3
    ours = [each for each in studio.predictions if each["model_version"] != "mine"]
    assert [(each["task"], each["score"]) for each in ours] == [(3, 0.0), (1, 0.5), (2, 1.0)]
    assert {each["model_version"] for each in ours} == {studio.version}
    assert studio.version.startswith("stakes-4-")
    assert len(studio.predictions) == 4


def test_rows_without_a_task_are_passed_over_and_tasks_are_looked_up_once():
    studio = Studio()
    with serving(studio) as url:
        project = LabelStudioProject(url, 7, "key")
        assert project.push(order("cb")) == 2
        looked = studio.seen.count(("GET", "/api/tasks"))
        assert project.push(order("bc", "stakes-5")) == 2
        assert studio.seen.count(("GET", "/api/tasks")) == looked
        assert project.push(order("z", "stakes-6")) == 0
    assert studio.version.startswith("stakes-5-")


def test_only_the_first_tasks_get_a_score():
    rows = [chr(65 + place) for place in range(50)]
    studio = Studio(rows)
    with serving(studio) as url:
        assert LabelStudioProject(url, 7, "key").push(order(rows)) == 20


def test_a_locked_database_is_waited_for_but_not_for_ever():
    studio = Studio(failures=3)
    with serving(studio) as url:
        assert LabelStudioProject(url, 7, "key").push(order("a")) == 1
        studio.failures = 100
        with pytest.raises(StakesError, match=r"500.*database is locked"):
            LabelStudioProject(url, 7, "key").push(order("a"))


def test_a_personal_token_is_traded_in_and_again_when_it_has_run_out():
    studio = Studio()
    with serving(studio) as url:
        project = LabelStudioProject(url, 7, PERSONAL)
        project.check()
        project.check()
        assert studio.access == 1
        studio.access = 5
        assert project.check() == "Lorries"
        assert studio.access == 6


def test_refusals_are_sentences():
    with serving(Studio()) as url:
        with pytest.raises(StakesError, match=r"refused GET /api/projects/7: 401.*Invalid token"):
            LabelStudioProject(url, 7, "wrong").check()
        with pytest.raises(StakesError, match="refused GET /api/projects/8: 404"):
            LabelStudioProject(url, 8, "key").check()
    with pytest.raises(StakesError, match="did not answer"):
        LabelStudioProject("http://127.0.0.1:9", 7, "key").check()
    with pytest.raises(StakesError, match=r"http://127\.0\.0\.1:8080"):
        LabelStudioProject("ftp://example.org", 7, "key")


def test_the_key_follows_no_redirect():
    elsewhere = Studio()
    with serving(elsewhere) as other:
        here = Studio()
        here.answer = lambda *_: (302, {}, {"Location": f"{other}/api/projects/7"})
        with serving(here) as url, pytest.raises(StakesError, match="302"):
            LabelStudioProject(url, 7, "key").check()
    assert elsewhere.seen == []
