"""A hypothetical placement: where a policy would have placed a job, given the jobs that really hold nodes.

The shadow and the repetition of its log both ask here, so that they ask alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from topolane._engine import Decision, InputError, LinkUse, Machine, Scheduler
from topolane.live.shadows import NoPlace, Placement, no_place
from topolane.policy import Policy, resolve


@dataclasses.dataclass(frozen=True)
class Question:
    """What a job asks for."""

    job: int
    nodes: int
    share: Mapping[str, int] | None
    """What it takes of each node; None for whole nodes."""
    eligible: Collection[int]
    """Nodes that it may use, idle or not."""


class Hypothetical:
    """A policy, and the jobs that hold nodes in Slurm.

    policy: a name, or a policy in Python. min_bandwidth: the least share of full bandwidth that jobs accept on links of
    their own; None for all of it. Raises InputError for a policy that there is not.
    """

    def __init__(self, machine: Machine, policy: str | Policy, min_bandwidth: float | None = None) -> None:
        self.machine = machine
        self._min_bandwidth = min_bandwidth
        self._scheduler = Scheduler(machine, resolve(policy) if isinstance(policy, str) else policy, "fcfs")
        self._held: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        """Nodes and own links of each job."""
        self._unfit: set[int] = set()
        """Jobs on nodes that are full already, such as suspended ones. They count for links, not for the policy."""
        self._out: frozenset[int] = frozenset()

    @property
    def jobs(self) -> int:
        """How many jobs hold nodes."""
        return len(self._held)

    def hold(
        self,
        job: int,
        nodes: Sequence[int],
        share: Mapping[str, int] | None,
        links: Sequence[int] = (),
        bandwidth_share: float = 1.0,
    ) -> None:
        """Lets a job hold the nodes that Slurm gave it."""
        self._held[job] = (tuple(nodes), tuple(links))
        taken = None if share is None else dict(share)
        for own in (tuple(links), ()):
            try:
                self._scheduler.adopt(
                    job,
                    nodes,
                    0.0,
                    float("inf"),
                    share=taken,
                    links=own,
                    bandwidth_share=bandwidth_share if own else 1.0,
                )
            except InputError:
                continue
            return
        self._unfit.add(job)

    def end(self, job: int) -> None:
        """The job holds its nodes no longer."""
        self._held.pop(job, None)
        if job in self._unfit:
            self._unfit.discard(job)
        else:
            self._scheduler.complete(job)

    def serve(self, out: Collection[int]) -> None:
        """Exactly these nodes take no new jobs."""
        now = frozenset(out)
        for node in sorted(now ^ self._out):
            self._scheduler.set_in_service(node, node not in now)
        self._out = now

    @property
    def out(self) -> frozenset[int]:
        """The nodes that take no new jobs."""
        return self._out

    def ask(self, question: Question) -> Placement | NoPlace:
        """Where the policy would place a job that does not hold nodes yet. Nothing is changed."""
        full = {node for job in self._unfit for node in self._held[job][0]}
        share = None if question.share is None else dict(question.share)
        refusal = self._scheduler.submit(
            question.job,
            question.nodes,
            float("inf"),
            share=share,
            eligible=sorted(set(question.eligible) - full),
            min_bandwidth=self._min_bandwidth,
        )
        if refusal is not None:
            return no_place(refusal)
        given: Sequence[Decision] = self._scheduler.start(0.0)
        if not given:
            found = self._scheduler.explain(question.job)
            self._scheduler.cancel(question.job)
            return NoPlace("not-now", "the policy gives no reason") if found is None else no_place(found)
        self._scheduler.complete(question.job)
        one = given[0]
        return self.placed(question.job, one.nodes, one.links, one.bandwidth_share)

    def placed(
        self, job: int, nodes: Sequence[int], links: Sequence[int] = (), bandwidth_share: float = 1.0
    ) -> Placement:
        """A job on these nodes, next to the jobs that hold nodes."""
        rows = [(each, held, own) for each, (held, own) in self._held.items() if each != job]
        use = LinkUse(self.machine, [*rows, (job, tuple(nodes), tuple(links))])
        others = {other for _, met in use.meetings(job) for other in met}
        aph = self.machine.quality(list(nodes))[0]
        return Placement(tuple(nodes), aph, len(others), tuple(links), bandwidth_share)
