"""A live system at one moment: what runs, what waits, and what the plug-in decided. The adapter of each host fills it (`slurm.view`,
`kubernetes.view`, `nova.view`); status, explanations, questions, metrics and the live page read it, and do not know the host.

Jobs have numbers by which the engine knows them, nodes and links the numbers of the machine. Times in seconds: Unix time, or since
second 0 of a log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

ISOLATED, SHARED, NONE, UNKNOWN = "isolated", "shared", "none", "unknown"
"""How a job uses links: no other job may use those that it may use; others may; it does not count as a user; not known, so that no
other job gets them."""
ISOLATED_GLOBAL = "isolated-global"
"""On a dragonfly: no other job may use those between groups that it may use."""


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """A job on its nodes."""

    id: int
    name: str
    """The job's number or name as its system prints it: 12, 12_3 for a task of an array, NAMESPACE/GROUP."""
    title: str
    user: str
    nodes: tuple[int, ...]
    """Its nodes that the machine has, ascending."""
    start: float
    end: float | None
    """The end of its walltime; None without one."""
    links: tuple[int, ...] = ()
    """Cables between switches that the job owns."""
    bandwidth_share: float = 1.0
    share: Mapping[str, float] | None = None
    """The share of each node that the job takes; None for whole nodes."""
    requeueable: bool = True
    shadow_note: str = ""
    """A sentence on what a policy in a shadow would have done with the job; empty without a shadow."""
    hosts: str = ""
    """Its nodes as its system writes them, with those that the machine lacks."""
    ranks: tuple[str, ...] = ()
    """Its nodes in rank order, once per slot; empty where its system does not say."""
    slots: int = 0
    """Nodes, or pods that have a node."""
    size: int = 0
    """Slots that it wants."""
    part: str = ""
    """Partition."""
    state: str = "RUNNING"
    """As its system calls it."""
    policy: str | None = None
    """The policy that placed it; None if that is not known, or if it is not for the plug-in."""
    rule: str | None = None
    """What gives it that policy."""
    link_use: str = SHARED
    is_ours: bool = True
    """Whether its system asks the plug-in about it."""
    is_beyond: bool = False
    """Whether it has nodes that the machine lacks, so that it may use all links above the others. Only Nova's plug-in counts so."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The plug-in's last refusal of a job that waits for it."""

    kind: str
    """As the engine names it, or the plug-in."""
    wanted: int
    """Slots."""
    time: float | None = None
    """When."""
    min_bandwidth: float = 1.0
    """The least share of full bandwidth that it accepts on links of its own."""
    why: str = ""
    """The engine's numbers."""
    in_the_way: tuple[str, ...] = ()
    """`r0: default/a, default/b`: a group of nodes, and the jobs that hold what is missing there."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits."""

    id: int
    name: str
    title: str
    user: str
    nodes: int
    submit: float
    walltime: float | None
    begin: float = 0.0
    """Not to be started before this time; 0 for any time."""
    why: str = ""
    """In a few words: the plug-in's refusal, or its system's reason; empty if the system gives none."""
    expected_start: float | None = None
    """The start that its system expects."""
    share: Mapping[str, float] | None = None
    held: bool = False
    """Whether the job waits for something other than nodes, so that it is not in forecasts."""
    eligible: tuple[int, ...] | None = None
    """The nodes that the job may use; None for all."""
    reservations: tuple[str, ...] = ()
    """The reservations in one of which the job must run, tried in this order; empty for none."""
    record: str = ""
    """Jobs that share a record, such as the tasks of an array, may be shown in one row."""
    slots: int = 0
    """Nodes, or pods that are there."""
    size: int = 0
    """Slots that it wants."""
    reason: str = ""
    """Its system's own word."""
    refused: Refused | None = None
    """None if the plug-in did not refuse it, or if it waits for something else."""
    policy: str | None = None
    rule: str | None = None
    """What gives it that policy."""
    is_ours: bool = True
    """Whether its system asks the plug-in about it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reserved:
    """A reservation: from `start` to `end`, only its own jobs start on its nodes."""

    name: str
    nodes: tuple[int, ...]
    start: float
    end: float


@dataclasses.dataclass(frozen=True, slots=True)
class HeadWait:
    """The wait of the head of the queue, under a policy with a rule for heads."""

    id: int
    policy: str
    """The policy with this rule."""
    until: float | None
    """The time by which the rule must place the job; None if the policy itself places it."""


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """A live system at one moment."""

    time: float
    running: tuple[Running, ...]
    waiting: tuple[Waiting, ...]
    """The waiting jobs, in order of the queue."""
    out: tuple[int, ...] = ()
    """Nodes that accept no new jobs, and have none."""
    problems: tuple[str, ...] = ()
    """What could not be read, one sentence each."""
    is_old: bool = False
    """Whether the system did not answer, so that the jobs are those of its last answer."""
    reserved: tuple[Reserved, ...] = ()
    """Reservations that have not ended."""
    head_wait: HeadWait | None = None
    """None if it is not known."""
    links_out: tuple[int, ...] = ()
    """Links that no new job may own."""

    @property
    def busy(self) -> frozenset[int]:
        """The nodes with jobs."""
        return frozenset(node for job in self.running for node in job.nodes)

    @property
    def claiming(self) -> list[Running]:
        """The jobs that count as users of links, by number."""
        users = (job for job in self.running if job.nodes and job.link_use != NONE)
        return sorted(users, key=lambda job: job.id)

    @property
    def names(self) -> dict[int, str]:
        """The jobs as their system prints them."""
        return {job.id: job.name for job in self.running} | {job.id: job.name for job in self.waiting}
