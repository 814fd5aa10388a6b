"""On a dragonfly whose routing adapts to load, a job with a promise keeps its share of all cables between its groups.

Nothing here comes from the engine but the placements. The cables are read from the machine's file, routes are drawn out group by
group, and a linear program finds the traffic of a job that loads the cables of two groups most.

`python tests/wirings/test_detours.py STATES [MACHINE...]` checks that many states of each machine.
"""

from __future__ import annotations

import collections
import functools
import random
import sys
import tomllib
from collections.abc import Iterator

import numpy as np
import pytest
from closure import Cables
from scipy.optimize import linprog
from topolane._engine import InputError, Machine, Refusal, State
from topolane.cluster.explain import running
from topolane.cluster.view import ISOLATED_GLOBAL, SHARED, Running, View
from topolane.slurm.explain import WORDS
from topolane.sources import machine

MACHINES = {
    "few-detours": "slingshot(nodes=60, groups=5, switches=4, cables=3, detours=0.3, share=0.25)",
    "one-cable": "slingshot(nodes=48, groups=4, switches=6, cables=1, detours=0.1, share=0.5)",
    "all-detours": "slingshot(nodes=72, groups=6, switches=6, cables=4, detours=1, share=0.1)",
    "plus": "dragonfly+(nodes=64, groups=4, leaves=4, spines=4, cables=4, detours=0.5, share=0.2)",
}
POLICIES = ("isolated", "isolated-global")
Counts = tuple[tuple[int, int], ...]
"""Nodes of a job by group, ascending."""


def most_flows(counts: Counts, pair: tuple[int, int], groups: int, part: float) -> float:
    """The most that a job can put on the cables from one group to another, over the bandwidth of a node."""
    nodes = dict(counts)
    others = sorted(count for group, count in counts if group not in pair)
    return most_from_0_to_1((nodes.get(pair[0], 0), nodes.get(pair[1], 0), *others), groups, part)


@functools.cache
def most_from_0_to_1(counts: tuple[int, ...], groups: int, part: float) -> float:
    """The most that a job with these numbers of nodes in groups 0, 1, ... can put on the cables from group 0 to 1: all other groups
    are alike."""
    pair, nodes = (0, 1), dict(enumerate(counts))
    ways = [(a, b) for a in nodes for b in nodes if a != b]

    def carried(a: int, b: int) -> float:
        """The part of a message from one group to another that the cables of the pair carry."""
        total = (1 - part) * ((a, b) == pair)
        for third in range(groups):
            lanes = [(a, b)] if third in (a, b) else [(a, third), (third, b)]
            total += part / groups * (pair in lanes)
        return total

    sends = [[way[0] == group for way in ways] for group in nodes]
    receives = [[way[1] == group for way in ways] for group in nodes]
    gain = np.array([carried(*way) for way in ways])
    found = linprog(-gain, A_ub=np.array(sends + receives, dtype=float), b_ub=list(nodes.values()) * 2)
    return float(-found.fun)


class Checker:
    """What jobs leave to each other on one machine, by its file."""

    def __init__(self, fabric: Machine) -> None:
        text = fabric.to("toml")
        read, self.cables = tomllib.loads(text), Cables(text)
        self.part, self.share = read["dragonfly"]["detours"], read["dragonfly"]["share"]
        self.groups, self.node = len(read["dragonfly"]["groups"]), read["site"][0]["bandwidth"][0]
        self.bandwidth: dict[tuple[int, int], float] = collections.defaultdict(float)
        for (here, there), bandwidth in self.cables.bandwidth.items():
            self.bandwidth[self.cables.group_of[here], self.cables.group_of[there]] += bandwidth

    def counts(self, nodes: list[str]) -> Counts:
        groups = (self.cables.group_of[self.cables.switch_of[node]] for node in nodes)
        return tuple(sorted(collections.Counter(groups).items()))

    def least_share(self, jobs: dict[int, list[str]]) -> float:
        """The least share that others leave to any job of cables between its groups."""
        counts = {job: self.counts(nodes) for job, nodes in jobs.items()}
        wide = {job: parts for job, parts in counts.items() if len(parts) > 1}
        pairs = [(a, b) for a in range(self.groups) for b in range(self.groups) if a != b]
        least = 1.0
        for pair in pairs:
            own = {job: most_flows(parts, pair, self.groups, self.part) for job, parts in wide.items()}
            whole = self.bandwidth[pair] / self.node
            for job in (job for job, parts in wide.items() if set(pair) <= {group for group, _ in parts}):
                least = min(least, 1 - (sum(own.values()) - own[job]) / whole)
        return least


def states(fabric: Machine, count: int, seed: int, promised: bool = True) -> Iterator[dict[int, list[str]]]:
    """The jobs of random states: jobs of mixed sizes and policies arrive and end at random. Without promises: what they do if no job
    keeps shares of others."""
    draw, state = random.Random(seed), State(fabric)
    names = [fabric.hostlist([node]) for node in range(fabric.nodes)]
    held: dict[int, list[str]] = {}
    for job in range(1, count + 1):
        policy = draw.choice(POLICIES) if promised else "random"
        answer = state.place(policy, draw.choice([2, 3, 6, 9, 12, 16, 20, 24, 30]), id=job, seed=seed)
        if not isinstance(answer, Refusal):
            held[job] = [names[node] for node in answer.nodes]
            state.hold(answer.nodes, link_use=policy if promised else SHARED, id=job)
        while held and (isinstance(answer, Refusal) or draw.random() < 0.3):
            ended = draw.choice(list(held))
            state.release(ended)
            del held[ended]
            if draw.random() < 0.5:
                break
        yield dict(held)


def faults(name: str, count: int, seed: int, promised: bool = True) -> list[float]:
    """The shares below the one that was promised."""
    fabric = machine(MACHINES[name])
    checker = Checker(fabric)
    shares = (checker.least_share(jobs) for jobs in states(fabric, count, seed, promised))
    return [share for share in shares if share < checker.share - 1e-6]


@pytest.mark.parametrize("name", MACHINES)
def test_jobs_with_promises_keep_their_shares(name: str) -> None:
    assert faults(name, 60, seed=1) == []
    assert faults(name, 60, seed=1, promised=False), "random placements would not keep them"


def test_a_job_is_refused_only_for_a_share() -> None:
    """Three groups of four nodes, one cable between each two, all of the bandwidth of a node; a tenth takes detours. The job on
    groups 0 and 1 can send from one node of group 0 to the other group over group 2, so that .1 / 3 of a node pass the cable between
    groups 0 and 2; so can the job on groups 0 and 2 over group 1. Each leaves the other .967 of its cable."""
    words = "slingshot(nodes=12, groups=3, switches=2, cables=1, detours=0.1, share="
    for share, fits in ((0.95, True), (0.98, False)):
        state = State(machine(f"{words}{share})"))
        state.hold([0, 1, 4], link_use="isolated-global")
        answer = state.place("isolated-global", 3, eligible=[3, 8, 9])
        assert isinstance(answer, Refusal) is not fits, share


def test_explain_names_the_share() -> None:
    """Of a job in several groups; one in a single group uses no cable between groups."""
    fabric = machine(MACHINES["few-detours"])
    said = "If at most 0.3 of the bytes between groups take detours, other jobs leave it at least 0.25 of each cable between its groups."
    wide = Running(1, "1", "", "", tuple(range(9, 15)), 0, None, link_use=ISOLATED_GLOBAL)
    small = Running(2, "2", "", "", tuple(range(20, 24)), 0, None, link_use=ISOLATED_GLOBAL)
    view = View(time=0, running=(wide, small), waiting=())
    assert said in running(fabric, view, wide, (), WORDS).sentences
    assert said not in running(fabric, view, small, (), WORDS).sentences


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("detours=0.3", "needs both detours=F and share=P, or neither"),
        ("detours=0.3, share=x", '"share=x" is no number'),
        ("detours=1.5, share=0.5", "detours must be a part of the bytes over 0 and up to 1, not 1.5"),
        ("detours=0.5, share=1", "the share of each cable must be over 0 and below 1, not 1"),
    ],
)
def test_detours_that_cannot_be_are_refused(arguments: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        machine(f"theta({arguments})")
    with pytest.raises(InputError, match="is no dragonfly"):
        machine("torus(size=4x4, detours=0.3, share=0.5)")


def test_messages_take_the_detours_of_the_machine() -> None:
    """Its default routing is Valiant's for that part; `dedicated`, whose messages would leave their cables, is refused. Its file and
    `topolane machine show` say so too."""
    fabric = machine(MACHINES["few-detours"])
    assert Machine.parse(fabric.to("toml"), "m.toml").detours == fabric.detours == (0.3, 0.25)
    assert (
        "detours: at most 0.3 of the bytes between groups; jobs with a promise keep 0.25 of" in fabric.tree(9)
    )
    assert fabric.routing("default").name == "valiant(fraction=0.3)"
    with pytest.raises(InputError, match="the machine is a dragonfly with detours"):
        State(fabric).place("dedicated", 30)


if __name__ == "__main__":
    for name in sys.argv[2:] or MACHINES:
        found = faults(name, int(sys.argv[1]), seed=2)
        print(f"{name}: {sys.argv[1]} states, {len(found)} with less than the promised share")
        assert not found
