"""What other users of a machine can do to the port where the metrics of Slurm's plugin are read."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import urllib.request

import pytest

pytest.importorskip("prometheus_client", reason="the extra slurm is not installed")
from prometheus_client import CollectorRegistry, Gauge
from topolane.cluster.metrics import serve
from waiting import DEADLINE, until


def test_one_user_cannot_take_all_places() -> None:
    """Another user still gets the metrics while one user holds as many connections as it can."""
    if os.geteuid() != 0:
        pytest.skip("only root can read as another user")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    serve(f"127.0.0.1:{port}", CollectorRegistry())
    with contextlib.ExitStack() as held:
        for _ in range(40):
            held.enter_context(socket.create_connection(("127.0.0.1", port), DEADLINE))
        words = [sys.executable, "-c", AS_ANOTHER_USER, str(port)]
        found = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE)
    assert found.stdout == "200", found.stderr


# The interpreter may be where only root reads: a process becomes the user when it has all its modules.
AS_ANOTHER_USER = """
import encodings.idna, http.client, os, sys
os.setuid(65534)
asking = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
asking.request("GET", "/metrics")
print(asking.getresponse().status, end="")
"""


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
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), DEADLINE) as last:
            last.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            last.recv(1)  # it is answered or turned away, and so all before it have been
        assert threading.active_count() - before < 50

    def asked() -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return answer.read()

    assert b"topolane_slurm_up" in until(asked, "the metrics are served")
