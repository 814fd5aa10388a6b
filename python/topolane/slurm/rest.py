"""Connections to slurmrestd over a Unix socket or HTTP: addresses, tokens, versions of its interface, errors.

docs/reference/slurm-rest.md describes the versions.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

import httpx

from topolane._engine import InputError
from topolane.slurm.errors import SlurmError
from topolane.slurm.tokens import Token

VERSIONS = ("v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.45", "v0.0.38")
"""The supported versions of the interface, best first. v0.0.45 does not report whether a job is exclusive.
Every Slurm with v0.0.39 also has v0.0.38 or v0.0.40.
"""

UNCHANGED_SIZE = 4096
"""In bytes. An answer that nothing has changed is shorter, even with a sentence in it."""


BAD_TOKEN = (-1, 1007)
"""Error numbers if slurmctld does not accept the token: `Unspecified error` up to Slurm 22.05, later
`Protocol authentication error`.
"""


class Rest:
    """A connection to slurmrestd.

    address: `unix:/path/to/socket`, `http://host:port` or `https://host:port`. token: needed if slurmrestd
    requires one. Raises InputError for an invalid address, or one that would send the token unencrypted over
    a network; SlurmError if slurmrestd does not answer or supports no known version.
    """

    def __init__(self, address: str, token: Token | None = None) -> None:
        self.address, self._token = address, token
        if address.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=address.removeprefix("unix:"), retries=1)
            self._http = httpx.Client(transport=transport, base_url="http://slurm", auth=token, timeout=60)
        else:
            self._http = httpx.Client(base_url=_checked(address, token), auth=token, timeout=60)
        self.version = self._negotiate()

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def read(self, thing: str) -> list[dict[str, Any]]:
        """The records of all `jobs`, `nodes`, `partitions` or `reservations`. Raises SlurmError."""
        found: list[dict[str, Any]] = self._get(thing)[thing]
        return found

    def clock(self) -> float:
        """Slurm's time in whole seconds since 1970."""
        when = self._get("diag")["statistics"]["req_time"]
        return float(when["number"] if isinstance(when, Mapping) else when)

    def is_new(self, thing: str, since: float) -> bool:
        """Whether any record of `thing` has changed since a time of Slurm's clock. Fast if none has."""
        when = f"uts{int(since)}" if self.version != "v0.0.38" else str(int(since))
        try:
            path = f"/slurm/{self.version}/{thing}"
            with self._http.stream("GET", path, params={"update_time": when}) as response:
                if response.status_code == httpx.codes.NOT_MODIFIED:
                    return False
                if int(response.headers.get("content-length", UNCHANGED_SIZE)) >= UNCHANGED_SIZE:
                    return True
                response.read()
                answer = response.json()
        except httpx.HTTPError as error:
            raise SlurmError(f"slurmrestd at {self.address} does not answer: {error}") from error
        except ValueError:
            return True
        # If no job has changed, the answer has an empty list and a warning.
        return bool(answer.get("errors") or answer.get(thing) or not answer.get("warnings"))

    def _negotiate(self) -> str:
        paths: Mapping[str, Any] = self._call("/openapi/v3").get("paths", {})
        offered = {match[1] for path in paths if (match := re.match(r"/slurm/(v[\d.]+)/", path))}
        known = [version for version in VERSIONS if version in offered]
        if not known:
            raise SlurmError(
                f"slurmrestd at {self.address} offers {', '.join(sorted(offered)) or 'no version'}; "
                f"known are {', '.join(sorted(VERSIONS))}"
            )
        return known[0]

    def _get(self, path: str) -> dict[str, Any]:
        return self._call(f"/slurm/{self.version}/{path}")

    def _answer(self, path: str) -> httpx.Response:
        try:
            return self._http.get(path)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            return self._http.get(path)  # slurmrestd sometimes drops a connection, so try once more

    def _call(self, path: str) -> dict[str, Any]:
        try:
            response = self._answer(path)
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise SlurmError(f"slurmrestd at {self.address} wants a token-file, or another token")
            answer: dict[str, Any] = response.json()
        except httpx.HTTPError as error:
            raise SlurmError(f"slurmrestd at {self.address} does not answer: {error}") from error
        except ValueError as error:
            raise SlurmError(
                f"slurmrestd at {self.address} answers GET {path} with no JSON (HTTP {response.status_code})"
            ) from error
        for said in answer.get("errors") or ():
            raise SlurmError(f"Slurm refuses GET {path}: {self._in_words(said)}")
        return answer

    def _in_words(self, error: Mapping[str, Any]) -> str:
        text = str(error.get("error") or error.get("description") or "an error without words")
        if self._token is not None and error.get("error_number") in BAD_TOKEN:
            text += f" (is the token in {self._token.path} one of this cluster?)"
        return text


def _checked(address: str, token: Token | None) -> str:
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise InputError(f"slurmrestd is at unix:PATH or http(s)://HOST:PORT, not at {address!r}")
    if not _is_loopback(url.host) and (url.scheme != "https" or token is None):
        raise InputError(
            f"{address} is another machine: slurmrestd is reached there by https:// and a token-file"
        )
    return address


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
