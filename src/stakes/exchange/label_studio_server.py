"""The web server that Label Studio takes for a machine-learning backend: `/health`, `/setup`, `/predict`, `/webhook`.

It speaks to Label Studio's server, never to a browser: whatever has an Origin, or is no JSON, is refused, so that no
page that somebody looks at can reach it. On this machine it answers to the names of this machine alone (a foreign name
in `Host` is a page that has bent a name of its own), elsewhere only to those who have the token. Bodies are bounded in
size and in time.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from stakes.exceptions import StakesError
from stakes.exchange.live import LiveCampaign

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise ImportError("a server needs Starlette and uvicorn: pip install 'stakes[label]'") from error

PORT = 9090
"""The one that Label Studio's own examples have."""
_SMALL, _LARGE = 8 * 2**20, 64 * 2**20  # bytes of a body; a request for predictions may have every task
_SECONDS = 30.0  # in which a body must have come
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


def is_local(host: str) -> bool:
    """Whether a host is this machine, which nobody else can reach.

    Args:
        host: A name or an address.

    Returns:
        Whether it is.

    Examples:
        >>> is_local("127.0.0.1"), is_local("0.0.0.0")
        (True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_token(token: str | None, local: bool) -> None:
    """Refuse to serve other machines without a token.

    Args:
        token: What requests must have.
        local: Whether only this machine reaches the server.

    Raises:
        StakesError: If others could record labels.
    """
    if not local and not token:
        raise StakesError(
            "others could record labels: a server that other machines can reach needs a token. Set one in the "
            "environment variable STAKES_LABEL_STUDIO_TOKEN"
        )


def label_studio_app(
    live: LiveCampaign,
    *,
    token: str | None = None,
    local: bool = True,
    report: Callable[[str], None] = lambda sentence: None,
) -> Starlette:
    """The application that answers Label Studio.

    Args:
        live: The campaign.
        token: What requests must have: as the password of basic authentication, or after "Token" or "Bearer".
        local: Whether it is reached by the names of this machine only.
        report: Called with a sentence on every request that was refused; Label Studio shows none of them to anybody.

    Returns:
        The application.

    Raises:
        StakesError: If others can reach it, and there is no token.
    """
    check_token(token, local)

    def answered(
        answer: Callable[[Mapping[str, Any]], dict[str, Any]] | None, most: int = _SMALL
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                _refuse_unknown(request, token, local)
                if answer is None:
                    return JSONResponse({"status": "UP", "model_class": "stakes"})
                body = await _body(request, most)
                return JSONResponse(await run_in_threadpool(answer, body))
            except _RefusedError as refusal:
                status, message, headers = refusal.status, str(refusal), refusal.headers
            except StakesError as error:
                status, message, headers = 422, str(error), {}
            report(f"{request.method} {request.url.path} was refused ({status}): {message}")
            return JSONResponse({"error": message}, status, headers)

        return respond

    async def broken(request: Request, error: Exception) -> Response:
        message = f"this is a bug in stakes: {type(error).__name__}: {error}"
        report(f"{request.method} {request.url.path} failed: {message}")
        return JSONResponse({"error": message}, 500)

    return Starlette(
        routes=[
            Route("/", answered(None), methods=["GET"]),
            Route("/health", answered(None), methods=["GET"]),
            Route("/setup", answered(live.setup), methods=["POST"]),
            Route("/predict", answered(live.predict, _LARGE), methods=["POST"]),
            Route("/webhook", answered(live.webhook), methods=["POST"]),
        ],
        exception_handlers={Exception: broken},
    )


class _RefusedError(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        Exception.__init__(self, message)
        self.status, self.headers = status, headers or {}


def _refuse_unknown(request: Request, token: str | None, local: bool) -> None:
    if "origin" in request.headers:
        raise _RefusedError(403, "this is for the server of Label Studio, not for pages")
    name = request.headers.get("host", "").lower()
    name = name if name.endswith("]") else name.rpartition(":")[0] or name
    if local and name not in _LOCAL:
        raise _RefusedError(403, f"this is not {name[:100]!r}; it answers to {', '.join(_LOCAL)}")
    if token is not None and not _has_token(request.headers.get("authorization", ""), token):
        raise _RefusedError(
            401,
            "the token is wrong or missing: give it as the password of basic authentication, or in the address of the "
            "model, http://stakes:TOKEN@HOST:PORT",
            {"WWW-Authenticate": "Basic"},
        )


def _has_token(header: str, token: str) -> bool:
    kind, _, given = header.partition(" ")
    if kind.lower() == "basic":
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except ValueError:
            return False
    elif kind.lower() not in ("token", "bearer"):
        return False
    return hmac.compare_digest(given.encode(), token.encode())


async def _body(request: Request, most: int) -> Mapping[str, Any]:
    """The object of JSON in a body."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise _RefusedError(415, "the body must be JSON, and say so: Content-Type application/json")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:20]) > most:
        raise _RefusedError(413, f"the body may have {most:,} bytes", {"Connection": "close"})
    parts, size = [], 0
    try:
        async with asyncio.timeout(_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _RefusedError(413, f"the body may have {most:,} bytes", {"Connection": "close"})
                parts.append(part)
    except TimeoutError:
        raise _RefusedError(408, f"the body did not come within {_SECONDS:.0f} s", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise _RefusedError(400, "the body did not come") from None
    try:
        found = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        raise _RefusedError(400, f"the body is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _RefusedError(400, "the body must be an object")
    return found
