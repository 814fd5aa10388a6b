"""The machine of a Flux instance, and which of its nodes is which rank of Flux."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from topolane import sources
from topolane._engine import InputError, Machine

ABOVE_NODES = ("cluster", "pod", "switch", "rack", "chassis", "blade")
"""Types of vertices above nodes in a resource graph, from which the closeness of nodes follows."""


class RankNode(NamedTuple):
    """A rank of Flux: one node."""

    rank: int
    host: str
    cores: int
    gpus: int


@dataclasses.dataclass(frozen=True)
class Fabric:
    """A machine whose nodes are the ranks of a Flux instance."""

    machine: Machine
    ranks: tuple[int, ...]
    """The rank of each node of the machine."""
    node_of: Mapping[int, int]
    """The node of each rank."""
    notes: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """A digest that differs for machines whose links are numbered differently."""
        return hashlib.sha256(self.machine.to("toml").encode()).hexdigest()[:32]

    @staticmethod
    def of(nodes: Sequence[RankNode], source: str | None, scheduling: object = None) -> Fabric:
        """The fabric of the ranks of an instance.

        source: a machine file or a name; only its nodes that are ranks are used. Without a source, the groups
        come from the resource graph in `scheduling`, in Fluxion's format; without a graph, all nodes are on
        one switch. Cores and GPUs are those that Flux counts. Raises InputError for a file that cannot be
        read, for two ranks with one name, and for ranks that the machine does not name.
        """
        twice = [host for host, count in Counter(node.host for node in nodes).items() if count > 1]
        if twice:
            raise InputError(
                f"{twice[0]} is the name of several ranks: Topolane places jobs on nodes, one rank each"
            )
        if not nodes:
            raise InputError("the instance has no resources")
        above = {} if source is not None else groups_of(scheduling)
        notes: tuple[str, ...] = ()
        if source is not None:
            whole = _of_file(nodes, source)
        else:
            members: dict[tuple[str, ...], list[str]] = defaultdict(list)
            for node in nodes:
                members[above.get(node.host, ())].append(node.host)
            whole = Machine.of("flux", [(("flux", *groups), hosts) for groups, hosts in members.items()])
            if not above:
                notes = ("nothing is known of switches: all nodes are taken to be on one",)
        by_host = {node.host: node for node in nodes}
        here = [by_host[whole.node_name(node)] for node in range(whole.nodes)]
        machine = whole.counting([(node.cores, {"gpu": node.gpus}) for node in here])
        return Fabric(
            machine,
            tuple(node.rank for node in here),
            {node.rank: number for number, node in enumerate(here)},
            notes,
        )


def _of_file(nodes: Sequence[RankNode], source: str) -> Machine:
    machine = sources.tree(source)
    numbers = {node.host: machine.node_named(node.host) for node in nodes}
    absent = [host for host, number in numbers.items() if number is None]
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise InputError(f"{source} does not name {absent[0]}{more}, which Flux has")
    return machine.only(sorted(number for number in numbers.values() if number is not None))


def groups_of(scheduling: object) -> dict[str, tuple[str, ...]]:
    """The groups above each host in a JSON resource graph, widest first; empty without a graph, or if hosts
    differ in depth.
    """
    graph = scheduling.get("graph") if isinstance(scheduling, dict) else None
    vertices = graph.get("nodes") if isinstance(graph, dict) else None
    kinds: dict[str, str] = {}
    paths: dict[str, str] = {}
    for vertex in vertices if isinstance(vertices, list) else ():
        said: Mapping[str, Any] = vertex.get("metadata", {}) if isinstance(vertex, dict) else {}
        path = (said.get("paths") or {}).get("containment")
        if isinstance(path, str):
            kinds[path] = str(said.get("type"))
            if said.get("type") == "node":
                paths[str(said.get("name"))] = path
    found = {}
    for host, path in paths.items():
        parts = path.strip("/").split("/")[:-1]
        above = ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]
        groups = tuple(
            each for each in above if kinds.get(each) in ABOVE_NODES and kinds.get(each) != "cluster"
        )
        if groups:
            found[host] = groups
    depths = {len(groups) for groups in found.values()}
    return found if len(depths) == 1 else {}
