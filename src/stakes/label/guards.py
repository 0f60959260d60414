"""What every request passes before anything is done: where it comes from, how large and how slow it is.

A request must be for a name that the server goes by (else another page could have its own name point here), a change
must come from a page of ours, and what is sent is bounded in size and time. Answers may not be framed, guessed or kept,
and may load nothing from elsewhere.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stakes.label.pages import message_page

MOST_BYTES = 65_536
"""Of what a request sends."""
PATIENCE = 10.0
"""Seconds within which a request has to be sent."""
_SAFE = ("GET", "HEAD")
_USUAL_PORTS = {"http": 80, "https": 443}
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


class Refused(Exception):  # noqa: N818 (no error of ours, but an answer)
    """A request that is not answered, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True)
class Guards:
    """An application behind the checks.

    Attributes:
        app: What answers requests that pass.
        hosts: The names with ports that the server goes by, such as 127.0.0.1:8577; the address that a connection came
            to is always one of them.
        scheme: http, or https.
    """

    app: ASGIApp
    hosts: Collection[str]
    scheme: str = "http"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        guarded = _with_headers(send)
        try:
            self._check(scope)
            body = await asyncio.wait_for(_whole_body(receive), PATIENCE)
        except Refused as refused:
            await _refuse(scope, guarded, refused)
        except TimeoutError:
            await _refuse(scope, guarded, Refused(408, f"the request was not sent within {PATIENCE:g} seconds"))
        else:
            await self.app(scope, _once(body, receive), guarded)

    def _check(self, scope: Scope) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        hosts = [each.decode("latin-1").lower() for each in headers.get(b"host", [])]
        ours = {*self.hosts, *_address_of(scope, self.scheme)}
        if len(hosts) != 1 or hosts[0] not in ours:
            raise Refused(421, "this server does not go by that name; use the address that stakes label printed")
        origins = [each.decode("latin-1").lower() for each in headers.get(b"origin", [])]
        if scope["method"] not in _SAFE and not self._is_change_of_ours(origins, ours):
            raise Refused(403, "a change must come from a page of this server")
        lengths = headers.get(b"content-length", [])
        if lengths and (not lengths[0].isdigit() or int(lengths[0][:12]) > MOST_BYTES):
            raise Refused(413, f"a request holds at most {MOST_BYTES:,} bytes")

    def _is_change_of_ours(self, origins: list[str], hosts: Collection[str]) -> bool:
        """Whether a change comes from a page of this server: browsers say which page it is."""
        return len(origins) == 1 and origins[0] in {f"{self.scheme}://{host}" for host in hosts}


def _address_of(scope: Scope, scheme: str) -> list[str]:
    """The address that a connection came to, as a browser writes it: no foreign name can be bent to an address."""
    try:
        host, port = scope["server"]
        address = ipaddress.ip_address(host)
    except (KeyError, TypeError, ValueError):
        return []
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address  # of a socket for both kinds
    return host_names(f"[{address}]" if address.version == 6 else str(address), port, scheme)


def host_names(name: str, port: int, scheme: str) -> list[str]:
    """How browsers call a server: without the port where it is the usual one of the scheme.

    Args:
        name: A name, or an address as it stands in a link.
        port: Where it listens.
        scheme: http, or https.

    Returns:
        What may stand in a request, as browsers write it first.

    Examples:
        >>> host_names("127.0.0.1", 8577, "http"), host_names("127.0.0.1", 80, "http")
        (['127.0.0.1:8577'], ['127.0.0.1', '127.0.0.1:80'])
    """
    return [name, f"{name}:{port}"] if port == _USUAL_PORTS[scheme] else [f"{name}:{port}"]


async def _whole_body(receive: Receive) -> bytes:
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the connection was closed")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MOST_BYTES:
            raise Refused(413, f"a request holds at most {MOST_BYTES:,} bytes")
        if not message.get("more_body", False):
            return b"".join(parts)


def _once(body: bytes, receive: Receive) -> Receive:
    """The body that was read, and then whatever comes."""
    given = [False]

    async def again() -> Message:
        if given[0]:
            return await receive()
        given[0] = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in message.get("headers", [])}
            kept = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*message.get("headers", []), *_HEADERS, *kept]}
        await send(message)

    return sent


def refusal(refused: Refused, accepts: str) -> Response:
    """An answer that says why there is none: a page where a browser asks for one."""
    if "text/html" in accepts:
        page = message_page("Not here", [f"{refused.why[:1].upper()}{refused.why[1:]}."])
        return HTMLResponse(page, refused.status)
    return PlainTextResponse(f"{refused.why}\n", refused.status)


async def _refuse(scope: Scope, send: Send, refused: Refused) -> None:
    """Answer a request that was not read to its end, and close the connection."""
    accepts = b" ".join(value for name, value in scope["headers"] if name.lower() == b"accept").decode("latin-1")
    answer = refusal(refused, accepts)
    answer.headers["connection"] = "close"
    await answer(scope, _nothing_more, send)


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


class PatientProtocol(asyncio.Protocol):
    """A connection that is closed when a request does not begin in time: uvicorn waits for ever for the end of headers.

    Args:
        inner: The protocol that reads requests, uvicorn's.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.transport: asyncio.BaseTransport | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for a request."""
        self.transport = transport
        self._wait()
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Hand on what came, and wait for the rest where it is no whole head of a request."""
        before = self.inner.cycle
        self.inner.data_received(data)
        if self.inner.cycle is not before:
            self._stop()
        elif self.timer is None and (before is None or before.response_complete):
            self._wait()

    def eof_received(self) -> None:
        """Hand on that nothing more comes."""
        self.inner.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """Hand on that it is gone."""
        self._stop()
        self.inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Hand on that the other side does not read."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that it reads again."""
        self.inner.resume_writing()

    def _wait(self) -> None:
        self.timer = asyncio.get_running_loop().call_later(PATIENCE, self._give_up)

    def _stop(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _give_up(self) -> None:
        if self.transport is not None:
            self.transport.close()


def patient(protocol: Callable[..., Any]) -> Callable[..., PatientProtocol]:
    """Connections of a protocol of uvicorn that do not wait for ever."""

    def made(*given: Any, **named: Any) -> PatientProtocol:
        return PatientProtocol(protocol(*given, **named))

    return made
