"""Measures the manager's cost for 1,000 ranks that report every second."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import BenchError, Options, Row

LIMIT = 10.0
"""In per cent of a core."""
MAIN = "from topolane.cli import main; main()"


def reporting(options: Options) -> list[Row]:
    """The manager's CPU use for everything: receiving, storing in SQLite, acknowledging, and planning every 5
    s.
    """
    windows, seconds = (2, 5) if options.quick else (6, 10)
    shapes = [("one program of 1,000 ranks", 1, 1000), ("ten programs of 100 ranks", 10, 100)]
    return [_row(words, programs, ranks, windows, seconds) for words, programs, ranks in shapes]


def _row(words: str, programs: int, ranks: int, windows: int, seconds: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as scratch:
        folder = Path(scratch)
        (folder / "sites.toml").write_text(_file(folder, programs))
        manager = subprocess.Popen(
            [sys.executable, "-c", MAIN, "sites", "run", "--config", folder / "sites.toml"]
        )
        sender = None
        try:
            _wait(lambda: (folder / "p.sock").exists(), manager)
            sender = subprocess.Popen(
                [
                    sys.executable,
                    Path(__file__).with_name("ranks.py"),
                    folder / "p.sock",
                    str(programs),
                    str(ranks),
                    "16",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert sender.stdin and sender.stdout
            if sender.stdout.readline() != "connected\n":
                raise BenchError("the ranks did not connect")
            time.sleep(12)  # planning includes programs from 10 s on
            shares = tuple(_share(manager.pid, seconds) for _ in range(windows))
            sender.stdin.close()
            sent, acknowledged = map(int, sender.stdout.readline().split())
            if sent != acknowledged:
                raise BenchError(f"{sent} frames were sent and {acknowledged} acknowledged")
            return Row("reporting", f"{words}, 16 peers, a frame a second each", "% of a core", shares, LIMIT)
        finally:
            for process in (sender, manager):
                if process is not None:
                    process.terminate()
                    process.wait(30)


def _file(folder: Path, programs: int) -> str:
    lines = ["[manager]", f'listen = "unix:{folder}/a.sock"', f'programs = "unix:{folder}/p.sock"']
    for site in ("east", "west"):
        lines += ["[[site]]", f'name = "{site}"', "[[site.host]]", f'name = "{site}"']
        lines += ["cores = 1000", 'memory = "1 TiB"']
    lines += ["[[link]]", 'between = ["east", "west"]', "latency = 0.005", "bandwidth = 1.25e8"]
    for program in range(programs):
        for guest in range(4):
            lines += ["[[guest]]", f'name = "g{program}-{guest}"', "cores = 1", 'memory = "1 GiB"']
            lines += [f'host = "{("east", "west")[guest % 2]}"']
    return "\n".join(lines) + "\n"


def _share(pid: int, seconds: float) -> float:
    """The CPU use of a process over that time, in per cent of a core."""
    began, before = time.monotonic(), _cpu(pid)
    time.sleep(seconds)
    return 100 * (_cpu(pid) - before) / (time.monotonic() - began)


def _cpu(pid: int) -> float:
    # Fields 14 and 15 of proc(5), counted after the name in brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(condition, manager: subprocess.Popen) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        if manager.poll() is not None or time.monotonic() > deadline:
            raise BenchError("the manager does not start")
        time.sleep(0.1)
