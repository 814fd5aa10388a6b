"""What a shadow says: where a policy would have placed a job, compared with where its system did."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from topolane import parsing
from topolane._engine import InputError, Machine, Refusal


@dataclasses.dataclass(frozen=True)
class Placement:
    """Nodes for a job, by the scheduler of the system or by the policy."""

    nodes: tuple[int, ...]
    aph: float
    """Average pairwise hops."""
    shares_with: int
    """With how many running jobs it may share links."""
    links: tuple[int, ...] = ()
    """Links that only this job may use."""
    bandwidth_share: float = 1.0


@dataclasses.dataclass(frozen=True)
class NoPlace:
    """The policy gives no nodes."""

    kind: str
    """As the engine names it."""
    why: str


def no_place(refusal: Refusal) -> NoPlace:
    """A refusal of the engine."""
    return NoPlace(refusal.name, refusal.why)


def policy_of(event: Mapping[str, Any], allowed: str | None, where: str) -> str:
    """The policy that a log names. Raises InputError if it is code that the user did not name."""
    named = event["policy"]
    if not isinstance(named, str):
        raise TypeError(f"{parsing.shown(named)} is no policy")
    if ":" in named and named != allowed:
        raise InputError(
            f"{where}: the policy was {parsing.shown(named)}, which is code: if it is yours, give it with --policy"
        )
    return named


def no_event(where: str, error: Exception) -> InputError:
    """What is said of an event that cannot be read."""
    return (
        error
        if isinstance(error, InputError)
        else InputError(f"{where}: not an event of a shadow: {error!r}")
    )


def answered(answer: Placement | NoPlace, machine: Machine) -> dict[str, Any]:
    """The policy's answer as the log has it."""
    if isinstance(answer, NoPlace):
        return {"policy": {"refusal": answer.kind, "why": answer.why}}
    found: dict[str, Any] = {
        "nodes": machine.hostlist(answer.nodes),
        "aph": answer.aph,
        "shares_with": answer.shares_with,
    }
    if answer.links:
        found |= {"links": list(answer.links), "bandwidth_share": answer.bandwidth_share}
    return {"policy": found}


SIDES = {"slurm": "slurm", "kubernetes": "cluster"}
"""What a summary calls the system that places the jobs, by its name in the log."""


@dataclasses.dataclass(frozen=True)
class Side:
    """Where the scheduler of the system or the policy placed jobs."""

    jobs: int
    aph: float | None
    """Mean of the average pairwise hops, over jobs of two or more nodes."""
    sharing: int
    """How many jobs may share links with another job."""


@dataclasses.dataclass
class Summary:
    """What a shadow saw, from its events of starts."""

    policy: str = ""
    system: str = "slurm"
    """Whose scheduler places the jobs."""
    starts: int = 0
    missed: int = 0
    """Jobs that held nodes before the shadow looked, or that started while it could not."""
    not_asked: Counter[str] = dataclasses.field(default_factory=Counter)
    """Starts about which the policy was not asked, by why."""
    refused: Counter[str] = dataclasses.field(default_factory=Counter)
    """Starts that would have waited, by the kind of refusal."""
    why: dict[str, str] = dataclasses.field(default_factory=dict)
    """One reason of each kind."""
    plugin: Counter[str] = dataclasses.field(default_factory=Counter)
    """Starts by the policy that the plugin inside Slurm gave the job."""
    _pairs: list[tuple[bool, float, int, float, int]] = dataclasses.field(default_factory=list)
    """Of jobs that the policy places: whether it has several nodes; hops and jobs met, of the system's and the policy's nodes."""
    _waiting: list[tuple[bool, float, int]] = dataclasses.field(default_factory=list)
    """Of jobs that would have waited: the same of the system's nodes."""

    def add(self, start: Mapping[str, Any], nodes: int) -> None:
        """Counts an event of a start."""
        self.starts += 1
        if start.get("plugin"):
            self.plugin[start["plugin"]] += 1
        if "not_asked" in start:
            self.not_asked[start["not_asked"].partition(":")[0]] += 1
            return
        answer, several = start["policy"], nodes > 1
        if "refusal" in answer:
            self.refused[answer["refusal"]] += 1
            self.why.setdefault(answer["refusal"], answer["why"])
            self._waiting.append((several, start["aph"], start["shares_with"]))
            return
        row = (several, start["aph"], start["shares_with"], answer["aph"], answer["shares_with"])
        self._pairs.append(row)

    @property
    def stock(self) -> Side:
        """The system's nodes of the jobs that the policy places."""
        return _side([row[:3] for row in self._pairs])

    @property
    def ours(self) -> Side:
        """The policy's nodes of the same jobs."""
        return _side([(row[0], *row[3:]) for row in self._pairs])

    @property
    def waiting(self) -> Side:
        """The system's nodes of the jobs that would have waited."""
        return _side(self._waiting)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "policy": self.policy,
            "starts": self.starts,
            "missed": self.missed,
            "not_asked": dict(self.not_asked),
            "would_have_waited": dict(self.refused),
            "why": self.why,
            "plugin": dict(self.plugin),
            self.system: dataclasses.asdict(self.stock),
            "with_policy": dataclasses.asdict(self.ours),
            f"{self.system}_of_those_that_would_have_waited": dataclasses.asdict(self.waiting),
        }


def _side(rows: Sequence[tuple[bool, float, int]]) -> Side:
    hops = [aph for several, aph, _ in rows if several]
    mean = sum(hops) / len(hops) if hops else None
    return Side(len(rows), mean, sum(others > 0 for _, _, others in rows))
