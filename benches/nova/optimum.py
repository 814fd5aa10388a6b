"""Measures how often a policy, asked for one server after another, reaches the least possible hops."""

from __future__ import annotations

import random

import numpy as np
from measure import Options, Row
from numpy.typing import NDArray
from topolane._engine import Machine, State

POLICIES = ("hop-bytes-exact", "hop-bytes", "bunch")
SHAPES = ((8, 18, 1), (4, 9, 4))
"""Leaves per pod, hosts per leaf, and pods: one machine with a single level of switches above the leaves, and
one with two.
"""


def optimum(options: Options) -> list[Row]:
    """The figures for 10,000 random states, with a part of the hosts in use, some members running, and up to
    40 more requested.
    """
    states = 200 if options.quick else 10_000
    rows = []
    for leaves, hosts, pods in SHAPES:
        name = f"{pods * leaves} leaves of {hosts}" + (f" in {pods} pods" if pods > 1 else "")
        gaps = _gaps(_machine(leaves, hosts, pods), leaves, hosts, pods, states // len(SHAPES))
        for policy in POLICIES:
            own = np.array(gaps[policy])
            limit = 0.99 if policy == "hop-bytes-exact" else None
            reached = float(np.mean(own == 0))
            missed = int(np.sum(own > 0))
            what = f"{name}, {policy}: states of {len(own):,} at the optimum"
            rows.append(Row("optimum", what, "of 1", (reached,), limit, more_is_better=True))
            rows.append(
                Row(
                    "optimum",
                    f"{name}, {policy}: worst of the {missed:,} others, hops above it",
                    "x",
                    (1 + float(own.max()),),
                )
            )
    return rows


def _machine(leaves: int, hosts: int, pods: int) -> Machine:
    ways = [(pod, leaf) for pod in range(pods) for leaf in range(leaves)]
    return Machine.of(
        "cloud",
        [
            (
                ["cloud", f"pod{pod}", f"leaf{pod}.{leaf}"],
                [f"host{pod}.{leaf}.{host}" for host in range(hosts)],
            )
            for pod, leaf in ways
        ],
    )


def _gaps(machine: Machine, leaves: int, hosts: int, pods: int, states: int) -> dict[str, list[float]]:
    """For each policy and state: the hops above the least, relative to the least."""
    gaps: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    draw = random.Random(leaves)
    while len(gaps["bunch"]) < states:
        load = draw.random()
        slots = np.array([int(draw.random() > load) for _ in range(machine.nodes)])
        taken = np.flatnonzero(slots == 0)
        members = sorted(draw.sample(taken.tolist(), min(draw.choice((0, 0, 2, 8)), len(taken))))
        wanted = draw.randint(2, 40)
        if slots.sum() < wanted:
            continue
        least = _least(slots, members, wanted, leaves, hosts, pods)
        for policy in POLICIES:
            own = _hops(_one_by_one(machine, policy, slots, members, wanted), leaves, hosts, pods)
            gaps[policy].append((own - least) / least if least else float(own > 0))
    return gaps


def _one_by_one(
    machine: Machine, policy: str, slots: NDArray[np.int64], members: list[int], wanted: int
) -> list[int]:
    """The group's nodes when each server in turn gets the first host of least cost, as in Nova."""
    state, left, nodes = State(machine), slots.copy(), list(members)
    for awaiting in range(wanted, 0, -1):
        costs, _ = state.costs(policy, awaiting, members=nodes, slots=left.tolist())
        assert costs is not None
        best = int(np.argmin(costs))
        left[best] -= 1
        nodes.append(best)
    return nodes


def _hops(nodes: list[int], leaves: int, hosts: int, pods: int) -> int:
    """Hops over pairs, computed without the engine from the numbers of servers in leaves and pods."""
    in_leaf = np.bincount(np.array(nodes) // hosts, minlength=leaves * pods)
    in_pod = in_leaf.reshape(pods, leaves).sum(axis=1)
    return int(_parted(in_leaf, len(nodes)).sum() + _parted(in_pod, len(nodes)).sum())


def _parted(inside: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The number of pairs with one end inside each group. For each of them, that end has a hop up."""
    return inside * (size - inside)


def _least(
    slots: NDArray[np.int64], members: list[int], wanted: int, leaves: int, hosts: int, pods: int
) -> int:
    """The least hops of all placements, by dynamic programming over the numbers in leaves, without the
    engine.
    """
    size = wanted + len(members)
    free = slots.reshape(pods, leaves, hosts).sum(axis=2)
    there = np.bincount(np.array(members, dtype=int) // hosts, minlength=leaves * pods).reshape(pods, leaves)
    machine = np.array([0])
    for pod in range(pods):
        inside = np.array([0])
        for leaf in range(leaves):
            inside = _both(inside, _parted(there[pod, leaf] + np.arange(free[pod, leaf] + 1), size), wanted)
        inside = inside + _parted(there[pod].sum() + np.arange(len(inside)), size)
        machine = _both(machine, inside, wanted)
    return int(machine[wanted])


def _both(a: NDArray[np.int64], b: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """For each number of servers, the least cost of dividing them between two parts with costs `a` and `b`."""
    sums = np.full(len(a) + len(b) - 1, np.iinfo(np.int64).max)
    for taken, cost in enumerate(b):
        part = sums[taken : taken + len(a)]
        np.minimum(part, a + cost, out=part)
    return sums[: most + 1]
