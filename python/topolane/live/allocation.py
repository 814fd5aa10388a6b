"""The nodes and links that a job was given, and its bandwidth on them over time."""

from __future__ import annotations

import dataclasses

from topolane._engine import Decision


@dataclasses.dataclass(frozen=True)
class BandwidthHistory:
    """A job's share of full bandwidth on its dedicated links, over time. Times in seconds of the driver's clock."""

    begin: float
    since: float
    """When the present `bandwidth_share` began."""
    bandwidth_share: float
    had: float
    """Integral of the share until `since`, seconds."""

    def changed(self, bandwidth_share: float, now: float) -> BandwidthHistory:
        """The history of the same job, with another share from `now` on."""
        if bandwidth_share == self.bandwidth_share:
            return self
        had = self.had + self.bandwidth_share * (now - self.since)
        return BandwidthHistory(self.begin, now, bandwidth_share, had)

    def mean(self, now: float) -> float:
        """The mean share from its begin until `now`."""
        if now <= self.begin:
            return self.bandwidth_share
        had = self.had + self.bandwidth_share * (now - self.since)
        return min(max(had / (now - self.begin), 0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class Allocation:
    """Nodes and links of a job that runs."""

    nodes: frozenset[int]
    links: tuple[int, ...]
    """Cables between switches that no other job uses."""
    bandwidth_share: float = 1.0
    """Its share of full bandwidth on them, whatever other jobs start."""
    lent: tuple[int, ...] = ()
    """Cables that are dedicated to no job, and that it may use until a job is placed on them."""
    share: BandwidthHistory | None = None
    """Its bandwidth so far; None if that was not recorded."""

    @classmethod
    def of(cls, decision: Decision) -> Allocation:
        """The allocation that a decision makes."""
        return cls(frozenset(decision.nodes), tuple(decision.links), decision.bandwidth_share)

    @property
    def routed(self) -> tuple[frozenset[int], tuple[int, ...]]:
        """What forwarding tables depend on: its nodes, and the cables that its traffic uses."""
        return self.nodes, tuple(sorted(self.links + self.lent))
