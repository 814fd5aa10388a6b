"""A client of a manager's HTTP interface."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from topolane._engine import InputError
from topolane.mpi.address import Address

DEFAULT = "unix:/run/topolane/sites.sock"


class Client:
    """A manager at `unix:/path`, `http://host:port` or `https://host:port`."""

    def __init__(self, manager: str, token_file: str | None = None, ca: str | None = None) -> None:
        headers = {}
        if token_file is not None:
            try:
                headers["Authorization"] = f"Bearer {Path(token_file).read_text(encoding='ascii').strip()}"
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(
                    f"--token-file {token_file}: {getattr(error, 'strerror', 'not ASCII text')}"
                ) from error
        self._name = manager
        if headers and manager.startswith("http://") and not _is_local(manager):
            raise InputError(
                f"--manager {manager}: a token is not sent unencrypted to another machine: use https://"
            )
        try:
            if manager.startswith(("http://", "https://")):
                transport, base = httpx.HTTPTransport(verify=_trusted(ca)), manager
            else:
                path = Address.parse(manager).path
                if path is None:
                    raise InputError(f"{manager!r}: write http://{manager} or https://{manager}")
                transport, base = httpx.HTTPTransport(uds=path), "http://localhost"
        except OSError as error:
            raise InputError(f"--ca {ca}: {error.strerror or error}") from error
        self._http = httpx.Client(transport=transport, base_url=base, headers=headers, timeout=60.0)

    def get(self, path: str, **parameters: Any) -> Any:
        """The answer to a GET. Raises InputError if it fails."""
        return self._ask("GET", path, params=parameters or None)

    def post(self, path: str, body: object = None) -> Any:
        """The answer to a POST. Raises InputError if it fails."""
        return self._ask("POST", path, json=body)

    def put(self, path: str, body: object) -> Any:
        """The answer to a PUT. Raises InputError if it fails."""
        return self._ask("PUT", path, json=body)

    def delete(self, path: str) -> Any:
        """The answer to a DELETE. Raises InputError if it fails."""
        return self._ask("DELETE", path)

    def text(self, path: str, **parameters: Any) -> str:
        """The answer to a GET as text, not JSON."""
        return self._answer("GET", path, params=parameters or None).text

    def _ask(self, method: str, path: str, **what: Any) -> Any:
        return self._answer(method, path, **what).json()

    def _answer(self, method: str, path: str, **what: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **what)
        except httpx.HTTPError as error:
            raise InputError(f"manager {self._name}: no answer: {_plain(error)}") from error
        if answer.is_error:
            try:
                detail = answer.json()["detail"]
            except (ValueError, KeyError, TypeError):
                detail = answer.reason_phrase
            raise InputError(f"manager {self._name}: {detail if isinstance(detail, str) else _first(detail)}")
        return answer


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return Address(host=host).is_local


def _plain(error: Exception) -> str:
    return re.sub(r"^\[Errno -?[0-9]+\] ", "", str(error))


def _trusted(ca: str | None) -> Any:
    import ssl

    return ssl.create_default_context(cafile=ca)


def _first(detail: Any) -> str:
    """FastAPI's message on the first invalid field."""
    try:
        return f"{'.'.join(str(part) for part in detail[0]['loc'])}: {detail[0]['msg']}"
    except (LookupError, TypeError):
        return str(detail)
