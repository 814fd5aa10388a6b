"""Measures how long a plan for 100 programs on 10 sites takes."""

from __future__ import annotations

import time

import numpy as np
from measure import Options, Row
from topolane import _engine
from topolane.mpi.counts import Matrix
from topolane_sites.character import Character
from topolane_sites.model import Guest, Host, WanLink
from topolane_sites.planner import cut_of, machine_of, make
from topolane_sites.problem import Problem, ProgramGroup

LIMIT = 100.0
"""In milliseconds."""


def choosing(options: Options) -> list[Row]:
    """Figures for the engine's choice alone, and for the whole plan: cuts by the engine, choice, guests to hosts."""
    runs = 3 if options.quick else 15
    rows = [row for policy in ("predicted-time", "inter-site-traffic") for row in _rows(policy, runs)]
    return rows + _rows("predicted-time", runs, (1.0, 1.5, 2.0))


def _rows(policy: str, runs: int, speeds: tuple[float, ...] = (1.0,)) -> list[Row]:
    problem = _problem(speeds)
    named = policy if len(speeds) == 1 else f"{policy}, hosts of {len(speeds)} speeds"
    machine, nodes = machine_of(problem)
    asked = [_asked(group, nodes) for group in problem.groups]
    figures = {
        "the engine": (lambda: _engine.choose_sites(machine, asked, policy=policy), LIMIT),
        "the whole plan": (lambda: make(problem, policy), None),
    }
    return [
        Row(
            "choosing",
            f"{named}: 100 programs on 10 sites, {words}",
            "ms",
            tuple(_milliseconds(call) for _ in range(runs)),
            limit,
        )
        for words, (call, limit) in figures.items()
    ]


def _milliseconds(call) -> float:
    began = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - began)


def _asked(group: ProgramGroup, nodes: dict[str, int]) -> _engine.SiteProgram:
    weights = np.ones((len(group.guests), len(group.guests))) - np.eye(len(group.guests))
    return _engine.SiteProgram(
        len(group.guests),
        cut_of(group, weights),
        cores=4,
        memory=1 << 30,
        nodes=[nodes[guest.host or ""] for guest in group.guests],
        compute=group.character.compute,
        in_mpi=group.character.in_mpi,
    )


def _problem(speeds: tuple[float, ...]) -> Problem:
    """10 fully joined sites of 16 hosts; 100 scattered programs of 4 to 16 guests, a third of them with heavy
    traffic.
    """
    draw = np.random.default_rng(7)
    sites = [f"s{number}" for number in range(10)]
    hosts = tuple(
        Host(f"{site}h{number}", site, 48, 1 << 38, speed=speeds[number % len(speeds)])
        for site in sites
        for number in range(16)
    )
    links = tuple(
        WanLink((a, b), float(draw.uniform(0.001, 0.02)), 1.25e8)
        for at, a in enumerate(sites)
        for b in sites[:at]
    )
    room = [host.name for host in hosts for _ in range(host.cores // 4)]
    draw.shuffle(room)
    groups = []
    for number in range(100):
        count = int(draw.integers(4, 17))
        guests = tuple(Guest(f"p{number}g{at}", "", 4, 1 << 30, room.pop()) for at in range(count))
        ranks = 4 * count
        turns, size = (200.0, 1e4) if number % 3 == 0 else (2.0, 1e3)
        sender = np.repeat(np.arange(ranks), 4)
        receiver = (sender + np.tile([1, -1, 4, -4], ranks)) % ranks
        matrix = Matrix(ranks, sender, receiver, np.tile([turns, turns * size, turns], (len(sender), 1)))
        like = Character(0.2, 0.8) if number % 3 == 0 else Character(0.9, 0.1)
        of_rank = np.arange(ranks) // 4
        groups.append(
            ProgramGroup((f"p{number}",), guests, matrix, of_rank, (), 3600.0, float("inf"), character=like)
        )
    return Problem(tuple(sites), hosts, links, frozenset(), tuple(groups), (), {})
