"""Compares what the jobs of a dragonfly lose to each other on its links, by policy and routing.

Runs are coupled, under EASY; each job draws one of four patterns. A job whose run takes c times as long as alone has a
communication slowdown of 1 + (c - 1) / f^2, the mean over its run (docs/explanation/contention.md). The placement itself
also decides how long a job communicates alone: `alone` is that time over the least that the links of its nodes allow, so
`whole` is what the network costs in all: alone times slowdown. Only jobs count that use links between switches under the
policies that spread, so jobs of more nodes than a switch has. The worst tenth is the mean of the tenth of the jobs with
the highest values.

Targets: under the minimal routing `isolated` and `least-slowdown` have less slowdown than `level-spread` and `random`, in
the mean and in the worst tenth, with each seed.
"""

from __future__ import annotations

import dataclasses
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from typing import Any

import numpy as np
import polars
from measure import Options, Result
from topolane import Network, Settings, Shape, _engine, sources
from topolane._engine import Traffic, contend
from topolane.cli import common

OURS, OTHERS = ("isolated", "least-slowdown"), ("level-spread", "random")
COLUMNS = ("slowdown", "worst slowdown", "alone", "whole", "worst whole")


@dataclasses.dataclass(frozen=True)
class Of:
    """What distinguishes a run."""

    load: str
    routing: str
    policy: str
    seed: int


def measure(options: Options) -> Result:
    """Runs every policy under every routing on every load, with each seed."""
    policies = options.policies.split(",")
    runs = [
        Of(load, routing, policy, seed)
        for load in options.loads
        for routing in options.routings
        for policy in policies
        for seed in range(1, options.seeds + 1)
    ]
    figures = {}
    with common.counting_bar("simulating", len(runs)) as done, ProcessPoolExecutor(options.jobs) as pool:
        found = pool.map(figures_of, runs, repeat(options.machine), repeat(options.limit))
        for run, values in zip(runs, found):
            figures[run] = values
            done(1)
    facts: list[dict[str, Any]] = [
        dataclasses.asdict(run) | dict(zip(COLUMNS, values)) for run, values in figures.items()
    ]
    missed = False
    for load in options.loads:
        for routing in options.routings:
            rows = []
            for policy in policies:
                own = np.array(
                    [values for run, values in figures.items() if run == Of(load, routing, policy, run.seed)]
                )
                rows.append(
                    [
                        policy,
                        *(
                            f"{mean:.3f} ({low:.3f} to {high:.3f})"
                            for mean, low, high in zip(own.mean(0), own.min(0), own.max(0))
                        ),
                    ]
                )
            print(f"{load}, {routing}: mean of {options.seeds} seeds (least to most)")
            common.print_table(["policy", *COLUMNS], rows)
            for ours in set(OURS) & set(policies):
                is_met = all(
                    figures[Of(load, routing, ours, seed)][column]
                    < figures[Of(load, routing, other, seed)][column]
                    for other in set(OTHERS) & set(policies)
                    for seed in range(1, options.seeds + 1)
                    for column in (0, 1)
                )
                missed |= routing.startswith("minimal") and not is_met
                print(
                    f"{ours} has less slowdown than {' and '.join(OTHERS)}, each seed: {'yes' if is_met else 'NO'}"
                )
            print()
    return Result(facts=facts, failed=missed)


def figures_of(of: Of, machine: str, limit: int) -> tuple[float, ...]:
    """The values of COLUMNS for one run."""
    fabric = sources.machine(machine)
    jobs = sources.workload(of.load, fabric.nodes, seed=of.seed, shape=Shape(limit=limit))
    network = Network(routing=of.routing)
    settings = Settings(policy=of.policy, queue="easy", seed=of.seed, network=network)
    outcome = _engine.simulate(jobs, fabric, settings)
    table = polars.DataFrame(outcome.tables()["jobs"])
    routing = fabric.routing(of.routing, of.seed)
    slowdown, alone = [], []
    known: dict[tuple[str, int], Traffic] = {}
    most = max(end - start for start, end, _ in fabric.groups(1))
    to_node = float(routing.capacity[0])
    for nodes, pattern, times in zip(
        outcome.placements(), table["pattern"], table["contention"], strict=True
    ):
        if len(nodes) <= most:
            continue
        key = (pattern, len(nodes))
        if key not in known:
            known[key] = Traffic.pattern(pattern, len(nodes), of.seed)
        slowdown.append(1 + (times - 1) / network.communication**2)
        time = contend(routing, "congestion", [(nodes.tolist(), known[key])]).times_alone[0]
        alone.append(time * to_node / most_of_a_node(known[key]))
    one, other = np.array(slowdown), np.array(alone)
    whole = one * other
    return one.mean(), worst(one), other.mean(), whole.mean(), worst(whole)


def most_of_a_node(traffic: Traffic) -> float:
    """The most bytes that a rank sends or receives in an iteration; each is on a node of its own."""
    froms, tos, sizes, _ = traffic.arrays()
    return float(max(np.bincount(ends, weights=sizes).max() for ends in (froms, tos)))


def worst(values: np.ndarray) -> float:
    """The mean of the highest tenth."""
    return float(np.sort(values)[-max(1, len(values) // 10) :].mean())
