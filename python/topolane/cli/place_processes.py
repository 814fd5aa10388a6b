"""`topolane place` for a request of processes: how many of them on each node."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import click

from topolane._engine import InputError, Profile, Traffic, rank_k
from topolane.cli import common
from topolane.cli.place import check_keys, links_of, member, nodes_of, shown, spare_of, whole

if TYPE_CHECKING:
    from topolane._engine import Machine, Rank, State
    from topolane.policy import Policy

KEYS = {
    "processes",
    "pattern",
    "id",
    "eligible",
    "shared",
    "iterations",
    "core_seconds",
    "memory_traffic",
    "memory",
}

MOST = 1e30
"""Largest amount: products of several amounts stay finite."""


@dataclasses.dataclass(frozen=True)
class How:
    """The options of the command line."""

    cores: str
    routing: str
    model: str
    policy: str | Policy
    seed: int


def place(fabric: Machine, state: State, given: dict[str, Any], how: How, *, as_json: bool) -> None:
    """Predicts every k, and prints the table and the nodes of the best k. Exit code 1 if none fits."""
    request = given["request"]
    check_keys(request, KEYS, "request")
    ranks = rank_k(
        state,
        fabric.routing(how.routing, how.seed),
        how.policy,
        profile_of(request, how.seed),
        cores=how.cores,
        model=how.model,
        jobs=communicating(fabric, given, how.seed),
        shared=member(request, "shared", bool, default=False),
        id=whole(request, "id", "request") or 0,
        eligible=nodes_of(fabric, request, "eligible", "request"),
        seed=how.seed,
    )
    chosen = next((rank for rank in ranks if rank.chosen), None)
    if as_json:
        common.print_json(as_object(fabric, ranks, chosen))
    else:
        show(ranks)
        hosts = "not placed: no number of cores per node fits"
        if chosen is not None and chosen.decision is not None:
            hosts = f"nodes      {fabric.hostlist(chosen.decision.nodes)}, {chosen.k} cores of each"
        click.echo(hosts)
    if chosen is None:
        sys.exit(1)


def profile_of(request: dict[str, Any], seed: int) -> Profile:
    """The profile of the processes of a request."""
    processes = whole(request, "processes", "request", least=1)
    if processes is None:
        raise InputError("request: 'processes' is missing")
    pattern = member(request, "pattern", str, default="alltoall")
    memory = whole(request, "memory", "request", most=2**63 - 1) or 0
    return Profile(
        processes,
        pattern,
        iterations=amount(request, "iterations", 1.0),
        core_seconds=amount(request, "core_seconds", 0.0),
        memory_traffic=amount(request, "memory_traffic", 0.0),
        memory=memory,
        seed=seed,
    )


def amount(request: dict[str, Any], key: str, default: float) -> float:
    """A number of at least 0 in a request."""
    value = request.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        raise InputError(f"request: {key!r} must be a number from 0 to {MOST:g}, not {shown(value)}")
    return float(value)


def communicating(fabric: Machine, given: dict[str, Any], seed: int) -> list[tuple[list[int], Traffic]]:
    """The running jobs that give their pattern: the node of every process, and the traffic."""
    jobs = []
    for index, job in enumerate(member(given, "running", list, default=[])):
        where = f"running[{index}]"
        pattern = member(job, "pattern", str)
        if pattern is None:
            continue
        nodes = nodes_of(fabric, job, "nodes", where) or []
        processes = whole(job, "processes", where, least=1, most=2**24) or len(nodes)
        each = -(-processes // len(nodes)) if nodes else 1
        try:
            traffic = Traffic.pattern(pattern, processes, seed)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        jobs.append(([nodes[rank // each] for rank in range(processes)], traffic))
    return jobs


COLUMNS = ("total", "computation", "collective", "point_to_point")


def as_object(fabric: Machine, ranks: list[Rank], chosen: Rank | None) -> dict[str, Any]:
    """The answer for `--json`."""
    listed = [
        {
            "cores_per_node": rank.k,
            "nodes": None if rank.decision is None else rank.decision.nodes,
            **{column: getattr(rank, column) for column in COLUMNS},
            "refusal": rank.refusal,
            "why": rank.why,
        }
        for rank in ranks
    ]
    if chosen is None or chosen.decision is None:
        return {"placed": False, "ranks": listed}
    found = chosen.decision
    hosts = [fabric.node_name(node) for node in found.nodes]
    placed = {"placed": True, "cores_per_node": chosen.k, "nodes": found.nodes, "hosts": hosts}
    return {**placed, **links_of(found), **spare_of(found), "ranks": listed}


def show(ranks: list[Rank]) -> None:
    """Prints predicted seconds for every k."""
    lines = []
    for rank in ranks:
        seconds = [getattr(rank, column) for column in COLUMNS]
        cells = ["-" if value is None else f"{value:,.4g}" for value in seconds]
        remark = "chosen" if rank.chosen else f"{rank.refusal}: {rank.why}" if rank.refusal else ""
        lines.append(
            [str(rank.k), "-" if rank.decision is None else str(len(rank.decision.nodes)), *cells, remark]
        )
    common.print_table(
        ("cores per node", "nodes", "total (s)", "computation", "collective", "point-to-point", "remark"),
        lines,
        text_columns=("remark",),
    )
