"""Writes every call of a scheduler, and every answer, into the log."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from topolane._engine import Decision, Machine, Refusal, Scheduler, traffic_policies
from topolane.live.job_request import JobRequest, JobTraffic, digest_of, for_engine
from topolane.policy import Policy, resolve


class Recorder:
    """A scheduler whose calls are logged."""

    def __init__(
        self,
        machine: Machine,
        policy: str | Policy,
        queue: str,
        write: Callable[..., None],
        *,
        seed: int = 0,
        routing: str = "d-mod-k",
    ) -> None:
        rule = resolve(policy) if isinstance(policy, str) else policy
        self._scheduler = Scheduler(machine, rule, queue, seed=seed, routing=routing)
        self._machine = machine
        self._write = write
        self._aside: frozenset[int] = frozenset()
        """Links that no job owns."""
        self._matrices: set[str] = set()
        """The digests of those in the log."""
        named = policy if isinstance(policy, str) else policy.name
        write(
            "scheduler",
            machine=machine.to("toml"),
            policy=named,
            queue=queue,
            seed=seed,
            **({"routing": routing} if named in traffic_policies() else {}),
        )

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler itself, for queries only: a change made here would be missing in the log."""
        return self._scheduler

    def submit(self, job: int, ask: JobRequest) -> Refusal | None:
        """See `Scheduler.submit`."""
        facts: dict[str, Any] = {
            field.name: value
            for field in dataclasses.fields(ask)
            if (value := getattr(ask, field.name)) not in (None, 0)
        }
        if ask.walltime == float("inf"):
            facts["walltime"] = None
        if ask.eligible is not None:
            facts["eligible"] = self._machine.hostlist(ask.eligible)
        if ask.traffic is not None:
            facts["traffic"] = self._written(ask.traffic)
        self._write("submit", id=job, **facts)
        return submit(self._scheduler, job, ask)

    def adopt(
        self,
        job: int,
        nodes: Sequence[int],
        start: float,
        walltime: float,
        share: dict[str, int] | None,
        links: Sequence[int] = (),
        bandwidth_share: float = 1.0,
        traffic: JobTraffic | None = None,
    ) -> None:
        """See `Scheduler.adopt`."""
        self._scheduler.adopt(
            job,
            nodes,
            start,
            walltime,
            share=share,
            links=links,
            bandwidth_share=bandwidth_share,
            traffic=for_engine(traffic),
        )
        owned = {"links": list(links), "bandwidth_share": bandwidth_share} if links else {}
        sent = {} if traffic is None else {"traffic": self._written(traffic)}
        self._write(
            "adopt",
            id=job,
            nodes=self._machine.hostlist(nodes),
            start=start,
            walltime=_finite(walltime),
            share=share,
            **owned,
            **sent,
        )

    def _written(self, traffic: JobTraffic) -> list[Any]:
        """Writes its matrix too, if the log does not have it yet."""
        if traffic.matrix is not None and (digest := digest_of(traffic.matrix)) not in self._matrices:
            self._write("matrix", digest=digest, csv=traffic.matrix)
            self._matrices.add(digest)
        return traffic.written()

    def complete(self, job: int) -> None:
        """See `Scheduler.complete`."""
        self._write("complete", id=job)
        self._scheduler.complete(job)

    def cancel(self, job: int) -> None:
        """See `Scheduler.cancel`."""
        self._write("cancel", id=job)
        self._scheduler.cancel(job)

    def set_walltime(self, job: int, walltime: float) -> None:
        """See `Scheduler.set_walltime`."""
        self._write("walltime", id=job, walltime=_finite(walltime))
        self._scheduler.set_walltime(job, walltime)

    def set_in_service(self, node: int, in_service: bool) -> None:
        """See `Scheduler.set_in_service`."""
        self._write("service", node=self._machine.node_name(node), up=in_service)
        self._scheduler.set_in_service(node, in_service)

    def set_aside(self, links: Sequence[int]) -> None:
        """Takes these links out of service for good, for services."""
        self._aside = frozenset(links)
        self._write("links", links=list(links), up=False)
        self._scheduler.set_links_in_service(links, False)

    def set_links_in_service(self, links: Sequence[int], in_service: bool) -> list[int]:
        """See `Scheduler.set_links_in_service`; links that were set aside stay out of service."""
        if in_service:
            links = [link for link in links if link not in self._aside]
        self._write("links", links=list(links), up=in_service)
        return self._scheduler.set_links_in_service(links, in_service)

    def start(self, now: float) -> list[Decision]:
        """See `Scheduler.start`."""
        decisions = self._scheduler.start(now)
        self._write("pass", now=now, **written(decisions, self._machine))
        return decisions


def submit(scheduler: Scheduler, job: int, ask: JobRequest) -> Refusal | None:
    """Submits the request of a job to a scheduler."""
    return scheduler.submit(
        job,
        ask.nodes,
        ask.walltime,
        most=ask.most,
        priority=ask.priority,
        order=ask.order,
        begin=ask.begin,
        share=ask.share,
        eligible=ask.eligible,
        min_bandwidth=ask.min_bandwidth,
        traffic=for_engine(ask.traffic),
    )


def written(decisions: Sequence[Decision], machine: Machine) -> dict[str, Any]:
    """What a pass started, as the fields of its log line.

    starts: [job, hosts]; owned: [job, bandwidth share, cables] of the jobs with dedicated links; spare:
    [job, hosts] of nodes that a job holds and does not use.
    """
    owned = [[one.id, one.bandwidth_share, one.links] for one in decisions if one.links]
    spare = [[one.id, machine.hostlist(one.spare)] for one in decisions if one.spare]
    return {
        "starts": [[one.id, machine.hostlist(one.nodes)] for one in decisions],
        **({"owned": owned} if owned else {}),
        **({"spare": spare} if spare else {}),
    }


def _finite(seconds: float) -> float | None:
    return None if seconds == float("inf") else seconds
