"""Checks a request before its body is read: its token, its origin, and the size of its body."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REPORT = re.compile("/(hosts|guests)/[^/]+/report")
MOST_BODY = 64 << 10
"""Bytes of a body."""
MOST_OF = ((re.compile("/hosts/[^/]+/report"), 1 << 20), (re.compile("/clusters/[^/]+"), 1 << 20))
"""The same for paths whose bodies are larger."""
BODY_SECONDS = 10.0
"""Seconds in which a body must arrive."""
OPERATOR = "topolane.operator"
"""Key of an ASGI scope: whether the request comes from the operator, and not from a host or a guest that reports."""


class Gate:
    """An ASGI middleware that refuses requests by their head, and reads no body longer than its path allows."""

    def __init__(
        self, app: ASGIApp, *, token: str | None, report_token: str | None, read_token: str | None
    ) -> None:
        """token: allows all paths; None for a socket that only its owner can open. report_token: allows
        reports. read_token: allows all paths that are read with GET.
        """
        self._app, self._token, self._report_token, self._read_token = app, token, report_token, read_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers, path = Headers(scope=scope), scope["path"]
        try:
            scope[OPERATOR] = self._is_operator(headers, scope["method"], path)
            most = next((most for of, most in MOST_OF if of.fullmatch(path)), MOST_BODY)
            body = await _body(headers, receive, most)
        except _Refused as refused:
            # What is left of the body is not read: the connection ends with the answer.
            answer = JSONResponse({"detail": str(refused)}, refused.status, refused.headers)
            await answer(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replay(body, receive), send)

    def _is_operator(self, headers: Headers, method: str, path: str) -> bool:
        """Whether the request comes from the operator; otherwise from one who reads, or from a host or a guest that
        reports. Raises _Refused.
        """
        shown = _bearer(headers)
        operator = self._token is None or _same(shown, self._token)
        if not operator and not (REPORT.fullmatch(path) and _same(shown, self._report_token)):
            if not _same(shown, self._read_token):
                raise _Refused(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
            if method not in ("GET", "HEAD"):
                raise _Refused(403, f"this token may only read: it allows GET, not {method}")
        origin = headers.get("origin")
        if origin is not None and not _is_own(origin, headers.get("host", "")):
            raise _Refused(403, "a page of another origin may not ask")
        return operator


class _Refused(Exception):
    """The request is refused with this status and sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.headers = status, {"Connection": "close", **(headers or {})}


def _bearer(headers: Headers) -> str:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else ""


def _same(shown: str, token: str | None) -> bool:
    return token is not None and hmac.compare_digest(shown.encode(), token.encode())


def _is_own(origin: str, host: str) -> bool:
    """Whether a page of this origin came from the host of the request."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


async def _body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """The whole body; None if the client disconnected. Raises _Refused."""
    too_long = _Refused(413, f"a body here has at most {most} bytes")
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:18]) > most:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return None
                body += message.get("body", b"")
                if len(body) > most:
                    raise too_long
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError as error:
        raise _Refused(408, f"the body did not arrive in {BODY_SECONDS:g} s") from error


def _replay(body: bytes, receive: Receive) -> Receive:
    """Passes a body that has been read to the application, then later messages."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed
