"""The server of the page: addresses, forms, and who is answered what.

All that has to do with the campaign is done in one thread, in which it is open; the loop that takes requests waits for
it, and takes others meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from stakes._utils.markup import Content, text
from stakes.exceptions import StakesError
from stakes.label import pages
from stakes.label.flow import Desk
from stakes.label.guards import Guards, Refused, refusal
from stakes.label.media import IMAGES
from stakes.label.session import Browser, Secret, new_browser
from stakes.label.visit import Visit

T = TypeVar("T")
_STATIC = {"label.js": "text/javascript", "label.css": "text/css", "icon.svg": "image/svg+xml"}
_POLL = 1.0  # seconds between looks at the worker
_YEAR = 365 * 24 * 3600


class Label:
    """The application: one campaign, any number of browsers.

    Args:
        open_desk: Makes the desk; called in the thread that it is used in.
        secret: Of the campaign.
        hosts: The names with ports that the server goes by.
        scheme: http, or https.
    """

    def __init__(
        self, open_desk: Callable[[], Desk], secret: Secret, hosts: Collection[str], scheme: str = "http"
    ) -> None:
        self._open_desk, self._secret, self._scheme = open_desk, secret, scheme
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="stakes-desk")
        self._desk: Desk | None = None
        self._shown = asyncio.Event()
        """Set when somebody has seen a first page to label on."""
        self.app = Guards(self._routes(), frozenset(host.lower() for host in hosts), scheme)

    def _routes(self) -> Starlette:
        routes = [
            Route("/", self._home),
            Route("/name", self._name, methods=["GET", "POST"]),
            Route("/answer", self._answer, methods=["POST"]),
            Route("/off", self._off, methods=["POST"]),
            Route("/undo", self._undo, methods=["POST"]),
            Route("/settle", self._settle, methods=["GET", "POST"]),
            Route("/keys", self._keys, methods=["GET", "POST"]),
            Route("/panel", self._panel),
            Route("/guess", self._guess),
            Route("/media/{name:path}", self._media),
            Route("/static/{name}", self._static),
        ]
        return Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers={Refused: _refused, StakesError: _wrong}
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._desk = await self._in_thread(self._open)
        looking = asyncio.create_task(self._look())
        commanding = asyncio.create_task(self._command())
        importing = asyncio.create_task(self._import_ahead())
        try:
            yield
        finally:
            for task in (looking, commanding, importing):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            if (command := self._desk.rules.command) is not None:
                command.stop()
            await self._in_thread(self._desk.close)
            self._thread.shutdown()

    def _open(self) -> Desk:
        desk = self._open_desk()
        desk.open()
        return desk

    async def _look(self) -> None:
        """See to the worker now and then, whoever is there."""
        while True:
            await asyncio.sleep(_POLL)
            with contextlib.suppress(StakesError):
                await self._in_thread(self._the_desk.look)

    async def _import_ahead(self) -> None:
        """Import what tells how reliable people are before it is needed, but not before there is a page."""
        await self._shown.wait()
        if await self._in_thread(self._the_desk.several_opinions):
            await asyncio.to_thread(import_module, "stakes.ranking")

    async def _command(self) -> None:
        """Have the command label rows, one after another, beside the people; after a failure it is not asked again."""
        desk = self._the_desk
        command = desk.rules.command
        while command is not None and desk.problem_of_command is None:
            card = await self._in_thread(desk.for_command)
            if card is None:
                await asyncio.sleep(_POLL)
                continue
            values = {cell.column: cell.content or cell.text for cell in card.values}
            classes = () if desk.numbers else await self._in_thread(desk.classes)
            try:
                label = await asyncio.to_thread(command.ask, card.row, values, classes)
                await self._in_thread(partial(desk.take, command.name, card.row, label))
            except StakesError as error:
                desk.problem_of_command = str(error)

    @property
    def _the_desk(self) -> Desk:
        assert self._desk is not None
        return self._desk

    def _visit(self, browser: Browser) -> Visit:
        return Visit(self._the_desk, browser.name, browser.keys, self._secret.form_mark(browser))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    # Pages

    async def _home(self, request: Request) -> Response:
        """The row in hand; with a token, let a browser in and send it here without."""
        if (token := request.query_params.get("token")) is not None:
            return self._let_in(request, token)
        browser = self._browser(request)
        if not browser.name:
            return RedirectResponse("/name", 303)
        visit = self._visit(browser)

        def page() -> Content:
            self._the_desk.look()
            view, card = visit.view(), self._the_desk.card(browser.name)
            return pages.label_page(view, visit.work(view, card), visit.panel(view, card))

        shown = await self._in_thread(lambda: text(page()))
        self._shown.set()
        return HTMLResponse(shown)

    def _let_in(self, request: Request, token: str) -> Response:
        if not self._secret.admits(token):
            raise Refused(403, "that token is not the one of this campaign; use the address that stakes label printed")
        known = self._secret.opened(request.cookies.get(self._secret.cookie))
        page = pages.message_page("You are in", ["One moment."], link="Go on", to="/")
        return self._with_cookie(HTMLResponse(page), known or new_browser())

    async def _name(self, request: Request) -> Response:
        browser = self._browser(request)
        view = await self._in_thread(self._visit(browser).view)
        if request.method == "GET":
            return HTMLResponse(pages.name_page(view))
        form = await self._form(request, browser)
        try:
            named = browser.named(form.get("name", ""))
        except StakesError as error:
            return HTMLResponse(pages.name_page(view, str(error)), 422)
        return self._with_cookie(RedirectResponse("/", 303), named)

    async def _answer(self, request: Request) -> Response:
        return await self._changed(request, "answer")

    async def _off(self, request: Request) -> Response:
        return await self._changed(request, "off")

    async def _undo(self, request: Request) -> Response:
        return await self._changed(request, "undo")

    async def _settle(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._changed(request, "settle")
        visit = self._visit(self._named(request))

        def page() -> Content:
            self._the_desk.look()
            view = visit.view()
            return pages.settle_page(view, visit.to_settle(view))

        return HTMLResponse(await self._in_thread(lambda: text(page())))

    async def _keys(self, request: Request) -> Response:
        browser = self._named(request)
        view = await self._in_thread(self._visit(browser).view)
        if request.method == "GET":
            return HTMLResponse(pages.keys_page(view, saved="saved" in request.query_params))
        form = await self._form(request, browser)
        usual = pages.usual_keys(view.classes, view.numbers)
        chosen = {name: key.strip().lower()[:1] for name, key in form.items() if name in usual}
        pressed = [key for key in chosen.values() if key]
        if len(set(pressed)) < len(pressed):
            twice = next(key for key in pressed if pressed.count(key) > 1)
            page = pages.keys_page(
                replace(view, keys=chosen), f"{twice!r} is the key for two things; give each its own"
            )
            return HTMLResponse(page, 422)
        own = {name: key for name, key in chosen.items() if key != usual[name]}
        try:
            return self._with_cookie(RedirectResponse("/keys?saved", 303), replace(browser, keys=own))
        except StakesError as error:
            return HTMLResponse(pages.keys_page(replace(view, keys=chosen), str(error)), 422)

    async def _panel(self, request: Request) -> Response:
        """What may change while somebody looks at a row."""
        browser = self._named(request)
        row = request.query_params.get("row", "")

        def panel() -> dict[str, Any]:
            desk = self._the_desk
            desk.look()
            if row and desk.shown(row, browser.name) is not None:
                desk.renew(browser.name, row)
            card, visit = desk.shown(row, browser.name) if row else None, self._visit(browser)
            view = visit.view()
            return {
                "panel": text(visit.panel(view, card)),
                "refitting": desk.refitting,
                "ranked": desk.ranked_with is not None,
                "to_settle": view.to_settle,
            }

        return JSONResponse(await self._in_thread(panel))

    async def _guess(self, request: Request) -> Response:
        self._named(request)
        row = request.query_params.get("row", "")
        guess = await self._in_thread(lambda: self._the_desk.guess(row))
        return JSONResponse(
            {"guess": f"The model's guess: {guess}" if guess else "The model has no guess for this row yet."}
        )

    async def _media(self, request: Request) -> Response:
        self._named(request)
        media = self._the_desk.rules.media
        file = None if media is None else media.file(request.path_params["name"])
        if file is None or file.suffix.lower() not in IMAGES:
            raise Refused(404, "there is no such image in the folder of --media")
        return FileResponse(
            file, media_type=IMAGES[file.suffix.lower()], headers={"cache-control": "private, max-age=600"}
        )

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise Refused(404, "there is no such file")
        return Response(files("stakes.label").joinpath("static", name).read_bytes(), media_type=_STATIC[name])

    # Changes

    async def _changed(self, request: Request, act: str) -> Response:
        """Make a change, which is on the disk when it returns; then the next row, as a part of the page for scripts."""
        browser = self._named(request)
        form = await self._form(request, browser)
        visit, settling = self._visit(browser), act == "settle" or form.get("back") == "/settle"

        def made() -> tuple[Content, bool, str, int | None]:
            desk, notes = self._the_desk, list[str]()
            change = visit.change(act, form)
            try:
                card = desk.next(browser.name, lambda: notes.append(change()))
            except StakesError as error:
                return "", False, str(error), None
            if settling:
                desk.look()
            view = visit.view()  # with a class that has just come up, and one row less to settle
            shown = visit.to_settle(view, notes[0]) if settling else visit.work(view, card, notes[0])
            return shown, True, notes[0], view.to_settle

        work, good, notice, to_settle = await self._in_thread(made)
        if request.headers.get("x-part") != "1":
            return (
                RedirectResponse("/settle" if settling else "/", 303)
                if good
                else HTMLResponse(pages.message_page("Not saved", [notice], link="Back"), 422)
            )
        answer = {"work": text(work), "good": good, "notice": notice, "to_settle": to_settle}
        return JSONResponse(answer, 200 if good else 422)

    # Who it is

    def _browser(self, request: Request) -> Browser:
        browser = self._secret.opened(request.cookies.get(self._secret.cookie))
        if browser is None:
            raise Refused(401, "open the address with the token that stakes label printed")
        return browser

    def _named(self, request: Request) -> Browser:
        browser = self._browser(request)
        if not browser.name:
            raise Refused(403, "say who is labelling first")
        return browser

    async def _form(self, request: Request, browser: Browser) -> Mapping[str, str]:
        """What a form sent, if it is one of ours; of several values of a name the last that is not empty."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/x-www-form-urlencoded":
            raise Refused(415, "a change is sent as a form")
        try:
            sent = parse_qs(
                (await request.body()).decode(), keep_blank_values=True, max_num_fields=500, errors="strict"
            )
        except ValueError as error:
            raise Refused(400, "the form cannot be read") from error
        form = {name: next((each for each in reversed(values) if each), "") for name, values in sent.items()}
        if not _same(form.get("mark", ""), self._secret.form_mark(browser)):
            raise Refused(403, "the form is not one of this page; load the page anew")
        return form

    def _with_cookie(self, response: Response, browser: Browser) -> Response:
        response.set_cookie(
            self._secret.cookie,
            self._secret.sealed(browser),
            max_age=_YEAR,
            httponly=True,
            samesite="strict",
            secure=self._scheme == "https",
            path="/",
        )
        return response


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal(error, request.headers.get("accept", ""))


async def _wrong(_: Request, error: Exception) -> Response:
    return HTMLResponse(pages.message_page("Something is wrong", [str(error)], link="Back"), 500)
