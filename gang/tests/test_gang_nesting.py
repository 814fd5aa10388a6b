"""Arrays nested deep, numbers of thousands of digits and endless files: one sentence, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_files import ARRAYS, DIGITS, HEXADECIMAL, limited, refused, topolane
from waiting import DEADLINE


@pytest.mark.parametrize("value", [ARRAYS, HEXADECIMAL, DIGITS], ids=["arrays", "hexadecimal", "digits"])
def test_a_toml_file_of_deep_arrays_or_long_numbers(tmp_path: Path, value: str) -> None:
    """A user who gives a TOML file with arrays nested deep or numbers of thousands of digits gets no traceback."""
    (tmp_path / "jobs.toml").write_text(f'[[job]]\nname = "a"\ncommand = {value}\n')
    refused(topolane(tmp_path, "gang", "run", "jobs.toml"), "jobs.toml")


def test_a_file_without_end(tmp_path: Path) -> None:
    """A user who names a file without end cannot fill the memory."""
    refused(topolane(tmp_path, "gang", "run", "/dev/zero", preexec_fn=limited), "/dev/zero")


def test_a_request_of_deep_arrays(tmp_path: Path) -> None:
    """A client that sends an agent's daemon arrays nested deep is answered, and the daemon goes on."""
    import socket
    import threading

    from topolane_gang.daemon import Daemon

    class Agent:
        cores = (0,)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "control"))
    listener.listen()
    agent: Any = Agent()
    Daemon(agent, listener)
    failed: list[Any] = []
    hook: Callable[..., Any] = threading.excepthook
    threading.excepthook = failed.append
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(DEADLINE)
            client.connect(str(tmp_path / "control"))
            client.sendall(ARRAYS.encode() + b"\n")
            answer = client.recv(65536)
    finally:
        threading.excepthook = hook
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    assert b"refused" in answer and not failed
