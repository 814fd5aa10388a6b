"""What other users of a machine can do to the port where the metrics of Slurm's plugin are read."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import urllib.request

import pytest

pytest.importorskip("prometheus_client", reason="the extra slurm is not installed")
from prometheus_client import CollectorRegistry, Gauge
from topolane.live.metrics import serve


def test_half_sent_requests_take_no_more_than_their_places() -> None:
    """Whoever opens 200 connections to the metrics and says nothing takes a few threads and descriptors of the process,
    which then has its places back."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    registry = CollectorRegistry()
    Gauge("topolane_slurm_up", "Whether slurmctld answers", registry=registry)
    serve(f"127.0.0.1:{port}", registry)
    before = threading.active_count()
    with contextlib.ExitStack() as held:
        for _ in range(200):
            one = held.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            with contextlib.suppress(OSError):
                one.sendall(b"GET /metr")
        time.sleep(1)
        assert threading.active_count() - before < 50
    deadline = time.monotonic() + 60
    while True:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
        ):
            assert b"topolane_slurm_up" in answer.read()
            return
        assert time.monotonic() < deadline
        time.sleep(0.2)
