"""Compares `max-min` with SimGrid: the rate of every flow of random sets on random trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cases import ROUTINGS, SHAPES, Job, Pair, Shape, Ways, flow_set, weights
from components import Programs, run
from topolane._engine import Traffic, contend


@dataclass(frozen=True)
class RateRow:
    """The difference between the rates on one machine under one routing."""

    machine: str
    nodes: int
    routing: str
    weights: str
    """`1`: all flows have the same weight. `bytes`: weights are the flows' parts of what their node sends."""
    sets: int
    flows: int
    difference: float
    """Largest |Topolane - SimGrid| / SimGrid."""


@dataclass(frozen=True)
class Shared:
    """SimGrid's result for one flow set."""

    solving: float
    """CPU seconds to share out the bandwidth."""
    starting: float
    """CPU seconds to start the flows before that."""
    rates: np.ndarray
    """Bytes per second of each flow."""


def simgrid(programs: Programs, ways: Ways, sets: list[list[Pair]], timeout: float = 600) -> list[Shared]:
    """The rates of each flow set under SimGrid, with one platform for all of them."""
    nodes = sorted({node for pair in ways.of for node in pair})
    hosts = {node: index for index, node in enumerate(nodes)}
    lines = [ways.platform(hosts), str(len(sets))]
    for flows in sets:
        lines.append(" ".join([str(len(flows)), *(f"{hosts[a]} {hosts[b]}" for a, b in flows)]))
    command = [programs.simgrid_rates(), "--log=root.thresh:warning"]
    answers = []
    for line in run(command, "\n".join(lines) + "\n", timeout).splitlines():
        solving, starting, *rates = line.split(" ")
        answers.append(Shared(float(solving), float(starting), np.array(rates, dtype=float)))
    return answers


def compare_rates(programs: Programs, shape: Shape, routing: str, sets: int, seed: int) -> RateRow:
    """Compares random flow sets on one machine under one routing."""
    machine = shape.machine()
    rng = np.random.default_rng(seed)
    ways = Ways(machine.routing(routing, seed))
    flow_sets = [flow_set(rng, machine.nodes) for _ in range(sets)]
    for flows in flow_sets:
        ways.add(flows)
    worst, count = 0.0, 0
    for flows, theirs in zip(flow_sets, simgrid(programs, ways, flow_sets)):
        ours = ways.rates(flows)
        worst = max(worst, float(np.max(np.abs(ours - theirs.rates) / theirs.rates)))
        count += len(flows)
    return RateRow(shape.name, machine.nodes, routing, "1", sets, count, worst)


def compare_jobs(programs: Programs, shape: Shape, routing: str, sets: int, seed: int) -> RateRow:
    """Compares the model `max-min` for random jobs that run together, with their weights."""
    machine = shape.machine()
    ways_of = machine.routing(routing, seed)
    worst, count = 0.0, 0
    for number in range(sets):
        rng = np.random.default_rng([seed, number])
        jobs = weighted_jobs(rng, machine.nodes)
        ways = Ways(ways_of)
        for job in jobs:
            ways.weight.update(weights(job))
        flows = list(ways.weight)
        ways.add(flows)
        ours = np.concatenate(contend(ways_of, "max-min", jobs).rates)
        [theirs] = simgrid(programs, ways, [flows])
        worst = max(worst, float(np.max(np.abs(ours - theirs.rates) / theirs.rates)))
        count += len(flows)
    return RateRow(shape.name, machine.nodes, routing, "bytes", sets, count, worst)


def weighted_jobs(rng: np.random.Generator, nodes: int) -> list[Job]:
    """Two jobs, each on every other node, with random flows whose sizes span three orders of magnitude."""
    jobs: list[Job] = []
    for own in (list(range(0, nodes, 2)), list(range(1, nodes, 2))):
        pairs = sorted(set(flow_set(rng, len(own))))
        sizes = 10 ** rng.uniform(3, 6, size=len(pairs))
        froms, tos = zip(*pairs)
        jobs.append((own, Traffic.of(len(own), list(froms), list(tos), sizes.tolist())))
    return jobs


def rate_rows(programs: Programs, sets: int) -> list[RateRow]:
    """Rows for all machines under all routings, with `sets` flow sets each, and a third of that number of job
    sets.
    """
    return [
        compare(programs, shape, routing, count, 100 * index + place)
        for compare, count in ((compare_rates, sets), (compare_jobs, max(1, sets // 3)))
        for index, shape in enumerate(SHAPES)
        for place, routing in enumerate(ROUTINGS)
    ]
