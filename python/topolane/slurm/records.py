"""Slurm's jobs, nodes, partitions and reservations. Times are Unix times in seconds."""

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
"""Words of a node's state that exclude new jobs. Words for reservations are not included; neither is
POWERED_DOWN, because Slurm wakes such a node for its job.
"""

NOT_ISOLATED = "topolane: not isolated"
"""A mark in a job's SystemComment: stock Slurm chose the nodes because the engine could not answer."""

HELD_BY_SLURM = "requeued held"
"""The end of the reason of a job that Slurm itself holds because its launch or its node failed."""


def task_id(array: int, task: int) -> int:
    """The id of a task of an array. It is above all job numbers (at most 67,043,328 < 2^26)."""
    return array << 26 | task


@dataclasses.dataclass(frozen=True)
class Gres:
    """A generic resource that a job requests."""

    option: str
    """The option in Slurm's notation: `gres:gpu:h100:2`."""
    name: str
    """The name: `gpu`, or with a type `gpu:h100`."""
    count: int
    per_process: bool
    """Whether the count is per process; otherwise per node."""


@dataclasses.dataclass(frozen=True)
class SlurmJob:
    """A job in Slurm. Each task of an array is a job of its own."""

    id: int
    """Slurm's number; for a task, a number made of its array's and its own (`task_id`)."""
    number: str
    """The number as Slurm prints it: 12, or 12_3 for a task."""
    record: str
    """The number of its record. The waiting tasks of an array share one record."""
    name: str
    user: str
    account: str
    state: str
    """PENDING, RUNNING, ... If Slurm gives several, the one that shows whether the job holds nodes."""
    reason: str
    """Slurm's reason why the job waits."""
    priority: int
    partitions: tuple[str, ...]
    nodes: str
    """Hostlist of its nodes; empty while it waits. While it completes, only the nodes that it has not freed
    yet.
    """
    allocated: str
    """Hostlist of all nodes that it got at its start."""
    switches: int
    """The most leaf switches that the job accepts while it waits for fewer (`--switches`); 0 without this
    option.
    """
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
    """In bytes."""
    exclusive: bool
    cores_held: int
    """The most cores that it holds on one node; 0 if unknown."""
    walltime: float | None
    """None if neither the job nor its partition has a limit."""
    submit: float
    start: float
    """When it started; 0 while it waits."""
    expected_start: float
    """When Slurm expects to start it; 0 without such an estimate, and once it has started."""
    end: float
    """When it ended, or began to complete; 0 before."""
    begin: float
    """The earliest time at which it may start; 0 without a limit."""
    array: int
    """The number of its array, or 0."""
    dependency: str
    reservation: str
    unsupported_option: str
    """The first requested option that a request to the engine cannot express (--contiguous, GPUs of the whole
    job, ...); empty without one.
    """
    comment: str
    """The user's comment."""
    qos: str
    gres: tuple[Gres, ...] = ()
    """The generic resources that it requests."""
    gres_held: tuple[tuple[str, int], ...] = ()
    """Names and counts of the generic resources that a running job holds on each node."""
    requeueable: bool = False
    """Whether `scontrol requeue` can stop the job and queue it again: a batch job with Requeue=1."""
    restarts: int = 0
    """How often the job has been requeued."""
    het_job: int = 0
    """The number of the first part of its heterogeneous job, or 0."""
    het_part: int = 0
    """The index of its part in the heterogeneous job: squeue prints `het_job+het_part`."""
    is_stock: bool = False
    """Whether the job should have been isolated but stock Slurm chose its nodes, as the plugin notes
    (native/slurm/plugin/note.c).
    """
    latest_end: float | None = None
    """When the time limit will end the job, if it holds nodes; None without a limit."""

    @property
    def holds_nodes(self) -> bool:
        """Whether it holds nodes now."""
        return self.state in HOLDING and bool(self.nodes)

    @property
    def waits(self) -> bool:
        """Whether the job has not started yet."""
        return self.state == "PENDING"

    @property
    def is_held(self) -> bool:
        """Whether the job is held, so that Slurm will not start it by itself."""
        return self.priority == 0


@dataclasses.dataclass(frozen=True)
class SlurmNode:
    """A node in Slurm."""

    name: str
    words: frozenset[str]
    """Its state and the flags of its state, in lower case."""
    cpus: int
    sockets: int
    memory: int
    """In bytes."""
    features: frozenset[str]
    gres: tuple[tuple[str, int], ...] = ()
    """Names (`gpu:h100`) and counts of its generic resources."""
    cpus_used: int = 0
    memory_used: int = 0
    """In bytes."""
    gres_used: tuple[tuple[str, int], ...] = ()
    """Names and counts of the generic resources that its jobs hold."""
    cpus_reserved: int = 0
    """CPUs that no job can use (CoreSpecCount)."""

    @property
    def usable(self) -> bool:
        """Whether new jobs may start on the node."""
        return not self.words & UNUSABLE


@dataclasses.dataclass(frozen=True)
class Partition:
    """A partition in Slurm."""

    name: str
    nodes: str
    up: bool
    """Whether its waiting jobs may start: its state is UP, or DRAIN, which only refuses new submissions."""
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
    """In time of Slurm's clock."""
    jobs: dict[int, SlurmJob]
    nodes: dict[str, SlurmNode]
    partitions: dict[str, Partition]
    reservations: dict[str, Reservation]
