"""Compares plans that make room with the optimum, and measures how long a plan takes.

It measures (scipy comes with the tests)

- on random states of up to 128 nodes, for rules that count nodes (on the machine, in a rack, in parts of a
request): how much more plans cost than the optimum by HiGHS, and whether each makes room in a new state;
- on further states under rules that give links, whether each plan makes room, and how far its cost is from
its own bound;
- on 2,000 nodes with 700 jobs that may be requeued, or half of them moved, the CPU time of a plan.

It prints the targets that are missed, and then ends with exit code 1.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from itertools import pairwise

from making_room_states import Job, is_placed, question, racks
from measure import Options, Result
from topolane._engine import Machine, NoRoom, RoomPlan, State, make_room

WITHIN = 1.01
"""The most that a plan may cost, relative to the optimum."""
TARGET_MS = 100.0
JOBS = 700
REFUSED = 50
STAYS = 0.8
"""The fraction of jobs that stay, for rules that give links."""
DAY = 86_400.0
COUNTING: dict[str, dict[str, str]] = {
    "first-fit": {},
    "kueue-tas": {"within": "required:leaf"},
    "slurm-block": {},
}
"""Rules that count nodes, on 100 racks of 20, with the options of a request."""
LINKS = ("isolated", "jigsaw", "dedicated")
"""Rules that give links, on a fat tree of 2,000 nodes."""


def quantile(values: list[float], part: float) -> float:
    """The value that this fraction of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, math.ceil(part * len(values)) - 1)]


def verdict(is_met: bool) -> str:
    """The word for a target that is met or missed."""
    return "met" if is_met else "MISSED"


def against_optimum(states: int, seed: int) -> bool:
    """Prints how plans compare with the optimum. Returns whether all targets are met."""
    ratios: list[float] = []
    proven = impossible = differ = no_room = 0
    for number in range(states):
        asked = question(seed * 1_000_000 + number)
        plan, least = asked.plan(), asked.least()
        if isinstance(plan, NoRoom) or least is None:
            impossible += 1
            differ += not (isinstance(plan, NoRoom) and plan.impossible and least is None)
            continue
        no_room += not asked.makes_room(plan)
        ratios.append(1.0 if plan.cost <= least else plan.cost / least if least > 0 else math.inf)
        proven += plan.cost == plan.least
    share = sum(ratio <= WITHIN for ratio in ratios) / len(ratios)
    print(f"{states:,} states of up to 128 nodes, rules that count nodes, against HiGHS:")
    print(f"  plans within 1 % of the optimum: {share:.4%} ({verdict(share == 1)})")
    print(
        f"  worst cost: {max(ratios):.6f} optima; proven cheapest by the planner itself: {proven / len(ratios):.2%}"
    )
    print(f"  plans that make no room: {no_room} ({verdict(no_room == 0)})")
    print(f"  no plan: {impossible}, of these HiGHS says otherwise: {differ} ({verdict(differ == 0)})")
    return share == 1 and no_room == 0 and differ == 0


def filled(machine: Machine, policy: str, jobs: int, chance: random.Random) -> list[Job]:
    """Up to `count` jobs that a policy places, with a mean size that fills the machine; fewer if it refuses
    50 in a row.
    """
    state, running = State(machine), []
    refused = 0
    while len(running) < jobs and refused < REFUSED:
        cuts = sorted(chance.sample(range(1, machine.nodes), jobs - 1))
        for size in (after - before for before, after in pairwise([0, *cuts, machine.nodes])):
            placed = state.place(policy, size, id=len(running) + 1)
            if getattr(placed, "nodes", None) is None:
                refused += 1
                continue
            refused = 0
            state.hold(placed.nodes, links=placed.links)
            cost = size * chance.uniform(0, DAY)
            running.append((len(running) + 1, placed.nodes, placed.links, cost, None))
            if len(running) == jobs:
                break
    return running


def with_links(states: int, seed: int) -> bool:
    """Prints whether plans for rules that give links make room, and their distance from their bound."""
    machine = Machine.preset("fat-tree(radix=8)")
    gaps: list[float] = []
    no_room = none = 0
    for number in range(states):
        chance = random.Random(seed * 1_000_000 + number)
        policy = LINKS[number % len(LINKS)]
        jobs = filled(machine, policy, chance.randint(8, 60), chance)
        # Remove some jobs, so that scattered nodes are free.
        jobs = [job for job in jobs if chance.random() < STAYS]
        wanted = chance.randint(1, machine.nodes)
        plan = make_room(State(machine), policy, wanted, jobs)
        if isinstance(plan, NoRoom):
            none += 1
            continue
        no_room += not is_placed(machine, policy, wanted, jobs, plan)
        gaps.append(1.0 if plan.cost == plan.least else plan.cost / plan.least if plan.least else math.inf)
    proven = sum(gap == 1 for gap in gaps) / len(gaps)
    print(f"{states:,} states of 128 nodes, rules that give links:")
    print(f"  plans that make no room: {no_room} ({verdict(no_room == 0)}); no plan: {none}")
    print(f"  proven cheapest: {proven:.1%}; cost over bound: median {quantile(gaps, 0.5):.3f},", end=" ")
    print(f"p90 {quantile(gaps, 0.9):.3f}, worst {max(gaps):.3f}")
    return no_room == 0


def timed(
    policy: str, rounds: int, seed: int, *, moving: bool
) -> Iterator[tuple[int, float, RoomPlan | NoRoom]]:
    """Plans room for requests of several sizes on full machines. Yields the number of jobs, milliseconds of
    CPU time, and the plan.

    moving: first a tenth of the jobs leaves, and half of the others are moved instead of requeued, at a tenth
    of the cost.
    """
    machine = Machine.preset("fat-tree(radix=20)") if policy in LINKS else racks(100, 20)
    sizes = (4, 10, 16, 20) if policy in ("kueue-tas", "slurm-block") else (4, 16, 64, 256, 512)
    for number in range(rounds):
        chance = random.Random(seed * 1_000_000 + number)
        jobs = filled(machine, policy, JOBS, chance)
        movable = []
        if moving:
            jobs = [job for job in jobs if chance.random() < 0.9]
            movable = [job[0] for job in jobs[::2]]
            jobs[::2] = [(*job[:3], job[3] / 10, job[4]) for job in jobs[::2]]
        for wanted in sizes:
            state = State(machine)
            begun = time.process_time()
            plan = make_room(state, policy, wanted, jobs, movable=movable, **COUNTING.get(policy, {}))
            yield len(jobs), 1e3 * (time.process_time() - begun), plan


def on_2000_nodes(rounds: int, seed: int, *, moving: bool) -> bool:
    """Prints how long plans take on a large machine. Returns whether the target is met."""
    what = "a tenth of the jobs gone, half of the others movable" if moving else "all jobs requeued"
    print(f"2,000 nodes, {what}, CPU time of a plan in ms:")
    met = True
    for policy in (*COUNTING, *LINKS):
        rows = list(timed(policy, rounds, seed, moving=moving))
        times = [row[1] for row in rows]
        plans = [row[2] for row in rows if isinstance(row[2], RoomPlan)]
        gaps = [plan.cost / plan.least if plan.least > 0 else 1.0 for plan in plans]
        moved = sum(len(plan.moved) > 0 for plan in plans)
        is_met = quantile(times, 0.99) <= TARGET_MS
        met = met and is_met
        print(
            f"  {policy:12} {min(row[0] for row in rows)} jobs or more, {len(rows)} plans, {moved} with moves:"
            f" p50 {quantile(times, 0.5):.1f}, p99 {quantile(times, 0.99):.1f}"
            f" (at most {TARGET_MS:.0f}: {verdict(is_met)}); cost over bound: median {quantile(gaps, 0.5):.3f},"
            f" worst {max(gaps):.3f}; no plan: {len(rows) - len(plans)}"
        )
    return met


def measure(options: Options) -> Result:
    """Measures and prints everything."""
    met = [
        against_optimum(options.states, options.seed),
        with_links(options.more, options.seed),
        on_2000_nodes(options.rounds, options.seed, moving=False),
        on_2000_nodes(options.rounds, options.seed, moving=True),
    ]
    return Result(failed=not all(met))
