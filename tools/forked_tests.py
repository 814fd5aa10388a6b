"""Runs tests repeatedly, each time in a fork of a process that has already imported the unchanged modules.
This halves the time of a short run.

forked_tests.py serve SOCKET SECONDS ARGUMENTS...: runs pytest with the arguments on each request.
forked_tests.py ask SOCKET: makes one request, and ends with pytest's exit code.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
from collections.abc import Sequence

UNCHANGED = ("hypothesis", "hypothesis.strategies", "click.testing", "httpx", "yaml", "topolane._engine")
"""Modules imported once. They must not import modules of Topolane that may be edited."""


def serve(address: str, seconds: int, arguments: Sequence[str]) -> None:
    import pytest

    for name in UNCHANGED:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        while True:
            asked, _ = listener.accept()
            with asked:
                child = os.fork()
                if child == 0:
                    signal.alarm(seconds)
                    sys.dont_write_bytecode = True
                    silent = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(silent, 1)
                    os.dup2(silent, 2)
                    os._exit(pytest.main(list(arguments)))
                _, status = os.waitpid(child, 0)
                with contextlib.suppress(BrokenPipeError):
                    asked.sendall(bytes([abs(os.waitstatus_to_exitcode(status))]))


def ask(address: str) -> int:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        return server.recv(1)[0]


if __name__ == "__main__":
    if sys.argv[1] == "ask":
        sys.exit(ask(sys.argv[2]))
    serve(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
