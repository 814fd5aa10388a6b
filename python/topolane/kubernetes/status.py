"""What topolane-scheduler does in a cluster at one moment: the figures and rows that `topolane k8s status` prints."""

from __future__ import annotations

import dataclasses

from topolane._engine import LinkUse
from topolane.cluster.counts import NodeCounts, Sharing
from topolane.cluster.links import Links
from topolane.kubernetes.inspection import Group, Inspection
from topolane.kubernetes.waiting import UNABLE, wait_reason
from topolane.units import duration


@dataclasses.dataclass(frozen=True)
class Liveness:
    """Whether a scheduler decides. Times in seconds since 1970."""

    active: bool | None
    """Whether one holds the lease; None if there is no lease to tell."""
    why: str | None
    """Why it is not active, or not known to be: a sentence."""
    scheduler: str
    """The schedulerName of its pods."""
    holder: str | None
    """The one that decides."""
    renewed: float | None
    """When it renewed its lease."""
    settings: str | None
    """The ConfigMap with its settings."""
    machine_nodes: int | None
    unable: str | None = None
    """Why the engine does not decide though a scheduler holds the lease: a sentence; None if nothing says so."""


@dataclasses.dataclass(frozen=True)
class RunningRow:
    """A group on its nodes. Times in seconds since 1970."""

    group: str
    pods: int
    """Those that have a node."""
    size: int
    """Those that it wants."""
    nodes: list[str]
    """In rank order, once per pod."""
    level: int | None
    """1 if it lies in one leaf (T1), 2 if in one pod (T2), ...; None if the machine is not known."""
    home: str | None
    """The lowest group of nodes that contains it."""
    policy: str
    isolated: bool
    links: int
    """Its own links between switches."""
    bandwidth_share: float | None
    """Its share of full bandwidth on them; None if it has none."""
    may_meet: list[str]
    """Other groups that may use the same links."""
    since: float


@dataclasses.dataclass(frozen=True)
class WaitingRow:
    """A group without nodes. Times in seconds since 1970."""

    group: str
    pods: int
    """Those that are there."""
    size: int
    """Those that it wants."""
    policy: str
    since: float
    kind: str | None
    """The kind of the policy's refusal; None if no policy refused it."""
    why: str


@dataclasses.dataclass(frozen=True)
class Status:
    """All that is known."""

    time: float
    server: str
    liveness: Liveness
    running: list[RunningRow]
    waiting: list[WaitingRow]
    """Those that came first in front."""
    nodes: NodeCounts
    sharing: Sharing | None
    problems: list[str]
    """What could not be read, a sentence each."""


def status(look: Inspection) -> Status:
    """The figures and rows of a look."""
    links = links_of(look)
    groups = look.groups.values()
    return Status(
        look.time,
        look.server,
        liveness(look),
        [_running(look, group, links) for group in groups if group.placed],
        [_waiting(look, group) for group in groups if not group.placed],
        _nodes(look),
        _sharing(look),
        list(look.problems),
    )


def liveness(look: Inspection) -> Liveness:
    """Whether a scheduler decides, by its lease."""
    lease, active, why = look.lease, None, None
    if look.settings.lease is None:
        why = "It is not known whether a scheduler decides: no ConfigMap names its lease (--config)."
        if look.settings.source is not None:
            why = (
                f"It is not known whether a scheduler decides: {look.settings.source} has no leader election."
            )
    elif lease is None or not lease.holder or lease.renewed is None:
        active, why = False, f"No scheduler holds lease {look.settings.lease}: pods of its groups wait."
    elif look.time - lease.renewed > 2 * lease.seconds:
        past = duration(look.time - lease.renewed)
        active, why = (
            False,
            f"{lease.holder} has not renewed lease {lease.name} for {past}: pods of its groups wait.",
        )
    else:
        active = True
    return Liveness(
        active,
        why,
        look.settings.scheduler,
        lease.holder if lease else None,
        lease.renewed if lease else None,
        look.settings.source,
        look.machine.nodes if look.machine else None,
        _unable(look),
    )


def _unable(look: Inspection) -> str | None:
    """Why the engine does not decide, as far as the groups that wait or the scheduler's own settings say."""
    waits = [group for group in look.groups.values() if not group.placed]
    stuck = [group.name for group in waits if any(UNABLE in pod.why for pod in group.pods)]
    if stuck:
        more = f" and {len(stuck) - 1} more" if len(stuck) > 1 else ""
        return f"The engine cannot answer, so {stuck[0]}{more} must wait: `topolane k8s explain {stuck[0]}` says why."
    if look.machine is None and look.settings.source is not None:
        return f"The engine cannot answer: {look.settings.source} leads to no machine."
    return None


def links_of(look: Inspection) -> Links | None:
    """Which groups may use which links; None if the machine is not known."""
    if look.machine is None:
        return None
    return Links(look.machine, look.holders, look.names, look.allocations)


def _running(look: Inspection, group: Group, links: Links | None) -> RunningRow:
    number = group.number
    held, own = look.holders.get(number, []), look.allocations.get(number)
    level, home = links.home(held) if links and held else (None, None)
    met = links.of(number) if links and held else []
    return RunningRow(
        group.name,
        len(group.placed),
        group.size,
        group.hosts,
        level,
        home,
        look.policy(group)[0],
        number in look.isolated,
        len(own.links) if own else 0,
        own.bandwidth_share if own else None,
        sorted({other for _, others in met for other in others}),
        group.since,
    )


def _waiting(look: Inspection, group: Group) -> WaitingRow:
    wait = wait_reason(group)
    return WaitingRow(
        group.name, len(group.pods), group.size, look.policy(group)[0], group.since, wait.kind, wait.words
    )


def _nodes(look: Inspection) -> NodeCounts:
    busy = {pod.node for pod in look.pods if pod.holds_node and pod.group is not None} & look.nodes.keys()
    out = sum(not node.takes_pods for name, node in look.nodes.items() if name not in busy)
    return NodeCounts(len(look.nodes) - len(busy) - out, len(busy), out)


def _sharing(look: Inspection) -> Sharing | None:
    if look.machine is None:
        return None
    own = look.allocations
    use = LinkUse(
        look.machine,
        [(job, held, own[job].links if job in own else ()) for job, held in look.holders.items()],
    )
    meeting = [
        look.names[job]
        for job in sorted(look.isolated & look.holders.keys())
        if any(others for _, others in use.meetings(job))
    ]
    return Sharing(sum(len(one.links) for one in own.values()), use.shared, meeting)
