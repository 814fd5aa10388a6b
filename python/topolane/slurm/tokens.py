"""Reads a token of Slurm (a JWT, as `scontrol token` prints it) from a file for each request, since tokens
expire soon.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Generator
from typing import Any

import httpx

from topolane import parsing, texts
from topolane._engine import InputError
from topolane.slurm.errors import SlurmError


class Token(httpx.Auth):
    """Adds the token in a file to each request, with the name of the token's user.

    The file contains the token alone, or the line `SLURM_JWT=...` of `scontrol token`. A request raises
    SlurmError if the file cannot be read or its token has expired: Slurm 22.05 answers an expired token with
    `Unspecified error`.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Called by httpx for each request."""
        token, claims = self._read()
        request.headers["X-SLURM-USER-TOKEN"] = token
        if "sun" in claims:  # Slurm's claim for the name; 22.05 wants it in a header too
            request.headers["X-SLURM-USER-NAME"] = str(claims["sun"])
        yield request

    def _read(self) -> tuple[str, dict[str, Any]]:
        try:
            content = texts.read_bytes(self.path)
        except InputError as error:
            raise SlurmError(f"token-file {error}") from error
        try:
            text = content.decode("ascii").strip().removeprefix("SLURM_JWT=")
            # A JWT is three parts in base64 without its padding (RFC 7519); the second one is the claims.
            _, part, _ = text.split(".")
            claims = parsing.parse_json(
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode(), self.path
            )
            expires = float(claims.get("exp", "inf"))
        except (ValueError, AttributeError, TypeError) as error:
            raise SlurmError(
                f"token-file {self.path} holds no token such as `scontrol token` prints"
            ) from error
        if expires <= time.time():
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(expires))
            raise SlurmError(f"token-file {self.path}: the token expired at {when}")
        return text, claims
