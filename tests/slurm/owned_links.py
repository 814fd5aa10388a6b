"""Files of the topology plugin as it writes them, without Slurm: which links jobs own, and which jobs hold nodes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import plugin_files

Row = Mapping[str, Any]
"""A job: `id`, `nodes`, `links`."""


def fnv(content: bytes) -> int:
    total = 14695981039346656037
    for byte in content:
        total = ((total ^ byte) * 1099511628211) % 2**64
    return total


def write_links(state: Path, machines: Sequence[Path], jobs: Iterable[Row]) -> None:
    """`topolane_links`: jobs by number, in the place of the file before."""
    rows = sorted(jobs, key=lambda job: int(job["id"]))
    content = b"".join(machine.read_bytes() for machine in machines)
    lines = [f"topolane-links 1 {fnv(content):016x} {len(rows)}"]
    lines += [f"{job['id']} 1 {_numbers(job['nodes'])} {_numbers(job['links'])}" for job in rows]
    body = "".join(f"{line}\n" for line in lines)
    _replace(state / "topolane_links", f"{body}sum {fnv(body.encode()):016x}\n")


def write_running(state: Path, jobs: Iterable[int], age: int = 0) -> None:
    """`topolane_jobs`: the jobs that hold nodes, as they were some seconds ago."""
    rows = "".join(f"{plugin_files.running(job, 'dedicated', 'isolated')}\n" for job in jobs)
    _replace(state / "topolane_jobs", f"topolane-jobs 2 {int(time.time()) - age}\nmachine net 216\n{rows}")


def _numbers(numbers: Sequence[int]) -> str:
    return " ".join(map(str, [len(numbers), *sorted(numbers)]))


def _replace(path: Path, text: str) -> None:
    draft = path.with_suffix(".new")
    draft.write_text(text)
    draft.replace(path)
