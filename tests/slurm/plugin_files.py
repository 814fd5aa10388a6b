"""Writes the plugin's state files as native/slurm/plugin does, for tests in which no slurmctld does."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from topolane.slurm.plugin_state import COUNTERS, JOBS, LINKS, sum_of

NAMES = ("calls", "placed", "kept_off", "in_area", "refused", "stock", "stock_inactive", "stock_failed")
NAMES += (
    "stock_slow",
    "stock_unknown",
    "stock_oversubscribed",
    "links_unwritten",
    "nanoseconds",
    "longest_nanoseconds",
)


def write_counters(directory: Path, *, active: bool = True, age: float = 0.0, **values: int) -> None:
    """Counters, of which those not named are 0; `age`: seconds since they were written."""
    now = int(time.time() - age)
    counted = {"active": int(active), "started": now - 60, "written": now} | dict.fromkeys(NAMES, 0)
    counted |= {f"under_{256 << power}_nanoseconds": 0 for power in range(20)} | values
    (directory / COUNTERS).write_text("".join(f"{name} {number}\n" for name, number in counted.items()))


def write_jobs(directory: Path, *lines: str, when: float | None = None) -> None:
    """The lines after the first one."""
    text = "\n".join([f"topolane-jobs 2 {int(time.time() if when is None else when)}", *lines])
    (directory / JOBS).write_text(text + "\n")


def running(job: int, policy: str, link_use: str, share: float = 1.0) -> str:
    """The record of a job that holds nodes."""
    said = {"job": job, "policy": policy, "share": share, "rule": "topolane.conf line 1"}
    return json.dumps(said | {"link_use": link_use})


def waiting(
    job: int, policy: str, kind: str, wanted: int, offered: str = "", share: float = 1.0, time: float = 0.0
) -> str:
    """The record of a refused job."""
    said = {"job": job, "policy": policy, "share": share, "rule": "topolane.conf line 1", "offered": offered}
    return json.dumps(said | {"refusal": {"kind": kind, "wanted": wanted, "time": int(time)}})


def write_links(
    directory: Path, machine: Path, *rows: tuple[int, float, Sequence[int], Sequence[int]]
) -> None:
    """Rows of (job, share, nodes, links)."""
    lines = [f"topolane-links 1 {sum_of(machine.read_bytes()):016x} {len(rows)}"]
    for job, share, nodes, links in rows:
        lines.append(" ".join(map(str, (job, share, len(nodes), *nodes, len(links), *links))))
    body = "\n".join(lines) + "\n"
    (directory / LINKS).write_text(f"{body}sum {sum_of(body.encode()):016x}\n")
