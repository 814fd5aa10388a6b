"""Maps ranks to nodes, and writes the map in the formats of launchers."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, Protocol

from topolane._engine import InputError, Machine, Mapping, Traffic, map_ranks

MOST_RANKS = 65_536
"""The most ranks of a map; more would take minutes."""


class MappedRanks(Protocol):
    """An object that knows the host and core of each rank."""

    @property
    def hosts(self) -> list[str]:
        """The host of each rank."""

    @property
    def cores(self) -> list[int]:
        """The index of each rank on its node, from 0."""


@dataclasses.dataclass(frozen=True)
class Mapped:
    """The nodes and cores of a job's ranks."""

    machine: Machine
    nodes: list[int]
    """The node of each rank."""
    cores: list[int]
    """The index of each rank on its node, from 0."""
    mapping: Mapping

    @property
    def hosts(self) -> list[str]:
        """The host of each rank."""
        return [self.machine.node_name(node) for node in self.nodes]

    def facts(self) -> dict[str, Any]:
        """Facts about the map and its cost, for JSON; bytes are those of one iteration."""
        mapping = self.mapping
        return {
            "machine": self.machine.name,
            "ranks": len(self.nodes),
            "hop_bytes": mapping.hop_bytes,
            "rank_order_hop_bytes": mapping.rank_order,
            "found_by": mapping.by,
            "bytes_by_hops": [
                {"hops": hops, "rank_order": before, "mapped": after}
                for hops, before, after in mapping.crossed
            ],
            "portfolio": [{"name": name, "hop_bytes": value} for name, value in mapping.members],
            "nodes": self.nodes,
            "hosts": self.hosts,
            "cores": self.cores,
        }


def place_ranks(
    machine: Machine,
    traffic: Traffic,
    nodes: list[int],
    ranks: int,
    *,
    ranks_per_node: int = 1,
    effort: str = "eco",
    seed: int = 0,
    threads: int = 0,
    node_links: bool = False,
) -> Mapped:
    """Maps `ranks` ranks to `nodes`, `ranks_per_node` on each, for the fewest hop-bytes.

    For comparison, the result also has the cost of rank order, which fills one node after the other. Raises
    InputError for traffic of more ranks than the job has, and for nodes that cannot hold the ranks.
    """
    if ranks > MOST_RANKS:
        raise InputError(f"{ranks} ranks are more than the {MOST_RANKS} that are mapped")
    if traffic.ranks > ranks:
        raise InputError(f"the traffic is that of {traffic.ranks} ranks, but the job has {ranks}")
    if ranks > ranks_per_node * len(nodes):
        raise InputError(
            f"{ranks} ranks do not fit on {len(nodes)} nodes with {ranks_per_node} ranks on each"
        )
    for node, count in collections.Counter(nodes).items():
        if count > 1:
            raise InputError(f"node {machine.node_name(node)} is named {count} times")
    whole = traffic if traffic.ranks == ranks else Traffic.of(ranks, *traffic.arrays())
    slots = [node for node in nodes for _ in range(ranks_per_node)]
    mapping = map_ranks(
        machine, slots, whole, effort=effort, seed=seed, threads=threads, node_links=node_links
    )
    where = [slots[slot] for slot in mapping.slots]
    held: dict[int, int] = {}
    cores = []
    for node in where:
        cores.append(held.get(node, 0))
        held[node] = cores[-1] + 1
    return Mapped(machine, where, cores, mapping)


def rankfile(mapped: MappedRanks) -> str:
    """The map as Open MPI's rankfile, for `mpirun --rankfile FILE`. A slot is the number of a core on the
    host.
    """
    rows = enumerate(zip(mapped.hosts, mapped.cores))
    return "".join(f"rank {rank}={host} slot={core}\n" for rank, (host, core) in rows)


def hostfile(mapped: MappedRanks) -> str:
    """The map with one host per line, in the order of the ranks.

    For MPICH and its relatives: `mpiexec -f FILE`; for Open MPI: `mpirun --hostfile FILE --map-by seq`.
    """
    return "".join(f"{host}\n" for host in mapped.hosts)


FORMATS = {"rankfile": rankfile, "hostfile": hostfile, "slurm-arbitrary": hostfile}
"""Slurm also reads one host per line, with `SLURM_HOSTFILE=FILE srun --distribution=arbitrary`."""
