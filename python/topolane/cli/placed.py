"""Reads placed jobs: their nodes and their traffic."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from topolane import reading, texts
from topolane._engine import InputError, Machine, Traffic
from topolane.cli.place import check_keys, identity_of, member, nodes_of, ranks_so_far, read

KEYS = {"id", "nodes", "cores", "memory", "share", "pattern", "traffic", "links", "bandwidth_share"}


@dataclasses.dataclass(frozen=True)
class Placed:
    """One job: a rank on each of its nodes, in their order."""

    id: str
    nodes: list[int]
    traffic: Traffic


def jobs(machine: Machine, file: str, *, pattern: str, seed: int = 0) -> list[Placed]:
    """The jobs in a file, which ends in `.csv` or holds JSON (`-`: JSON on standard input).

    JSON is a state as `topolane place` reads it; only `running` is used. CSV has the columns id and nodes (a
    hostlist). A job may name its `pattern`, or a file of `traffic` relative to the jobs file. Other jobs have
    `pattern`. Raises InputError, naming file and job.
    """
    folder = Path(file).parent
    if Path(file).suffix.lower() == ".csv":
        rows = [
            (f"{file}:{line}", {name: cell for name, cell in row.items() if cell})
            for line, row in reading.csv_rows(file, ("id", "nodes"), ("pattern", "traffic"))
        ]
    else:
        source = "standard input" if file == "-" else file
        running = member(read(file), "running", list, default=[])
        rows = [(f"{source}: running[{index}]", row) for index, row in enumerate(running)]
    found: dict[str, Placed] = {}
    ranks = 0
    for where, row in rows:
        check_keys(row, KEYS, where)
        job = _job(machine, row, where, folder, pattern, seed)
        ranks = ranks_so_far(ranks, job.nodes, where)
        if job.id in found:
            raise InputError(f"{where}: there is a job {job.id} already")
        found[job.id] = job
    if not found:
        raise InputError(f"{file}: no job is running")
    return list(found.values())


def _job(machine: Machine, row: dict[str, Any], where: str, folder: Path, pattern: str, seed: int) -> Placed:
    identity = identity_of(row, where)
    nodes = nodes_of(machine, row, "nodes", where)
    if not nodes:
        raise InputError(f"{where}: 'nodes' names no node")
    for node in nodes:
        if node >= machine.nodes:
            raise InputError(f"{where}: 'nodes': node {node} is not among the {machine.nodes} nodes")
    try:
        own = member(row, "pattern", str)
        file = member(row, "traffic", str)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if own is not None and file is not None:
        raise InputError(f"{where}: 'pattern' and 'traffic' name two kinds of traffic")
    try:
        if file is None:
            traffic = Traffic.pattern(own or pattern, len(nodes), seed)
        else:
            content = texts.read_bytes(folder / file, texts.LARGE)
            traffic = Traffic.parse(texts.decoded(content, file), file)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if traffic.ranks > len(nodes):
        raise InputError(
            f"{where}: {file} has {traffic.ranks} ranks, but the job has {len(nodes)} nodes, one rank on each"
        )
    return Placed(identity, nodes, traffic)
