"""Helpers for access control in front of an application: the client, the page of origin, and a body of
bounded size.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Message, Receive

BODY_SECONDS = 10.0
"""Seconds in which a body must arrive."""


class RequestRefused(Exception):
    """The request is refused with this HTTP status and sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.headers = status, {"Connection": "close", **(headers or {})}


def bearer(headers: Headers) -> str:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else ""


def same(shown: str, token: str | None) -> bool:
    return token is not None and hmac.compare_digest(shown.encode(), token.encode())


def is_own(origin: str, host: str) -> bool:
    """Whether a page of this origin came from the host of the request."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


async def body_of(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """The whole body; None if the client disconnected. Raises RequestRefused."""
    too_long = RequestRefused(413, f"a body here has at most {most} bytes")
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
        raise RequestRefused(408, f"the body did not arrive in {BODY_SECONDS:g} s") from error


def replay(body: bytes, receive: Receive) -> Receive:
    """A receive function that first passes this body, already read, and then later messages."""
    waiting: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return waiting.pop() if waiting else await receive()

    return replayed
