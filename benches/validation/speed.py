"""Compares the speed of `max_min` and SimGrid's solver on the same flow sets, on one core, for growing
numbers of flows.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import topolane
from cases import Pair, Ways
from components import Programs
from rates import simgrid

COUNTS = (1_000, 10_000, 100_000)
MACHINE = "cab"


@dataclass(frozen=True)
class SpeedRow:
    """CPU seconds to compute the rates of one flow set, as medians."""

    routing: str
    flows: int
    ours: float
    simgrid: float
    ratio: float
    """SimGrid's time divided by Topolane's."""
    simgrid_starting: float
    """CPU seconds that SimGrid needs to start the flows, which are not counted."""
    difference: float
    """Largest relative difference of a rate."""


def _median_cpu(repeats: int, what: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        what()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def _pairs(rng: np.random.Generator, nodes: int, count: int) -> list[Pair]:
    froms = rng.integers(nodes, size=count)
    tos = (froms + rng.integers(1, nodes, size=count)) % nodes
    return list(zip(froms.tolist(), tos.tolist()))


def speed_rows(programs: Programs, counts: tuple[int, ...], repeats: int) -> list[SpeedRow]:
    """Rows for flows between random nodes of one machine, under a static routing and the adaptive one."""
    # Use one core for both, so that no thread runs elsewhere.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    machine = topolane.machine(MACHINE)
    rows = []
    for routing in ("d-mod-k", "adaptive"):
        for count in counts:
            ways = Ways(machine.routing(routing, 0))
            flows = _pairs(np.random.default_rng(count), machine.nodes, count)
            ways.add(flows)
            capacity, arrays = ways.capacity(), ways.arrays(flows)
            # A separate process for each, because SimGrid takes very long to remove many flows.
            theirs = [simgrid(programs, ways, [flows])[0] for _ in range(repeats)]
            ours = _median_cpu(repeats, lambda c=capacity, a=arrays: topolane._engine.max_min(c, *a))
            solving = statistics.median(answer.solving for answer in theirs)
            starting = statistics.median(answer.starting for answer in theirs)
            apart = np.abs(ways.rates(flows) - theirs[0].rates) / theirs[0].rates
            rows.append(SpeedRow(routing, count, ours, solving, solving / ours, starting, float(apart.max())))
    return rows
