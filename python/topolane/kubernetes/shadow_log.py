"""The log of a shadow: what it saw so far, and its decisions made once more."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topolane import files, parsing
from topolane._engine import InputError, Machine
from topolane.kubernetes.export import table
from topolane.kubernetes.history import Stay
from topolane.kubernetes.hypothetical import Holder, Hypothetical, Slots
from topolane.live.log import events
from topolane.live.shadows import Summary, answered, no_event, policy_of


@dataclasses.dataclass
class Past:
    """What a shadow knew at the end of its log."""

    summary: Summary = dataclasses.field(default_factory=Summary)
    until: float | None = None
    """The time of its last event; None if it has none."""
    last: int = 0
    """The highest number of a job."""
    stays: dict[str, Stay] = dataclasses.field(default_factory=dict)
    over: dict[str, float] = dataclasses.field(default_factory=dict)
    holders: dict[int, Holder] = dataclasses.field(default_factory=dict)


def past(path: str | Path, policy: str, machine: Machine) -> Past:
    """What the shadow that wrote a log knew. Raises InputError if the file is no such log, or of another policy."""
    found = Past()
    if not Path(path).exists():
        return found
    names: dict[int, str] = {}
    for line, event in events(path):
        try:
            kind = event["event"]
            found.until = float(event["time"])
            if kind == "shadow":
                if event["policy"] != policy:
                    raise InputError(
                        f"{path}:{line}: the log is of policy {parsing.shown(event['policy'])}: name another file, or that policy"
                    )
            elif kind == "ends":
                number = int(event["id"])
                found.holders.pop(number, None)
                stay = found.stays.pop(names.get(number, ""), None)
                if stay is not None:
                    found.over[names[number]] = stay.start
            elif kind in ("holds", "start"):
                number, name = int(event["id"]), str(event.get("key", event["job"]))
                nodes = [machine.node_named(host) for host in _hosts(event["nodes"])]
                names[number], found.last = name, max(found.last, number)
                found.stays[name] = Stay(number, float(event["start"]))
                found.holders[number] = Holder(tuple(node for node in nodes if node is not None))
                if kind == "start":
                    found.summary.add(event, len(nodes))
                else:
                    found.summary.missed += 1
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise no_event(f"{path}:{line}", error) from error
    return found


@dataclasses.dataclass
class Replay:
    """A log, with every decision made once more."""

    summary: Summary = dataclasses.field(default_factory=lambda: Summary(system="cluster"))
    differing: list[str] = dataclasses.field(default_factory=list)
    """Sentences, one for each answer of this engine that differs from the log."""
    rows: dict[int, list[Any]] = dataclasses.field(default_factory=dict)
    """Jobs by number; those that have not ended have no run time."""

    @property
    def csv(self) -> str:
        """The jobs that ran to their end, as a workload for `topolane compare --trace`."""
        ran = [[number, *row] for number, row in sorted(self.rows.items()) if row[1] is not None and row[2]]
        for number, *_, hosts in ran:
            if hosts.startswith(files.FORMULA):
                # Read back as it is, so nothing can be put in front of it.
                raise InputError(
                    f"job {number}: ran on {parsing.shown(hosts)}, which a spreadsheet would compute"
                )
        return table(ran)


def replay(path: str | Path, policy: str | None = None) -> Replay:
    """Makes every decision in a log once more. Raises InputError if the file is not such a log.

    policy: the `module:Class` that the shadow used, if any. Code that only the log names is never run.
    """
    found, asked = Replay(), None
    for line, event in events(path):
        try:
            kind = event["event"]
            if kind == "shadow":
                machine = Machine.parse(event["machine"], f"{path}:{line}", "toml")
                named = policy_of(event, policy, f"{path}:{line}")
                holders: dict[int, Holder] = {} if asked is None else asked.holders
                asked = Hypothetical(machine, named, event.get("min_bandwidth"))
                asked.holders.update(holders)
                found.summary.policy = named
            elif asked is not None:
                _repeat(event, asked, found, f"{path}:{line}")
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise no_event(f"{path}:{line}", error) from error
    if asked is None:
        raise InputError(f"{path}: not the log of a shadow: no line has its machine and policy")
    return found


def _repeat(event: Mapping[str, Any], asked: Hypothetical, found: Replay, where: str) -> None:
    kind, machine = event["event"], asked.machine
    if kind == "ends":
        number = int(event["id"])
        asked.holders.pop(number, None)
        if number in found.rows:
            row = found.rows[number]
            row[1] = max(float(event["at"]) - row[7], 0.0)
            row[3] = max(row[1], row[3]) if row[3] else ""
        return
    if kind not in ("holds", "start"):
        return
    number, nodes = int(event["id"]), machine.nodes_named(event["nodes"]) if event["nodes"] else []
    limit, (cores, memory, gpus) = event["walltime"], map(int, event["share"])
    found.rows[number] = [
        *(float(event["submit"]), None, len(nodes), "" if limit is None else float(limit)),
        *(cores, memory, gpus or "", float(event["start"]), str(event["nodes"])),
    ]
    if kind == "holds":
        found.summary.missed += 1
    else:
        if "not_asked" not in event:
            there = Slots(_counts(machine, event["free"]), _counts(machine, event["room"]))
            again = answered(asked.ask(number, int(event["pods"]), there), machine)
            if again["policy"] != event["policy"]:
                found.differing.append(
                    f"{where}: the log says {parsing.shown(event['policy'])}, the engine {parsing.shown(again['policy'])}"
                )
                event = {**event, **again}
        found.summary.add(event, len(nodes))
    asked.holders[number] = Holder(tuple(nodes))


def _counts(machine: Machine, hosts_by_count: Mapping[str, str]) -> tuple[int, ...]:
    found = [0] * machine.nodes
    for most, hosts in hosts_by_count.items():
        for node in machine.nodes_named(hosts):
            found[node] = int(most)
    return tuple(found)


def _hosts(hosts: Any) -> list[str]:
    """The names in a hostlist."""
    if not isinstance(hosts, str):
        raise TypeError(f"{parsing.shown(hosts)} is not a hostlist")
    if not hosts:
        return []
    listed = Machine.parse(f"SwitchName=all Nodes={hosts}\n", "hosts", "slurm")
    return [listed.node_name(node) for node in range(listed.nodes)]
