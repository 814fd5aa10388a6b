"""The progress bar: on a terminal with the time left, in a pipe nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).parent / "topolane"


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_terminal_sees_what_is_done_and_the_time_left(tmp_path, command):
    """A run shows what it does, the time passed and the time left on a terminal, and clears the line at its end."""
    ours, theirs = pty.openpty()
    arguments = [SCRIPT, command, "--workload", "cab-aug", "--limit", "300"]
    with subprocess.Popen(
        arguments,
        cwd=tmp_path,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        seen = read_all(ours)
    assert running.returncode == 0
    shown = [line for line in seen.split("\r") if "simulating" in line]
    assert shown
    assert all("left" in line and ":" in line.split("left")[1] for line in shown)
    assert seen.endswith("\x1b[2K")


def read_all(terminal: int) -> str:
    """What comes over a terminal until its other end is closed."""
    seen = b""
    with os.fdopen(terminal, "rb", buffering=0) as source:
        while True:
            try:
                part = source.read(4096)
            except OSError:  # what Linux says when the other end is closed
                return seen.decode()
            if not part:
                return seen.decode()
            seen += part


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_pipe_sees_no_bar(topolane, command):
    """In a pipe a run prints its tables and no bar, on neither stream."""
    printed = topolane(command, "--workload", "cab-aug", "--limit", "300")
    assert "simulating" not in printed
