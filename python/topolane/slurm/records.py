"""Slurm's jobs, nodes, partitions and reservations. Times in seconds, Unix time."""

from __future__ import annotations

import dataclasses

HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "RESIZING"}
)
"""States in which a job holds nodes."""

UNUSABLE = frozenset(
    {"down", "drain", "draining", "drained", "fail", "failing", "error", "unknown", "not_responding"}
    | {"reboot", "reboot_requested", "reboot_issued", "powering_down", "power_down", "future"}
)
"""Words of a node's state that exclude new jobs. Words for reservations are not listed; neither is
POWERED_DOWN, since Slurm wakes such a node for its job.
"""

NOT_ISOLATED = "topolane: not isolated"
"""In the SystemComment of a job whose nodes stock Slurm chose because the engine could not answer."""

HELD_BY_SLURM = "requeued held"
"""The end of the reason of a job that Slurm itself holds, because its launch or its node has failed."""


def task_id(array: int, task: int) -> int:
    """The identity of a task of an array, above all job numbers (at most 67,043,328 < 2^26)."""
    return array << 26 | task


@dataclasses.dataclass(frozen=True)
class Gres:
    """One generic resource that a job requests."""

    option: str
    """As Slurm writes it: `gres:gpu:h100:2`."""
    name: str
    """`gpu`, or with its type `gpu:h100`."""
    count: int
    per_process: bool
    """Whether the count is of each process; else of each node."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job in Slurm. Every task of an array is one."""

    id: int
    """Slurm's number; a task's is made of its array's and its own (`task_id`)."""
    number: str
    """As Slurm prints it: 12, or 12_3 for a task."""
    record: str
    """The name of its record. The waiting tasks of an array share one record."""
    name: str
    user: str
    account: str
    state: str
    """PENDING, RUNNING, ... If there are several, the one that says whether it holds nodes."""
    reason: str
    """Slurm's reason why it waits."""
    priority: int
    partitions: tuple[str, ...]
    nodes: str
    """Hostlist of its nodes; empty while it waits. While it completes, those that it has yet to free."""
    allocated: str
    """Hostlist of all nodes that it got at its start."""
    switches: int
    """The most leaf switches that it wants to wait for (`--switches`); 0 without."""
    required: str
    excluded: str
    features: str
    fewest_nodes: int
    most_nodes: int
    processes: int
    cpus_per_process: int
    processes_per_node: int
    memory_per_node: int | None
    memory_per_cpu: int | None
    """Bytes."""
    exclusive: bool
    cores_held: int
    """The most cores that it holds on one node; 0 if Slurm does not tell."""
    walltime: float | None
    """None if neither the job nor its partition has one."""
    submit: float
    start: float
    """When it started; 0 while it waits."""
    expected_start: float
    """When Slurm expects to start it; 0 without such an estimate, and once it has started."""
    end: float
    """When it ended, or began to complete; 0 before."""
    begin: float
    """Not to be started before this time; 0 for any time."""
    array: int
    """The number of its array, or 0."""
    dependency: str
    reservation: str
    unsupported_option: str
    """The first requested option that a request to the engine cannot express (--contiguous, GPUs of the whole job,
    ...); empty without one.
    """
    comment: str
    """The user's comment."""
    qos: str
    gres: tuple[Gres, ...] = ()
    """The generic resources that it requests."""
    gres_held: tuple[tuple[str, int], ...] = ()
    """Names and counts of the generic resources that a running job holds on each of its nodes."""
    requeueable: bool = False
    """Whether `scontrol requeue` may stop it and queue it again: a batch job with Requeue=1."""
    restarts: int = 0
    """How often it has been requeued."""
    het_job: int = 0
    """The number of the first part of its heterogeneous job, or 0."""
    het_part: int = 0
    """Which part of the heterogeneous job it is: squeue prints `het_job+het_part`."""
    is_stock: bool = False
    """Whether it was to be isolated and stock Slurm chose its nodes, as the plugin notes (native/slurm/plugin/note.c)."""
    latest_end: float | None = None
    """When its time limit ends it, if it holds nodes; None without a limit."""

    @property
    def holds_nodes(self) -> bool:
        """Whether it holds nodes now."""
        return self.state in HOLDING and bool(self.nodes)

    @property
    def waits(self) -> bool:
        """Whether it has yet to start."""
        return self.state == "PENDING"

    @property
    def is_held(self) -> bool:
        """Whether Slurm will not start it by itself."""
        return self.priority == 0


@dataclasses.dataclass(frozen=True)
class Node:
    """A node in Slurm."""

    name: str
    words: frozenset[str]
    """Its state and the flags of its state, in lower case."""
    cpus: int
    sockets: int
    memory: int
    """Bytes."""
    features: frozenset[str]
    gres: tuple[tuple[str, int], ...] = ()
    """Names (`gpu:h100`) and counts of its generic resources."""
    cpus_used: int = 0
    memory_used: int = 0
    """Bytes."""
    gres_used: tuple[tuple[str, int], ...] = ()
    """What its jobs hold."""
    cpus_reserved: int = 0
    """CPUs that no job gets (CoreSpecCount)."""

    @property
    def usable(self) -> bool:
        """Whether new jobs may start there."""
        return not self.words & UNUSABLE


@dataclasses.dataclass(frozen=True)
class Partition:
    """A partition in Slurm."""

    name: str
    nodes: str
    up: bool
    """Whether its waiting jobs may start: UP, or DRAIN, which only refuses new jobs."""
    longest_walltime: float | None


@dataclasses.dataclass(frozen=True)
class Reservation:
    """A reservation in Slurm."""

    name: str
    nodes: str
    """Empty if it reserves only licences."""
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The state of Slurm at one moment."""

    time: float
    """By Slurm's clock."""
    jobs: dict[int, Job]
    nodes: dict[str, Node]
    partitions: dict[str, Partition]
    reservations: dict[str, Reservation]
