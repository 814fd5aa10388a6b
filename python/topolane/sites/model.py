"""What a site manager knows: sites, hosts, virtual clusters and their guests, programs, moves.

Plain immutable values; `state` keeps them in a database, `moving` acts on them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Host:
    """A machine that runs guests."""

    name: str
    site: str
    cores: int
    memory: int
    """Bytes."""
    driver: str = "dry-run"
    """Which mover acts on it: libvirt, qmp, nova, slurm or dry-run."""
    address: str = ""
    """What that driver needs to reach it: a libvirt URI, a folder of QMP sockets, a Nova host, a Slurm node."""


@dataclass(frozen=True)
class Link:
    """A WAN link between two sites."""

    between: tuple[str, str]
    latency: float
    """Seconds, one way."""
    bandwidth: float
    """Bytes per second, each way."""
    window: float | None = None
    """Bytes that one connection may have under way: TCP's window, where it is what limits."""


@dataclass(frozen=True)
class Site:
    """Hosts on one fast network."""

    name: str
    hosts: tuple[Host, ...]
    driver: str = "dry-run"
    """What drives a host that reports itself as one of this site."""
    address: str = ""
    """The address of such a host for its driver; `{host}` stands for the host's name."""


@dataclass(frozen=True)
class Guest:
    """A virtual machine, or whatever a mover moves as one."""

    name: str
    cluster: str
    cores: int
    memory: int
    """Bytes."""
    host: str | None
    """Where it runs; none while it is down."""
    address: str = ""
    """Its address on the cluster's own network; it keeps it when it moves."""
    dirty: float | None = None
    """Bytes of memory rewritten a second, where known."""


@dataclass(frozen=True)
class Program:
    """An MPI program that is, or was, watched."""

    id: str
    name: str
    cluster: str | None
    ranks: int
    hosts: tuple[str, ...]
    """Of every rank, as it calls its own: the name of a guest, or of a host."""
    started: float
    ended: float | None = None


class Stage(enum.StrEnum):
    """How far a move has come. Only the last three are final."""

    PLANNED = "planned"
    COPYING = "copying"
    DONE = "done"
    ROLLED_BACK = "rolled-back"
    """Failed; the guest runs where it ran before."""
    LOST = "lost"
    """The guest runs nowhere any more, and not by our doing; a person must look."""


@dataclass(frozen=True)
class Move:
    """One guest from one host to another."""

    id: int
    guest: str
    source: str
    target: str
    stage: Stage = Stage.PLANNED
    why: str = ""
    progress: float = 0.0
    """Of its memory, 0 to 1."""
    detail: dict[str, float] = field(default_factory=dict)
    """What the mover measured: seconds, downtime, bytes."""
