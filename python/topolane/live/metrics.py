"""Serving metrics to Prometheus, over plain HTTP on a loopback address."""

from __future__ import annotations

import socket
import threading
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from topolane._engine import InputError

MOST_READERS = 16
"""Connections that are served at a time; more are closed."""


class _Handler(WSGIRequestHandler):
    timeout = 10.0
    """Seconds for which a connection may say nothing."""

    def log_message(self, *_: object) -> None:
        """Logs nothing: otherwise any client could fill the log."""


class _Server(ThreadingMixIn, WSGIServer):
    """Answers a few requests at a time, since each connection takes a thread and a descriptor of the daemon."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], family: int) -> None:
        self.address_family = family
        self._places = threading.BoundedSemaphore(MOST_READERS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, *_: object) -> None:
        """Logs nothing about a broken connection."""


def serve(address: str, registry: CollectorRegistry) -> None:
    """Serves the metrics of a registry at `address` (host:port) until the process ends.

    Raises InputError if that address cannot be used.
    """
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = _Server((host.strip("[]"), int(port)), family)
    except OSError as error:
        raise InputError(f"metrics = {address}: nothing can listen there: {error.strerror}") from error
    server.set_app(make_wsgi_app(registry))
    threading.Thread(target=server.serve_forever, daemon=True).start()
