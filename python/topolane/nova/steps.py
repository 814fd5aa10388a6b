"""Orders the migrations that make room so that Nova's filter allows each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from topolane.nova.cloud import Cloud, Server
from topolane.nova.group_placement import POLICIES, GroupPlacement
from topolane.nova.plan import isolates

LOOKS = 2000
"""The most migrations that the search for one order tries."""

Where = dict[str, dict[str, str]]
"""The host of every server that has one, by group and server."""


class MigrationStep(NamedTuple):
    """One migration in an order."""

    group: str
    server: Server
    source: str
    target: str
    forced: bool = False
    """Whether it must bypass the filter."""


def order(
    cloud: Cloud, where: Where, goes: dict[str, list[str]], *, sharing: bool = False
) -> list[MigrationStep] | None:
    """An order of migrations that bring groups to their target hosts. A server that is already on one of them
    stays.

    Each migration finds its target empty, and the filter allows it at that moment. If `sharing`, a migration
    that the filter does not allow is `forced` when no other is possible. Returns None if no order was found;
    for example, two groups cannot trade places without a free host.
    """
    return _Search(cloud, where, goes, sharing).found()


class _Search:
    """A depth-first search with backtracking. It never visits the same set of remaining servers twice."""

    def __init__(self, cloud: Cloud, where: Where, goes: dict[str, list[str]], sharing: bool) -> None:
        machine = cloud.topology.machine
        self._cloud, self._sharing = cloud, sharing
        self._now = now = moved(where, [])
        self._servers = {group.id: {server.id: server for server in group.servers} for group in cloud.groups}
        hosts = {machine.node_name(node): node for node in range(machine.nodes)}
        self._leaf_of = {host: machine.home([node])[1] or "" for host, node in hosts.items()}
        self._leaving = {
            (name, s) for name, to in goes.items() for s, host in now[name].items() if host not in to
        }
        self._targets = {
            (name, host) for name, to in goes.items() for host in to if host not in now[name].values()
        }
        self._looks = 0

    def found(self) -> list[MigrationStep] | None:
        """The order."""
        seen: set[tuple[frozenset[tuple[str, str]], frozenset[tuple[str, str]]]] = set()
        steps: list[MigrationStep] = []
        stack = [self._next()]
        while stack and self._leaving:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if steps:
                    self._make(steps.pop(), undo=True)
                continue
            self._make(step)
            left = frozenset(self._leaving), frozenset(self._targets)
            if left in seen:
                self._make(step, undo=True)
                continue
            seen.add(left)
            steps.append(step)
            stack.append(self._next())
        return None if self._leaving else steps

    def _make(self, step: MigrationStep, undo: bool = False) -> None:
        self._now[step.group][step.server.id] = step.source if undo else step.target
        change = set.add if undo else set.remove
        change(self._leaving, (step.group, step.server.id))
        change(self._targets, (step.group, step.target))

    def _next(self) -> Iterator[MigrationStep]:
        """The possible next steps. Undo the previous step before taking the next one."""
        others = []
        for step in self._candidates():
            self._looks += 1
            if self._looks > LOOKS:
                return
            if _allowed(self._cloud, self._now, step):
                yield step
            else:
                others.append(step._replace(forced=True))
        if self._sharing:
            yield from others

    def _candidates(self) -> list[MigrationStep]:
        """Migrations to empty hosts; of equivalent hosts, only one is tried."""
        taken = {self._now[name][server] for name, server in self._leaving}
        awaited = {host for _, host in self._targets}
        empty = {}
        for name, host in sorted(self._targets, reverse=True):
            if host not in taken:
                empty[name, self._leaf_of[host]] = host
        leaving = {}
        for name, server in sorted(self._leaving, reverse=True):
            host = self._now[name][server]
            # A host that is the target of another server differs from its neighbours.
            place = (1, host) if host in awaited else (0, self._leaf_of[host])
            leaving[name, place] = server
        return [
            MigrationStep(name, self._servers[name][server], self._now[name][server], target)
            for (name, _), target in sorted(empty.items())
            for (group, _), server in sorted(leaving.items())
            if group == name
        ]


def _allowed(cloud: Cloud, now: Where, step: MigrationStep) -> bool:
    """Whether the filter lets the server go there."""
    group = cloud.group(step.group)
    others = list(others_on(cloud, now, {group.id}))
    rest = [host for server, host in now[group.id].items() if server != step.server.id]
    node = cloud.topology.node_of[step.target]
    slots = np.zeros(cloud.topology.machine.nodes, dtype=np.uint32)
    slots[node] = 1
    placing = GroupPlacement(
        cloud.topology,
        POLICIES.get(group.hint.placement or "", "hop-bytes-exact"),
        stacked=group.most_per_host != 1
        or isolates(group.hint)
        or any(dedicated for _, dedicated, _ in others),
        members=cloud.topology.nodes(rest),
        awaiting=1,
        others=others,
    )
    costs = placing.costs(slots).costs
    return costs is not None and bool(np.isfinite(costs[node]))


def others_on(cloud: Cloud, where: Where, but: Collection[str]) -> Iterator[tuple[list[int], bool, bool]]:
    """The other groups with two or more hosts as the filter sees them: their nodes, whether their links are
    dedicated, and whether some members are outside the machine. Hosts of unfinished migrations count.
    """
    for group in cloud.groups:
        hosts = [*where[group.id].values(), *group.kept]
        nodes = cloud.topology.nodes(hosts)
        if group.id not in but and len(set(hosts)) > 1 and nodes:
            yield nodes, isolates(group.hint), len(nodes) < len(hosts)


def moved(where: Where, steps: list[MigrationStep]) -> Where:
    """The hosts of servers after these steps."""
    then = {name: dict(hosts) for name, hosts in where.items()}
    for step in steps:
        then[step.group][step.server.id] = step.target
    return then
