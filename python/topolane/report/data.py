"""The data of a report: runs, and the shape of the machine.

Times are in seconds since the workload's epoch. The columns of `jobs` are those of Batsim's `jobs.csv`,
followed by the network's columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from topolane.moment import MOVE_COLUMNS
from topolane.panels import NO_PANELS, SwitchPanels, panels_of

if TYPE_CHECKING:
    import polars

    from topolane._engine import Machine

JOB_COLUMNS = (
    "job_id",
    "submission_time",
    "starting_time",
    "finish_time",
    "waiting_time",
    "execution_time",
    "requested_time",
    "requested_number_of_resources",  # nodes
    "slowdown",  # bounded at 10 s
    "aph",  # average pairwise hops, node-leaf links not counted
    "least_aph",  # least value that any placement of that many nodes could have
    "hop_bytes",
    "links_shared",  # cables where another job's traffic may meet this job's at some time
    "allocated_resources",  # Batsim's interval set: "0-3 7 9-10"
    "final_state",
)

NETWORK_COLUMNS = (
    "pattern",
    "contention",  # run time divided by run time alone
)

FAILURE_COLUMNS = ("node", "from", "until")  # `until` is empty if the node never comes back

LINK_COLUMNS = ("link", "direction", "level", "group", "switch", "parent", "cable", "mean_load")

UTILIZATION_COLUMNS = ("time", "busy_nodes", "waiting_jobs", "utilization")  # one row per minute


@dataclass(frozen=True)
class ReportedRun:
    """One workload on one machine under one policy, queue and scenario.

    `summary` holds: nodes, jobs, mean_wait, median_wait, p95_wait, wait_by_size (a list of low,
    high, jobs, mean_wait), utilization (time-mean over the makespan), utilization_while_waiting,
    makespan, mean_slowdown, mean_aph, mean_least_aph, jobs_sharing_links, fragmentation (jobs,
    seconds), without_walltime, left_out (reason: count), load; with a network also mean_turnaround
    and contention (mean, max, node_seconds_lost). A missing or null value is shown as a dash.
    """

    label: str
    policy: str
    queue: str
    scenario: str
    workload: str
    machine: str
    jobs: polars.DataFrame
    utilization: polars.DataFrame
    summary: Mapping[str, Any]
    network: str | None = None  # the contention model
    links: polars.DataFrame | None = None  # one row per direction of each link; only with a network
    moves: polars.DataFrame | None = None  # one row per move of a running job; only if jobs may be moved
    failures: polars.DataFrame | None = None  # one row per failure of a node; only if nodes fail

    def __post_init__(self) -> None:
        tables = [("jobs", self.jobs, JOB_COLUMNS), ("utilization", self.utilization, UTILIZATION_COLUMNS)]
        if self.network is not None:
            tables[0] = ("jobs", self.jobs, (*JOB_COLUMNS, *NETWORK_COLUMNS))
        if self.links is not None:
            tables.append(("links", self.links, LINK_COLUMNS))
        if self.moves is not None:
            tables.append(("moves", self.moves, MOVE_COLUMNS))
        if self.failures is not None:
            tables.append(("failures", self.failures, FAILURE_COLUMNS))
        for table, frame, columns in tables:
            missing = [column for column in columns if column not in frame.columns]
            if missing:
                raise ValueError(f"run {self.label!r}: {table} lacks {', '.join(missing)}")

    def number(self, key: str) -> float | None:
        """A number of the summary; None if it is missing, null or not finite."""
        return finite(self.summary.get(key))

    def wait_by_size(self) -> dict[tuple[int, int | None], float | None]:
        """Mean wait in seconds for each size bin (low, high), in nodes; None for a bin without jobs."""
        return {
            (row["low"], row["high"]): finite(row["mean_wait"]) if row["jobs"] else None
            for row in self.summary.get("wait_by_size") or ()
        }


def distinct(runs: Sequence[Any]) -> list[ReportedRun]:
    """The runs with distinct labels: to equal labels the queue and, if needed, more is added.

    A run may be any object with the attributes of a `ReportedRun`; attributes that have a default may be missing.
    """
    own = [_own(run) for run in runs]
    of_network = ("network",) if any(run.network for run in own) else ()
    for name in (*of_network, "queue", "scenario", "workload", "machine"):
        seen = Counter(run.label for run in own)
        if len(seen) == len(own):
            return own
        own = [
            replace(run, label=f"{run.label}, {getattr(run, name) or 'no contention'}")
            if seen[run.label] > 1
            else run
            for run in own
        ]
    if len({run.label for run in own}) < len(own):
        raise ValueError("two runs have the same label, policy, queue, scenario, workload and machine")
    return own


def _own(run: Any) -> ReportedRun:
    given = {}
    for each in fields(ReportedRun):
        if each.default is MISSING or hasattr(run, each.name):
            given[each.name] = getattr(run, each.name)  # the AttributeError names the missing attribute
    return ReportedRun(**given)


def finite(value: Any) -> float | None:
    """`value` as a float; None if it is missing, not a number, or infinite."""
    if value is None:
        return None
    number = float(value)
    return number if abs(number) < float("inf") else None


@dataclass(frozen=True)
class Subtree:
    """A subtree: the nodes from `start` up to, but without, `end`."""

    name: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class MachinePicture:
    """A machine to draw: `levels[0]` has the leaves, `levels[1]` the pods, and the last level the whole machine.

    The groups of a level are in node order and do not overlap; each lies inside one group of the next level.
    The group of the last level has no uplinks.
    """

    nodes: int
    levels: Sequence[Sequence[Subtree]]
    domains: Sequence[tuple[str, Sequence[int]]] = ()
    """Name and nodes of each domain. A node is in at most one domain."""
    resources: Sequence[Mapping[str, int]] = ()
    """The amounts of `cores`, `memory`, `gpu`, ... of each node; empty on a machine without GPUs."""
    rails: Sequence[int] = ()
    """The number of rails with separate switches, by level; empty on a machine with one rail. In a group of
    `w` switches, switch `n` is on rail `n * rails // w`.
    """

    wiring: str = "tree"
    """The kind of wiring: "tree", "dragonfly", "torus", ..."""
    panels: SwitchPanels = NO_PANELS
    """The places of the leaves in the picture; none of a tree."""
    machine: Machine | None = None
    """Says which jobs may meet on links; None of a tree, whose levels say so."""

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("a machine's picture needs at least its leaves")
        for number, level in enumerate(self.levels, start=1):
            at = 0
            for group in level:
                if group.start != at or group.end <= group.start:
                    raise ValueError(f"level {number}: group {group.name!r} does not begin at node {at}")
                at = group.end
            if at != self.nodes:
                raise ValueError(f"level {number} ends at node {at} of {self.nodes}")
        for number, (below, above) in enumerate(zip(self.levels, self.levels[1:]), start=1):
            if not {group.start for group in above} <= {group.start for group in below}:
                raise ValueError(f"level {number + 1} splits a group of level {number}")

    @classmethod
    def tree(cls, children: Sequence[int]) -> MachinePicture:
        """The regular tree with these `children`: nodes per leaf, leaves per pod, and so on. (18, 18, 4) is
        Cab.
        """
        names = ("leaf", "pod", "core") if len(children) == 3 else ("leaf",)
        nodes, size, levels = 1, 1, []
        for count in children:
            nodes *= count
        for depth, count in enumerate(children):
            size *= count
            name = names[depth] if depth < len(names) else f"level {depth + 1} group"
            levels.append([Subtree(f"{name} {i}", i * size, (i + 1) * size) for i in range(nodes // size)])
        return cls(nodes, levels)

    @classmethod
    def of(cls, machine: Machine) -> MachinePicture:
        """The picture of a machine."""
        levels = range(1, machine.depth + 1)
        groups = [
            [Subtree(name, start, end) for start, end, name in machine.groups(level)] for level in levels
        ]
        has_gpus = "gpu" in machine.resources
        return cls(
            machine.nodes,
            groups,
            [(name, nodes) for name, nodes, _ in machine.domains()],
            [machine.resources_of(node) for node in range(machine.nodes)] if has_gpus else (),
            rails if max(rails := machine.rails_by_level(), default=1) > 1 else (),
            machine.wiring,
            panels_of(machine),
            None if machine.wiring == "tree" else machine,
        )

    def rails_at(self, level: int) -> int:
        """The number of rails with separate switches at `level` (0 for leaves)."""
        return self.rails[level] if level < len(self.rails) else 1

    @cached_property
    def domain_of(self) -> dict[int, int]:
        """The index of the domain of each node that is in one."""
        return {node: index for index, (_, nodes) in enumerate(self.domains) for node in nodes}

    @property
    def leaf(self) -> int:
        """The size of the largest leaf, in nodes."""
        return max(len(group) for group in self.levels[0])

    @property
    def switch(self) -> str:
        """The word for a switch with nodes."""
        return {"tree": "leaf", "HyperX": "switch"}.get(self.wiring, "router")

    def level_name(self, level: int) -> str:
        """The word for a group of `level` in the text (level 0 is the leaves)."""
        names = ("leaf", "pod") if self.wiring == "tree" else (self.switch, "group")
        return names[level] if level < 2 else f"level-{level + 1}"
