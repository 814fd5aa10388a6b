"""Checks a request before its body is read: its token, its origin, and the size of its body."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from topolane.web.requests import RequestRefused, bearer, body_of, is_own, replay, same

REPORT = re.compile("/(hosts|guests)/[^/]+/report")
MOST_BODY = 64 << 10
"""Bytes of a body."""
MOST_OF = ((re.compile("/hosts/[^/]+/report"), 1 << 20), (re.compile("/clusters/[^/]+"), 1 << 20))
"""The same for paths whose bodies are larger."""
OPERATOR = "topolane.operator"
"""Key of an ASGI scope: whether the request comes from the operator, and not from a host or a guest that reports."""


class ManagerGate:
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
            body = await body_of(headers, receive, most)
        except RequestRefused as refused:
            # What is left of the body is not read: the connection ends with the answer.
            answer = JSONResponse({"detail": str(refused)}, refused.status, refused.headers)
            await answer(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, replay(body, receive), send)

    def _is_operator(self, headers: Headers, method: str, path: str) -> bool:
        """Whether the request comes from the operator; otherwise from one who reads, or from a host or a guest that
        reports. Raises RequestRefused.
        """
        shown = bearer(headers)
        operator = self._token is None or same(shown, self._token)
        if not operator and not (REPORT.fullmatch(path) and same(shown, self._report_token)):
            if not same(shown, self._read_token):
                raise RequestRefused(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
            if method not in ("GET", "HEAD"):
                raise RequestRefused(403, f"this token may only read: it allows GET, not {method}")
        origin = headers.get("origin")
        if origin is not None and not is_own(origin, headers.get("host", "")):
            raise RequestRefused(403, "a page of another origin may not ask")
        return operator
