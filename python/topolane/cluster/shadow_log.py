"""The log of a shadow: what it saw so far, and its decisions made once more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import files, parsing
from topolane._engine import InputError, Machine
from topolane.cluster.answers import SIDES, Summary, answered, no_event, policy_of
from topolane.cluster.hypothetical import Holder, Hypothetical, NodeSlots, Question
from topolane.cluster.log import events
from topolane.policy import resolve
from topolane.reading import csv_text

UNREADABLE = (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError)
"""What an event that is none raises here."""
RESOURCES = ("cores", "memory", "gpu")
"""What a job of Kubernetes takes of a node, in the order of the log."""
COLUMNS = ("id", "submit", "run", "nodes", "walltime", "start", "hosts")
WITH_RESOURCES = (
    "id",
    "submit",
    "run",
    "nodes",
    "walltime",
    "cores",
    "memory",
    "gpus_per_node",
    "start",
    "hosts",
)


@dataclasses.dataclass
class LoggedRun:
    """A job on its nodes, as the log has it. Times in seconds since 1970."""

    key: str
    """By which its system knows the job."""
    submit: float
    start: float
    walltime: float | None
    hosts: str
    count: int
    """Nodes that it holds."""
    share: dict[str, int] | None
    """What it takes of each node; None for whole nodes."""
    holder: Holder
    end: float | None = None


@dataclasses.dataclass
class Past:
    """What a shadow knew at the end of its log."""

    summary: Summary = dataclasses.field(default_factory=Summary)
    since: float | None = None
    """The time of its first event. What ended before is not in the log."""
    until: float | None = None
    """The time of its last event; None if it has none."""
    last: int = 0
    """The highest number of a job."""
    runs: dict[int, LoggedRun] = dataclasses.field(default_factory=dict)
    """The jobs that hold nodes."""
    over: dict[int, LoggedRun] = dataclasses.field(default_factory=dict)
    """The last run of those that ended."""


def past(path: str | Path, policy: str, machine: Machine) -> Past:
    """What the shadow that wrote a log knew. Raises InputError if the file is no such log, or of another policy."""
    found = Past()
    if not Path(path).exists():
        return found
    for line, event in events(path):
        try:
            kind = event["event"]
            found.until = float(event["time"])
            found.since = found.until if found.since is None else found.since
            if kind == "shadow":
                if event["policy"] != policy:
                    raise InputError(
                        f"{path}:{line}: the log is of policy {parsing.shown(event['policy'])}: name another file, or that policy"
                    )
                if "away" not in event:
                    found.runs.clear()  # All that holds nodes follows.
            elif kind == "ends":
                run = found.runs.pop(number := _whole(event["id"]), None)
                if run is not None:
                    found.over[number] = run
            elif kind in ("holds", "start"):
                number, nodes = _whole(event["id"]), _known(machine, event["nodes"])
                found.last = max(found.last, number)
                found.runs[number] = _run(event, nodes)
                if kind == "start":
                    found.summary.add(event, len(nodes))
                else:
                    found.summary.missed += 1
        except UNREADABLE as error:
            raise no_event(f"{path}:{line}", error) from error
    return found


@dataclasses.dataclass
class ShadowReplay:
    """A log, with every decision made once more."""

    summary: Summary = dataclasses.field(default_factory=Summary)
    differing: list[str] = dataclasses.field(default_factory=list)
    """Sentences, one for each answer of this engine that differs from the log."""
    runs: dict[int, LoggedRun] = dataclasses.field(default_factory=dict)
    """The last run of each job, by its number."""

    def csv(self) -> str:
        """The jobs that ran to their end, as a workload for `topolane compare --trace`. Of a job that ran several times, the last
        run.
        """
        columns = COLUMNS if self.summary.system == SIDES["slurm"] else WITH_RESOURCES
        rows = []
        for job, run in sorted(self.runs.items()):
            if run.end is None or not run.count:
                continue
            if run.hosts.startswith(files.FORMULA):
                # Read back as it is, so nothing can be put in front of it.
                raise InputError(
                    f"job {job}: ran on {parsing.shown(run.hosts)}, which a spreadsheet would compute"
                )
            row = _row(job, run)
            rows.append([row[column] for column in columns])
        return csv_text(columns, rows)


def _row(job: int, run: LoggedRun) -> dict[str, Any]:
    seconds, share = max((run.end or 0.0) - run.start, 0.0), run.share or {}
    return {
        "id": job,
        "submit": run.submit,
        "run": seconds,
        "nodes": run.count,
        # A run is not longer than its walltime, which a cluster of Kubernetes need not have.
        "walltime": max(seconds, run.walltime) if run.walltime else seconds if run.share is None else "",
        "cores": share.get("cores", ""),
        "memory": share.get("memory", ""),
        "gpus_per_node": share.get("gpu") or "",
        "start": run.start,
        "hosts": run.hosts,
    }


def replay(path: str | Path, policy: str | None = None) -> ShadowReplay:
    """Makes every decision in a log once more. Raises InputError if the file is not such a log.

    policy: the `module:Class` that the shadow used, if any. Code that only the log names is never run.
    """
    found = ShadowReplay()
    asked: Hypothetical | None = None
    for line, event in events(path):
        where = f"{path}:{line}"
        try:
            if event["event"] == "shadow":
                asked = _begun(event, asked, found, policy, where)
            elif asked is not None:
                _repeat(event, asked, found, where)
        except UNREADABLE as error:
            raise no_event(where, error) from error
    if asked is None:
        raise InputError(f"{path}: not the log of a shadow: no line has its machine and policy")
    return found


def _begun(
    event: Mapping[str, Any], before: Hypothetical | None, found: ShadowReplay, policy: str | None, where: str
) -> Hypothetical:
    """What a shadow asks that begins, or that goes on after another one."""
    machine = Machine.parse(event["machine"], where, "toml")
    named = policy_of(event, policy, where)
    system = str(event.get("system", "slurm"))
    found.summary.policy, found.summary.system = (
        named,
        SIDES["kubernetes" if system == "kubernetes" else "slurm"],
    )
    least = _optional(event.get("min_bandwidth"))
    asked = Hypothetical(machine, resolve(named), least, counts_slots=system == "kubernetes")
    if before is not None and "away" in event:
        for job, run in found.runs.items():
            if run.end is None:
                asked.hold(job, run.holder)
    return asked


def _repeat(event: Mapping[str, Any], asked: Hypothetical, found: ShadowReplay, where: str) -> None:
    kind, machine = event["event"], asked.machine
    if kind == "ends":
        number = _whole(event["id"])
        asked.end(number)
        if (run := found.runs.get(number)) is not None:
            run.end = _number(event["at"])
    elif kind == "service":
        asked.serve(_nodes(machine, event["out"]))
    elif kind in ("holds", "start"):
        number, run = _whole(event["id"]), _run(event, _nodes(machine, event["nodes"]))
        if kind == "holds":
            found.summary.missed += 1
        else:
            _compare(event, number, run, asked, found, where)
        asked.hold(number, run.holder)
        found.runs[number] = run


def _compare(
    event: Mapping[str, Any], job: int, run: LoggedRun, asked: Hypothetical, found: ShadowReplay, where: str
) -> None:
    if not isinstance(event.get("not_asked", ""), str) or not isinstance(event.get("plugin") or "", str):
        raise TypeError("a sentence was expected")
    if "not_asked" not in event:
        again = answered(asked.ask(_question(event, job, run, asked.machine)), asked.machine)
        if "pods" not in event:  # Several pods lie on one node, which the log does not say.
            holder = run.holder
            placed = asked.placed(job, holder.nodes, holder.links, holder.bandwidth_share)
            again = {"aph": placed.aph, "shares_with": placed.shares_with, **again}
        logged = {key: event[key] for key in again}
        if logged != again:
            found.differing.append(
                f"{where}: the log says {parsing.shown(logged)}, the engine {parsing.shown(again)}"
            )
            event = {**event, **again}
    found.summary.add(event, run.count)


def _question(event: Mapping[str, Any], job: int, run: LoggedRun, machine: Machine) -> Question:
    if "free" in event:
        slots = NodeSlots(_counts(machine, event["free"]), _counts(machine, event["room"]))
        return Question(job, _whole(event["pods"]), slots=slots)
    eligible = _nodes(machine, event["eligible"]) if "eligible" in event else None
    return Question(job, run.count, run.share, eligible)


def _run(event: Mapping[str, Any], nodes: Sequence[int]) -> LoggedRun:
    share = _share(event.get("share"))
    links = tuple(map(_whole, event.get("links", [])))
    holder = Holder(tuple(nodes), links, _number(event.get("bandwidth_share", 1.0)), share=share)
    return LoggedRun(
        str(event.get("key", event["job"])),
        _number(event["submit"]),
        _number(event["start"]),
        _optional(event["walltime"]),
        str(event["nodes"]),
        len(nodes),
        share,
        holder,
    )


def _counts(machine: Machine, counts: Mapping[str, str]) -> tuple[int, ...]:
    found = [0] * machine.nodes
    for most, hosts in counts.items():
        for node in machine.nodes_named(hosts):
            found[node] = int(most)
    return tuple(found)


def _known(machine: Machine, hosts: Any) -> list[int]:
    """The nodes of a hostlist that the machine has, which may be another one than that of the log."""
    if not isinstance(hosts, str):
        raise TypeError(f"{parsing.shown(hosts)} is not a hostlist")
    if not hosts:
        return []
    listed = Machine.parse(f"SwitchName=all Nodes={hosts}\n", "hosts", "slurm")
    found = [machine.node_named(listed.node_name(node)) for node in range(listed.nodes)]
    return [node for node in found if node is not None]


def _nodes(machine: Machine, hosts: Any) -> list[int]:
    if not isinstance(hosts, str):
        raise TypeError(f"{parsing.shown(hosts)} is not a hostlist")
    return machine.nodes_named(hosts) if hosts else []


def _share(value: Any) -> dict[str, int] | None:
    """What a job takes of a node: an object in the log of a Slurm, three numbers in that of a cluster."""
    if isinstance(value, list):
        if len(value) != len(RESOURCES):
            raise TypeError(f"{parsing.shown(value)} is no share of a node")
        value = dict(zip(RESOURCES, value))
    if value is None:
        return None
    if not isinstance(value, dict):
        raise TypeError(f"{parsing.shown(value)} is no share of a node")
    return {str(name): _whole(count) for name, count in value.items()}


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{parsing.shown(value)} is not a whole number")
    return value


def _number(value: Any) -> float:
    """A time or a share. It must be a number, since it is written into a table unchanged."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{parsing.shown(value)} is not a number")
    return float(value)


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)
