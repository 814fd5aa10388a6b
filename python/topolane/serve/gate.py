"""Checks a request before its body is read: host name, origin, user, rate and size."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topolane.cluster.accounts import client_of
from topolane.web.requests import RequestRefused, bearer, body_of, is_own, replay, same

LOGIN = "/login"
METRICS = "/metrics"
MOST_BODY = 4096
"""The most bytes of a request body."""
MOST_NAME = 256
"""The longest user name that a proxy may send, in characters."""
LOCAL = ("localhost", "127.0.0.1", "::1")
WHO = "topolane.who"
"""The key in an ASGI scope for the account under which requests are counted."""
MOST_ACCOUNTS = 1024

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer."""


@dataclasses.dataclass(frozen=True)
class PageAccess:
    """The rules for access to the page."""

    token: str | None = None
    """The token that viewers must send; None if none is needed."""
    auth_header: str | None = None
    """The header in which a proxy names the user that it has authenticated; None without a proxy."""
    public_names: tuple[str, ...] = ()
    """Host names under which a proxy shows the page."""
    any_name: bool = False
    """Whether the page accepts every host name, because it listens beyond this machine and requires a token.
    """
    key: bytes = dataclasses.field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def session(self) -> str:
        """The secret that the page sends instead of the token. It ends with this process."""
        return hmac.new(self.key, (self.token or "").encode(), hashlib.sha256).hexdigest()


class Rate:
    """A rate limit for each account: `most` requests at once, then `per_second`."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most, self._per_second = most, per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, account: str) -> float:
        """Counts one request. Returns 0 if it is allowed, otherwise the seconds to wait before the next try."""
        now = time.monotonic()
        left, since = self._left.pop(account, (self._most, now))
        left = min(left + (now - since) * self._per_second, self._most)
        self._left[account] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > MOST_ACCOUNTS:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._per_second


class PageGate:
    """An ASGI middleware that refuses requests by their headers and adds the page's headers to every answer."""

    def __init__(self, app: ASGIApp, *, access: PageAccess) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        send = _with_headers(send)
        try:
            self._check_page(headers)
            scope[WHO] = self._who(headers, scope)
            body = await body_of(headers, receive, MOST_BODY)
        except RequestRefused as refused:
            await JSONResponse({"detail": str(refused)}, refused.status, refused.headers)(
                scope, receive, send
            )
            return
        if body is not None:
            await self._app(scope, replay(body, receive), send)

    def _check_page(self, headers: Headers) -> None:
        """Refuses requests to other host names and requests from pages of other sites."""
        host = headers.get("host", "")
        name = host.lower().rpartition(":")[0] if not host.endswith("]") and ":" in host else host.lower()
        names = (*LOCAL, *self._access.public_names)
        if not self._access.any_name and name.strip("[]") not in names:
            raise RequestRefused(
                421, "this page has another name: start topolane serve with --public-name for this one"
            )
        origin = headers.get("origin")
        public = any(is_own(origin or "", known) for known in self._access.public_names)
        if origin is not None and not public and not is_own(origin, host):
            raise RequestRefused(403, "a page of another origin may not ask")
        # Another port of the same host is the same site, but may belong to another user.
        site = headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") and headers.get("sec-fetch-mode") != "navigate":
            raise RequestRefused(403, "a page of another site may not ask")

    def _who(self, headers: Headers, scope: Scope) -> str:
        """The account under which the request is counted. Raises RequestRefused if access is denied."""
        access, path = self._access, scope["path"]
        is_data = path.startswith("/api/") or path == METRICS
        if access.token is not None and is_data:
            shown = bearer(headers)
            if not same(shown, access.token) and not same(shown, access.session):
                raise RequestRefused(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        if access.auth_header is None:
            return client_of(scope.get("client"), scope.get("server"))
        user = headers.get(access.auth_header, "").strip()
        if not user or len(user) > MOST_NAME or not user.isprintable():
            raise RequestRefused(401, f"the proxy has not said who asks (header {access.auth_header})")
        return f"named {user}"  # the prefix keeps user names apart from accounts of other kinds


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            added: list[Any] = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sent
