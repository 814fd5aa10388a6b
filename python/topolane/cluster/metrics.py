"""Serving metrics to Prometheus, over plain HTTP on a loopback address or a Unix socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from topolane._engine import InputError
from topolane.cluster.accounts import client_of

MOST_READERS = 16
"""Connections that are served at a time; more are closed."""
MOST_OF_A_USER = 4
"""Connections of one user over TCP, so that no user keeps the others out."""
UNIX = "unix:"


class _Handler(WSGIRequestHandler):
    timeout = 10.0
    """Seconds for which a connection may say nothing."""

    def log_message(self, *_: object) -> None:
        """Logs nothing: otherwise any client could fill the log."""

    def address_string(self) -> str:
        """The reader's address; the one on a Unix socket has none."""
        return str(self.client_address[0]) if self.client_address else ""


class _Server(ThreadingMixIn, WSGIServer):
    """Answers a few requests at a time, since each connection takes a thread and a descriptor of the process."""

    daemon_threads = True

    def __init__(self, address: Any, family: int) -> None:
        self.address_family = family
        self._taken: Counter[str] = Counter()
        self._accounts: dict[Any, str] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        if self.address_family != socket.AF_UNIX:
            super().server_bind()
            return
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0
        self.setup_environ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        return connection, address or ("localhost", 0)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._take(request):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._taken -= Counter([self._accounts.pop(request)])

    def _take(self, request: socket.socket) -> bool:
        """Takes a place for a connection; returns whether there was one."""
        account, most = "", MOST_READERS
        if self.address_family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # the reader may be gone
                account = client_of(request.getpeername(), request.getsockname())
            most = MOST_OF_A_USER
        with self._lock:
            if self._taken.total() >= MOST_READERS or self._taken[account] >= most:
                return False
            self._taken[account] += 1
            self._accounts[request] = account
        return True

    def handle_error(self, *_: object) -> None:
        """Logs nothing about a broken connection."""


class _Kept(Collector):
    """Collects metrics from a look at a system, taken when a reader asks. It answers every reader for some seconds."""

    def __init__(self, look: Callable[[], Iterable[Metric]], seconds: float) -> None:
        self._look, self._seconds, self._lock = look, seconds, threading.Lock()
        self._last: list[Metric] = []
        self._taken: float | None = None

    def collect(self) -> Iterable[Metric]:
        with self._lock:
            if self._taken is None or time.monotonic() - self._taken > self._seconds:
                self._last = list(self._look())
                self._taken = time.monotonic()
            return self._last

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry would look at the system otherwise."""
        return []


def registry_of(look: Callable[[], Iterable[Metric]], seconds: float) -> CollectorRegistry:
    """A registry with the metrics of a look at a system that is at most `seconds` old."""
    made = CollectorRegistry()
    made.register(_Kept(look, seconds))
    return made


def checked(address: str, option: str = "--listen") -> None:
    """Raises InputError, which names the option, unless an address is `unix:PATH`, or `HOST:PORT` that only this machine
    reaches.
    """
    host, colon, port = address.rpartition(":")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    has_port = re.fullmatch(r"[0-9]{1,5}", port) is not None and 1 <= int(port) <= 65535
    is_unix = address.startswith(UNIX) and len(address) > len(UNIX)
    if not is_unix and not (colon and is_loopback and has_port):
        raise InputError(
            f"{option} {address}: must be HOST:PORT on a loopback address, such as 127.0.0.1:9753 (its readers are not "
            "authenticated), or unix:PATH"
        )


def serve(address: str, registry: CollectorRegistry, option: str = "--listen") -> None:
    """Serves the metrics of a registry at `address` (HOST:PORT or unix:PATH) until the process ends.

    Raises InputError, which names the option, if that address cannot be used.
    """
    try:
        server = _listening(address)
    except OSError as error:
        raise InputError(
            f"{option} {address}: nothing can listen there: {error.strerror or error}"
        ) from error
    server.set_app(make_wsgi_app(registry))
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _listening(address: str) -> _Server:
    if address.startswith(UNIX):
        path = address.removeprefix(UNIX)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(os.lstat(path).st_mode) and not _answers(path):
                os.unlink(path)  # of a process that has ended
        return _Server(path, socket.AF_UNIX)
    host, _, port = address.rpartition(":")
    return _Server((host.strip("[]"), int(port)), socket.AF_INET6 if ":" in host else socket.AF_INET)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
        except OSError:
            return False
    return True
