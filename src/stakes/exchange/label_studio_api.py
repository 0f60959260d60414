"""Our order, written to a project of Label Studio through its API, so that it is there the moment it changes.

Label Studio itself asks for predictions only when somebody tells it to. New predictions have a model version of their
own; then the project is set to sort by that one, and predictions of the last one are deleted. At every moment there is
one order to sort by.

Only the first tasks get a score. Where several people label, Label Studio draws the next task at random among all that
have one: among few good ones then. And with SQLite, its default, nobody else can write while predictions are imported.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any

from stakes.exceptions import StakesError
from stakes.exchange.label_studio import prediction
from stakes.exchange.tasks import ID, TaskList

_PUSHED = 20  # tasks at the head of the order; the next order comes before they are labelled
_TRIES, _PAUSE = 5, 2.0  # of a request that Label Studio could not serve, as its database was locked; seconds
_PAGE = 500  # tasks in an answer of the API
_SECONDS = 60.0
_MOST_BYTES = 2**28  # of an answer


class LabelStudioProject:
    """A project on a server of Label Studio.

    Args:
        url: The address of the server.
        number: That of the project, as its address has it.
        key: An access token of its "Account & Settings": a personal one, or a legacy one.

    Raises:
        StakesError: If the address is none.
    """

    def __init__(self, url: str, number: int, key: str) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise StakesError(f"the address of Label Studio must be like http://127.0.0.1:8080, not {url!r}")
        self._url, self._number, self._key = url.rstrip("/"), number, key
        self._opener = urllib.request.build_opener(_NoRedirects)  # the key goes to no other server
        self._access: str | None = None
        self._tasks: dict[str, int] = {}

    def check(self) -> str:
        """See whether the server is there, and knows the project and the key.

        Returns:
            The title of the project.

        Raises:
            StakesError: If not.
        """
        return str(self._call("GET", "").get("title"))

    def push(self, found: TaskList) -> int:
        """Put the tasks of the project in an order.

        Args:
            found: The rows, best first.

        Returns:
            How many tasks have a new score; rows that the project does not have are passed over.

        Raises:
            StakesError: If the server refuses it.
        """
        rows = found.tasks[:_PUSHED]
        if any(task.row not in self._tasks for task in rows):
            self._tasks = dict(self._all_tasks())
        known = [task for task in rows if task.row in self._tasks]
        if not known:
            return 0
        version = f"{found.version}-{time.time():.0f}"  # two scores of one version would both count
        new = [
            {"task": self._tasks[task.row], **prediction(task.score, task.guess, found.classes, version)}
            for task in known
        ]
        self._call("POST", "/import/predictions", new)
        self._call("PATCH", "", {"model_version": version})
        versions = self._call("GET", "/model-versions")
        for other in versions if isinstance(versions, dict) else ():
            if other.startswith("stakes-") and other != version:
                self._call("DELETE", "/model-versions", {"model_version": other})
        return len(known)

    def _all_tasks(self) -> Iterator[tuple[str, int]]:
        """Rows and the numbers of their tasks."""
        page, more = 1, True
        while more:
            query = urllib.parse.urlencode(
                {"project": self._number, "page": page, "page_size": _PAGE, "fields": "task_only"}
            )
            answer = self._request("GET", f"/api/tasks?{query}")
            tasks = answer.get("tasks", []) if isinstance(answer, dict) else []
            for task in tasks:
                row = (task.get("data") or {}).get(ID)
                if isinstance(row, str) and isinstance(task.get("id"), int):
                    yield row, task["id"]
            page, more = page + 1, len(tasks) == _PAGE

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._request(method, f"/api/projects/{self._number}{path}", body)

    def _request(self, method: str, path: str, body: Any = None, tries: int = _TRIES) -> Any:
        try:
            return self._send(method, path, body, {"Authorization": self._authorization()})
        except urllib.error.HTTPError as error:
            if tries > 1 and (error.code >= 500 or (error.code == 401 and self._access is not None)):
                self._access = None  # it is good for minutes only
                time.sleep(_PAUSE if error.code >= 500 else 0.0)
                return self._request(method, path, body, tries - 1)
            answer = error.read(500).decode(errors="replace")
            raise StakesError(f"Label Studio refused {method} {path}: {error.code} {answer}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise StakesError(f"Label Studio at {self._url} did not answer {method} {path}: {error}") from None

    def _authorization(self) -> str:
        """A personal access token is traded in for one that is good for minutes; a legacy one is sent as it is."""
        if self._key.count(".") != 2:
            return f"Token {self._key}"
        if self._access is None:
            self._access = str(self._send("POST", "/api/token/refresh", {"refresh": self._key}, {})["access"])
        return f"Bearer {self._access}"

    def _send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Any:
        data = None if body is None else json.dumps(body).encode()
        head = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        request = urllib.request.Request(self._url + path, data=data, method=method, headers=head)
        with self._opener.open(request, timeout=_SECONDS) as answer:
            text = answer.read(_MOST_BYTES)
        return json.loads(text) if text else {}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
