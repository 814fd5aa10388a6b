"""What a job was given."""

from __future__ import annotations

import dataclasses

from topolane._engine import Decision


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of full bandwidth that a job has had on links of its own. Times in seconds of Slurm's clock."""

    begin: float
    since: float
    """Since when it has `phi`."""
    phi: float
    had: float
    """Integral of the share until `since`, seconds."""

    def with_phi(self, phi: float, now: float) -> Share:
        """The same job, which has another share from `now` on."""
        if phi == self.phi:
            return self
        return Share(self.begin, now, phi, self.had + self.phi * (now - self.since))

    def mean(self, now: float) -> float:
        """In the mean over its time until `now`."""
        if now <= self.begin:
            return self.phi
        return min(max((self.had + self.phi * (now - self.since)) / (now - self.begin), 0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class Held:
    """Nodes and links of a job."""

    nodes: frozenset[int]
    links: tuple[int, ...]
    """Cables between switches that nobody else uses."""
    phi: float = 1.0
    """Its share of full bandwidth on them, whoever comes."""
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
