"""Who may label: a secret of the campaign on this machine, the token in the first address, cookies, and names.

The secret lies outside the campaign, in the folder of your settings, so that nobody can send it along, and so that a
browser that was let in once stays so when the server is started again. The token, the signatures of cookies and the
marks against forged requests are all derived from it. A cookie holds who sits at the browser, and the keys that they
chose.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from stakes.campaign.trust import trust_folder
from stakes.exceptions import StakesError

_BYTES = 32
_LONGEST_NAME = 60
_LONGEST_COOKIE = 4000


@dataclass(frozen=True)
class Browser:
    """One browser that was let in.

    Attributes:
        id: A random one.
        name: Who labels there; empty before they have given it.
        keys: The keys that they chose, by what they press them for.
    """

    id: str
    name: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> Browser:
        """The same browser with a name.

        Args:
            name: What somebody typed.

        Returns:
            The browser.

        Raises:
            StakesError: If it can be no name.

        Examples:
            >>> Browser("x").named(" Anna ").name
            'Anna'
        """
        return replace(self, name=checked_name(name))


def checked_name(name: str) -> str:
    """A name as it is kept, if it can be one."""
    plain = " ".join(name.split())
    if not plain or len(plain) > _LONGEST_NAME or not plain.isprintable():
        raise StakesError(f"a name has 1 to {_LONGEST_NAME} letters; give another")
    return plain


@dataclass(frozen=True)
class Secret:
    """What only this machine knows of a campaign.

    Attributes:
        key: Random bytes.
        campaign: A short mark of the campaign, for the name of its cookie: two servers on one machine share cookies.
    """

    key: bytes = field(repr=False)
    campaign: str

    @staticmethod
    def of(path: Path, *, renew: bool = False) -> Secret:
        """The secret of a campaign, made where there is none.

        Args:
            path: The campaign.
            renew: Whether to make a new one, so that nobody who was let in before is any longer.

        Returns:
            The secret; one for this time only where it cannot be kept.
        """
        mark = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()
        file = trust_folder().parent / "label" / f"{mark}.key"
        key = b"" if renew else _read(file)
        if len(key) != _BYTES:
            key = secrets.token_bytes(_BYTES)
            _write(file, key)
        return Secret(key, mark[:8])

    @property
    def token(self) -> str:
        """What the first address has."""
        return self._mark("token")

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return f"stakes_{self.campaign}"

    def admits(self, token: str) -> bool:
        """Whether a token is ours."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def sealed(self, browser: Browser) -> str:
        """What a cookie holds of a browser, signed.

        Args:
            browser: The browser.

        Returns:
            The cookie.

        Raises:
            StakesError: If it is longer than a browser would keep.
        """
        kept = json.dumps({"id": browser.id, "name": browser.name, "keys": dict(browser.keys)}).encode()
        text = base64.urlsafe_b64encode(kept).decode()
        if len(text) > _LONGEST_COOKIE:
            raise StakesError(
                f"{len(browser.keys)} keys of your own are more than a browser keeps; leave more of them as they were"
            )
        return f"{text}.{self._mark('cookie', text)}"

    def opened(self, cookie: str | None) -> Browser | None:
        """The browser that a cookie was given to; None where it is none of ours."""
        text, dot, mark = (cookie or "").partition(".")
        if not dot or len(text) > _LONGEST_COOKIE:
            return None
        if not hmac.compare_digest(mark.encode("utf-8", "surrogatepass"), self._mark("cookie", text).encode()):
            return None  # as bytes: a cookie that another server of this machine left may hold any letters
        try:
            kept = json.loads(base64.urlsafe_b64decode(text))
        except (ValueError, binascii.Error):
            return None
        return Browser(kept["id"], kept["name"], kept["keys"])

    def form_mark(self, browser: Browser) -> str:
        """What every change must come with, which no other page can know."""
        return self._mark("form", browser.id)

    def _mark(self, *parts: str) -> str:
        made = hmac.new(self.key, "\0".join(parts).encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(made).decode().rstrip("=")


def new_browser() -> Browser:
    """A browser that has just been let in."""
    return Browser(secrets.token_urlsafe(16))


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _write(file: Path, key: bytes) -> None:
    """Keep a secret where only its owner reads it; where that cannot be, it holds for this time."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(handle, key)
        finally:
            os.close(handle)
    except OSError:
        return
