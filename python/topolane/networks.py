"""Other networks over the nodes of a machine, such as the network to its storage.

A machine file names them in tables `[[network]]`. Policies place jobs by the machine alone; traffic of the
jobs on another network is evaluated afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from topolane._engine import InputError, Machine, OtherNetwork, Traffic
from topolane.texts import shown
from topolane.units import plural


def read(machine: Machine, source: str | Path, read_file: Callable[[Path], Machine]) -> Machine:
    """The machine of the file `source`, with the other networks that the file names.

    Nodes are matched by their names. `Machine.notes` says which are not on a network, and which hosts of it are neither nodes of
    the machine nor servers. Raises InputError, with file and line, for a network that cannot be read, a server that is not on it,
    and a network without a node of the machine.
    """
    if not machine.network_entries:
        return machine
    networks, notes = [], list(machine.notes)
    for name, file, servers, (line, servers_line) in machine.network_entries:
        path = Path(source).parent / file
        what = f"network {shown(name)}"
        try:
            there = read_file(path)
        except InputError as error:
            raise InputError(f"{source}:{line}: {what}: {error}") from error
        try:
            network = OtherNetwork(name, str(path), there, servers)
        except InputError as error:
            raise InputError(f"{source}:{servers_line}: {what}: {error}") from error
        on_it = network.nodes_of(machine)
        if all(node is None for node in on_it):
            raise InputError(f"{source}:{line}: {what}: no node of the machine is in {path}")
        notes += [f"{what}: {note}" for note in there.notes]
        if not there.knows_cables:
            notes.append(f"{what}: {path} says nothing of cables: one of 4 GB/s is assumed everywhere")
        missing = [machine.node_name(node) for node, other in enumerate(on_it) if other is None]
        if missing:
            notes.append(f"{what}: {_several(missing, 'node')} not on it")
        known = {*on_it, *network.servers}
        others = [there.node_name(host) for host in range(there.nodes) if host not in known]
        if others:
            notes.append(f"{what}: {_several(others, 'host')} neither in the machine nor in 'servers'")
        networks.append(network)
    return machine.with_notes(notes).with_networks(networks)


def _several(names: Sequence[str], kind: str) -> str:
    if len(names) == 1:
        return f"1 {kind}, {shown(names[0])}, is"
    return f"{plural(len(names), kind)}, such as {shown(names[0])}, are"


def named(machine: Machine, name: str) -> OtherNetwork:
    """The other network with this name. Raises InputError if there is none."""
    for network in machine.networks:
        if network.name == name:
            return network
    names = ", ".join(network.name for network in machine.networks)
    known = f"there is {names}" if names else "its file has no [[network]]"
    raise InputError(f"machine {machine.name} has no network {shown(name)}; {known}")


def sent(
    machine: Machine, network: OtherNetwork, nodes: Sequence[int], traffic: Traffic
) -> tuple[list[int], Traffic]:
    """The traffic of a job over another network: the host of each rank on that network, and the traffic
    between these ranks.

    nodes: the machine's node of each rank of `traffic`. If the network has servers, `traffic` is not used:
    each node of the job on the network sends one byte to every server and gets one back. Without servers, the
    part of `traffic` between nodes on the network is sent.
    """
    on_it = network.nodes_of(machine)
    hosts = [on_it[node] for node in nodes]
    kept = [rank for rank, host in enumerate(hosts) if host is not None]
    here = [host for host in hosts if host is not None]
    if not network.servers:
        return here, _between(kept, traffic)
    here = list(dict.fromkeys(here))
    clients, servers = range(len(here)), range(len(here), len(here) + len(network.servers))
    pairs = [(client, server) for client in clients for server in servers]
    pairs += [(server, client) for client, server in pairs]
    senders, receivers = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    between = Traffic.of(servers.stop, senders, receivers, [1.0] * len(pairs))
    return here + network.servers, between


def _between(kept: Sequence[int], traffic: Traffic) -> Traffic:
    """The traffic between the kept ranks, which are renumbered from 0."""
    number = {rank: place for place, rank in enumerate(kept)}
    rows = [
        (number[sender], number[receiver], sent, messages)
        for sender, receiver, sent, messages in zip(*(array.tolist() for array in traffic.arrays()))
        if sender in number and receiver in number
    ]
    columns = [list(column) for column in zip(*rows)] or [[], [], [], []]
    return Traffic.of(len(kept), *columns)
