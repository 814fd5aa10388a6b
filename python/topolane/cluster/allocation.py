"""The nodes and links that a job was given."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Nodes and links of a job."""

    nodes: frozenset[int]
    links: tuple[int, ...]
    """Cables between switches that no other job uses."""
    bandwidth_share: float = 1.0
    """Its share of full bandwidth on them, whatever other jobs start."""
