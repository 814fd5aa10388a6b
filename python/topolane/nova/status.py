"""Where groups run and how far apart: what `topolane nova status` prints in addition to the rows of all systems."""

from __future__ import annotations

import collections
import dataclasses

from topolane._engine import Decision, Machine, State
from topolane.cluster.status import Status
from topolane.nova.cloud import Cloud, ServerGroup
from topolane.nova.view import names_of, view


@dataclasses.dataclass(frozen=True)
class GroupHops:
    """How far apart the servers of a group are that have a host on the topology."""

    job: str
    id: str
    """Nova's own."""
    leaves: int
    hops: float
    """Hops summed over pairs of servers."""
    least_hops: float
    """The least possible hops on the empty machine, with at most as many servers on a host as now."""


@dataclasses.dataclass(frozen=True)
class NovaStatus(Status):
    """All that is known. The groups furthest above their least possible hops are first."""

    hops: list[GroupHops]
    """Of the running groups, in the same order."""
    off_tree: list[str]
    """Compute hosts that no leaf lists."""


def status(cloud: Cloud, off_tree: list[str]) -> NovaStatus:
    """The figures and rows of a cloud."""
    found = Status.of(cloud.topology.machine, view(cloud))
    far = hops(cloud)
    order = {one.job: at for at, one in enumerate(far)}
    found = dataclasses.replace(found, running=sorted(found.running, key=lambda row: order[row.job]))
    return NovaStatus(**vars(found), hops=far, off_tree=off_tree)


def hops(cloud: Cloud) -> list[GroupHops]:
    """The hops of each group that has a host, those furthest above their least possible hops first."""
    names = names_of(cloud)
    rows = [_hops(cloud, names[group.id], group) for group in cloud.groups if group.hosts]
    return sorted(rows, key=lambda row: (row.least_hops - row.hops, row.job))


def _hops(cloud: Cloud, name: str, group: ServerGroup) -> GroupHops:
    machine, own = cloud.topology.machine, cloud.topology.nodes(group.hosts)
    leaves = len(set(machine.leaves_of(own)))
    return GroupHops(name, group.id, leaves, cloud.topology.hops(group.hosts), _least(machine, own))


def _least(machine: Machine, own: list[int]) -> float:
    if len(own) < 2:
        return 0.0
    most = max(collections.Counter(own).values())
    placed = State(machine).place("hop-bytes-exact", len(own), slots=[most] * machine.nodes, stacked=most > 1)
    return placed.hop_bytes if isinstance(placed, Decision) else 0.0
