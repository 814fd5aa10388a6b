"""Reads measured programs from a site manager or from a folder.

nova-scheduler runs this module as a separate process, so that a fault here cannot stop, delay or fill the
scheduler. It prints one JSON object: the ids of all programs of the last days, and those programs that were
not known before.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from topolane._engine import InputError
from topolane.mpi import matrix
from topolane.mpi.host_traffic import between_hosts
from topolane.nova.measured import DAY, MOST_ENTRIES, MeasuredProgram

MOST_PROGRAMS = 1000
"""Only this number of newest programs is read."""
MOST_BYTES = 64 << 20
"""The most bytes that an answer of the manager may have."""
MOST_SKIPPED = 10
Found = dict[str, Any]


class Listed(NamedTuple):
    """A program that is listed but not read yet."""

    id: str
    fetch: Callable[[], Any]
    """Reads the program. Raises InputError."""


class ManagerInterface:
    """The HTTP interface of a site manager at `unix:/path`, `https://host:port` or, on this machine,
    `http://host:port`.
    """

    def __init__(self, source: str, token_file: str | None, ca: str | None, seconds: float) -> None:
        self._source = source
        self._headers: dict[str, str] = {}
        if token_file is not None:
            try:
                token = Path(token_file).read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"measured_token_file = {token_file}: {_why(error)}") from error
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = self._connect(ca, seconds)

    def get(self, path: str) -> Any:
        """The JSON answer to a GET request. Raises InputError if there is none."""
        try:
            self._connection.request("GET", path, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read(MOST_BYTES + 1)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise InputError(f"manager {self._source}: no answer: {_why(error)}") from error
        if len(body) > MOST_BYTES:
            raise InputError(f"manager {self._source}: an answer of more than {MOST_BYTES} bytes")
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise InputError(f"manager {self._source}: the answer to {path} is not JSON") from error
        if answer.status != 200:
            detail = value.get("detail") if isinstance(value, dict) else answer.reason
            raise InputError(f"manager {self._source}: {answer.status}: {detail}")
        return value

    def _connect(self, ca: str | None, seconds: float) -> http.client.HTTPConnection:
        url = urlsplit(self._source)
        try:
            if url.scheme == "unix":
                return _UnixConnection(url.path, timeout=seconds)
            if url.scheme == "https" and url.hostname:
                context = ssl.create_default_context(cafile=ca)
                return http.client.HTTPSConnection(
                    url.hostname, url.port or 443, timeout=seconds, context=context
                )
            if url.scheme == "http" and url.hostname in ("localhost", "127.0.0.1", "::1"):
                return http.client.HTTPConnection(url.hostname, url.port or 80, timeout=seconds)
        except OSError as error:
            raise InputError(f"measured_ca = {ca}: {_why(error)}") from error
        except ValueError as error:
            raise InputError(f"measured = {self._source!r}: {error}") from error
        raise InputError(
            f"measured = {self._source!r} is no folder that begins with /, and neither unix:/path, "
            "https://host:port nor http://localhost:port"
        )


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path, self._seconds = path, timeout

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self._seconds)
        self.sock.connect(self._path)


def read(
    source: str, token_file: str | None, ca: str | None, days: float, seconds: float, known: Collection[str]
) -> Found:
    """Reads the programs of the last `days`, newest first, for at most `seconds`.

    The result has the `ids` of all programs; in `programs` those that still run or are not `known`; in
    `skipped` why others cannot be read. Raises InputError if the programs cannot be listed.
    """
    until = time.monotonic() + seconds
    if source.startswith("/"):
        programs = _in_folder(Path(source), days)
    else:
        programs = _at_manager(ManagerInterface(source, token_file, ca, seconds), days)
    found: Found = {"ids": [one.id for one in programs], "programs": [], "skipped": []}
    left = MOST_ENTRIES
    for one in programs:
        if one.id in known:
            continue
        try:
            fields = _checked(one.fetch(), one.id)
        except InputError as error:
            found["skipped"].append(str(error))
            if len(found["skipped"]) == MOST_SKIPPED:
                break
            continue
        if len(fields["sent"]) <= left:
            left -= len(fields["sent"])
            found["programs"].append(fields)
        if time.monotonic() > until:
            break
    return found


def _at_manager(manager: ManagerInterface, days: float) -> list[Listed]:
    try:
        ids = [str(row["id"]) for row in manager.get(f"/traffic?days={days:g}")[:MOST_PROGRAMS]]
    except (TypeError, KeyError) as error:
        raise InputError("the manager's list of programs cannot be read") from error
    return [Listed(id, partial(manager.get, f"/traffic/{quote(id, safe='')}")) for id in ids]


def _in_folder(folder: Path, days: float) -> list[Listed]:
    """The programs in *.csv files that `topolane mpi run` wrote. The id of a program is its file name and its
    time of writing.
    """
    try:
        files = [(file.stat().st_mtime, file) for file in folder.iterdir() if file.suffix == ".csv"]
    except OSError as error:
        raise InputError(f"measured = {folder}: {_why(error)}") from error
    recent = sorted((one for one in files if one[0] >= time.time() - DAY * days), reverse=True)
    return [
        Listed(f"{file.name} {written}", partial(_of_file, file, written))
        for written, file in recent[:MOST_PROGRAMS]
    ]


def _of_file(file: Path, written: float) -> Found:
    recorded = matrix.read(file)
    about = recorded.about
    hosts, sent = between_hosts(about.hosts, recorded.sender, recorded.receiver, recorded.total("bytes"))
    return {
        "id": file.name,
        "name": about.name,
        "ended": written,
        "ranks": about.ranks,
        "reported": sum(bool(host) for host in about.hosts),
        "hosts": hosts,
        "addresses": [""] * len(hosts),
        "sent": sent,
    }


def _checked(fields: Any, id: str) -> Found:
    """The fields of a program. Raises InputError if they are damaged."""
    try:
        MeasuredProgram.of(fields)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise InputError(f"program {id}: what was measured is damaged: {error}") from error
    return dict(fields) | {"id": id}


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def main() -> None:
    """Reads the arguments of `read` as JSON from standard input. Prints the answer, or {"problem": sentence}."""
    try:
        found = read(**json.load(sys.stdin))
    except InputError as error:
        found = {"problem": str(error)}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
