"""Writes the file of forwarding tables for jobs that own links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from topolane import files, texts
from topolane._engine import DedicatedRoutes, InputError, Machine
from topolane.cluster.allocation import Allocation
from topolane.cluster.links import links_in
from topolane.slurm import links_out
from topolane.slurm.plugin_machine import ReadMachine, nodes_in, read_machine

Row: TypeAlias = tuple[str, Sequence[int], Sequence[int]]
"""A job, its nodes and its links."""


def write(
    out: Path,
    machines: Sequence[Path],
    jobs: Mapping[int, Allocation],
    service: str | None = None,
    service_uplinks: int = 0,
) -> tuple[dict[int, str], tuple[str, ...]]:
    """Writes the file of tables. Returns the jobs that cannot have routes of their own, with the reasons, and
    notes as sentences.

    machines: the machine file of topolane.conf, or both; the first must be output of ibnetdiscover. jobs:
    their nodes and links, numbered by the machine of these files; a node listed for two jobs belongs to the
    earlier one. service: the hosts of storage and services as a host list. Raises InputError.
    """
    read, source = read_machine(machines), str(machines[0])
    net = texts.decoded(read.contents[0], source)
    if Machine.format_of(net, source) != "ibnetdiscover":
        raise InputError(f"--machine {source}: forwarding tables need the output of ibnetdiscover")
    machine = read.first
    try:
        servers = [] if service is None else machine.nodes_named(service)
    except InputError as error:
        raise InputError(f"--service {service}: {error}") from error
    rows, skipped, notes = _rows(read, jobs, source)

    def made(rows: Sequence[Row]) -> DedicatedRoutes:
        return DedicatedRoutes(machine, rows, servers, service_uplinks)

    try:
        routes = made(rows)
    except InputError:
        # A job that does not fit must not cost the other jobs their routes.
        kept: list[Row] = []
        routes = made(kept)
        for row in rows:
            try:
                routes = made([*kept, row])
                kept.append(row)
            except InputError as error:
                skipped[int(row[0])] = str(error)
    files.write(out, routes.tables(net, source).text(), mode=0o644)
    return skipped, notes


def _rows(
    read: ReadMachine, jobs: Mapping[int, Allocation], source: str
) -> tuple[list[Row], dict[int, str], tuple[str, ...]]:
    """The jobs with nodes and links numbered by the first machine file, the jobs for which that is impossible
    with the reasons, and notes.
    """
    if read.first is read.machine:
        return [(str(job), sorted(own.nodes), own.links) for job, own in jobs.items()], {}, ()
    nodes, links = nodes_in(read.first, read.machine), links_in(read.first, read.machine)
    rows: list[Row] = []
    skipped: dict[int, str] = {}
    absent: set[int] = set()
    for job, own in jobs.items():
        if any(node >= len(nodes) for node in own.nodes) or any(link >= len(links) for link in own.links):
            skipped[job] = "it has a node or a link that the machine does not have"
            continue
        absent.update(node for node in own.nodes if nodes[node] is None)
        here = [node for node in map(nodes.__getitem__, sorted(own.nodes)) if node is not None]
        have = [link for link in map(links.__getitem__, own.links) if link is not None]
        if not here:
            skipped[job] = f"{source} has none of its nodes"
        elif len(have) < len(own.links):
            lost = next(link for link in own.links if links[link] is None)
            skipped[job] = f"{source} has no link {links_out.names(read.machine, [lost])[0]}"
        else:
            rows.append((str(job), sorted(here), have))
    if not absent:
        return rows, skipped, ()
    hosts = read.machine.hostlist(sorted(absent))
    return rows, skipped, (f"{source} does not have {hosts}: no routes of jobs lead there",)
