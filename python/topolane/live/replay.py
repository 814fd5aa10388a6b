"""Repeats the decisions in a driver's log, and compares them with when and where the jobs really started."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import files, parsing, texts
from topolane._engine import InputError, Machine, Scheduler, links_shared, traffic_policies
from topolane.live.job_request import JobRequest, assumed_traffic, for_engine, share_of, traffic_of
from topolane.live.journal import submit, written
from topolane.policy import resolve
from topolane.units import plural

LONGEST = 64 << 20
"""Most bytes of a line. The line with the machine is the longest."""
COLUMNS = ("id", "submit", "run", "nodes", "walltime", "start", "hosts")


@dataclasses.dataclass
class LoggedJob:
    """A job in the log. Times in seconds of Slurm's clock; None if the log does not contain them."""

    number: str
    submit: float | None = None
    walltime: float | None = None
    would_start: float | None = None
    would_nodes: str = ""
    would_own: Sequence[int] = ()
    """The dedicated links that it would have had."""
    start: float | None = None
    nodes: str = ""
    end: float | None = None


@dataclasses.dataclass
class Replay:
    """The result of a replay."""

    dry_run: bool = False
    passes: int = 0
    starts: int = 0
    differing: list[str] = dataclasses.field(default_factory=list)
    """Sentences, one for each decision of the engine that differs from the log."""
    jobs: dict[int, LoggedJob] = dataclasses.field(default_factory=dict)
    machine: Machine | None = None
    policy: str = ""
    """As the log names it."""
    routing: str | None = None
    """As the log names it: only for a policy that looks at traffic."""
    matrices: dict[str, str] = dataclasses.field(default_factory=dict)
    """Measured traffic as CSV, by digest."""
    silent: set[int] = dataclasses.field(default_factory=set)
    """Jobs of several nodes of which the log does not say what they send."""

    @property
    def assumed(self) -> str | None:
        """What the policy was told that the log does not say; None if that is nothing."""
        clauses = [] if self.routing else ["the routes are assumed to be those of d-mod-k"]
        if self.silent:
            clauses.append(assumed_traffic(f"each of {plural(len(self.silent), 'job')}"))
        if self.policy not in traffic_policies() or not clauses:
            return None
        return f"{self.policy}: the log does not say all that it looks at: {', and '.join(clauses)}"

    @property
    def started(self) -> int:
        """How many jobs Slurm started."""
        return sum(seen.start is not None for seen in self.jobs.values())

    def csv(self) -> str:
        """The jobs that Slurm ran to their end, as a workload for `topolane simulate --trace`."""
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS)
        for job, seen in sorted(self.jobs.items()):
            if seen.end is None or seen.start is None or seen.submit is None or self.machine is None:
                continue
            if seen.nodes.startswith(files.FORMULA):
                # Read back as it is, so nothing can be put in front of it.
                raise InputError(
                    f"job {job}: ran on {parsing.shown(seen.nodes)}, which a spreadsheet would compute"
                )
            nodes = len(self.machine.nodes_named(seen.nodes))
            run = max(seen.end - seen.start, 0.0)
            walltime = run if seen.walltime is None else seen.walltime
            writer.writerow([job, seen.submit, run, nodes, walltime, seen.start, seen.nodes])
        return table.getvalue()


def replay(path: str | Path, policy: str | None = None) -> Replay:
    """Repeats all calls in a log with this engine. Raises InputError if the file is not such a log.

    policy: the `module:Class` that the daemon used, if any. Code that only the log names is never run.
    """
    found = Replay()
    scheduler: Scheduler | None = None
    for line, event in _events(path):
        try:
            if event["event"] == "scheduler":
                found.machine = Machine.parse(event["machine"], f"{path}:{line}", "toml")
                found.policy, found.routing = str(event["policy"]), event.get("routing")
                found.silent.clear()
                rule = resolve(_policy(event["policy"], policy, f"{path}:{line}"))
                scheduler = Scheduler(
                    found.machine,
                    rule,
                    event["queue"],
                    seed=event["seed"],
                    routing=found.routing or "d-mod-k",
                )
            elif event["event"] == "started":
                found.dry_run = event["dry_run"]
            elif scheduler is not None and found.machine is not None:
                _tell(event, scheduler, found.machine, found, f"{path}:{line}")
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}:{line}: not an event of this daemon: {error!r}") from error
    if scheduler is None:
        raise InputError(f"{path}: no daemon's log: no line says which scheduler decided")
    return found


def _policy(named: Any, allowed: str | None, where: str) -> str:
    """The policy in the log. Raises InputError if it is code that the user did not name."""
    if not isinstance(named, str):
        raise TypeError(f"{parsing.shown(named)} is no policy")
    if ":" in named and named != allowed:
        raise InputError(
            f"{where}: the policy was {parsing.shown(named)}, which is code: if it is yours, give it with --policy"
        )
    return named


def _events(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with open(path, "rb") as log:
        for line, text in enumerate(iter(lambda: log.readline(LONGEST + 1), b""), 1):
            if len(text) > LONGEST:
                raise InputError(f"{path}:{line}: the line is longer than {LONGEST >> 20} MiB")
            if not text.endswith(b"\n"):
                return  # cut short by the end of the daemon
            event = parsing.parse_json(texts.decoded(text, f"{path}:{line}"), str(path), line)
            if not isinstance(event, dict) or "event" not in event:
                raise InputError(f"{path}:{line}: no event")
            yield line, event


def _tell(
    event: Mapping[str, Any], scheduler: Scheduler, machine: Machine, found: Replay, where: str
) -> None:
    kind = event["event"]
    if kind == "submit":
        ask = _ask(event, machine, found.matrices)
        if ask.traffic is None and ask.nodes > 1:
            found.silent.add(_whole(event["id"]))
        submit(scheduler, event["id"], ask)
    elif kind == "adopt":
        nodes = machine.nodes_named(event["nodes"])
        traffic = traffic_of(event.get("traffic"), found.matrices)
        if traffic is None and len(nodes) > 1:
            found.silent.add(_whole(event["id"]))
        scheduler.adopt(
            event["id"],
            nodes,
            event["start"],
            _seconds(event["walltime"]),
            share=share_of(event["share"]),
            links=event.get("links", []),
            bandwidth_share=event.get("bandwidth_share", event.get("phi", 1.0)),  # phi: the former name
            traffic=for_engine(traffic),
        )
    elif kind == "matrix":
        found.matrices[event["digest"]] = event["csv"]
    elif kind == "complete":
        scheduler.complete(event["id"])
    elif kind == "cancel":
        scheduler.cancel(event["id"])
    elif kind == "walltime":
        scheduler.set_walltime(event["id"], _seconds(event["walltime"]))
    elif kind == "service":
        node = machine.node_named(event["node"])
        scheduler.set_in_service(-1 if node is None else node, event["up"])
    elif kind == "links":
        scheduler.set_links_in_service(event["links"], event["up"])
    elif kind == "pass":
        _compare(event, scheduler, machine, found, where)
    elif kind == "running":
        seen = found.jobs.setdefault(_whole(event["id"]), LoggedJob(""))
        seen.number, seen.submit = str(event["job"]), _number(event["submit"])
        seen.start, seen.walltime = _number(event["start"]), _number(event["walltime"])
        if not isinstance(event["nodes"], str):
            raise TypeError(f"{parsing.shown(event['nodes'])} is not a hostlist")
        seen.nodes = event["nodes"]
    elif kind == "ended" and (ended := found.jobs.get(_whole(event["id"]))) is not None:
        ended.end = _number(event["at"])


def _compare(
    event: Mapping[str, Any], scheduler: Scheduler, machine: Machine, found: Replay, where: str
) -> None:
    logged = [[_whole(job), hosts] for job, hosts in event["starts"]]
    for _, hosts in logged:
        machine.nodes_named(hosts)
    again = written(scheduler.start(event["now"]), machine)
    owned = again.get("owned", [])
    links = {job: cables for job, _, cables in owned}
    found.passes += 1
    found.starts += len(logged)
    if again["starts"] != logged:
        found.differing.append(f"{where}: the log says {logged}, the engine {again['starts']}")
    elif "owned" in event and event["owned"] != owned:
        found.differing.append(f"{where}: the log says of links {event['owned']}, the engine {owned}")
    for job, hosts in logged:
        seen = found.jobs.setdefault(job, LoggedJob(""))
        if seen.would_start is None:
            seen.would_start, seen.would_nodes = event["now"], hosts
            seen.would_own = links.get(job, ())


def _ask(event: Mapping[str, Any], machine: Machine, matrices: Mapping[str, str]) -> JobRequest:
    eligible = event.get("eligible")
    return JobRequest(
        nodes=event["nodes"],
        most=event.get("most", 0),
        walltime=_seconds(event.get("walltime", 0.0)),
        begin=event.get("begin", 0.0),
        order=event.get("order", 0),
        priority=event.get("priority", 0.0),
        share=share_of(event.get("share")),
        eligible=None if eligible is None else tuple(machine.nodes_named(eligible)),
        min_bandwidth=event.get("min_bandwidth", event.get("phi")),  # phi: the former name
        traffic=traffic_of(event.get("traffic"), matrices),
    )


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{parsing.shown(value)} is not a whole number")
    return value


def _number(value: Any) -> float | None:
    """A time in the log. It must be a number, since it is written into a table unchanged."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{parsing.shown(value)} is not a time")
    return float(value)


def _seconds(value: float | None) -> float:
    return math.inf if value is None else value


@dataclasses.dataclass
class Outcome:
    """Where and when the daemon, or Slurm, started the jobs."""

    jobs: int
    wait: float | None
    """Mean wait in seconds, over the jobs with a known submission time."""
    aph: float | None
    """Mean of the average pairwise hops, over jobs of two or more nodes."""
    crossing: int
    """Jobs that may have shared a link with another job."""


def outcomes(found: Replay) -> tuple[Outcome, Outcome]:
    """The outcome of the daemon's decisions, and that of Slurm's, over the jobs for which both are known."""
    both = [seen for seen in found.jobs.values() if seen.would_start is not None and seen.start is not None]
    ours = [(seen, seen.would_start or 0.0, seen.would_nodes) for seen in both]
    slurms = [(seen, seen.start or 0.0, seen.nodes) for seen in both]
    return _outcome(ours, found, ours=True), _outcome(slurms, found, ours=False)


def _outcome(rows: list[tuple[LoggedJob, float, str]], found: Replay, *, ours: bool) -> Outcome:
    machine = found.machine
    assert machine is not None
    waits = [start - seen.submit for seen, start, _ in rows if seen.submit is not None]
    placed = [(seen, start, machine.nodes_named(hosts)) for seen, start, hosts in rows]
    hops = [machine.quality(nodes)[0] for _, _, nodes in placed if len(nodes) > 1]
    stays = []
    for index, (seen, start, nodes) in enumerate(placed):
        end = math.inf if seen.end is None or seen.start is None else start + seen.end - seen.start
        stays.append((index, start, end, nodes, seen.would_own if ours else ()))
    met = links_shared(machine, stays)
    return Outcome(len(rows), _mean(waits), _mean(hops), sum(links > 0 for links in met))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
