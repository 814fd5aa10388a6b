"""What Slurm says of its jobs and nodes, in the words of this package. Times in seconds, Unix time."""

from __future__ import annotations

import dataclasses

HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "RESIZING"}
)
"""States in which a job has its nodes."""

UNUSABLE = frozenset(
    {"down", "drain", "draining", "drained", "fail", "failing", "error", "unknown", "not_responding"}
    | {"reboot", "reboot_requested", "reboot_issued", "powering_down", "power_down", "future"}
)
"""Words of a node's state that keep new jobs off it. Those of reservations are not among them, nor
POWERED_DOWN: Slurm wakes such a node for the job that it is given."""

HELD_BY_SLURM = "requeued held"
"""How the reason ends of a job that Slurm itself holds: its launch has failed, its node went wrong."""


def task_id(array: int, task: int) -> int:
    """The identity of an array's task: above all job numbers, which end at 67,043,328 < 2^26."""
    return array << 26 | task


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as Slurm has it; every task of an array is one."""

    id: int
    """Slurm's number; a task's is made of its array's and its own (`task_id`)."""
    number: str
    """As Slurm prints it: 12, or 12_3 for a task."""
    record: str
    """What names the record that it is in, and nothing else: a waiting array's tasks are in one."""
    name: str
    user: str
    state: str
    """PENDING, RUNNING, ...; of several the one that says whether it holds nodes."""
    reason: str
    """Why it waits, says Slurm."""
    priority: int
    partitions: tuple[str, ...]
    nodes: str
    """Hostlist of where it runs; empty while it waits."""
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
    """The most that it holds on one node; 0 where Slurm does not say."""
    walltime: float | None
    """None where neither the job nor its partition says one."""
    submit: float
    start: float
    """When it started; 0 while it waits."""
    end: float
    """When it ended; 0 before."""
    begin: float
    """Not to be started before this time; 0 for any time."""
    array: int
    """The number of its array, or 0."""
    array_limit: int
    """How many of the array's tasks may run at once; 0 for any number."""
    dependency: str
    reservation: str
    unknown_wish: str
    """The first thing it asks for that nothing here can place (generic resources, ...), or nothing."""
    note: str
    """The administrator's comment: what the submission hook wrote."""
    comment: str
    """The user's comment, or what was written there for the user."""
    nice: int
    qos: str
    association: int
    """The number of its user's association in the accounting; 0 without."""
    tres: str
    """What it asks for at least, in Slurm's form: `cpu=2,mem=62.50G,node=2`."""

    @property
    def holds_nodes(self) -> bool:
        """Whether nodes are its own now."""
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
    """A node as Slurm has it."""

    name: str
    words: frozenset[str]
    """Its state and the flags of its state, in small letters."""
    cpus: int
    sockets: int
    memory: int
    """Bytes."""
    features: frozenset[str]

    @property
    def usable(self) -> bool:
        """Whether new jobs may start there."""
        return not self.words & UNUSABLE


@dataclasses.dataclass(frozen=True)
class Partition:
    """A partition as Slurm has it."""

    name: str
    nodes: str
    up: bool
    """Whether jobs that wait in it may start: UP, or DRAIN, which takes no new ones."""
    longest_walltime: float | None
    priority_factor: int
    priority_tier: int
    tres: str
    """What it has, in Slurm's form."""


@dataclasses.dataclass(frozen=True)
class Reservation:
    """Nodes that are kept for some jobs for some time."""

    name: str
    nodes: str
    """Empty for one of licences alone."""
    start: float
    end: float


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All of it at one moment."""

    time: float
    """Of Slurm's clock."""
    jobs: dict[int, Job]
    nodes: dict[str, Node]
    partitions: dict[str, Partition]
    reservations: dict[str, Reservation]
