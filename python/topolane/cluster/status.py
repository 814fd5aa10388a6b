"""The figures and rows of a view that every `status` prints, and the metrics and the live page count."""

from __future__ import annotations

import dataclasses

from topolane._engine import Machine
from topolane.cluster.links import MOST_MET, Links
from topolane.cluster.view import ISOLATED, Running, View, Waiting


@dataclasses.dataclass(frozen=True)
class RunningRow:
    """A job on its nodes. Times in seconds since 1970."""

    job: str
    name: str
    user: str
    """A group of pods has its namespace here."""
    partition: str
    nodes: int
    hosts: str
    """Hostlist."""
    ranks: list[str]
    """Its nodes in rank order, once per slot; empty where its system does not say."""
    slots: int
    """Nodes, or pods that have a node."""
    size: int
    """Slots that it wants."""
    level: int | None
    """1 if it lies in one leaf (T1), 2 if in one pod (T2), ...; None if the machine is not known."""
    home: str | None
    """The lowest group that contains it."""
    policy: str | None
    link_use: str
    """`isolated`, `shared`, `none` or `unknown`."""
    links: int
    """Its own links between switches."""
    bandwidth_share: float | None
    """Its share of full bandwidth on them; None if it has none."""
    may_meet: list[str]
    """Other jobs that may use the same links, MOST_MET of them at most."""
    start: float
    expected_end: float | None


@dataclasses.dataclass(frozen=True)
class WaitingRow:
    """A job that waits. Times in seconds since 1970."""

    job: str
    record: str
    """The waiting tasks of an array have one record."""
    name: str
    user: str
    nodes: int
    slots: int
    """Nodes, or pods that are there."""
    size: int
    """Slots that it wants."""
    submit: float
    reason: str
    """Its system's reason."""
    kind: str | None
    """The kind of the plug-in's refusal; None if it did not refuse the job, or the job waits for something else."""
    refused: float | None
    """When the plug-in refused it last."""
    why: str
    policy: str | None
    expected_start: float | None
    """As its system expects it."""


@dataclasses.dataclass(frozen=True)
class NodeCounts:
    """How many nodes of the machine are in which state."""

    idle: int
    busy: int
    """With a job."""
    out_of_service: int
    """Closed to new jobs, and without one."""


@dataclasses.dataclass(frozen=True)
class LinkSharing:
    """Links between switches, and who uses them."""

    owned: int
    """Links that one job has for itself."""
    shared: int
    """Links that two jobs may use."""
    isolated_sharing: list[str]
    """Isolated jobs that may meet another job on a link."""


@dataclasses.dataclass(frozen=True)
class Status:
    """The status of a system, as far as it is the same for every one. Jobs that are not for the plug-in have no row."""

    time: float
    running: list[RunningRow]
    waiting: list[WaitingRow]
    """In order of the queue."""
    nodes: NodeCounts | None
    """None if the machine or its jobs are not known."""
    sharing: LinkSharing | None
    problems: list[str]
    """What could not be read, a sentence each."""

    @classmethod
    def of(cls, machine: Machine | None, view: View) -> Status:
        """Of a view. machine: None if it is not known."""
        links = None if machine is None else Links(machine, view)
        return Status(
            view.time,
            [_running(job, links) for job in view.running if job.is_ours],
            [_waiting(job) for job in view.waiting if job.is_ours],
            None if machine is None else node_counts(machine, view),
            None if links is None else sharing(links, view),
            list(view.problems),
        )


def node_counts(machine: Machine, view: View) -> NodeCounts:
    """Counts the nodes of the machine."""
    busy, out = len(view.busy), len(set(view.out) - view.busy)
    return NodeCounts(machine.nodes - busy - out, busy, out)


def sharing(links: Links, view: View) -> LinkSharing:
    """Counts links by their users."""
    meeting = [job.name for job in view.claiming if job.link_use == ISOLATED and links.met(job, 1)]
    return LinkSharing(len({link for job in view.running for link in job.links}), links.shared(), meeting)


def _running(job: Running, links: Links | None) -> RunningRow:
    level, home = (None, None) if links is None else links.home(job)
    nodes = len(set(job.ranks)) or job.slots
    return RunningRow(
        *(job.name, job.title, job.user, job.part, nodes, job.hosts, list(job.ranks)),
        *(job.slots, job.size, level, home, job.policy, job.link_use, len(job.links)),
        bandwidth_share=job.bandwidth_share if job.links else None,
        may_meet=[] if links is None else links.met(job, MOST_MET),
        start=job.start,
        expected_end=job.end,
    )


def _waiting(job: Waiting) -> WaitingRow:
    refused = job.refused
    return WaitingRow(
        *(job.name, job.record, job.title, job.user, job.nodes, job.slots, job.size, job.submit, job.reason),
        kind=refused.kind if refused else None,
        refused=refused.time if refused else None,
        why=job.why,
        policy=job.policy,
        expected_start=job.expected_start,
    )
