"""Lets every job of an agent run when that dies: a process of its own, of the standard library alone.

`python -I -S watchdog.py STATE`, a pipe from the agent on standard input: a byte is a sign of life, its end is the
agent's. STATE is the file in which the agent keeps whom it holds.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SILENCE = 1.0
"""Seconds without a sign after which an agent is given up."""
MARK = "TOPOLANE_GANG_AGENT"
"""In the environment of every process that an agent started: which one it was."""


def main(path: str) -> None:
    """Waits for the agent's end, or for its silence as often as that happens."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        # Jobs that compute on every core must not keep us from letting them go.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(51))
    while True:
        ready, _, _ = select.select([0], [], [], SILENCE)
        if ready and os.read(0, 4096):
            continue
        thaw(read(path))
        if ready:
            return
        # Once for each silence.
        select.select([0], [], [])


def read(path: str | Path) -> dict[str, Any]:
    """What an agent wrote; nothing where that cannot be read."""
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def thaw(state: dict[str, Any]) -> None:
    """Lets everybody run whom the agent held: its control groups, and processes that it stopped by signals."""
    processes = {one for one, began in state.get("processes", []) if started(one) == began}
    groups = [group for own in state.get("groups", []) for group in job_groups(Path(own))]
    for group in groups:
        write(group / "cgroup.freeze", "0")
        write(group / "freezer.state", "THAWED")
        write(group / "cpu.idle", "0")
        processes |= members(group / "cgroup.procs")
    if state.get("stopping") == "signals":
        processes |= processes_with_mark(str(state.get("mark")))
        continue_processes(descendants(processes))
    if state.get("ranking") == "threads":
        for process in descendants(processes):
            restore_priority(process)


def job_groups(own: Path) -> list[Path]:
    """The control groups of the jobs below an agent's."""
    try:
        return [group for group in own.iterdir() if group.is_dir()]
    except OSError:
        return []


def members(listed: Path) -> set[int]:
    """The processes of a control group."""
    try:
        return {int(line) for line in listed.read_text().split()}
    except OSError:
        return set()


def write(file: Path, value: str) -> None:
    """Writes a setting, where there is one."""
    with contextlib.suppress(OSError):
        if file.exists():
            file.write_text(value)


def continue_processes(processes: Iterable[int]) -> None:
    """Continues them."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGCONT)


def restore_priority(process: int) -> None:
    """Gives its threads back the usual priority where they have idle priority."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            if os.sched_getscheduler(int(thread)) == os.SCHED_IDLE:
                os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))


def descendants(processes: set[int]) -> set[int]:
    """These and all that descend from them."""
    parents = {one: int(fields[1]) for one, fields in stats()}
    found = set(processes)
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def processes_with_mark(mark: str) -> set[int]:
    """Processes that have the mark in their environment: children that outlived their parents too."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for process, _ in stats():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                found.add(process)
    return found


def stats() -> Iterator[tuple[int, list[str]]]:
    """Every process, with what /proc/PID/stat says after its name."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (fields := stat(int(entry))):
            yield int(entry), fields


def stat(process: int) -> list[str]:
    """What /proc/PID/stat says of a process after its name; nothing where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def started(process: int) -> int | None:
    """When a process began, in clock ticks since boot: with its number its identity. None where it has ended."""
    fields = stat(process)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


if __name__ == "__main__":
    main(sys.argv[1])
