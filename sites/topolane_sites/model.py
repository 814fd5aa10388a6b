"""The data of a site manager: sites, hosts, virtual clusters and their guests, programs, moves.

These are plain immutable values. `state` stores them in a database; `movers` acts on them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """Its address for that driver: a libvirt URI, a folder of QMP sockets, a Nova host, a Slurm node."""
    speed: float = 1.0
    """What one of its cores computes in a second, relative to the reference core (see `core_speed`)."""
    speed_given: bool = False
    """Whether the sites file gives the speed, so that reports do not change it."""
    features: tuple[str, ...] = ()
    """The instruction sets of its processors; empty if they are not known."""

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Host:
        """The host of those JSON fields."""
        return Host(**{**fields, "features": tuple(fields.get("features", ()))})


@dataclass(frozen=True)
class WanLink:
    """A WAN link between two sites."""

    between: tuple[str, str]
    latency: float
    """Seconds, one way."""
    bandwidth: float
    """Bytes per second, each way."""
    window: float | None = None
    """Bytes that one connection may have in flight: TCP's window, if that limits the rate."""


@dataclass(frozen=True)
class Site:
    """Hosts on one fast network."""

    name: str
    hosts: tuple[Host, ...]
    driver: str = "dry-run"
    """The driver of hosts that report themselves as part of this site."""
    address: str = ""
    """The address of such hosts for that driver; `{host}` stands for the host's name."""


@dataclass(frozen=True)
class Guest:
    """A virtual machine, or anything else that a mover moves as one."""

    name: str
    cluster: str
    cores: int
    memory: int
    """Bytes."""
    host: str | None
    """The host that it runs on; None while it is down."""
    address: str = ""
    """Its address on the cluster's own network. It keeps the address when it moves."""
    dirty: float | None = None
    """Bytes of memory rewritten per second, if known."""
    features: tuple[str, ...] = ()
    """The instruction sets that it uses; empty if they are not known, or if they do not depend on its host."""

    @staticmethod
    def of(fields: Mapping[str, Any]) -> Guest:
        """The guest of those JSON fields."""
        return Guest(**{**fields, "features": tuple(fields.get("features", ()))})


@dataclass(frozen=True)
class GuestUse:
    """What a guest uses now, measured by its host."""

    cpu: float
    """Busy cores."""
    sent: float | None
    """Bytes per second that leave it by its network card; None if that cannot be measured."""
    received: float | None


@dataclass(frozen=True)
class Program:
    """An MPI program that is, or was, watched."""

    id: str
    name: str
    cluster: str | None
    ranks: int
    hosts: tuple[str, ...]
    """The host name that every rank reports: the name of a guest, or of a host."""
    started: float
    ended: float | None = None


class Stage(enum.StrEnum):
    """The stage of a move. Only the last three are final."""

    PLANNED = "planned"
    COPYING = "copying"
    DONE = "done"
    ROLLED_BACK = "rolled-back"
    """Failed; the guest runs on its source."""
    LOST = "lost"
    """The guest no longer runs anywhere, and an operator must find out why."""


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
    """The copied share of its memory, 0 to 1."""
    detail: dict[str, float] = field(default_factory=dict)
    """What the mover measured: seconds, downtime, bytes."""
