"""The positions of a cloud's hosts in the tree, from its aggregates or from a machine file."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from topolane._engine import InputError, Machine

LEVELS = ("leaf", "pod", "site")
"""Metadata keys of aggregates, from the hosts upwards: topolane:leaf and so on."""


class Aggregate(NamedTuple):
    """A host aggregate."""

    name: str
    hosts: Iterable[str]
    metadata: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Topology:
    """The tree of a cloud's hosts."""

    machine: Machine
    node_of: dict[str, int]
    """The node of every host on the machine."""

    @staticmethod
    def of(machine: Machine) -> Topology:
        """The topology of a machine whose nodes have the names of the hosts."""
        return Topology(machine, {machine.node_name(node): node for node in range(machine.nodes)})

    def nodes(self, hosts: Iterable[str]) -> list[int]:
        """The nodes of these hosts, in their order; hosts outside the machine are skipped."""
        return [node for host in hosts if (node := self.node_of.get(host)) is not None]

    def hops(self, hosts: Iterable[str]) -> float:
        """Hops summed over the pairs of servers on these hosts."""
        return self.machine.quality(sorted(self.nodes(hosts)))[1]

    def leaf(self, host: str) -> str | None:
        """The name of a host's leaf; None if it is not on the machine."""
        node = self.node_of.get(host)
        if node is None:
            return None
        return self.machine.home([node])[1]


def from_aggregates(aggregates: Iterable[Aggregate]) -> tuple[Topology | None, list[str]]:
    """The topology in the metadata of aggregates (None without such metadata), and sentences about errors in
    it.

    A host with two contradictory positions is skipped.
    """
    said: dict[str, dict[str, dict[str, str]]] = collections.defaultdict(dict)
    for aggregate in aggregates:
        for level in LEVELS:
            place = aggregate.metadata.get(f"topolane:{level}")
            for host in aggregate.hosts if place is not None else ():
                said[host].setdefault(level, {}).setdefault(str(place), aggregate.name)
    out: dict[str, list[str]] = collections.defaultdict(list)
    positions: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for host in sorted(said):
        if reason := _contradiction(said[host]):
            out[reason].append(host)
            continue
        site, pod, leaf = (next(iter(said[host].get(level, {})), "") for level in reversed(LEVELS))
        positions[site or "cloud", pod, leaf].append(host)
    problems = [f"{_hosts(hosts)} {reason}: not in the topology" for reason, hosts in out.items()]
    _complete_positions(positions, problems)
    if not positions:
        return None, problems
    leaves = [([part for part in position if part], hosts) for position, hosts in positions.items()]
    try:
        return Topology.of(Machine.of("cloud", leaves)), problems
    except InputError as error:
        return None, [*problems, f"the aggregates make no tree: {error}"]


def _hosts(hosts: list[str]) -> str:
    """The names of a few of the hosts, and the number of the others."""
    shown, more = hosts[:4], len(hosts) - 4
    names = ", ".join(shown) + (f" and {more} more" if more > 0 else "")
    return f"{'host' if len(hosts) == 1 else 'hosts'} {names} {'is' if len(hosts) == 1 else 'are'}"


def _contradiction(places: dict[str, dict[str, str]]) -> str | None:
    """A description of the contradiction between two positions of a host; None if there is none."""
    for level, by_name in places.items():
        if len(by_name) > 1:
            both = " and ".join(f"{name} (aggregate {by})" for name, by in sorted(by_name.items()))
            return f"in two places, {level} {both}"
        if not next(iter(by_name)):
            return f"in an aggregate whose topolane:{level} is empty"
    if "leaf" not in places:
        return f"in a {next(iter(places))} but in no leaf"
    return None


def _complete_positions(positions: dict[tuple[str, ...], list[str]], problems: list[str]) -> None:
    """Adds the missing pod to hosts that give only their leaf, from other hosts of that leaf."""
    for position in [position for position in positions if not position[1]]:
        site, _, leaf = position
        others = [other for other in positions if other[0] == site and other[2] == leaf and other[1]]
        if len(others) == 1:
            hosts = positions.pop(position)
            problems.append(
                f"leaf {leaf} is in pod {others[0][1]} but {hosts[0]} does not say so: taken as there"
            )
            positions[others[0]].extend(hosts)
