"""What a job was given."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Held:
    """Nodes and links of a job."""

    nodes: frozenset[int]
    links: tuple[int, ...]
    """Cables between switches that nobody else uses."""
    phi: float = 1.0
    """Its share of full bandwidth on them."""
