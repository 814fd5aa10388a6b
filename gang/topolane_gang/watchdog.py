"""Resumes every job of an agent if the agent dies. It is a process of its own that uses only the standard
library.

`python -I -S watchdog.py STATE` reads a pipe from the agent on standard input. A byte is a sign of life; the
end of the pipe is the end of the agent. STATE is the file that lists the processes of the agent.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SILENCE = 1.0
"""Seconds without a sign of life after which the agent counts as hung."""
MARK = "TOPOLANE_GANG_AGENT"
"""The environment variable that names the agent of a process."""


def main(path: str) -> None:
    """Waits until the agent ends; resumes its jobs then, and whenever it is silent."""
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        # Jobs that compute on every core must not keep us from letting them go.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(51))
    if library := read(path).get("library"):
        with contextlib.suppress(OSError):
            # What is loaded stays, also if the package of this version of Xen is removed meanwhile.
            ctypes.CDLL(library)
    while True:
        ready, _, _ = select.select([0], [], [], SILENCE)
        if ready and os.read(0, 4096):
            continue
        thaw(read(path))
        if ready:
            unpin(read(path))
            put_back(read(path))
            return
        # Once for each silence.
        select.select([0], [], [])


def read(path: str | Path) -> dict[str, Any]:
    """The content of an agent's file; empty if it cannot be read."""
    try:
        state = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def thaw(state: dict[str, Any]) -> None:
    """Resumes all processes of the agent: its control groups, groups of the jobs' own, and processes that it
    stopped by signals.
    """
    if domains := state.get("domains"):
        unpause(domains, str(state.get("library")))
    processes = {one for one, began in state.get("processes", []) if started(one) == began}
    for group in map(Path, state.get("held", [])):
        write(group / "cgroup.freeze", "0")
        write(group / "freezer.state", "THAWED")
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


def unpin(state: dict[str, Any]) -> None:
    """Gives all threads in groups of the jobs' own the affinity that they had, or that of their process."""
    allowed = {int(one): cores for one, cores in state.get("allowed", {}).items()}
    for held in map(Path, state.get("held", [])):
        for group in (held, *(Path(at) for at, _, _ in os.walk(held))):
            for thread in members(group / "cgroup.threads") | members(group / "tasks"):
                if cores := allowed.get(thread) or allowed.get(process_of(thread)):
                    with contextlib.suppress(OSError):
                        os.sched_setaffinity(thread, cores)


def unpause(domains: list[dict[str, Any]], library: str) -> None:
    """Takes back the pause of domains of Xen. One that is not paused is left as it is."""
    try:
        xen = ctypes.CDLL(library, use_errno=True)
    except OSError:
        return
    xen.xc_interface_open.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(xen.xc_interface_open(None, None, 0))
    if handle:
        for one in domains:
            if is_domain(xen, handle, one):
                xen.xc_domain_unpause(handle, ctypes.c_uint32(one["number"]))
        xen.xc_interface_close(handle)


def is_domain(xen: ctypes.CDLL, handle: ctypes.c_void_p, one: dict[str, Any]) -> bool:
    """Whether a domain still has its number. `struct xen_domctl_getdomaininfo` begins with that, and has the UUID
    after 76 bytes.
    """
    number = ctypes.c_uint32(one["number"])
    about = ctypes.create_string_buffer(8192)
    if xen.xc_domain_getinfolist(handle, number, ctypes.c_uint32(1), about) != 1:
        return False
    found = int.from_bytes(about.raw[:2], sys.byteorder), about.raw[76:92]
    return found == (one["number"], uuid.UUID(one["uuid"]).bytes)


def put_back(state: dict[str, Any]) -> None:
    """Moves the domains of Xen back to their pools, and the cores of the agent's pool to theirs."""
    if (pool := state.get("pool")) is None:
        return
    for one in state.get("domains", []):
        move_back(one)
    homes = state.get("homes", {})
    for core in homes:
        # By granularity socket, the first takes the whole socket along.
        xl("cpupool-cpu-remove", pool, core)
    xl("cpupool-destroy", pool)
    for core, home in homes.items():
        if home:
            xl("cpupool-cpu-add", home, core)


def move_back(one: dict[str, Any]) -> None:
    """Moves a domain to the pool that it came from, with the affinity and the weight that it had there."""
    number = str(one["number"])
    if one["uuid"] in xl("list", "-v", number):
        for command in (["cpupool-migrate", number, one["pool"]], *one["restore"]):
            xl(*command)


def xl(*words: str) -> str:
    """What a command of Xen's tools prints. It has a session of its own, so Ctrl-C at the agent does not end it."""
    with contextlib.suppress(OSError):
        discarded = subprocess.DEVNULL
        done = subprocess.run(
            ["xl", *words],
            stdout=subprocess.PIPE,
            stderr=discarded,
            stdin=discarded,
            start_new_session=True,
        )
        return done.stdout.decode(errors="replace")
    return ""


def process_of(thread: int) -> int:
    """The process of a thread; 0 if it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{thread}/status").read_text().splitlines():
            if line.startswith("Tgid:"):
                return int(line.split()[1])
    return 0


def job_groups(own: Path) -> list[Path]:
    """The control groups of the jobs, below the agent's group."""
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
    """Writes a setting, if its file exists."""
    with contextlib.suppress(OSError):
        if file.exists():
            file.write_text(value)


def continue_processes(processes: Iterable[int]) -> None:
    """Continues these processes."""
    for process in processes:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGCONT)


def restore_priority(process: int) -> None:
    """Gives threads with idle priority the usual priority again."""
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            if os.sched_getscheduler(int(thread)) == os.SCHED_IDLE:
                os.sched_setscheduler(int(thread), os.SCHED_OTHER, os.sched_param(0))


def descendants(processes: set[int]) -> set[int]:
    """These processes and all their descendants."""
    parents = {one: int(fields[1]) for one, fields in stats()}
    found = set(processes)
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def processes_with_mark(mark: str) -> set[int]:
    """Processes with the mark in their environment, including children whose parents have ended."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for process, _ in stats():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                found.add(process)
    return found


def stats() -> Iterator[tuple[int, list[str]]]:
    """Every process, with the fields of /proc/PID/stat after its name."""
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and (fields := stat(int(entry))):
            yield int(entry), fields


def stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat after the name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def started(process: int) -> int | None:
    """The start of a process in clock ticks since boot; with its number, this identifies it.

    None if it has ended.
    """
    fields = stat(process)
    return None if not fields or fields[0] in "ZX" else int(fields[19])


if __name__ == "__main__":
    main(sys.argv[1])
