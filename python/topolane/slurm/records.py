"""What Slurm says of its jobs and nodes, in the words of this package. Times in seconds, Unix time."""

from __future__ import annotations

import dataclasses

HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "RESIZING"}
)
"""States in which a job has its nodes."""

UNUSABLE = frozenset(
    {"down", "drain", "draining", "drained", "fail", "failing", "error", "unknown", "not_responding"}
    | {"maint", "maintenance", "reserved", "reboot", "powering_down", "power_down", "powered_down", "future"}
)
"""Words of a node's state that keep new jobs off it."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as Slurm has it."""

    id: int
    state: str
    """PENDING, RUNNING, ...; of several the one that says whether it holds nodes."""
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
    walltime: float | None
    """None where neither the job nor its partition says one."""
    submit: float
    start: float
    """When it started; 0 while it waits."""
    begin: float
    """Not to be started before this time; 0 for any time."""
    array_tasks: str
    """The tasks of an array that wait under this number; empty for any other job."""
    dependency: str
    reservation: str
    note: str
    """The administrator's comment: what the submission hook wrote."""
    comment: str
    """The user's comment, or what was written there for the user."""

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
    default_walltime: float | None
    longest_walltime: float | None


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All of it at one moment."""

    time: float
    jobs: dict[int, Job]
    nodes: dict[str, Node]
    partitions: dict[str, Partition]
