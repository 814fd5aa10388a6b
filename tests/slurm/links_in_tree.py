"""Which jobs share links, derived from topology.conf and the nodes of jobs alone. It shares no code with Topolane."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """A job, or a part of it between two moments (seconds)."""

    job: int
    partition: str
    nodes: frozenset[str]
    start: float
    end: float


def expanded(hosts: str) -> set[str]:
    """The names in a list such as `node[1-3,7],other4`."""
    names = set()
    for prefix, ranges in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", hosts):
        for part in ranges.split(",") if ranges else [""]:
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else [""]
            names |= {f"{prefix.strip(',')}{number}" for number in numbers}
    return names


def switches(topology: Path) -> dict[str, frozenset[str]]:
    """The nodes under each switch; none of topology/block."""
    lines = [
        dict(re.findall(r"(\w+)=(\S+)", line))
        for line in topology.read_text().splitlines()
        if "Switch" in line
    ]
    found: dict[str, frozenset[str]] = {}
    for line in lines:
        below = expanded(line["Nodes"]) if "Nodes" in line else set()
        for child in expanded(line["Switches"]) if "Switches" in line else ():
            below |= found[child]
        found[line["SwitchName"]] = frozenset(below)
    return found


def crossed(nodes: Iterable[str], tree: Mapping[str, frozenset[str]]) -> set[str]:
    """The switches over whose uplinks the job may send: it has nodes under them and others elsewhere. For a job of several
    nodes also the nodes themselves."""
    own = frozenset(nodes)
    over = {name for name, below in tree.items() if own & below and own - below}
    return over | own if len(own) > 1 else over


def meetings(jobs: Iterable[Ran], tree: Mapping[str, frozenset[str]]) -> list[tuple[Ran, Ran, set[str]]]:
    """All pairs of jobs that ran at the same time and could use the same links, and the switches or nodes of these."""
    return overlaps((job, crossed(job.nodes, tree)) for job in jobs)


def overlaps(jobs: Iterable[tuple[Ran, set[str]]]) -> list[tuple[Ran, Ran, set[str]]]:
    """All pairs of jobs that held some of the same things at the same time, and these; parts of one job are no pair.

    One pass by time: a job is compared with those that hold one of its things when it begins, and with no others.
    """
    found: dict[tuple[Ran, Ran], set[str]] = {}
    holders: dict[str, list[Ran]] = {}
    for job, things in sorted(jobs, key=lambda each: each[0].start):
        if job.end <= job.start:
            continue
        for thing in things:
            others = [other for other in holders.get(thing, ()) if other.end > job.start]
            for other in others:
                if other.job != job.job:
                    found.setdefault((other, job), set()).add(thing)
            holders[thing] = [*others, job]
    return [(one, other, things) for (one, other), things in found.items()]


def completed(log: Path) -> list[Ran]:
    """The jobs in a log of jobcomp/filetxt."""
    found = []
    for line in log.read_text().splitlines():
        facts = dict(re.findall(r"(\w+)=(\S*)", line))
        if not facts.get("NodeList", "").strip("()") or facts["NodeList"] == "(null)":
            continue
        if "Unknown" in (
            facts["StartTime"],
            facts["EndTime"],
        ):  # put back into the queue by a slurmctld that had crashed
            continue
        begin, end = (datetime.fromisoformat(facts[key]).timestamp() for key in ("StartTime", "EndTime"))
        nodes = frozenset(expanded(facts["NodeList"]))
        found.append(Ran(int(facts["JobId"]), facts["Partition"], nodes, begin, end))
    return found


def listed(squeue: str, now: float) -> list[Ran]:
    """The jobs that run, from lines `%A %P %N` of squeue."""
    words = [line.split() for line in squeue.splitlines()]
    return [
        Ran(int(job), partition, frozenset(expanded(nodes)), now, now + 1) for job, partition, nodes in words
    ]
