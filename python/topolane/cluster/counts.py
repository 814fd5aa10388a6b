"""What the status of a live system counts. A group of pods is a job here."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class NodeCounts:
    """How many nodes of the machine are in which state."""

    idle: int
    busy: int
    """With a job."""
    out_of_service: int
    """Closed to new jobs, and without one."""


@dataclasses.dataclass(frozen=True)
class Sharing:
    """Links between switches, and who uses them."""

    owned: int
    """Links that one job has for itself."""
    shared: int
    """Links that two jobs may use."""
    isolated_sharing: list[str]
    """Isolated jobs that may meet another job on a link."""
