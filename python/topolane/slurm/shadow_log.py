"""The log of a shadow: its summary, and its decisions made once more."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topolane import files, parsing
from topolane._engine import InputError, Machine
from topolane.live.log import events
from topolane.live.shadows import Summary, answered, no_event, policy_of
from topolane.policy import resolve
from topolane.slurm.hypothetical import Hypothetical, Question

COLUMNS = ("id", "submit", "run", "nodes", "walltime", "start", "hosts")


@dataclasses.dataclass
class _Ran:
    """A job in the log. Times in seconds of Slurm's clock."""

    submit: float
    start: float
    walltime: float | None
    nodes: str
    count: int
    end: float | None = None


@dataclasses.dataclass
class Replay:
    """A log, with every decision made once more."""

    summary: Summary = dataclasses.field(default_factory=Summary)
    differing: list[str] = dataclasses.field(default_factory=list)
    """Sentences, one for each answer of this engine that differs from the log."""
    _ran: dict[int, _Ran] = dataclasses.field(default_factory=dict)

    def csv(self) -> str:
        """The jobs that Slurm ran to their end, as a workload for `topolane compare --trace`. Of a job that ran several times,
        the last one.
        """
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS)
        for job, ran in sorted(self._ran.items()):
            if ran.end is None or not ran.count:
                continue
            if ran.nodes.startswith(files.FORMULA):
                # Read back as it is, so nothing can be put in front of it.
                raise InputError(
                    f"job {job}: ran on {parsing.shown(ran.nodes)}, which a spreadsheet would compute"
                )
            run = max(ran.end - ran.start, 0.0)
            walltime = run if ran.walltime is None else ran.walltime
            writer.writerow([job, ran.submit, run, ran.count, walltime, ran.start, ran.nodes])
        return table.getvalue()


def replay(path: str | Path, policy: str | None = None) -> Replay:
    """Makes every decision in a log once more. Raises InputError if the file is not such a log.

    policy: the `module:Class` that the shadow used, if any. Code that only the log names is never run.
    """
    found = Replay()
    hypothetical: Hypothetical | None = None
    for line, event in events(path):
        where = f"{path}:{line}"
        try:
            if event["event"] == "shadow":
                machine = Machine.parse(event["machine"], where, "toml")
                named = policy_of(event, policy, where)
                hypothetical = Hypothetical(machine, resolve(named), _optional(event.get("min_bandwidth")))
                found.summary.policy = named
            elif hypothetical is not None:
                _repeat(event, hypothetical, found, where)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise no_event(where, error) from error
    if hypothetical is None:
        raise InputError(f"{path}: not the log of a shadow: no line has its machine and policy")
    return found


def _repeat(event: Mapping[str, Any], hypothetical: Hypothetical, found: Replay, where: str) -> None:
    kind, machine = event["event"], hypothetical.machine
    if kind == "ends":
        hypothetical.end(_whole(event["id"]))
        if (ran := found._ran.get(_whole(event["id"]))) is not None:
            ran.end = _number(event["at"])
    elif kind == "service":
        hypothetical.serve(_nodes(machine, event["out"]))
    elif kind in ("holds", "start"):
        job, nodes, share = _whole(event["id"]), _nodes(machine, event["nodes"]), _share(event.get("share"))
        links, bandwidth_share = event.get("links", []), _number(event.get("bandwidth_share", 1.0))
        if kind == "holds":
            found.summary.missed += 1
        else:
            _compare(event, Question(job, len(nodes), share, ()), hypothetical, found, where)
        hypothetical.hold(job, nodes, share, links, bandwidth_share)
        found._ran[job] = _Ran(
            _number(event["submit"]),
            _number(event["start"]),
            _optional(event["walltime"]),
            event["nodes"],
            len(nodes),
        )


def _compare(
    event: Mapping[str, Any], question: Question, hypothetical: Hypothetical, found: Replay, where: str
) -> None:
    machine = hypothetical.machine
    nodes = _nodes(machine, event["nodes"])
    if not isinstance(event.get("not_asked", ""), str) or not isinstance(event.get("plugin") or "", str):
        raise TypeError("a sentence was expected")
    if "not_asked" not in event:
        eligible = _nodes(machine, event["eligible"]) if "eligible" in event else range(machine.nodes)
        placed = hypothetical.placed(
            question.job, nodes, event.get("links", []), _number(event.get("bandwidth_share", 1.0))
        )
        again = {
            "aph": placed.aph,
            "shares_with": placed.shares_with,
            **answered(hypothetical.ask(dataclasses.replace(question, eligible=eligible)), machine),
        }
        logged = {key: event[key] for key in again}
        if logged != again:
            found.differing.append(
                f"{where}: the log says {parsing.shown(logged)}, the engine {parsing.shown(again)}"
            )
            event = {**event, **again}
    found.summary.add(event, len(nodes))


def _nodes(machine: Machine, hosts: Any) -> list[int]:
    if not isinstance(hosts, str):
        raise TypeError(f"{parsing.shown(hosts)} is not a hostlist")
    return machine.nodes_named(hosts) if hosts else []


def _share(value: Any) -> dict[str, int] | None:
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
