"""slurmrestd over a Unix socket or HTTP: addresses, tokens, versions of its interface, what it refuses.

What the versions say and want is in docs/reference/slurm-rest.md.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

import httpx

from topolane._engine import InputError
from topolane.slurm.tokens import SlurmError, Token

VERSIONS = ("v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.45", "v0.0.38")
"""Interfaces that can be used, the best one first. v0.0.45 does not say whether a job is exclusive; every
Slurm with v0.0.39 has v0.0.38 or v0.0.40 too."""

UNCHANGED_SIZE = 4096
"""Bytes: an answer that nothing has changed is shorter, even where it is an answer in words."""


BAD_TOKEN = (-1, 1007)
"""Error numbers where slurmctld does not know the token: `Unspecified error` up to Slurm 22.05, else
`Protocol authentication error`."""


class Rest:
    """A connection to slurmrestd.

    address: `unix:/path/to/socket`, `http://host:port` or `https://host:port`; token: where slurmrestd
    wants one. Raises InputError for an address that cannot be, or that would show the token to a
    network, SlurmError where nobody answers or no version of the interface is known.
    """

    def __init__(self, address: str, token: Token | None = None) -> None:
        self.address, self._token = address, token
        if address.startswith("unix:"):
            transport = httpx.HTTPTransport(uds=address.removeprefix("unix:"), retries=1)
            self._http = httpx.Client(transport=transport, base_url="http://slurm", auth=token, timeout=60)
        else:
            self._http = httpx.Client(base_url=_checked(address, token), auth=token, timeout=60)
        self.version = self._negotiate()
        self.parses_data = self.version != "v0.0.38"
        """Whether a data_parser plugin reads what is sent: names and types differ from those before."""

    def close(self) -> None:
        """Ends the connection."""
        self._http.close()

    def get(self, path: str) -> dict[str, Any]:
        """What slurmrestd answers. Raises SlurmError."""
        return self._call("GET", f"/slurm/{self.version}/{path}")

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        """Has something changed. Raises SlurmError where Slurm refuses, or did but a part of it."""
        answer = self._call("POST", f"/slurm/{self.version}/{path}", body)
        for said in answer.get("warnings") or ():
            text = str(said.get("description"))
            if text.startswith("Ignoring unknown field"):
                raise SlurmError(f"Slurm did only a part of POST {path}: {text}")

    def is_new(self, thing: str, since: float) -> bool:
        """Whether any of the jobs, nodes, ... has changed since a moment of Slurm's clock. Cheap where
        none has."""
        when = f"uts{int(since)}" if self.parses_data else str(int(since))
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
        # Of jobs that have not changed a list of none and a warning are sent.
        return bool(answer.get("errors") or answer.get(thing) or not answer.get("warnings"))

    def _negotiate(self) -> str:
        paths: Mapping[str, Any] = self._call("GET", "/openapi/v3").get("paths", {})
        offered = {match[1] for path in paths if (match := re.match(r"/slurm/(v[\d.]+)/", path))}
        known = [version for version in VERSIONS if version in offered]
        if not known:
            raise SlurmError(
                f"slurmrestd at {self.address} offers {', '.join(sorted(offered)) or 'no version'}; "
                f"known are {', '.join(sorted(VERSIONS))}"
            )
        return known[0]

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        try:
            return self._http.request(method, path, json=body)
        except (httpx.ReadError, httpx.RemoteProtocolError):
            # slurmrestd drops a connection now and then. A change may have been made: not asked again.
            if method != "GET":
                raise
        return self._http.request(method, path, json=body)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            response = self._answer(method, path, body)
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise SlurmError(f"slurmrestd at {self.address} wants a token-file, or another token")
            answer: dict[str, Any] = response.json()
        except httpx.HTTPError as error:
            raise SlurmError(f"slurmrestd at {self.address} does not answer: {error}") from error
        except ValueError as error:
            raise SlurmError(
                f"slurmrestd at {self.address} answers {method} {path} with no JSON (HTTP {response.status_code})"
            ) from error
        for said in answer.get("errors") or ():
            if said.keys() & {"error", "error_number", "error_code"}:
                raise SlurmError(f"Slurm refuses {method} {path}: {self._in_words(said)}")
            # Without one of these v0.0.38 speaks of an update of an array, which worked.
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
