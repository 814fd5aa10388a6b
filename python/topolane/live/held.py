"""What a job was given."""

from __future__ import annotations

import dataclasses

from topolane._engine import Decision


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of full bandwidth that a job has had on links of its own. Times in seconds of the driver's clock."""

    begin: float
    since: float
    """Since when it has `bandwidth_share`."""
    bandwidth_share: float
    had: float
    """Integral of the share until `since`, seconds."""

    def changed(self, bandwidth_share: float, now: float) -> Share:
        """The same job, which has another share from `now` on."""
        if bandwidth_share == self.bandwidth_share:
            return self
        had = self.had + self.bandwidth_share * (now - self.since)
        return Share(self.begin, now, bandwidth_share, had)

    def mean(self, now: float) -> float:
        """In the mean over its time until `now`."""
        if now <= self.begin:
            return self.bandwidth_share
        had = self.had + self.bandwidth_share * (now - self.since)
        return min(max(had / (now - self.begin), 0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class Held:
    """Nodes and links of a job."""

    nodes: frozenset[int]
    links: tuple[int, ...]
    """Cables between switches that nobody else uses."""
    bandwidth_share: float = 1.0
    """Its share of full bandwidth on them, whatever other jobs start."""
    lent: tuple[int, ...] = ()
    """Cables that nobody owns, and over which it goes until somebody is placed on them."""
    share: Share | None = None
    """What it has had so far."""

    @classmethod
    def of(cls, decision: Decision) -> Held:
        """What a decision gives."""
        return cls(frozenset(decision.nodes), tuple(decision.links), decision.bandwidth_share)

    @property
    def routed(self) -> tuple[frozenset[int], tuple[int, ...]]:
        """All that tables depend on: its nodes, and the cables that its traffic goes over."""
        return self.nodes, tuple(sorted(self.links + self.lent))
